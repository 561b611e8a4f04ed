//! Why packages cannot be installed: one reason a package, and the chain from what was asked for to what is in the way.

use super::offer::{Name, Package, Relation, RelationKind, Version, Wanted};
use super::relation::Op;
use super::universe::Universe;
use std::collections::HashMap;

/// Why a package cannot be installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reason {
    /// This relation of the version is fulfilled by nothing: its alternatives.
    Unmet(Version, Vec<Wish>),
    /// It needs this name, and these packages could be it.
    Needs(Version, Name, Vec<Package>),
    /// It must not be beside this version.
    Conflicts(Version, Version),
    /// This version of another architecture is there.
    OtherArchitecture(Version),
    /// This package would have to go.
    Holds(Package),
}

/// A relation as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wish {
    name: Name,
    text: String,
}

impl Reason {
    pub(super) fn unmet(version: Version, group: &[Relation<'_>]) -> Reason {
        let wish = |relation: &Relation<'_>| Wish { name: relation.name, text: bounds(relation) };
        Reason::Unmet(version, group.iter().map(wish).collect())
    }
}

fn bounds(relation: &Relation<'_>) -> String {
    match relation.op {
        Op::Any => String::new(),
        op => format!(" ({op} {})", relation.version),
    }
}

/// `a (>= 1) | b` as people write it.
pub(super) fn written(universe: &Universe<'_>, group: &[Relation<'_>]) -> String {
    let one = |relation: &Relation<'_>| {
        let arch = match relation.arch {
            Wanted::Own => String::new(),
            Wanted::Any => ":any".into(),
            Wanted::This(at) => {
                universe.architectures.get(at as usize).map(|arch| format!(":{arch}")).unwrap_or_default()
            }
        };
        format!("{}{arch}{}", universe.text(relation.name), bounds(relation))
    };
    group.iter().map(one).collect::<Vec<_>>().join(" | ")
}

/// The first reason of each package.
#[derive(Debug, Default)]
pub(super) struct Reasons(HashMap<Package, Reason>);

impl Reasons {
    pub(super) fn set(&mut self, package: Package, reason: Reason) {
        self.0.entry(package).or_insert(reason);
    }

    /// The chain of reasons from `package` on, a sentence each.
    pub(super) fn chain(&self, universe: &Universe<'_>, package: Package) -> Vec<String> {
        let (mut lines, mut seen, mut at) = (Vec::new(), Vec::new(), package);
        while let Some(reason) = self.0.get(&at).filter(|_| !seen.contains(&at)) {
            seen.push(at);
            let (line, next) = told(universe, at, reason);
            lines.push(line);
            let known = next.iter().find(|next| self.0.contains_key(*next));
            match known {
                Some(next) => at = *next,
                None => break,
            }
        }
        lines
    }
}

/// What a broken relation of `version` says, where nothing was noted on the way.
pub(super) fn broken(universe: &Universe<'_>, version: Version, group: &[Relation<'_>]) -> String {
    let (name, text) = (shown(universe, version), written(universe, group));
    match group[0].kind {
        RelationKind::Conflicts | RelationKind::Breaks => format!("{name} must not be beside {text}"),
        _ => format!("{name} needs {text}"),
    }
}

fn told(universe: &Universe<'_>, package: Package, reason: &Reason) -> (String, Vec<Package>) {
    let name_of = |package: Package| universe.text(universe.packages[package as usize].name);
    match reason {
        Reason::Unmet(version, wishes) => {
            let wanted: Vec<String> =
                wishes.iter().map(|wish| format!("{}{}", universe.text(wish.name), wish.text)).collect();
            let all: Vec<Package> =
                wishes.iter().flat_map(|wish| universe.packages_of(wish.name).iter().copied()).collect();
            let versions: Vec<String> = all
                .iter()
                .flat_map(|package| &universe.packages[*package as usize].versions)
                .map(|version| shown(universe, *version))
                .collect();
            let there = match versions.is_empty() {
                true => "which no source offers".into(),
                false => format!("and the sources have {}", versions.join(", ")),
            };
            (format!("{} needs {}, {there}", shown(universe, *version), wanted.join(" | ")), all)
        }
        Reason::Needs(version, wanted, tried) => {
            let mut names: Vec<&str> = tried.iter().map(|package| name_of(*package)).collect();
            names.dedup();
            let tried_ones = match names[..] {
                [only] if only == universe.text(*wanted) => String::new(),
                [] => ", of which no version fits".into(),
                _ => format!(", which could be {}", names.join(" or ")),
            };
            (
                format!("{} needs {}{tried_ones}", shown(universe, *version), universe.text(*wanted)),
                tried.clone(),
            )
        }
        Reason::Conflicts(version, other) => (
            format!("{} must not be beside {}", shown(universe, *version), shown(universe, *other)),
            Vec::new(),
        ),
        Reason::OtherArchitecture(other) => {
            (format!("{} has another version than {}", name_of(package), shown(universe, *other)), Vec::new())
        }
        Reason::Holds(other) => {
            (format!("{} would have to go for {}", name_of(*other), name_of(package)), vec![*other])
        }
    }
}

/// `name version` of a version.
pub(super) fn shown(universe: &Universe<'_>, version: Version) -> String {
    let offer = universe.offer_of(version);
    let known = &universe.packages[offer.package as usize];
    let arch = match known.arch {
        0 => String::new(),
        at => format!(":{}", universe.architectures[at as usize]),
    };
    format!("{}{arch} {}", universe.text(known.name), offer.version)
}
