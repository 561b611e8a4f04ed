//! Compares two lists of hosts.

use super::host::{EgressHost, HostChange};
use serde::Deserialize;
use std::collections::BTreeSet;

/// Returns the hosts that only one of the two lists has, each with its change. Hosts with the same
/// name and port are equal: another reason or scheme does not change a firewall.
pub(crate) fn diff(old: Vec<EgressHost>, new: Vec<EgressHost>) -> Vec<EgressHost> {
    let old_addresses: BTreeSet<_> = old.iter().map(host_and_port).collect();
    let new_addresses: BTreeSet<_> = new.iter().map(host_and_port).collect();
    let mut changed = Vec::new();
    for row in new {
        if !old_addresses.contains(&host_and_port(&row)) {
            changed.push(EgressHost {
                change: Some(HostChange::Added),
                ..row
            });
        }
    }
    for row in old {
        if !new_addresses.contains(&host_and_port(&row)) {
            changed.push(EgressHost {
                change: Some(HostChange::Removed),
                ..row
            });
        }
    }
    changed.sort_by_key(host_and_port);
    changed
}

fn host_and_port(row: &EgressHost) -> (String, u16) {
    (row.host.to_string(), row.port)
}

/// Reads the hosts of a list that `--format json` or `--output json` printed. `None` for any other
/// text.
pub(crate) fn read_list(text: &str) -> Option<Vec<EgressHost>> {
    #[derive(Deserialize)]
    struct HostDocument {
        hosts: Vec<EgressHost>,
    }
    #[derive(Deserialize)]
    struct ReportHosts {
        egress: HostDocument,
    }
    // the report of `--output json` has the list as one of its members
    let report = serde_json::from_str(text).map(|report: ReportHosts| report.egress);
    report
        .or_else(|_| serde_json::from_str(text))
        .ok()
        .map(|list: HostDocument| list.hosts)
}
