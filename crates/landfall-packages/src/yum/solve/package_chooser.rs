//! The main loop of dnf's solver, which decides one package after the other by the policy until all
//! dependencies are satisfied.

use super::formula::{Literal, installed, package};
use super::policy::{Policy, open};
use super::rules::{Rule, RuleOrigin, Rules};
use super::sat::{Sat, SolverStop};
use super::{excluded_from_weak, may_replace, obsoletes};
use crate::yum::pool::{PackageId, RpmRelationKind};
use crate::yum::relation::{RichDependency, RpmRelation};
use crate::yum::version::Architectures;
use std::collections::{BTreeSet, HashMap, HashSet};

/// A decision between several candidates.
#[derive(Debug, Clone)]
struct SolverBranch {
    /// The decision level to return to.
    level: usize,
    /// The candidates that were tried; the last is the current one.
    taken: Vec<PackageId>,
    /// The candidates that were not tried.
    others: Vec<PackageId>,
}

/// The state of a selection.
pub(super) struct PackageChooser<'p> {
    pub(super) sat: Sat,
    pub(super) rules: Rules<'p>,
    /// The positions of the rules of the requests.
    jobs: std::ops::Range<usize>,
    /// The end of the rules of the base, after which the choice rules follow.
    strong: usize,
    /// The packages that are not installed for weak dependencies.
    pub(super) unwanted: HashSet<PackageId>,
    /// For each package, the range of its dependency rules.
    rules_of: Vec<(u32, u32)>,
    weak: bool,
    branches: Vec<SolverBranch>,
    /// The rule at which the search for the next unmet dependency continues.
    cursor: usize,
    /// The first rule with several equally good candidates, which is postponed while other rules
    /// have a single one.
    postponed: Option<usize>,
    /// Whether all unmet dependencies are postponed.
    is_late: bool,
}

impl<'p> PackageChooser<'p> {
    pub(super) fn new(
        sat: Sat,
        rules: Rules<'p>,
        jobs: std::ops::Range<usize>,
        dependencies: usize,
        strong: usize,
        weak: bool,
    ) -> PackageChooser<'p> {
        // the rules are sorted by their first literal, so the rules of a package are adjacent
        let mut rules_of = vec![(0, 0); rules.pool.count()];
        for (number, rule) in rules.rules[..dependencies].iter().enumerate() {
            let (first, end) = &mut rules_of[package(rule.literals[0]).0 as usize];
            if *end == 0 {
                *first = number as u32;
            }
            *end = number as u32 + 1;
        }
        let unwanted = if weak {
            excluded_from_weak(rules.pool)
        } else {
            HashSet::new()
        };
        PackageChooser {
            sat,
            rules,
            unwanted,
            jobs,
            strong,
            rules_of,
            weak,
            branches: Vec::new(),
            cursor: 0,
            postponed: None,
            is_late: false,
        }
    }

    /// Decides until nothing is left to decide, in dnf's order: requests, the base, dependencies,
    /// weak dependencies, and then better candidates for earlier decisions.
    pub(super) fn run(&mut self) -> Result<(), SolverStop> {
        loop {
            self.check_steps()?;
            if self.decide_job()? || self.keep()? {
                self.start_over();
            } else if !self.decide_dependency()? {
                self.start_over();
                let has_more = self.weak && self.decide_weak()?;
                if !has_more && !self.decide_better()? {
                    return self.check_steps();
                }
            }
        }
    }

    /// Fails if the policy has used up its steps: it may have selected the wrong packages.
    fn check_steps(&self) -> Result<(), SolverStop> {
        if self.rules.is_out_of_steps() {
            return Err(SolverStop::OutOfSteps);
        }
        Ok(())
    }

    /// Restarts the search for unmet dependencies at the first rule.
    fn start_over(&mut self) {
        (self.cursor, self.postponed, self.is_late) = (0, None, false);
    }

    pub(super) fn policy(&mut self) -> Policy<'_, 'p> {
        Policy::new(&mut self.rules, &self.sat.trail)
    }

    /// Returns the undecided candidates of a rule, or `None` if no candidate has to be installed
    /// for it now, as in [`open`].
    fn open(&self, rule: usize) -> Option<Vec<PackageId>> {
        open(&self.rules.rules[rule].literals, |literal| {
            self.sat.value(literal)
        })
    }

    /// Installs the best of `candidates`. Returns whether no decision had to be reverted.
    pub(super) fn install(&mut self, mut candidates: Vec<PackageId>) -> Result<bool, SolverStop> {
        // a single candidate needs no policy, which visits all selected packages
        if candidates.len() > 1 {
            self.policy().choose(&mut candidates);
        }
        self.install_first(candidates)
    }

    /// Installs the first of `candidates`, and remembers the others for
    /// [`decide_better`](PackageChooser::decide_better). Returns whether no decision had to be
    /// reverted.
    fn install_first(&mut self, candidates: Vec<PackageId>) -> Result<bool, SolverStop> {
        let level = self.sat.level();
        if candidates.len() > 1 {
            self.branches.push(SolverBranch {
                level,
                taken: vec![candidates[0]],
                others: candidates[1..].to_vec(),
            });
        }
        self.decide(installed(candidates[0]))
    }

    /// Decides `literal`. Returns whether no decision had to be reverted.
    pub(super) fn decide(&mut self, literal: Literal) -> Result<bool, SolverStop> {
        let level = self.sat.level();
        self.sat.decide(literal)?;
        let now = self.sat.level();
        // backtracking has reverted the decisions of the other branches
        self.branches.retain(|branch| branch.level < now);
        let is_forward = now > level;
        // reverted decisions may leave earlier rules unmet
        if !is_forward {
            self.start_over();
        }
        Ok(is_forward)
    }

    /// Decides a request that does not hold yet. Returns whether there was one.
    fn decide_job(&mut self) -> Result<bool, SolverStop> {
        let Some(mut candidates) = self.jobs.clone().find_map(|job| self.open(job)) else {
            return Ok(false);
        };
        // the search of the base below visits all packages
        self.sat.spend(self.rules.pool.count())?;
        // an installed package satisfies the request, even if a newer version exists
        if candidates.iter().any(|id| self.rules.is_base(*id)) {
            candidates.retain(|id| self.rules.is_base(*id));
        }
        self.policy().choose(&mut candidates);
        // requests are decided before the base, but packages that the base recommends or suggests
        // are preferred already
        let undecided: Vec<PackageId> = self
            .rules
            .pool
            .ids()
            .filter(|id| self.rules.is_base(*id) && self.sat.value(installed(*id)) == 0)
            .collect();
        if candidates.len() > 1 && !undecided.is_empty() {
            let mut policy = self.policy();
            policy.assume(&undecided);
            policy.prefer_recommended(&mut candidates);
        }
        self.install_first(candidates).map(|_| true)
    }

    /// Keeps an undecided package of the base, or decides what replaces one that cannot be kept.
    /// Returns whether there was such a package.
    fn keep(&mut self) -> Result<bool, SolverStop> {
        for rule in self.jobs.end..self.strong {
            // the first literal is the package itself, the others may replace it
            let own = self.rules.rules[rule].literals[0];
            match self.sat.value(own) {
                0 => return self.decide(own).map(|_| true),
                1.. => {}
                // it cannot be kept
                _ => {
                    if let Some(candidates) = self.open(rule) {
                        return self.install(candidates).map(|_| true);
                    }
                }
            }
        }
        Ok(false)
    }

    /// Decides one unmet dependency; dependencies with a single good candidate come first. Returns
    /// whether there was an unmet dependency.
    fn decide_dependency(&mut self) -> Result<bool, SolverStop> {
        // only rules of installed packages can be unmet
        let mut ranges: Vec<(u32, u32)> = self
            .sat
            .trail
            .iter()
            .filter(|literal| **literal > 0)
            .map(|literal| self.rules_of[package(*literal).0 as usize])
            .collect();
        ranges.sort_unstable();
        let visited = ranges
            .iter()
            .map(|(start, end)| (end - start) as usize)
            .sum();
        self.sat.spend(visited)?;
        let rules = ranges
            .into_iter()
            .flat_map(|(start, end)| start as usize..end as usize);
        // choice rules have no order by package, so all of them are examined
        let rules = rules.chain(self.strong..self.rules.rules.len());
        let mut unmet: Vec<(usize, Vec<PackageId>)> = rules
            .filter_map(|rule| Some((rule, self.open(rule)?)))
            .collect();
        if unmet.is_empty() {
            return Ok(false);
        }
        // as in libsolv, the search continues after the rule that was decided last
        let next = unmet.partition_point(|(rule, _)| *rule < self.cursor) % unmet.len();
        unmet.rotate_left(next);
        if !self.is_late {
            for (rule, candidates) in &unmet {
                let mut candidates = candidates.clone();
                self.policy().prune(&mut candidates);
                if candidates.len() == 1 {
                    self.cursor = rule + 1;
                    return self.install(candidates).map(|_| true);
                }
                self.postponed.get_or_insert(*rule);
            }
            // all unmet rules are postponed: decides them in order, from the first postponed one
            self.is_late = true;
            let from = self.postponed.take().unwrap_or(0);
            unmet.sort_by_key(|(rule, _)| (*rule < from, *rule));
        }
        let (rule, candidates) = unmet.swap_remove(0);
        self.cursor = rule + 1;
        self.install(candidates).map(|_| true)
    }

    /// Improves an earlier decision between several candidates: if an untried candidate was
    /// installed later anyway, or is recommended while the selected one is not, returns to the
    /// decision and installs the untried candidate instead. Returns whether there was such a
    /// decision.
    fn decide_better(&mut self) -> Result<bool, SolverStop> {
        let mut take = None;
        for number in (0..self.branches.len()).rev() {
            let branch = self.branches[number].clone();
            let installed_later = branch
                .others
                .iter()
                .position(|id| self.sat.value(installed(*id)) > branch.level as i32);
            if let Some(other) = installed_later {
                take = Some((number, other));
                continue;
            }
            let now = branch
                .taken
                .iter()
                .copied()
                .find(|id| self.sat.value(installed(*id)) == branch.level as i32 + 1);
            let mut policy = self.policy();
            let recommended = branch
                .others
                .iter()
                .position(|id| policy.is_recommended(*id));
            if let (Some(other), Some(now)) = (recommended, now)
                && !policy.is_recommended(now)
            {
                take = Some((number, other));
            }
        }
        let Some((number, other)) = take else {
            return Ok(false);
        };
        // the loop ends with the earliest decision that can be improved; later decisions depend on
        // it
        let mut branch = self.branches[number].clone();
        self.branches.truncate(number);
        self.sat.back_to(branch.level);
        let id = branch.others.remove(other);
        branch.taken.push(id);
        self.branches.push(branch);
        self.start_over();
        self.decide(installed(id)).map(|_| true)
    }
}

// libsolv's choice rules: if both another version of an installed package and a new package
// satisfy a dependency, the former is preferred.

/// The choice rules of a selection.
#[derive(Debug, Default)]
pub(super) struct ChoiceRules {
    all: Vec<ChoiceRule>,
}

#[derive(Debug)]
struct ChoiceRule {
    literals: Vec<Literal>,
    why: RuleOrigin,
    /// The packages that satisfy the dependency from which the rule was derived.
    allowed: BTreeSet<PackageId>,
    is_enabled: bool,
}

impl ChoiceRule {
    /// Returns the packages that satisfy the dependency, but not this rule.
    fn others(&self) -> BTreeSet<PackageId> {
        self.allowed
            .iter()
            .copied()
            .filter(|id| !self.literals.contains(&installed(*id)))
            .collect()
    }
}

impl ChoiceRules {
    /// Derives the choice rules from `dependencies` and `base_rules`.
    pub(super) fn new(
        rules: &Rules<'_>,
        dependencies: &[Rule],
        base_rules: &[Rule],
    ) -> ChoiceRules {
        let pool = rules.pool;
        // for each package of the base, itself and its possible replacements
        let mut updates: HashMap<PackageId, &[Literal]> = HashMap::new();
        let mut base: HashMap<&str, Vec<PackageId>> = HashMap::new();
        for rule in base_rules {
            let id = package(rule.literals[0]);
            updates.insert(id, &rule.literals);
            base.entry(pool.name(id)).or_default().push(id);
        }
        // without a base, there is nothing to prefer
        if updates.is_empty() {
            return ChoiceRules::default();
        }
        // packages that cannot be installed because of their architecture
        let barred: HashSet<PackageId> = dependencies
            .iter()
            .filter(|rule| {
                matches!(rule.why, RuleOrigin::Architecture(_)) && rule.literals.len() == 1
            })
            .map(|rule| package(rule.literals[0]))
            .collect();
        // the package of the base that `id` would replace
        let replaced_by = |id: PackageId| -> Option<PackageId> {
            let same = base.get(pool.name(id)).into_iter().flatten().copied();
            let mut same =
                same.filter(|own| Architectures::collide(pool.arch(*own), pool.arch(id)));
            same.next().or_else(|| {
                updates
                    .keys()
                    .copied()
                    .filter(|own| obsoletes(pool, id, *own))
                    .min()
            })
        };
        let mut all: Vec<ChoiceRule> = Vec::new();
        for rule in dependencies.iter().filter(|rule| rule.literals[0] < 0) {
            let mut preferred = Vec::new();
            let mut replaced = Vec::new();
            let mut has_others = false;
            let positive = rule.literals.iter().filter(|literal| **literal > 0);
            for id in positive.clone().map(|literal| package(*literal)) {
                match rules.is_base(id).then_some(id).or_else(|| replaced_by(id)) {
                    Some(own)
                        if own == id || may_replace(rules, own, id) && !barred.contains(&id) =>
                    {
                        preferred.push(id);
                        replaced.push(own);
                    }
                    Some(_) => {}
                    None => has_others = true,
                }
            }
            // a choice exists only between updates and new packages
            if !has_others || preferred.is_empty() {
                continue;
            }
            let allowed: BTreeSet<PackageId> = positive.map(|literal| package(*literal)).collect();
            // if the installed packages and all their replacements satisfy the dependency, the base
            // need not change for it
            let is_satisfied_anyway = replaced.iter().all(|own| {
                updates[own]
                    .iter()
                    .all(|one| allowed.contains(&package(*one)))
            });
            if is_satisfied_anyway {
                continue;
            }
            let negative = rule.literals.iter().copied().filter(|literal| *literal < 0);
            let literals: Vec<Literal> = negative
                .chain(preferred.into_iter().map(installed))
                .collect();
            // several requirements of a package often have the same providers
            if all.last().is_none_or(|last| last.literals != literals) {
                all.push(ChoiceRule {
                    literals,
                    why: rule.why.clone(),
                    allowed,
                    is_enabled: true,
                });
            }
        }
        ChoiceRules { all }
    }

    /// Returns the rules that have not been dropped.
    pub(super) fn enabled(&self) -> impl Iterator<Item = Rule> {
        let enabled = self.all.iter().filter(|rule| rule.is_enabled);
        enabled.map(|rule| Rule {
            literals: rule.literals.clone(),
            why: rule.why.clone(),
        })
    }

    /// Drops the rule at `position` among the enabled ones. Also drops each rule whose dependency
    /// is satisfied by a package that the dropped rule excludes.
    pub(super) fn drop_enabled(&mut self, position: usize) {
        let number = (0..self.all.len())
            .filter(|number| self.all[*number].is_enabled)
            .nth(position);
        if let Some(number) = number {
            self.drop_rule(number);
        }
    }

    fn drop_rule(&mut self, number: usize) {
        self.all[number].is_enabled = false;
        let others = self.all[number].others();
        for rule in &mut self.all {
            rule.is_enabled &= rule.allowed.is_disjoint(&others);
        }
    }

    /// Drops each rule that excludes a package of the solution, together with the rules that
    /// [`drop_enabled`](ChoiceRules::drop_enabled) would drop. Returns whether a rule was dropped.
    pub(super) fn drop_unneeded(&mut self, is_installed: impl Fn(PackageId) -> bool) -> bool {
        let mut has_dropped = false;
        for number in 0..self.all.len() {
            let rule = &self.all[number];
            if rule.is_enabled && rule.others().into_iter().any(&is_installed) {
                self.drop_rule(number);
                has_dropped = true;
            }
        }
        has_dropped
    }
}

// Weak dependencies: installs packages that are recommended, or that supplement installed ones.

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
            .trail
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
        let all: HashSet<PackageId> = all.into_iter().collect();
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
            self.rules.clauses(&relation, true).unwrap_or_default()
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
        let mut seen = HashSet::new();
        let mut found: Vec<PackageId> = Vec::new();
        for literal in unsatisfied.flatten().filter(|literal| **literal > 0) {
            let id = package(*literal);
            if self.sat.value(*literal) == 0 && seen.insert(id) {
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
