//! Finds references to locked items in texts, and rewrites them.
//!
//! Only references that the lock knows are changed; every byte outside them stays. The
//! [`ReferenceIndex`] says what a written reference means. [`scan`] finds the references of a text,
//! and [`rewrite`] changes those that are known: `walk` reads YAML and proves the result by reading
//! it again, `text` reads words. Each shape of reference is a row of the table in `shapes`. A text
//! within a value is scanned like any other; `source_map` maps edits of values to bytes of the
//! text.
//!
//! It imports `landfall-model`, `landfall-content` and `landfall-item`. Begin with `scanner.rs` and
//! `shapes/mod.rs`.

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "YAML of a test is read as it is")
)]

mod archive;
pub mod audit;
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

pub use archive::{Member, rewrite_chart};
pub use chart::{Chart, ChartError, coalesce, values_of};
pub use error::{ArchiveError, RewriteError};
pub use index::ReferenceIndex;
pub use inputs::{Content, Input, inputs, read};
pub use inputs::{write_in_place, write_to};
pub use occurrence::Meaning;
pub use occurrence::Occurrence;
pub use options::Options;
pub use role::Role;
pub use scan::{Rewritten, rewrite, scan};
pub use scan_result::ReadAs;
pub use syntax::Syntax;
pub use text::secrets as secret_values;
