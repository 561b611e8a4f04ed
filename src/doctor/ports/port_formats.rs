//! Required ports as a table for people, as CSV, Markdown and `NetworkPolicy`.

use super::{PortMark, PortRange, RequiredPort};
use landfall_model::report::{aligned_columns, csv_line, markdown_row, markdown_text, one_line};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::IpAddr;

/// A format of the table of required ports.
pub(crate) struct PortsFormat {
    /// The name on the command line.
    pub(crate) name: &'static str,
    /// One line for the help.
    pub(crate) about: &'static str,
    /// Formats the table of the named role.
    pub(crate) write: fn(&str, &[RequiredPort]) -> String,
}

/// All formats, in the order of the help.
pub(crate) const PORTS_FORMATS: [PortsFormat; 4] = [
    PortsFormat {
        name: "text",
        about: "Columns for people",
        write: |_, rows| port_table(rows),
    },
    PortsFormat {
        name: "csv",
        about: "A table for spreadsheets",
        write: |_, rows| csv(rows),
    },
    PortsFormat {
        name: "markdown",
        about: "A table for a firewall ticket",
        write: |_, rows| markdown(rows),
    },
    PortsFormat {
        name: "networkpolicy",
        about: "A Kubernetes NetworkPolicy, for clients that are pods",
        write: network_policy,
    },
];

const COLUMNS: [&str; 9] = [
    "role", "port", "mark", "protocol", "from", "to", "address", "strategy", "why",
];

fn cells(row: &RequiredPort) -> [String; 9] {
    [
        row.role.clone(),
        row.port.to_string(),
        row.mark.map_or("", |mark| mark.legend().0).to_owned(),
        row.protocol.to_owned(),
        row.from.clone(),
        row.to.clone(),
        row.address.clone().unwrap_or_default(),
        row.strategy.clone(),
        row.why.clone(),
    ]
    .map(|cell| one_line(&cell))
}

/// Formats the table as aligned columns.
pub(crate) fn port_table(rows: &[RequiredPort]) -> String {
    let mut lines = vec![COLUMNS.map(str::to_owned)];
    lines.extend(rows.iter().map(cells));
    // If an endpoint is an address, `to` and `address` are equal, and `to` is enough.
    for line in &mut lines {
        if line[5] == line[6] {
            line[6].clear();
        }
    }
    let mut table = aligned_columns(&lines);
    for (mark, meaning) in legend(rows) {
        let _ = writeln!(table, "{mark:2} {meaning}");
    }
    table
}

/// The marks that `rows` have, and their meanings.
fn legend(rows: &[RequiredPort]) -> impl Iterator<Item = (&'static str, &'static str)> {
    [PortMark::Overridable, PortMark::NodePorts]
        .into_iter()
        .filter(|mark| rows.iter().any(|row| row.mark == Some(*mark)))
        .map(PortMark::legend)
}

fn csv(rows: &[RequiredPort]) -> String {
    let lines: String = rows.iter().map(|row| csv_line(cells(row))).collect();
    csv_line(COLUMNS) + &lines
}

fn markdown(rows: &[RequiredPort]) -> String {
    let mut table = markdown_row(&COLUMNS) + &markdown_row(&["---"; COLUMNS.len()]);
    table.extend(
        rows.iter()
            .map(|row| markdown_row(&cells(row).map(|cell| markdown_text(&cell)))),
    );
    for (mark, meaning) in legend(rows) {
        let _ = write!(table, "\n{}: {meaning}\n", markdown_text(mark));
    }
    table
}

const LIMIT: &str = "\
# A NetworkPolicy applies to pods only: kubelet, SSH and pods with hostNetwork need firewall rules.
# It supports addresses, not names: destinations without an address are allowed at every address.
# Add the label below to the pods that need these rules, or change the selector.
";

/// Formats a policy that allows the known ports. If a provider decides the port of a row, only the
/// comment of the policy lists the row.
fn network_policy(role: &str, rows: &[RequiredPort]) -> String {
    let mut policy = "# written by `landfall doctor --role`\n".to_owned();
    for row in rows {
        let [role, port, mark, protocol, from, to, address, strategy, why] = cells(row);
        let strategy = match strategy.as_str() {
            "" | "any" => String::new(),
            some => format!(" (with {some})"),
        };
        let address = if address.is_empty() || address == to {
            address
        } else {
            format!(" ({address})")
        };
        let left_out = if row.port == PortRange::Provider {
            " NOT ALLOWED: name its port with --set;"
        } else {
            ""
        };
        let _ = writeln!(
            policy,
            "#  {left_out} {role}: {port}{mark}/{protocol} from {from} to {to}{address}: {why}{strategy}"
        );
    }
    for (mark, meaning) in legend(rows) {
        let _ = writeln!(policy, "# {mark:2} {meaning}");
    }
    let name = label(role);
    policy += LIMIT;
    // Without DNS, a pod that the policy selects could not resolve its destinations.
    let _ = write!(
        policy,
        "apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: landfall-{name}
spec:
  podSelector:
    matchLabels:
      landfall-role: \"{name}\"
  policyTypes: [Egress]
  egress:
  - ports:
    - {{protocol: UDP, port: 53}}
    - {{protocol: TCP, port: 53}}
"
    );
    // The addresses by port or range; `None` allows every address, because no rule can name a host.
    let mut rules: BTreeMap<(u16, u16), Option<Vec<IpAddr>>> = BTreeMap::new();
    for row in rows {
        let PortRange::Known(range) = &row.port else {
            continue;
        };
        let address: Option<IpAddr> = row
            .address
            .as_deref()
            .and_then(|address| address.parse().ok());
        let rule = rules
            .entry((*range.start(), *range.end()))
            .or_insert_with(|| Some(Vec::new()));
        match (address, &mut *rule) {
            (Some(address), Some(all)) if !all.contains(&address) => all.push(address),
            (Some(_), _) => {}
            (None, _) => *rule = None,
        }
    }
    for ((first, last), addresses) in rules {
        let end = if first == last {
            String::new()
        } else {
            format!(", endPort: {last}")
        };
        let _ = writeln!(
            policy,
            "  - ports:\n    - {{protocol: TCP, port: {first}{end}}}"
        );
        let Some(addresses) = addresses else { continue };
        policy += "    to:\n";
        for address in addresses {
            let bits = if address.is_ipv4() { 32 } else { 128 };
            let _ = writeln!(policy, "    - ipBlock: {{cidr: \"{address}/{bits}\"}}");
        }
    }
    policy
}

/// Converts a role to the characters that Kubernetes accepts in names and labels.
fn label(role: &str) -> String {
    let plain: String = role
        .to_lowercase()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        // A label has at most 63 characters, and the name of the policy has a prefix.
        .take(50)
        .collect();
    match plain.trim_matches('-') {
        "" => "role".to_owned(),
        name => name.to_owned(),
    }
}
