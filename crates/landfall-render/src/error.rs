//! The error of the crate.

use crate::render::MissingDestinations;
use landfall_content::registry::{CredentialError, SetupError};
use landfall_model::document::{Diagnostic, MergeError};
use landfall_model::report::one_line;
use landfall_rewrite::ChartError;
use std::path::PathBuf;
use std::sync::Arc;

/// Why configuration cannot be rendered or written.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// Two charts need different values under one key.
    #[error(
        "{first} and {second} both have {path}, with different images; render an overlay for each \
         of them separately"
    )]
    Clash {
        /// The chart that was rendered first.
        first: String,
        /// The chart with another image under the same key.
        second: String,
        /// The dotted path of the key.
        path: String,
    },
    /// The values cannot be written as YAML.
    #[error("the values of {chart}: {source}")]
    Values {
        /// The name of the chart.
        chart: String,
        /// The error of the serializer.
        source: serde_yaml::Error,
    },
    /// The user's values or the rewritten values are not valid YAML.
    #[error(transparent)]
    Document(#[from] Box<Diagnostic>),
    /// A chart cannot be read.
    #[error(transparent)]
    Chart(#[from] ChartError),
    /// An input file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The path of the input file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A file cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The path of the rendered file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The path of a file leads out of the output folder.
    #[error("cannot write '{}': the path leads out of the output folder", one_line(.0))]
    Outside(String),
    /// The rendered documents cannot be merged into the file of `--into`.
    #[error("{}: {source}", path.display())]
    Merge {
        /// The path of the file that `--into` names.
        path: PathBuf,
        /// The error of the merge.
        source: MergeError,
    },
    /// The file of `--into` has no document to merge into.
    #[error("{} has no document to merge into; rendered: {kinds}", path.display())]
    NoCounterpart {
        /// The path of the file that `--into` names.
        path: PathBuf,
        /// The kinds and names of the rendered documents.
        kinds: String,
    },
    /// A values file is larger than the limit.
    #[error("{} is too large for a values file", .0.display())]
    Large(PathBuf),
    /// A certificate file contains no certificate.
    #[error("{} has no certificate in PEM form", .0.display())]
    NoCertificate(PathBuf),
    /// The value of `--set` has no `=`.
    #[error("--set {0}: write --set KEY=VALUE")]
    NoPair(String),
    /// The platform does not have this setting.
    #[error("--set {key}: there is no such setting{near} ({all})")]
    UnknownSetting {
        /// The key that the user wrote.
        key: String,
        /// A suggestion of a similar key, or empty.
        near: String,
        /// The settings of the platform.
        all: String,
    },
    /// The value of a setting is not allowed.
    #[error("{key} cannot be '{value}': {why}")]
    Value {
        /// The key of the setting.
        key: String,
        /// The value that the user wrote.
        value: String,
        /// The rule that the value violates.
        why: String,
    },
    /// A required setting is missing.
    #[error("--set {key}=… is missing: {help}")]
    NoSetting {
        /// The key of the setting.
        key: &'static str,
        /// The help of the setting.
        help: &'static str,
    },
    /// A part of the site is wrong or missing; the text says what to do.
    #[error("{0}")]
    Site(String),
    /// The configuration would be wrong; the text says why, and what to do.
    #[error("{0}")]
    Refused(String),
    /// Credentials of the site cannot be read.
    #[error(transparent)]
    RegistryAccount(#[from] Arc<CredentialError>),
    /// A setting of the connection cannot be used.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// Locked images lack destinations from which the platform pulls.
    #[error("{0}")]
    MissingDestinations(MissingDestinations),
}
