//! A blob that the content of a push does not include, and the look-up of such blobs at the
//! registry.

use landfall_content::registry::RegistrySession;
use landfall_http::{ErrorKind, HttpError};
use landfall_model::Descriptor;

/// An omitted blob that a delivery needs.
pub(super) struct OmittedBlob<'a> {
    pub(super) blob: Descriptor,
    /// The positions of the pending deliveries that need the blob.
    pub(super) stops: Vec<usize>,
    /// Repositories that may have the blob.
    pub(super) candidates: Vec<&'a str>,
}

/// Finds the first of `candidates` that has the blob with the right size. A receipt or a tag may be
/// out of date, so only a look-up counts.
///
/// If the registry refuses one repository, the other candidates are tried. The first error is
/// returned if none of them has the blob. An error that concerns the whole registry is returned at
/// once.
pub(super) async fn find_repository(
    session: &RegistrySession,
    blob: &Descriptor,
    candidates: &[&str],
) -> Result<Option<String>, HttpError> {
    let mut first_error = None;
    for repository in candidates {
        match session.blob_size(repository, &blob.digest).await {
            Ok(size) if size == Some(blob.size) => return Ok(Some((*repository).to_owned())),
            Ok(_) => {}
            Err(error) if is_about_one_repository(error.kind) => {
                first_error = first_error.or(Some(error));
            }
            Err(error) => return Err(error),
        }
    }
    first_error.map_or(Ok(None), Err)
}

/// Whether the error may not apply to other repositories of the same registry.
fn is_about_one_repository(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::NotFound | ErrorKind::Denied | ErrorKind::Status(_) | ErrorKind::Invalid
    )
}
