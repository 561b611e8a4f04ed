//! Lines about items and changes, and the closing line of a verb that moves them.

use crate::lock::Change;
use crate::report::{Item, Status, Totals};

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

/// One line for an item that is not whole.
pub(crate) fn item_line(item: &Item) -> String {
    let word = match item.status {
        Status::Missing => "missing",
        Status::Failed => "failed",
        Status::Skipped => "accepted",
        Status::Done | Status::Present => "good",
    };
    let reason = item.reason.as_deref().map(crate::report::escape).unwrap_or_default();
    format!("{word:8} {} {}: {reason}", item.kind, item.name)
}
