//! Versions of packages: those that the sources of their machine offer, each source asked once.

use super::state::UpdateRun;
use super::versions::{Candidates, VersionCandidate};
use landfall_item::manifest::UpdatableVersion;
use landfall_item::{
    OfferedVersion, PackageVersions, PinnedPackage, ResolveError, VersionSource, newer_packages,
};
use landfall_model::PackageVersion;
use std::collections::{BTreeMap, BTreeSet};

impl UpdateRun<'_> {
    /// What the slots of packages may move to, by their positions in `slots`.
    pub(super) async fn find_packages(
        &self,
        slots: &[UpdatableVersion],
    ) -> BTreeMap<usize, Candidates> {
        let mut candidates = BTreeMap::new();
        let numbered: Vec<(usize, &UpdatableVersion)> = slots.iter().enumerate().collect();
        for entry in numbered.chunk_by(|(_, one), (_, other)| one.is_beside(other)) {
            let wanted: Vec<(usize, &UpdatableVersion, &PackageVersions)> =
                entry.iter().filter_map(wanted).collect();
            let Some((.., first)) = wanted.first() else {
                continue;
            };
            let pins: BTreeSet<PinnedPackage> =
                wanted.iter().map(|(_, slot, of)| pin(slot, of)).collect();
            let found = newer_packages(self.asker.resolver, &first.machine, pins).await;
            for (at, slot, of) in wanted {
                let newer = found.clone().and_then(|mut found| {
                    let newer = found
                        .remove(&pin(slot, of))
                        .unwrap_or_else(|| Ok(Vec::new()));
                    newer
                        .and_then(|newer| allowed(slot, of, newer))
                        .map_err(ResolveError::from)
                });
                candidates.insert(at, newer);
            }
        }
        candidates
    }
}

/// The slot and its sources, where it is the version of a package.
fn wanted<'s>(
    (at, slot): &(usize, &'s UpdatableVersion),
) -> Option<(usize, &'s UpdatableVersion, &'s PackageVersions)> {
    match &slot.versions {
        Ok(VersionSource::Packages(of)) => Some((*at, *slot, &**of)),
        _ => None,
    }
}

/// The whole version that stands there.
fn current(
    slot: &UpdatableVersion,
    PackageVersions {
        around: (before, after),
        ..
    }: &PackageVersions,
) -> String {
    [before, slot.current.as_str(), after].concat()
}

fn pin(slot: &UpdatableVersion, of: &PackageVersions) -> PinnedPackage {
    (of.package.clone(), current(slot, of))
}

/// Those of `found` that the policy allows, and that differ from what stands there in the version
/// that moves alone.
fn allowed(
    slot: &UpdatableVersion,
    of: &PackageVersions,
    found: Vec<OfferedVersion>,
) -> Result<Vec<VersionCandidate>, String> {
    let (whole, (before, after)) = (current(slot, of), &of.around);
    let standing = PackageVersion {
        full: &whole,
        upstream: of.machine.upstream_version(&whole),
    };
    let allowed = slot
        .policy
        .allowed_packages(standing, found, |one| PackageVersion {
            full: &one.version,
            upstream: of.machine.upstream_version(&one.version),
        });
    let own = |one: OfferedVersion| {
        let version = one
            .version
            .strip_prefix(before.as_str())?
            .strip_suffix(after.as_str())?
            .to_owned();
        Some(VersionCandidate {
            version,
            source: Some(one.source),
        })
    };
    Ok(allowed
        .map_err(|error| error.to_string())?
        .into_iter()
        .filter_map(own)
        .collect())
}
