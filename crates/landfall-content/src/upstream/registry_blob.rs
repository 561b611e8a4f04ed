//! Blobs of registries as parts.

use crate::OpenedPart;
use crate::registry::RegistrySession;
use landfall_http::HttpError;
use landfall_model::Descriptor;
use std::sync::Arc;

/// Opens a blob of a registry at `offset`. If the response starts in the middle of the blob and the
/// blob turns out wrong, no more ranges are requested from the registry.
pub(super) async fn open_registry_blob(
    session: &Arc<RegistrySession>,
    repository: &str,
    blob: &Descriptor,
    offset: u64,
) -> Result<OpenedPart, HttpError> {
    let (start, stream) = session.blob(repository, blob, offset).await?;
    let session = session.clone();
    Ok(OpenedPart::ranged(start, stream, move || {
        session.distrust_ranges();
    }))
}
