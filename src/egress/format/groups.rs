//! Groups the hosts of a list by port, as policies need them, and formats the comment of a policy.

use crate::egress::Egress;
use crate::egress::host::EgressHost;
use crate::egress::pattern::EgressPattern;
use landfall_model::report::one_line;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// The hosts of one port.
#[derive(Default)]
pub(super) struct HostGroup<'a> {
    /// Single DNS names.
    pub(super) names: Vec<&'a str>,
    /// Wildcards, without their `*.`.
    pub(super) below: Vec<&'a str>,
    /// IPv4 and IPv6 addresses.
    pub(super) addresses: Vec<IpAddr>,
}

/// The hosts for which `which` is true, by port.
pub(super) fn by_port(
    egress: &Egress,
    which: impl Fn(&EgressHost) -> bool,
) -> BTreeMap<u16, HostGroup<'_>> {
    let mut groups: BTreeMap<u16, HostGroup<'_>> = BTreeMap::new();
    for row in egress.hosts.iter().filter(|row| which(row)) {
        let group = groups.entry(row.port).or_default();
        match &row.host {
            EgressPattern::Address(address) => group.addresses.push(*address),
            EgressPattern::Below(name) => group.below.push(name),
            EgressPattern::Name(name) => group.names.push(name),
        }
    }
    groups
}

/// The first lines of a policy: the command that wrote it, each host with its reasons, and the
/// notes.
pub(super) fn comment(egress: &Egress) -> String {
    let mut text = "# written by `landfall egress`\n".to_owned();
    for row in &egress.hosts {
        text += &format!(
            "#   {} {} ({}): {}\n",
            row.address(),
            one_line(&row.scheme),
            row.known,
            one_line(&row.why.join("; "))
        );
    }
    text.extend(
        egress
            .notes
            .iter()
            .map(|note| format!("# note: {}\n", one_line(note))),
    );
    text
}
