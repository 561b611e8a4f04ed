//! The choice of packages: the loop of dnf's solver, which asks the policy and decides, until all
//! that is needed is there.

use super::asked::{asked, not_offered};
use super::choice::ChoiceRules;
use super::formula::{Literal, installed, package};
use super::kept::{kept, replacement, unwanted};
use super::policy::{Policy, open};
use super::reasons;
use super::rules::{Rule, RuleOrigin, Rules};
use super::sat::{Sat, SolverStop};
use crate::yum::architecture::Architectures;
use crate::yum::pool::{PackageId, Pool, RpmRelationKind};
use crate::yum::relation::RpmRelation;
use std::collections::{BTreeSet, HashSet};

/// A request to select packages from a pool, with its options.
#[derive(Debug, Clone, Copy)]
pub struct SelectionRequest<'a> {
    /// The packages of all sources, and those of the base.
    pub pool: &'a Pool,
    /// The architectures whose packages the machine can install.
    pub architectures: &'a Architectures,
    /// What to install, in the forms that `dnf install` takes.
    pub install: &'a [String],
    /// Whether to install recommended packages too (weak dependencies).
    pub weak: bool,
    /// Whether dependencies that no source offers are assumed to be installed.
    pub assume: bool,
    /// The most solver steps to spend before giving up.
    pub steps: u64,
}

/// The packages to install for a [`SelectionRequest`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct YumSelection {
    /// The packages that are not in the base, by name.
    pub packages: Vec<PackageId>,
    /// The dependencies that are assumed to be installed.
    pub expected: BTreeSet<String>,
    /// The packages of the base that are removed, each with its replacement.
    pub replaced: Vec<(PackageId, Option<PackageId>)>,
    /// Files that are needed, and that no list has: another list of files may.
    pub unlisted: BTreeSet<String>,
}

/// The reasons why a request cannot be fulfilled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsolvableRequest {
    /// The chain of reasons, a sentence each.
    pub reasons: Vec<String>,
    /// What no package has that is seen: relations, and words that were asked for.
    pub missing: BTreeSet<String>,
    /// The file paths that only the list of all files can resolve, as in [`YumSelection`].
    pub unlisted: BTreeSet<String>,
}

/// The packages to install for `question`.
///
/// # Errors
/// When what is asked for is not there, cannot be installed together, or takes more than the given
/// steps to be found.
pub fn choose(question: SelectionRequest<'_>) -> Result<YumSelection, UnsolvableRequest> {
    let SelectionRequest {
        pool,
        architectures,
        install,
        weak,
        assume,
        steps,
    } = question;
    let mut jobs = Vec::new();
    let (mut reasons, mut missing) = (Vec::new(), BTreeSet::new());
    for word in install {
        let found = asked(pool, word);
        if found.is_empty() {
            reasons.push(not_offered(pool, word));
            missing.insert(word.clone());
        }
        jobs.extend(
            found
                .into_iter()
                .map(|candidates| (word.clone(), candidates)),
        );
    }
    let mut rules = Rules::new(pool, architectures, assume);
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
    let kept = kept(&rules);
    let candidates = jobs.iter().flat_map(|(_, candidates)| candidates).copied();
    let of_base = kept
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
    rules.sort();
    let dependencies = rules.rules.len();
    let job = |(word, candidates): (String, Vec<PackageId>)| Rule {
        literals: candidates.into_iter().map(installed).collect(),
        why: RuleOrigin::Asked(word),
    };
    rules.rules.extend(jobs.into_iter().map(job));
    let jobs = dependencies..rules.rules.len();
    let mut choice_rules = ChoiceRules::new(&rules, &rules.rules[..dependencies], &kept);
    rules.rules.extend(kept);
    let strong = rules.rules.len();
    let mut left = steps;
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
                let is_installed = |id| chooser.sat.value(installed(id)) > 0;
                if !choice_rules.drop_unneeded(is_installed) {
                    break chooser;
                }
            }
            Err(SolverStop::OutOfSteps) => {
                let (reasons, missing) = (vec![out_of_steps(steps)], BTreeSet::new());
                return Err(UnsolvableRequest {
                    reasons,
                    missing,
                    unlisted: chooser.rules.unlisted,
                });
            }
            Err(SolverStop::Contradiction(contradiction)) => {
                let core = chooser.sat.core(contradiction);
                let last = core
                    .iter()
                    .max()
                    .and_then(|last| (*last as usize).checked_sub(strong));
                let Some(last) = last else {
                    let (reasons, missing) = reasons::told(&chooser.rules, &core, left);
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
    packages.sort_by_key(|id| (pool.name(*id), pool.arch(*id), *id));
    let expected = packages
        .iter()
        .filter_map(|id| chooser.rules.assumed.get(id))
        .flatten()
        .cloned()
        .collect();
    let gone = pool
        .ids()
        .filter(|id| chooser.rules.is_base(*id) && chooser.sat.value(installed(*id)) < 0);
    let replaced = gone
        .map(|id| (id, replacement(pool, id, &packages)))
        .collect();
    Ok(YumSelection {
        packages,
        expected,
        replaced,
        unlisted,
    })
}

fn out_of_steps(steps: u64) -> String {
    format!(
        "the choice was given up after {steps} steps: too many of the \
         packages exclude each other; ask for fewer packages in one \
         entry, or for exact versions"
    )
}

/// Reaches the packages that may come because of what is reached, and so on.
fn reach_supplements(rules: &mut Rules<'_>) {
    loop {
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
            let may_come = relations.iter().any(|relation| {
                rules.note_file(relation);
                let wanted = rules
                    .formula(relation)
                    .map_or_else(Vec::new, |formula| formula.packages());
                wanted.iter().any(|id| rules.reached[id.0 as usize])
            });
            if may_come {
                more.push(id);
            }
        }
        if more.is_empty() {
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
    /// Those that were taken, the last of them now.
    taken: Vec<PackageId>,
    others: Vec<PackageId>,
}

pub(super) struct PackageChooser<'p> {
    pub(super) sat: Sat,
    pub(super) rules: Rules<'p>,
    jobs: std::ops::Range<usize>,
    /// Where the rules of the base end, and the choice rules begin.
    strong: usize,
    /// What no weak dependency brings.
    pub(super) unwanted: HashSet<PackageId>,
    /// For each package, where its rules begin; they end where those of the package before begin.
    first_rule: Vec<(u32, u32)>,
    weak: bool,
    branches: Vec<SolverBranch>,
    /// Where the look at the rules goes on.
    cursor: usize,
    /// The first rule with several good candidates, which was left for later; gone once it was come
    /// to.
    postponed: Option<usize>,
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
        let mut first_rule = vec![(0, 0); rules.pool.count()];
        for (number, rule) in rules.rules[..dependencies].iter().enumerate() {
            let (first, end) = &mut first_rule[package(rule.literals[0]).0 as usize];
            if *end == 0 {
                *first = number as u32;
            }
            *end = number as u32 + 1;
        }
        let unwanted = if weak {
            unwanted(rules.pool)
        } else {
            HashSet::new()
        };
        PackageChooser {
            sat,
            rules,
            unwanted,
            jobs,
            strong,
            first_rule,
            weak,
            branches: Vec::new(),
            cursor: 0,
            postponed: None,
            is_late: false,
        }
    }

    fn run(&mut self) -> Result<(), SolverStop> {
        loop {
            if self.decide_job()? || self.keep()? {
                self.start_over();
            } else if !self.decide_dependency()? {
                self.start_over();
                let has_more = self.weak && self.decide_weak()?;
                if !has_more && !self.decide_better()? {
                    return Ok(());
                }
            }
        }
    }

    /// The next look at the dependencies begins with the first.
    fn start_over(&mut self) {
        (self.cursor, self.postponed, self.is_late) = (0, None, false);
    }

    pub(super) fn policy(&mut self) -> Policy<'_, 'p> {
        Policy::new(&mut self.rules, self.sat.trail())
    }

    /// The open candidates of a rule that is not fulfilled.
    fn open(&self, rule: usize) -> Option<Vec<PackageId>> {
        open(&self.rules.rules[rule].literals, |literal| {
            self.sat.value(literal)
        })
    }

    /// Installs the best of `candidates`. Whether no decision had to be taken back.
    pub(super) fn install(&mut self, mut candidates: Vec<PackageId>) -> Result<bool, SolverStop> {
        self.policy().choose(&mut candidates);
        self.install_first(candidates)
    }

    /// Installs the first of `candidates`, the others of which may be taken later. Whether no
    /// decision had to be taken back.
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

    pub(super) fn decide(&mut self, literal: Literal) -> Result<bool, SolverStop> {
        let level = self.sat.level();
        self.sat.decide(literal)?;
        let now = self.sat.level();
        self.branches.retain(|branch| branch.level < now);
        let is_forward = now > level;
        if !is_forward {
            self.start_over();
        }
        Ok(is_forward)
    }

    fn decide_job(&mut self) -> Result<bool, SolverStop> {
        let Some(mut candidates) = self.jobs.clone().find_map(|job| self.open(job)) else {
            return Ok(false);
        };
        self.sat.spend(self.rules.pool.count())?;
        // what is there already is good enough
        if candidates.iter().any(|id| self.rules.is_base(*id)) {
            candidates.retain(|id| self.rules.is_base(*id));
        }
        self.policy().choose(&mut candidates);
        // what the machine has is not decided yet, and counts for preferences already
        let undecided = self
            .rules
            .pool
            .ids()
            .filter(|id| self.rules.is_base(*id) && self.sat.value(installed(*id)) == 0);
        let undecided: Vec<PackageId> = undecided.collect();
        if candidates.len() > 1 && !undecided.is_empty() {
            let mut policy = self.policy();
            policy.assume(&undecided);
            policy.prefer_wished(&mut candidates);
        }
        self.install_first(candidates).map(|_| true)
    }

    /// Keeps a package of the base, or finds another for it.
    fn keep(&mut self) -> Result<bool, SolverStop> {
        let kept = self.jobs.end..self.strong;
        for rule in kept {
            let own = self.rules.rules[rule].literals[0];
            match self.sat.value(own) {
                0 => return self.decide(own).map(|_| true),
                1.. => {}
                _ => {
                    if let Some(candidates) = self.open(rule) {
                        return self.install(candidates).map(|_| true);
                    }
                }
            }
        }
        Ok(false)
    }

    /// Decides one dependency that is open: those with one good candidate first. Whether there was
    /// one.
    fn decide_dependency(&mut self) -> Result<bool, SolverStop> {
        let trail = self.sat.trail().iter().filter(|literal| **literal > 0);
        let mut ranges: Vec<(u32, u32)> = trail
            .map(|literal| self.first_rule[package(*literal).0 as usize])
            .collect();
        ranges.sort_unstable();
        let looks = ranges
            .iter()
            .map(|(start, end)| (end - start) as usize)
            .sum();
        self.sat.spend(looks)?;
        let rules = ranges
            .into_iter()
            .flat_map(|(start, end)| start as usize..end as usize);
        let rules = rules.chain(self.strong..self.rules.rules.len());
        let mut unmet: Vec<(usize, Vec<PackageId>)> = rules
            .filter_map(|rule| Some((rule, self.open(rule)?)))
            .collect();
        if unmet.is_empty() {
            return Ok(false);
        }
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
            self.is_late = true;
            let from = self.postponed.take().unwrap_or(0);
            unmet.sort_by_key(|(rule, _)| (*rule < from, *rule));
        }
        let (rule, candidates) = unmet.swap_remove(0);
        self.cursor = rule + 1;
        self.install(candidates).map(|_| true)
    }

    /// Where a candidate that was not taken came in later anyway, or is recommended, takes it at
    /// once instead. Whether there was one.
    fn decide_better(&mut self) -> Result<bool, SolverStop> {
        let mut take = None;
        for number in (0..self.branches.len()).rev() {
            let branch = self.branches[number].clone();
            let came_later = |id: &PackageId| self.sat.value(installed(*id)) > branch.level as i32;
            if let Some(other) = branch.others.iter().position(came_later) {
                take = Some((number, other));
                continue;
            }
            let now = branch
                .taken
                .iter()
                .copied()
                .find(|id| self.sat.value(installed(*id)) == branch.level as i32 + 1);
            let mut policy = self.policy();
            let wished = branch.others.iter().position(|id| policy.is_wished(*id));
            if let (Some(other), Some(now)) = (wished, now)
                && !policy.is_wished(now)
            {
                take = Some((number, other));
            }
        }
        let Some((number, other)) = take else {
            return Ok(false);
        };
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
