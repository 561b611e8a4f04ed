//! The reference index: which locked item a written reference means, and what replaces it.

mod answer;
mod basenames;
mod file_urls;
mod listing;
mod locked;
mod lookup;
mod prefix;
mod reference_index;
mod repository;
#[cfg(test)]
mod tests;
mod url_lookup;
#[cfg(test)]
mod url_tests;
mod words;

pub(crate) use answer::{Lookup, Replacement};
pub(crate) use landfall_model::reference_names;
pub(crate) use listing::listed;
pub(crate) use locked::{Found, LossCause, ReferencedItem, losses, names};
pub use reference_index::ReferenceIndex;
pub(crate) use url_lookup::{UrlLookup, UrlPattern};
