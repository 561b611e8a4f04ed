//! `skopeo-sync`: the YAML source of `skopeo sync --src yaml`.

use super::table::{ExportInput, ExportedList, quoted};
use std::collections::BTreeMap;
use std::fmt::Write as _;

pub(super) fn write(input: &ExportInput<'_>) -> ExportedList {
    let mut hosts: BTreeMap<String, BTreeMap<String, Vec<String>>> = BTreeMap::new();
    for image in &input.lock.images {
        let reference = input.reference(image);
        // skopeo accepts a digest or a tag, not both
        let tag_or_digest = reference
            .digest
            .map(|digest| digest.to_string())
            .or(reference.tag)
            .unwrap_or_default();
        let host = hosts.entry(reference.registry).or_default();
        host.entry(reference.repository)
            .or_default()
            .push(tag_or_digest);
    }
    let mut text = String::new();
    for (host, repositories) in hosts {
        let _ = writeln!(text, "{}:\n  images:", quoted(&host));
        for (repository, tags) in repositories {
            let tags: Vec<String> = tags.iter().map(|tag| quoted(tag)).collect();
            let _ = writeln!(text, "    {}: [{}]", quoted(&repository), tags.join(", "));
        }
    }
    ExportedList {
        text,
        left: input.left_with_platforms(),
    }
}
