//! URLs of plain files: those that the lock has, and those that look like them.

use super::finding::{Coverage, Finding};
use super::inventory::Inventory;
use landfall_model::document::LineIndex;
use std::borrow::Cow;

/// What ends a URL in a text.
const ENDS: [char; 14] = [
    '"', '\'', '`', '<', '>', '|', '\\', ')', ']', '}', ',', ';', '{', '$',
];

/// Every URL of `text` that has to do with a locked file. A URL of the same file in another version
/// is missing; one whose end is put together elsewhere is undecided. Others are links, and none of
/// ours.
pub(super) fn findings(
    text: &str,
    lines: &LineIndex<'_>,
    inventory: &Inventory<'_>,
) -> Vec<Finding> {
    let known = inventory.urls();
    if known.is_empty() {
        return Vec::new();
    }
    let starts = text.match_indices("://").filter_map(|(at, _)| {
        ["https", "http"]
            .iter()
            .find(|scheme| text[..at].ends_with(*scheme))
            .map(|scheme| at - scheme.len())
    });
    let finding = |start: usize| {
        let end = text[start..].find(|c: char| c.is_whitespace() || ENDS.contains(&c));
        let end = end.map_or(text.len(), |end| start + end);
        let is_head = text[end..].starts_with("${")
            || text[end..].starts_with("$(")
            || text[end..].starts_with("{{")
            || text[end..]
                .strip_prefix('$')
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic()));
        let written = if is_head {
            &text[start..end]
        } else {
            text[start..end].trim_end_matches(['.', ':'])
        };
        let coverage = if is_head {
            head(written, known)
        } else {
            whole(written, known, inventory)
        }?;
        let (line, column) = lines.line_column(start);
        Some(Finding {
            line,
            column,
            path: Vec::new(),
            manager: None,
            reference: written.into(),
            coverage,
        })
    };
    starts.filter_map(finding).collect()
}

/// A URL that stands there as a whole.
fn whole(url: &str, known: &[(Cow<'_, str>, &str)], inventory: &Inventory<'_>) -> Option<Coverage> {
    let upstream = inventory.file_at_site(url);
    let url = upstream.as_deref().unwrap_or(url);
    let without_scheme = |url: &str| {
        url.split_once("://")
            .map_or(url, |(_, rest)| rest)
            .to_owned()
    };
    let same = |known: &str| match upstream.is_some() {
        true => without_scheme(known) == without_scheme(url),
        false => known == url,
    };
    if let Some((_, item)) = known.iter().find(|(known, _)| same(known)) {
        return Some(Coverage::Held {
            item: (*item).to_owned(),
        });
    }
    let shape = shape(&without_scheme(url));
    let near = known
        .iter()
        .find(|(known, _)| self::shape(&without_scheme(known)) == shape);
    let why = match (near, upstream.is_some()) {
        (Some((near, _)), _) => format!("the lock has {near}"),
        (None, true) => "no locked file goes to this URL".into(),
        (None, false) => return None,
    };
    Some(Coverage::Missing {
        name: None,
        url: Some(url.to_owned()),
        why,
    })
}

/// A URL of which only the beginning stands there.
fn head(head: &str, known: &[(Cow<'_, str>, &str)]) -> Option<Coverage> {
    // a host alone says nothing
    let path = head.split_once("://")?.1.split_once('/')?.1;
    let reached = known
        .iter()
        .filter(|(known, _)| known.starts_with(head))
        .count();
    (reached > 0 && !path.is_empty()).then(|| Coverage::Undecided {
        why: format!(
            "the rest of this URL is put together elsewhere; {reached} locked URLs begin so"
        ),
    })
}

/// A URL with its numbers taken out: two versions of one file have one shape.
fn shape(url: &str) -> String {
    let mut shape = String::new();
    for c in url.chars() {
        match c.is_ascii_digit() {
            true if shape.ends_with('0') => {}
            true => shape.push('0'),
            false => shape.push(c),
        }
    }
    shape
}
