//! Finds out why a host cannot be reached, and which settings of a site will not work. Checks each
//! step to a host (name, proxy and the rule that chose it, connection, certificate, response,
//! sign-in, redirects), the rights at the private registry, ports by role, names and their
//! certificates, the settings that name proxies, names that changed, KKP Seeds, and configurations
//! of containerd and podman. Checks a machine as a node. Simulates the installation of packages.

mod containerd_lint;
mod diagnose;
mod lint;
mod names;
mod no_proxy;
mod node;
mod node_config;
mod packages;
mod ports;
mod real_items;
mod rights;
mod steps;
mod variables;

pub(crate) use self::diagnose::diagnose;
pub(crate) use self::lint::{LintMessage, changed_names, lint_seeds};
pub(crate) use self::names::check_names;
pub(crate) use self::no_proxy::lint_entries;
pub(crate) use self::node::{
    MachineFiles, NodeMirror, check_clock, check_image_names, check_machine, node_proxy,
    server_time, time_of_server,
};
#[cfg(any(test, fuzzing))]
pub(crate) use self::node_config::fuzz as fuzz_node_config;
pub(crate) use self::node_config::lint_node_config;
pub(crate) use self::packages::{NodeList, simulate_install};
pub(crate) use self::ports::{
    PORTS_FORMATS, PortQuery, RequiredPort, Strategy, port_table, probe_ports,
};
pub(crate) use self::real_items::RealItems;
pub(crate) use self::steps::{CheckStatus, CheckTarget, Diagnosis, targets_of};
pub(crate) use self::variables::lint_environment;
