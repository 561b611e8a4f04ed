//! A locked set of packages as an item.

use super::availability::{PackageAvailability, availability};
use super::chosen_packages::is_safe;
use super::locked::{self, LockedPackageSet, PackageSource};
use super::manifest_entry::PackageEntry;
use super::package_faults::package_faults;
use super::package_summary::{PackageSummary, summaries};
use super::parts;
use super::request::{OfferedIndex, PackageSetRequest};
use crate::file::is_file_url;
use crate::text::oversize;
use crate::{
    AuditedItem, Exclusion, ItemIdentity, ItemKind, LockedItem, ManifestResult, PushedItem,
    ServedItem, UrlFile,
};
use landfall_content::{BlobRead, LockEntry};
use landfall_model::document::SourceSpan;
use landfall_model::report::{EntryKind, one_line};
use landfall_model::sign::SignatureTime;
use landfall_model::{Destination, DestinationMap, Digest};
use landfall_packages::is_location;
use std::borrow::Cow;
use std::fmt;

impl ItemIdentity for LockedPackageSet {
    fn kind(&self) -> EntryKind {
        EntryKind::Package
    }

    fn name(&self) -> Cow<'_, str> {
        self.name.as_str().into()
    }

    fn digest(&self) -> &Digest {
        &self.digest
    }

    fn source(&self) -> String {
        self.name.clone()
    }
}

impl PushedItem for LockedPackageSet {
    fn destinations(&self, mapping: &DestinationMap) -> Vec<Destination> {
        vec![mapping.own_destination(&parts::repository(&self.name))]
    }

    fn tag(&self) -> String {
        parts::tag(&self.digest)
    }
}

impl AuditedItem for LockedPackageSet {
    fn has_blob(&self, digest: &Digest) -> bool {
        let mut digests = self.sources.iter().flat_map(|source| {
            let indexes = source.indexes.iter().map(|index| &index.digest);
            indexes.chain(source.packages.iter().map(|package| &package.digest))
        });
        self.digest == *digest || digests.any(|held| held == digest)
    }
}

impl ServedItem for LockedPackageSet {
    fn own_repository(&self) -> String {
        parts::repository(&self.name)
    }

    /// The packages, and the signed indexes unless trimmed ones are generated instead.
    fn files(&self) -> Vec<UrlFile<'_>> {
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
}

impl LockedItem for LockedPackageSet {
    fn write(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        locked::write(self, out)
    }

    /// Checks sizes, required lists, URLs, paths, names, keys and fingerprints, and that the digest
    /// matches the name and the sources.
    fn implausibility(&self) -> Option<String> {
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
        let found = parts::digest(self);
        (found != self.digest).then(|| {
            format!(
                "'{}' has the digest {}, but its other fields have {found}",
                self.name, self.digest
            )
        })
    }

    fn entry(&self) -> LockEntry {
        parts::entry(self)
    }

    fn contradictions(&self, blobs: &dyn BlobRead, time: SignatureTime) -> Vec<String> {
        package_faults(self, blobs, time)
    }

    fn as_package_set(&self) -> Option<&LockedPackageSet> {
        Some(self)
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

impl ItemKind for LockedPackageSet {
    const KIND: EntryKind = EntryKind::Package;
    const SECTION: &'static str = "packages";
    const HAS_FILES: bool = true;
    type Name = String;
    type Request = PackageSetRequest;
    type Entry = PackageEntry;

    fn is_name(text: &str) -> bool {
        text.starts_with("apt:") || text.starts_with("yum:")
    }

    fn key(&self) -> &String {
        &self.name
    }

    fn parse_name(text: &str, _: &SourceSpan) -> ManifestResult<String> {
        Ok(text.to_owned())
    }

    fn parse_exclusion(text: &str, span: &SourceSpan) -> ManifestResult<Exclusion> {
        LockedPackageSet::parse_name(text, span).map(Exclusion::Url)
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
