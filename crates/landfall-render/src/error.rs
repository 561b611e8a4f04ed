//! Why no configuration can be made.

use super::missing_destinations::MissingDestinations;
use landfall_content::registry::{CredentialError, SetupError};
use landfall_model::document::{Diagnostic, MergeError};
use landfall_rewrite::ChartError;
use std::path::PathBuf;
use std::sync::Arc;

/// Why no configuration can be made.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// Two charts need different values under one key.
    #[error(
        "{first} and {second} both have {path}, with different images; make an overlay for each of them by itself"
    )]
    Clash {
        /// One chart.
        first: String,
        /// The other.
        second: String,
        /// The key.
        path: String,
    },
    /// The values cannot be written as YAML.
    #[error("the values of {chart}: {source}")]
    Values {
        /// The chart.
        chart: String,
        /// Why.
        source: serde_yaml::Error,
    },
    /// Values do not read as such: the user's, or the rewritten ones.
    #[error(transparent)]
    Document(#[from] Box<Diagnostic>),
    /// A chart cannot be read.
    #[error(transparent)]
    Chart(#[from] ChartError),
    /// A file of the user's cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A file cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A file of the user's that `--into` names cannot be merged into.
    #[error("{}: {source}", path.display())]
    Merge {
        /// The file.
        path: PathBuf,
        /// Why.
        source: MergeError,
    },
    /// It has no document for what the platform gives.
    #[error("{} has none of what would be merged into it: {kinds}", path.display())]
    NoPlace {
        /// The file.
        path: PathBuf,
        /// What would be.
        kinds: String,
    },
    /// The user's values have more bytes than are read.
    #[error("{} is too large for values", .0.display())]
    Large(PathBuf),
    /// A file of certificates has none.
    #[error("{} has no certificate in PEM form", .0.display())]
    NoCertificate(PathBuf),
    /// What `--set` has is no pair.
    #[error("--set {0}: write --set KEY=VALUE")]
    NoPair(String),
    /// A setting that the platform does not know.
    #[error("--set {key}: there is no such setting{near} ({all})")]
    UnknownSetting {
        /// Its key.
        key: String,
        /// A known one that is like it.
        near: String,
        /// All that are known.
        all: String,
    },
    /// A setting has a value that it cannot have.
    #[error("{key} cannot be '{value}': {why}")]
    Value {
        /// Its key.
        key: String,
        /// The value.
        value: String,
        /// Why.
        why: String,
    },
    /// A setting is missing.
    #[error("--set {key}=… is missing: {help}")]
    NoSetting {
        /// Its key.
        key: &'static str,
        /// Its help.
        help: &'static str,
    },
    /// What the site says, or does not say, is of no use to the platform: why, and what to do.
    #[error("{0}")]
    Site(String),
    /// What would come out of it is wrong: why, and what to do.
    #[error("{0}")]
    Refused(String),
    /// An account of the site cannot be read.
    #[error(transparent)]
    RegistryAccount(#[from] Arc<CredentialError>),
    /// A setting of the connection cannot be used.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// Images have not all the names by which the platform asks for them.
    #[error("{0}")]
    MissingDestinations(MissingDestinations),
}
