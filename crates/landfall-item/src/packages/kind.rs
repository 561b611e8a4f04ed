//! A locked set of packages as an item.

use super::availability::{PackageAvailability, availability};
use super::chosen_packages::is_safe;
use super::locked::{LockedPackageSet, PackageSource, PackageSummary, summaries};
use super::resolvable::{OfferedIndex, PackageSetRequest};
use crate::UrlFile;
use crate::artifact::{self, TITLE, URL, digest_fault};
use crate::file::is_file_url;
use crate::text::{digest_tag, oversize};
use landfall_content::{EntryPart, LockEntry, PartOrigin};
use landfall_model::report::{EntryKind, one_line};
use landfall_model::{Descriptor, Digest, MediaType, media_type};
use landfall_packages::is_location;
use serde_json::json;
use std::borrow::Cow;
use std::collections::BTreeSet;

impl LockedPackageSet {
    /// The packages, and the signed indexes unless trimmed ones are generated instead.
    pub fn files(&self) -> Vec<UrlFile<'_>> {
        let is_signed = self.index == OfferedIndex::Signed;
        let files = self.sources.iter().flat_map(|source| {
            let indexes = source
                .indexes
                .iter()
                .filter(move |_| is_signed)
                .map(move |index| {
                    let mut file =
                        UrlFile::plain(EntryKind::Sidecar, &index.url, &index.digest, index.size);
                    file.urls.extend(source.by_hash_url(index).map(Cow::from));
                    file
                });
            let packages = source.packages.iter().map(move |package| {
                UrlFile::plain(
                    EntryKind::Package,
                    &package.url,
                    &package.digest,
                    package.size,
                )
            });
            indexes.chain(packages)
        });
        files.collect()
    }

    /// Checks sizes, required lists, URLs, paths, names, keys and fingerprints, and that the digest
    /// matches the name and the sources.
    pub(crate) fn implausibility(&self) -> Option<String> {
        let sizes = self.sources.iter().flat_map(|source| {
            let indexes = source.indexes.iter().map(|index| index.size);
            indexes.chain(source.packages.iter().map(|package| package.size))
        });
        if let Some(fault) = oversize(sizes) {
            return Some(fault);
        }
        if let Some(key) = empty_list(self) {
            return Some(format!("'{}' has no `{key}`", self.name));
        }
        if let Some(fault) = self.sources.iter().find_map(invalid_url_or_path) {
            return Some(fault);
        }
        if let Some(word) = invalid_word(self) {
            return Some(format!("'{}' is not a valid name", one_line(word)));
        }
        if let Some(source) = self.sources.iter().find(|source| !has_text_key(source)) {
            return Some(format!("the key of {} is not an armored key", source.url));
        }
        let mut signers = self.sources.iter().map(|source| &source.signed_by);
        if let Some(text) = signers.find(|text| !is_signer(self, text)) {
            return Some(format!("'{}' is not a fingerprint", one_line(text)));
        }
        digest_fault(&self.name, &self.digest, &digest(self))
    }
}

/// The key of a required list that is empty.
fn empty_list(set: &LockedPackageSet) -> Option<&'static str> {
    let lists = [
        ("architectures", set.architectures.is_empty()),
        ("install", set.install.is_empty()),
        ("sources", set.sources.is_empty()),
        (
            "indexes",
            set.sources.iter().any(|source| source.indexes.is_empty()),
        ),
    ];
    lists
        .into_iter()
        .find(|(_, is_empty)| *is_empty)
        .map(|(key, _)| key)
}

/// A message about a URL of `source` that is not an http or https URL, or about a path that is not
/// a location of the repository.
fn invalid_url_or_path(source: &PackageSource) -> Option<String> {
    let mut urls = std::iter::once(&source.url).chain(&source.snapshot);
    // in a sources file of a machine, text after white space would be another URL
    let is_url = |url: &str| is_file_url(url) && !url.contains(char::is_whitespace);
    if let Some(url) = urls.find(|url| !is_url(url)) {
        return Some(format!("'{}' is not an http or https URL", one_line(url)));
    }
    let indexes = source.indexes.iter().map(|index| &index.path);
    let path = indexes
        .chain(source.packages.iter().map(|package| &package.path))
        .find(|path| !is_location(&source.url, path))?;
    Some(format!(
        "'{}' is not where a file of a repository can be",
        one_line(path)
    ))
}

/// The first text of `set` that is not a safe word. These texts are written into sources and
/// preferences files on machines. There, white space would inject lines, and a dash at the start
/// would inject an option.
fn invalid_word(set: &LockedPackageSet) -> Option<&str> {
    for source in &set.sources {
        // the suite and these lists are empty for yum
        let names = source.components.iter().chain(&source.targets);
        if let Some(bad) = names.chain([&source.suite]).find(|text| !is_safe(text)) {
            return Some(bad);
        }
        for package in &source.packages {
            let texts = [&package.name, &package.version, &package.arch];
            if let Some(bad) = texts.iter().find(|text| text.is_empty() || !is_safe(text)) {
                return Some(bad);
            }
        }
    }
    set.architectures
        .iter()
        .chain(&set.modules)
        .map(String::as_str)
        .find(|text| !is_safe(text))
}

/// Whether the key of `source` can be written to files and terminals.
fn has_text_key(source: &PackageSource) -> bool {
    source
        .key
        .bytes()
        .all(|byte| byte == b'\n' || (b' '..0x7f).contains(&byte))
}

/// Whether `text` names keys by their fingerprints in hex: one for apt, one or more for yum. The
/// fingerprint becomes the name of a file on machines.
fn is_signer(set: &LockedPackageSet, text: &str) -> bool {
    let is_hex = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if set.is_yum() {
        // `OpenPgpKeys` displays several keys with ` or ` between them
        text.split(" or ").all(is_hex)
    } else {
        is_hex(text)
    }
}

impl LockedPackageSet {
    /// The packages of all sources.
    pub fn packages(&self) -> Vec<PackageSummary<'_>> {
        summaries(self)
    }

    /// Whether the set contains the package that `word` selects on the command line of the package
    /// manager `manager`. `None` if the set is for another package manager.
    pub fn availability(&self, manager: &str, word: &str) -> Option<PackageAvailability> {
        availability(self, manager, word)
    }
}

// The manifest and blobs of a set of packages, as parts to transfer.

const KEY: &str = "application/pgp-keys";

/// Lists the parts of a set: an artifact with a layer for each index, package and key.
pub(crate) fn entry(set: &LockedPackageSet) -> LockEntry {
    let (manifest, parts) = manifest(set);
    artifact::entry(
        EntryKind::Package,
        set.name.clone(),
        &set.digest,
        format!("{}:{}", repository(&set.name), digest_tag(&set.digest)),
        media_type::LANDFALL_PACKAGES,
        parts,
        manifest,
    )
}

/// Builds the locked set for `request`, and sorts the packages of `sources`.
pub(super) fn set(
    request: &PackageSetRequest,
    expected: BTreeSet<String>,
    mut sources: Vec<PackageSource>,
) -> LockedPackageSet {
    // the resolver's order of packages has no meaning, and equal sets must get equal digests
    for source in &mut sources {
        source
            .packages
            .sort_by(|a, b| (&a.name, &a.arch, &a.version).cmp(&(&b.name, &b.arch, &b.version)));
    }
    let mut set = LockedPackageSet {
        name: request.name.clone(),
        digest: Digest::sha256(b""),
        architectures: request.architectures.clone(),
        install: request.install.clone(),
        modules: request.modules.clone(),
        recommends: request.recommends,
        index: request.index,
        base: request.bases.iter().map(ToString::to_string).collect(),
        expected: expected.into_iter().collect(),
        sources,
    };
    set.digest = digest(&set);
    set
}

/// Computes the digest of a set, ignoring its `digest` field.
pub(super) fn digest(set: &LockedPackageSet) -> Digest {
    manifest(set).0.descriptor.digest
}

/// The repository of a set's artifact: `packages/`, then the first 16 hex digits of the name's
/// SHA-256.
pub(crate) fn repository(name: &str) -> String {
    format!("packages/{}", Digest::sha256(name.as_bytes()).short(16))
}

/// The manifest and the parts that it names, without duplicates.
fn manifest(set: &LockedPackageSet) -> (EntryPart, Vec<EntryPart>) {
    let mut parts = vec![artifact::empty_config()];
    let config = parts[0].descriptor.clone();
    // two sources may have the same key or package, which is transferred once
    let mut known = BTreeSet::from([config.digest.clone()]);
    let mut layers = Vec::new();
    let mut add = |descriptor: Descriptor, title: &str, url: &str, origin: PartOrigin| {
        layers.push(artifact::layer(
            &descriptor,
            json!({URL: url, TITLE: title}),
        ));
        if known.insert(descriptor.digest.clone()) {
            parts.push(EntryPart { descriptor, origin });
        }
    };
    let package_type = if set.is_yum() {
        media_type::RPM
    } else {
        media_type::DEB
    };
    for source in &set.sources {
        let key = source.key.as_bytes();
        add(
            Descriptor::of(key, KEY),
            &format!("{}.asc", source.signed_by),
            &source.url,
            PartOrigin::Computed(key.into()),
        );
        for index in &source.indexes {
            let layer = Descriptor::new(index.digest.clone(), index.size, media_type::OCTETS);
            // the `by-hash` URL comes first: a repository keeps that file for a while after it
            // replaces the index
            let by_hash = source.by_hash_url(index);
            let urls = by_hash
                .into_iter()
                .chain(source.urls_of(&index.url, &index.path));
            add(
                layer,
                title(&index.path, &index.url),
                &index.url,
                origin(urls.collect()),
            );
        }
        for package in &source.packages {
            let layer = Descriptor::new(
                package.digest.clone(),
                package.size,
                MediaType::from(package_type),
            );
            add(
                layer,
                title(&package.path, &package.url),
                &package.url,
                origin(source.urls_of(&package.url, &package.path)),
            );
        }
    }
    let annotations = json!({TITLE: set.name});
    let manifest = artifact::manifest(media_type::LANDFALL_PACKAGES, &config, layers, annotations);
    (manifest, parts)
}

/// The title of a layer, which clients of registries use as the path of its file: `path`, or host
/// and path of `url` if `path` leads out of the repository.
fn title<'t>(path: &'t str, url: &'t str) -> &'t str {
    let is_below = !path.starts_with("../") && !path.contains("://");
    let below_host = url.split_once("://").map(|(_, rest)| rest);
    below_host.filter(|_| !is_below).unwrap_or(path)
}

fn origin(mut urls: Vec<String>) -> PartOrigin {
    match urls.len() {
        1 => PartOrigin::Url(urls.remove(0)),
        _ => PartOrigin::Urls(urls),
    }
}
