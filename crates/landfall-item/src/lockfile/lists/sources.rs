//! `sources`: a table for reviewers, with one item on each line and tabs between kind, name,
//! digest, bytes, origin and licence (if known).

use super::export_format::{ExportInput, ExportedList};
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
        let origin = without_scheme.split('/').next().unwrap_or_default();
        // a licence is untrusted text: a tab or line break in it must not create another cell
        let licence = input
            .licences
            .get(&name)
            .map(|text| text.replace(['\t', '\n', '\r'], " "));
        let licence = licence.unwrap_or_default();
        let _ = writeln!(
            text,
            "{}\t{name}\t{}\t{bytes}\t{origin}\t{licence}",
            item.kind(),
            item.digest()
        );
    }
    for lost in &input.lock.missing {
        let _ = writeln!(
            text,
            "{}\t{}\tmissing until {}\t0\t{}\t",
            lost.kind, lost.name, lost.until, lost.reason
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
