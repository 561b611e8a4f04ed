//! The responses of a registry to requests for lists.

use landfall_model::Descriptor;
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

/// The response to a request for the referrers of a manifest.
#[derive(Debug, Clone)]
pub enum ReferrersResponse {
    /// The manifests that refer to the subject.
    Listed(Vec<Descriptor>),
    /// The registry has no referrers API.
    NoApi,
    /// The registry returns no list, perhaps only for this repository or manifest.
    NoList,
}

impl ReferrersResponse {
    /// Returns the manifests that refer to the subject, or `None` if there is no list.
    pub fn listed(self) -> Option<Vec<Descriptor>> {
        match self {
            ReferrersResponse::Listed(found) => Some(found),
            ReferrersResponse::NoApi | ReferrersResponse::NoList => None,
        }
    }
}
