//! `skopeo-sync`: the YAML source of `skopeo sync --src yaml`.

use super::export_format::{ExportInput, ExportedList, quoted};
use std::collections::BTreeMap;
use std::fmt::Write as _;

pub(super) fn write(asked: &ExportInput<'_>) -> ExportedList {
    let mut hosts: BTreeMap<String, BTreeMap<String, Vec<String>>> = BTreeMap::new();
    for image in &asked.lock.images {
        let reference = asked.reference(image);
        // skopeo accepts a digest or a tag, not both
        let what = reference
            .digest
            .map(|digest| digest.to_string())
            .or(reference.tag)
            .unwrap_or_default();
        let host = hosts.entry(reference.registry).or_default();
        host.entry(reference.repository).or_default().push(what);
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
        left: asked.left(false),
    }
}
