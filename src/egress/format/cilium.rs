//! Formats a Cilium policy that allows hosts by name. Cilium learns the addresses of names from the
//! DNS responses that it proxies, so the policy also allows DNS queries for these names.

use super::groups::{HostGroup, by_port, comment};
use crate::egress::Egress;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// The rule for queries to the cluster's DNS. The allowed names follow.
const DNS_RULE: &str = "  - toEndpoints:
    - matchLabels:
        k8s:io.kubernetes.pod.namespace: kube-system
        k8s:k8s-app: kube-dns
    toPorts:
    - ports:
      - {port: \"53\", protocol: ANY}
      rules:
        dns:
";

pub(super) fn write(egress: &Egress) -> String {
    let groups = by_port(egress, |_| true);
    let mut text = comment(egress);
    text += "\
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata:
  name: landfall-egress
spec:
  endpointSelector:
    matchLabels:
      app.kubernetes.io/name: landfall
  egress:
";
    let names: BTreeSet<String> = groups.values().flat_map(selectors).collect();
    if !names.is_empty() {
        text += DNS_RULE;
        names.iter().for_each(|name| {
            let _ = writeln!(text, "        - {name}");
        });
    }
    for (port, group) in &groups {
        let mut rule = |to: &str, items: Vec<String>| {
            if items.is_empty() {
                return;
            }
            let _ = writeln!(text, "  - {to}:");
            items.iter().for_each(|item| {
                let _ = writeln!(text, "    - {item}");
            });
            let _ = writeln!(
                text,
                "    toPorts:\n    - ports:\n      - {{port: \"{port}\", protocol: TCP}}"
            );
        };
        rule("toFQDNs", selectors(group).collect());
        rule(
            "toCIDR",
            group.addresses.iter().map(address_block).collect(),
        );
    }
    text
}

fn address_block(address: &std::net::IpAddr) -> String {
    format!("\"{address}/{}\"", if address.is_ipv4() { 32 } else { 128 })
}

/// The selectors of the names of a group. In Cilium, `*` matches one label.
fn selectors<'a>(group: &'a HostGroup<'_>) -> impl Iterator<Item = String> + 'a {
    let names = group
        .names
        .iter()
        .map(|name| format!("matchName: \"{name}\""));
    let below = group
        .below
        .iter()
        .map(|name| format!("matchPattern: \"*.{name}\""));
    names.chain(below)
}
