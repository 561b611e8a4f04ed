//! The hosts that manifests name, before there is a lock.

use landfall_item::lockfile::{Lock, UnresolvedItem};
use landfall_item::manifest::MergedManifest;
use landfall_model::report::EntryKind;
use std::collections::BTreeSet;

/// Returns a lock in which every item of the manifests is unresolved.
pub(crate) fn unresolved_lock(manifest: &MergedManifest) -> Lock {
    let item = |kind, name: String| UnresolvedItem {
        kind,
        name,
        cause: "not requested yet".into(),
    };
    let mut lock = Lock {
        endpoints: manifest.endpoints.clone(),
        ..Lock::default()
    };
    let mut urls = BTreeSet::new();
    for summary in manifest.requests.summaries() {
        urls.extend(summary.further_urls.iter().map(|url| (*url).to_owned()));
        lock.unresolved.push(item(summary.kind, summary.name));
    }
    let urls = urls.into_iter().map(|url| item(EntryKind::File, url));
    lock.unresolved.extend(urls);
    lock
}
