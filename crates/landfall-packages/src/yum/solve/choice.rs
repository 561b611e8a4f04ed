//! Where something that is needed can come by another version of what a machine has, or by a
//! package that is new to it, dnf prefers the former: libsolv's choice rules. They are weak: one
//! that leads into a contradiction, or that the solution has no use for, is dropped, and everything
//! is decided anew.

use super::formula::{Literal, installed, package};
use super::kept::{may_follow, obsoletes};
use super::rules::{Rule, RuleOrigin, Rules};
use crate::yum::architecture::Architectures;
use crate::yum::pool::PackageId;
use std::collections::{BTreeSet, HashMap, HashSet};

/// The choice rules of a question.
#[derive(Debug, Default)]
pub(super) struct ChoiceRules {
    all: Vec<ChoiceRule>,
}

#[derive(Debug)]
struct ChoiceRule {
    literals: Vec<Literal>,
    why: RuleOrigin,
    /// The packages that the dependency itself allows.
    allowed: BTreeSet<PackageId>,
    is_enabled: bool,
}

impl ChoiceRule {
    /// The packages that the dependency allows and this rule does not.
    fn others(&self) -> BTreeSet<PackageId> {
        self.allowed
            .iter()
            .copied()
            .filter(|id| !self.literals.contains(&installed(*id)))
            .collect()
    }
}

impl ChoiceRules {
    /// The choice rules for `dependencies`, the clauses of `rules`; `kept` has those of the base.
    pub(super) fn new(rules: &Rules<'_>, dependencies: &[Rule], kept: &[Rule]) -> ChoiceRules {
        let pool = rules.pool;
        let mut updates: HashMap<PackageId, &[Literal]> = HashMap::new();
        let mut base: HashMap<&str, Vec<PackageId>> = HashMap::new();
        for rule in kept {
            let id = package(rule.literals[0]);
            updates.insert(id, &rule.literals);
            base.entry(pool.name(id)).or_default().push(id);
        }
        if updates.is_empty() {
            return ChoiceRules::default();
        }
        let barred: HashSet<PackageId> = dependencies
            .iter()
            .filter(|rule| {
                matches!(rule.why, RuleOrigin::Architecture(_)) && rule.literals.len() == 1
            })
            .map(|rule| package(rule.literals[0]))
            .collect();
        // which package of the base another one would take the place of
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
            let (mut preferred, mut replaced, mut has_others) = (Vec::new(), Vec::new(), false);
            let positive = rule.literals.iter().filter(|literal| **literal > 0);
            for id in positive.clone().map(|literal| package(*literal)) {
                match rules.is_base(id).then_some(id).or_else(|| replaced_by(id)) {
                    Some(own)
                        if own == id || may_follow(rules, own, id) && !barred.contains(&id) =>
                    {
                        preferred.push(id);
                        replaced.push(own);
                    }
                    Some(_) => {}
                    None => has_others = true,
                }
            }
            if !has_others || preferred.is_empty() {
                continue;
            }
            let allowed: BTreeSet<PackageId> = positive.map(|literal| package(*literal)).collect();
            // where every version would do, there is nothing to prefer
            let is_met = |own: &PackageId| {
                updates[own]
                    .iter()
                    .all(|one| allowed.contains(&package(*one)))
            };
            if replaced.iter().all(is_met) {
                continue;
            }
            let negative = rule.literals.iter().copied().filter(|literal| *literal < 0);
            let literals: Vec<Literal> = negative
                .chain(preferred.into_iter().map(installed))
                .collect();
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

    /// The rules that count, each as a clause.
    pub(super) fn enabled(&self) -> impl Iterator<Item = Rule> {
        let enabled = self.all.iter().filter(|rule| rule.is_enabled);
        enabled.map(|rule| Rule {
            literals: rule.literals.clone(),
            why: rule.why.clone(),
        })
    }

    /// Drops the rule at `place` among those that count, and those that would keep out the same
    /// packages.
    pub(super) fn drop_enabled(&mut self, place: usize) {
        let number = (0..self.all.len())
            .filter(|number| self.all[*number].is_enabled)
            .nth(place);
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

    /// Drops the rules of which the solution installs a package that they would have kept out.
    /// Whether there were any.
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
