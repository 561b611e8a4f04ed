//! Why no configuration can be made.

use crate::document::Diagnostic;
use crate::rewrite::ChartError;
use std::path::PathBuf;

/// Why no configuration can be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RenderError {
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
    /// The user's values cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The user's values have more bytes than are read.
    #[error("{} is too large for values", .0.display())]
    Large(PathBuf),
}
