//! What becomes of the packages that a machine has: each stays, or another takes its place; and
//! what they have done without.

use super::formula::installed;
use super::rules::{Rule, RuleOrigin, Rules};
use crate::yum::architecture::{Architectures, NOARCH};
use crate::yum::pool::{PackageId, Pool, RpmRelationKind};
use crate::yum::relation::{RpmRelation, VersionSense};
use crate::yum::rich::RichDependency;
use std::collections::{HashMap, HashSet};

/// Which of `packages` takes the place of `gone`: another version of it, or what says that it
/// replaces it.
pub(super) fn replacement(
    pool: &Pool,
    gone: PackageId,
    packages: &[PackageId],
) -> Option<PackageId> {
    let has_its_name = |id: &&PackageId| pool.name(**id) == pool.name(gone);
    let replaces = |id: &&PackageId| obsoletes(pool, **id, gone);
    packages
        .iter()
        .find(has_its_name)
        .or_else(|| packages.iter().find(replaces))
        .copied()
}

/// Whether `one` says that it replaces `other`.
pub(super) fn obsoletes(pool: &Pool, one: PackageId, other: PackageId) -> bool {
    pool.relations(one, RpmRelationKind::Obsoletes)
        .any(|relation| {
            relation.name == pool.name(other)
                && VersionSense::SAME.meets(pool.evr(other), relation.sense, relation.evr)
        })
}

/// Whether `other` may take the place of `id`, by their architectures.
pub(super) fn may_follow(rules: &Rules<'_>, id: PackageId, other: PackageId) -> bool {
    let [own, others] = [id, other].map(|id| rules.pool.arch(id));
    let rank = |arch| rules.architectures.rank(arch);
    let is_same_arch =
        own == others || [own, others].contains(&NOARCH) || rank(own) == rank(others);
    other != id && is_same_arch && Architectures::collide(own, others)
}

/// For each package of the base: it stays, or another version takes its place, newer or older, or a
/// package that replaces it. Packages that replace it without providing its name count only if no
/// package does both.
pub(super) fn kept(rules: &Rules<'_>) -> Vec<Rule> {
    let pool = rules.pool;
    let mut replacing: HashMap<&str, Vec<(PackageId, RpmRelation<'_>)>> = HashMap::new();
    for id in pool.ids() {
        for relation in pool.relations(id, RpmRelationKind::Obsoletes) {
            replacing
                .entry(relation.name)
                .or_default()
                .push((id, relation));
        }
    }
    let rule = |id: PackageId| {
        let may_follow = |other: &PackageId| may_follow(rules, id, *other);
        let mut followers: Vec<PackageId> = Vec::new();
        let mut has_replacement = false;
        for other in pool.named(pool.name(id)).into_iter().filter(may_follow) {
            if pool.name(other) == pool.name(id) {
                if !rules.stands_beside(id) {
                    followers.push(other);
                }
            } else if obsoletes(pool, other, id) {
                followers.push(other);
                has_replacement = true;
            }
        }
        if !has_replacement {
            let replaces = |(other, relation): &(PackageId, RpmRelation<'_>)| {
                let is_meant = VersionSense::SAME.meets(pool.evr(id), relation.sense, relation.evr);
                (is_meant && pool.name(*other) != pool.name(id)).then_some(*other)
            };
            let others = replacing
                .get(pool.name(id))
                .into_iter()
                .flatten()
                .filter_map(replaces);
            followers.extend(others.filter(may_follow));
        }
        let all = std::iter::once(id).chain(followers);
        Rule {
            literals: all.map(installed).collect(),
            why: RuleOrigin::Kept(id),
        }
    };
    pool.ids()
        .filter(|id| rules.is_base(*id))
        .map(rule)
        .collect()
}

/// What the base has done without so far, and dnf does not bring for weak dependencies either
/// (`exclude_from_weak_autodetect`): what a package of the base recommends, unless the base has
/// some version of it, and what supplements a package of the base. Rich dependencies do not count.
pub(super) fn unwanted(pool: &Pool) -> HashSet<PackageId> {
    let is_base = |id: &PackageId| pool.package(*id).source.is_none();
    let base: Vec<PackageId> = pool.ids().filter(is_base).collect();
    let mut unwanted = HashSet::new();
    if base.is_empty() {
        return unwanted;
    }
    let is_plain = |relation: &RpmRelation<'_>| !RichDependency::is_rich(relation.name);
    for relation in base
        .iter()
        .flat_map(|id| pool.relations(*id, RpmRelationKind::Recommends))
        .filter(is_plain)
    {
        if !pool.named(relation.name).iter().any(is_base) {
            unwanted.extend(pool.providers(relation));
        }
    }
    let names: HashSet<&str> = base.iter().map(|id| pool.name(*id)).collect();
    for id in pool.ids().filter(|id| !names.contains(pool.name(*id))) {
        let mut supplemented = pool
            .relations(id, RpmRelationKind::Supplements)
            .filter(is_plain);
        if supplemented.any(|relation| pool.providers(relation).iter().any(is_base)) {
            unwanted.insert(id);
        }
    }
    unwanted
}
