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
mod chart;
#[cfg(test)]
mod document_tests;
mod git_source;
#[cfg(test)]
mod growth_tests;
mod index;
mod inputs;
mod inventory;
mod occurrence;
#[cfg(test)]
mod option_tests;
#[cfg(test)]
mod registry_tests;
mod rules;
mod scan;
mod scan_result;
#[cfg(test)]
mod secret_tests;
mod source_map;
mod split_reference;
#[cfg(test)]
mod split_tests;
#[cfg(test)]
mod tests;
mod text;
mod walk;
mod yaml;

pub use crate::archive::{RewrittenText, rewrite_chart};
pub use crate::chart::{ChartError, HelmChart, coalesce, values_of, values_text};
pub use crate::index::ReferenceIndex;

pub use crate::inputs::{
    InputContent, InputFile, RewriteError, decode, inputs, read, write_in_place, write_to,
};
pub use crate::occurrence::{Occurrence, ReferenceMeaning, ReferenceRole};
pub use crate::scan::{RewriteResult, rewrite, scan};
pub use crate::scan_result::{ReadAs, RewriteOptions, TextSyntax};
pub use crate::text::secrets as secret_values;
