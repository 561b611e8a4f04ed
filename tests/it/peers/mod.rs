//! Tests with real peers, such as docker-registry, skopeo, containerd, squid, apt, gpg, Helm and
//! Trivy, and in network namespaces without a route out.

mod apt;
mod archives;
mod auth;
mod closed_network;
mod deliver;
mod docs;
mod doctor;
mod egress;
mod end_to_end;
mod far_side;
mod helm;
pub(crate) mod images_in_pods;
mod machines;
mod node_config;
mod nodes;
mod openpgp;
mod patched;
mod preflight;
mod proxy;
mod public_hosts;
mod referrers;
mod registries_yaml;
mod report_in_browser;
mod required_ports;
mod runtimes;
mod start;
mod talos_config;
mod trivy;
mod trust;
mod zoo;
