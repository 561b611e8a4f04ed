//! How to push.

use crate::config::IndexPolicy;

/// How to push.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Replace tags that stand at another digest.
    pub move_tags: bool,
    /// Ask what stands there, and send nothing.
    pub dry_run: bool,
    /// Make the Harbor projects that are missing.
    pub create_projects: bool,
    /// What to do where the registry refuses an index with missing children.
    pub index: IndexPolicy,
}
