//! Finds the versions that `landfall update` may change in the entries of a manifest.

use super::expanded_manifest::Located;
use super::kept_versions::{KeptEntry, KeptVersions};
use super::load::ParsedManifest;
use super::updatable_version::{PackageVersions, UpdatableVersion, VersionSource, moving_policy};
use super::version_location::VersionLocation;
use crate::{
    ChartRequest, GitRequest, ImageRequest, ItemKind, LockedChart, LockedGitRepository,
    LockedImage, LockedPackageSet, LockedProvider, MovableVersion, PackageSetRequest,
    ProviderRequest, UpdatableEntry, UpdatableRequest,
};
use landfall_model::document::{ChartVersions, SourceLocation, SourceSpan, YamlNode};
use landfall_model::report::EntryKind;
use std::collections::BTreeMap;

/// The versions with an update policy in the entries of `manifest`.
pub(super) fn versions_in_entries(manifest: &ParsedManifest) -> Vec<UpdatableVersion> {
    let ParsedManifest {
        document, requests, ..
    } = manifest;
    let images = by_position(&requests.images, image_versions);
    let charts = by_position(&requests.charts, chart_versions);
    let packages = by_position(&requests.packages, package_versions);
    let git = by_position(&requests.git, git_versions);
    let providers = by_position(&requests.providers, listed_provider_versions);
    [
        versions_in_section::<LockedImage>(manifest, &document.images, &images),
        versions_in_section::<LockedChart>(manifest, &document.charts, &charts),
        versions_in_section::<LockedPackageSet>(manifest, &document.packages, &packages),
        versions_in_section::<LockedGitRepository>(manifest, &document.git, &git),
        versions_in_section::<LockedProvider>(manifest, &document.providers, &providers),
    ]
    .concat()
}

pub(super) fn image_versions(request: &ImageRequest) -> Option<VersionSource> {
    request.tagged_reference().cloned().map(VersionSource::tags)
}

fn chart_versions(request: &ChartRequest) -> Option<VersionSource> {
    let Some(repo) = &request.name.repository else {
        return Some(VersionSource::tags(request.name.reference.clone()));
    };
    Some(VersionSource::Chart(ChartVersions {
        repo: repo.clone(),
        chart: request.name.chart.clone(),
    }))
}

pub(super) fn package_versions(request: &PackageSetRequest) -> Option<VersionSource> {
    Some(VersionSource::machine(request.clone()))
}

fn git_versions(request: &GitRequest) -> Option<VersionSource> {
    Some(VersionSource::GitTags(request.url.clone()))
}

fn listed_provider_versions(request: &ProviderRequest) -> Option<VersionSource> {
    Some(VersionSource::Provider(request.name.address.clone()))
}

/// The versions with an update policy in the entries of one section.
fn versions_in_section<K: ItemKind>(
    manifest: &ParsedManifest,
    entries: &[K::Entry],
    sources: &BTreeMap<SourceLocation, VersionSource>,
) -> Vec<UpdatableVersion>
where
    K::Entry: UpdatableEntry,
{
    let section = manifest.text.root.get(K::SECTION);
    let mut found = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        for version in entry.movable_versions() {
            let item = section.item(index).get(version.item_key);
            let source = sources.get(&position(manifest, item)).cloned();
            let location = VersionLocation::Entry(K::SECTION, index, version.path.clone());
            let keep = version.rule.keep;
            let slot = version_in_entry(manifest, location, K::KIND, version, source);
            match (slot, keep) {
                (Some(slot), Some(count)) => add_kept_entry(&mut found, slot, count.get(), index),
                (slot, _) => found.extend(slot),
            }
        }
    }
    found
}

/// Adds the version `slot` of the entry at `index` to the versions of the same item in `found`.
/// `count` is the `keep` of the entry's update rule.
fn add_kept_entry(
    found: &mut Vec<UpdatableVersion>,
    slot: UpdatableVersion,
    count: usize,
    index: usize,
) {
    let entry = KeptEntry {
        index,
        text: slot.text.clone(),
        version: slot.version.clone(),
    };
    let first = found
        .iter_mut()
        .find(|one| one.kept.is_some() && one.name == slot.name);
    let Some(first) = first else {
        let kept = KeptVersions {
            count,
            values: vec![slot.current.clone()],
            entries: vec![entry],
        };
        found.push(UpdatableVersion {
            kept: Some(kept),
            ..slot
        });
        return;
    };
    let Some(kept) = &mut first.kept else { return };
    if (&first.written, &first.min_age, kept.count) != (&slot.written, &slot.min_age, count) {
        first.versions = Err(format!(
            "the entries of `{}` with `keep` need the same `update`",
            slot.name
        ));
    }
    kept.values.push(slot.current);
    kept.entries.push(entry);
    first.current = kept.values.join(", ");
}

/// The position of `node`.
pub(super) fn position(manifest: &ParsedManifest, node: &YamlNode<'_>) -> SourceLocation {
    SourceSpan::new(&manifest.text, node.span()).location()
}

/// Maps the position of each request to the source of its versions.
pub(super) fn by_position<R>(
    requests: &[Located<R>],
    source: fn(&R) -> Option<VersionSource>,
) -> BTreeMap<SourceLocation, VersionSource> {
    let mut sources = BTreeMap::new();
    for request in requests {
        if let Some(source) = source(&request.value) {
            // an entry with list variables expands to several requests; the first one counts
            sources.entry(request.span.location()).or_insert(source);
        }
    }
    sources
}

/// The version `movable` of the entry at `key`. `None` if its policy never changes the version.
fn version_in_entry(
    read: &ParsedManifest,
    key: VersionLocation,
    kind: EntryKind,
    movable: MovableVersion<'_>,
    source: Option<VersionSource>,
) -> Option<UpdatableVersion> {
    let name = movable.name;
    let default = read.document.min_age.as_ref();
    let versions = match source {
        Some(VersionSource::Packages(machine)) => {
            Ok(VersionSource::Packages(Box::new(PackageVersions {
                package: name.clone(),
                ..*machine
            })))
        }
        Some(source) => Ok(source),
        None => Err(format!("`{name}` has no source of versions")),
    };
    Some(UpdatableVersion {
        versions,
        file: read.path.clone(),
        at: key.position(read),
        policy: moving_policy(&movable.rule.policy)?,
        written: movable.rule.policy.clone(),
        min_age: movable.rule.min_age.as_ref().or(default).cloned(),
        current: movable.text[movable.version.clone()].into(),
        others: Vec::new(),
        kept: None,
        text: movable.text.into(),
        key,
        kind,
        version: movable.version,
        name,
    })
}
