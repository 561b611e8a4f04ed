//! POINT TO IT. Where each locked item goes, and how references to it are rewritten.
//!
//! Only references that the lock knows are changed, and every byte outside them stays. [`Known`]
//! decides what a written reference means; [`rewrite`] finds the references of a YAML text, replaces
//! their bytes and proves the result by reading it again. Each shape of reference has a file of its
//! own that hands [`Edit`]s to the one place that applies them.

mod apply;
pub mod audit;
mod chart;
mod defaults;
mod find;
mod inputs;
mod known;
mod mapping;
mod split;
#[cfg(test)]
mod tests;
mod yaml;

pub use chart::{Chart, ChartError, coalesce, values_of};
pub use defaults::complete;
pub use inputs::{Input, inputs, read, write};
pub use known::Known;
pub(crate) use known::other_hosts;
pub(crate) use mapping::host_component;
pub(crate) use mapping::is_path;
pub use mapping::{Collision, Destination, Mapping, Target, TargetError, file_repository, file_tag};

use serde::Serialize;
use std::ops::Range;
use std::path::PathBuf;

/// A text after rewriting, and what was found in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewritten {
    /// The new text; the old one where nothing was changed.
    pub text: String,
    /// What was changed, in the order of the text.
    pub changes: Vec<Edit>,
    /// What might have been meant to be changed, but was not.
    pub left: Vec<Left>,
    /// How many references stood at their destination already.
    pub settled: usize,
}

/// A change of one scalar.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Edit {
    /// Line in the old text, from 1.
    pub line: usize,
    /// Column in the old text, in characters from 1.
    pub column: usize,
    /// The scalar's old value.
    pub from: String,
    /// Its new value.
    pub to: String,
    /// The locked item that is meant: its name, or its repository where the reference has no tag.
    pub item: String,
    /// The bytes of the old text that are replaced.
    #[serde(skip)]
    pub span: Range<usize>,
    /// What they are replaced by: `to`, quoted where it must be.
    #[serde(skip)]
    pub bytes: String,
    /// Where the scalar begins, its quotes included.
    #[serde(skip)]
    scalar: usize,
}

/// A reference that was not changed although the lock has to do with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Left {
    /// Line, from 1.
    pub line: usize,
    /// Column, in characters from 1.
    pub column: usize,
    /// The reference as written; the parts of a split one put together.
    pub reference: String,
    /// Why it was left.
    pub why: String,
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
    /// The bytes are no text.
    #[error("not UTF-8 text; left unchanged")]
    Encoding,
    /// The text is no YAML.
    #[error("{line}:{column}: not YAML: {why}; left unchanged (templates are not read yet)")]
    Syntax {
        /// Line, from 1.
        line: usize,
        /// Column, in characters from 1.
        column: usize,
        /// The parser's words.
        why: String,
    },
    /// The rewritten text does not read as the old one with the changes made.
    #[error("internal error: the rewritten text reads differently from what was meant; left unchanged")]
    Unsound,
}

/// Rewrites every reference in the YAML text `source` that is known.
///
/// # Errors
/// When the text is no YAML; when the result does not read as it should.
pub fn rewrite(source: &str, known: &Known) -> Result<Rewritten, RewriteError> {
    let documents = yaml::parse(source)?;
    let found = find::find(source, &documents, known);
    let text = apply::apply(source, &documents, &found.edits)?;
    Ok(Rewritten { text, changes: found.edits, left: found.left, settled: found.settled })
}
