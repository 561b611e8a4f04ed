//! Installs a set in thought: by apt's rules or by dnf's.

use super::node_list::NodeList;
use super::rehearsal::{CarriedIndexes, Rehearsal, RehearsalError};
use super::{apt, yum};
use landfall_content::BlobRead;
use landfall_item::LockedPackageSet;
use landfall_model::Limits;

/// Installs `set` in thought on a node that has what `list` says, which is [for](NodeList::is_for)
/// such a set.
///
/// # Errors
/// When `blobs` lack an index of it, or it cannot be read.
pub(crate) fn rehearse(
    set: &LockedPackageSet,
    blobs: &dyn BlobRead,
    list: &NodeList,
    limits: &Limits,
) -> Result<Rehearsal, RehearsalError> {
    let carried = CarriedIndexes { blobs, limits };
    match list {
        NodeList::Status(status) => apt::rehearse(set, &carried, status),
        NodeList::Rpms(rpms) => yum::rehearse(set, &carried, rpms),
    }
}
