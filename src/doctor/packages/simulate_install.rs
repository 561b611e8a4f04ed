//! Simulates the installation of a set of packages, by the rules of apt or dnf.

use super::node_list::NodeList;
use super::simulated_install::{CarriedIndexes, SimulatedInstall, SimulationError};
use super::{apt, yum};
use landfall_content::BlobRead;
use landfall_item::LockedPackageSet;
use landfall_model::Limits;

/// Simulates the installation of `set` on a node that has the packages of `list`.
/// [`NodeList::is_for`] must be true for `set`. Fails if an index of the set is missing, or if an
/// index or `list` cannot be read.
pub(crate) fn simulate_install(
    set: &LockedPackageSet,
    blobs: &dyn BlobRead,
    list: &NodeList,
    limits: &Limits,
) -> Result<SimulatedInstall, SimulationError> {
    let carried = CarriedIndexes { blobs, limits };
    match list {
        NodeList::Status(status) => apt::simulate_install(set, &carried, status),
        NodeList::Rpms(rpms) => yum::simulate_install(set, &carried, rpms),
    }
}
