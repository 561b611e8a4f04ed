//! The scores by which apt's problem resolver decides between conflicting packages. They depend on
//! the priority of a package and on the packages that depend on it.

use super::marking::{MarkedVersion, Marking};
use super::offer::{AptPackageId, AptVersionId, RelationKind};

/// The scores of the priorities, from `required` to `extra`. All scores in this file are those of
/// apt.
const PRIORITIES: [i64; 5] = [3, 2, 1, -1, -2];
/// The score of essential and protected packages before scores are inherited.
const ESSENTIAL: i64 = 100;
/// The score of installed packages that a source still offers.
const NOT_OBSOLETE: i64 = 1;
const REQUESTED: i64 = 10_000;
/// The additional score of essential and protected packages, which is not inherited.
const ESSENTIAL_AGAIN: i64 = 5_000;

impl Marking<'_, '_> {
    /// Returns the score of every package. Of two conflicting packages, apt keeps the one with the
    /// higher score.
    pub(super) fn scores(&self) -> Vec<i64> {
        let universe = self.universe;
        let mut scores = vec![0; self.states.len()];
        let planned: Vec<(AptPackageId, AptVersionId)> = self.planned_versions().collect();
        for (package, version) in &planned {
            scores[*package as usize] += self.own_score(*package, *version);
            let own = self.architecture(*version);
            let own_name = universe.packages[*package as usize].name;
            for relation in universe.relations_of(*version) {
                let points = match relation.kind {
                    RelationKind::PreDepends | RelationKind::Depends | RelationKind::Recommends => {
                        1
                    }
                    RelationKind::Conflicts | RelationKind::Breaks => -1,
                    RelationKind::Suggests => continue,
                };
                let mut scored: Vec<AptPackageId> = self
                    .matching(
                        std::slice::from_ref(relation),
                        *version,
                        MarkedVersion::Install,
                    )
                    .into_iter()
                    .map(|version| universe.offer_of(version).package)
                    .collect();
                // a relation without a version counts even if the package that it names is not
                // planned
                if relation.version.is_empty() {
                    // a package that conflicts with its own name does not conflict with itself
                    scored.extend(self.target(relation, own).filter(|target| {
                        !relation.is_negative()
                            || universe.packages[*target as usize].name != own_name
                    }));
                }
                scored.sort_unstable();
                scored.dedup();
                scored
                    .iter()
                    .for_each(|package| scores[*package as usize] += points);
            }
        }
        self.inherit_scores(&planned, &mut scores);
        // these scores are added last, so that dependencies do not inherit them
        for package in 0..scores.len() as AptPackageId {
            let score = &mut scores[package as usize];
            if self.states[package as usize].is_requested {
                *score += REQUESTED;
            }
            if universe.is_vital(package) {
                *score += ESSENTIAL_AGAIN;
            }
        }
        scores
    }

    /// Returns the score of a package without its relations.
    fn own_score(&self, package: AptPackageId, version: AptVersionId) -> i64 {
        let universe = self.universe;
        let offer = universe.offer_of(version);
        // a version that no source offers has the lowest priority
        let priority = if offer.source.is_some() {
            usize::from(offer.priority)
        } else {
            PRIORITIES.len()
        };
        let mut score = PRIORITIES[priority.clamp(1, PRIORITIES.len()) - 1];
        if universe.is_vital(package) {
            score += ESSENTIAL;
        }
        let state = &self.states[package as usize];
        if state.current.is_some()
            && state
                .candidate
                .is_some_and(|candidate| universe.offer_of(candidate).source.is_some())
        {
            score += NOT_OBSOLETE;
        }
        score
    }

    /// Adds to each package the positive scores of the packages that depend on its name. The
    /// score that a name inherited is then added to the packages that provide it.
    fn inherit_scores(&self, planned: &[(AptPackageId, AptVersionId)], scores: &mut [i64]) {
        let universe = self.universe;
        // the scores before inheritance, so that the order of the packages does not matter
        let old = scores.to_vec();
        for (package, version) in planned {
            let from = old[*package as usize];
            let own = self.architecture(*version);
            for relation in universe.relations_of(*version).iter().filter(|_| from > 0) {
                let is_dependency =
                    !relation.is_negative() && relation.kind != RelationKind::Suggests;
                let target = self.target(relation, own).filter(|_| is_dependency);
                if let Some(target) =
                    target.filter(|target| self.planned_version(*target).is_some())
                {
                    scores[target as usize] += from;
                }
            }
        }
        for package in 0..old.len() {
            let transfer = (scores[package] - old[package]).abs();
            if transfer == 0 {
                continue;
            }
            let mut providers: Vec<AptPackageId> = universe
                .providers_of(universe.packages[package].name)
                .filter(|provide| self.state_of(provide.by).install == Some(provide.by))
                .map(|provide| universe.offer_of(provide.by).package)
                .collect();
            providers.sort_unstable();
            providers.dedup();
            providers
                .iter()
                .for_each(|provider| scores[*provider as usize] += transfer);
        }
    }
}
