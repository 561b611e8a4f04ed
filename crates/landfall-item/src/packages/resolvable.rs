//! How a request for a set of packages is merged, resolved and updated.

use super::locked::{LockedPackageSet, PackageSource};
use super::request::{
    MachineBase, OfferedIndex, PackageSetRequest, PackageSourceRequest, add_request,
};
use crate::field_conflict::FieldConflict;
use crate::{
    Exclusion, ItemRequest, PinPolicy, ResolvableRequest, ResolveError, ResolveOutcome, Resolver,
    UpdatableRequest,
};

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
            // how packages are served is a decision of the manifest, so upstream is not asked
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
                    cause.followed_by(&"it was locked for another text of its entry"),
                ),
                (old, _) => ResolveOutcome::Failed(old.cloned(), cause),
            },
        }
    }
}

impl UpdatableRequest for PackageSetRequest {}

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

/// Resolves `wish`. Returns the set, and notes for people.
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

/// Notes which metadata of `set` will be available only in this run's store once its repository
/// changes.
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

/// Whether all sources of `old` are also sources of `wish`, with the keys that signed them.
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

/// Whether `old` satisfies `wish`.
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
