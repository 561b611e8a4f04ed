//! How to push.

use crate::config::IndexPolicy;
use crate::model::Limits;

/// How to push.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Blobs in flight, and images in delivery: few, so that what is there is whole when it ends early.
    pub jobs: usize,
    /// Replace tags that stand at another digest.
    pub move_tags: bool,
    /// Ask what stands there, and send nothing.
    pub dry_run: bool,
    /// Make the Harbor projects that are missing.
    pub create_projects: bool,
    /// What to do where the registry refuses an index with missing children.
    pub index: IndexPolicy,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            jobs: Limits::default().jobs,
            move_tags: false,
            dry_run: false,
            create_projects: false,
            index: IndexPolicy::default(),
        }
    }
}
