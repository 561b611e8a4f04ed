//! The result of a simulated installation, and the indexes that it is computed from.

use landfall_content::BlobRead;
use landfall_item::{LockedPackageSet, PackageIndexError};
use landfall_model::Limits;
use landfall_model::report::{EntryKind, ItemStatus, ReportItem};
use landfall_packages::PackagesError;
use landfall_packages::yum::{MetadataError, YumError};

/// The result of a simulated installation on a node.
#[derive(Debug, Default)]
pub(crate) struct SimulatedInstall {
    /// The packages that would be installed: present if they are carried, else missing. A set that
    /// cannot be installed is a failed item.
    pub items: Vec<ReportItem>,
    /// Installed packages that would be replaced or removed, one line each.
    pub replaced: Vec<String>,
}

/// A package that the node would install.
pub(super) struct WantedPackage {
    pub(super) name: String,
    /// Whether the locked set contains it.
    pub(super) is_carried: bool,
}

impl SimulatedInstall {
    pub(super) fn of(
        wanted: impl Iterator<Item = WantedPackage>,
        replaced: Vec<String>,
    ) -> SimulatedInstall {
        let items = wanted.map(|WantedPackage { name, is_carried }| {
            if is_carried {
                return item(name, ItemStatus::Present, None);
            }
            let reason = "the node would request it, but the lock lacks it";
            item(name, ItemStatus::Missing, Some(reason.into()))
        });
        SimulatedInstall {
            items: items.collect(),
            replaced,
        }
    }

    /// The result for a set that cannot be installed.
    pub(super) fn refused(set: &LockedPackageSet, why: String) -> SimulatedInstall {
        SimulatedInstall {
            items: vec![item(set.name.clone(), ItemStatus::Failed, Some(why))],
            replaced: Vec::new(),
        }
    }
}

fn item(name: String, status: ItemStatus, reason: Option<String>) -> ReportItem {
    ReportItem {
        kind: EntryKind::Package,
        name,
        digest: None,
        bytes: None,
        packages: 0,
        status,
        reason,
    }
}

/// An error from reading the carried indexes or the list of the node.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SimulationError {
    /// A carried index cannot be read.
    #[error(transparent)]
    Index(#[from] PackageIndexError),
    /// An index of apt cannot be read.
    #[error(transparent)]
    Apt(#[from] PackagesError),
    /// The `repomd.xml` of a source cannot be parsed.
    #[error("repomd.xml: {0}")]
    Repomd(YumError),
    /// An index of yum cannot be read.
    #[error(transparent)]
    Yum(#[from] MetadataError),
    /// The lock has no index of this kind for a source.
    #[error("{url} has no {what} in the lock")]
    NoIndex { url: String, what: &'static str },
    /// The node's list cannot be read.
    #[error("the list of RPM packages: {0}")]
    Rpms(YumError),
}

/// The blobs that contain the carried indexes, and the limits for reading them.
pub(super) struct CarriedIndexes<'a> {
    pub(super) blobs: &'a dyn BlobRead,
    pub(super) limits: &'a Limits,
}
