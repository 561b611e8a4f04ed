//! The edits of a text, YAML for new values, the facts that may replace existing values, and the
//! errors of a merge.

use crate::document::yaml_tree::{YamlEntry, YamlMapping, YamlNode, YamlSequence};
use crate::document::yaml_words::with_quoted_words;
use serde_yaml::{Mapping, Value};
use std::ops::Range;

/// A text and the edits to apply to it.
pub(super) struct TextEdits<'t> {
    /// The text before the edits.
    pub(super) text: &'t str,
    edits: Vec<(Range<usize>, String)>,
}

impl<'t> TextEdits<'t> {
    pub(super) fn new(text: &'t str) -> TextEdits<'t> {
        TextEdits {
            text,
            edits: Vec::new(),
        }
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
    // the reader of the file may read YAML 1.1, as Kubernetes does
    Ok(with_quoted_words(&text)
        .lines()
        .map(|line| match line {
            "" => "\n".to_owned(),
            line => format!("{:indent$}{line}\n", ""),
        })
        .collect())
}

// The values that a merge may write over existing ones: facts of the site, such as the address of
// its registry and the URL of its proxy.

/// The facts of a site. A merge replaces an existing value only by a value that states a fact;
/// names, paths, versions and switches in the file are decisions of a person.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SiteFacts {
    /// Texts that a value contains between other characters, such as `registry.example:5000`.
    pub parts: Vec<String>,
    /// Texts that are a whole value, such as a password.
    pub wholes: Vec<String>,
}

/// The facts of no site.
pub(super) static NO_FACTS: SiteFacts = SiteFacts {
    parts: Vec::new(),
    wholes: Vec::new(),
};

impl SiteFacts {
    /// Whether `text` states one of the facts.
    pub fn states(&self, text: &str) -> bool {
        self.wholes.iter().any(|whole| whole == text)
            || self.parts.iter().any(|part| contains_name(text, part))
    }

    /// Whether `old` and `new` state the same fact and differ in something else, such as a path:
    /// that part of `old` is the decision of a person. Accounts in URLs are facts too.
    pub(super) fn differ_beside(&self, old: &str, new: &str) -> bool {
        let is_stated = |part: &String| contains_name(old, part) && contains_name(new, part);
        self.parts.iter().any(is_stated) && without_account(old) != without_account(new)
    }
}

/// Whether the URL `old` is `new` with an account, which `new` lacks, or with a slash at its end.
/// The account is kept: the site does not have it.
pub(super) fn is_same_url(old: &str, new: &str) -> bool {
    new.contains("://") && !new.contains('@') && without_account(old) == new.trim_end_matches('/')
}

/// `url` without an account and a slash at its end.
fn without_account(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    let host = host.trim_end_matches('/');
    match scheme {
        "" => host.to_owned(),
        scheme => format!("{scheme}://{host}"),
    }
}

/// Whether `text` contains `name`, not as a part of a longer name.
fn contains_name(text: &str, name: &str) -> bool {
    let is_inside = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    !name.is_empty()
        && text.match_indices(name).any(|(at, _)| {
            let before = text[..at].chars().next_back();
            let after = text[at + name.len()..].chars().next();
            !before.is_some_and(is_inside) && !after.is_some_and(is_inside)
        })
}

// The errors of a merge.

/// An error from setting values in a text. Messages are about the text ("it").
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// The text is not YAML, or lacks the document to merge into.
    #[error("it is not YAML that values can be merged into: {0}")]
    NotYaml(String),
    /// The existing and the new value are of different kinds, or the existing one is an alias or
    /// inherited by a merge key.
    #[error("{path} is {there}, and would become {wanted}; change it by hand first")]
    Kind {
        /// The dotted path of the value.
        path: String,
        /// The kind or origin of the existing value.
        there: &'static str,
        /// The kind of the new value.
        wanted: &'static str,
    },
    /// The notation at this dotted path cannot be edited.
    #[error("the notation of {0} cannot be edited; write the values there by hand")]
    Form(String),
    /// Content would be removed: one line for each value, with its dotted path and the reason.
    #[error(
        "existing content would be removed:\n{}\n\
         help: change it by hand, or keep a copy and add --replace; with --replace --diff nothing \
         is written, and the change is shown",
        .0.join("\n")
    )]
    Lost(Vec<String>),
    /// An ordered list has the common items in another order than the new values need.
    #[error(
        "{path} has some of these items in another order, and the order matters; \
         put them there by hand:\n{items}"
    )]
    Order {
        /// The dotted path of the list.
        path: String,
        /// The items as a YAML list, without the secrets in URLs.
        items: String,
    },
    /// An existing command of an ordered list sets a value that cannot be read, or does more than
    /// set the value.
    #[error(
        "`{command}` in {path} sets a value that cannot be read, or does more than set the value; \
         merge it with this command by hand:\n{items}"
    )]
    Command {
        /// The dotted path of the list.
        path: String,
        /// The existing command without the value.
        command: String,
        /// The new command as a YAML list, without the secrets in URLs.
        items: String,
    },
}

impl MergeError {
    /// Replaces the path of the value by `map` of it.
    pub(super) fn map_path(mut self, map: impl Fn(&str) -> String) -> MergeError {
        match &mut self {
            MergeError::Kind { path, .. }
            | MergeError::Form(path)
            | MergeError::Order { path, .. }
            | MergeError::Command { path, .. } => *path = map(path),
            MergeError::NotYaml(_) | MergeError::Lost(_) => {}
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_not_found_in_a_longer_name() {
        let facts = SiteFacts {
            parts: vec!["r.test:5000".into(), "mirror".into()],
            wholes: vec!["hush".into()],
        };
        for text in [
            "r.test:5000",
            "http://r.test:5000/v2",
            "oci://mirror/charts",
            "hush",
        ] {
            assert!(facts.states(text), "{text}");
        }
        for text in [
            "",
            "other.test:5000",
            "r.test:50001",
            "mirror-values",
            "my.mirror",
            "hush hush",
        ] {
            assert!(!facts.states(text), "{text}");
        }
        assert!(!NO_FACTS.states(""));
    }
}
