//! Simulates the installation of carried packages on a node: computes which packages its apt or dnf
//! would select, from the carried indexes and the node's list of packages.

mod apt;
mod simulated_install;
mod yum;

pub(crate) use self::simulated_install::{NodeList, simulate_install};
