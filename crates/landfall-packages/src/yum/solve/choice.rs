//! libsolv's choice rules: if both another version of an installed package and a new package
//! satisfy a dependency, the former is preferred.
//!
//! Choice rules are weak. A rule is dropped, and everything is decided again, if the rule leads to
//! a contradiction, or if the solution installs a package that the rule should have excluded.

use super::base_rules::{may_replace, obsoletes};
use super::formula::{Literal, installed, package};
use super::rules::{Rule, RuleOrigin, Rules};
use crate::yum::architecture::Architectures;
use crate::yum::pool::PackageId;
use std::collections::{BTreeSet, HashMap, HashSet};

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
