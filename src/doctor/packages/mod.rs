//! Whether what is carried can be installed on a node: the choice that its apt or dnf makes, by the
//! carried indexes and the node's own list.

mod apt;
mod node_list;
mod rehearsal;
mod rehearse;
mod yum;

pub(crate) use node_list::NodeList;
pub(crate) use rehearse::rehearse;
