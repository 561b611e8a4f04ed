//! The responses of a registry to requests for lists.

use landfall_model::{Descriptor, UnreadableChild};
use std::collections::BTreeSet;

/// The response to a request for the tags of a repository.
#[derive(Debug, Clone)]
pub enum TagList {
    /// All tags of the repository.
    Whole(BTreeSet<String>),
    /// The list has more than this many pages.
    LongerThan(usize),
    /// The registry does not list the tags, denies the list to this account, or may have cut off
    /// the list.
    Refused,
}

/// A list of referrers.
#[derive(Debug, Clone, Default)]
pub struct ListedReferrers {
    /// The manifests that refer to the subject.
    pub found: Vec<Descriptor>,
    /// Entries that name a referrer, but do not describe it in a way that landfall can read.
    pub unreadable: Vec<UnreadableChild>,
}

/// The response to a request for the referrers of a manifest.
#[derive(Debug, Clone)]
pub enum ReferrersResponse {
    /// The manifests that refer to the subject.
    Listed(ListedReferrers),
    /// The registry has no referrers API.
    NoApi,
    /// The registry returns no list, perhaps only for this repository or manifest.
    NoList,
}

impl ReferrersResponse {
    /// Returns the list, or `None` if there is none.
    pub fn listed(self) -> Option<ListedReferrers> {
        match self {
            ReferrersResponse::Listed(found) => Some(found),
            ReferrersResponse::NoApi | ReferrersResponse::NoList => None,
        }
    }
}
