//! Package selection by dnf's rules: [`choose`] answers a [`SelectionRequest`] with a
//! [`YumSelection`] or a chain of reasons.

mod formula;
mod package_chooser;
mod policy;
mod reasons;
pub(crate) mod request_words;
mod rules;
mod sat;
#[cfg(test)]
mod tests;

use self::formula::{installed, package};
use self::package_chooser::{ChoiceRules, PackageChooser};
use self::request_words::{candidates, explain_no_match};
use self::rules::{Rule, RuleOrigin, Rules};
use self::sat::{Sat, SolverStop};
use super::pool::{PackageId, Pool, RpmRelationKind};
use super::relation::{RichDependency, RpmRelation, VersionSense};
use super::requests::{PackageRequest, WantedPackages};
use super::version::{Architectures, NOARCH};
use std::collections::{BTreeSet, HashMap, HashSet};

pub use self::request_words::is_named;

// Package selection: makes the rules of a request, and decides with the choice rules that allow a
// solution.

/// A request to select packages from a pool, with its options.
#[derive(Debug, Clone, Copy)]
pub struct SelectionRequest<'a> {
    /// The packages of all sources and the installed packages (the base).
    pub pool: &'a Pool,
    /// The architectures whose packages the machine can install.
    pub architectures: &'a Architectures,
    /// The requested packages.
    pub install: &'a [PackageRequest],
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

/// One of `candidates` must be installed.
struct Job<'a> {
    /// The request as messages name it.
    label: &'a str,
    candidates: Vec<PackageId>,
    /// If this is a package, the job counts only if that package is installed.
    condition: Option<PackageId>,
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
    let mut rules = Rules::new(pool, architectures, assume, steps);
    let jobs = jobs(install, &mut rules)?;
    let base_rules = base_rules(&rules);
    let candidates = jobs.iter().flat_map(|job| &job.candidates).copied();
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
        .flat_map(|job| &job.candidates)
        .map(|id| (pool.name(*id), pool.arch(*id)));
    rules.prefer_architectures(&names.collect());
    if rules.is_out_of_steps() {
        return Err(out_of_steps(steps, rules.unlisted));
    }
    rules.sort();
    // the order of the rules: dependencies, requests (jobs), rules of the base, choice rules
    let dependencies = rules.rules.len();
    rules.rules.extend(jobs.into_iter().map(|job| {
        let condition = job.condition.map(|id| -installed(id));
        Rule {
            literals: job
                .candidates
                .into_iter()
                .map(installed)
                .chain(condition)
                .collect(),
            why: RuleOrigin::Requested(job.label.to_owned()),
        }
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
        left = chooser.sat.steps;
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

/// Returns the jobs of the requests `install`. Fails if a requested package does not exist.
fn jobs<'a>(
    install: &'a [PackageRequest],
    rules: &mut Rules<'_>,
) -> Result<Vec<Job<'a>>, UnsolvableRequest> {
    let pool = rules.pool;
    let mut jobs: Vec<Job<'a>> = Vec::new();
    let mut reasons = Vec::new();
    let mut missing = BTreeSet::new();
    for request in install {
        let found = candidates(pool, rules.architectures, request);
        let conditions = match &request.wanted {
            WantedPackages::Word(word) => {
                if found.is_empty() {
                    reasons.push(explain_no_match(pool, word));
                    missing.insert(word.clone());
                }
                // a requested file may be in a list of all files that was not read
                rules.note_file(&RpmRelation::any(word));
                vec![None]
            }
            // dnf requests `(package if other)` for each of the other packages
            WantedPackages::OfGroup(package) => match &package.requires {
                Some(other) => pool.named(other).into_iter().map(Some).collect(),
                None => vec![None],
            },
            WantedPackages::OfModule(name, _) => {
                if found.is_empty() {
                    reasons.push(format!("no source has '{name}' of {}", request.label));
                    missing.insert(name.clone());
                }
                vec![None]
            }
        };
        for candidates in found {
            jobs.extend(conditions.iter().map(|condition| Job {
                label: &request.label,
                candidates: candidates.clone(),
                condition: *condition,
            }));
        }
    }
    if !missing.is_empty() {
        return Err(UnsolvableRequest {
            reasons,
            missing,
            unlisted: rules.unlisted.clone(),
        });
    }
    Ok(jobs)
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

// The rules for installed packages (the base): each package is kept or replaced. Also determines
// which weak dependencies of the base were never installed.

/// Returns the package among `packages` that replaces `gone`: another version of it, or a package
/// that obsoletes it.
pub(super) fn replacement(
    pool: &Pool,
    gone: PackageId,
    packages: &[PackageId],
) -> Option<PackageId> {
    packages
        .iter()
        .find(|id| pool.name(**id) == pool.name(gone))
        .or_else(|| packages.iter().find(|id| obsoletes(pool, **id, gone)))
        .copied()
}

/// Whether `one` obsoletes `other`.
fn obsoletes(pool: &Pool, one: PackageId, other: PackageId) -> bool {
    pool.relations(one, RpmRelationKind::Obsoletes)
        .any(|relation| {
            relation.name == pool.name(other)
                && VersionSense::SAME.meets(pool.evr(other), relation.sense, relation.evr)
        })
}

/// Whether the architecture of `other` allows it to replace `id`. A change between 32 and 64 bits
/// is not an update.
fn may_replace(rules: &Rules<'_>, id: PackageId, other: PackageId) -> bool {
    let [own, others] = [id, other].map(|id| rules.pool.arch(id));
    let is_same_arch = own == others
        || [own, others].contains(&NOARCH)
        || rules.arch_rank(id) == rules.arch_rank(other);
    other != id && is_same_arch && Architectures::collide(own, others)
}

/// For each name, the packages that obsolete it, each with its `Obsoletes` relation.
type ObsoletedNames<'p> = HashMap<&'p str, Vec<(PackageId, RpmRelation<'p>)>>;

/// Returns one rule for each package of the base, with the package itself first, followed by the
/// packages that may replace it: other versions, newer or older, and packages that obsolete it.
fn base_rules(rules: &Rules<'_>) -> Vec<Rule> {
    let pool = rules.pool;
    let mut obsoleted: ObsoletedNames<'_> = HashMap::new();
    // grouped by name: otherwise the search for each package of the base would visit the whole pool
    for id in pool.ids() {
        for relation in pool.relations(id, RpmRelationKind::Obsoletes) {
            obsoleted
                .entry(relation.name)
                .or_default()
                .push((id, relation));
        }
    }
    pool.ids()
        .filter(|id| rules.is_base(*id))
        .map(|id| Rule {
            literals: std::iter::once(id)
                .chain(replacements(rules, &obsoleted, id))
                .map(installed)
                .collect(),
            why: RuleOrigin::Kept(id),
        })
        .collect()
}

/// Returns the packages that may replace `id`. Packages that obsolete it without providing its name
/// count only if no package both obsoletes it and provides its name.
fn replacements(
    rules: &Rules<'_>,
    obsoleted: &ObsoletedNames<'_>,
    id: PackageId,
) -> Vec<PackageId> {
    let pool = rules.pool;
    let mut found: Vec<PackageId> = Vec::new();
    let mut has_replacement = false;
    for other in pool.named(pool.name(id)) {
        if !may_replace(rules, id, other) {
            continue;
        }
        if pool.name(other) == pool.name(id) {
            // another kernel is installed besides this one and does not replace it
            if !rules.is_multiversion(id) {
                found.push(other);
            }
        } else if obsoletes(pool, other, id) {
            found.push(other);
            has_replacement = true;
        }
    }
    if !has_replacement {
        let by_obsoletes = obsoleted.get(pool.name(id)).into_iter().flatten();
        found.extend(
            by_obsoletes
                .filter(|(other, relation)| {
                    VersionSense::SAME.meets(pool.evr(id), relation.sense, relation.evr)
                        && pool.name(*other) != pool.name(id)
                        && may_replace(rules, id, *other)
                })
                .map(|(other, _)| *other),
        );
    }
    found
}

/// Returns the packages that dnf does not install for weak dependencies
/// (`exclude_from_weak_autodetect`): packages that the base recommends or that supplement it,
/// unless the base has some version of them. The base could contain them, but does not. Rich
/// dependencies do not count.
fn excluded_from_weak(pool: &Pool) -> HashSet<PackageId> {
    let is_base = |id: &PackageId| pool.package(*id).source.is_none();
    let base: Vec<PackageId> = pool.ids().filter(is_base).collect();
    let mut excluded = HashSet::new();
    if base.is_empty() {
        return excluded;
    }
    let is_plain = |relation: &RpmRelation<'_>| !RichDependency::is_rich(relation.name);
    for relation in base
        .iter()
        .flat_map(|id| pool.relations(*id, RpmRelationKind::Recommends))
        .filter(is_plain)
    {
        // if the base has some version of the package, a newer one may be installed
        if !pool.named(relation.name).iter().any(is_base) {
            excluded.extend(pool.providers(relation));
        }
    }
    // other versions of an installed package are never excluded
    let names: HashSet<&str> = base.iter().map(|id| pool.name(*id)).collect();
    for id in pool.ids().filter(|id| !names.contains(pool.name(*id))) {
        let mut supplemented = pool
            .relations(id, RpmRelationKind::Supplements)
            .filter(is_plain);
        if supplemented.any(|relation| pool.providers(relation).iter().any(is_base)) {
            excluded.insert(id);
        }
    }
    excluded
}
