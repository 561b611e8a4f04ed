//! A set of packages as an item: what everybody else asks of it, and how it is locked.

use super::carried::{Carried, carried};
use super::form::{PackageForm, forms};
use super::locked::{self, PackageSet, PackageSource};
use super::package_faults::package_faults;
use super::wish::{OfferedIndex, WantedPackages, WantedSource};
use super::written::{self, PackageEntry};
use super::{apt, parts, yum};
use crate::file::is_file_url;
use crate::text::oversize;
use crate::{
    Cause, Checked, Contradiction, EntryReader, Exclude, FileForm, Found, ItemKind, LockedItem,
    Moving, PinnedBy, Pins, Resolver,
};
use landfall_content::{BlobRead, LockEntry};
use landfall_model::document::{Node, SourceSpan};
use landfall_model::report::{EntryKind, one_line};
use landfall_model::sign::SignatureTime;
use landfall_model::{Destination, DestinationMap, Digest};
use landfall_packages::is_plain_path;
use std::borrow::Cow;
use std::fmt;

impl LockedItem for PackageSet {
    fn kind(&self) -> EntryKind {
        EntryKind::Package
    }

    fn name(&self) -> Cow<'_, str> {
        self.name.as_str().into()
    }

    fn digest(&self) -> &Digest {
        &self.digest
    }

    fn write(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        locked::write(self, out)
    }

    /// No list that it needs is empty, every path stays below its source, sizes can be added up,
    /// and the digest is that of all this.
    fn fault(&self) -> Option<String> {
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
        // they become lines of sources and preferences on machines
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

    fn destinations(&self, mapping: &DestinationMap) -> Vec<Destination> {
        vec![mapping.own_destination(&parts::repository(&self.name))]
    }

    fn tag(&self) -> String {
        parts::tag(&self.digest)
    }

    fn own_repository(&self) -> String {
        parts::repository(&self.name)
    }

    /// Its indexes too, unless others are made for what it offers.
    fn files(&self) -> Vec<FileForm<'_>> {
        let is_signed = self.index == OfferedIndex::Signed;
        let files = self.sources.iter().flat_map(|source| {
            let indexes = source
                .indexes
                .iter()
                .filter(move |_| is_signed)
                .map(move |index| {
                    let mut file =
                        FileForm::plain(EntryKind::Sidecar, &index.url, &index.digest, index.size);
                    file.urls.extend(source.by_hash_url(index).map(Cow::from));
                    file
                });
            let packages = source.packages.iter().map(move |package| {
                FileForm::plain(
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

    fn packages(&self) -> Vec<PackageForm<'_>> {
        forms(self)
    }

    fn carried(&self, manager: &str, word: &str) -> Option<Carried> {
        carried(self, manager, word)
    }

    fn has_blob(&self, digest: &Digest) -> bool {
        let mut digests = self.sources.iter().flat_map(|source| {
            let indexes = source.indexes.iter().map(|index| &index.digest);
            indexes.chain(source.packages.iter().map(|package| &package.digest))
        });
        self.digest == *digest || digests.any(|held| held == digest)
    }

    fn contradictions(&self, blobs: &dyn BlobRead, time: SignatureTime) -> Vec<String> {
        package_faults(self, blobs, time)
    }

    fn platforms(&self) -> Option<std::collections::BTreeSet<String>> {
        None
    }
}

impl ItemKind for PackageSet {
    const KIND: EntryKind = EntryKind::Package;
    const HAS_FILES: bool = true;
    const IS_CHOSEN: bool = true;
    type Name = String;
    type Wish = WantedPackages;
    type Written = PackageEntry;

    fn is_named(text: &str) -> bool {
        text.starts_with("apt:") || text.starts_with("yum:")
    }

    fn key(&self) -> &String {
        &self.name
    }

    fn wished(wish: &WantedPackages) -> &String {
        &wish.name
    }

    fn read(
        entry: &PackageEntry,
        node: &Node,
        reader: &EntryReader<'_>,
    ) -> Checked<Vec<(WantedPackages, SourceSpan)>> {
        written::read(entry, node, reader)
    }

    fn name_of(text: &str, _: &SourceSpan) -> Checked<String> {
        Ok(text.to_owned())
    }

    fn exclusion(text: &str, span: &SourceSpan) -> Checked<Exclude> {
        PackageSet::name_of(text, span).map(Exclude::Url)
    }

    fn is_excluded(wish: &WantedPackages, exclude: &Exclude) -> bool {
        matches!(exclude, Exclude::Url(name) if *name == wish.name)
    }

    fn alike(wish: &WantedPackages, exclude: &Exclude) -> Option<String> {
        matches!(exclude, Exclude::Url(_)).then(|| wish.name.clone())
    }

    fn join(first: &mut WantedPackages, second: &WantedPackages) -> Result<(), Contradiction> {
        first.join(second)
    }

    fn moving(entry: &PackageEntry) -> Vec<Moving<'_>> {
        written::moving(entry)
    }

    fn pinned_by(entry: &PackageEntry, variable: &str) -> Option<PinnedBy> {
        written::pinned_by(entry, variable)
    }

    fn machine(wish: &WantedPackages) -> Option<&WantedPackages> {
        Some(wish)
    }

    async fn can_lock(
        resolver: &Resolver,
        wish: &WantedPackages,
        old: Option<&PackageSet>,
    ) -> Result<(), Cause> {
        chosen(resolver, wish, old).await.map(|_| ())
    }

    async fn resolve(
        resolver: &Resolver,
        wish: &WantedPackages,
        old: Option<&PackageSet>,
        pins: Pins,
    ) -> Found<PackageSet> {
        let old_same = old.filter(|old| is_what(old, wish));
        if let (Some(old), Pins::Keep | Pins::Referrers) = (old_same, pins) {
            // who offers it how is nothing that upstream says
            return match old.index == wish.index {
                true => Found::Kept(old.clone()),
                false => Found::New(PackageSet {
                    index: wish.index,
                    ..old.clone()
                }),
            };
        }
        let found = chosen(resolver, wish, old.filter(|_| pins != Pins::Recall)).await;
        let told = |(set, notes): (PackageSet, Vec<String>)| {
            notes.iter().for_each(|note| resolver.progress().note(note));
            set
        };
        match found.map(told) {
            Ok(set) if old == Some(&set) => Found::Kept(set),
            Ok(set) => {
                note_replaced(resolver, &set);
                Found::New(set)
            }
            Err(cause) => match (old_same, old) {
                (Some(old), _) if cause.is_gone => Found::Gone(old.clone()),
                (None, Some(old)) if is_trusted(old, wish) => Found::Lost(
                    Some(old.clone()),
                    cause.then(&"it was locked for another text of its entry"),
                ),
                (old, _) => Found::Lost(old.cloned(), cause),
            },
        }
    }
}

/// What is locked for `wish`, and what people are told of it.
async fn chosen(
    resolver: &Resolver,
    wish: &WantedPackages,
    old: Option<&PackageSet>,
) -> Result<(PackageSet, Vec<String>), Cause> {
    match wish.is_yum() {
        true => yum::resolve(resolver, wish, old).await,
        false => apt::resolve(resolver, wish, old).await,
    }
}

/// Says which metadata of `set` only this run's store has, once its repository has changed.
fn note_replaced(resolver: &Resolver, set: &PackageSet) {
    let lasting = |source: &PackageSource| {
        source.snapshot.is_some() || source.replaced_files().next().is_none()
    };
    for source in set.sources.iter().filter(|source| !lasting(source)) {
        resolver.note_once(&format!(
            "{} replaces its metadata when it changes, and names no snapshots: pull with the store of this lock \
             (another one can until then)",
            source.url
        ));
    }
}

/// Whether all that `old` has is of sources that `wish` names too, with the keys that signed them.
fn is_trusted(old: &PackageSet, wish: &WantedPackages) -> bool {
    old.sources.iter().all(|old| {
        let mut same = wish
            .sources
            .iter()
            .filter(|wish| wish.url == old.url && wish.suite == old.suite);
        same.any(|wish| is_signer(wish, old))
    })
}

/// Whether a key of `wish` signed `old`.
fn is_signer(wish: &WantedSource, old: &PackageSource) -> bool {
    wish.keys.has(&old.signed_by) || wish.keys.to_string() == old.signed_by
}

/// Whether `old` is what `wish` asks for.
fn is_what(old: &PackageSet, wish: &WantedPackages) -> bool {
    let bases: Vec<String> = wish.bases.iter().map(ToString::to_string).collect();
    old.architectures == wish.architectures
        && old.install == wish.install
        && old.recommends == wish.recommends
        && old.base == bases
        && old.sources.len() == wish.sources.len()
        && old.sources.iter().zip(&wish.sources).all(|(old, wish)| {
            old.url == wish.url
                && old.suite == wish.suite
                && old.components == wish.components
                && old.targets == wish.targets
                && is_signer(wish, old)
        })
}
