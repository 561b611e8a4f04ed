//! Finds the versions in manifests that `landfall update` may change, and edits them without
//! touching any other byte.

use super::expanded_manifest::{ListSource, Located};
use super::load::{FileOverrides, LoadManifestError, ParsedManifest, each};
use crate::{
    ChartRequest, EntryPathStep, ImageRequest, ItemKind, LockedChart, LockedImage,
    LockedPackageSet, MovableVersion, PackageSetRequest, UpdatableEntry, UpdatableRequest, tag_of,
};
use landfall_model::document::{
    ChartVersions, MovingVar, SourceLocation, SourceSpan, VersionsFrom, YamlNode, anchored_scalar,
    read_text_input, yaml,
};
use landfall_model::report::EntryKind;
use landfall_model::{Digest, ImageRef, UpdatePolicy};
use serde_yaml::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A version in a manifest that has an update policy.
#[derive(Debug, Clone)]
pub struct UpdatableVersion {
    /// The name in messages: the variable, or the item without its version.
    pub name: String,
    /// The kind of item that has the version, for messages.
    pub kind: EntryKind,
    /// The manifest that contains the version.
    pub file: PathBuf,
    /// The position of the version in the manifest.
    pub at: SourceLocation,
    /// The update policy: what the version may move to.
    pub policy: UpdatePolicy,
    /// The update policy as it is written.
    pub written: String,
    /// The current version.
    pub current: String,
    /// Other values of the same variable.
    pub others: Vec<String>,
    /// Where its versions are listed, or why that is unknown.
    pub versions: Result<VersionSource, String>,
    key: VersionLocation,
    /// The parsed YAML scalar that contains the version.
    text: String,
    version: Range<usize>,
}

/// The location of a version in a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum VersionLocation {
    /// A variable's value, or the nth of its values.
    Var(String, Option<usize>),
    /// A scalar in the nth entry of a section, by the path from the entry.
    Entry(&'static str, usize, Vec<EntryPathStep>),
}

/// Where `landfall update` finds the versions of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VersionSource {
    /// The tags of a repository. The two texts are what a tag contains before and after the version.
    Tags(ImageRef, String, String),
    /// The index of an HTTP repository of charts.
    Chart(ChartVersions),
    /// The package repositories of a machine.
    Packages(Box<PackageVersions>),
    /// The `from:` of a variable: a text, a JSON document or the index of a chart repository.
    Document(VersionsFrom),
}

impl VersionSource {
    /// All tags of the repository of `image`.
    fn tags(image: &ImageRef) -> VersionSource {
        VersionSource::Tags(image.clone(), String::new(), String::new())
    }

    /// The package repositories of `machine`. The package is filled in for each pinned version.
    fn machine(machine: PackageSetRequest) -> VersionSource {
        VersionSource::Packages(Box::new(PackageVersions {
            machine,
            package: String::new(),
            around: Default::default(),
        }))
    }
}

/// A package whose versions are listed in the repositories of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageVersions {
    /// The machine whose repositories have the package.
    pub machine: PackageSetRequest,
    /// The name of the package, with the architecture if it is written.
    pub package: String,
    /// The text before and after the part of the package's version that moves.
    pub around: (String, String),
}

/// The lists of the manifests at `paths` that have a `from`.
///
/// # Errors
/// If a manifest contains an error.
pub fn list_sources(
    paths: &[PathBuf],
    edited: &FileOverrides,
) -> Result<Vec<ListSource>, LoadManifestError> {
    Ok(each(paths, edited)?
        .into_iter()
        .flat_map(|read| read.requests.list_sources)
        .collect())
}

/// The versions with an update policy in the manifests at `paths`, in the order of the files;
/// variables before entries. Values that share a YAML anchor are one version, and the first policy
/// for it counts.
///
/// # Errors
/// If a manifest contains an error.
pub fn updatable_versions(
    paths: &[PathBuf],
    edited: &FileOverrides,
) -> Result<Vec<UpdatableVersion>, LoadManifestError> {
    let mut all = Vec::new();
    for read in each(paths, edited)? {
        let mut known = BTreeSet::new();
        let updatable_versions = versions_in_variables(&read)
            .into_iter()
            .chain(versions_in_entries(&read));
        all.extend(updatable_versions.filter(|slot| known.insert((slot.at.line, slot.at.column))));
    }
    Ok(all)
}

/// Parses a policy; `None` if it never changes the version.
fn moving_policy(text: &str) -> Option<UpdatePolicy> {
    text.parse()
        .ok()
        .filter(UpdatePolicy::allows_other_versions)
}

fn versions_in_variables(read: &ParsedManifest) -> Vec<UpdatableVersion> {
    let mut found = Vec::new();
    for (name, value) in &read.document.vars {
        let Ok(var) = serde_yaml::from_value::<MovingVar>(value.clone()) else {
            continue;
        };
        let Some(policy) = moving_policy(&var.update) else {
            continue;
        };
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
        let versions = match var.from {
            Some(VersionsFrom::Text(text)) if !text.contains("://") => repository(&text),
            Some(from) => Ok(VersionSource::Document(from)),
            None => source_of_variable(read, name).ok_or_else(|| {
                format!(
                    "nothing says where versions of `{name}` come from; add `from:`, as no \
                         image and no package has it as its version"
                )
            }),
        };
        for (index, current) in &texts {
            let key = VersionLocation::Var(name.clone(), *index);
            let others = texts
                .iter()
                .filter(|(at, _)| at != index)
                .map(|(_, text)| text.clone());
            found.push(UpdatableVersion {
                name: name.clone(),
                kind: match versions {
                    Ok(VersionSource::Document(_)) => EntryKind::File,
                    Ok(VersionSource::Packages(_)) => EntryKind::Package,
                    _ => EntryKind::Image,
                },
                file: read.path.clone(),
                at: key.place(read),
                policy: policy.clone(),
                written: var.update.clone(),
                current: current.clone(),
                others: others.collect(),
                versions: versions.clone(),
                key,
                text: current.clone(),
                version: 0..current.len(),
            });
        }
    }
    found.sort_by_key(|slot| slot.key.node(&read.text.root).span().start);
    found
}

/// The tags of the repository `text`, the `from:` of a variable.
fn repository(text: &str) -> Result<VersionSource, String> {
    let image: ImageRef = text
        .parse()
        .map_err(|error| format!("`from: {text}` is no URL and no repository: {error}"))?;
    Ok(VersionSource::Tags(image, String::new(), String::new()))
}

/// The versions in entries that have a policy of their own.
fn versions_in_entries(manifest: &ParsedManifest) -> Vec<UpdatableVersion> {
    let ParsedManifest {
        document, requests, ..
    } = manifest;
    let images = by_position(&requests.images, image_versions);
    let charts = by_position(&requests.charts, chart_versions);
    let packages = by_position(&requests.packages, package_versions);
    [
        versions_in_section::<LockedImage>(manifest, &document.images, &images),
        versions_in_section::<LockedChart>(manifest, &document.charts, &charts),
        versions_in_section::<LockedPackageSet>(manifest, &document.packages, &packages),
    ]
    .concat()
}

fn image_versions(request: &ImageRequest) -> Option<VersionSource> {
    request.tagged_reference().map(VersionSource::tags)
}

fn chart_versions(request: &ChartRequest) -> Option<VersionSource> {
    let Some(repo) = &request.name.repository else {
        return Some(VersionSource::tags(&request.name.reference));
    };
    Some(VersionSource::Chart(ChartVersions {
        repo: repo.clone(),
        chart: request.name.chart.clone(),
    }))
}

fn package_versions(request: &PackageSetRequest) -> Option<VersionSource> {
    Some(VersionSource::machine(request.clone()))
}

/// The versions in the entries of one section.
fn versions_in_section<K: ItemKind>(
    manifest: &ParsedManifest,
    entries: &[K::Entry],
    sources: &BTreeMap<(usize, usize), VersionSource>,
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
            found.extend(version_in_entry(
                manifest,
                location,
                K::KIND,
                version,
                source,
            ));
        }
    }
    found
}

/// Where a variable's versions are listed: the repository of the first image whose tag contains the
/// variable `name` and no other; otherwise the sources of the first package whose version does.
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
        if let Some(VersionSource::Tags(image, ..)) = sources.remove(&position(manifest, node)) {
            return Some(VersionSource::Tags(image, before.into(), after.into()));
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
                around: (pin.before, pin.after),
                ..*source
            })));
        }
    }
    None
}

/// The line and column of `node`.
fn position(manifest: &ParsedManifest, node: &YamlNode<'_>) -> (usize, usize) {
    let location = SourceSpan::new(&manifest.text, node.span()).location();
    (location.line, location.column)
}

/// Where the versions of the requested items are listed, by the line and column of each entry.
fn by_position<R>(
    requests: &[Located<R>],
    source: fn(&R) -> Option<VersionSource>,
) -> BTreeMap<(usize, usize), VersionSource> {
    let mut sources = BTreeMap::new();
    for request in requests {
        let location = request.span.location();
        if let Some(source) = source(&request.value) {
            // an entry with list variables expands to several requests; the first one counts
            sources
                .entry((location.line, location.column))
                .or_insert(source);
        }
    }
    sources
}

fn version_in_entry(
    read: &ParsedManifest,
    key: VersionLocation,
    kind: EntryKind,
    moving: MovableVersion<'_>,
    versions: Option<VersionSource>,
) -> Option<UpdatableVersion> {
    let MovableVersion {
        policy: written,
        name,
        text,
        version,
        ..
    } = moving;
    let no_source = || format!("nothing says where versions of `{name}` come from");
    let versions = match versions {
        Some(VersionSource::Packages(of)) => {
            let package = name.clone();
            Some(VersionSource::Packages(Box::new(PackageVersions {
                package,
                ..*of
            })))
        }
        versions => versions,
    };
    Some(UpdatableVersion {
        versions: versions.ok_or_else(no_source),
        file: read.path.clone(),
        at: key.place(read),
        policy: moving_policy(written)?,
        written: written.into(),
        current: text[version.clone()].into(),
        others: Vec::new(),
        text: text.into(),
        key,
        kind,
        version,
        name,
    })
}

impl UpdatableVersion {
    /// Whether both are in the same entry of a manifest. The packages of a machine may have to be
    /// updated together.
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

impl VersionLocation {
    fn node<'a>(&self, root: &'a YamlNode<'a>) -> &'a YamlNode<'a> {
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

    /// The bytes of the scalar. For an alias, those of the anchor, since that is where it must be
    /// edited.
    fn bytes(&self, body: &str, root: &YamlNode<'_>) -> Range<usize> {
        let span = self.node(root).span();
        match body.get(span.clone()) {
            Some(text) if text.starts_with('*') => anchored_scalar(body, &span).unwrap_or(span),
            _ => span,
        }
    }

    /// The position, for messages.
    fn place(&self, read: &ParsedManifest) -> SourceLocation {
        SourceSpan::new(&read.text, self.bytes(&read.text.text, &read.text.root)).location()
    }

    /// The scalar at this location of a parsed document.
    fn read(&self, document: &Value) -> Option<String> {
        let value = match self {
            VersionLocation::Var(name, index) => {
                let value = document.get("vars")?.get(name.as_str())?.get("value")?;
                index.map_or(Some(value), |index| value.get(index))?
            }
            VersionLocation::Entry(section, index, path) => {
                let entry = document.get(*section)?.get(*index)?;
                path.iter().try_fold(entry, |value, step| match step {
                    EntryPathStep::Key(key) => value.get(*key),
                    EntryPathStep::Index(at) => value.get(*at),
                })?
            }
        };
        value.as_str().map(str::to_owned)
    }
}

const NOT_PLAIN: &str = "it is written with escapes, or part of what an alias repeats, and \
                         cannot be edited in its place";

/// Replaces the version of `slot` in the manifest `text` by `new`.
///
/// # Errors
/// Why changing only the bytes of the version would not have this effect.
pub fn set_version(text: &str, slot: &UpdatableVersion, new: &str) -> Result<String, String> {
    let (mark, body) = without_mark(text);
    let root = YamlNode::parse(body).ok_or("the manifest cannot be read any more")?;
    let span = slot.key.bytes(body, &root);
    // an anchor may precede the scalar
    let at = body[span.clone()].rfind(&slot.text).ok_or(NOT_PLAIN)? + span.start;
    let (start, end) = (at + slot.version.start, at + slot.version.end);
    let edited = [&body[..start], new, &body[end..]].concat();
    let wanted = [
        &slot.text[..slot.version.start],
        new,
        &slot.text[slot.version.end..],
    ]
    .concat();
    let document: Option<Value> = yaml::from_str(&edited).ok();
    match document.and_then(|document| slot.key.read(&document)) {
        Some(read) if read == wanted => Ok([mark, &edited].concat()),
        _ => Err(format!(
            "`{new}` cannot be written in its place: YAML would read it as something else"
        )),
    }
}

/// Replaces the digest `old` by `new` in the entry at `at` of the manifest `text`.
///
/// # Errors
/// Why the digest cannot be replaced.
pub fn set_digest(
    text: &str,
    at: &SourceLocation,
    old: &Digest,
    new: &Digest,
) -> Result<String, String> {
    let (mark, body) = without_mark(text);
    let root = YamlNode::parse(body).ok_or("the manifest cannot be read any more")?;
    let source = landfall_model::document::SourceText::yaml(at.file.clone(), body.to_owned());
    let sections = ["images", "charts"]
        .into_iter()
        .filter(|section| root.key_span(section).is_some());
    let entries = sections.flat_map(|section| {
        let section = root.get(section);
        (0..section.count()).map(|index| section.item(index))
    });
    let is_there = |entry: &&YamlNode<'_>| {
        let item = if entry.key_span("repo").is_some() {
            entry.get("repo")
        } else {
            entry.get("ref")
        };
        SourceSpan::new(&source, item.span()).location() == *at
    };
    let entry = entries
        .into_iter()
        .find(is_there)
        .ok_or("it is written in no `images` and no `charts`")?;
    let nodes = [entry.get("ref").span()]
        .into_iter()
        .chain(entry.key_span("digest").map(|_| entry.get("digest").span()));
    let old = old.to_string();
    let mut places: Vec<usize> = nodes
        .filter_map(|span| body[span.clone()].rfind(&old).map(|at| at + span.start))
        .collect();
    if places.is_empty() {
        return Err(
            "its digest stands in a variable or an alias, and cannot be edited in its place".into(),
        );
    }
    places.sort_unstable();
    let mut edited = body.to_owned();
    places
        .iter()
        .rev()
        .for_each(|&at| edited.replace_range(at..at + old.len(), &new.to_string()));
    Ok([mark, &edited].concat())
}

/// Splits a text after its byte order mark.
fn without_mark(text: &str) -> (&str, &str) {
    let body = text.trim_start_matches('\u{feff}');
    text.split_at(text.len() - body.len())
}

/// The text of the manifest at `path`, overridden or read from disk.
///
/// # Errors
/// If it cannot be read.
pub fn text_of(path: &Path, edited: &FileOverrides) -> Result<String, LoadManifestError> {
    match edited.get(path) {
        Some(text) => Ok(text.clone()),
        None => read_text_input(path).map_err(|source| LoadManifestError::Open {
            path: path.into(),
            source,
        }),
    }
}
