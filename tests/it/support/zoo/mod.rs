//! The zoo: registries as they are. A profile is a file in this folder that says what a registry
//! does, with the source of each line; a visit runs every verb against it; probes compare a profile
//! with the real registry.

mod content;
mod far_side;
mod probes;
mod visit;

pub use far_side::FarSide;
pub use probes::compare;
pub use visit::{STEPS, Visit};

use super::faults::Rule;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// What is known about a registry, and what landfall does with it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// The name and version of the registry.
    pub about: String,
    lines: Vec<Line>,
    /// The steps whose outcome is not that everything is done.
    #[serde(default)]
    expect: BTreeMap<String, Outcome>,
}

/// A rule and where it is documented or was observed.
#[derive(Debug, Deserialize)]
struct Line {
    source: String,
    #[serde(flatten)]
    rule: Rule,
}

/// The outcome of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// The exit code.
    #[serde(default)]
    pub exit: i32,
    /// The items that are not done, each with a part of its reason.
    #[serde(default)]
    pub lost: BTreeMap<String, String>,
}

impl Profile {
    /// Reads a profile by its name.
    pub fn read(name: &str) -> Profile {
        let path = folder().join(format!("{name}.yaml"));
        let text = std::fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        // as JSON, because YAML has another form for an enum
        let document: serde_json::Value = serde_yaml::from_str(&text)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        serde_json::from_value(document)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    pub fn rules(&self) -> Arc<[Rule]> {
        self.lines.iter().map(|line| line.rule.clone()).collect()
    }

    pub fn has_referrers_api(&self) -> bool {
        let lacks_it = |line: &Line| matches!(line.rule, Rule::NoReferrersApi(_));
        !self.lines.iter().any(lacks_it)
    }

    /// Whether clients cannot read the list of referrers under its tag.
    pub fn hides_referrers(&self) -> bool {
        let hides = |line: &Line| matches!(line.rule, Rule::TagsAreDigests(true));
        self.lines.iter().any(hides)
    }

    /// The sources of the lines.
    pub fn sources(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(|line| line.source.as_str())
    }

    /// The outcome that the profile expects of a step.
    pub fn expected(&self, step: &str) -> Outcome {
        self.expect.get(step).cloned().unwrap_or_default()
    }

    /// The names of the steps whose outcome is not that everything is done.
    pub fn expectations(&self) -> impl Iterator<Item = &str> {
        self.expect.keys().map(String::as_str)
    }
}

/// The names of all profiles.
pub fn names() -> Vec<String> {
    let files = std::fs::read_dir(folder())
        .unwrap()
        .map(|file| file.unwrap().path());
    let mut names: Vec<String> = files
        .filter(|path| path.extension().is_some_and(|end| end == "yaml"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/support/zoo")
}
