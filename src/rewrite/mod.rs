//! POINT TO IT. Finds references to locked items in texts, and rewrites them.
//!
//! Only references that the lock knows are changed; every byte outside them stays. The [`ReferenceIndex`]
//! says what a written reference means. [`scan`] finds the references of a text, and [`rewrite`]
//! changes those that are known: `walk` reads YAML and proves the result by reading it again, `text`
//! reads words. Each shape of reference is a row of the table in `shapes`. A text within a value is
//! scanned like any other; `source_map` maps edits of values to bytes of the text.

mod archive;
pub(crate) mod audit;
mod base64_text;
mod chart;
mod edit;
mod error;
#[cfg(test)]
mod growth_tests;
mod gzip;
mod index;
mod inputs;
mod notation;
mod occurrence;
mod options;
mod pax;
mod reference_parts;
#[cfg(test)]
mod registry_tests;
mod role;
mod scan;
mod scan_result;
mod scanner;
mod settings;
mod shapes;
mod source_map;
mod split_reference;
mod suffixed;
mod syntax;
#[cfg(test)]
mod tests;
mod text;
mod walk;
mod yaml;

pub(crate) use archive::{Member, rewrite_chart};
pub(crate) use chart::{Chart, ChartError, coalesce, values_of};
pub(crate) use error::{ArchiveError, RewriteError};
pub use index::ReferenceIndex;
pub use inputs::{Content, Input, inputs, read};
pub(crate) use inputs::{write_in_place, write_to};
pub use occurrence::Meaning;
pub(crate) use occurrence::Occurrence;
pub use options::Options;
pub(crate) use role::Role;
pub use scan::{Rewritten, rewrite, scan};
pub use scan_result::ReadAs;
pub use syntax::Syntax;
pub(crate) use text::secrets as secret_values;
