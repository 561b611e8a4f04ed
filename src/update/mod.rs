//! WHAT IS NEWER. Moves the versions in manifests by their policies, and edits them in place: every
//! other byte stays.
//!
//! Start at [`update`]. A version moves to the newest one that its policy allows (`model`'s
//! [`UpdatePolicy`]) among those that `sources` finds, and for which upstream has all items that
//! use it (`asker`). What upstream says of everything else comes along: a tag that moved, an image
//! that is gone.
//!
//! A candidate is tried by editing the text of its manifest in memory and reading all manifests
//! again with that text, so what uses a version, what contradicts and how YAML parses the edit are
//! known in one place only. What is then wanted and was not before must exist upstream; a set of
//! packages must be one that can be locked. Nothing is written before all versions are settled;
//! then the files, the lock, and for a `refresh` the store and the bundle are written, each
//! atomically, so that any of them can be the last.
//!
//! [`UpdatePolicy`]: landfall_model::UpdatePolicy

mod asker;
mod json_path;
mod lists;
mod name_pattern;
mod outcome;
mod packages;
mod rest;
mod run;
mod sources;
mod state;
mod versions;

pub(crate) use name_pattern::NamePattern;
pub(crate) use outcome::{UpdateOutcome, UpstreamNotice, VersionMove};
pub(crate) use run::update;
pub(crate) use state::UpdateRequest;
