//! POINT TO IT. Where each locked item goes, and how references to it are rewritten.
//!
//! Only references that the lock knows are changed, and every byte outside them stays. [`Known`]
//! decides what a written reference means. [`scan`] finds the references of a text, and [`rewrite`]
//! changes those that it knows: `walk` reads YAML and proves the result by reading it again, `text`
//! takes words. Each shape of more than a word has a file in `shapes`. A text within a value is
//! scanned as any other; `spelling` takes what is found there back to the bytes around it.

mod archive;
pub mod audit;
mod chart;
mod defaults;
mod findings;
mod inputs;
mod known;
mod scan;
mod shapes;
mod spelling;
#[cfg(test)]
mod tests;
mod text;
mod url;
mod walk;
mod yaml;

pub use archive::{ArchiveError, Archived, Member, rewrite_chart};
pub use chart::{Chart, ChartError, coalesce, values_of};
pub use defaults::complete;
pub use findings::{Finding, Findings, Meaning, ReadAs, Splice};
pub use inputs::{Content, Input, inputs, read, write};
pub(crate) use known::other_hosts;
pub use known::{Known, Position};
pub use scan::{Kind, scan};

use crate::model::{Destination, Limits};
use std::path::PathBuf;

/// What is changed beside the names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// References in comments, too.
    pub comments: bool,
    /// The locked digest is added to references that have a tag alone.
    pub pin: bool,
}

/// A text after rewriting, and what was found in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewritten {
    /// The new text; the old one where nothing was changed.
    pub text: String,
    /// What the lock has to do with, with places in the old text.
    pub findings: Findings,
}

/// Why a file or a text cannot be rewritten.
#[derive(Debug, thiserror::Error)]
pub enum RewriteError {
    /// A path cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The path.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// A result cannot be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The path.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// Two inputs would be written to one place.
    #[error("{first} and {second} would both be written to {place}; rewrite them into folders of their own")]
    Clash {
        /// One input.
        first: PathBuf,
        /// The other.
        second: PathBuf,
        /// The place.
        place: PathBuf,
    },
    /// An input would be replaced by its result.
    #[error("{path} would be overwritten by its result; name another folder, or use --in-place")]
    Overwrite {
        /// The input.
        path: PathBuf,
    },
    /// An archive is no chart that can be read.
    #[error("{0}; left unchanged")]
    Archive(#[from] ArchiveError),
    /// The bytes are no text.
    #[error("not UTF-8 text; left unchanged")]
    Encoding,
}

/// Rewrites every reference in `text` that is known. Whatever cannot be changed without changing more is left.
pub fn rewrite(text: &str, kind: Kind, known: &Known, options: Options) -> Rewritten {
    let engine = scan::Engine { known, options, all: false, limits: Limits::default() };
    let findings = engine.scan(text, kind, 0).placed(text);
    Rewritten { text: findings.apply(text), findings }
}

/// The reference `text` as it is to be written.
fn written(text: &str, meant: &known::Meant) -> String {
    let pin = pin(text);
    let name =
        meant.to.as_ref().map_or_else(|| text[..text.len() - pin.len()].to_owned(), Destination::to_string);
    match (&meant.digest, pin.find('@')) {
        (None, _) => format!("{name}{pin}"),
        (Some(digest), at) => format!("{name}{}@{digest}", &pin[..at.unwrap_or(pin.len())]),
    }
}

/// What stands behind the repository in a reference: `:tag`, `@digest`, both or nothing.
fn pin(text: &str) -> &str {
    let last = text.rfind('/').map_or(0, |slash| slash + 1);
    let at = text[last..].find([':', '@']).map_or(text.len(), |at| last + at);
    &text[at..]
}
