//! Moves the versions in manifests by their update policies, and edits the manifests in place:
//! every byte outside the versions and their digests stays.
//!
//! Start at [`update`]. A version moves to the newest one that can be used: its policy allows it
//! (`model`'s [`UpdatePolicy`]), `sources` or `packages` list it, and upstream has all items that
//! use it (`lookups`). Of all other items, `unmoved_items` reports those that changed upstream or
//! are gone.
//!
//! A candidate is tried by editing the text of its manifest in memory and loading all manifests
//! again with that text. The manifest loader thus applies its usual rules to the candidate, and
//! this module need not repeat them. Items that are requested only after the edit must exist
//! upstream, and it must be possible to lock each changed set of packages. A version that waits for
//! its minimum age (`version_ages`) is not used.
//!
//! Nothing is written before all versions are chosen. The first file to be written is the one that
//! records when each version was first seen (`first_sights`). Then the manifests, the lock, and for
//! a `refresh` the store and the bundle are written, each atomically, so an interruption between
//! two of them leaves every file whole.
//!
//! [`UpdatePolicy`]: landfall_model::UpdatePolicy

mod aged_candidates;
mod first_sights;
mod lists;
mod lookups;
mod run;
mod sources;
mod trial;
mod unmoved_items;
mod version_ages;
mod versions;

pub(crate) use self::aged_candidates::UrgentVersion;
pub(crate) use self::first_sights::FirstSights;
pub(crate) use self::run::{UpdateOutcome, UpdateRequest, UpstreamNotice, VersionMove, update};
pub(crate) use self::version_ages::{AgeWait, ChangedSights};
