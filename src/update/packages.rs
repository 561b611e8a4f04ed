//! Finds newer versions of pinned packages in the sources of their machine.

use super::state::UpdateRun;
use super::versions::{VersionCandidate, VersionCandidates};
use landfall_item::manifest::UpdatableVersion;
use landfall_item::{
    OfferedVersion, PackageVersions, PinnedPackage, ResolveError, VersionSource, newer_packages,
};
use landfall_model::PackageVersion;
use std::collections::{BTreeMap, BTreeSet};

impl UpdateRun<'_> {
    /// The versions to which the slots of packages may move, by the positions of the slots in
    /// `slots`.
    pub(super) async fn find_packages(
        &self,
        slots: &[UpdatableVersion],
    ) -> BTreeMap<usize, VersionCandidates> {
        let mut candidates = BTreeMap::new();
        let numbered: Vec<(usize, &UpdatableVersion)> = slots.iter().enumerate().collect();
        // All slots of one entry belong to one machine, so its indexes are searched once for all.
        for entry in numbered.chunk_by(|(_, one), (_, other)| one.is_beside(other)) {
            let package_slots: Vec<(usize, &UpdatableVersion, &PackageVersions)> =
                entry.iter().filter_map(as_package_slot).collect();
            let Some((.., first)) = package_slots.first() else {
                continue;
            };
            let pins: BTreeSet<PinnedPackage> = package_slots
                .iter()
                .map(|(_, slot, versions)| pin(slot, versions))
                .collect();
            let found = newer_packages(self.lookups.resolver, &first.machine, pins).await;
            for (at, slot, versions) in package_slots {
                let newer = found.clone().and_then(|mut found| {
                    let newer = found
                        .remove(&pin(slot, versions))
                        .unwrap_or_else(|| Ok(Vec::new()));
                    newer
                        .and_then(|newer| allowed(slot, versions, newer))
                        .map_err(ResolveError::from)
                });
                candidates.insert(at, newer);
            }
        }
        candidates
    }
}

/// The slot with its sources, if the slot is the version of a package.
fn as_package_slot<'s>(
    (at, slot): &(usize, &'s UpdatableVersion),
) -> Option<(usize, &'s UpdatableVersion, &'s PackageVersions)> {
    match &slot.versions {
        Ok(VersionSource::Packages(versions)) => Some((*at, *slot, &**versions)),
        _ => None,
    }
}

/// The whole package version. The slot may be only a part of it, such as the variable in
/// `kubelet=${kubernetes}-1.1`.
fn current(slot: &UpdatableVersion, versions: &PackageVersions) -> String {
    [&*versions.before, &*slot.current, &*versions.after].concat()
}

fn pin(slot: &UpdatableVersion, versions: &PackageVersions) -> PinnedPackage {
    PinnedPackage {
        name: versions.package.clone(),
        version: current(slot, versions),
    }
}

/// The versions in `offered` that the policy allows and that keep the text around the slot.
fn allowed(
    slot: &UpdatableVersion,
    versions: &PackageVersions,
    offered: Vec<OfferedVersion>,
) -> Result<Vec<VersionCandidate>, String> {
    let whole = current(slot, versions);
    let current = PackageVersion {
        full: &whole,
        upstream: versions.machine.upstream_version(&whole),
    };
    let allowed = slot
        .policy
        .allowed_packages(current, offered, |one| PackageVersion {
            full: &one.version,
            upstream: versions.machine.upstream_version(&one.version),
        });
    // Only the slot can be edited: with another revision, `kubelet=${kubernetes}-1.1` would name a
    // version that no source offers.
    let candidates = allowed
        .map_err(|error| error.to_string())?
        .into_iter()
        .filter_map(|one| {
            let version = one
                .version
                .strip_prefix(&*versions.before)?
                .strip_suffix(&*versions.after)?
                .to_owned();
            Some(VersionCandidate {
                version,
                source: Some(one.source),
            })
        });
    Ok(candidates.collect())
}
