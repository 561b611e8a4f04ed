//! Finds out why a host cannot be reached, and which settings of a site will not work. Checks each
//! step to a host (name, proxy and the rule that chose it, connection, certificate, response,
//! sign-in, redirects), the rights at the private registry, ports by role, names and their
//! certificates, the settings that name proxies, names that changed, KKP Seeds, and configurations
//! of containerd and podman. Simulates the installation of packages on a node.

mod changed_names;
mod containerd_lint;
mod diagnose;
mod kkp_keys;
mod lint;
mod names;
mod no_proxy;
mod node_config;
mod packages;
mod path_steps;
mod ports;
mod real_items;
mod registries_conf_lint;
mod response_steps;
mod rights;
mod status;
mod steps;
mod target;
mod variables;

pub(crate) use changed_names::changed_names;
pub(crate) use diagnose::diagnose;
pub(crate) use kkp_keys::lint_seeds;
pub(crate) use lint::LintMessage;
pub(crate) use names::check_names;
pub(crate) use no_proxy::lint_entries;
#[cfg(any(test, fuzzing))]
pub(crate) use node_config::fuzz as fuzz_node_config;
pub(crate) use node_config::lint_node_config;
pub(crate) use packages::{NodeList, simulate_install};
pub(crate) use ports::{PORTS_FORMATS, PortQuery, Strategy, port_table, probe_ports};
pub(crate) use real_items::RealItems;
pub(crate) use status::CheckStatus;
pub(crate) use steps::Diagnosis;
pub(crate) use target::{CheckTarget, targets_of};
pub(crate) use variables::lint_environment;
