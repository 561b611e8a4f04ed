//! Simulates the installation of carried packages on a node: the choice of its apt or dnf, computed
//! from the carried indexes and the node's list of packages.

mod apt;
mod node_list;
mod rehearsal;
mod rehearse;
mod yum;

pub(crate) use node_list::NodeList;
pub(crate) use rehearse::rehearse;
