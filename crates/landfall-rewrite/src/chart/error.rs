//! Why a chart cannot be read.

use landfall_model::document::{ArchiveError, Diagnostic};
use std::io;
use std::path::PathBuf;

/// Why a chart cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ChartError {
    /// A file or folder cannot be read.
    #[error("cannot read {path}: {source}")]
    Open {
        /// The path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// An archive cannot be read.
    #[error("{path}: {source}")]
    Archive {
        /// The archive, and inside of which one it is.
        path: String,
        /// What is wrong with it.
        source: ArchiveError,
    },
    /// It has no Chart.yaml.
    #[error("{0} is no chart: it has no Chart.yaml; name a chart's folder or its .tgz")]
    NoChart(String),
    /// Charts in charts in charts.
    #[error("{path}: charts are nested deeper than {depth}")]
    Deep {
        /// The innermost that was looked at.
        path: String,
        /// The bound.
        depth: usize,
    },
    /// Too many charts in it.
    #[error("{path}: with its aliases it has more than {most} charts in it")]
    Many {
        /// The chart that was one too many.
        path: String,
        /// The limit.
        most: usize,
    },
    /// A file of it is larger than is read.
    #[error("{path} has more than {most} bytes or files in it, which no chart has")]
    Large {
        /// The path.
        path: PathBuf,
        /// The bound.
        most: u64,
    },
    /// A document of it is not YAML, or not what it should be.
    #[error(transparent)]
    Document(#[from] Box<Diagnostic>),
}
