//! Simulates the installation of carried packages on a node: the choice of its apt or dnf, computed
//! from the carried indexes and the node's list of packages.

mod apt;
mod node_list;
mod simulate_install;
mod simulated_install;
mod yum;

pub(crate) use node_list::NodeList;
pub(crate) use simulate_install::simulate_install;
