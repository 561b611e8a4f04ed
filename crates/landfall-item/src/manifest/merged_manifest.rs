//! The requests of all manifests: expanded, merged and sorted.

use crate::lockfile::{AcceptedLoss, Endpoint};
use crate::{Exclusion, ItemRequests};
use landfall_signature::SignaturePolicy;

/// Everything that a set of manifests requests. The requests, losses and endpoints are sorted and
/// contain no duplicates.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MergedManifest {
    /// The `metadata.name` of the manifests that have one. `None` if the names differ, or if no
    /// manifest has a name.
    pub name: Option<String>,
    /// The requests for items, merged and sorted by name.
    pub requests: ItemRequests,
    /// Exclusions, which also apply to dependencies and images that are found while locking.
    pub exclude: Vec<Exclusion>,
    /// The rules for the signatures that items must have, including items that are found while
    /// locking.
    pub signatures: SignaturePolicy,
    /// Losses that the manifests accept until a date.
    pub missing: Vec<AcceptedLoss>,
    /// Hosts that cannot be mirrored and must stay reachable.
    pub endpoints: Vec<Endpoint>,
}
