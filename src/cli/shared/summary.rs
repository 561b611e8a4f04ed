//! Lines about items and changes, and the closing line of a verb that moves them.

use super::listing::count_kinds;
use crate::lock::Change;
use crate::report::{Item, Status, Totals};
use std::collections::HashMap;

/// One line for a change.
pub(crate) fn change_line(change: &Change) -> String {
    let short =
        |digest: &Option<crate::model::Digest>| digest.as_ref().map_or(String::new(), |d| d.short(12));
    let (new, gone) = (change.new_referrers.len(), change.gone_referrers.len());
    match change.change {
        "changed" if new + gone > 0 => {
            format!("changed  {} (referrers: {new} new, {gone} gone)", change.name)
        }
        "moved" => format!("moved    {} {} -> {}", change.name, short(&change.from), short(&change.to)),
        other => format!("{other:8} {}", change.name),
    }
}

/// `, 2 failed or missing` for a summary; nothing where nothing is.
pub(crate) fn failed_count(totals: &Totals) -> String {
    match totals.failed + totals.missing {
        0 => String::new(),
        count => format!(", {count} failed or missing"),
    }
}

/// Lines for items that are not whole. Those with the same reason stand below it.
pub(crate) fn item_lines<'a>(items: impl IntoIterator<Item = &'a Item>) -> String {
    let mut groups: Vec<Vec<&Item>> = Vec::new();
    let mut by_reason: HashMap<(Status, &str), usize> = HashMap::new();
    for item in items {
        let group = item.reason.as_deref().map(|reason| {
            *by_reason.entry((item.status, reason)).or_insert_with(|| {
                groups.push(Vec::new());
                groups.len() - 1
            })
        });
        match group {
            Some(group) => groups[group].push(item),
            None => groups.push(vec![item]),
        }
    }
    let mut lines = String::new();
    for group in groups {
        match group[..] {
            [item] => lines += &format!("{}\n", item_line(item)),
            _ => {
                let counted = count_kinds(group.iter().copied());
                let reason = group[0].reason.as_deref().map(crate::report::escape).unwrap_or_default();
                lines += &format!("{:8} {counted}: {reason}\n", word(group[0].status));
                group.iter().for_each(|item| lines += &format!("           {}\n", item.name));
            }
        }
    }
    lines
}

fn word(status: Status) -> &'static str {
    match status {
        Status::Missing => "missing",
        Status::Failed => "failed",
        Status::Skipped => "accepted",
        Status::Done | Status::Present => "good",
    }
}

/// One line for an item that is not whole.
pub(crate) fn item_line(item: &Item) -> String {
    let word = word(item.status);
    let reason = item.reason.as_deref().map(crate::report::escape).unwrap_or_default();
    format!("{word:8} {} {}: {reason}", item.kind, item.name)
}
