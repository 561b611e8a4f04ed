//! Packages that scripts, Dockerfiles, cloud-init and units install, beside the sets of packages of
//! a lock.

use super::finding::{Coverage, FileFinding, Finding};
use super::inventory::Inventory;
use super::machine::{Install, packages_in};
use landfall_item::PackageAvailability;
use std::path::Path;

/// Package managers whose packages can be carried.
const MANAGERS: [&str; 2] = ["apt", "yum"];

/// The packages that `text`, the content of `file`, installs.
pub(super) fn findings(file: &str, text: &str, inventory: &Inventory<'_>) -> Vec<FileFinding> {
    if !inventory.has_packages() {
        return Vec::new();
    }
    let mut found = Vec::new();
    for placed in packages_in(Path::new(file), text) {
        let file = placed.file(file);
        let (by, word, coverage) = match placed.install {
            Install::Package(by, word) => {
                let coverage = inventory.decide_package(by, &word);
                (by, word, coverage)
            }
            Install::OpenPackage(by, word) => {
                let why = "it is put together elsewhere".into();
                (by, word, Coverage::Undecided { why })
            }
            Install::File(_) | Install::Unclear(_) => continue,
        };
        if !MANAGERS.contains(&by) {
            continue;
        }
        let (line, column) = (placed.line, placed.column);
        let finding = Finding {
            line,
            column,
            path: Vec::new(),
            manager: Some(by),
            reference: word,
            coverage,
        };
        found.push(FileFinding { file, finding });
    }
    found
}

impl Inventory<'_> {
    /// Whether the lock has what a package manager `by` installs as `word`.
    fn decide_package(&self, by: &str, word: &str) -> Coverage {
        let answers = self
            .packages()
            .filter_map(|set| Some((&set.name, set.availability(by, word)?)));
        let answers: Vec<_> = answers.collect();
        if answers.is_empty() {
            let why =
                format!("the lock has no packages of {by}, so nothing says where they come from");
            return Coverage::Undecided { why };
        }
        if let Some((name, _)) = answers
            .iter()
            .find(|(_, answer)| *answer == PackageAvailability::Carried)
        {
            return Coverage::Held {
                item: (*name).clone(),
            };
        }
        if let Some((name, _)) = answers
            .iter()
            .find(|(_, answer)| *answer == PackageAvailability::Expected)
        {
            return Coverage::Undecided {
                why: format!("no source of {name} has it: the machines must have it"),
            };
        }
        let others = answers.iter().filter_map(|(name, answer)| match answer {
            PackageAvailability::OtherVersions(others) => Some(format!("{name} has {others}")),
            _ => None,
        });
        let others: Vec<String> = others.collect();
        let why = match others.is_empty() {
            true => {
                let sets: Vec<&str> = answers.iter().map(|(name, _)| name.as_str()).collect();
                format!("not in {}", sets.join(", "))
            }
            false => others.join("; "),
        };
        Coverage::Missing {
            name: None,
            url: None,
            why,
        }
    }
}
