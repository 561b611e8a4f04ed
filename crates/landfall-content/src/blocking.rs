//! Runs file operations of a sink on threads that may block.

use super::{TransferError, WriteError};
use landfall_http::ErrorKind;
use landfall_model::report::TransferSide;

/// Runs `work` on a blocking thread. A panic there becomes an error of the destination.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, WriteError> + Send + 'static,
) -> Result<T, TransferError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result.map_err(TransferError::from),
        // a panic must not end the whole run: other blobs are still being transferred
        Err(error) => Err(TransferError::new(
            TransferSide::Destination,
            ErrorKind::Local,
            error.to_string(),
        )),
    }
}
