//! The options of a push.

use landfall_model::Digest;
use landfall_model::config::{IndexPolicy, ReferrerPolicy};
use landfall_model::report::EntryKind;
use std::collections::BTreeSet;

/// The options of a push.
#[derive(Debug, Clone, Default)]
pub struct PushOptions {
    /// Replace tags that point to another digest.
    pub move_tags: bool,
    /// Abort the whole push if the preflight finds a problem, such as a tag that points to another
    /// digest. By default only the affected items fail.
    pub all_or_nothing: bool,
    /// Look up every manifest and blob of items whose tag is right, and upload missing ones.
    /// Otherwise an item with the right tag and all referrers counts as complete, and the receipt
    /// omits blobs that were not looked up.
    pub recheck: bool,
    /// Look up the content of the registry, and upload nothing.
    pub dry_run: bool,
    /// Create missing Harbor projects.
    pub create_projects: bool,
    /// Start no further delivery, and set no further tag, once content turns out damaged.
    pub stop_at_damage: bool,
    /// What to do if the registry refuses an index with missing children.
    pub index: IndexPolicy,
    /// What to do with referrers. Those that the site's rules demand are always required.
    pub referrers: ReferrerPolicy,
    /// The manifests and blobs of signatures that the site made itself: they are never skipped.
    pub own_signatures: BTreeSet<Digest>,
    /// The kinds of items that are not pushed.
    pub skip_kinds: BTreeSet<EntryKind>,
}
