//! Finds the packages that scripts, Dockerfiles, cloud-init and units install, and looks them up in
//! the package sets of a lock.

use super::finding::{AuditFinding, FileFinding};
use super::machine::{MachineInstall, packages_in};
use crate::inventory::{Inventory, LockCoverage};
use landfall_item::PackageAvailability;
use std::path::Path;

/// Package managers whose packages can be in a lock.
const MANAGERS: [&str; 2] = ["apt", "yum"];

/// Finds the packages that `text`, the content of `file`, installs.
pub(super) fn findings(file: &str, text: &str, inventory: &Inventory<'_>) -> Vec<FileFinding> {
    if !inventory.has_packages() {
        return Vec::new();
    }
    let mut found = Vec::new();
    for placed in packages_in(Path::new(file), text) {
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
        let line = placed.line;
        let column = placed.column;
        let finding = AuditFinding {
            line,
            column,
            path: Vec::new(),
            manager: Some(by),
            repository: None,
            reference: word,
            coverage,
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
        // one set that has the package is enough
        if let Some((name, _)) = answers
            .iter()
            .find(|(_, answer)| *answer == PackageAvailability::Carried)
        {
            return LockCoverage::Held {
                item: (*name).clone(),
            };
        }
        let suites = answers.iter().find_map(|(name, answer)| match answer {
            PackageAvailability::OtherSuiteName(suites) => Some((name, suites)),
            _ => None,
        });
        if let Some((name, suites)) = suites {
            let why = format!("{name} has it in {suites}, which may be another name of this suite");
            return LockCoverage::Undecided { why };
        }
        if let Some((name, _)) = answers
            .iter()
            .find(|(_, answer)| *answer == PackageAvailability::Expected)
        {
            return LockCoverage::Undecided {
                why: format!("no repository of {name} has it: the machines must have it already"),
            };
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
        LockCoverage::Missing {
            name: None,
            url: None,
            why,
        }
    }
}
