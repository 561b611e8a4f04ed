//! The choice of packages by dnf's rules: [`choose`] answers a [`SelectionRequest`] with a [`YumSelection`], or
//! with a chain of reasons.

mod asked;
mod choice;
mod choose;
mod formula;
mod kept;
mod policy;
mod reasons;
mod rules;
mod sat;
#[cfg(test)]
mod tests;
mod weak;

pub use asked::is_named;
pub use choose::{SelectionRequest, UnsolvableRequest, YumSelection, choose};
