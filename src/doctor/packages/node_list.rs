//! The packages that a node has: dpkg's status file, or a list of RPM packages.

use landfall_item::LockedPackageSet;
use landfall_packages::yum::{Pool, read_base};
use std::fmt;

/// The packages that a node has.
#[derive(Debug)]
pub(crate) enum NodeList {
    /// A copy of its `/var/lib/dpkg/status`.
    Status(String),
    /// The output of its `rpm -qa`.
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

/// The kind of the list, for messages.
impl fmt::Display for NodeList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NodeList::Status(_) => "a dpkg status file",
            NodeList::Rpms(_) => "a list of RPM packages",
        })
    }
}
