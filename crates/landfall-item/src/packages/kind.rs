//! A locked set of packages as an item.

use super::availability::{PackageAvailability, availability};
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
use landfall_packages::is_plain_path;
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

    /// The packages, and the signed indexes unless trimmed ones are generated in their place.
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

    /// Required lists must not be empty, paths must stay below their source, sizes must add up
    /// without overflow, and the digest must match everything else.
    fn implausibility(&self) -> Option<String> {
        let sizes = self.sources.iter().flat_map(|source| {
            let indexes = source.indexes.iter().map(|index| index.size);
            indexes.chain(source.packages.iter().map(|package| package.size))
        });
        let url = || {
            let snapshots = self
                .sources
                .iter()
                .filter_map(|source| source.snapshot.as_ref());
            let mut urls = self
                .sources
                .iter()
                .map(|source| &source.url)
                .chain(snapshots);
            Some(format!(
                "'{}' is no http or https URL",
                one_line(urls.find(|url| !is_file_url(url))?)
            ))
        };
        let path = || {
            let mut paths = self.sources.iter().flat_map(|source| {
                let indexes = source.indexes.iter().map(|index| &index.path);
                indexes.chain(source.packages.iter().map(|package| &package.path))
            });
            let path = paths.find(|path| !is_plain_path(path))?;
            Some(format!("'{}' is no path of a repository", one_line(path)))
        };
        // these words are written into sources and preferences files on machines, so white space
        // would inject lines
        let word = || {
            let of_source = |source: &'_ PackageSource| -> Vec<String> {
                let packages = source
                    .packages
                    .iter()
                    .flat_map(|one| [&one.name, &one.version, &one.arch]);
                let names = source
                    .components
                    .iter()
                    .chain(&source.targets)
                    .chain(packages);
                names.chain([&source.suite]).cloned().collect()
            };
            let mut words = self
                .sources
                .iter()
                .flat_map(of_source)
                .chain(self.architectures.iter().cloned());
            let is_bad =
                |word: &String| word.contains(|c: char| c.is_whitespace() || c.is_control());
            let packages = || self.sources.iter().flat_map(|source| &source.packages);
            let has_empty = packages().any(|one| {
                [&one.name, &one.version, &one.arch]
                    .iter()
                    .any(|word| word.is_empty())
            });
            let word = words.find(is_bad).or_else(|| has_empty.then(String::new))?;
            Some(format!("'{}' is no name of a repository", one_line(&word)))
        };
        let key = || {
            let is_text = |key: &str| {
                key.bytes()
                    .all(|byte| byte == b'\n' || (b' '..0x7f).contains(&byte))
            };
            let is_name = |name: &str| !name.contains(char::is_control);
            let is_bad = |one: &&PackageSource| !is_text(&one.key) || !is_name(&one.signed_by);
            let source = self.sources.iter().find(is_bad)?;
            Some(format!("the key of {} is no armored key", source.url))
        };
        let empty = || {
            let lists = [
                ("architectures", &self.architectures),
                ("install", &self.install),
            ];
            let list = lists
                .into_iter()
                .find(|(_, list)| list.is_empty())
                .map(|(key, _)| key);
            let list = list.or(self.sources.is_empty().then_some("sources"));
            let index = self
                .sources
                .iter()
                .any(|source| source.indexes.is_empty())
                .then_some("indexes");
            Some(format!("'{}' has no `{}`", self.name, list.or(index)?))
        };
        let digest = || {
            let found = parts::digest(self);
            (found != self.digest).then(|| {
                format!(
                    "'{}' is {found} by what is said of it, not {}",
                    self.name, self.digest
                )
            })
        };
        let lists = oversize(sizes).or_else(empty);
        lists
            .or_else(url)
            .or_else(path)
            .or_else(word)
            .or_else(key)
            .or_else(digest)
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
