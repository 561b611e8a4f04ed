//! The formats of a list of hosts: each has a file here and a row in [`FORMATS`].

mod cilium;
mod csv;
mod groups;
mod json;
mod markdown;
mod network_policy;
#[cfg(test)]
mod properties;
mod squid;
#[cfg(test)]
mod tests;
mod text;

use super::Egress;

/// A format of a list of hosts.
pub(crate) struct EgressFormat {
    /// The name on the command line.
    pub(crate) name: &'static str,
    /// One line for the help.
    pub(crate) about: &'static str,
    /// Whether the format is a policy, which cannot express the result of a comparison or a probe.
    pub(crate) is_policy: bool,
    /// Writes the list in this format.
    pub(crate) write: fn(&Egress) -> String,
}

/// All formats, in the order of the help.
pub(crate) const FORMATS: [EgressFormat; 7] = [
    EgressFormat {
        name: "text",
        about: "Lines for people",
        is_policy: false,
        write: text::write,
    },
    EgressFormat {
        name: "json",
        about: "A document that --diff reads",
        is_policy: false,
        write: json::write,
    },
    EgressFormat {
        name: "csv",
        about: "A table for spreadsheets",
        is_policy: false,
        write: csv::write,
    },
    EgressFormat {
        name: "markdown",
        about: "A table for a firewall ticket",
        is_policy: false,
        write: markdown::write,
    },
    EgressFormat {
        name: "squid",
        about: "An access list for squid",
        is_policy: true,
        write: squid::write,
    },
    EgressFormat {
        name: "networkpolicy",
        about: "A Kubernetes NetworkPolicy, which supports ports and addresses but no names",
        is_policy: true,
        write: network_policy::write,
    },
    EgressFormat {
        name: "cilium",
        about: "A Cilium policy that allows hosts by name",
        is_policy: true,
        write: cilium::write,
    },
];
