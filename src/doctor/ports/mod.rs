//! The ports that a platform needs between the machines of a site, by the role of this machine, and
//! the connection attempts that test them.

mod port_formats;
mod port_probe;
mod port_query;

use landfall_item::lockfile::Endpoint;
use landfall_model::document::yaml;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::LazyLock;

pub(crate) use self::port_formats::{PORTS_FORMATS, port_table};
pub(crate) use self::port_probe::probe_ports;
pub(crate) use self::port_query::{PortQuery, Strategy};

/// A row of the table: a port, or a range of ports, that a machine must reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct RequiredPort {
    /// The role of the machine that connects. For an endpoint, the requested role, or `all`.
    pub role: String,
    /// The port, or the range of ports.
    pub port: PortRange,
    /// The mark of the port in KKP's table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mark: Option<PortMark>,
    pub protocol: &'static str,
    /// The component that opens the connection. For an endpoint, its roles, or `any machine`.
    pub from: String,
    /// The name of the destination, or the host of an endpoint.
    pub to: String,
    /// The address of the destination, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The expose strategies that need the port, or `any`; empty for an endpoint.
    pub strategy: String,
    /// The purpose of the connection.
    pub why: String,
}

/// A mark of KKP's table. A port that the site chose has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) enum PortMark {
    #[serde(rename = "*")]
    Overridable,
    #[serde(rename = "**")]
    NodePorts,
}

impl PortMark {
    /// The mark and its meaning.
    fn legend(self) -> (&'static str, &'static str) {
        match self {
            PortMark::Overridable => ("*", "an installation may use another port"),
            PortMark::NodePorts => ("**", "the default range of ports of NodePort services"),
        }
    }
}

/// The ports of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PortRange {
    /// All ports of the range, which may be a single one.
    Known(RangeInclusive<u16>),
    /// The provider decides the port; the table has none.
    Provider,
}

impl PortRange {
    fn one(port: u16) -> PortRange {
        PortRange::Known(port..=port)
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PortRange::Known(range) if range.start() == range.end() => {
                write!(f, "{}", range.start())
            }
            PortRange::Known(range) => write!(f, "{}-{}", range.start(), range.end()),
            PortRange::Provider => f.write_str("the provider's"),
        }
    }
}

impl Serialize for PortRange {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Expands a row of KKP's table to one row per port or range. `address` is the destination's
/// address and, if the site chose another port than the table's, that port. `node_ports` is the
/// range of node ports, if `--set` changed it.
fn rows_of_table(
    row: &PortRow,
    address: Option<&(String, Option<u16>)>,
    node_ports: Option<&RangeInclusive<u16>>,
) -> Vec<RequiredPort> {
    let own = address.and_then(|(_, port)| *port);
    let ports: Vec<PortRange> = match (&row.ports, own) {
        // A port that the site chose replaces the first port of the row.
        (Ports::Of(ports), Some(own)) => std::iter::once(own)
            .chain(ports.iter().skip(1).copied())
            .map(PortRange::one)
            .collect(),
        (Ports::Of(ports), None) => ports.iter().copied().map(PortRange::one).collect(),
        (Ports::Decided(_), Some(own)) => vec![PortRange::one(own)],
        (Ports::Decided(Decided::NodePorts), None) => {
            vec![PortRange::Known(node_ports.cloned().unwrap_or(NODE_PORTS))]
        }
        (Ports::Decided(Decided::Provider), None) => vec![PortRange::Provider],
    };
    let mark = match (&row.ports, own) {
        (Ports::Of(_), None) if row.overridable => Some(PortMark::Overridable),
        (Ports::Decided(Decided::NodePorts), None) if node_ports.is_none() => {
            Some(PortMark::NodePorts)
        }
        _ => None,
    };
    ports
        .into_iter()
        .map(|port| RequiredPort {
            role: row.role.clone(),
            port,
            mark,
            protocol: "TCP",
            from: row.component.clone(),
            to: row.to.clone(),
            address: address.map(|(host, _)| host.clone()),
            strategy: row.strategy(),
            why: row.why.clone(),
        })
        .collect()
}

/// The row of an endpoint of the lock, for machines of `role`.
fn row_of_endpoint(endpoint: &Endpoint, role: &str) -> RequiredPort {
    let is_address = endpoint.host.parse::<std::net::IpAddr>().is_ok();
    RequiredPort {
        role: role.into(),
        port: PortRange::one(endpoint.port),
        mark: None,
        protocol: "TCP",
        from: if endpoint.from.is_empty() {
            "any machine".into()
        } else {
            endpoint.from.join(", ")
        },
        to: endpoint.host.clone(),
        address: is_address.then(|| endpoint.host.clone()),
        strategy: String::new(),
        why: endpoint.why.clone(),
    }
}

// Parses the table of required ports of KKP, `manifests/ports/kubermatic.yaml`.

/// A row of the table: a component that connects to a port of another machine.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PortRow {
    /// The role of the machine that connects.
    role: String,
    /// The component on that machine that connects.
    component: String,
    /// The name of the destination, which is its key for `--set`.
    to: String,
    /// The expose strategies that need the port; empty if all do.
    #[serde(default)]
    strategies: Vec<String>,
    /// The ports, or their source.
    ports: Ports,
    /// Whether KKP's table marks the port as overridable (`*`).
    #[serde(default)]
    overridable: bool,
    /// Whether the destination is outside the site, so that the proxy rules apply.
    #[serde(default)]
    outside: bool,
    /// The purpose of the connection.
    why: String,
}

/// The ports of a row.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
enum Ports {
    /// The same ports at every site.
    Of(Vec<u16>),
    /// Ports that a cluster or a provider decides.
    Decided(Decided),
}

/// The source of the ports of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Decided {
    /// The range of node ports of the cluster, 30000-32767 by default.
    NodePorts,
    /// The port of the cloud provider's API.
    Provider,
}

impl PortRow {
    /// The purpose of the connection, and the component that opens it.
    fn purpose(&self) -> String {
        format!("{} ({})", self.why, self.component)
    }

    /// The strategies that need the port, as in `NodePort or LoadBalancer`.
    fn strategy(&self) -> String {
        match &self.strategies[..] {
            [] => "any".into(),
            some => some.join(" or "),
        }
    }
}

/// The usual range of node ports.
const NODE_PORTS: RangeInclusive<u16> = 30000..=32767;

/// The key of `--set` for the range of node ports. All other keys are destinations.
const RANGE: &str = "nodeport-range";

/// All rows. The data is compiled in, and a test parses it.
static TABLE: LazyLock<Vec<PortRow>> =
    LazyLock::new(|| yaml::from_str(DATA).expect("the table of ports is valid"));

const DATA: &str = include_str!("../../../manifests/ports/kubermatic.yaml");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_valid() {
        let rows: Vec<PortRow> = serde_yaml::from_str(DATA).unwrap();
        assert_eq!(rows.len(), 12);
        assert_eq!(rows[7].ports, Ports::Of(vec![6443, 8088]));
        assert_eq!(rows[2].ports, Ports::Decided(Decided::NodePorts));
        assert_eq!(rows[11].ports, Ports::Decided(Decided::Provider));
        let overridable: Vec<_> = rows.iter().map(|row| row.overridable).collect();
        let to_api = |row: &PortRow| ["master-ingress", "seed-api"].contains(&row.to.as_str());
        assert_eq!(overridable, rows.iter().map(to_api).collect::<Vec<_>>());
    }

    #[test]
    fn the_manual_has_the_same_table() {
        let page = include_str!("../../../docs/reference/ports.md");
        let written: Vec<&str> = page
            .lines()
            .filter(|line| line.starts_with("| `"))
            .collect();
        let rows = TABLE.iter().map(|row| {
            let mark = if row.overridable { "\\*" } else { "" };
            let ports = match &row.ports {
                Ports::Of(ports) => {
                    let ports: Vec<String> = ports.iter().map(ToString::to_string).collect();
                    ports.join(", ") + mark
                }
                Ports::Decided(Decided::NodePorts) => {
                    format!("{}-{}\\*\\*", NODE_PORTS.start(), NODE_PORTS.end())
                }
                Ports::Decided(Decided::Provider) => "the provider's".into(),
            };
            let [role, to, strategy] = [&row.role, &row.to, &row.strategy()].map(String::clone);
            let purpose = format!("{}: {}", row.component, row.why);
            format!("| `{role}` | `{to}` | {strategy} | {ports} | {purpose} |")
        });
        assert_eq!(written, rows.collect::<Vec<_>>());
    }
}
