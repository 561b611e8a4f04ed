//! Finds manifests that nothing needs any more in the repositories of a registry, and deletes them
//! if requested.
//!
//! - `needed.rs`: the content to keep, as named by locks, receipts and the images of pods.
//! - `manifest_graph.rs`: the manifests of one repository, and those that must be kept.
//! - `run.rs`: surveys each repository, and deletes the manifests that nothing needs.

mod manifest_graph;
mod needed;
mod run;

pub(crate) use self::needed::Needed;
pub(crate) use self::run::{PruneScope, Pruned, SurveyedRepository, prune};
