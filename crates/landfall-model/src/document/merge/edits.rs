//! The edits of a text, and YAML for new values.

use super::error::MergeError;
use crate::document::yaml_tree::{YamlEntry, YamlMapping, YamlNode, YamlSequence};
use serde_yaml::{Mapping, Value};
use std::ops::Range;

/// A text and the edits to apply to it.
pub(super) struct TextEdits<'t> {
    text: &'t str,
    edits: Vec<(Range<usize>, String)>,
}

impl<'t> TextEdits<'t> {
    pub(super) fn new(text: &'t str) -> TextEdits<'t> {
        TextEdits {
            text,
            edits: Vec::new(),
        }
    }

    /// The text before the edits.
    pub(super) fn text(&self) -> &'t str {
        self.text
    }

    /// Adds `parts` to the flow collection at the bytes `span`. `last` is the end of the existing
    /// last part of the collection, or `None` if the collection is empty.
    pub(super) fn add_flow(&mut self, span: &Range<usize>, last: Option<usize>, parts: &[String]) {
        if parts.is_empty() {
            return;
        }
        let parts = parts.join(", ");
        match last {
            Some(last) => self.edits.push((last..last, format!(", {parts}"))),
            None => self.edits.push((span.start + 1..span.start + 1, parts)),
        }
    }

    /// Adds whole lines after the line that contains the byte before `end`.
    pub(super) fn add_lines(&mut self, end: usize, lines: &str) {
        let at = self.line_end(end);
        self.edits.push((at..at, lines.to_owned()));
    }

    /// Adds items to a list that is not empty: before the item with the index `place`, or at the
    /// end if there is no such item.
    pub(super) fn add_items(
        &mut self,
        sequence: &YamlSequence<'_>,
        place: usize,
        new: &[Value],
    ) -> Result<(), MergeError> {
        let items = &sequence.items;
        if sequence.flow {
            let texts: Vec<String> = new.iter().map(flow_text).collect();
            if let Some(next) = items.get(place) {
                let start = next.extent(self.text).start;
                let texts = texts.iter().map(|text| format!("{text}, ")).collect();
                self.edits.push((start..start, texts));
            } else {
                let last = items.last().map(|item| item.content_end(self.text));
                self.add_flow(&sequence.span, last, &texts);
            }
            return Ok(());
        }
        let dash = self.first_dash(sequence)?;
        let lines = block_text(&new, self.column(dash))?;
        match place.checked_sub(1) {
            Some(before) => {
                let before = items.get(before).or(items.last());
                let end = before.map_or(sequence.span.end, |item| item.content_end(self.text));
                self.add_lines(end, &lines);
            }
            None => {
                let start = self.line_start(dash);
                self.edits.push((start..start, lines));
            }
        }
        Ok(())
    }

    /// Replaces all items of a list that is not empty.
    pub(super) fn replace_items(
        &mut self,
        sequence: &YamlSequence<'_>,
        new: &[Value],
    ) -> Result<(), MergeError> {
        if sequence.flow {
            let text = flow_text(&Value::Sequence(new.to_vec()));
            self.edits.push((sequence.span.clone(), text));
            return Ok(());
        }
        let dash = self.first_dash(sequence)?;
        let last = sequence.items.last();
        let end = last.map_or(sequence.span.end, |item| item.content_end(self.text));
        let lines = self.line_start(dash)..self.line_end(end);
        self.edits
            .push((lines, block_text(&new, self.column(dash))?));
        Ok(())
    }

    /// Replaces the scalar `item` of a list.
    pub(super) fn set_item(
        &mut self,
        item: &YamlNode<'_>,
        flow: bool,
        new: &Value,
    ) -> Result<(), MergeError> {
        let extent = item.extent(self.text);
        let text = if let Some(text) = quoted_alike(&self.text[extent.clone()], new) {
            text
        } else if flow {
            flow_text(new)
        } else {
            let dash = self.text[..extent.start]
                .rfind('-')
                .ok_or_else(|| MergeError::Form("an item of a list".into()))?;
            let text = block_text(&[new], self.column(dash))?;
            let text = text.trim_start().trim_start_matches("- ");
            if self.text[extent.clone()].ends_with('\n') {
                text.to_owned()
            } else {
                text.trim_end_matches('\n').to_owned()
            }
        };
        self.edits.push((extent, text));
        Ok(())
    }

    /// Replaces the value of an entry of a mapping. The existing value `old` is a scalar or an
    /// empty collection.
    pub(super) fn set_value(
        &mut self,
        entry: &YamlEntry<'_>,
        flow: bool,
        old: &Value,
        new: &Value,
    ) -> Result<(), MergeError> {
        let extent = entry.value_extent(self.text);
        let written = &self.text[extent.clone()];
        if let Some(text) = quoted_alike(written, new) {
            self.edits.push((extent, text));
            return Ok(());
        }
        if flow {
            let blank = if extent.is_empty() { " " } else { "" };
            let text = format!("{blank}{}", flow_text(new));
            self.edits.push((extent, text));
            return Ok(());
        }
        // a literal block stays a literal block, so that a script in it remains readable
        if let (Value::String(old), Value::String(new)) = (old, new)
            && let Some(text) =
                literal_block(written, old, new).or_else(|| longer_folded(written, old, new))
        {
            self.edits.push((extent, text));
            return Ok(());
        }
        // serialized with a key before it, because the key affects line breaks and indentation
        let pair = Mapping::from_iter([(Value::from("k"), new.clone())]);
        let text = block_text(&pair, self.column(entry.key.span().start))?;
        let text = text.trim_start().strip_prefix("k:").unwrap_or_default();
        if let Some(below) = text.strip_prefix('\n') {
            // a collection is written below its key; a comment after the key is kept
            let rest = self.text[extent.end..].lines().next().unwrap_or_default();
            let start = if rest.trim().is_empty() {
                self.text[..extent.start].trim_end_matches(' ').len()
            } else {
                extent.start
            };
            self.edits.push((start..extent.end, String::new()));
            self.add_lines(extent.end, below);
            return Ok(());
        }
        let text = if written.ends_with('\n') {
            text
        } else {
            text.trim_end_matches('\n')
        };
        let text = if extent.is_empty() {
            text
        } else {
            text.trim_start_matches(' ')
        };
        self.edits.push((extent, text.to_owned()));
        Ok(())
    }

    /// Removes the entries with the indexes `removed`, in ascending order, from a mapping that
    /// keeps at least one entry.
    pub(super) fn remove_entries(&mut self, mapping: &YamlMapping<'_>, removed: &[usize]) {
        let entries = &mapping.entries;
        let key_start = |at: usize| entries[at].key.span().start;
        let mut done = 0;
        for &at in removed {
            if at < done {
                continue;
            }
            let start = key_start(at);
            let line = self.line_start(start);
            let follows_dash = !self.text[line..start].trim().is_empty();
            let next_kept = (at..entries.len()).find(|other| !removed.contains(other));
            let range = match next_kept {
                // after a dash, or within a line, the next entry that is kept moves up
                Some(next) if mapping.flow || follows_dash => {
                    done = next;
                    start..key_start(next)
                }
                None if mapping.flow => {
                    done = entries.len();
                    let before = at.checked_sub(1);
                    let from = before.map_or(start, |at| entries[at].content_end(self.text));
                    from..entries[done - 1].content_end(self.text)
                }
                _ => line..self.line_end(entries[at].content_end(self.text)),
            };
            self.edits.push((range, String::new()));
        }
    }

    /// The column of a byte, in characters and counted from 0.
    pub(super) fn column(&self, at: usize) -> usize {
        self.text[self.line_start(at)..at]
            .trim_start_matches('\u{feff}')
            .chars()
            .count()
    }

    fn line_start(&self, at: usize) -> usize {
        self.text[..at].rfind('\n').map_or(0, |newline| newline + 1)
    }

    /// The end of the line that contains the byte before `at`, its newline included.
    fn line_end(&self, at: usize) -> usize {
        if self.text[..at].ends_with('\n') {
            return at;
        }
        let newline = self.text[at..].find('\n');
        newline.map_or(self.text.len(), |newline| at + newline + 1)
    }

    fn first_dash(&self, sequence: &YamlSequence<'_>) -> Result<usize, MergeError> {
        sequence
            .items
            .first()
            .and_then(|first| self.text[..first.extent(self.text).start].rfind('-'))
            .ok_or_else(|| MergeError::Form("the first item of a list".into()))
    }

    /// Applies the edits, which must not overlap. Edits at one position keep their order.
    pub(super) fn apply(mut self) -> String {
        self.edits.sort_by_key(|(range, _)| range.start);
        let line_break = if self.text.contains("\r\n") {
            "\r\n"
        } else {
            "\n"
        };
        let mut out = String::with_capacity(self.text.len());
        let mut at = 0;
        for (range, new) in self.edits {
            out += self.text.get(at..range.start).unwrap_or_default();
            // if the text does not end with a newline, lines that are added to it need one first
            let is_at_end = range.start == self.text.len();
            if new.ends_with('\n') && is_at_end && !out.is_empty() && !out.ends_with('\n') {
                out += line_break;
            }
            out += &new.replace('\n', line_break);
            at = at.max(range.end);
        }
        out + self.text.get(at..).unwrap_or_default()
    }
}

/// Rewrites the literal block scalar `block`, whose value is `old`, to the value `new`, with the
/// same header and indentation. `None` if `block` is not a literal block scalar, or if `new` cannot
/// be written in one because of its last newlines, its indentation or a control character.
fn literal_block(block: &str, old: &str, new: &str) -> Option<String> {
    let (header, body) = block.split_once('\n')?;
    let indicators = header
        .trim_end()
        .strip_prefix('|')?
        .split('#')
        .next()
        .unwrap_or_default();
    // chomping indicators (YAML 1.2.2, 8.1.1.2): `-` strips the last newline; `+` would also keep
    // the empty lines that follow
    let newlines = new.len() - new.trim_end_matches('\n').len();
    let wanted_newlines = usize::from(!indicators.contains('-'));
    if indicators.contains('+') || newlines != wanted_newlines {
        return None;
    }
    // without an indentation indicator, the first line decides how far all lines are indented
    let has_indentation = indicators.contains(|c: char| c.is_ascii_digit());
    if first_indentation(new)? > 0 && !has_indentation {
        return None;
    }
    let is_plain = |line: &str| !line.contains(|c: char| c.is_control() && c != '\t');
    if new.starts_with('\n') || !new.lines().all(is_plain) {
        return None;
    }
    let width = first_indentation(body)?.checked_sub(first_indentation(old)?)?;
    let mut lines = String::new();
    for line in new.trim_end_matches('\n').split('\n') {
        if line.is_empty() {
            lines.push('\n');
        } else {
            lines += &format!("{:width$}{line}\n", "");
        }
    }
    if !body.ends_with('\n') {
        lines.truncate(lines.trim_end_matches('\n').len());
    }
    Some(format!("{}\n{lines}", header.trim_end_matches('\r')))
}

/// Adds the end of `new`, which begins with `old`, to the last line of the folded block scalar
/// `block`, whose value is `old`. `None` if `new` cannot be written in this way.
fn longer_folded(block: &str, old: &str, new: &str) -> Option<String> {
    let header = block.lines().next()?.split('#').next()?.trim_end();
    let is_stripped = header.starts_with('>') && header.ends_with('-');
    let added = new.strip_prefix(old)?;
    let is_alone = !added.contains(|c: char| c.is_whitespace() || c.is_control());
    (is_stripped && is_alone).then_some(())?;
    let (content, blank) = block.split_at(block.trim_end().len());
    Some(format!("{content}{added}{blank}").replace('\r', ""))
}

/// The text `new` in the quotes of the scalar `written`. `None` if it has none, or if `new` has
/// several lines, which a block shows better.
fn quoted_alike(written: &str, new: &Value) -> Option<String> {
    let new_text = new.as_str().filter(|text| !text.contains('\n'))?;
    match written.as_bytes() {
        [b'"', .., b'"'] => Some(flow_text(new)),
        // the apostrophe is the only character that can be escaped between single quotes
        [b'\'', .., b'\''] if !new_text.contains(char::is_control) => {
            Some(format!("'{}'", new_text.replace('\'', "''")))
        }
        _ => None,
    }
}

/// The number of spaces before the first line that is not blank.
fn first_indentation(text: &str) -> Option<usize> {
    let line = text.lines().find(|line| !line.trim().is_empty())?;
    Some(line.len() - line.trim_start_matches(' ').len())
}

/// A value in flow notation: JSON, which is YAML too.
pub(super) fn flow_text(value: &Value) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// A collection in block notation. Every line that is not empty is indented by `indent` spaces.
pub(super) fn block_text(
    value: &impl serde::Serialize,
    indent: usize,
) -> Result<String, MergeError> {
    let text =
        serde_yaml::to_string(value).map_err(|error| MergeError::NotYaml(error.to_string()))?;
    Ok(text
        .lines()
        .map(|line| match line {
            "" => "\n".to_owned(),
            line => format!("{:indent$}{line}\n", ""),
        })
        .collect())
}
