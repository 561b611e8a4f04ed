//! WHAT IS NEWER. Moves the versions in manifests by their policies, and edits them in place: every
//! other byte stays.
//!
//! Start at [`update`]. A version moves to the newest one that its policy allows (`model`'s
//! [`UpdatePolicy`]) among those that `sources` finds, and for which upstream has all items that
//! use it (`asker`). What upstream says of everything else comes along: a tag that moved, an image
//! that is gone.
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
pub(crate) use outcome::{Move, Noticed, Updated};
pub(crate) use run::update;
pub(crate) use state::Asked;
