//! Errors from rewriting files and archives.

use landfall_model::Failure;
use landfall_model::document::Diagnostic;

/// An error from rewriting a file.
#[derive(Debug, thiserror::Error)]
pub enum RewriteError {
    /// A failure whose message names the path.
    #[error(transparent)]
    Path(Failure),
    /// A failure of the file that is rewritten. The message does not name its path.
    #[error(transparent)]
    File(Failure),
    /// The archive of a chart cannot be rewritten.
    #[error("{0}; left unchanged")]
    Archive(#[from] ChartError),
}

impl RewriteError {
    /// The error for bytes that are not UTF-8, or contain a null byte.
    pub fn encoding() -> RewriteError {
        RewriteError::File(Failure::usage("not UTF-8 text; left unchanged"))
    }
}

/// Why a chart in a folder or archive cannot be read or rewritten.
#[derive(Debug, thiserror::Error)]
pub enum ChartError {
    /// It has no Chart.yaml.
    #[error(transparent)]
    NoChart(Failure),
    /// Any other failure.
    #[error(transparent)]
    Failed(#[from] Failure),
}

/// A document of the chart is not YAML, or has the wrong structure.
impl From<Box<Diagnostic>> for ChartError {
    fn from(diagnostic: Box<Diagnostic>) -> ChartError {
        ChartError::Failed(diagnostic.into())
    }
}

impl From<ChartError> for Failure {
    fn from(error: ChartError) -> Failure {
        Failure::usage(error.to_string())
    }
}

impl From<RewriteError> for Failure {
    fn from(error: RewriteError) -> Failure {
        match error {
            RewriteError::Path(failure) | RewriteError::File(failure) => failure,
            RewriteError::Archive(_) => Failure::usage(error.to_string()),
        }
    }
}
