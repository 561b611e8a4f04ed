//! How to push.

use landfall_model::config::IndexPolicy;

/// How to push.
#[derive(Debug, Clone, Copy, Default)]
pub struct PushOptions {
    /// Replace tags that stand at another digest.
    pub move_tags: bool,
    /// Send nothing where a tag stands at another digest. Else that stops its own delivery alone.
    pub all_or_nothing: bool,
    /// Ask for every manifest and blob of what stands there, and send what is missing. Else a tag
    /// at the right digest counts as whole, and the receipt leaves out blobs that nobody asked for.
    pub recheck: bool,
    /// Ask what stands there, and send nothing.
    pub dry_run: bool,
    /// Make the Harbor projects that are missing.
    pub create_projects: bool,
    /// Begin nothing more, and set no tag, once content turns out damaged.
    pub stop_at_damage: bool,
    /// What to do where the registry refuses an index with missing children.
    pub index: IndexPolicy,
}
