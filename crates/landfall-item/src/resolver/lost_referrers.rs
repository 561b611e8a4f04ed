//! The referrers that a run found and could not read. Their loss is recorded in the lock, and does
//! not affect their images.

use super::resolve_error::ResolveError;
use landfall_model::locked;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

/// A referrer that exists upstream and cannot be read.
#[derive(Debug, Clone)]
pub struct LostReferrer {
    /// Its digest or tag; or, if the look-up failed, which referrers were looked up.
    pub reference: String,
    /// Why it cannot be read.
    pub cause: ResolveError,
}

/// The lost referrers of a run, by the names of items in the lock.
#[derive(Debug, Default)]
pub struct LostReferrers(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The items of which the old lock lists lost referrers.
    earlier: BTreeSet<String>,
    /// The items whose referrers were looked up in this run.
    found: BTreeMap<String, Vec<LostReferrer>>,
}

impl LostReferrers {
    /// Sets the items whose referrers are looked up again, because an earlier run could not read
    /// all of them.
    pub fn retry(&self, items: BTreeSet<String>) {
        locked(&self.0).earlier = items;
    }

    /// Whether the referrers of `item` must be looked up again.
    pub(crate) fn must_retry(&self, item: &str) -> bool {
        locked(&self.0).earlier.contains(item)
    }

    /// Records which referrers of `item` could not be read, after a look-up.
    pub(crate) fn record(&self, item: &str, lost: Vec<LostReferrer>) {
        locked(&self.0).found.insert(item.into(), lost);
    }

    /// The lost referrers of `item`; `None` if its referrers were not looked up in this run.
    pub fn of(&self, item: &str) -> Option<Vec<LostReferrer>> {
        locked(&self.0).found.get(item).cloned()
    }
}
