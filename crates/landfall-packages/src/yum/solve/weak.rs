//! Weak dependencies: installs packages that are recommended, or that supplement installed ones.

use super::base_rules::obsoletes;
use super::formula::{Literal, installed, package};
use super::package_chooser::PackageChooser;
use super::sat::SolverStop;
use crate::yum::pool::{PackageId, RpmRelationKind};
use crate::yum::relation::RpmRelation;
use crate::yum::rich::RichDependency;
use std::collections::HashSet;

impl<'p> PackageChooser<'p> {
    /// Installs recommended and supplementing packages. Returns whether there was anything to
    /// decide.
    pub(super) fn decide_weak(&mut self) -> Result<bool, SolverStop> {
        let pool = self.rules.pool;
        let reached = self.rules.reached.clone();
        self.sat.spend(pool.count())?;
        // recommendations of the base were decided when it was installed
        let recommending: Vec<PackageId> = self
            .sat
            .trail()
            .iter()
            .filter(|literal| **literal > 0)
            .map(|literal| package(*literal))
            .filter(|id| !self.rules.is_base(*id))
            .collect();
        // candidates are collected in the order of package ids, but installed below in the order
        // of decisions
        let mut by_number = recommending.clone();
        by_number.sort_unstable();
        let mut all: Vec<PackageId> = Vec::new();
        for id in by_number {
            for relation in pool.relations(id, RpmRelationKind::Recommends) {
                all.extend(self.recommended(relation));
            }
        }
        let mut supplementing: Vec<PackageId> = pool
            .ids()
            .filter(|id| reached[id.0 as usize] && self.sat.value(installed(*id)) == 0)
            .collect();
        let mut policy = self.policy();
        // a package is not a candidate if any version of it is installed
        supplementing.retain(|id| {
            policy.newly_supplements(*id)
                && !pool
                    .by_name(RpmRelation::any(pool.name(*id)))
                    .into_iter()
                    .any(|other| policy.has(other))
        });
        all.extend(&supplementing);
        all.retain(|id| !self.unwanted.contains(id));
        self.remove_obsoleted(&mut all);
        let mut seen = HashSet::new();
        all.retain(|id| seen.insert(*id));
        // a single package needs no ordering
        if all.len() <= 1 {
            let Some(only) = all.first() else {
                return Ok(false);
            };
            return self.decide(installed(*only)).map(|_| true);
        }
        // prunes all candidates together, so that only the best version of each name is installed
        self.policy().prune_to_best(&mut all);
        supplementing.retain(|id| all.contains(id));
        if supplementing.len() > 1 {
            self.policy().order_supplementing(&mut supplementing);
        }
        // if a decision had to be reverted, the caller starts over
        for id in supplementing {
            if self.sat.value(installed(id)) == 0 && !self.decide(installed(id))? {
                return Ok(true);
            }
        }
        for id in recommending {
            for relation in pool.relations(id, RpmRelationKind::Recommends) {
                let mut candidates = self.recommended(relation);
                candidates.retain(|id| all.contains(id));
                if !candidates.is_empty() && !self.install(candidates)? {
                    return Ok(true);
                }
            }
        }
        Ok(true)
    }

    /// Returns the undecided packages that would satisfy a recommendation; an empty list if the
    /// recommendation is satisfied or cannot be satisfied. Each clause of a rich recommendation is
    /// a recommendation of its own, once the packages of its condition are installed.
    fn recommended(&mut self, relation: RpmRelation<'p>) -> Vec<PackageId> {
        let clauses: Vec<Vec<Literal>> = if RichDependency::is_rich(relation.name) {
            self.rules
                .formula(&relation)
                .and_then(|formula| formula.clauses(true))
                .unwrap_or_default()
        } else {
            let providers = self.rules.providers(relation);
            vec![providers.iter().map(|id| installed(*id)).collect()]
        };
        // a recommendation that cannot be satisfied completely is ignored
        if clauses.iter().any(Vec::is_empty) {
            return Vec::new();
        }
        let unsatisfied = clauses.iter().filter(|clause| {
            clause.iter().all(|literal| {
                let value = self.sat.value(*literal);
                if *literal > 0 { value <= 0 } else { value < 0 }
            })
        });
        let mut found: Vec<PackageId> = Vec::new();
        for literal in unsatisfied.flatten().filter(|literal| **literal > 0) {
            let id = package(*literal);
            if self.sat.value(*literal) == 0 && !found.contains(&id) {
                found.push(id);
            }
        }
        found
    }

    /// Removes the candidates that a kept package of the base obsoletes.
    fn remove_obsoleted(&self, candidates: &mut Vec<PackageId>) {
        let pool = self.rules.pool;
        let kept: Vec<PackageId> = pool
            .ids()
            .filter(|id| self.rules.is_base(*id) && self.sat.value(installed(*id)) > 0)
            .collect();
        candidates.retain(|id| !kept.iter().any(|keeper| obsoletes(pool, *keeper, *id)));
    }
}
