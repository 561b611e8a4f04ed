//! Finds the files that scripts, Dockerfiles, cloud-init, units and documents of clusters fetch and
//! that the lock lacks, and looks up the packages that they install in its package sets.

use super::machine::{MachineInstall, document_files, installs_in, is_of_machine};
use super::{AuditFinding, FileFinding, urls};
use crate::inventory::{Inventory, LockCoverage};
use landfall_item::PackageAvailability;
use landfall_model::redact_urls;
use std::collections::BTreeSet;
use std::path::Path;

/// Finds the files that `text`, the content of `file`, fetches if it sets up a machine or a
/// cluster, except at the positions of `found`. Other URLs are considered links, unless they
/// concern a locked file.
pub(super) fn missing_fetches(
    file: &str,
    text: &str,
    inventory: &Inventory<'_>,
    found: &[FileFinding],
) -> Vec<FileFinding> {
    let path = Path::new(file);
    // without a lock, a draft has these files already
    if inventory.is_empty() {
        return Vec::new();
    }
    let is_of_machine = is_of_machine(path, text);
    let mut fetched = if is_of_machine {
        installs_in(path, text)
    } else {
        document_files(path, text)
    };
    let lacks = if is_of_machine {
        "a command fetches it, and the lock lacks it"
    } else {
        "it is fetched, and the lock lacks it"
    };
    let positions: BTreeSet<(&str, usize, usize)> = found
        .iter()
        .map(|one| (&*one.file, one.finding.line, one.finding.column))
        .collect();
    fetched.retain(|one| !positions.contains(&(&*one.file(file), one.line, one.column)));
    let findings = fetched.into_iter().filter_map(|placed| {
        let file = placed.file(file);
        let (url, why) = match placed.install {
            MachineInstall::File(url) => (url, lacks),
            MachineInstall::Unclear(url) => {
                let why = MachineInstall::why_unclear(&url);
                (url, why)
            }
            MachineInstall::Package(..) | MachineInstall::OpenPackage(..) => return None,
        };
        let coverage = urls::whole(&url, false, inventory)
            .unwrap_or_else(|| LockCoverage::Undecided { why: why.into() });
        let finding = AuditFinding::new((placed.line, placed.column), redact_urls(&url), coverage);
        Some(FileFinding { file, finding })
    });
    findings.collect()
}

/// Package managers whose packages can be in a lock.
const MANAGERS: [&str; 2] = ["apt", "yum"];

/// Finds the packages that `text`, the content of `file`, installs.
pub(super) fn package_findings(
    file: &str,
    text: &str,
    inventory: &Inventory<'_>,
) -> Vec<FileFinding> {
    if !inventory.has_packages() {
        return Vec::new();
    }
    let mut found = Vec::new();
    for placed in installs_in(Path::new(file), text) {
        let file = placed.file(file);
        let (by, word, coverage) = match placed.install {
            MachineInstall::Package(by, word) => {
                let coverage = inventory.decide_package(by, &word);
                (by, word, coverage)
            }
            MachineInstall::OpenPackage(by, word) => {
                let why = "it contains a placeholder".into();
                (by, word, LockCoverage::Undecided { why })
            }
            MachineInstall::File(_) | MachineInstall::Unclear(_) => continue,
        };
        if !MANAGERS.contains(&by) {
            continue;
        }
        let finding = AuditFinding {
            manager: Some(by),
            ..AuditFinding::new((placed.line, placed.column), word, coverage)
        };
        found.push(FileFinding { file, finding });
    }
    found
}

impl Inventory<'_> {
    /// Whether the lock contains the package that the package manager `by` installs as `word`.
    fn decide_package(&self, by: &str, word: &str) -> LockCoverage {
        let answers = self
            .packages()
            .filter_map(|set| Some((&set.name, set.availability(by, word)?)));
        let answers: Vec<_> = answers.collect();
        if answers.is_empty() {
            let why = format!("the lock has no packages of {by}, so their source is not known");
            return LockCoverage::Undecided { why };
        }
        let set_with = |wanted: PackageAvailability| {
            let found = answers.iter().find(|(_, answer)| *answer == wanted);
            found.map(|(name, _)| *name)
        };
        // one set that has the package is enough
        if let Some(name) = set_with(PackageAvailability::Carried) {
            return LockCoverage::Held { item: name.clone() };
        }
        let suites = answers.iter().find_map(|(name, answer)| match answer {
            PackageAvailability::OtherSuiteName(suites) => Some((name, suites)),
            _ => None,
        });
        if let Some((name, suites)) = suites {
            let why = format!("{name} has it in {suites}, which may be another name of this suite");
            return LockCoverage::Undecided { why };
        }
        if let Some(name) = set_with(PackageAvailability::Expected) {
            let why = format!("no repository of {name} has it: the machines must have it already");
            return LockCoverage::Undecided { why };
        }
        let others = answers.iter().filter_map(|(name, answer)| match answer {
            PackageAvailability::OtherVersions(others) => Some(format!("{name} has {others}")),
            _ => None,
        });
        let others: Vec<String> = others.collect();
        let why = if others.is_empty() {
            let sets: Vec<&str> = answers.iter().map(|(name, _)| name.as_str()).collect();
            format!("not in {}", sets.join(", "))
        } else {
            others.join("; ")
        };
        LockCoverage::missing(why)
    }
}
