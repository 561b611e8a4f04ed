//! Simulates the installation of carried packages on a node: computes which packages its apt or dnf
//! would select, from the carried indexes and the node's list of packages.

mod apt;
mod node_list;
mod simulate_install;
mod simulated_install;
mod yum;

pub(crate) use node_list::NodeList;
pub(crate) use simulate_install::simulate_install;
