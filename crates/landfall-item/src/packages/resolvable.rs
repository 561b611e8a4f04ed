//! How a request for a set of packages is merged, resolved and updated.

use super::kind;
use super::locked::{LockedPackageSet, PackageSource};
use crate::item_kind::meets_rules;
use crate::text::FieldConflict;
use crate::{ItemRequest, PinPolicy, ResolveError, ResolveOutcome, Resolver};
use derive_more::Display;
use landfall_content::BlobRead;
use landfall_model::Digest;
use landfall_model::document::SourceLocation;
use landfall_model::sign::OpenPgpKeys;
use landfall_packages::apt;
use landfall_packages::yum::RpmPin;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

impl ItemRequest for PackageSetRequest {
    type Name = String;
    type Item = LockedPackageSet;

    fn name(&self) -> &String {
        &self.name
    }

    fn further_urls(&self) -> Vec<&str> {
        let urls = self.sources.iter().flat_map(|source| {
            let mirrors = source.mirrors.as_ref().map(|mirrors| match mirrors {
                MirrorsRequest::Metalink(url) | MirrorsRequest::List(url) => url,
            });
            std::iter::once(&source.url).chain(mirrors)
        });
        urls.map(String::as_str).collect()
    }

    fn merge(&mut self, other: &PackageSetRequest) -> Result<(), FieldConflict> {
        // with different names, they would be two sets
        check_same_machine(self, other).map_err(|conflict| FieldConflict {
            second: format!("{} (give one of them a `name`)", conflict.second),
            ..conflict
        })?;
        for text in &other.install {
            add_request(&mut self.install, text.clone());
        }
        for text in &other.modules {
            add_request(&mut self.modules, text.clone());
        }
        if self.is_yum() {
            self.install.sort();
            self.modules.sort();
        }
        Ok(())
    }

    async fn resolve(
        &self,
        resolver: &Resolver,
        old: Option<&LockedPackageSet>,
        pins: PinPolicy,
    ) -> ResolveOutcome<LockedPackageSet> {
        let matching = old.filter(|old| satisfies(old, self));
        if let Some(old) = matching.filter(|_| pins.keeps()) {
            // `index` and renewed keys do not affect the choice of packages, so no request is
            // needed
            let set = with_keys(old, self, &resolver.disk);
            return ResolveOutcome::of(Ok(set), Some(old));
        }
        // with `Recall`, the old lock is only a cache of an earlier run, so metadata older than the
        // locked metadata must not be rejected
        let before = old.filter(|_| pins != PinPolicy::Recall);
        match choose(resolver, self, before).await {
            Ok((set, notes)) => {
                for note in &notes {
                    resolver.progress.note(note);
                }
                if old == Some(&set) {
                    return ResolveOutcome::Kept(set);
                }
                note_replaced(resolver, &set);
                ResolveOutcome::New(set)
            }
            Err(cause) => match (matching, old) {
                // a set with other packages is still usable if the same keys signed its sources
                (None, Some(old)) if is_trusted(old, self) => ResolveOutcome::Failed(
                    Some(old.clone()),
                    cause.followed_by(&"the lock has the set of an earlier version of this entry"),
                ),
                (matching, _) => ResolveOutcome::lost(matching, pins, cause),
            },
        }
    }

    fn accepts(&self, old: &LockedPackageSet, resolver: &Resolver) -> bool {
        is_trusted(old, self) && meets_rules(old, resolver)
    }
}

/// Checks that two requests differ only in their packages.
fn check_same_machine(
    first: &PackageSetRequest,
    second: &PackageSetRequest,
) -> Result<(), FieldConflict> {
    FieldConflict::check_equal(
        "list of sources",
        &first.sources,
        &second.sources,
        |sources| join_texts(sources),
    )?;
    FieldConflict::check_equal(
        "architectures",
        &first.architectures,
        &second.architectures,
        |architectures| join_texts(architectures),
    )?;
    FieldConflict::check_equal("base", &first.bases, &second.bases, |bases| {
        join_texts(bases)
    })?;
    FieldConflict::check_equal(
        "choice of recommends",
        &first.recommends,
        &second.recommends,
        bool::to_string,
    )?;
    FieldConflict::check_equal(
        "index",
        &first.index,
        &second.index,
        OfferedIndex::to_string,
    )
}

fn join_texts(texts: &[impl ToString]) -> String {
    let texts: Vec<String> = texts.iter().map(ToString::to_string).collect();
    texts.join(", ")
}

impl PackageSetRequest {
    /// Checks that the request can be locked, without keeping the result. `old` is the set of this
    /// name in the last lock.
    ///
    /// # Errors
    /// Why the request cannot be locked.
    pub async fn check_resolvable(
        &self,
        resolver: &Resolver,
        old: Option<&LockedPackageSet>,
    ) -> Result<(), ResolveError> {
        choose(resolver, self, old).await.map(drop)
    }
}

/// Resolves `request`. Returns the set, and notes for people.
async fn choose(
    resolver: &Resolver,
    request: &PackageSetRequest,
    old: Option<&LockedPackageSet>,
) -> Result<(LockedPackageSet, Vec<String>), ResolveError> {
    if request.is_yum() {
        super::yum::resolve(resolver, request, old).await
    } else {
        super::apt::resolve(resolver, request, old).await
    }
}

/// Notes the repositories of `set` that replace their metadata and have no snapshot: once such a
/// repository changes, only the store of this run has the locked metadata.
fn note_replaced(resolver: &Resolver, set: &LockedPackageSet) {
    for source in &set.sources {
        if source.snapshot.is_some() || source.replaced_files().next().is_none() {
            continue;
        }
        resolver.note_once(&format!(
            "{} replaces its metadata when it changes, and names no snapshots: after a change, \
             `landfall pull` works only with the store of this lock",
            source.url
        ));
    }
}

/// Whether `request` has every source of `old`, and each with the keys that `old` names.
fn is_trusted(old: &LockedPackageSet, request: &PackageSetRequest) -> bool {
    old.sources.iter().all(|old| {
        request.sources.iter().any(|requested| {
            requested.url == old.url && requested.suite == old.suite && is_signer(requested, old)
        })
    })
}

/// Whether `requested` has the keys that `old` names. For apt, the lock names the one key that
/// signed the metadata; for yum, it names all keys of the source.
fn is_signer(requested: &PackageSourceRequest, old: &PackageSource) -> bool {
    requested.keys.has(&old.signed_by) || requested.keys.to_string() == old.signed_by
}

/// Returns `old` with the `index` and the keys of `request`: a key may have been renewed, and a yum
/// source may have got another key. The key of an apt source is replaced only if `store` has the
/// locked `InRelease`, and the new key verifies it.
fn with_keys(
    old: &LockedPackageSet,
    request: &PackageSetRequest,
    store: &dyn BlobRead,
) -> LockedPackageSet {
    let mut set = old.clone();
    set.index = request.index;
    for (source, requested) in set.sources.iter_mut().zip(&request.sources) {
        let keys = &requested.keys;
        if request.is_yum() {
            if let Some(key) = keys.certificates() {
                source.signed_by = keys.to_string();
                source.key = key;
            }
        } else if let Some(key) = keys.certificate(&source.signed_by)
            && key != source.key
        {
            let old_key = std::mem::replace(&mut source.key, key);
            // a key without the subkey that signed the locked release would make it useless
            let release = source.release(store);
            if !matches!(release, Ok(Some((index, _))) if index.path.ends_with("InRelease")) {
                source.key = old_key;
            }
        }
    }
    set.digest = kind::digest(&set);
    set
}

/// Whether `old` satisfies `request`, except for `index`.
fn satisfies(old: &LockedPackageSet, request: &PackageSetRequest) -> bool {
    let bases: Vec<String> = request.bases.iter().map(ToString::to_string).collect();
    old.architectures == request.architectures
        && old.install == request.install
        && old.modules == request.modules
        && old.recommends == request.recommends
        && old.base == bases
        && old.sources.len() == request.sources.len()
        && old
            .sources
            .iter()
            .zip(&request.sources)
            .all(|(old, requested)| {
                old.url == requested.url
                    && old.suite == requested.suite
                    && old.components == requested.components
                    && old.targets == requested.targets
                    && old.module_hotfixes == requested.module_hotfixes
                    && is_signer(requested, old)
            })
}

// A request for a set of packages.

/// The packages that machines install, and their sources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageSetRequest {
    /// The name in the lock.
    pub name: String,
    /// The repositories, in order of preference.
    pub sources: Vec<PackageSourceRequest>,
    /// The architectures, the native one first.
    pub architectures: Vec<String>,
    /// The packages, as `apt-get install` or `dnf install` accepts them, without duplicates: for
    /// apt in the order of the manifest, which influences its choice; for dnf sorted.
    pub install: Vec<String>,
    /// The module streams that are enabled on the machines, as `dnf module enable` accepts them,
    /// sorted; none for apt.
    pub modules: Vec<String>,
    /// Whether recommended packages are installed as well.
    pub recommends: bool,
    /// The metadata with which the packages are served.
    pub index: OfferedIndex,
    /// What is installed on the machines already; one base for each kind of machine. If the list is
    /// empty, the installed packages are not known.
    pub bases: Vec<MachineBase>,
    /// The position of the entry in the manifest.
    pub at: SourceLocation,
}

/// A repository, or a suite of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageSourceRequest {
    /// The URL of the repository, without a trailing slash.
    pub url: String,
    /// The suite. It ends with a slash if the repository is flat, and is empty for yum.
    pub suite: String,
    /// The `Codename` or `Suite` that the Release file must have, if it differs from the suite's
    /// name.
    pub codename: Option<String>,
    /// Whether a release is rejected after its `Valid-Until`.
    pub check_valid_until: bool,
    /// The components. A flat repository has none.
    pub components: Vec<String>,
    /// The indexes to carry in addition to the package indexes, by the names of apt's targets,
    /// sorted; none for yum.
    pub targets: Vec<String>,
    /// The keys that may have signed the repository.
    pub keys: OpenPgpKeys,
    /// The list of mirrors from which metadata is fetched if `url` fails.
    pub mirrors: Option<MirrorsRequest>,
    /// Other hosts from which packages may come, because the repository lists their URLs; none for
    /// apt.
    pub hosts: Vec<String>,
    /// Whether module streams hide no package of the repository; false for apt.
    pub module_hotfixes: bool,
}

/// A list of mirrors of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MirrorsRequest {
    /// The URL of a metalink, which also contains the digest of `repomd.xml`.
    Metalink(String),
    /// The URL of a plain list of mirrors.
    List(String),
}

/// The metadata with which packages are served on the other side of the air gap.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Display,
)]
#[serde(rename_all = "lowercase")]
#[display(rename_all = "lowercase")]
pub enum OfferedIndex {
    /// The signed metadata of the repositories, unchanged. Machines see all packages of the
    /// repositories, carried or not.
    #[default]
    Signed,
    /// Generated metadata that lists only the carried packages, signed by the site.
    Trimmed,
}

/// What is installed on a machine already.
#[derive(Debug, Clone, PartialEq, Eq, Display)]
#[display(rename_all = "lowercase")]
pub enum MachineBase {
    /// Nothing is installed.
    None,
    /// The packages that `debootstrap --variant=minbase` installs.
    Minimal,
    /// The packages that debootstrap installs by default, and those of the priority `standard`.
    Standard,
    /// The content of a dpkg status file.
    #[display("status {}", Digest::sha256(_0.as_bytes()))]
    Status(Arc<str>),
    /// The output of `rpm -qa`.
    #[display("rpms {}", Digest::sha256(_0.as_bytes()))]
    Rpms(Arc<str>),
}

impl PackageSetRequest {
    /// Whether the request is for yum and dnf.
    pub fn is_yum(&self) -> bool {
        self.name.starts_with("yum:")
    }

    /// The bases of the machines for which packages are chosen: none if the request has none.
    pub(super) fn machines(&self) -> &[MachineBase] {
        const UNKNOWN: &[MachineBase] = &[MachineBase::None];
        if self.bases.is_empty() {
            UNKNOWN
        } else {
            &self.bases
        }
    }

    /// The upstream part of a package version, without epoch and revision.
    pub fn upstream_version<'v>(&self, version: &'v str) -> &'v str {
        if self.is_yum() {
            RpmPin::upstream(version)
        } else {
            apt::upstream_version(version)
        }
    }
}

/// Adds `text` to `install` unless it is listed already.
pub(super) fn add_request(install: &mut Vec<String>, text: String) {
    if !install.contains(&text) {
        install.push(text);
    }
}

impl PackageSourceRequest {
    /// URL and suite, for messages.
    pub(super) fn describe(&self) -> String {
        format!("{} {}", self.url, self.suite).trim_end().to_owned()
    }
}

impl fmt::Display for PackageSourceRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            url,
            suite,
            components,
            targets,
            keys,
            codename,
            check_valid_until,
            mirrors,
            hosts,
            module_hotfixes,
        } = self;
        let targets = targets
            .iter()
            .map(|target| format!(" with {target}"))
            .collect::<String>();
        write!(
            f,
            "{url} {suite} {}{targets} by {keys}",
            components.join(" ")
        )?;
        if let Some(codename) = codename {
            write!(f, " as {codename}")?;
        }
        if !check_valid_until {
            write!(f, ", also expired")?;
        }
        if !hosts.is_empty() {
            write!(f, ", also from {}", hosts.join(" "))?;
        }
        if *module_hotfixes {
            write!(f, ", with hotfixes of modules")?;
        }
        match mirrors {
            Some(MirrorsRequest::Metalink(url)) => write!(f, " with the metalink {url}"),
            Some(MirrorsRequest::List(url)) => write!(f, " with the mirror list {url}"),
            None => Ok(()),
        }
    }
}
