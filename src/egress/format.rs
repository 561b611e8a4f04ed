//! The formats of a list of hosts: each has a function here and a row in [`FORMATS`].

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

use crate::egress::Egress;
use crate::egress::host::EgressHost;
use crate::egress::pattern::EgressPattern;
use landfall_model::report::{csv_line, markdown_code, markdown_row, markdown_text, one_line};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::IpAddr;

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
    list("text", "Lines for people", text),
    list("json", "A document that --diff reads", json),
    list("csv", "A table for spreadsheets", csv),
    list("markdown", "A table for a firewall ticket", markdown),
    policy("squid", "An access list for squid", squid),
    policy(
        "networkpolicy",
        "A Kubernetes NetworkPolicy, which supports ports and addresses but no names",
        network_policy,
    ),
    policy(
        "cilium",
        "A Cilium policy that allows hosts by name",
        cilium,
    ),
];

const fn list(
    name: &'static str,
    about: &'static str,
    write: fn(&Egress) -> String,
) -> EgressFormat {
    EgressFormat {
        name,
        about,
        is_policy: false,
        write,
    }
}

const fn policy(
    name: &'static str,
    about: &'static str,
    write: fn(&Egress) -> String,
) -> EgressFormat {
    EgressFormat {
        is_policy: true,
        ..list(name, about, write)
    }
}

/// The hosts of one port.
#[derive(Default)]
struct HostGroup<'a> {
    /// Single DNS names.
    names: Vec<&'a str>,
    /// Wildcards, without their `*.`.
    below: Vec<&'a str>,
    /// IPv4 and IPv6 addresses.
    addresses: Vec<IpAddr>,
}

/// The hosts for which `which` is true, by port.
fn by_port(egress: &Egress, which: impl Fn(&EgressHost) -> bool) -> BTreeMap<u16, HostGroup<'_>> {
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
fn comment(egress: &Egress) -> String {
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
    text + &notes(egress, "# note: ")
}

/// The notes, each as a line that begins with `start`.
fn notes(egress: &Egress, start: &str) -> String {
    let notes = egress.notes.iter();
    notes
        .map(|note| format!("{start}{}\n", one_line(note)))
        .collect()
}

/// Lines for people: one line for each host, with a second line if the host has a reason, then the
/// notes about hosts that are not known yet.
fn text(egress: &Egress) -> String {
    let width = egress
        .hosts
        .iter()
        .map(|row| row.address().len())
        .max()
        .unwrap_or(0);
    let mut text = String::new();
    for row in &egress.hosts {
        let change = row
            .change
            .map(|change| format!("{:7}  ", change.to_string()))
            .unwrap_or_default();
        let found = row
            .reach
            .map(|reach| format!("{:7}  ", reach.to_string()))
            .unwrap_or_default();
        let mut line = format!(
            "{change}{found}{:width$}  {:5}  {:9}  {}",
            row.address(),
            one_line(&row.scheme),
            row.known.to_string(),
            one_line(&row.why.join("; "))
        );
        if !row.from.is_empty() {
            line += &format!(" (from {})", one_line(&row.from.join(", ")));
        }
        if let Some(via) = &row.via {
            line += &format!(" (through {})", one_line(via));
        }
        if let Some(reason) = &row.reason {
            line += &format!("\n         {}", one_line(reason));
        }
        text += &(line + "\n");
    }
    text + &notes(egress, "note: ")
}

/// A table for spreadsheets (RFC 4180). The columns are always the same, so that programs can rely
/// on them.
fn csv(egress: &Egress) -> String {
    const HEAD: [&str; 10] = [
        "change", "host", "port", "scheme", "known", "why", "from", "via", "reach", "reason",
    ];
    let mut text = csv_line(HEAD);
    for row in &egress.hosts {
        let fields = [
            row.change_word(),
            row.host.to_string(),
            row.port.to_string(),
            row.scheme.clone(),
            row.known.to_string(),
            row.why.join("; "),
            row.from.join(" "),
            row.via.clone().unwrap_or_default(),
            row.reach.map(|reach| reach.to_string()).unwrap_or_default(),
            row.reason.clone().unwrap_or_default(),
        ];
        text += &csv_line(fields);
    }
    text
}

/// The JSON document that `--diff` reads (see [`crate::egress::read_list`]).
fn json(egress: &Egress) -> String {
    format!("{:#}\n", serde_json::json!(egress))
}

/// A column: its heading and the function that returns its cell. A column whose cells are all empty
/// is omitted.
type Column = (&'static str, fn(&EgressHost) -> String);

const COLUMNS: [Column; 10] = [
    ("change", EgressHost::change_word),
    ("host", |row| markdown_code(&row.host.to_string())),
    ("port", |row| row.port.to_string()),
    ("scheme", |row| markdown_text(&row.scheme)),
    ("known", |row| row.known.to_string()),
    ("why", |row| markdown_text(&row.why.join("; "))),
    ("from", |row| markdown_text(&row.from.join(", "))),
    ("through", |row| {
        markdown_text(row.via.as_deref().unwrap_or_default())
    }),
    ("probe", |row| {
        row.reach.map(|reach| reach.to_string()).unwrap_or_default()
    }),
    ("reason", |row| {
        markdown_text(row.reason.as_deref().unwrap_or_default())
    }),
];

/// A Markdown table for a firewall ticket.
fn markdown(egress: &Egress) -> String {
    let mut table = String::new();
    let used = COLUMNS
        .iter()
        .filter(|(_, cell)| egress.hosts.iter().any(|row| !cell(row).is_empty()));
    let used: Vec<&Column> = used.collect();
    if !used.is_empty() {
        let headings: Vec<&str> = used.iter().map(|(heading, _)| *heading).collect();
        table += &markdown_row(&headings);
        table += &markdown_row(&vec!["---"; used.len()]);
    }
    for row in &egress.hosts {
        let cells: Vec<String> = used.iter().map(|(_, cell)| cell(row)).collect();
        table += &markdown_row(&cells);
    }
    if !egress.notes.is_empty() {
        table.push('\n');
    }
    table.extend(
        egress
            .notes
            .iter()
            .map(|note| format!("- {}\n", markdown_text(note))),
    );
    table
}

/// An access list for squid, which allows exactly the listed hosts at exactly their ports, and
/// denies all other requests.
fn squid(egress: &Egress) -> String {
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

/// A Cilium policy that allows hosts by name. Cilium learns the addresses of names from the DNS
/// responses that it proxies, so the policy also allows DNS queries for these names.
fn cilium(egress: &Egress) -> String {
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

/// The selectors of the names of a group. In Cilium, `*` matches one label, and so does `**` before
/// 1.19; since then, `**.` matches any number of them (cilium/cilium#43420).
fn selectors<'a>(group: &'a HostGroup<'_>) -> impl Iterator<Item = String> + 'a {
    let names = group
        .names
        .iter()
        .map(|name| format!("matchName: \"{name}\""));
    let below = group
        .below
        .iter()
        .map(|name| format!("matchPattern: \"**.{name}\""));
    names.chain(below)
}

const LIMIT: &str = "\
# A NetworkPolicy does not support names: for hosts listed by name, it allows every address at
# their ports. To allow only the names above, use `--format cilium`, or allow only a proxy here and
# give the proxy the list of `--format squid`.
";

/// A Kubernetes `NetworkPolicy`, which supports ports and addresses but not names. A comment in the
/// policy says that it allows more than the list.
fn network_policy(egress: &Egress) -> String {
    let mut text = comment(egress) + LIMIT;
    text += "\
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: landfall-egress
spec:
  podSelector:
    matchLabels:
      app.kubernetes.io/name: landfall
  policyTypes: [Egress]
  egress:
  - ports:
    - {protocol: UDP, port: 53}
    - {protocol: TCP, port: 53}
";
    for (port, group) in by_port(egress, |_| true) {
        text += "  - ports:\n";
        let _ = writeln!(text, "    - {{protocol: TCP, port: {port}}}");
        // a port with names needs a rule without `to`, which allows every address
        if group.names.is_empty() && group.below.is_empty() {
            text += "    to:\n";
            for address in group.addresses {
                let bits = if address.is_ipv4() { 32 } else { 128 };
                let _ = writeln!(text, "    - ipBlock: {{cidr: \"{address}/{bits}\"}}");
            }
        }
    }
    text
}
