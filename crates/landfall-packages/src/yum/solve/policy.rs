//! Which of several candidates is installed: libsolv's policy, as dnf uses it, since the dnf at the
//! far side chooses by it too.
//!
//! Its `policy.c` has the same steps by the same names.

use super::formula::{Formula, Literal, installed, package};
use super::kept::obsoletes;
use super::rules::Rules;
use crate::yum::pool::{PackageId, RpmRelationKind};
use crate::yum::relation::{RpmRelation, VersionSense};
use crate::yum::rich::RichDependency;
use crate::yum::version::Evr;
use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet};

/// What is installed so far, for preferences.
pub(super) struct Policy<'r, 'p> {
    rules: &'r mut Rules<'p>,
    is_installed: Vec<bool>,
    order: Vec<PackageId>,
}

impl<'r, 'p> Policy<'r, 'p> {
    /// With what `trail` has decided.
    pub(super) fn new(rules: &'r mut Rules<'p>, trail: &[Literal]) -> Policy<'r, 'p> {
        let order: Vec<PackageId> = trail
            .iter()
            .filter(|literal| **literal > 0)
            .map(|literal| package(*literal))
            .collect();
        let mut is_installed = vec![false; rules.pool.count()];
        order
            .iter()
            .for_each(|id| is_installed[id.0 as usize] = true);
        Policy {
            rules,
            is_installed,
            order,
        }
    }

    /// Leaves the candidates that are as good as the best, without an order.
    pub(super) fn prune(&mut self, candidates: &mut Vec<PackageId>) {
        self.prune_to_best(candidates);
        if candidates.len() > 1 {
            self.prune_to_recommended(candidates);
        }
    }

    /// Leaves the candidates that are as good as the best, the one to install first.
    pub(super) fn choose(&mut self, candidates: &mut Vec<PackageId>) {
        self.prune(candidates);
        if candidates.len() > 1 {
            self.reorder(candidates);
        }
    }

    /// Leaves the best architecture, the newest of each name, and those that no other replaces.
    pub(super) fn prune_to_best(&self, candidates: &mut Vec<PackageId>) {
        let (pool, architectures) = (self.rules.pool, self.rules.architectures);
        let rank = |id: &PackageId| architectures.rank(pool.arch(*id));
        let best = candidates.iter().filter_map(rank).min();
        candidates.retain(|id| rank(id).is_none_or(|own| Some(own) == best));
        if candidates.len() < 2 {
            return;
        }
        // a package for every machine is as good as one for the best architecture
        let worth = |id: &PackageId| rank(id).or(best);
        candidates.sort_by_key(|id| {
            (
                pool.name(*id),
                worth(id),
                pool.package(*id).source.is_some(),
                *id,
            )
        });
        let mut newest: Vec<PackageId> = Vec::new();
        for id in candidates.iter() {
            match newest
                .last_mut()
                .filter(|last| pool.name(**last) == pool.name(*id))
            {
                Some(last) if pool.compare(*last, *id) == Ordering::Less => *last = *id,
                Some(_) => {}
                None => newest.push(*id),
            }
        }
        *candidates = newest;
        self.prune_replaced(candidates);
    }

    /// Leaves out candidates that another one replaces, directly or through others. Those that
    /// replace each other stay.
    fn prune_replaced(&self, candidates: &mut Vec<PackageId>) {
        let pool = self.rules.pool;
        if !candidates.iter().any(|id| {
            pool.relations(*id, RpmRelationKind::Obsoletes)
                .next()
                .is_some()
        }) {
            return;
        }
        let all = candidates.clone();
        let reaches: Vec<Vec<bool>> = (0..all.len())
            .map(|from| {
                let mut reached = vec![false; all.len()];
                let mut queue = vec![from];
                while let Some(at) = queue.pop() {
                    for other in 0..all.len() {
                        if other != at && !reached[other] && obsoletes(pool, all[at], all[other]) {
                            reached[other] = true;
                            queue.push(other);
                        }
                    }
                }
                reached
            })
            .collect();
        let is_replaced =
            |at: usize| (0..all.len()).any(|from| reaches[from][at] && !reaches[at][from]);
        let mut at = 0..all.len();
        candidates.retain(|_| at.next().is_some_and(|at| !is_replaced(at)));
    }

    fn prune_to_recommended(&mut self, candidates: &mut Vec<PackageId>) {
        let is_base = |this: &Self, id: &PackageId| this.rules.is_base(*id);
        if candidates.iter().filter(|id| !is_base(self, id)).count() < 2 {
            return;
        }
        let recommended = self.wished(RpmRelationKind::Recommends);
        let is_weak: Vec<bool> = candidates
            .iter()
            .map(|id| {
                !is_base(self, id)
                    && (recommended.contains(id)
                        || self.is_beside(*id, RpmRelationKind::Supplements))
            })
            .collect();
        if is_weak.contains(&true) {
            let mut is_weak = is_weak.into_iter();
            candidates.retain(|id| is_weak.next() == Some(true) || self.rules.is_base(*id));
        }
    }

    fn reorder(&mut self, candidates: &mut Vec<PackageId>) {
        let pool = self.rules.pool;
        self.dislike_old_versions(candidates);
        self.sort_by_common_provides(candidates);
        let has_base = |id: &PackageId| {
            pool.by_name(RpmRelation::any(pool.name(*id)))
                .into_iter()
                .any(|other| self.rules.is_base(other))
        };
        candidates.sort_by_key(|id| Reverse(has_base(id)));
        self.prefer_suggested(candidates);
    }

    /// Orders packages that all supplement what is installed.
    pub(super) fn order_supplementing(&mut self, candidates: &mut Vec<PackageId>) {
        self.dislike_old_versions(candidates);
        self.sort_by_common_provides(candidates);
        self.prefer_suggested(candidates);
    }

    /// Brings those to the back that are offered in a newer version.
    fn dislike_old_versions(&self, candidates: &mut [PackageId]) {
        let pool = self.rules.pool;
        candidates.sort_by_key(|id| {
            let same = pool.by_name(RpmRelation::any(pool.name(*id)));
            let is_newer = |other: PackageId| {
                pool.package(other).arch == pool.package(*id).arch
                    && pool.compare(other, *id).is_gt()
            };
            pool.package(*id).source.is_some() && same.into_iter().any(is_newer)
        });
    }

    /// Brings those to the front that are suggested, or enhance what is installed; packages of the
    /// base too.
    fn prefer_suggested(&mut self, candidates: &mut [PackageId]) {
        let suggested = self.wished(RpmRelationKind::Suggests);
        let is_suggested: BTreeSet<PackageId> = candidates
            .iter()
            .copied()
            .filter(|id| {
                self.rules.is_base(*id)
                    || suggested.contains(id)
                    || self.is_beside(*id, RpmRelationKind::Enhances)
            })
            .collect();
        candidates.sort_by_key(|id| !is_suggested.contains(id));
    }

    /// Takes `packages` for installed, too.
    pub(super) fn assume(&mut self, packages: &[PackageId]) {
        packages
            .iter()
            .for_each(|id| self.is_installed[id.0 as usize] = true);
        self.order.extend(packages);
    }

    /// Brings those to the front that are recommended, and among equals those that are suggested.
    pub(super) fn prefer_wished(&mut self, candidates: &mut [PackageId]) {
        self.prefer_suggested(candidates);
        let recommended = self.wished(RpmRelationKind::Recommends);
        let is_recommended: BTreeSet<PackageId> = candidates
            .iter()
            .copied()
            .filter(|id| {
                self.rules.is_base(*id)
                    || recommended.contains(id)
                    || self.is_beside(*id, RpmRelationKind::Supplements)
            })
            .collect();
        candidates.sort_by_key(|id| !is_recommended.contains(id));
    }

    /// Brings those to the back that provide something in an older version than another candidate.
    fn sort_by_common_provides(&self, candidates: &mut Vec<PackageId>) {
        let pool = self.rules.pool;
        let mut by_name: BTreeMap<&str, Vec<(usize, &str)>> = BTreeMap::new();
        for (place, id) in candidates.iter().enumerate() {
            for relation in pool
                .relations(*id, RpmRelationKind::Provides)
                .filter(|relation| relation.sense == VersionSense::SAME)
            {
                // a hash is no version
                let is_hash = relation.evr.len() >= 4
                    && relation
                        .evr
                        .bytes()
                        .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
                if !is_hash {
                    by_name
                        .entry(relation.name)
                        .or_default()
                        .push((place, relation.evr));
                }
            }
        }
        let mut badness = vec![0; candidates.len()];
        for provided in by_name.values_mut() {
            provided.sort_by(|(_, a), (_, b)| Evr::parse(b).compare(Evr::parse(a)));
            let mut bad = 0;
            for (number, (place, evr)) in provided.iter().enumerate() {
                if let Some((before, newer)) = number.checked_sub(1).map(|before| provided[before])
                {
                    bad += usize::from(before != *place && is_really_newer(newer, evr));
                }
                badness[*place] += bad;
            }
        }
        let mut order: Vec<(usize, PackageId)> = badness
            .into_iter()
            .zip(candidates.iter().copied())
            .collect();
        order.sort_by_key(|(bad, id)| if self.rules.is_base(*id) { 0 } else { *bad });
        *candidates = order.into_iter().map(|(_, id)| id).collect();
    }

    /// Packages that those installed recommend, or suggest.
    fn wished(&mut self, kind: RpmRelationKind) -> BTreeSet<PackageId> {
        let mut all = BTreeSet::new();
        for id in self.order.clone() {
            let relations: Vec<RpmRelation<'p>> = self.rules.pool.relations(id, kind).collect();
            for relation in relations {
                all.extend(self.candidates_of(relation));
            }
        }
        all
    }

    /// The packages that would fulfil a wish of an installed package.
    pub(super) fn candidates_of(&mut self, relation: RpmRelation<'_>) -> Vec<PackageId> {
        if !RichDependency::is_rich(relation.name) {
            return self.rules.providers(relation).to_vec();
        }
        let clauses = self
            .rules
            .formula(&relation)
            .and_then(|formula| formula.clauses(true))
            .unwrap_or_default();
        let is_open = |clause: &&Vec<Literal>| {
            clause
                .iter()
                .all(|literal| *literal > 0 || self.is_installed[package(*literal).0 as usize])
        };
        let open = clauses.iter().filter(is_open).flatten();
        open.filter(|literal| **literal > 0)
            .map(|literal| package(*literal))
            .collect()
    }

    /// Whether what is installed asks for `id` by what `id` itself says (supplements, enhances).
    pub(super) fn is_beside(&mut self, id: PackageId, kind: RpmRelationKind) -> bool {
        let relations: Vec<RpmRelation<'p>> = self.rules.pool.relations(id, kind).collect();
        relations.into_iter().any(|relation| {
            let is_installed = |id: PackageId| self.is_installed[id.0 as usize];
            if RichDependency::is_rich(relation.name) {
                let formula = self.rules.formula(&relation);
                formula.is_some_and(|formula| formula.holds(&is_installed))
            } else {
                let providers = self.rules.providers(relation);
                providers.iter().any(|id| is_installed(*id))
            }
        })
    }

    /// Whether `id` supplements something that is new on the machine. What supplements the base
    /// alone, the base has done without.
    pub(super) fn newly_supplements(&mut self, id: PackageId) -> bool {
        let relations: Vec<RpmRelation<'p>> = self
            .rules
            .pool
            .relations(id, RpmRelationKind::Supplements)
            .collect();
        relations.into_iter().any(|relation| {
            let formula = if RichDependency::is_rich(relation.name) {
                self.rules.formula(&relation)
            } else {
                Some(Formula::Any(self.rules.providers(relation).to_vec()))
            };
            let strength_of = |id: PackageId| {
                if !self.is_installed[id.0 as usize] {
                    0
                } else if self.rules.is_base(id) {
                    1
                } else {
                    2
                }
            };
            formula.is_some_and(|formula| formula.strength(&strength_of) == 2)
        })
    }

    /// Whether what is installed asks for `id`, by what either says.
    pub(super) fn is_wished(&mut self, id: PackageId) -> bool {
        self.is_beside(id, RpmRelationKind::Supplements)
            || self.wished(RpmRelationKind::Recommends).contains(&id)
    }

    /// Whether a package is installed so far.
    pub(super) fn has(&self, id: PackageId) -> bool {
        self.is_installed[id.0 as usize]
    }
}

/// Whether `a` is newer than `b`, where a missing release means every one.
fn is_really_newer(a: &str, b: &str) -> bool {
    let a = Evr::parse(a);
    let b = Evr::parse(b);
    if a.release.is_some() == b.release.is_some() {
        a.compare(b).is_gt()
    } else {
        a.compare_versions(b).is_gt()
    }
}

/// The literals of `packages` that `value` says are open, as packages; `None` where one is
/// installed already.
pub(super) fn open(literals: &[Literal], value: impl Fn(Literal) -> i32) -> Option<Vec<PackageId>> {
    let mut found = Vec::new();
    for literal in literals {
        match value(*literal) {
            1.. => return None,
            0 if *literal < 0 => return None,
            0 => found.push(package(*literal)),
            _ => {}
        }
    }
    debug_assert!(found.iter().all(|id| value(installed(*id)) == 0));
    Some(found)
}
