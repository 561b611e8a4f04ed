//! Edits the entries of an item with `keep` in the text of a manifest: changes their versions, and
//! adds and removes whole entries, without touching any other byte.

use super::entry_steps::{EntryFate, KeptEntry, entry_steps, list_after};
use super::list_edits::{
    NOT_PLAIN, NOT_YAML, line_ending, line_of, lines_after, split_byte_order_mark,
};
use super::updatable_versions::{UpdatableVersion, VersionLocation};
use landfall_model::document::{YamlNode, yaml};
use serde_yaml::Value;
use std::collections::BTreeSet;
use std::ops::Range;

/// Replaces the versions of `entries`, the entries of `slot`, by `new` in the manifest `text`. Each
/// entry keeps its version, gets a new one or is removed; each remaining new version gets a copy of
/// a neighbouring entry. Fails with the reason if the entries cannot be edited in place.
pub(super) fn set_entry_versions(
    text: &str,
    slot: &UpdatableVersion,
    entries: &[KeptEntry],
    new: &[String],
) -> Result<String, String> {
    let VersionLocation::Entry(section, _, path) = &slot.key else {
        return Err(NOT_PLAIN.into());
    };
    if new.is_empty() {
        return Err(NOT_PLAIN.into());
    }
    let (mark, body) = split_byte_order_mark(text);
    let root = YamlNode::parse(body).ok_or(NOT_YAML)?;
    let old: Vec<&str> = entries.iter().map(KeptEntry::current).collect();
    let steps = entry_steps(&old, new);
    let list = EntryList {
        body,
        node: root.get(section),
    };
    let mut edits = Vec::new();
    let mut removed = BTreeSet::new();
    for (entry, steps) in entries.iter().zip(&steps) {
        let whole = list.content(entry.index)?;
        let location = VersionLocation::Entry(section, entry.index, path.clone());
        let scalar = location.bytes(body, &root);
        // the version is an alias of a text outside the entry: an edit would change other values
        if scalar.start < whole.start || scalar.end > whole.end {
            return Err(NOT_PLAIN.into());
        }
        let start = body[scalar.clone()].rfind(&entry.text).ok_or(NOT_PLAIN)? + scalar.start;
        let version = start + entry.version.start..start + entry.version.end;
        let copies = |versions: &[String]| -> Vec<String> {
            let before = &body[whole.start..version.start];
            let after = &body[version.end..whole.end];
            versions
                .iter()
                .map(|new| [before, new, after].concat())
                .collect()
        };
        edits.extend(list.insertions(&whole, &copies(&steps.before), &copies(&steps.after)));
        match &steps.own {
            EntryFate::Stays => {}
            EntryFate::MovesTo(new) => edits.push((version, new.clone())),
            EntryFate::IsRemoved => drop(removed.insert(entry.index)),
        }
    }
    for range in list.removals(&removed)? {
        edits.push((range, String::new()));
    }
    edits.sort_by_key(|(range, _)| (range.start, range.end));
    let mut edited = body.to_owned();
    // from the end, so that the offsets of earlier edits stay valid
    for (range, text) in edits.into_iter().rev() {
        edited.replace_range(range, &text);
    }
    let mut wanted: Value = yaml::from_str(body).map_err(|_| NOT_YAML)?;
    if let Some(Value::Sequence(values)) = wanted.get_mut(section) {
        let old = std::mem::take(values);
        *values = list_after(old, entries, &steps, path).ok_or(NOT_PLAIN)?;
    }
    // the edited manifest is parsed, since a copied entry may have an anchor, and a new version may
    // need quotes that the old one did not
    match yaml::from_str::<Value>(&edited) {
        Ok(found) if found == wanted => Ok([mark, &edited].concat()),
        _ => Err(format!(
            "`{}` cannot be written there: YAML would read it as another value",
            new.join(", ")
        )),
    }
}

/// The entries of a section as they are written in the manifest.
struct EntryList<'a> {
    body: &'a str,
    node: &'a YamlNode<'a>,
}

impl EntryList<'_> {
    fn is_flow(&self) -> bool {
        self.body[self.node.span()].starts_with('[')
    }

    /// The bytes of an entry, without the dash before it.
    fn content(&self, index: usize) -> Result<Range<usize>, String> {
        let node = self.node.item(index);
        let start = node.span().start;
        let end = node.content_end(self.body);
        let dash = &self.body[line_of(self.body, start).start..start];
        if (!self.is_flow() && dash.trim() != "-") || end <= start {
            return Err(NOT_PLAIN.into());
        }
        Ok(start..start + self.body[start..end].trim_end().len())
    }

    /// The bytes of the full lines that contain `content`, the bytes of an entry.
    fn lines(&self, content: &Range<usize>) -> Range<usize> {
        line_of(self.body, content.start).start..line_of(self.body, content.end).end
    }

    /// The texts that add entries before and after the entry with the bytes `content`, and the
    /// positions at which they are inserted.
    fn insertions(
        &self,
        content: &Range<usize>,
        before: &[String],
        after: &[String],
    ) -> Vec<(Range<usize>, String)> {
        let (start, end, texts) = if self.is_flow() {
            let first = before.iter().map(|entry| format!("{entry}, "));
            let last = after.iter().map(|entry| format!(", {entry}"));
            (
                content.start,
                content.end,
                [first.collect(), last.collect()],
            )
        } else {
            let lines = self.lines(content);
            let dash = &self.body[lines.start..content.start];
            let ending = line_ending(&self.body[lines.clone()]);
            let first = before.iter().map(|entry| format!("{dash}{entry}{ending}"));
            let last = after.iter().map(|entry| format!("{dash}{entry}"));
            let last = lines_after(self.body, &lines, last);
            (lines.start, lines.end, [first.collect(), last])
        };
        let [first, last]: [String; 2] = texts;
        let insertions = [(start..start, first), (end..end, last)];
        insertions
            .into_iter()
            .filter(|(_, text)| !text.is_empty())
            .collect()
    }

    /// The bytes to remove so that the list no longer has these entries. At least one entry of the
    /// list must stay.
    fn removals(&self, removed: &BTreeSet<usize>) -> Result<Vec<Range<usize>>, String> {
        let mut ranges = Vec::new();
        // In a list in brackets, an entry is removed with the comma before it. If the first entries
        // of the list are removed, the comma after them is removed, too.
        let leading = removed
            .iter()
            .zip(0..)
            .take_while(|(index, at)| *index == at);
        let leading = leading.count();
        if self.is_flow() && leading > 0 {
            ranges.push(self.content(0)?.start..self.content(leading)?.start);
        }
        for index in removed.iter().copied() {
            let content = self.content(index)?;
            if !self.is_flow() {
                ranges.push(self.lines(&content));
            } else if index >= leading {
                ranges.push(self.content(index - 1)?.end..content.end);
            }
        }
        Ok(ranges)
    }
}

#[cfg(test)]
mod tests {
    use crate::manifest::{FileOverrides, set_versions, updatable_versions};
    use std::path::PathBuf;

    /// Edits the entries of `quay.io/a/b` in the section text `images`; returns the edited text.
    fn edited(images: &str, new: &[&str]) -> Result<String, String> {
        let head = "apiVersion: landfall/v1\nkind: Manifest\nimages:";
        let tail = "charts: []\n";
        let text = format!("{head}{images}{tail}");
        let path = PathBuf::from("m.yaml");
        let files = FileOverrides::from([(path.clone(), text.clone())]);
        let slots = updatable_versions(&[path], &files).map_err(|error| error.to_string())?;
        let slot = slots
            .iter()
            .find(|slot| slot.name == "quay.io/a/b")
            .unwrap();
        let new: Vec<String> = new.iter().map(|text| (*text).to_owned()).collect();
        let edited = set_versions(&text, slot, &new)?;
        let inner = edited.strip_prefix(head).unwrap().strip_suffix(tail);
        Ok(inner.unwrap().to_owned())
    }

    #[test]
    fn entries_keep_their_notation() {
        for (written, new, expected) in [
            (
                "\n- quay.io/x:1\n- ref: quay.io/a/b:1.9.0   # why\n  # more\n  update: {policy: minor, keep: 3}  # end\n- quay.io/y:1\n",
                &["1.8.2", "1.9.1", "1.10.0"][..],
                "\n- quay.io/x:1\n- ref: quay.io/a/b:1.8.2   # why\n  # more\n  update: {policy: minor, keep: 3}\n- ref: quay.io/a/b:1.9.1   # why\n  # more\n  update: {policy: minor, keep: 3}  # end\n- ref: quay.io/a/b:1.10.0   # why\n  # more\n  update: {policy: minor, keep: 3}\n- quay.io/y:1\n",
            ),
            (
                "\r\n  - {ref: \"quay.io/a/b:1.8.0\", update: {policy: minor, keep: 2}} # old\r\n  # apart\r\n  - {ref: quay.io/a/b:1.9.0, update: {policy: minor, keep: 2}}\r\n",
                &["1.9.0", "1.10.0"],
                "\r\n  # apart\r\n  - {ref: quay.io/a/b:1.9.0, update: {policy: minor, keep: 2}}\r\n  - {ref: quay.io/a/b:1.10.0, update: {policy: minor, keep: 2}}\r\n",
            ),
            (
                " [{ref: quay.io/a/b:1.8.0, update: {policy: minor, keep: 2}}, {ref: quay.io/a/b:1.9.0, update: {policy: minor, keep: 2}}, quay.io/y:1]\n",
                &["1.9.0", "1.10.0"],
                " [{ref: quay.io/a/b:1.9.0, update: {policy: minor, keep: 2}}, {ref: quay.io/a/b:1.10.0, update: {policy: minor, keep: 2}}, quay.io/y:1]\n",
            ),
            (
                " [quay.io/y:1, {ref: quay.io/a/b:1.8.0, update: {policy: minor, keep: 2}}, {ref: quay.io/a/b:1.9.0, update: {policy: minor, keep: 2}}]\n",
                &["1.8.1"],
                " [quay.io/y:1, {ref: quay.io/a/b:1.8.1, update: {policy: minor, keep: 2}}]\n",
            ),
        ] {
            assert_eq!(edited(written, new).as_deref(), Ok(expected), "{written}");
        }
    }

    #[test]
    fn entries_are_refused_if_their_notation_cannot_be_copied() {
        for written in [
            "\n- &one {ref: quay.io/a/b:1.9.0, update: {policy: minor, keep: 2}}\n",
            "\n-\n  ref: quay.io/a/b:1.9.0\n  update: {policy: minor, keep: 2}\n",
            "\n- {ref: &r quay.io/x/y:1.0.0, update: minor}\n- {ref: quay.io/a/b:1.9.0, platforms: [&p linux/amd64], update: {policy: minor, keep: 2}}\n- {ref: quay.io/z:1, platforms: [*p]}\n",
        ] {
            let result = edited(written, &["1.9.0", "1.10.0"]);
            // a copy of the anchor `&p` has the same value, so the third text can be edited
            assert_eq!(result.is_err(), !written.contains("*p"), "{written}");
        }
        let quoted = "\n- {ref: \"quay.io/a/b:1.\\u0039.0\", update: {policy: minor, keep: 2}}\n";
        assert!(edited(quoted, &["1.9.0", "1.10.0"]).is_err());
    }
}
