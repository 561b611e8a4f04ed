//! Simulates the installation of carried packages on a node: computes which packages its apt or dnf
//! would select, from the carried indexes and the node's list of packages.

mod apt;
mod yum;

use landfall_content::BlobRead;
use landfall_item::LockedPackageSet;
use landfall_model::report::{EntryKind, ItemStatus, ReportItem};
use landfall_model::{Failure, Limits};
use landfall_packages::yum::{Pool, read_base};

/// The result of a simulated installation on a node.
#[derive(Debug, Default)]
pub(crate) struct SimulatedInstall {
    /// The packages that would be installed: present if they are carried, else missing. A set that
    /// cannot be installed is a failed item.
    pub items: Vec<ReportItem>,
    /// Installed packages that would be replaced or removed, one line each.
    pub replaced: Vec<String>,
}

impl SimulatedInstall {
    /// `wanted` has the packages that the node would install, and whether the locked set contains
    /// them.
    fn of(wanted: impl Iterator<Item = (String, bool)>, replaced: Vec<String>) -> SimulatedInstall {
        let items = wanted.map(|(name, is_carried)| {
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
    fn refused(set: &LockedPackageSet, why: String) -> SimulatedInstall {
        SimulatedInstall {
            items: vec![item(set.name.clone(), ItemStatus::Failed, Some(why))],
            replaced: Vec::new(),
        }
    }
}

fn item(name: String, status: ItemStatus, reason: Option<String>) -> ReportItem {
    ReportItem::new(EntryKind::Package, name, status, reason)
}

/// The blobs that contain the carried indexes, and the limits for reading them.
struct CarriedIndexes<'a> {
    blobs: &'a dyn BlobRead,
    limits: &'a Limits,
}

/// Simulates the installation of `set` on a node that has the packages of `list`.
/// [`NodeList::is_for`] must be true for `set`. Fails if an index of the set is missing, or if an
/// index or `list` cannot be read.
pub(crate) fn simulate_install(
    set: &LockedPackageSet,
    blobs: &dyn BlobRead,
    list: &NodeList,
    limits: &Limits,
) -> Result<SimulatedInstall, Failure> {
    let carried = CarriedIndexes { blobs, limits };
    match list {
        NodeList::Status(status) => apt::simulate_install(set, &carried, status),
        NodeList::Rpms(rpms) => yum::simulate_install(set, &carried, rpms),
    }
}

/// The packages that a node has.
#[derive(Debug, derive_more::Display)]
pub(crate) enum NodeList {
    /// A copy of its `/var/lib/dpkg/status`.
    #[display("a dpkg status file")]
    Status(String),
    /// The output of its `rpm -qa`.
    #[display("a list of RPM packages")]
    Rpms(String),
}

fn is_status(text: &str) -> bool {
    text.contains("Status: ")
}

impl NodeList {
    /// Whether `set` is for the package manager of the node.
    pub(crate) fn is_for(&self, set: &LockedPackageSet) -> bool {
        match self {
            NodeList::Status(_) => set.is_apt(),
            NodeList::Rpms(_) => set.is_yum(),
        }
    }

    /// The reason why the text is not a list of this kind. Messages print it after the path of the
    /// file.
    pub(crate) fn fault(&self) -> Option<String> {
        let is_rpms =
            |text: &str| read_base(text, &mut Pool::default()).map_err(|error| error.to_string());
        match self {
            NodeList::Status(text) if is_status(text) => None,
            NodeList::Status(text) if is_rpms(text).is_ok() && !text.trim().is_empty() => {
                Some("is a list of RPM packages; name it with --rpms".into())
            }
            NodeList::Status(_) => {
                Some("is not a dpkg status file; copy /var/lib/dpkg/status from the node".into())
            }
            NodeList::Rpms(text) if is_status(text) => {
                Some("is a dpkg status file; name it with --status".into())
            }
            NodeList::Rpms(text) if text.trim().is_empty() => Some("names no packages".into()),
            NodeList::Rpms(text) => {
                let help = "write it with `rpm -qa` on the node, in the format that \
                            `landfall help packages` shows";
                is_rpms(text)
                    .err()
                    .map(|error| format!("cannot be read: {error}; {help}"))
            }
        }
    }
}
