//! The rules for installed packages (the base): each package is kept or replaced. Also determines
//! which weak dependencies of the base were never installed.

use super::formula::installed;
use super::rules::{Rule, RuleOrigin, Rules};
use crate::yum::architecture::{Architectures, NOARCH};
use crate::yum::pool::{PackageId, Pool, RpmRelationKind};
use crate::yum::relation::{RpmRelation, VersionSense};
use crate::yum::rich::RichDependency;
use std::collections::{HashMap, HashSet};

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
pub(super) fn obsoletes(pool: &Pool, one: PackageId, other: PackageId) -> bool {
    pool.relations(one, RpmRelationKind::Obsoletes)
        .any(|relation| {
            relation.name == pool.name(other)
                && VersionSense::SAME.meets(pool.evr(other), relation.sense, relation.evr)
        })
}

/// Whether the architecture of `other` allows it to replace `id`. A change between 32 and 64 bits
/// is not an update.
pub(super) fn may_replace(rules: &Rules<'_>, id: PackageId, other: PackageId) -> bool {
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
pub(super) fn base_rules(rules: &Rules<'_>) -> Vec<Rule> {
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
pub(super) fn excluded_from_weak(pool: &Pool) -> HashSet<PackageId> {
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
