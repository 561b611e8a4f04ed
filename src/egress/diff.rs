//! What a newer list of hosts adds to an older one, and takes away.

use super::host::{EgressHost, HostChange};
use serde::Deserialize;
use std::collections::BTreeSet;

/// The hosts that only one of the two lists has, each with its change.
pub(crate) fn diff(old: Vec<EgressHost>, new: Vec<EgressHost>) -> Vec<EgressHost> {
    let address = |row: &EgressHost| (row.host.to_string(), row.port);
    let (had, has): (BTreeSet<_>, BTreeSet<_>) = (
        old.iter().map(address).collect(),
        new.iter().map(address).collect(),
    );
    let added = new.into_iter().filter(|row| !had.contains(&address(row)));
    let added = added.map(|row| EgressHost {
        change: Some(HostChange::Added),
        ..row
    });
    let removed = old.into_iter().filter(|row| !has.contains(&address(row)));
    let removed = removed.map(|row| EgressHost {
        change: Some(HostChange::Removed),
        ..row
    });
    let mut rows: Vec<EgressHost> = added.chain(removed).collect();
    rows.sort_by_key(address);
    rows
}

/// Reads the hosts of a list that `--format json` or `--output json` printed. `None` for any other
/// text.
pub(crate) fn read_list(text: &str) -> Option<Vec<EgressHost>> {
    #[derive(Deserialize)]
    struct HostList {
        hosts: Vec<EgressHost>,
    }
    #[derive(Deserialize)]
    struct ReportHosts {
        egress: HostList,
    }
    let report = serde_json::from_str(text).map(|report: ReportHosts| report.egress);
    report
        .or_else(|_| serde_json::from_str(text))
        .ok()
        .map(|list: HostList| list.hosts)
}
