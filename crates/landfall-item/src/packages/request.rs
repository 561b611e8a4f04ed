//! Packages as a manifest asks for them.

use super::locked::{LockedPackageSet, PackageSource};
use crate::field_conflict::FieldConflict;
use crate::version_source::VersionSource;
use crate::{
    Exclusion, ItemRequest, PinPolicy, ResolvableRequest, ResolveError, ResolveOutcome, Resolver,
    UpdatableRequest,
};
use landfall_model::Digest;
use landfall_model::document::SourceLocation;
use landfall_model::sign::OpenPgpKeys;
use landfall_packages::apt;
use landfall_packages::yum::Pin;
use schemars::JsonSchema;
use serde::Deserialize;
use std::fmt;
use std::sync::Arc;

/// What a kind of machine is to install, and from where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageSetRequest {
    /// Its name in the lock.
    pub name: String,
    /// Where it comes from, in the order of preference.
    pub sources: Vec<PackageSourceRequest>,
    /// The architectures, the native one first.
    pub architectures: Vec<String>,
    /// What is installed, as `apt-get install` or `dnf install` takes it, each once: for apt in the
    /// order of the manifest, which its choice follows, and for dnf sorted.
    pub install: Vec<String>,
    /// Whether what is recommended is installed too.
    pub recommends: bool,
    /// Under whose metadata they are offered.
    pub index: OfferedIndex,
    /// What the machines have; several where there are several kinds of them. Without one nobody
    /// says.
    pub bases: Vec<MachineBase>,
    /// The position of the entry in the manifest.
    pub at: SourceLocation,
}

/// A suite of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageSourceRequest {
    /// The URL of the repository, without a slash at its end.
    pub url: String,
    /// The suite; it ends with a slash where the repository is flat. Empty for yum.
    pub suite: String,
    /// The `Codename` or `Suite` that its release must have in place of the name of the suite.
    pub codename: Option<String>,
    /// The components; none in a flat repository.
    pub components: Vec<String>,
    /// Which indexes are carried besides those of packages, by the names of apt's targets, sorted;
    /// none for yum.
    pub targets: Vec<String>,
    /// Who may have signed it.
    pub keys: OpenPgpKeys,
    /// The list of mirrors from which metadata and packages are fetched.
    pub mirrors: Option<MirrorsRequest>,
}

/// What names the mirrors of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MirrorsRequest {
    /// The URL of a metalink, which also has the digest that the list of the indexes must have.
    Metalink(String),
    /// The URL of a plain list.
    List(String),
}

/// Under whose metadata packages are offered at the far side.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OfferedIndex {
    /// What the repositories signed, unchanged: machines see all their packages.
    #[default]
    Signed,
    /// Metadata of what is carried alone, which the site signs.
    Trimmed,
}

impl fmt::Display for OfferedIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OfferedIndex::Signed => "signed",
            OfferedIndex::Trimmed => "trimmed",
        })
    }
}

/// What a machine has before anything is installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MachineBase {
    /// Nothing is installed.
    None,
    /// What debootstrap makes a minimal root of.
    Minimal,
    /// What debootstrap installs by default, and all of the priority `standard`.
    Standard,
    /// What a dpkg status file says.
    Status(Arc<str>),
    /// The output of `rpm -qa`.
    Rpms(Arc<str>),
}

impl fmt::Display for MachineBase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MachineBase::None => f.write_str("none"),
            MachineBase::Minimal => f.write_str("minimal"),
            MachineBase::Standard => f.write_str("standard"),
            MachineBase::Status(text) => write!(f, "status {}", Digest::sha256(text.as_bytes())),
            MachineBase::Rpms(text) => write!(f, "rpms {}", Digest::sha256(text.as_bytes())),
        }
    }
}

impl PackageSetRequest {
    /// Whether it comes from repositories of yum.
    pub fn is_yum(&self) -> bool {
        self.name.starts_with("yum:")
    }

    /// What upstream calls the version of a package: without epoch and revision.
    pub fn upstream_version<'v>(&self, version: &'v str) -> &'v str {
        if self.is_yum() {
            Pin::upstream(version)
        } else {
            apt::upstream_version(version)
        }
    }
}

/// Adds `text` to `install`, unless it is there.
pub(super) fn add_request(install: &mut Vec<String>, text: String) {
    if !install.contains(&text) {
        install.push(text);
    }
}

impl PackageSourceRequest {
    /// Its URL and suite, for people.
    pub(super) fn place(&self) -> String {
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
            ..
        } = self;
        let targets = targets
            .iter()
            .map(|target| format!(" with {target}"))
            .collect::<String>();
        write!(
            f,
            "{url} {suite} {}{targets} by {keys}",
            components.join(" ")
        )
    }
}

impl ItemRequest for PackageSetRequest {
    type Name = String;

    fn name(&self) -> &String {
        &self.name
    }

    fn is_excluded_by(&self, exclusion: &Exclusion) -> bool {
        matches!(exclusion, Exclusion::Url(name) if *name == self.name)
    }

    fn name_like(&self, exclusion: &Exclusion) -> Option<String> {
        matches!(exclusion, Exclusion::Url(_)).then(|| self.name.clone())
    }

    fn merge(&mut self, other: &PackageSetRequest) -> Result<(), FieldConflict> {
        let sources = |all: &Vec<PackageSourceRequest>| {
            all.iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(", ")
        };
        let words = |all: &Vec<String>| all.join(", ");
        let bases = |all: &Vec<MachineBase>| {
            all.iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(", ")
        };
        const HELP: &str = "(give one of them a `name`)";
        let with_help = |contradiction: FieldConflict| FieldConflict {
            second: format!("{} {HELP}", contradiction.second),
            ..contradiction
        };
        FieldConflict::check_equal("list of sources", &self.sources, &other.sources, sources)
            .and_then(|()| {
                FieldConflict::check_equal(
                    "architectures",
                    &self.architectures,
                    &other.architectures,
                    words,
                )
            })
            .and_then(|()| FieldConflict::check_equal("base", &self.bases, &other.bases, bases))
            .and_then(|()| {
                FieldConflict::check_equal(
                    "choice of recommends",
                    &self.recommends,
                    &other.recommends,
                    bool::to_string,
                )
            })
            .and_then(|()| {
                FieldConflict::check_equal(
                    "index",
                    &self.index,
                    &other.index,
                    OfferedIndex::to_string,
                )
            })
            .map_err(with_help)?;
        for text in &other.install {
            add_request(&mut self.install, text.clone());
        }
        if self.is_yum() {
            self.install.sort();
        }
        Ok(())
    }
}

impl ResolvableRequest for PackageSetRequest {
    type Item = LockedPackageSet;

    async fn resolve(
        &self,
        resolver: &Resolver,
        old: Option<&LockedPackageSet>,
        pins: PinPolicy,
    ) -> ResolveOutcome<LockedPackageSet> {
        let old_same = old.filter(|old| is_what(old, self));
        if let (Some(old), PinPolicy::Keep | PinPolicy::Referrers) = (old_same, pins) {
            // who offers it how is nothing that upstream says
            return if old.index == self.index {
                ResolveOutcome::Kept(old.clone())
            } else {
                ResolveOutcome::New(LockedPackageSet {
                    index: self.index,
                    ..old.clone()
                })
            };
        }
        let found = chosen(resolver, self, old.filter(|_| pins != PinPolicy::Recall)).await;
        let told = |(set, notes): (LockedPackageSet, Vec<String>)| {
            notes.iter().for_each(|note| resolver.progress().note(note));
            set
        };
        match found.map(told) {
            Ok(set) if old == Some(&set) => ResolveOutcome::Kept(set),
            Ok(set) => {
                note_replaced(resolver, &set);
                ResolveOutcome::New(set)
            }
            Err(cause) => match (old_same, old) {
                (Some(old), _) if cause.is_gone => ResolveOutcome::Gone(old.clone()),
                (None, Some(old)) if is_trusted(old, self) => ResolveOutcome::Failed(
                    Some(old.clone()),
                    cause.then(&"it was locked for another text of its entry"),
                ),
                (old, _) => ResolveOutcome::Failed(old.cloned(), cause),
            },
        }
    }
}

impl UpdatableRequest for PackageSetRequest {
    fn version_source(&self) -> Option<VersionSource> {
        Some(VersionSource::machine(self.clone()))
    }
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
        chosen(resolver, self, old).await.map(drop)
    }
}

/// What is locked for `wish`, and what people are told of it.
async fn chosen(
    resolver: &Resolver,
    wish: &PackageSetRequest,
    old: Option<&LockedPackageSet>,
) -> Result<(LockedPackageSet, Vec<String>), ResolveError> {
    if wish.is_yum() {
        super::yum::resolve(resolver, wish, old).await
    } else {
        super::apt::resolve(resolver, wish, old).await
    }
}

/// Says which metadata of `set` only this run's store has, once its repository has changed.
fn note_replaced(resolver: &Resolver, set: &LockedPackageSet) {
    let lasting = |source: &PackageSource| {
        source.snapshot.is_some() || source.replaced_files().next().is_none()
    };
    for source in set.sources.iter().filter(|source| !lasting(source)) {
        resolver.note_once(&format!(
            "{} replaces its metadata when it changes, and names no snapshots: pull with the \
             store of this lock \
             (another one can until then)",
            source.url
        ));
    }
}

/// Whether all that `old` has is of sources that `wish` names too, with the keys that signed them.
fn is_trusted(old: &LockedPackageSet, wish: &PackageSetRequest) -> bool {
    old.sources.iter().all(|old| {
        let mut same = wish
            .sources
            .iter()
            .filter(|wish| wish.url == old.url && wish.suite == old.suite);
        same.any(|wish| is_signer(wish, old))
    })
}

/// Whether a key of `wish` signed `old`.
fn is_signer(wish: &PackageSourceRequest, old: &PackageSource) -> bool {
    wish.keys.has(&old.signed_by) || wish.keys.to_string() == old.signed_by
}

/// Whether `old` is what `wish` asks for.
fn is_what(old: &LockedPackageSet, wish: &PackageSetRequest) -> bool {
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
