//! Errors from reading charts.

use landfall_model::document::{Diagnostic, UnpackError};
use std::io;
use std::path::PathBuf;

/// An error from reading a chart.
#[derive(Debug, thiserror::Error)]
pub enum ChartError {
    /// A file or folder cannot be read.
    #[error("cannot read {path}: {source}")]
    Open {
        /// The path of the file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// An archive cannot be unpacked.
    #[error("{path}: {source}")]
    Archive {
        /// The path of the archive; for an archive inside another archive, both paths.
        path: String,
        /// The error from unpacking it.
        source: UnpackError,
    },
    /// A folder or archive has no Chart.yaml.
    #[error("{0} is not a chart: it has no Chart.yaml; name a chart's folder or its .tgz")]
    NoChart(String),
    /// Charts are nested too deeply.
    #[error("{path}: charts are nested deeper than {depth}")]
    Deep {
        /// The chart, or its folder `charts`, at which the limit was exceeded.
        path: String,
        /// The limit, as a number of levels.
        depth: usize,
    },
    /// A chart has too many subcharts.
    #[error("{path}: a chart with more than {limit} subcharts, counted with their aliases")]
    Many {
        /// The subchart at which the limit was exceeded.
        path: String,
        /// The limit, as a number of subcharts at all depths.
        limit: usize,
    },
    /// A file or folder of a chart is too large.
    #[error("{path} has more than {limit} bytes or files, too many for a chart")]
    Large {
        /// The path of the file or folder.
        path: PathBuf,
        /// The limit, of bytes or of files.
        limit: u64,
    },
    /// A document of a chart is not YAML, or has the wrong structure.
    #[error(transparent)]
    Document(#[from] Box<Diagnostic>),
}
