//! The forms in which a list of hosts is written: one file a form, one row in the table.

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

/// A form in which a list of hosts is written.
pub(crate) struct EgressFormat {
    /// Its word on the command line.
    pub(crate) name: &'static str,
    /// What it is, in a line.
    pub(crate) about: &'static str,
    /// It enforces a list, and so has no place for what a comparison or a probe found.
    pub(crate) is_policy: bool,
    /// Writes it.
    pub(crate) write: fn(&Egress) -> String,
}

/// Every form.
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
        about: "An access list of squid",
        is_policy: true,
        write: squid::write,
    },
    EgressFormat {
        name: "networkpolicy",
        about: "A Kubernetes NetworkPolicy, which knows ports and addresses and no names",
        is_policy: true,
        write: network_policy::write,
    },
    EgressFormat {
        name: "cilium",
        about: "A Cilium policy by names",
        is_policy: true,
        write: cilium::write,
    },
];
