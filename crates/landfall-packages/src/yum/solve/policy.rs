//! libsolv's policy: which of several candidates is installed. The machines' dnf selects by the
//! same policy, so the lock has the packages that dnf will request.
//!
//! libsolv's `policy.c` has the same steps under similar names.

use super::formula::{Formula, Literal, installed, package};
use super::obsoletes;
use super::rules::Rules;
use crate::yum::pool::{PackageId, RpmRelationKind};
use crate::yum::relation::{RichDependency, RpmRelation, VersionSense};
use crate::yum::version::Evr;
use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The steps that each visited `Obsoletes` between candidates costs, because it takes memory.
const OBSOLETED_STEPS: usize = 16;

/// The number of providers of weak dependencies that cost one step together. Each visited
/// dependency costs another step.
const WEAK_PROVIDERS: usize = 4;

/// The policy, with the packages that are installed so far.
pub(super) struct Policy<'r, 'p> {
    rules: &'r mut Rules<'p>,
    /// For each package, whether it is installed so far.
    is_installed: Vec<bool>,
    /// The packages that are installed so far, in the order of the decisions.
    order: Vec<PackageId>,
}

impl<'r, 'p> Policy<'r, 'p> {
    /// Returns the policy after the decisions in `trail`.
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

    /// Removes the candidates that are worse than another one. The remaining candidates have no
    /// particular order.
    pub(super) fn prune(&mut self, candidates: &mut Vec<PackageId>) {
        self.prune_to_best(candidates);
        if candidates.len() > 1 {
            self.prune_to_recommended(candidates);
        }
    }

    /// Removes the candidates that are worse than another one, and moves the one to install to the
    /// front.
    pub(super) fn choose(&mut self, candidates: &mut Vec<PackageId>) {
        self.prune(candidates);
        if candidates.len() > 1 {
            self.reorder(candidates);
        }
    }

    /// Keeps only the candidates of the best architecture. Among these, keeps only the newest of
    /// each name, and removes the candidates that another candidate obsoletes.
    pub(super) fn prune_to_best(&mut self, candidates: &mut Vec<PackageId>) {
        let pool = self.rules.pool;
        let ranks = candidates.iter().map(|id| self.rules.arch_rank(*id));
        let best = ranks.flatten().min();
        candidates.retain(|id| {
            self.rules
                .arch_rank(*id)
                .is_none_or(|own| Some(own) == best)
        });
        if candidates.len() < 2 {
            return;
        }
        candidates.sort_by_key(|id| {
            (
                pool.name(*id),
                // `noarch` is as good as the best architecture
                self.rules.arch_rank(*id).or(best),
                // of equal versions, the installed one is kept
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
        self.prune_obsoleted(candidates);
    }

    /// Removes candidates that another candidate obsoletes, directly or through further candidates.
    /// Candidates that obsolete each other are kept. All candidates must have different names.
    fn prune_obsoleted(&mut self, candidates: &mut Vec<PackageId>) {
        let pool = self.rules.pool;
        let by_name: HashMap<&str, usize> = (0..candidates.len())
            .map(|at| (pool.name(candidates[at]), at))
            .collect();
        let obsoleted: Vec<Vec<usize>> = candidates
            .iter()
            .map(|id| {
                let relations = pool.relations(*id, RpmRelationKind::Obsoletes);
                let others = relations.filter_map(|relation| by_name.get(relation.name).copied());
                others
                    .filter(|other| obsoletes(pool, *id, candidates[*other]))
                    .collect()
            })
            .collect();
        let mut reached: Vec<BTreeSet<usize>> = Vec::new();
        for from in 0..candidates.len() {
            let mut of_this = BTreeSet::new();
            let mut queue = vec![from];
            while let Some(at) = queue.pop()
                && !self.rules.is_out_of_steps()
            {
                self.rules.spend(OBSOLETED_STEPS * obsoleted[at].len());
                queue.extend(obsoleted[at].iter().filter(|other| of_this.insert(**other)));
            }
            reached.push(of_this);
        }
        let mut is_removed = vec![false; candidates.len()];
        for (from, others) in reached.iter().enumerate() {
            for at in others.iter().filter(|at| !reached[**at].contains(&from)) {
                is_removed[*at] = true;
            }
        }
        let mut is_removed = is_removed.into_iter();
        candidates.retain(|_| is_removed.next() != Some(true));
    }

    /// If installed packages recommend new candidates, or new candidates supplement installed
    /// packages, keeps only these candidates and the packages of the base.
    fn prune_to_recommended(&mut self, candidates: &mut Vec<PackageId>) {
        // packages of the base are always kept, so only several new ones need a choice
        let new = candidates.iter().filter(|id| !self.rules.is_base(**id));
        if new.count() < 2 {
            return;
        }
        let recommended = self.targets_of_installed(RpmRelationKind::Recommends);
        let is_recommended: Vec<bool> = candidates
            .iter()
            .map(|id| {
                !self.rules.is_base(*id)
                    && (recommended.contains(id)
                        || self.reverse_holds(*id, RpmRelationKind::Supplements))
            })
            .collect();
        if is_recommended.contains(&true) {
            let mut is_recommended = is_recommended.into_iter();
            candidates.retain(|id| is_recommended.next() == Some(true) || self.rules.is_base(*id));
        }
    }

    /// Sorts the candidates; the one to install comes first. All sorts are stable, so later
    /// criteria have precedence over earlier ones.
    fn reorder(&mut self, candidates: &mut Vec<PackageId>) {
        let pool = self.rules.pool;
        self.dislike_old_versions(candidates);
        self.sort_by_common_provides(candidates);
        // other versions of installed packages come first
        candidates.sort_by_key(|id| {
            let is_in_base = pool
                .by_name(RpmRelation::any(pool.name(*id)))
                .into_iter()
                .any(|other| self.rules.is_base(other));
            Reverse(is_in_base)
        });
        self.prefer_suggested(candidates);
    }

    /// Sorts packages that all supplement installed ones.
    pub(super) fn order_supplementing(&mut self, candidates: &mut Vec<PackageId>) {
        self.dislike_old_versions(candidates);
        self.sort_by_common_provides(candidates);
        self.prefer_suggested(candidates);
    }

    /// Moves candidates that are not installed to the back if the pool has a newer version of them
    /// for the same architecture.
    fn dislike_old_versions(&self, candidates: &mut [PackageId]) {
        let pool = self.rules.pool;
        candidates.sort_by_key(|id| {
            let same = pool.by_name(RpmRelation::any(pool.name(*id)));
            pool.package(*id).source.is_some()
                && same.into_iter().any(|other| {
                    pool.package(other).arch == pool.package(*id).arch
                        && pool.compare(other, *id).is_gt()
                })
        });
    }

    /// Moves candidates to the front if installed packages suggest them, if they enhance installed
    /// packages, or if they are installed.
    fn prefer_suggested(&mut self, candidates: &mut [PackageId]) {
        self.prefer(
            candidates,
            RpmRelationKind::Suggests,
            RpmRelationKind::Enhances,
        );
    }

    /// Moves candidates to the front if installed packages have the relation `forward` to them, if
    /// they have the relation `reverse` to installed packages, or if they are installed.
    fn prefer(
        &mut self,
        candidates: &mut [PackageId],
        forward: RpmRelationKind,
        reverse: RpmRelationKind,
    ) {
        let targets = self.targets_of_installed(forward);
        let is_preferred: BTreeSet<PackageId> = candidates
            .iter()
            .copied()
            .filter(|id| {
                self.rules.is_base(*id) || targets.contains(id) || self.reverse_holds(*id, reverse)
            })
            .collect();
        candidates.sort_by_key(|id| !is_preferred.contains(id));
    }

    /// Treats `packages` as installed from now on.
    pub(super) fn assume(&mut self, packages: &[PackageId]) {
        packages
            .iter()
            .for_each(|id| self.is_installed[id.0 as usize] = true);
        self.order.extend(packages);
    }

    /// Moves recommended candidates to the front and, among equals, suggested ones.
    pub(super) fn prefer_recommended(&mut self, candidates: &mut [PackageId]) {
        self.prefer_suggested(candidates);
        self.prefer(
            candidates,
            RpmRelationKind::Recommends,
            RpmRelationKind::Supplements,
        );
    }

    /// Moves candidates to the back if another candidate provides the same capability in a newer
    /// version.
    fn sort_by_common_provides(&self, candidates: &mut Vec<PackageId>) {
        let pool = self.rules.pool;
        let mut by_name: BTreeMap<&str, Vec<(usize, &str)>> = BTreeMap::new();
        for (place, id) in candidates.iter().enumerate() {
            for relation in pool
                .relations(*id, RpmRelationKind::Provides)
                .filter(|relation| relation.sense == VersionSense::SAME)
            {
                // as in libsolv: a text of hexadecimal digits may be a hash, which has no order
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
            // the newest first: `bad` counts the newer versions of other candidates so far
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
        // installed packages are never worse
        order.sort_by_key(|(bad, id)| if self.rules.is_base(*id) { 0 } else { *bad });
        *candidates = order.into_iter().map(|(_, id)| id).collect();
    }

    /// Returns the packages that satisfy a relation of `kind` (`Recommends` or `Suggests`) of any
    /// installed package.
    fn targets_of_installed(&mut self, kind: RpmRelationKind) -> BTreeSet<PackageId> {
        let mut all = BTreeSet::new();
        for id in self.order.clone() {
            let relations: Vec<RpmRelation<'p>> = self.rules.pool.relations(id, kind).collect();
            for relation in relations {
                let found = self.candidates_of(relation);
                self.rules.spend(1 + found.len() / WEAK_PROVIDERS);
                all.extend(found);
            }
            // the caller checks the steps after each decision
            if self.rules.is_out_of_steps() {
                break;
            }
        }
        all
    }

    /// Returns the packages that would satisfy a weak dependency of an installed package.
    fn candidates_of(&mut self, relation: RpmRelation<'_>) -> Vec<PackageId> {
        if !RichDependency::is_rich(relation.name) {
            return self.rules.providers(relation).to_vec();
        }
        let clauses = self.rules.clauses(&relation, true).unwrap_or_default();
        clauses
            .iter()
            // if the package of a negative literal is not installed, the clause holds already
            .filter(|clause| {
                clause
                    .iter()
                    .all(|literal| *literal > 0 || self.is_installed[package(*literal).0 as usize])
            })
            .flatten()
            .filter(|literal| **literal > 0)
            .map(|literal| package(*literal))
            .collect()
    }

    /// Whether a reverse weak dependency of `id` (`Supplements` or `Enhances`, by `kind`) holds
    /// with the installed packages.
    fn reverse_holds(&mut self, id: PackageId, kind: RpmRelationKind) -> bool {
        let relations: Vec<RpmRelation<'p>> = self.rules.pool.relations(id, kind).collect();
        relations.into_iter().any(|relation| {
            if RichDependency::is_rich(relation.name) {
                let formula = self.rules.formula(&relation);
                formula.is_some_and(|formula| formula.holds(&|id| self.has(id)))
            } else {
                let providers = self.rules.providers(relation);
                providers.iter().any(|id| self.has(*id))
            }
        })
    }

    /// Whether `id` supplements a package that is not in the base. Packages that supplement only
    /// the base are not installed.
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
            formula.is_some_and(|formula| formula.strength(&|id| self.strength_of(id)) == 2)
        })
    }

    fn strength_of(&self, id: PackageId) -> u8 {
        if !self.is_installed[id.0 as usize] {
            0
        } else if self.rules.is_base(id) {
            1
        } else {
            2
        }
    }

    /// Whether an installed package recommends `id`, or `id` supplements one.
    pub(super) fn is_recommended(&mut self, id: PackageId) -> bool {
        self.reverse_holds(id, RpmRelationKind::Supplements)
            || self
                .targets_of_installed(RpmRelationKind::Recommends)
                .contains(&id)
    }

    /// Whether a package is installed so far.
    pub(super) fn has(&self, id: PackageId) -> bool {
        self.is_installed[id.0 as usize]
    }
}

/// Whether `a` is newer than `b`. If only one of them has a release, releases are ignored.
fn is_really_newer(a: &str, b: &str) -> bool {
    let a = Evr::parse(a);
    let b = Evr::parse(b);
    if a.release.is_some() == b.release.is_some() {
        a.compare(b).is_gt()
    } else {
        a.compare_versions(b).is_gt()
    }
}

/// Returns the packages of the unassigned literals of a clause. `value` returns the value of a
/// literal. Returns `None` if the clause holds, or a negative literal of it is unassigned.
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
