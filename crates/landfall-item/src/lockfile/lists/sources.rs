//! `sources`: a table for reviewers, with one item on each line and tabs between kind, name,
//! digest, bytes, origin and licence (if known). The line of an accepted loss has `missing until`
//! and a date in place of the digest, and the reason in place of the origin.

use super::table::{ExportInput, ExportedList};
use landfall_model::sum_sizes;
use std::fmt::Write as _;

pub(super) fn write(input: &ExportInput<'_>) -> ExportedList {
    let mut text = "kind\tname\tdigest\tbytes\torigin\tlicence\n".to_owned();
    for item in input.lock.items() {
        let entry = item.entry();
        let name = item.name().into_owned();
        let bytes = sum_sizes(entry.parts.iter().map(|part| part.descriptor.size));
        let without_scheme = name
            .split_once("://")
            .map_or(name.as_str(), |(_, rest)| rest);
        let host = without_scheme.split('/').next().unwrap_or_default();
        let origin = if item.is_local() { "local" } else { host };
        let licence = input.licences.get(&name).map_or("", String::as_str);
        let _ = writeln!(
            text,
            "{}\t{}\t{}\t{bytes}\t{}\t{}",
            item.kind(),
            cell(&name),
            item.digest(),
            cell(origin),
            cell(licence)
        );
    }
    for lost in &input.lock.missing {
        let _ = writeln!(
            text,
            "{}\t{}\tmissing until {}\t0\t{}\t",
            lost.kind,
            cell(&lost.name),
            cell(&lost.until),
            cell(&lost.reason)
        );
    }
    let left = input
        .lock
        .unresolved
        .iter()
        .map(|one| format!("{} {}: it is not locked", one.kind, one.name));
    ExportedList {
        text,
        left: left.collect(),
    }
}

/// Returns `text` for one cell. Names, reasons and licences are untrusted: a tab or line break in
/// them would begin another cell or row.
fn cell(text: &str) -> String {
    text.replace(
        |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}'),
        " ",
    )
}
