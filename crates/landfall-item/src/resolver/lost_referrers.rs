//! The referrers that a run found and could not read. Their loss is recorded in the lock, and does
//! not affect their images.

use super::resolve_error::ResolveError;
use landfall_model::locked;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// The word before the digest in the reference of a lost attestation, which is a child of the
/// image's index.
pub(crate) const ATTESTATION: &str = "attestation";

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
    /// The items of which the old lock lists lost referrers, and whether an attestation is among
    /// them.
    earlier: BTreeMap<String, bool>,
    /// The items whose referrers were looked up in this run.
    found: BTreeMap<String, Vec<LostReferrer>>,
}

impl LostReferrers {
    /// Sets the items whose referrers are looked up again, because an earlier run could not read
    /// all of them. `lost` are the items, each with the name of a lost referrer in the lock.
    pub fn retry<'a>(&self, lost: impl Iterator<Item = (&'a str, &'a str)>) {
        let earlier = &mut locked(&self.0).earlier;
        for (item, name) in lost {
            let reference = name[item.len()..].trim_start();
            *earlier.entry(item.to_owned()).or_default() |= reference.starts_with(ATTESTATION);
        }
    }

    /// Whether the referrers of `item` must be looked up again.
    pub(crate) fn must_retry(&self, item: &str) -> bool {
        locked(&self.0).earlier.contains_key(item)
    }

    /// Whether an earlier run did not find an attestation that the index of `item` lists.
    pub(crate) fn lacks_attestation(&self, item: &str) -> bool {
        locked(&self.0).earlier.get(item) == Some(&true)
    }

    /// Adds to the referrers of `item` that could not be read.
    pub(crate) fn add(&self, item: &str, lost: Vec<LostReferrer>) {
        if !lost.is_empty() {
            let found = &mut locked(&self.0).found;
            found.entry(item.into()).or_default().extend(lost);
        }
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
