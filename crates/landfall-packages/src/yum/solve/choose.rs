//! Package selection: the main loop of dnf's solver, which decides one package after the other by
//! the policy until all dependencies are satisfied.

use super::base_rules::{base_rules, excluded_from_weak, replacement};
use super::choice::ChoiceRules;
use super::formula::{Literal, installed, package};
use super::policy::{Policy, open};
use super::reasons;
use super::request_words::{candidate_groups, explain_no_match};
use super::rules::{Rule, RuleOrigin, Rules};
use super::sat::{Sat, SolverStop};
use crate::yum::architecture::Architectures;
use crate::yum::pool::{PackageId, Pool, RpmRelationKind};
use crate::yum::relation::RpmRelation;
use std::collections::{BTreeSet, HashSet};

/// A request to select packages from a pool, with its options.
#[derive(Debug, Clone, Copy)]
pub struct SelectionRequest<'a> {
    /// The packages of all sources and the installed packages (the base).
    pub pool: &'a Pool,
    /// The architectures whose packages the machine can install.
    pub architectures: &'a Architectures,
    /// The requests, in the syntax of `dnf install`.
    pub install: &'a [String],
    /// Whether to install recommended packages too (weak dependencies).
    pub weak: bool,
    /// Whether dependencies that no source offers are assumed to be installed.
    pub assume: bool,
    /// The maximum number of solver steps.
    pub steps: u64,
}

/// The packages to install for a [`SelectionRequest`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct YumSelection {
    /// The selected packages that are not in the base, sorted by name.
    pub packages: Vec<PackageId>,
    /// The dependencies that are assumed to be installed.
    pub expected: BTreeSet<String>,
    /// The packages of the base that are removed, each with its replacement if there is one.
    pub replaced: Vec<(PackageId, Option<PackageId>)>,
    /// The paths in relations that may be found only in a list of all files: the primary index does
    /// not list such paths, or no package provides them.
    pub unlisted: BTreeSet<String>,
}

/// The reasons why a request cannot be fulfilled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsolvableRequest {
    /// The chain of reasons, one sentence each.
    pub reasons: Vec<String>,
    /// The relations and requests that no visible package satisfies.
    pub missing: BTreeSet<String>,
    /// Paths that a list of all files may contain, as in [`YumSelection::unlisted`].
    pub unlisted: BTreeSet<String>,
}

/// Selects the packages to install for `request`.
///
/// # Errors
/// If a requested package does not exist, the requests cannot be installed together, or the limit
/// of steps is reached.
pub fn choose(request: SelectionRequest<'_>) -> Result<YumSelection, UnsolvableRequest> {
    let SelectionRequest {
        pool,
        architectures,
        install,
        weak,
        assume,
        steps,
    } = request;
    let mut jobs = Vec::new();
    let mut reasons = Vec::new();
    let mut missing = BTreeSet::new();
    for word in install {
        let found = candidate_groups(pool, word);
        if found.is_empty() {
            reasons.push(explain_no_match(pool, word));
            missing.insert(word.clone());
        }
        jobs.extend(
            found
                .into_iter()
                .map(|candidates| (word.clone(), candidates)),
        );
    }
    let mut rules = Rules::new(pool, architectures, assume, steps);
    // a requested file may be in a list of all files that was not read
    install
        .iter()
        .for_each(|word| rules.note_file(&RpmRelation::any(word)));
    if !missing.is_empty() {
        return Err(UnsolvableRequest {
            reasons,
            missing,
            unlisted: rules.unlisted,
        });
    }
    let base_rules = base_rules(&rules);
    let candidates = jobs.iter().flat_map(|(_, candidates)| candidates).copied();
    let of_base = base_rules
        .iter()
        .flat_map(|rule| &rule.literals)
        .map(|literal| package(*literal));
    rules.reach(candidates.chain(of_base), weak);
    if weak {
        reach_supplements(&mut rules);
    }
    let names = jobs
        .iter()
        .flat_map(|(_, candidates)| candidates)
        .map(|id| pool.name(*id));
    rules.prefer_architectures(&names.collect());
    if rules.is_out_of_steps() {
        return Err(out_of_steps(steps, rules.unlisted));
    }
    rules.sort();
    // the order of the rules: dependencies, requests (jobs), rules of the base, choice rules
    let dependencies = rules.rules.len();
    rules
        .rules
        .extend(jobs.into_iter().map(|(word, candidates)| Rule {
            literals: candidates.into_iter().map(installed).collect(),
            why: RuleOrigin::Requested(word),
        }));
    let jobs = dependencies..rules.rules.len();
    let mut choice_rules = ChoiceRules::new(&rules, &rules.rules[..dependencies], &base_rules);
    rules.rules.extend(base_rules);
    let strong = rules.rules.len();
    let mut left = steps;
    // choice rules are only preferences: if one prevents a solution, or excludes a package of the
    // solution, it is dropped and everything is decided again
    let chooser = loop {
        rules.rules.truncate(strong);
        rules.rules.extend(choice_rules.enabled());
        let clauses = rules.rules.iter().map(|rule| rule.literals.as_slice());
        let (sat, outcome) = Sat::new(pool.count(), left, clauses);
        let mut chooser = PackageChooser::new(sat, rules, jobs.clone(), dependencies, strong, weak);
        let outcome = outcome
            .map_err(SolverStop::from)
            .and_then(|()| chooser.run());
        left = chooser.sat.steps();
        match outcome {
            Ok(()) => {
                if !choice_rules.drop_unneeded(|id| chooser.sat.value(installed(id)) > 0) {
                    break chooser;
                }
            }
            Err(SolverStop::OutOfSteps) => {
                return Err(out_of_steps(steps, chooser.rules.unlisted));
            }
            Err(SolverStop::Contradiction(contradiction)) => {
                let core = chooser.sat.core(contradiction);
                // choice rules come last: if one is involved, the highest number is a choice rule
                let last = core
                    .iter()
                    .max()
                    .and_then(|last| (*last as usize).checked_sub(strong));
                let Some(last) = last else {
                    let (reasons, missing) = reasons::explain(&chooser.rules, &core, left);
                    return Err(UnsolvableRequest {
                        reasons,
                        missing,
                        unlisted: chooser.rules.unlisted,
                    });
                };
                choice_rules.drop_enabled(last);
            }
        }
        rules = chooser.rules;
    };
    let unlisted = chooser.rules.unlisted.clone();
    let mut packages: Vec<PackageId> = pool
        .ids()
        .filter(|id| chooser.sat.value(installed(*id)) > 0)
        .collect();
    packages.retain(|id| !chooser.rules.is_base(*id));
    // the order of the lock, independent of the order of decisions
    packages.sort_by_key(|id| (pool.name(*id), pool.arch(*id), *id));
    let expected = packages
        .iter()
        .filter_map(|id| chooser.rules.assumed.get(id))
        .flatten()
        .cloned()
        .collect();
    let replaced = pool
        .ids()
        .filter(|id| chooser.rules.is_base(*id) && chooser.sat.value(installed(*id)) < 0)
        .map(|id| (id, replacement(pool, id, &packages)))
        .collect();
    Ok(YumSelection {
        packages,
        expected,
        replaced,
        unlisted,
    })
}

fn out_of_steps(steps: u64, unlisted: BTreeSet<String>) -> UnsolvableRequest {
    let reason = format!(
        "the package selection was stopped after {steps} steps: too many of the packages exclude \
         each other; request fewer packages in one entry, or exact versions"
    );
    UnsolvableRequest {
        reasons: vec![reason],
        missing: BTreeSet::new(),
        unlisted,
    }
}

/// Marks packages that supplement a reached package as reached, and repeats that until there are no
/// more.
fn reach_supplements(rules: &mut Rules<'_>) {
    // a package that becomes reachable can be supplemented itself
    loop {
        rules.spend(rules.pool.count());
        let mut more = Vec::new();
        for id in rules
            .pool
            .ids()
            .filter(|id| !rules.reached[id.0 as usize])
            .collect::<Vec<_>>()
        {
            let relations: Vec<RpmRelation<'_>> = rules
                .pool
                .relations(id, RpmRelationKind::Supplements)
                .collect();
            let is_possible = relations.iter().any(|relation| {
                rules.note_file(relation);
                let wanted = rules
                    .formula(relation)
                    .map_or_else(Vec::new, |formula| formula.packages());
                rules.spend(wanted.len());
                wanted.iter().any(|id| rules.reached[id.0 as usize])
            });
            if is_possible {
                more.push(id);
            }
        }
        if more.is_empty() || rules.is_out_of_steps() {
            return;
        }
        rules.reach(more, true);
    }
}

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
    fn new(
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
    fn run(&mut self) -> Result<(), SolverStop> {
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
        Policy::new(&mut self.rules, self.sat.trail())
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
        self.policy().choose(&mut candidates);
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
            .trail()
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
