//! The table of required ports, which is data: `manifests/ports/kubermatic.yaml`.

use landfall_model::document::yaml;
use serde::Deserialize;
use std::sync::LazyLock;

/// One row: who needs which port of whom.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PortRow {
    /// The role of the machine that connects.
    pub(super) role: String,
    /// What runs there.
    pub(super) component: String,
    /// Where it connects to: the word of `--set`.
    pub(super) to: String,
    /// The expose strategies with which it does; empty for any.
    #[serde(default)]
    pub(super) strategies: Vec<String>,
    /// The ports.
    pub(super) ports: Ports,
    /// What for.
    pub(super) why: String,
}

/// The ports of a row.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(super) enum Ports {
    /// These.
    Of(Vec<u16>),
    /// Those that a cluster or a provider decides.
    Decided(Decided),
}

/// Who decides the ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Decided {
    /// The range of node ports, which a cluster may set otherwise.
    NodePorts,
    /// Those of the provider.
    Provider,
}

/// What `--set` names beside destinations: the range of node ports.
pub(super) const RANGE: &str = "nodeport-range";

/// Every row. The data is part of the program, and a test reads it.
pub(super) static TABLE: LazyLock<Vec<PortRow>> =
    LazyLock::new(|| yaml::from_str(DATA).unwrap_or_default());

const DATA: &str = include_str!("../../../manifests/ports/kubermatic.yaml");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_is_a_table() {
        let rows: Vec<PortRow> = serde_yaml::from_str(DATA).unwrap();
        assert_eq!(rows.len(), 12);
        assert_eq!(rows[7].ports, Ports::Of(vec![6443, 8088]));
        assert_eq!(rows[2].ports, Ports::Decided(Decided::NodePorts));
        assert_eq!(rows[11].ports, Ports::Decided(Decided::Provider));
    }
}
