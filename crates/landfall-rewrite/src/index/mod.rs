//! The reference index: resolves a written reference to a locked item and its replacement.

mod basenames;
mod file_urls;
mod locked_names;
mod lookup;
mod lookup_result;
mod prefix;
mod reference_index;
mod repository;
mod tag_list;
#[cfg(test)]
mod tests;
mod url_lookup;
#[cfg(test)]
mod url_tests;
mod word_matcher;

pub(crate) use landfall_model::reference_names;
pub(crate) use locked_names::{LockedName, LossCause, ReferencedItem, losses, names};
pub(crate) use lookup_result::{ReferenceLookup, ReferenceReplacement};
pub use reference_index::ReferenceIndex;
pub(crate) use tag_list::listed;
pub(crate) use url_lookup::{UrlLookup, UrlPattern};
