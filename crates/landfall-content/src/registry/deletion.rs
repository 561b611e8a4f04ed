//! Deletion of manifests (distribution-spec, "Deleting Manifests").

use super::session::RegistrySession;
use landfall_http::{ErrorKind, HttpError, HttpRequest, RequestPurpose};
use landfall_model::Digest;
use reqwest::{Method, StatusCode};

impl RegistrySession {
    /// Deletes a manifest with all of its tags. Returns whether it existed.
    ///
    /// # Errors
    /// If the registry refuses; [`is_deletion_disabled`] says whether it refuses all deletions.
    pub async fn delete_manifest(
        &self,
        repository: &str,
        digest: &Digest,
    ) -> Result<bool, HttpError> {
        let url = self.url(repository, &format!("manifests/{digest}"))?;
        let request = HttpRequest::new(Method::DELETE, url, RequestPurpose::Registry);
        let scope = self.delete_scope(repository);
        let response = self.send(request, &scope).await?;
        let response = self
            .expect(
                response,
                &scope,
                || format!("deletion of {}/{repository}@{digest}", self.host()),
                |status: StatusCode| status.is_success() || status == StatusCode::NOT_FOUND,
            )
            .await?;
        let was_there = response.status.is_success();
        response.discard().await;
        Ok(was_there)
    }
}

/// Whether the error means that the registry does not delete any manifest. docker-registry deletes
/// manifests only if its configuration enables deletion.
pub fn is_deletion_disabled(error: &HttpError) -> bool {
    let unsupported = error.codes.iter().any(|error| error.code == "UNSUPPORTED");
    matches!(error.kind, ErrorKind::Status(405 | 501)) || unsupported
}
