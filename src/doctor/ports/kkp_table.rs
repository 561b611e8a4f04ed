//! Parses the table of required ports of KKP, `manifests/ports/kubermatic.yaml`.

use landfall_model::document::yaml;
use serde::Deserialize;
use std::ops::RangeInclusive;
use std::sync::LazyLock;

/// A row of the table: a component that connects to a port of another machine.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PortRow {
    /// The role of the machine that connects.
    pub(super) role: String,
    /// The component on that machine that connects.
    pub(super) component: String,
    /// The name of the destination, which is its key for `--set`.
    pub(super) to: String,
    /// The expose strategies that need the port; empty if all do.
    #[serde(default)]
    pub(super) strategies: Vec<String>,
    /// The ports, or their source.
    pub(super) ports: Ports,
    /// Whether KKP's table marks the port as overridable (`*`).
    #[serde(default)]
    pub(super) overridable: bool,
    /// Whether the destination is outside the site, so that the proxy rules apply.
    #[serde(default)]
    pub(super) outside: bool,
    /// The purpose of the connection.
    pub(super) why: String,
}

/// The ports of a row.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(super) enum Ports {
    /// The same ports at every site.
    Of(Vec<u16>),
    /// Ports that a cluster or a provider decides.
    Decided(Decided),
}

/// The source of the ports of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Decided {
    /// The range of node ports of the cluster, 30000-32767 by default.
    NodePorts,
    /// The port of the cloud provider's API.
    Provider,
}

impl PortRow {
    /// The purpose of the connection, and the component that opens it.
    pub(super) fn purpose(&self) -> String {
        format!("{} ({})", self.why, self.component)
    }

    /// The strategies that need the port, as in `NodePort or LoadBalancer`.
    pub(super) fn strategy(&self) -> String {
        match &self.strategies[..] {
            [] => "any".into(),
            some => some.join(" or "),
        }
    }
}

/// The usual range of node ports.
pub(super) const NODE_PORTS: RangeInclusive<u16> = 30000..=32767;

/// The key of `--set` for the range of node ports. All other keys are destinations.
pub(super) const RANGE: &str = "nodeport-range";

/// All rows. The data is compiled in, and a test parses it.
pub(super) static TABLE: LazyLock<Vec<PortRow>> =
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
