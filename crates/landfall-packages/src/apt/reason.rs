//! Reasons why packages cannot be installed: one for each package, and the chain of reasons from a
//! requested package to the cause.

use super::relation::VersionOperator;
use super::universe::{
    AptPackageId, AptRelation, AptVersionId, ArchQualifier, MultiArch, NameId, RelationKind,
    Universe,
};
use std::collections::HashMap;

/// The maximum number of reasons in a chain.
const MAX_LINES: usize = 12;

/// Why a package cannot be installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BrokenReason {
    /// No candidate satisfies this relation of the version.
    Unmet {
        version: AptVersionId,
        /// The relation.
        text: String,
        /// The names in the relation.
        names: Vec<NameId>,
        /// The versions that would satisfy it, but are not the candidates of their packages.
        fitting: Vec<AptVersionId>,
    },
    /// The version has this dependency, and none of these packages could be installed for it.
    Needs(AptVersionId, String, Vec<AptPackageId>),
    /// The first version conflicts with the second.
    Conflicts(AptVersionId, AptVersionId),
    /// This version, which is for another architecture, cannot be installed together with the
    /// package. The package is `Multi-Arch: same`. This version is not, or it differs from the
    /// version of the package.
    OtherArchitecture(AptVersionId),
    /// This package would have to be removed, which is not allowed.
    Holds(AptPackageId),
}

impl BrokenReason {
    /// Returns the reason for the unmet relation `group` of `version`.
    pub(super) fn unmet(
        universe: &Universe<'_>,
        version: AptVersionId,
        group: &[AptRelation<'_>],
    ) -> BrokenReason {
        // any version, not only candidates: the message says which one to request
        let own = universe.packages[universe.offer_of(version).package as usize].arch;
        let fitting = group
            .iter()
            .flat_map(|relation| {
                let provided = universe
                    .providers_of(relation.name)
                    .map(|provide| provide.by);
                universe
                    .packages_of(relation.name)
                    .iter()
                    .flat_map(|package| &universe.packages[*package as usize].versions)
                    .copied()
                    .chain(provided)
                    .filter(|version| universe.fulfils(relation, own, *version))
                    .collect::<Vec<_>>()
            })
            .collect();
        BrokenReason::Unmet {
            version,
            text: relation_text(universe, group),
            names: group.iter().map(|relation| relation.name).collect(),
            fitting,
        }
    }
}

/// Returns a relation in Debian's syntax: `a (>= 1) | b:any`.
pub(super) fn relation_text(universe: &Universe<'_>, group: &[AptRelation<'_>]) -> String {
    let alternatives: Vec<String> = group
        .iter()
        .map(|relation| alternative_text(universe, relation))
        .collect();
    alternatives.join(" | ")
}

fn alternative_text(universe: &Universe<'_>, relation: &AptRelation<'_>) -> String {
    let arch = match relation.arch {
        ArchQualifier::Own => String::new(),
        ArchQualifier::Any => ":any".into(),
        ArchQualifier::This(at) => universe
            .architectures
            .get(at as usize)
            .map(|arch| format!(":{arch}"))
            .unwrap_or_default(),
    };
    let constraint = match relation.op {
        VersionOperator::Any => String::new(),
        op => format!(" ({op} {})", relation.version),
    };
    format!("{}{arch}{constraint}", universe.text(relation.name))
}

/// The first reason of each package. Later ones are often consequences of it.
#[derive(Debug, Default)]
pub(super) struct BrokenReasons(HashMap<AptPackageId, BrokenReason>);

impl BrokenReasons {
    pub(super) fn set(&mut self, package: AptPackageId, reason: BrokenReason) {
        self.0.entry(package).or_insert(reason);
    }

    /// Returns the chain of reasons that begins with `package`, one sentence for each reason. Each
    /// failed alternative of a dependency adds its own reasons.
    pub(super) fn chain(&self, universe: &Universe<'_>, package: AptPackageId) -> Vec<String> {
        let mut lines = Vec::new();
        let mut seen = Vec::new();
        let mut next = vec![package];
        while let Some(at) = next.pop() {
            let Some(reason) = self
                .0
                .get(&at)
                .filter(|_| !seen.contains(&at) && lines.len() < MAX_LINES)
            else {
                continue;
            };
            // dependencies may be circular
            seen.push(at);
            let (line, causes) = describe(universe, at, reason);
            lines.push(line);
            // reversed, because `pop` returns the last one: the first alternative is visited first
            next.extend(causes.into_iter().rev());
        }
        lines
    }
}

/// Describes a broken relation of `version`, for packages without a recorded reason.
pub(super) fn broken_relation_text(
    universe: &Universe<'_>,
    version: AptVersionId,
    group: &[AptRelation<'_>],
) -> String {
    let name = name_and_version(universe, version);
    let text = relation_text(universe, group);
    match group[0].kind {
        RelationKind::Conflicts | RelationKind::Breaks => format!("{name} conflicts with {text}"),
        _ => format!("{name} needs {text}"),
    }
}

/// Describes `reason`, a reason of `package`, in one sentence. Also returns the packages whose own
/// reasons may explain it.
fn describe(
    universe: &Universe<'_>,
    package: AptPackageId,
    reason: &BrokenReason,
) -> (String, Vec<AptPackageId>) {
    match reason {
        BrokenReason::Unmet {
            version,
            text,
            names,
            fitting,
        } => {
            let all: Vec<AptPackageId> = names
                .iter()
                .flat_map(|name| universe.packages_of(*name).iter().copied())
                .collect();
            let versions: Vec<String> = all
                .iter()
                .flat_map(|package| &universe.packages[*package as usize].versions)
                .map(|version| name_and_version(universe, *version))
                .collect();
            let existing = match (versions.is_empty(), fitting.first()) {
                // a suitable version exists, but its suite has a lower priority, or another
                // version was requested
                (_, Some(fits)) => {
                    let offer = universe.offer_of(*fits);
                    let name = package_name(universe, offer.package);
                    let selected = universe
                        .candidate(offer.package)
                        .filter(|selected| selected != fits)
                        .map_or("another version".into(), |selected| {
                            name_and_version(universe, selected)
                        });
                    format!(
                        "; {} would satisfy it, but apt selects {selected} or no version: request \
                         {name}={} too",
                        name_and_version(universe, *fits),
                        offer.version
                    )
                }
                (true, None) => ", which no source offers".into(),
                (false, None) => format!(", and the sources have {}", versions.join(", ")),
            };
            (
                format!(
                    "{} needs {text}{existing}",
                    name_and_version(universe, *version)
                ),
                all,
            )
        }
        BrokenReason::Needs(version, dependency, tried) => {
            let mut names: Vec<&str> = tried
                .iter()
                .map(|package| package_name(universe, *package))
                .collect();
            // packages of different architectures may have the same name
            names.dedup();
            let tried_names = match names[..] {
                // the dependency names the package already
                [only] if dependency.split([' ', ':']).next() == Some(only) => String::new(),
                [] => ", and no version can be installed".into(),
                _ => format!(", which could be {}", names.join(" or ")),
            };
            (
                format!(
                    "{} needs {dependency}{tried_names}",
                    name_and_version(universe, *version)
                ),
                tried.clone(),
            )
        }
        BrokenReason::Conflicts(version, other) => (
            format!(
                "{} conflicts with {}",
                name_and_version(universe, *version),
                name_and_version(universe, *other)
            ),
            Vec::new(),
        ),
        BrokenReason::OtherArchitecture(other) => {
            let name = package_name(universe, package);
            let existing = name_and_version(universe, *other);
            let is_same = universe.offer_of(*other).multi_arch == MultiArch::Same;
            let line = if is_same {
                format!(
                    "{name} has a different version than {existing}, which is for another \
                     architecture"
                )
            } else {
                format!(
                    "{name} cannot be installed beside {existing}, which is for another \
                     architecture and not `Multi-Arch: same`"
                )
            };
            (line, Vec::new())
        }
        BrokenReason::Holds(other) => (
            format!(
                "{} would have to be removed for {}",
                package_name(universe, *other),
                package_name(universe, package)
            ),
            vec![*other],
        ),
    }
}

fn package_name<'t>(universe: &Universe<'t>, package: AptPackageId) -> &'t str {
    universe.text(universe.packages[package as usize].name)
}

/// Returns the text `name version`, with the architecture after the name unless it is the native
/// one.
pub(super) fn name_and_version(universe: &Universe<'_>, version: AptVersionId) -> String {
    let offer = universe.offer_of(version);
    let known = &universe.packages[offer.package as usize];
    let arch = match known.arch {
        0 => String::new(),
        at => format!(":{}", universe.architectures[at as usize]),
    };
    format!("{}{arch} {}", universe.text(known.name), offer.version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_says_why_two_architectures_exclude_each_other() {
        for (multi_arch, version, expected) in [
            (
                "same",
                "2",
                "app has a different version than app:i386 2, which is",
            ),
            (
                "no",
                "1",
                "app cannot be installed beside app:i386 1, which is",
            ),
        ] {
            let index = format!(
                "Package: app\nVersion: 1\nArchitecture: amd64\nMulti-Arch: same\n\n\
                 Package: app\nVersion: {version}\nArchitecture: i386\nMulti-Arch: {multi_arch}\n"
            );
            let mut universe = Universe::new(&["amd64".to_owned(), "i386".to_owned()]);
            let source = universe.add_source(500);
            universe.add_index(source, &index);
            let [own, other] = ["amd64", "i386"].map(|arch| universe.find("app", Some(arch)));
            let other = universe.candidate(other.unwrap()).unwrap();
            let reason = BrokenReason::OtherArchitecture(other);
            let (line, _) = describe(&universe, own.unwrap(), &reason);
            assert!(line.starts_with(expected), "{line}");
        }
    }
}
