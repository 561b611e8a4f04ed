//! The answers of a registry to requests for its lists.

use landfall_model::Descriptor;
use std::collections::BTreeSet;

/// A registry's answer to the request for the tags of a repository.
#[derive(Debug, Clone)]
pub enum TagList {
    /// All tags.
    Whole(BTreeSet<String>),
    /// There are more than this many pages.
    LongerThan(usize),
    /// The registry does not list the tags, does not list them for this account, or does not say
    /// whether these are all.
    Refused,
}

/// A registry's answer to the request for the referrers of a manifest.
#[derive(Debug, Clone)]
pub enum ReferrersResponse {
    /// The manifests that refer to it.
    Listed(Vec<Descriptor>),
    /// The registry has no referrers API.
    NoApi,
    /// There is no list, and the registry's words may be about this repository or manifest alone.
    NoList,
}

impl ReferrersResponse {
    /// The manifests that refer to the subject, or `None` if there is no list.
    pub fn listed(self) -> Option<Vec<Descriptor>> {
        match self {
            ReferrersResponse::Listed(found) => Some(found),
            ReferrersResponse::NoApi | ReferrersResponse::NoList => None,
        }
    }
}
