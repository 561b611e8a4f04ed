//! The reference index: resolves a written reference to a locked item and its replacement.

mod lookup;
mod prefix;
mod reference_index;
#[cfg(test)]
mod tests;
mod url_lookup;
#[cfg(test)]
mod url_tests;
mod word_matcher;

pub(crate) use self::lookup::{ReferenceLookup, ReferenceReplacement, listed};
pub use self::reference_index::ReferenceIndex;
pub(crate) use self::reference_index::{LockedName, LossCause, ReferencedItem, losses, names};
pub(crate) use self::url_lookup::{UrlLookup, UrlPattern};
pub(crate) use landfall_model::reference_names;
