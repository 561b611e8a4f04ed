//! Edits the list of versions of a variable in the text of a manifest, without touching any other
//! byte.

use super::entry_edits::set_entry_versions;
use super::updatable_versions::{UpdatableVersion, VersionLocation};
use crate::EntryPathStep;
use crate::text::quoted;
use landfall_model::Digest;
use landfall_model::document::{SourceLocation, SourceSpan, SourceText, YamlNode, yaml};
use serde_yaml::Value;
use std::ops::Range;

/// Replaces the versions of `slot`, a variable or item with `keep` or `select`, by `new` in the
/// manifest `text`. The values of a list keep their positions: the first value becomes the first of
/// `new`, and values are added or removed only at the end. For an item with `keep`, whole entries
/// are added and removed.
///
/// # Errors
/// Why the list cannot be edited in place.
pub fn set_versions(text: &str, slot: &UpdatableVersion, new: &[String]) -> Result<String, String> {
    let kept = slot.kept.as_ref().ok_or(NOT_PLAIN)?;
    if kept.is_of_entries() {
        return set_entry_versions(text, slot, &kept.entries, new);
    }
    let (mark, body) = split_byte_order_mark(text);
    let edited = if kept.values.is_empty() {
        first_versions(body, slot, new)?
    } else {
        edited_list(body, slot, &kept.values, new)?
    };
    // the edited manifest is parsed, since a new version may need quotes that the old one did not
    let document: Option<Value> = yaml::from_str(&edited).ok();
    let list = document
        .as_ref()
        .and_then(|document| slot.key.value(document));
    let expected: Vec<Value> = new.iter().map(|text| Value::from(text.as_str())).collect();
    match list {
        Some(Value::Sequence(read)) if *read == expected => Ok([mark, &edited].concat()),
        _ => Err(format!(
            "`{}` cannot be written there: YAML would read it as another value",
            new.join(", ")
        )),
    }
}

/// The manifest `body` with the versions `new` in an entry with `select` that has none: in its
/// empty list, or in a new one before `select`.
fn first_versions(body: &str, slot: &UpdatableVersion, new: &[String]) -> Result<String, String> {
    let VersionLocation::Entry(section, index, path) = &slot.key else {
        return Err(NOT_PLAIN.into());
    };
    let [EntryPathStep::Key(key)] = path[..] else {
        return Err(NOT_PLAIN.into());
    };
    let root = YamlNode::parse(body).ok_or(NOT_YAML)?;
    let entry = root.get(section).item(*index);
    let items: Vec<String> = new.iter().map(|version| quoted(version)).collect();
    let list = format!("[{}]", items.join(", "));
    let mut edited = body.to_owned();
    if entry.key_span(key).is_some() {
        let empty = entry.get(key).span();
        if !body[empty.clone()].starts_with('[') {
            return Err(NOT_PLAIN.into());
        }
        edited.replace_range(empty, &list);
        return Ok(edited);
    }
    let select = entry.key_span("select").ok_or(NOT_PLAIN)?.start;
    let line = &body[line_of(body, select)];
    let before = &body[..select];
    let separator = if body[entry.span()].starts_with('{') {
        ", ".to_owned()
    } else {
        let column = before.len() - before.rfind('\n').map_or(0, |end| end + 1);
        format!("{}{}", line_ending(line), " ".repeat(column))
    };
    edited.insert_str(select, &format!("{key}: {list}{separator}"));
    Ok(edited)
}

/// The manifest `body` in which the list of `slot` has the versions `new` in place of `old`.
fn edited_list(
    body: &str,
    slot: &UpdatableVersion,
    old: &[String],
    new: &[String],
) -> Result<String, String> {
    let root = YamlNode::parse(body).ok_or(NOT_YAML)?;
    let list = slot.key.node(&root);
    let list_text = body.get(list.span()).unwrap_or_default();
    let is_alias = list_text.starts_with('*');
    if is_alias || list.count() != old.len() || old.is_empty() || new.is_empty() {
        return Err(NOT_PLAIN.into());
    }
    let items: Vec<Range<usize>> = (0..old.len())
        .map(|index| list.item(index).span())
        .collect();
    let is_flow = list_text.starts_with('[');
    let mut edited = body.to_owned();
    // from the end, so that the offsets of earlier items stay valid
    if new.len() > old.len() {
        let last = &items[old.len() - 1];
        let added = &new[old.len()..];
        let (at, inserted) = if is_flow {
            flow_items(body, last, &old[old.len() - 1], added)?
        } else {
            block_items(body, last, &old[old.len() - 1], added)?
        };
        edited.insert_str(at, &inserted);
    }
    for removed in (new.len()..old.len()).rev() {
        if is_flow {
            let range = items[removed - 1].end..items[removed].end;
            let separator = &body[range.start..items[removed].start];
            edited.replace_range(range, &comments_in(separator));
        } else {
            edited.replace_range(line_of(body, items[removed].start), "");
        }
    }
    for ((span, old), new) in items.iter().zip(old).zip(new).rev() {
        let start = body[span.clone()].rfind(old).ok_or(NOT_PLAIN)? + span.start;
        edited.replace_range(start..start + old.len(), new);
    }
    Ok(edited)
}

/// The text `separator` between two items of a list in brackets without its comma; empty if it has
/// no comment.
fn comments_in(separator: &str) -> String {
    if !separator.contains('#') {
        return String::new();
    }
    let mut is_comment = false;
    let comma = separator.find(|letter: char| {
        is_comment = letter != '\n' && (is_comment || letter == '#');
        letter == ',' && !is_comment
    });
    let mut comments = separator.to_owned();
    if let Some(comma) = comma {
        comments.remove(comma);
    }
    comments
}

/// The text that adds `added` to a list in brackets, and the position after the list's last item.
/// The new items are quoted like the last one.
fn flow_items(
    body: &str,
    last: &Range<usize>,
    last_text: &str,
    added: &[String],
) -> Result<(usize, String), String> {
    let mut items = String::new();
    for text in added {
        items += &format!(", {}", written_like(&body[last.clone()], last_text, text)?);
    }
    Ok((last.end, items))
}

/// The text that adds `added` to a list with a line for each item, and the position after the line
/// of the list's last item. The new lines are indented and quoted like the last one, without its
/// comment.
fn block_items(
    body: &str,
    last: &Range<usize>,
    last_text: &str,
    added: &[String],
) -> Result<(usize, String), String> {
    let line = line_of(body, last.start);
    let template = &body[line.start..last.end];
    let items = added
        .iter()
        .map(|text| written_like(template, last_text, text));
    let items = items.collect::<Result<Vec<String>, String>>()?;
    Ok((line.end, lines_after(body, &line, items)))
}

/// The text that adds a line for each of `items` after `lines`, full lines of `body`.
pub(super) fn lines_after(
    body: &str,
    lines: &Range<usize>,
    items: impl IntoIterator<Item = String>,
) -> String {
    let ending = line_ending(&body[lines.clone()]);
    // the last line of a file may have no line ending, and the new last line gets none either
    let has_end = body[..lines.end].ends_with('\n');
    let line = |item: String| {
        if has_end {
            item + ending
        } else {
            format!("{ending}{item}")
        }
    };
    items.into_iter().map(line).collect()
}

/// The line ending of `lines`.
pub(super) fn line_ending(lines: &str) -> &'static str {
    if lines.contains("\r\n") { "\r\n" } else { "\n" }
}

/// `template` with its last occurrence of `old` replaced by `new`.
fn written_like(template: &str, old: &str, new: &str) -> Result<String, String> {
    let at = template.rfind(old).ok_or(NOT_PLAIN)?;
    Ok([&template[..at], new, &template[at + old.len()..]].concat())
}

// Edits versions and digests in the text of a manifest without touching any other byte.

pub(super) const NOT_PLAIN: &str =
    "it is written with escapes or repeated by an alias, so it cannot be edited in place";
pub(super) const NOT_YAML: &str = "the manifest is no longer valid YAML";

/// Replaces the version of `slot` in the manifest `text` by `new`.
///
/// # Errors
/// Why the version cannot be edited in place.
pub fn set_version(text: &str, slot: &UpdatableVersion, new: &str) -> Result<String, String> {
    let (mark, body) = split_byte_order_mark(text);
    let root = YamlNode::parse(body).ok_or(NOT_YAML)?;
    let span = slot.key.bytes(body, &root);
    // the last occurrence, since an anchor with the same name may precede the scalar
    let at = body[span.clone()].rfind(&slot.text).ok_or(NOT_PLAIN)? + span.start;
    let start = at + slot.version.start;
    let end = at + slot.version.end;
    let edited = [&body[..start], new, &body[end..]].concat();
    let expected = [
        &slot.text[..slot.version.start],
        new,
        &slot.text[slot.version.end..],
    ]
    .concat();
    // a new version may need quotes that the old one did not, so the edited manifest is parsed
    let document: Option<Value> = yaml::from_str(&edited).ok();
    match document.and_then(|document| slot.key.read(&document)) {
        Some(read) if read == expected => Ok([mark, &edited].concat()),
        _ => Err(format!(
            "`{new}` cannot be written there: YAML would read it as another value"
        )),
    }
}

/// Replaces the digest `old` by `new` in the entry at `at` of the manifest `text`.
///
/// # Errors
/// Why the digest cannot be replaced.
pub fn set_digest(
    text: &str,
    at: &SourceLocation,
    old: &Digest,
    new: &Digest,
) -> Result<String, String> {
    let (mark, body) = split_byte_order_mark(text);
    let root = YamlNode::parse(body).ok_or(NOT_YAML)?;
    let source = SourceText::yaml(at.file.clone(), body.to_owned());
    let entry = ["images", "charts"]
        .into_iter()
        .filter(|section| root.key_span(section).is_some())
        .flat_map(|section| {
            let section = root.get(section);
            (0..section.count()).map(|index| section.item(index))
        })
        .find(|entry| {
            // a request has the position of this key
            let key = match entry.key_span("repo") {
                Some(_) => "repo",
                None => "ref",
            };
            SourceSpan::new(&source, entry.get(key).span()).location() == *at
        })
        .ok_or("its entry is not in `images` or `charts`")?;
    // a reference may contain the digest, and `digest` may repeat it
    let nodes = [entry.get("ref").span()]
        .into_iter()
        .chain(entry.key_span("digest").map(|_| entry.get("digest").span()));
    let old = old.to_string();
    let mut starts: Vec<usize> = nodes
        .filter_map(|span| body[span.clone()].rfind(&old).map(|at| at + span.start))
        .collect();
    if starts.is_empty() {
        return Err(
            "its digest is in a variable or an alias, so it cannot be edited in place".into(),
        );
    }
    starts.sort_unstable();
    let mut edited = body.to_owned();
    // from the end, so that the offsets of earlier digests stay valid
    for start in starts.into_iter().rev() {
        edited.replace_range(start..start + old.len(), &new.to_string());
    }
    Ok([mark, &edited].concat())
}

/// Splits a text after its byte order mark, since offsets in the parsed text begin after it.
pub(super) fn split_byte_order_mark(text: &str) -> (&str, &str) {
    let body = text.trim_start_matches('\u{feff}');
    text.split_at(text.len() - body.len())
}

/// The line that contains the byte at `at`, with its line ending.
pub(super) fn line_of(body: &str, at: usize) -> Range<usize> {
    let start = body[..at].rfind('\n').map_or(0, |end| end + 1);
    let end = body[at..].find('\n').map_or(body.len(), |end| at + end + 1);
    start..end
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::{FileOverrides, updatable_versions};
    use proptest::prelude::*;
    use std::path::PathBuf;

    /// Edits the list `written` in a manifest; returns the edited list.
    fn edited(written: &str, new: &[&str]) -> Result<String, String> {
        let head = "apiVersion: landfall/v1\nkind: Manifest\nvars:\n  v:\n    update: {policy: minor, \
                keep: 3}\n    value:";
        let tail = "  # end\nimages: ['quay.io/a/b:${v}']\n";
        let text = format!("{head}{written}{tail}");
        let path = PathBuf::from("m.yaml");
        let files = FileOverrides::from([(path.clone(), text.clone())]);
        let slots = updatable_versions(&[path], &files).map_err(|error| error.to_string())?;
        let new: Vec<String> = new.iter().map(|text| (*text).to_owned()).collect();
        let edited = set_versions(&text, &slots[0], &new)?;
        let inner = edited.strip_prefix(head).unwrap().strip_suffix(tail);
        Ok(inner.unwrap().to_owned())
    }

    #[test]
    fn a_list_keeps_its_notation() {
        for (written, new, expected) in [
            (
                " [1.0.0, '1.1.0'] # two",
                &["1.1.1", "1.2.0"][..],
                " [1.1.1, '1.2.0'] # two",
            ),
            (
                " [1.0.0, '1.1.0']",
                &["1.1.1", "1.2.0", "1.3.0"],
                " [1.1.1, '1.2.0', '1.3.0']",
            ),
            (" [1.0.0, \"1.1.0\", 1.2.0]", &["1.2.1"], " [1.2.1]"),
            (
                " [\n      1.0.0, # first\n      1.1.0, # second, of two\n      1.2.0]",
                &["1.2.1"],
                " [\n      1.2.1 # first\n       # second, of two\n      ]",
            ),
            (
                " [1.0.0 # first, of two\n      , 1.1.0]",
                &["1.2.1"],
                " [1.2.1 # first, of two\n       ]",
            ),
            (
                "\n    - 1.0.0 # first\n    -   '1.1.0'\n    # comment\n",
                &["1.1.0", "1.2.0", "1.3.0"],
                "\n    - 1.1.0 # first\n    -   '1.2.0'\n    -   '1.3.0'\n    # comment\n",
            ),
            (
                "\r\n    - 1.0.0\r\n    - 1.1.0 # last\r\n    - 1.2.0\r\n",
                &["1.2.1", "1.3.0"],
                "\r\n    - 1.2.1\r\n    - 1.3.0 # last\r\n",
            ),
        ] {
            assert_eq!(edited(written, new).as_deref(), Ok(expected), "{written}");
        }
        // `1.4` would be a number
        assert!(edited(" [v1.0.0]", &["1.4"]).is_err());
        assert!(edited(" [\"1.\\u0030.0\"]", &["1.4.0"]).is_err());
    }

    proptest! {
        /// Only the versions change, in both notations of a list and with any quotes.
        #[test]
        fn other_bytes_stay(
            is_block in any::<bool>(),
            old in proptest::collection::btree_set(0..9_u8, 1..5),
            new in proptest::collection::btree_set(10..19_u8, 1..5),
            quotes in prop_oneof![Just(""), Just("'"), Just("\"")],
        ) {
            let write = |numbers: &std::collections::BTreeSet<u8>| {
                let items = numbers.iter().map(|one| format!("{quotes}v1.{one}.0{quotes}"));
                let items: Vec<String> = items.collect();
                if is_block {
                    format!("\n    - {}\n", items.join("\n    - "))
                } else {
                    format!(" [{}]", items.join(", "))
                }
            };
            let texts: Vec<String> = new.iter().map(|one| format!("v1.{one}.0")).collect();
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            prop_assert_eq!(edited(&write(&old), &texts), Ok(write(&new)));
        }
    }
}
