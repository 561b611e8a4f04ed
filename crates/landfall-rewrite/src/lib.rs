//! Finds references to locked items in texts, and rewrites them.
//!
//! Only references that the lock contains, and URLs of mirrored hosts, are changed; every byte
//! outside them is kept. The [`ReferenceIndex`] resolves a written reference. [`scan`] finds the
//! references of a text, [`rewrite`] changes those that are known, and [`audit`] also finds those
//! that the lock lacks. All of them use one walk over a document: `walk` reads YAML and proves the
//! result of a rewrite by reading it again, `text` reads all other texts word by word. Each rule
//! about references is a row of the table in `rules`. A text within a value is scanned like any
//! other; `source_map` maps edits of values to bytes of the text.
//!
//! This crate imports `landfall-model`, `landfall-content`, `landfall-packages` and
//! `landfall-item`. Start reading at `rules/mod.rs` and `walk/walker.rs`.

#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        reason = "tests read their own YAML without limits"
    )
)]

mod archive;
pub mod audit;
mod base64_text;
mod chart;
#[cfg(test)]
mod document_tests;
mod edit;
mod error;
mod git_source;
mod gitops_source;
#[cfg(test)]
mod growth_tests;
mod gzip;
mod index;
mod inputs;
mod inventory;
mod notation;
mod occurrence;
#[cfg(test)]
mod option_tests;
mod options;
mod pax;
mod reference_parts;
#[cfg(test)]
mod registry_tests;
mod role;
mod rules;
mod scan;
mod scan_result;
#[cfg(test)]
mod secret_tests;
mod settings;
mod source_map;
mod split_reference;
#[cfg(test)]
mod split_tests;
mod suffixed;
mod syntax;
#[cfg(test)]
mod tests;
mod text;
mod walk;
mod yaml;

pub use archive::{RewrittenText, rewrite_chart};
pub use chart::{ChartError, HelmChart, coalesce, values_of, values_text};
pub use error::{ChartArchiveError, RewriteError};
pub use index::ReferenceIndex;
pub use inputs::{InputContent, InputFile, inputs, read};
pub use inputs::{write_in_place, write_to};
pub use occurrence::Occurrence;
pub use occurrence::ReferenceMeaning;
pub use options::RewriteOptions;
pub use role::ReferenceRole;
pub use scan::{RewriteResult, rewrite, scan};
pub use scan_result::ReadAs;
pub use syntax::TextSyntax;
pub use text::secrets as secret_values;
