//! What a registry has and nobody named needs any more: found repository by repository, and removed
//! where that is told.
//!
//! - `needed.rs`: what stays, by locks, receipts and the images of pods.
//! - `survey.rs`: one repository: its tags, what they stand at, and what of it may go.
//! - `run.rs`: all repositories, and the removal.

mod needed;
mod run;
mod survey;

pub(crate) use needed::Needed;
pub(crate) use run::{Pruned, prune};
