//! The edits of a text, and YAML for new values.

use super::error::MergeError;
use crate::document::yaml_tree::{Kind, Member, Tree};
use serde_yaml::{Mapping, Value};
use std::ops::Range;

/// A text and what replaces its bytes.
pub(super) struct Edits<'t> {
    text: &'t str,
    edits: Vec<(Range<usize>, String)>,
}

impl<'t> Edits<'t> {
    /// No edit of `text`.
    pub(super) fn of(text: &'t str) -> Edits<'t> {
        Edits {
            text,
            edits: Vec::new(),
        }
    }

    /// Adds `parts` behind the last of a flow collection, which ends at `last`.
    pub(super) fn add_flow(&mut self, tree: &Tree, last: Option<usize>, parts: &[String]) {
        if !parts.is_empty() {
            let text = parts.join(", ");
            let (at, text) = match last {
                Some(last) => (last, format!(", {text}")),
                None => (tree.span.start + 1, text),
            };
            self.edits.push((at..at, text));
        }
    }

    /// Adds whole lines behind the line that holds the byte before `end`.
    pub(super) fn add_lines(&mut self, end: usize, lines: &str) {
        let at = match self.text[..end].ends_with('\n') {
            true => end,
            false => self.text[end..]
                .find('\n')
                .map_or(self.text.len(), |rest| end + rest + 1),
        };
        self.edits.push((at..at, lines.to_owned()));
    }

    /// Adds items to the end of a list that is not empty, or before its item number `place`.
    pub(super) fn add_items(
        &mut self,
        tree: &Tree,
        place: usize,
        new: &[Value],
    ) -> Result<(), MergeError> {
        let Kind::List { flow, items } = &tree.kind else {
            return Err(MergeError::Form("a list".into()));
        };
        let texts: Vec<String> = new.iter().map(flow_text).collect();
        if *flow {
            match items.get(place) {
                Some(next) => {
                    let start = next.span.start;
                    self.edits.push((
                        start..start,
                        texts.iter().map(|text| format!("{text}, ")).collect(),
                    ));
                }
                None => self.add_flow(tree, items.last().map(Tree::end), &texts),
            }
            return Ok(());
        }
        let dash = items
            .first()
            .and_then(|first| self.text[..first.span.start].rfind('-'));
        let dash = dash.ok_or_else(|| MergeError::Form("the first item of a list".into()))?;
        let lines = block_text(&new, self.column(dash))?;
        match place.checked_sub(1).map(|before| items.get(before)) {
            Some(before) => self.add_lines(before.map_or_else(|| tree.end(), Tree::end), &lines),
            None => {
                let start = self.text[..dash]
                    .rfind('\n')
                    .map_or(0, |newline| newline + 1);
                self.edits.push((start..start, lines));
            }
        }
        Ok(())
    }

    /// Replaces all items of a list that is not empty.
    pub(super) fn replace_items(&mut self, tree: &Tree, new: &[Value]) -> Result<(), MergeError> {
        let Kind::List { flow, items } = &tree.kind else {
            return Err(MergeError::Form("a list".into()));
        };
        if *flow {
            self.edits
                .push((tree.span.clone(), flow_text(&Value::Sequence(new.to_vec()))));
            return Ok(());
        }
        let dash = items
            .first()
            .and_then(|first| self.text[..first.span.start].rfind('-'));
        let dash = dash.ok_or_else(|| MergeError::Form("the first item of a list".into()))?;
        let start = self.text[..dash]
            .rfind('\n')
            .map_or(0, |newline| newline + 1);
        let end = tree.end();
        let rest = self.text[end..]
            .find('\n')
            .map_or(self.text.len(), |rest| end + rest + 1);
        let end = if self.text[..end].ends_with('\n') {
            end
        } else {
            rest
        };
        self.edits
            .push((start..end, block_text(&new, self.column(dash))?));
        Ok(())
    }

    /// Sets the value of the item `item` of a list, which is a scalar.
    pub(super) fn set_item(
        &mut self,
        item: &Tree,
        flow: bool,
        new: &Value,
    ) -> Result<(), MergeError> {
        let text = if flow {
            flow_text(new)
        } else {
            let dash = self.text[..item.span.start].rfind('-');
            let dash = dash.ok_or_else(|| MergeError::Form("an item of a list".into()))?;
            let text = block_text(&[new], self.column(dash))?;
            let ends_line = self.text[item.span.clone()].ends_with('\n');
            let text = text.trim_start().trim_start_matches("- ");
            if ends_line {
                text.to_owned()
            } else {
                text.trim_end_matches('\n').to_owned()
            }
        };
        self.edits.push((item.span.clone(), text));
        Ok(())
    }

    /// Sets the value of a member of a mapping, `old` before, which is a scalar or an empty
    /// collection.
    pub(super) fn set_value(
        &mut self,
        member: &Member,
        in_flow: bool,
        old: &Value,
        new: &Value,
    ) -> Result<(), MergeError> {
        let at = &member.value;
        if in_flow {
            let blank = if at.span.is_empty() { " " } else { "" };
            self.edits
                .push((at.span.clone(), format!("{blank}{}", flow_text(new))));
            return Ok(());
        }
        if let (Value::String(old), Value::String(new)) = (old, new)
            && let Some(text) = literal(&self.text[at.span.clone()], old, new)
        {
            self.edits.push((at.span.clone(), text));
            return Ok(());
        }
        let one = Mapping::from_iter([(Value::from("k"), new.clone())]);
        let text = block_text(&one, self.column(member.at.start))?;
        let text = text
            .trim_start()
            .strip_prefix("k:")
            .unwrap_or_default()
            .to_owned();
        match text.strip_prefix('\n') {
            // a collection stands below its key, and a comment behind the key stays there
            Some(below) => {
                let rest = self.text[at.span.end..].lines().next().unwrap_or_default();
                let blanks = self.text[..at.span.start].len()
                    - self.text[..at.span.start].trim_end_matches(' ').len();
                let start = if rest.trim().is_empty() {
                    at.span.start - blanks
                } else {
                    at.span.start
                };
                self.edits.push((start..at.span.end, String::new()));
                self.add_lines(at.span.end, below);
            }
            None => {
                let ends_line = self.text[at.span.clone()].ends_with('\n');
                let text = if ends_line {
                    &*text
                } else {
                    text.trim_end_matches('\n')
                };
                let blank = if at.span.is_empty() {
                    text
                } else {
                    text.trim_start_matches(' ')
                };
                self.edits.push((at.span.clone(), blank.to_owned()));
            }
        }
        Ok(())
    }

    /// Removes these members of a mapping that keeps others.
    pub(super) fn remove_members(&mut self, members: &[Member], removed: &[usize], flow: bool) {
        let next_kept = |at: usize| (at..members.len()).find(|other| !removed.contains(other));
        let mut done = 0;
        for &at in removed.iter().filter(|at| **at < members.len()) {
            let member = &members[at];
            let line = self.text[..member.at.start]
                .rfind('\n')
                .map_or(0, |newline| newline + 1);
            let follows_dash = !self.text[line..member.at.start].trim().is_empty();
            let range = match next_kept(at) {
                _ if at < done => continue,
                // behind a dash or in a line, the next one that stays moves up
                Some(next) if flow || follows_dash => {
                    done = next;
                    member.at.start..members[next].at.start
                }
                None if flow => {
                    done = members.len();
                    let before = at.checked_sub(1).map(|before| members[before].value.end());
                    before.unwrap_or(member.at.start)
                        ..members.last().map_or(0, |last| last.value.end())
                }
                _ => {
                    let end = member.value.end();
                    let rest = self.text[end..]
                        .find('\n')
                        .map_or(self.text.len(), |rest| end + rest + 1);
                    line..if self.text[..end].ends_with('\n') {
                        end
                    } else {
                        rest
                    }
                }
            };
            self.edits.push((range, String::new()));
        }
    }

    /// The column of a byte.
    pub(super) fn column(&self, at: usize) -> usize {
        let line = self.text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        self.text[line..at]
            .trim_start_matches('\u{feff}')
            .chars()
            .count()
    }

    /// The text with the edits, which do not overlap; those at one place stand in their order.
    pub(super) fn apply(self) -> String {
        let Edits { text, mut edits } = self;
        edits.sort_by_key(|(range, _)| range.start);
        let (mut out, mut at) = (String::with_capacity(text.len()), 0);
        for (range, new) in edits {
            out += text.get(at..range.start).unwrap_or_default();
            // a text without a last newline gets one before what is added
            if new.ends_with('\n')
                && range.start == text.len()
                && !out.is_empty()
                && !out.ends_with('\n')
            {
                out += if text.contains("\r\n") { "\r\n" } else { "\n" };
            }
            out += &if text.contains("\r\n") {
                new.replace('\n', "\r\n")
            } else {
                new
            };
            at = at.max(range.end);
        }
        out + text.get(at..).unwrap_or_default()
    }
}

/// The literal block scalar `block`, which reads as `old`, with `new` in its place: the same header
/// and indentation. `None` if it is none, or its header does not suit the end of `new`.
fn literal(block: &str, old: &str, new: &str) -> Option<String> {
    let (header, body) = block.split_once('\n')?;
    let is_plain = |line: &str| !line.contains(|c: char| c.is_control() && c != '\t');
    let style = header
        .trim_end()
        .strip_prefix('|')?
        .split('#')
        .next()
        .unwrap_or_default();
    let ends = new.len() - new.trim_end_matches('\n').len();
    let suits = if style.contains('+') {
        false
    } else {
        ends == usize::from(!style.contains('-'))
    };
    let indent = |text: &str| text.len() - text.trim_start_matches(' ').len();
    let first_of = |text: &'_ str| {
        text.lines()
            .find(|line| !line.trim().is_empty())
            .map(indent)
    };
    let width = first_of(body)?.checked_sub(first_of(old)?)?;
    // without a number in the header, the first line says how far all are indented
    let begins_alike = first_of(new)? == 0 || style.contains(|c: char| c.is_ascii_digit());
    if !suits || !begins_alike || new.starts_with('\n') || !new.lines().all(is_plain) {
        return None;
    }
    let line = |line: &str| {
        if line.is_empty() {
            "\n".to_owned()
        } else {
            format!("{:width$}{line}\n", "")
        }
    };
    let lines: String = new.trim_end_matches('\n').split('\n').map(line).collect();
    let lines = if body.ends_with('\n') {
        &*lines
    } else {
        lines.trim_end_matches('\n')
    };
    Some(format!("{}\n{lines}", header.trim_end_matches('\r')))
}

/// A value in flow notation: JSON, which is YAML too.
pub(super) fn flow_text(value: &Value) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// A collection in block notation, every line indented.
pub(super) fn block_text(
    value: &impl serde::Serialize,
    indent: usize,
) -> Result<String, MergeError> {
    let text =
        serde_yaml::to_string(value).map_err(|error| MergeError::NotYaml(error.to_string()))?;
    let indented = |line: &str| match line {
        "" => "\n".to_owned(),
        line => format!("{:indent$}{line}\n", ""),
    };
    Ok(text.lines().map(indented).collect())
}
