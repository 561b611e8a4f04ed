//! Versions of packages: those that the sources of their machine offer, each source asked once.

use super::state::Run;
use super::versions::{Candidate, Candidates};
use crate::item::{Cause, OfferedVersion, PinnedPackage, WantedPackages, newer_packages};
use crate::manifest::{Slot, Versions};
use std::collections::{BTreeMap, BTreeSet};

impl Run<'_> {
    /// What the slots of packages may move to, by their positions in `slots`.
    pub(super) async fn find_packages(&self, slots: &[Slot]) -> BTreeMap<usize, Candidates> {
        let mut candidates = BTreeMap::new();
        let numbered: Vec<(usize, &Slot)> = slots.iter().enumerate().collect();
        for entry in numbered.chunk_by(|(_, one), (_, other)| one.is_beside(other)) {
            let Some(Ok(Versions::Packages(machine))) = entry.first().map(|(_, slot)| &slot.versions) else {
                continue;
            };
            let pins: BTreeSet<PinnedPackage> = entry.iter().map(|(_, slot)| pin(slot)).collect();
            let found = newer_packages(self.asker.resolver, machine, pins).await;
            for (at, slot) in entry {
                let of_slot = match &found {
                    Ok(found) => found.get(&pin(slot)).cloned().unwrap_or_else(|| Ok(Vec::new())),
                    Err(cause) => {
                        candidates.insert(*at, Err(cause.clone()));
                        continue;
                    }
                };
                candidates.insert(
                    *at,
                    of_slot.and_then(|found| allowed(slot, machine, found)).map_err(Cause::from),
                );
            }
        }
        candidates
    }
}

fn pin(slot: &Slot) -> PinnedPackage {
    (slot.name.clone(), slot.current.clone())
}

/// Those of `found` that the policy allows.
fn allowed(
    slot: &Slot,
    machine: &WantedPackages,
    found: Vec<OfferedVersion>,
) -> Result<Vec<Candidate>, String> {
    let current = (slot.current.as_str(), machine.upstream_version(&slot.current));
    let allowed = slot.policy.allowed_packages(current, found, |one| {
        (one.version.as_str(), machine.upstream_version(&one.version))
    });
    let candidates = allowed.map_err(|error| error.to_string())?.into_iter();
    Ok(candidates.map(|one| Candidate { version: one.version, source: Some(one.source) }).collect())
}
