//! How much a package counts when apt settles conflicts: by its priority, and by what depends on
//! it.

use super::marking::{MarkedVersion, Marking};
use super::offer::{AptPackageId, AptVersionId, RelationKind};

/// What apt adds for each priority, from required to extra.
const PRIORITIES: [i64; 5] = [3, 2, 1, -1, -2];
const ESSENTIAL: i64 = 100;
const NOT_OBSOLETE: i64 = 1;
const ASKED: i64 = 10_000;
const ESSENTIAL_AGAIN: i64 = 5_000;

impl Marking<'_, '_> {
    /// The score of every package. apt keeps what has the higher one.
    pub(super) fn scores(&self) -> Vec<i64> {
        let universe = self.universe;
        let mut scores = vec![0; self.states.len()];
        let there: Vec<(AptPackageId, AptVersionId)> = self.there().collect();
        for (package, version) in &there {
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
                let is_self = |package: AptPackageId| {
                    relation.is_negative() && universe.packages[package as usize].name == own_name
                };
                let mut meant: Vec<AptPackageId> = self
                    .matching(
                        std::slice::from_ref(relation),
                        *version,
                        MarkedVersion::Install,
                    )
                    .into_iter()
                    .map(|version| universe.offer_of(version).package)
                    .collect();
                // without a bound, what is not there counts too
                if relation.version.is_empty() {
                    meant.extend(
                        self.target(relation, own)
                            .filter(|target| !is_self(*target)),
                    );
                }
                meant.sort_unstable();
                meant.dedup();
                meant
                    .iter()
                    .for_each(|package| scores[*package as usize] += points);
            }
        }
        self.inherit(&there, &mut scores);
        for package in 0..scores.len() as AptPackageId {
            let score = &mut scores[package as usize];
            if self.states[package as usize].is_asked {
                *score += ASKED;
            }
            if universe.is_vital(package) {
                *score += ESSENTIAL_AGAIN;
            }
        }
        scores
    }

    /// What counts of a package by itself.
    fn own_score(&self, package: AptPackageId, version: AptVersionId) -> i64 {
        let universe = self.universe;
        let is_offered = |version: AptVersionId| universe.offer_of(version).source.is_some();
        let offer = universe.offer_of(version);
        let priority = if is_offered(version) {
            usize::from(offer.priority)
        } else {
            PRIORITIES.len()
        };
        let mut score = PRIORITIES[priority.clamp(1, PRIORITIES.len()) - 1];
        if universe.is_vital(package) {
            score += ESSENTIAL;
        }
        let state = &self.states[package as usize];
        if state.current.is_some() && state.candidate.is_some_and(is_offered) {
            score += NOT_OBSOLETE;
        }
        score
    }

    /// Adds to each package the positive scores of those that need it by its name, and what it got
    /// so to those that stand for its name too.
    fn inherit(&self, there: &[(AptPackageId, AptVersionId)], scores: &mut [i64]) {
        let universe = self.universe;
        let old = scores.to_vec();
        for (package, version) in there {
            let from = old[*package as usize];
            let own = self.architecture(*version);
            for relation in universe.relations_of(*version).iter().filter(|_| from > 0) {
                let is_need = !relation.is_negative() && relation.kind != RelationKind::Suggests;
                let target = self.target(relation, own).filter(|_| is_need);
                if let Some(target) = target.filter(|target| self.installed(*target).is_some()) {
                    scores[target as usize] += from;
                }
            }
        }
        for package in 0..old.len() {
            let transfer = (scores[package] - old[package]).abs();
            if transfer == 0 {
                continue;
            }
            let provided = universe.providers_of(universe.packages[package].name);
            let there =
                provided.filter(|provide| self.state_of(provide.by).install == Some(provide.by));
            let mut providers: Vec<AptPackageId> = there
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
