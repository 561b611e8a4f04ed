//! Formats an access list for squid, which allows exactly the listed hosts at exactly their ports,
//! and denies all other requests.

use super::groups::{HostGroup, by_port, comment};
use crate::egress::Egress;
use std::fmt::Write as _;

pub(super) fn write(egress: &Egress) -> String {
    let mut text = comment(egress);
    // https and other TCP need a tunnel (CONNECT); plain http is requested from the proxy itself
    let tunneled = by_port(egress, |row| row.scheme != "http");
    let plain = by_port(egress, |row| row.scheme == "http");
    text += "acl landfall_connect method CONNECT\n";
    for (port, group) in &tunneled {
        rules(&mut text, *port, group, "connect", "landfall_connect");
    }
    for (port, group) in &plain {
        rules(&mut text, *port, group, "http", "!landfall_connect");
    }
    text += "http_access deny all\n";
    text
}

/// Adds the rules of one port. With `-n`, squid compares the requested host as it is written,
/// without DNS lookups.
fn rules(text: &mut String, port: u16, group: &HostGroup<'_>, word: &str, method: &str) {
    let base = format!("landfall_{word}_{port}");
    let _ = writeln!(text, "acl {base} port {port}");
    let mut allow = |kind: &str, definition: String| {
        let _ = writeln!(
            text,
            "acl {base}_{kind} {definition}\nhttp_access allow {method} {base} {base}_{kind}"
        );
    };
    if !group.names.is_empty() {
        allow("names", format!("dstdomain -n {}", group.names.join(" ")));
    }
    if !group.below.is_empty() {
        // not `dstdomain .name`, which also matches the name itself
        let below: Vec<String> = group
            .below
            .iter()
            .map(|name| format!("\\.{}$", name.replace('.', "\\.")))
            .collect();
        allow("below", format!("dstdom_regex -n -i {}", below.join(" ")));
    }
    if !group.addresses.is_empty() {
        let addresses: Vec<String> = group.addresses.iter().map(ToString::to_string).collect();
        allow("addresses", format!("dst -n {}", addresses.join(" ")));
    }
}
