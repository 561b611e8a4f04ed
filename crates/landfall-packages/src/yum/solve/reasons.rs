//! Explains why packages cannot be installed: a chain of sentences from a request to the cause.

use super::formula::{Literal, package};
use super::rules::{Rule, RuleOrigin, Rules};
use super::sat::{ClauseId, Sat, SolverStop};
use crate::yum::pool::{PackageId, Pool, RpmRelationKind};
use crate::yum::relation::{RichDependency, RpmRelation};
use std::collections::{BTreeSet, HashMap, HashSet};

/// The steps that each visited package or literal costs when a solver is made: more than in a
/// search, because memory is allocated.
const BUILD_STEPS: u64 = 8;

/// Explains the rules of `core`, which cannot all hold. Returns their sentences, and the required
/// relations that no package provides. Omits rules that are not needed for the contradiction, as
/// long as `steps` are left to find them.
pub(super) fn explain(
    rules: &Rules<'_>,
    core: &[ClauseId],
    mut steps: u64,
) -> (Vec<String>, BTreeSet<String>) {
    let mut needed: Vec<&Rule> = core.iter().map(|id| &rules.rules[*id as usize]).collect();
    // without this reduction, a chain would contain every rule that the search used
    let mut at = needed.len();
    while let Some(before) = at.checked_sub(1)
        && steps > 0
    {
        at = before;
        let without: Vec<&Rule> = (0..needed.len())
            .filter(|number| *number != at)
            .map(|number| needed[number])
            .collect();
        if !may_hold(rules, &without, &mut steps) {
            needed = without;
        }
    }
    let missing = needed
        .iter()
        .filter_map(|rule| missing_relation(rules, rule))
        .collect();
    (sentences(rules, &needed), missing)
}

/// Returns the relation that `rule` requires, if no package provides it.
fn missing_relation(rules: &Rules<'_>, rule: &Rule) -> Option<String> {
    let RuleOrigin::Dependency(id, RpmRelationKind::Requires, number) = &rule.why else {
        return None;
    };
    let has_providers = rule.literals.iter().any(|literal| *literal > 0);
    let relation = rules
        .pool
        .relations(*id, RpmRelationKind::Requires)
        .nth(*number as usize)?;
    (!has_providers && !RichDependency::is_rich(relation.name)).then(|| relation.to_string())
}

/// Whether the rules `some` can all hold, or `steps` are not enough to decide that.
fn may_hold(rules: &Rules<'_>, some: &[&Rule], steps: &mut u64) -> bool {
    let literals = some.iter().map(|rule| rule.literals.len()).sum::<usize>();
    let visited = rules.pool.count() + literals;
    *steps = steps.saturating_sub(BUILD_STEPS * visited as u64);
    if *steps == 0 {
        return true;
    }
    let clauses = some.iter().map(|rule| rule.literals.as_slice());
    let (mut sat, outcome) = Sat::new(rules.pool.count(), *steps, clauses);
    let mut outcome = outcome.map_err(SolverStop::from);
    let literals: BTreeSet<Literal> = some
        .iter()
        .flat_map(|rule| &rule.literals)
        .copied()
        .collect();
    // any assignment is sufficient, so the policy is not needed here
    while outcome.is_ok() {
        let mut visited = 0;
        let open = literals.iter().copied().find(|literal| {
            visited += 1;
            sat.value(*literal) == 0
        });
        let Some(open) = open else {
            *steps = sat.steps;
            return true;
        };
        outcome = sat.spend(visited).and_then(|()| sat.decide(open));
    }
    *steps = sat.steps;
    outcome == Err(SolverStop::OutOfSteps)
}

/// Orders the rules and returns their sentences: first the requests, then their dependencies, and
/// so on. A conflict follows once both packages were mentioned.
fn sentences(rules: &Rules<'_>, needed: &[&Rule]) -> Vec<String> {
    // for each package, the rules that wait until it was mentioned
    let mut waiting: HashMap<PackageId, Vec<usize>> = HashMap::new();
    // for each rule, the number of packages for which it waits
    let mut waits: Vec<usize> = Vec::new();
    for (number, rule) in needed.iter().enumerate() {
        let negative = rule.literals.iter().filter(|literal| **literal < 0);
        let packages: BTreeSet<PackageId> = negative.map(|literal| package(*literal)).collect();
        waits.push(packages.len());
        for id in packages {
            waiting.entry(id).or_default().push(number);
        }
    }
    let mut left: BTreeSet<usize> = (0..needed.len()).collect();
    let is_ready = |number: &usize| waits[*number] == 0;
    let mut ready: BTreeSet<usize> = left.iter().copied().filter(is_ready).collect();
    let mut seen: HashSet<String> = HashSet::new();
    let mut sentences: Vec<String> = Vec::new();
    while let Some(next) = ready.first().or(left.first()).copied() {
        ready.remove(&next);
        left.remove(&next);
        for literal in &needed[next].literals {
            for number in waiting.remove(&package(*literal)).unwrap_or_default() {
                waits[number] -= 1;
                if waits[number] == 0 && left.contains(&number) {
                    ready.insert(number);
                }
            }
        }
        // several rules can come from one relation
        let sentence = sentence(rules, needed[next]);
        if seen.insert(sentence.clone()) {
            sentences.push(sentence);
        }
    }
    sentences
}

/// The maximum number of packages that a sentence names; the others are counted.
const NAMED: usize = 4;

/// Returns the packages that provide `name` in some version: `nevra` for packages of this name,
/// `provided of nevra` for others.
pub(super) fn offers(pool: &Pool, name: &str) -> Vec<String> {
    let mut all = pool.named(name);
    // the newest first
    all.sort_by(|a, b| {
        pool.name(*a)
            .cmp(pool.name(*b))
            .then_with(|| pool.compare(*b, *a))
    });
    let mut offers: Vec<String> = all
        .iter()
        .take(NAMED)
        .map(|id| {
            let nevra = pool.nevra(*id);
            if pool.name(*id) == name {
                return nevra;
            }
            let provided = pool
                .relations(*id, RpmRelationKind::Provides)
                .find(|one| one.name == name);
            match provided {
                Some(provided) => format!("{provided} of {nevra}"),
                // `name` is a file
                None => nevra,
            }
        })
        .collect();
    if all.len() > NAMED {
        offers.push(format!("{} more", all.len() - NAMED));
    }
    offers
}

/// Whether none of `packages` has `name` as its own name.
fn is_virtual(pool: &Pool, name: &str, packages: &[PackageId]) -> bool {
    !RichDependency::is_rich(name) && packages.iter().all(|id| pool.name(*id) != name)
}

/// Returns the sentence of a rule.
fn sentence(rules: &Rules<'_>, rule: &Rule) -> String {
    let pool = rules.pool;
    let others: Vec<PackageId> = rule
        .literals
        .iter()
        .filter(|literal| **literal > 0)
        .map(|literal| package(*literal))
        .collect();
    match &rule.why {
        RuleOrigin::Requested(word) => {
            let name = RpmRelation::parse(word).map_or(word.as_str(), |relation| relation.name);
            let is_provided = !pool.named(name).is_empty() && is_virtual(pool, name, &others);
            let is = if is_provided { "provided by" } else { "" };
            format!(
                "'{word}' is requested, which is {}",
                [is, &package_list(rules, &others)].join(" ").trim_start()
            )
        }
        RuleOrigin::Kept(id) => format!("{} must be kept", package_name(rules, *id)),
        // in the order of their ids, so that both directions give the same sentence
        RuleOrigin::SameName(one, other) => format!(
            "{} and {} cannot be installed together",
            package_name(rules, *one.min(other)),
            package_name(rules, *one.max(other))
        ),
        RuleOrigin::Architecture(id) => format!(
            "{} is for an architecture that is not preferred",
            package_name(rules, *id)
        ),
        RuleOrigin::Dependency(id, kind, number) => {
            let relation = pool.relations(*id, *kind).nth(*number as usize);
            let text = relation
                .map(|relation| relation.to_string())
                .unwrap_or_default();
            let who = package_name(rules, *id);
            let excluded = rule
                .literals
                .iter()
                .skip(1)
                .map(|literal| package(*literal))
                .collect::<Vec<_>>();
            match kind {
                RpmRelationKind::Conflicts if RichDependency::is_rich(&text) => {
                    format!("{who} conflicts with {text}")
                }
                RpmRelationKind::Conflicts => format!(
                    "{who} conflicts with {text}, which is {}",
                    package_list(rules, &excluded)
                ),
                RpmRelationKind::Obsoletes => format!(
                    "{who} replaces {text}, which is {}",
                    package_list(rules, &excluded)
                ),
                _ if others.is_empty() && RichDependency::is_rich(&text) => {
                    format!("{who} requires {text}, which cannot be met")
                }
                _ if others.is_empty() => {
                    let offers =
                        relation.map_or_else(Vec::new, |relation| offers(pool, relation.name));
                    if offers.is_empty() {
                        format!("{who} requires {text}, which no source offers")
                    } else {
                        format!(
                            "{who} requires {text}; the sources have only {}",
                            offers.join(", ")
                        )
                    }
                }
                _ if relation.is_some_and(|relation| is_virtual(pool, relation.name, &others)) => {
                    format!(
                        "{who} requires {text}, which is provided by {}",
                        package_list(rules, &others)
                    )
                }
                _ => format!(
                    "{who} requires {text}, which is {}",
                    package_list(rules, &others)
                ),
            }
        }
    }
}

fn package_name(rules: &Rules<'_>, id: PackageId) -> String {
    let nevra = rules.pool.nevra(id);
    if rules.is_base(id) {
        format!("{nevra} of the base")
    } else {
        nevra
    }
}

fn package_list(rules: &Rules<'_>, ids: &[PackageId]) -> String {
    let mut names: Vec<String> = ids
        .iter()
        .take(NAMED)
        .map(|id| package_name(rules, *id))
        .collect();
    if ids.len() > NAMED {
        names.push(format!("{} more", ids.len() - NAMED));
    }
    names.join(", ")
}
