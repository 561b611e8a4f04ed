//! Package selection by dnf's rules: [`choose`] answers a [`SelectionRequest`] with a
//! [`YumSelection`] or a chain of reasons.

mod base_rules;
mod choice;
mod choose;
mod formula;
mod package_chooser;
mod policy;
mod reasons;
mod request_words;
mod rules;
mod sat;
#[cfg(test)]
mod tests;
mod weak;

pub use choose::{SelectionRequest, UnsolvableRequest, YumSelection, choose};
pub use request_words::is_named;
