//! Why packages cannot be installed: one reason a package, and the chain from what was asked for to
//! what is in the way.

use super::offer::{AptPackageId, AptRelation, AptVersionId, ArchQualifier, NameId, RelationKind};
use super::relation::VersionOperator;
use super::universe::Universe;
use std::collections::HashMap;

/// How many reasons are told at the most.
const MOST: usize = 12;

/// Why a package cannot be installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BrokenReason {
    /// This relation of the version is fulfilled by nothing that apt would take.
    Unmet(AptVersionId, UnmetRelation),
    /// It needs this, and these packages could be it.
    Needs(AptVersionId, String, Vec<AptPackageId>),
    /// It must not be beside this version.
    Conflicts(AptVersionId, AptVersionId),
    /// This version of another architecture is there.
    OtherArchitecture(AptVersionId),
    /// This package would have to go.
    Holds(AptPackageId),
}

/// A relation that nothing fulfils.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UnmetRelation {
    text: String,
    names: Vec<NameId>,
    /// The versions that would fulfil it, though apt takes others of their packages.
    fitting: Vec<AptVersionId>,
}

impl BrokenReason {
    pub(super) fn unmet(
        universe: &Universe<'_>,
        version: AptVersionId,
        group: &[AptRelation<'_>],
    ) -> BrokenReason {
        let own = universe.packages[universe.offer_of(version).package as usize].arch;
        let versions = |name: NameId| {
            let packages = universe.packages_of(name).iter();
            packages.flat_map(|package| {
                universe.packages[*package as usize]
                    .versions
                    .iter()
                    .copied()
            })
        };
        let fitting = group.iter().flat_map(|relation| {
            let provided = universe
                .providers_of(relation.name)
                .map(|provide| provide.by);
            let all = versions(relation.name).chain(provided);
            all.filter(|version| universe.fulfils(relation, own, *version))
                .collect::<Vec<_>>()
        });
        let names = group.iter().map(|relation| relation.name).collect();
        let unmet = UnmetRelation {
            text: written(universe, group),
            names,
            fitting: fitting.collect(),
        };
        BrokenReason::Unmet(version, unmet)
    }
}

fn bounds(relation: &AptRelation<'_>) -> String {
    match relation.op {
        VersionOperator::Any => String::new(),
        op => format!(" ({op} {})", relation.version),
    }
}

/// `a (>= 1) | b` as people write it.
pub(super) fn written(universe: &Universe<'_>, group: &[AptRelation<'_>]) -> String {
    let one = |relation: &AptRelation<'_>| {
        let arch = match relation.arch {
            ArchQualifier::Own => String::new(),
            ArchQualifier::Any => ":any".into(),
            ArchQualifier::This(at) => universe
                .architectures
                .get(at as usize)
                .map(|arch| format!(":{arch}"))
                .unwrap_or_default(),
        };
        format!("{}{arch}{}", universe.text(relation.name), bounds(relation))
    };
    group.iter().map(one).collect::<Vec<_>>().join(" | ")
}

/// The first reason of each package.
#[derive(Debug, Default)]
pub(super) struct BrokenReasons(HashMap<AptPackageId, BrokenReason>);

impl BrokenReasons {
    pub(super) fn set(&mut self, package: AptPackageId, reason: BrokenReason) {
        self.0.entry(package).or_insert(reason);
    }

    /// The chain of reasons from `package` on, a sentence each. Of alternatives each has its own.
    pub(super) fn chain(&self, universe: &Universe<'_>, package: AptPackageId) -> Vec<String> {
        let (mut lines, mut seen, mut next) = (Vec::new(), Vec::new(), vec![package]);
        while let Some(at) = next.pop() {
            let Some(reason) = self
                .0
                .get(&at)
                .filter(|_| !seen.contains(&at) && lines.len() < MOST)
            else {
                continue;
            };
            seen.push(at);
            let (line, more) = told(universe, at, reason);
            lines.push(line);
            next.extend(more.into_iter().rev());
        }
        lines
    }
}

/// What a broken relation of `version` says, where nothing was noted on the way.
pub(super) fn broken(
    universe: &Universe<'_>,
    version: AptVersionId,
    group: &[AptRelation<'_>],
) -> String {
    let (name, text) = (shown(universe, version), written(universe, group));
    match group[0].kind {
        RelationKind::Conflicts | RelationKind::Breaks => {
            format!("{name} must not be beside {text}")
        }
        _ => format!("{name} needs {text}"),
    }
}

fn told(
    universe: &Universe<'_>,
    package: AptPackageId,
    reason: &BrokenReason,
) -> (String, Vec<AptPackageId>) {
    let name_of = |package: AptPackageId| universe.text(universe.packages[package as usize].name);
    match reason {
        BrokenReason::Unmet(
            version,
            UnmetRelation {
                text,
                names,
                fitting,
            },
        ) => {
            let all: Vec<AptPackageId> = names
                .iter()
                .flat_map(|name| universe.packages_of(*name).iter().copied())
                .collect();
            let versions: Vec<String> = all
                .iter()
                .flat_map(|package| &universe.packages[*package as usize].versions)
                .map(|version| shown(universe, *version))
                .collect();
            let there = match (versions.is_empty(), fitting.first()) {
                (_, Some(fits)) => {
                    let offer = universe.offer_of(*fits);
                    let name = name_of(offer.package);
                    let taken = universe
                        .candidate(offer.package)
                        .filter(|taken| taken != fits);
                    let taken =
                        taken.map_or("another version".into(), |taken| shown(universe, taken));
                    format!(
                        "and apt takes {taken}, or none; {} would fit: ask for {name}={} too",
                        shown(universe, *fits),
                        offer.version
                    )
                }
                (true, None) => "which no source offers".into(),
                (false, None) => format!("and the sources have {}", versions.join(", ")),
            };
            (
                format!("{} needs {text}, {there}", shown(universe, *version)),
                all,
            )
        }
        BrokenReason::Needs(version, wanted, tried) => {
            let mut names: Vec<&str> = tried.iter().map(|package| name_of(*package)).collect();
            names.dedup();
            let tried_ones = match names[..] {
                [only] if wanted.split([' ', ':']).next() == Some(only) => String::new(),
                [] => ", of which no version fits".into(),
                _ => format!(", which could be {}", names.join(" or ")),
            };
            (
                format!("{} needs {wanted}{tried_ones}", shown(universe, *version)),
                tried.clone(),
            )
        }
        BrokenReason::Conflicts(version, other) => (
            format!(
                "{} must not be beside {}",
                shown(universe, *version),
                shown(universe, *other)
            ),
            Vec::new(),
        ),
        BrokenReason::OtherArchitecture(other) => (
            format!(
                "{} has another version than {}",
                name_of(package),
                shown(universe, *other)
            ),
            Vec::new(),
        ),
        BrokenReason::Holds(other) => (
            format!(
                "{} would have to go for {}",
                name_of(*other),
                name_of(package)
            ),
            vec![*other],
        ),
    }
}

/// `name version` of a version.
pub(super) fn shown(universe: &Universe<'_>, version: AptVersionId) -> String {
    let offer = universe.offer_of(version);
    let known = &universe.packages[offer.package as usize];
    let arch = match known.arch {
        0 => String::new(),
        at => format!(":{}", universe.architectures[at as usize]),
    };
    format!("{}{arch} {}", universe.text(known.name), offer.version)
}
