//! Finds everything in manifests that `landfall update` may change.

use super::entry_steps::{KeptEntry, KeptVersions};
use super::load::{FileOverrides, LoadManifestError, ParsedManifest, each};
use super::merge::{ListSource, Located, TrustRootSource};
use crate::{
    ChartRequest, EntryPathStep, GitRequest, ImageRequest, ItemKind, ItemRequest, LockedChart,
    LockedGitRepository, LockedImage, LockedPackageSet, LockedProvider, ManifestEntry,
    MovableVersion, PackageSetRequest, PackageVersions, ProviderRequest, VersionSource, tag_of,
};
use landfall_model::document::{
    MovingVar, SourceLocation, SourceSpan, VersionsFrom, YamlNode, anchored_scalar,
};
use landfall_model::report::EntryKind;
use landfall_model::{MinimumAge, UpdatePolicy, VersionSelection, extend_distinct};
use serde_yaml::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::PathBuf;

/// The lists with a `from` in the manifests at `paths`.
///
/// # Errors
/// If a file or folder cannot be read, or a manifest contains an error.
pub fn list_sources(
    paths: &[PathBuf],
    edited: &FileOverrides,
) -> Result<Vec<ListSource>, LoadManifestError> {
    Ok(each(paths, edited)?
        .into_iter()
        .flat_map(|read| read.requests.list_sources)
        .collect())
}

/// The trust roots with a `from` in the manifests at `paths`, each once.
///
/// # Errors
/// If a file or folder cannot be read, or a manifest contains an error.
pub fn trust_root_sources(
    paths: &[PathBuf],
    edited: &FileOverrides,
) -> Result<Vec<TrustRootSource>, LoadManifestError> {
    let mut sources: Vec<TrustRootSource> = Vec::new();
    for read in each(paths, edited)? {
        extend_distinct(&mut sources, read.requests.trust_root_sources);
    }
    Ok(sources)
}

/// The versions with an update policy in the manifests at `paths`, in the order of the files;
/// variables before entries. Values that share a YAML anchor are one version, and the first policy
/// for it is used.
///
/// # Errors
/// If a file or folder cannot be read, or a manifest contains an error.
pub fn updatable_versions(
    paths: &[PathBuf],
    edited: &FileOverrides,
) -> Result<Vec<UpdatableVersion>, LoadManifestError> {
    let mut all = Vec::new();
    for read in each(paths, edited)? {
        let mut known = BTreeSet::new();
        let versions = versions_in_variables(&read)
            .into_iter()
            .chain(versions_in_entries(&read))
            .chain(selected_versions(&read));
        // the position of an alias is that of its anchor, so each scalar is edited once
        all.extend(versions.filter(|slot| known.insert((slot.at.line, slot.at.column))));
    }
    Ok(all)
}

/// A version with an update policy in a manifest.
#[derive(Debug, Clone)]
pub struct UpdatableVersion {
    /// The name in messages: the variable, or the item without its version.
    pub name: String,
    /// The kind of item that has the version, or `Variable`, for messages.
    pub kind: EntryKind,
    /// The manifest that contains the version.
    pub file: PathBuf,
    /// The position of the version in the manifest. With `keep`, the position of the variable's
    /// list, or of the item's first version.
    pub at: SourceLocation,
    /// The update policy: what the version may move to.
    pub policy: UpdatePolicy,
    /// The update policy as it is written.
    pub written: String,
    /// How long this project must have known a version before it is used.
    pub min_age: Option<MinimumAge>,
    /// The version that the manifest contains. With `keep`, all versions, separated by commas.
    pub current: String,
    /// The other values of the same variable; empty with `keep`.
    pub others: Vec<String>,
    /// The versions of a variable or item with `keep`; `None` without `keep`.
    pub kept: Option<KeptVersions>,
    /// The rule of an entry with `select`. Its versions are in `kept`.
    pub selection: Option<VersionSelection>,
    /// Where the newer versions are listed, or why landfall cannot find them.
    pub versions: Result<VersionSource, String>,
    pub(super) key: VersionLocation,
    /// The parsed YAML scalar that contains the version; empty for a variable with `keep`.
    pub(super) text: String,
    /// The bytes of `text` that are the version.
    pub(super) version: Range<usize>,
}

impl UpdatableVersion {
    /// Whether both versions are in the same entry of a manifest. The packages of a machine may
    /// have to be updated together.
    pub fn is_beside(&self, other: &UpdatableVersion) -> bool {
        match (&self.key, &other.key) {
            (
                VersionLocation::Entry(section, index, _),
                VersionLocation::Entry(others, other_index, _),
            ) => (section, index, &self.file) == (others, other_index, &other.file),
            _ => false,
        }
    }
}

/// Parses a policy. `None` if it is invalid or never changes the version.
pub(super) fn moving_policy(text: &str) -> Option<UpdatePolicy> {
    text.parse()
        .ok()
        .filter(UpdatePolicy::allows_other_versions)
}

/// The location of a version in a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum VersionLocation {
    /// A variable's value, or the nth of its values.
    Var(String, Option<usize>),
    /// A scalar in the nth entry of a section, by the path from the entry.
    Entry(&'static str, usize, Vec<EntryPathStep>),
}

impl VersionLocation {
    /// The node at this location of a manifest.
    pub(super) fn node<'a>(&self, root: &'a YamlNode<'a>) -> &'a YamlNode<'a> {
        match self {
            VersionLocation::Var(name, index) => {
                let value = root.get("vars").get(name).get("value");
                index.map_or(value, |index| value.item(index))
            }
            VersionLocation::Entry(section, index, path) => {
                let entry = root.get(section).item(*index);
                path.iter().fold(entry, |node, step| match step {
                    EntryPathStep::Key(key) => node.get(key),
                    EntryPathStep::Index(at) => node.item(*at),
                })
            }
        }
    }

    /// The bytes of the scalar. For an alias, the bytes of the anchored scalar, because that text
    /// must be edited.
    pub(super) fn bytes(&self, body: &str, root: &YamlNode<'_>) -> Range<usize> {
        let span = self.node(root).span();
        match body.get(span.clone()) {
            Some(text) if text.starts_with('*') => anchored_scalar(body, &span).unwrap_or(span),
            _ => span,
        }
    }

    /// The line and column at which the [`bytes`](Self::bytes) begin.
    pub(super) fn position(&self, read: &ParsedManifest) -> SourceLocation {
        SourceSpan::new(&read.text, self.bytes(&read.text.text, &read.text.root)).location()
    }

    /// The scalar at this location of a parsed document.
    pub(super) fn read(&self, document: &Value) -> Option<String> {
        self.value(document)?.as_str().map(str::to_owned)
    }

    /// The value at this location of a parsed document.
    pub(super) fn value<'d>(&self, document: &'d Value) -> Option<&'d Value> {
        match self {
            VersionLocation::Var(name, index) => {
                let value = document.get("vars")?.get(name.as_str())?.get("value")?;
                index.map_or(Some(value), |index| value.get(index))
            }
            VersionLocation::Entry(section, index, path) => {
                let entry = document.get(*section)?.get(*index)?;
                path.iter().try_fold(entry, |value, step| match step {
                    EntryPathStep::Key(key) => value.get(*key),
                    EntryPathStep::Index(at) => value.get(*at),
                })
            }
        }
    }
}

// Finds the versions that `landfall update` may change in the entries of a manifest.

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
    Some(VersionSource::of_chart(&request.name))
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
) -> Vec<UpdatableVersion> {
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
        selection: None,
        text: movable.text.into(),
        key,
        kind,
        version: movable.version,
        name,
    })
}

/// The versions in the entries with `select`.
fn selected_versions(manifest: &ParsedManifest) -> impl Iterator<Item = UpdatableVersion> {
    manifest.requests.selectors.iter().filter_map(|entry| {
        let selector = &entry.selector;
        let path = vec![EntryPathStep::Key(selector.key)];
        Some(UpdatableVersion {
            name: selector.name.clone(),
            kind: entry.kind,
            file: manifest.path.clone(),
            at: selector.at.location(),
            policy: moving_policy(&selector.rule.policy)?,
            written: selector.rule.policy.clone(),
            min_age: selector.rule.min_age.clone(),
            current: selector.versions.join(", "),
            others: Vec::new(),
            kept: Some(KeptVersions {
                count: selector.count,
                values: selector.versions.clone(),
                entries: Vec::new(),
            }),
            selection: Some(selector.selection.clone()),
            versions: Ok(selector.source.clone()),
            key: VersionLocation::Entry(entry.section, entry.index, path),
            text: String::new(),
            version: 0..0,
        })
    })
}

// Finds the versions that `landfall update` may change in the variables of a manifest.

pub(super) fn versions_in_variables(read: &ParsedManifest) -> Vec<UpdatableVersion> {
    let mut found = Vec::new();
    let default = read.document.min_age.as_ref();
    for (name, value) in &read.document.vars {
        let Ok(var) = serde_yaml::from_value::<MovingVar>(value.clone()) else {
            continue;
        };
        let Some(policy) = moving_policy(&var.update.policy) else {
            continue;
        };
        // a value, or a list of values with their positions in it
        let texts: Vec<(Option<usize>, String)> = match &var.value {
            Value::Sequence(values) => {
                let texts = values
                    .iter()
                    .map(|value| value.as_str().unwrap_or_default().to_owned());
                texts
                    .enumerate()
                    .map(|(at, text)| (Some(at), text))
                    .collect()
            }
            value => vec![(None, value.as_str().unwrap_or_default().to_owned())],
        };
        // where newer versions are listed
        let versions = match var.from {
            Some(VersionsFrom::Text(text)) if !text.contains("://") => tags_of_repository(&text),
            Some(from) => Ok(VersionSource::Document(from)),
            None => source_of_variable(read, name).ok_or_else(|| {
                format!(
                    "`{name}` has no source of versions: it is not the version of an image or \
                     package; add `from:`"
                )
            }),
        };
        let slot = |index, current: String, versions| {
            let key = VersionLocation::Var(name.clone(), index);
            UpdatableVersion {
                name: name.clone(),
                kind: EntryKind::Variable,
                file: read.path.clone(),
                at: key.position(read),
                policy: policy.clone(),
                written: var.update.policy.clone(),
                min_age: var.update.min_age.as_ref().or(default).cloned(),
                others: Vec::new(),
                kept: None,
                selection: None,
                versions,
                key,
                text: current.clone(),
                version: 0..current.len(),
                current,
            }
        };
        // with `keep`, the list is updated as a whole; otherwise each of its values by itself
        if let Some(count) = var.update.keep {
            let values: Vec<String> = texts.into_iter().map(|(_, text)| text).collect();
            let versions = match versions {
                Ok(VersionSource::Packages(_)) => Err(format!(
                    "a variable for packages cannot have several versions: add `from:` to `{name}`"
                )),
                versions => versions,
            };
            let whole = slot(None, values.join(", "), versions);
            found.push(UpdatableVersion {
                text: String::new(),
                version: 0..0,
                kept: Some(KeptVersions {
                    count: count.get(),
                    values,
                    entries: Vec::new(),
                }),
                ..whole
            });
            continue;
        }
        for (index, current) in &texts {
            let others = texts
                .iter()
                .filter(|(at, _)| at != index)
                .map(|(_, text)| text.clone());
            found.push(UpdatableVersion {
                others: others.collect(),
                ..slot(*index, current.clone(), versions.clone())
            });
        }
    }
    found.sort_by_key(|slot| slot.key.node(&read.text.root).span().start);
    found
}

/// The tags of the repository `text`, the `from:` of a variable.
fn tags_of_repository(text: &str) -> Result<VersionSource, String> {
    text.parse()
        .map(VersionSource::tags)
        .map_err(|error| format!("`from: {text}` is neither a URL nor a repository: {error}"))
}

/// Where the versions of the variable `name` are listed: in the repository of the first image whose
/// tag contains this variable and no other variable. If there is no such image, in the package
/// repositories of the first package whose version contains the variable.
fn source_of_variable(manifest: &ParsedManifest, name: &str) -> Option<VersionSource> {
    let variable = format!("${{{name}}}");
    image_with_variable(manifest, &variable).or_else(|| package_with_variable(manifest, &variable))
}

fn image_with_variable(manifest: &ParsedManifest, variable: &str) -> Option<VersionSource> {
    let mut sources = by_position(&manifest.requests.images, image_versions);
    let section = manifest.text.root.get(LockedImage::SECTION);
    for (index, entry) in manifest.document.images.iter().enumerate() {
        let Some((before, after)) =
            tag_of(entry.reference()).and_then(|tag| tag.split_once(variable))
        else {
            continue;
        };
        if before.contains("${") || after.contains("${") {
            continue;
        }
        let node = section.item(index).get("ref");
        if let Some(VersionSource::Tags { image, .. }) = sources.remove(&position(manifest, node)) {
            return Some(VersionSource::Tags {
                image,
                before: before.into(),
                after: after.into(),
            });
        }
    }
    None
}

fn package_with_variable(manifest: &ParsedManifest, variable: &str) -> Option<VersionSource> {
    let mut sources = by_position(&manifest.requests.packages, package_versions);
    let section = manifest.text.root.get(LockedPackageSet::SECTION);
    for (index, entry) in manifest.document.packages.iter().enumerate() {
        let Some(pin) = entry.pin_with_variable(variable) else {
            continue;
        };
        let node = section.item(index).get(pin.item_key);
        if let Some(VersionSource::Packages(source)) = sources.remove(&position(manifest, node)) {
            return Some(VersionSource::Packages(Box::new(PackageVersions {
                package: pin.package,
                before: pin.before,
                after: pin.after,
                ..*source
            })));
        }
    }
    None
}
