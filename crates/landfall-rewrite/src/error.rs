//! Errors from rewriting files and archives.

use landfall_model::Failure;

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
    Archive(#[from] ChartArchiveError),
}

impl RewriteError {
    /// The error for bytes that are not UTF-8, or contain a null byte.
    pub fn encoding() -> RewriteError {
        RewriteError::File(Failure::usage("not UTF-8 text; left unchanged"))
    }
}

/// An error from rewriting the archive of a chart.
#[derive(Debug, thiserror::Error)]
pub enum ChartArchiveError {
    /// The archive is not a chart.
    #[error("not a chart: it has no Chart.yaml")]
    NoChart,
    /// Any other failure.
    #[error(transparent)]
    Failed(#[from] Failure),
}

impl From<RewriteError> for Failure {
    fn from(error: RewriteError) -> Failure {
        match error {
            RewriteError::Path(failure) | RewriteError::File(failure) => failure,
            RewriteError::Archive(_) => Failure::usage(error.to_string()),
        }
    }
}
