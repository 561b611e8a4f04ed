//! Why packages cannot be installed, as a chain of sentences from what is asked for to where it ends.

use super::formula::{Literal, package};
use super::rules::{Rule, Rules, Why};
use super::sat::{ClauseId, Sat};
use crate::packages::yum::pool::{Kind, PackageId};
use crate::packages::yum::rich::Rich;
use std::collections::BTreeSet;

/// The rules of `core`, which cannot all hold, as sentences. Rules without which the others cannot hold either are left out.
pub(super) fn told(rules: &Rules<'_>, core: &[ClauseId]) -> Vec<String> {
    let mut needed: Vec<&Rule> = core.iter().map(|id| &rules.rules[*id as usize]).collect();
    let mut at = needed.len();
    while let Some(before) = at.checked_sub(1) {
        at = before;
        let rest = |number: &usize| *number != at;
        let without: Vec<&Rule> = (0..needed.len()).filter(rest).map(|number| needed[number]).collect();
        if !can_hold(rules, &without) {
            needed = without;
        }
    }
    sentences(rules, needed)
}

fn can_hold(rules: &Rules<'_>, some: &[&Rule]) -> bool {
    let (mut sat, mut outcome) = Sat::new(rules.pool.len(), some.iter().map(|rule| rule.literals.as_slice()));
    let literals: BTreeSet<Literal> = some.iter().flat_map(|rule| &rule.literals).copied().collect();
    while outcome.is_ok() {
        let Some(open) = literals.iter().copied().find(|literal| sat.value(*literal) == 0) else {
            return true;
        };
        outcome = sat.decide(open);
    }
    false
}

/// First what is asked for, then what that needs, and so on; what excludes comes when both sides are known.
fn sentences(rules: &Rules<'_>, mut left: Vec<&Rule>) -> Vec<String> {
    let mut known: BTreeSet<PackageId> = BTreeSet::new();
    let mut told: Vec<String> = Vec::new();
    while !left.is_empty() {
        let is_ready = |rule: &&Rule| {
            rule.literals.iter().all(|literal| *literal > 0 || known.contains(&package(*literal)))
        };
        let next = left.iter().position(is_ready).unwrap_or(0);
        let rule = left.remove(next);
        known.extend(rule.literals.iter().map(|literal| package(*literal)));
        let sentence = sentence(rules, rule);
        if !told.contains(&sentence) {
            told.push(sentence);
        }
    }
    told
}

/// More candidates than this are counted, not named.
const NAMED: usize = 4;

fn sentence(rules: &Rules<'_>, rule: &Rule) -> String {
    let pool = rules.pool;
    let name = |id: PackageId| match rules.is_base(id) {
        true => format!("{} of the base", pool.nevra(id)),
        false => pool.nevra(id),
    };
    let list = |ids: &[PackageId]| {
        let mut names: Vec<String> = ids.iter().take(NAMED).map(|id| name(*id)).collect();
        if ids.len() > NAMED {
            names.push(format!("{} more", ids.len() - NAMED));
        }
        names.join(", ")
    };
    let others: Vec<PackageId> =
        rule.literals.iter().filter(|literal| **literal > 0).map(|literal| package(*literal)).collect();
    match &rule.why {
        Why::Asked(word) => format!("'{word}' is asked for, which is {}", list(&others)),
        Why::Kept(id) => format!("{} stays", name(*id)),
        Why::SameName(one, other) => {
            format!("{} and {} cannot stand beside each other", name(*one.min(other)), name(*one.max(other)))
        }
        Why::Architecture(id) => format!("{} is for an architecture that is not preferred", name(*id)),
        Why::Dependency(id, kind, number) => {
            let relation = pool.relations(*id, *kind).nth(*number as usize);
            let text = relation.map(|relation| relation.to_string()).unwrap_or_default();
            let who = name(*id);
            let excluded = rule.literals.iter().skip(1).map(|literal| package(*literal)).collect::<Vec<_>>();
            match kind {
                Kind::Conflicts if Rich::is_rich(&text) => format!("{who} conflicts with {text}"),
                Kind::Conflicts => format!("{who} conflicts with {text}, which is {}", list(&excluded)),
                Kind::Obsoletes => format!("{who} replaces {text}, which is {}", list(&excluded)),
                _ if others.is_empty() && Rich::is_rich(&text) => {
                    format!("{who} requires {text}, which cannot be met")
                }
                _ if others.is_empty() => {
                    let named = pool.named(relation.map_or("", |relation| relation.name));
                    match named.is_empty() {
                        true => format!("{who} requires {text}, which no source offers"),
                        false => format!("{who} requires {text}; the sources have only {}", list(&named)),
                    }
                }
                _ => format!("{who} requires {text}, which is {}", list(&others)),
            }
        }
    }
}
