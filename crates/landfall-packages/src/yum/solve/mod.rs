//! Package selection by dnf's rules: [`choose`] answers a [`SelectionRequest`] with a
//! [`YumSelection`] or a chain of reasons.

mod choose;
mod formula;
mod package_chooser;
mod policy;
mod reasons;
pub(crate) mod request_words;
mod rules;
mod sat;
#[cfg(test)]
mod tests;

pub use self::choose::{SelectionRequest, UnsolvableRequest, YumSelection, choose};
pub use self::request_words::is_named;
