//! What is installed because it is recommended, or because it supplements what is installed.

use super::choose::PackageChooser;
use super::formula::{Literal, installed, package};
use super::sat::SolverStop;
use crate::yum::pool::{PackageId, RpmRelationKind};
use crate::yum::relation::RpmRelation;
use crate::yum::rich::RichDependency;
use std::collections::HashSet;

impl<'p> PackageChooser<'p> {
    /// Installs what is recommended and what supplements. Whether there was anything to decide.
    pub(super) fn decide_weak(&mut self) -> Result<bool, SolverStop> {
        let (pool, reached) = (self.rules.pool, self.rules.reached.clone());
        self.sat.spend(pool.count())?;
        let is_installed = |literal: &&Literal| **literal > 0;
        let order: Vec<PackageId> = self
            .sat
            .trail()
            .iter()
            .filter(is_installed)
            .map(|literal| package(*literal))
            .collect();
        let mut recommending: Vec<PackageId> = order
            .iter()
            .copied()
            .filter(|id| !self.rules.is_base(*id))
            .collect();
        let mut by_number = recommending.clone();
        by_number.sort_unstable();
        let mut all: Vec<PackageId> = Vec::new();
        for id in by_number {
            for relation in pool.relations(id, RpmRelationKind::Recommends) {
                all.extend(self.recommended(relation));
            }
        }
        let is_open =
            |id: &PackageId| reached[id.0 as usize] && self.sat.value(installed(*id)) == 0;
        let mut supplementing: Vec<PackageId> = pool.ids().filter(is_open).collect();
        let mut policy = self.policy();
        supplementing.retain(|id| {
            policy.newly_supplements(*id)
                && !pool
                    .by_name(RpmRelation::any(pool.name(*id)))
                    .into_iter()
                    .any(|other| policy.has(other))
        });
        all.extend(&supplementing);
        all.retain(|id| !self.unwanted.contains(id));
        self.without_replaced(&mut all);
        let mut seen = HashSet::new();
        all.retain(|id| seen.insert(*id));
        if all.len() <= 1 {
            let Some(only) = all.first() else {
                return Ok(false);
            };
            return self.decide(installed(*only)).map(|_| true);
        }
        self.policy().prune_to_best(&mut all);
        supplementing.retain(|id| all.contains(id));
        if supplementing.len() > 1 {
            self.policy().order_supplementing(&mut supplementing);
        }
        for id in supplementing {
            if self.sat.value(installed(id)) == 0 && !self.decide(installed(id))? {
                return Ok(true);
            }
        }
        for id in recommending.drain(..) {
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

    /// The open packages that would fulfil a recommendation; none where it is fulfilled. In a rich
    /// one, each clause is a recommendation of its own, once the packages that it depends on are
    /// installed.
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
        // what cannot be fulfilled as a whole is not fulfilled in part
        if clauses.iter().any(Vec::is_empty) {
            return Vec::new();
        }
        let is_wanted = |clause: &&Vec<Literal>| {
            clause.iter().all(|literal| {
                let value = self.sat.value(*literal);
                if *literal > 0 { value <= 0 } else { value < 0 }
            })
        };
        let mut found: Vec<PackageId> = Vec::new();
        for literal in clauses
            .iter()
            .filter(is_wanted)
            .flatten()
            .filter(|literal| **literal > 0)
        {
            let id = package(*literal);
            if self.sat.value(*literal) == 0 && !found.contains(&id) {
                found.push(id);
            }
        }
        found
    }

    /// Leaves out what a package that the machine has, and keeps, says that it replaces.
    fn without_replaced(&self, candidates: &mut Vec<PackageId>) {
        let pool = self.rules.pool;
        let kept = pool
            .ids()
            .filter(|id| self.rules.is_base(*id) && self.sat.value(installed(*id)) > 0);
        let kept: Vec<PackageId> = kept.collect();
        candidates.retain(|id| {
            !kept
                .iter()
                .any(|keeper| super::kept::obsoletes(pool, *keeper, *id))
        });
    }
}
