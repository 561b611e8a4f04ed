//! Package sets in a lock: the selected packages, or why a set was refused.

use super::Place;
use serde_json::Value;

/// Name, version and architecture of every package in a lock or a part of it.
pub fn packages(lock: &str) -> impl Iterator<Item = [&str; 3]> {
    let lines = lock
        .lines()
        .map(|line| line.trim().trim_start_matches("- ").trim_matches('"'));
    let words = lines
        .filter(|line| line.starts_with("sha"))
        .map(|line| line.split(' ').collect::<Vec<_>>());
    words
        .filter(|words| words.len() == 6)
        .map(|words| [words[2], words[3], words[4]])
}

pub fn sorted(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut all: Vec<String> = texts.collect();
    all.sort();
    all
}

/// A lock with package sets, and the report of `landfall lock`, which wrote it.
pub struct PackageSets {
    lock: String,
    report: Value,
}

impl PackageSets {
    /// Locks the manifest `m.yaml`; `exit` is 3 if some sets are refused.
    pub fn lock(place: &Place, exit: i32) -> PackageSets {
        let report = place.json(exit, &["lock", "-f", "m.yaml"]);
        PackageSets {
            lock: place.read("landfall.lock"),
            report,
        }
    }

    /// Locks the manifest `m.yaml`, some of whose sets may be refused.
    pub fn lock_with_refusals(place: &Place) -> PackageSets {
        let mut lock = place.command();
        let output = lock
            .args(["lock", "-f", "m.yaml", "--output", "json"])
            .output()
            .unwrap();
        assert!(
            matches!(output.status.code(), Some(0 | 3)),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let report = serde_json::from_slice(&output.stdout).unwrap();
        PackageSets {
            lock: place.read("landfall.lock"),
            report,
        }
    }

    /// The packages selected for the set `name`, each formatted by `shown`, sorted. The error is
    /// the reason why the set was refused.
    pub fn chosen(
        &self,
        name: &str,
        shown: fn([&str; 3]) -> String,
    ) -> Result<Vec<String>, String> {
        let mut items = self.report["items"].as_array().unwrap().iter();
        let item = items
            .find(|item| item["name"] == name)
            .unwrap_or_else(|| panic!("{name} is not in the report"));
        if let Some(why) = item["reason"].as_str() {
            return Err(why.into());
        }
        let start = self
            .lock
            .find(&format!("\n- name: {name}\n"))
            .expect("the set is in the lock")
            + 1;
        let set = &self.lock[start..];
        let set = set.find("\n- name: ").map_or(set, |end| &set[..end]);
        Ok(sorted(packages(set).map(shown)))
    }
}
