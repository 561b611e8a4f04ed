//! Classifies errors of registries by the codes and messages of their error objects, because the
//! status alone does not say what is wrong.

use super::challenge::TokenScope;
use super::session::RegistrySession;
use super::upload::UploadSession;
use bytes::Bytes;
use landfall_http::{
    DistributionError, ErrorKind, HttpError, HttpRequest, RequestBody, RequestPurpose,
};
use landfall_model::{Digest, media_type};
use reqwest::header::{CONTENT_RANGE, CONTENT_TYPE};
use reqwest::{Method, StatusCode};

/// What the refusal of an index says about its children that the registry lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SparseRefusal {
    /// The registry names one of the missing children as the cause.
    Stated,
    /// The missing children may be the cause. Registries use the same codes for other causes, so
    /// only a probe shows it: the same index is accepted without the missing children.
    Possible,
    /// The refusal has another cause, such as the account, the size or the tag.
    Unrelated,
}

impl SparseRefusal {
    /// Classifies the error of a request that puts an index. `absent` are the children that the
    /// registry lacks.
    pub fn of(error: &HttpError, absent: &[Digest]) -> SparseRefusal {
        let is_about_content = match error.kind {
            ErrorKind::NotFound => true,
            ErrorKind::Status(413 | 429) => false,
            ErrorKind::Status(status) => (400..500).contains(&status) && !error.is_transient(),
            _ => false,
        };
        if !is_about_content
            || is_quota_error(error.kind, &error.codes)
            || is_immutable_tag_error(error.kind, &error.codes)
        {
            return SparseRefusal::Unrelated;
        }
        let names_absent_child = |error: &DistributionError| {
            let text = format!("{} {}", error.message, error.detail);
            absent.iter().any(|child| text.contains(&child.hex()))
        };
        if error.codes.iter().any(names_absent_child) {
            SparseRefusal::Stated
        } else {
            SparseRefusal::Possible
        }
    }
}

/// Whether a manifest may have been refused only because another client pushes the same manifest at
/// the same time. The registry then reports missing blobs, an invalid digest as docker-registry
/// does (distribution-spec, "Error Codes"), or a conflict as Oracle's registry does.
pub fn may_be_push_race(error: &HttpError) -> bool {
    error.kind == ErrorKind::Status(409)
        || ["MANIFEST_BLOB_UNKNOWN", "BLOB_UNKNOWN", "DIGEST_INVALID"]
            .iter()
            .any(|code| error.has_code(code))
}

/// Whether the quota of the project or the disk of the registry is exhausted.
pub fn is_quota_error(kind: ErrorKind, codes: &[DistributionError]) -> bool {
    let refused = match kind {
        // 507 Insufficient Storage (RFC 4918, section 11.5)
        ErrorKind::Status(507) => return true,
        // a quota of requests, as Google's registry calls its rate limit
        ErrorKind::Status(429) => return false,
        ErrorKind::Status(status) => (400..500).contains(&status),
        kind => kind == ErrorKind::Denied,
    };
    refused && mention(codes, &["quota"])
}

/// Whether a push was refused because its tag is immutable. The specification has no code for this
/// case, so codes, messages and details are searched for the words of registries:
///
/// - ECR: 400 `TAG_INVALID`, "… already exists … and cannot be overwritten because the repository
///   is immutable" (<https://github.com/moby/buildkit/issues/3776>)
/// - Harbor: 412 `PRECONDITION`, "Failed to process request due to '…' configured as immutable"
///   (<https://github.com/goharbor/harbor/pull/9427>)
/// - Nexus: 400 `BLOB_UPLOAD_INVALID` with the detail "Repository does not allow updating assets"
///   (<https://github.com/GoogleContainerTools/jib/issues/3057>)
/// - Artifactory: 403, "Not enough permissions to delete/overwrite artifact"
///   (<https://github.com/odpi/egeria/issues/2879>)
/// - ACR: 405 `REGISTRY_DISALLOWED_OPERATION` for a locked tag
///   (<https://github.com/Azure/acr-cli/issues/70>)
pub fn is_immutable_tag_error(kind: ErrorKind, codes: &[DistributionError]) -> bool {
    let refused = matches!(
        kind,
        ErrorKind::Denied | ErrorKind::Status(400 | 405 | 409 | 412)
    );
    let words = [
        "immutable",
        "already exist",
        "tag_invalid",
        "overwrit",
        "does not allow updating",
        "registry_disallowed_operation",
    ];
    let detailed = |error: &DistributionError| {
        let detail = error.detail.to_string().to_ascii_lowercase();
        words.iter().any(|word| detail.contains(word))
    };
    refused && (mention(codes, &words) || codes.iter().any(detailed))
}

/// Returns what usually causes a refusal with these words, and what to do. `said` is the text of
/// the server.
pub(super) fn known_cause(
    status: u16,
    errors: &[DistributionError],
    said: &str,
) -> Option<&'static str> {
    if !(400..500).contains(&status) && status != 507 {
        return None;
    }
    let said = said.to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| said.contains(word));
    let kind = ErrorKind::Status(status);
    if is_quota_error(kind, errors) || status == 507 {
        return Some("raise the quota of the project, or delete content there, and push again");
    }
    if is_immutable_tag_error(kind, errors) {
        return Some(
            "the tag is immutable there: allow changes (ECR and ACR: the repository's settings; \
             Harbor, GitLab and Quay: the project's rules; Nexus: \"allow redeploy\"; Artifactory: \
             the right to overwrite), or push to another path",
        );
    }
    // Gitea: https://github.com/go-gitea/gitea/issues/31531 and
    // https://github.com/go-gitea/gitea/issues/33732
    if says(&["reqpackageaccess"]) {
        return Some(
            "the first component of the repository is a user or organization of Gitea: the account \
             must belong to it with the right to write packages, and a token needs the scope \
             `write:package`",
        );
    }
    // from here, only reasons that registries give for a manifest or a repository
    if says(&[
        "docker2s2",
        "docker manifests are not",
        "application/vnd.docker.distribution",
    ]) && says(&["unsupported", "invalid", "not allowed", "compat"])
    {
        return Some(
            "the registry refuses manifests of Docker: allow them (zot: `\"http\": {\"compat\": \
             [\"docker2s2\"]}`)",
        );
    }
    if says(&[
        "project not found",
        "project_not_found",
        "repository does not exist",
    ]) || errors.iter().any(|error| error.code == "NAME_UNKNOWN")
    {
        return Some("create the project or repository at the registry first");
    }
    if says(&[
        "empty layer",
        "empty blob",
        "blob is empty",
        "zero-length",
        "zero length",
    ]) {
        return Some("the registry refuses empty blobs, which some images have");
    }
    if says(&["media type"]) && says(&["tag"]) && says(&["change", "different", "mismatch"]) {
        return Some("the tag has another media type there: delete the tag first");
    }
    None
}

/// Whether a code or message contains one of the words.
fn mention(codes: &[DistributionError], words: &[&str]) -> bool {
    codes.iter().any(|error| {
        let text = format!("{} {}", error.code, error.message).to_ascii_lowercase();
        words.iter().any(|word| text.contains(word))
    })
}

// Checks what a registry allows: a sign-in, an upload of a given size, an index with missing
// children. Uploaded content is removed again, if the registry allows that.

/// Whether a registry accepts an index with missing children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SparseIndexSupport {
    /// The registry refused the index.
    Refused,
    /// The index was accepted, and deleted again.
    Accepted,
    /// The index was accepted, but could not be deleted, so it remains in the registry without a
    /// tag. Contains the size of the index in bytes.
    AcceptedAndKept(u64),
}

impl RegistrySession {
    /// Signs in with the account for `repository`, which may be empty, in a single attempt.
    ///
    /// # Errors
    /// If the registry or its token service denies the account.
    pub async fn sign_in(&self, repository: &str) -> Result<(), HttpError> {
        let scope = TokenScope {
            tests_account: true,
            ..self.scope(repository, false)
        };
        let url = self
            .base
            .join("/v2/")
            .map_err(|error| HttpError::new(ErrorKind::Invalid, error.to_string()))?;
        let request = HttpRequest {
            // each attempt with a wrong password counts towards a lock of the account
            retried: false,
            ..HttpRequest::new(Method::GET, url, RequestPurpose::Registry)
        };
        let response = self.send(request, &scope).await?;
        self.expect(
            response,
            &scope,
            || format!("the sign-in to {}", self.host()),
            |status| status.is_success(),
        )
        .await?
        .discard()
        .await;
        Ok(())
    }

    /// Returns the two chunk sizes for uploads to a host that refuses larger bodies, in descending
    /// order.
    pub fn chunk_sizes(&self) -> [u64; 2] {
        self.transport.limits().chunks
    }

    /// Whether the registry accepts a request body of this size in an upload. The upload is
    /// cancelled afterwards.
    ///
    /// # Errors
    /// If the request fails for another reason than the size.
    pub async fn accepts_body(&self, repository: &str, bytes: usize) -> Result<bool, HttpError> {
        let Some(opened) = self.open_upload(repository, None, None).await? else {
            return Ok(true);
        };
        let scope = self.scope(repository, true);
        let mut request = HttpRequest::new(
            Method::PATCH,
            opened.target.clone(),
            RequestPurpose::Registry,
        )
        .header(CONTENT_TYPE, "application/octet-stream")
        .header(CONTENT_RANGE, &format!("0-{}", bytes.saturating_sub(1)));
        // one attempt: a body that is too large stays too large
        request.retried = false;
        request.body = RequestBody::Bytes(Bytes::from(vec![0; bytes]));
        let response = match self.send(request, &scope).await {
            Ok(response) => response,
            Err(error) => {
                self.cancel(repository, opened).await;
                return Err(error);
            }
        };
        let status = response.status;
        let location = response.location();
        // an upload is cancelled at the URL in its latest Location
        let continued = location
            .and_then(|location| self.upload_url(&opened.target, &location, repository).ok());
        let target = continued.unwrap_or_else(|| opened.target.clone());
        let passed = match status {
            StatusCode::PAYLOAD_TOO_LARGE => {
                response.discard().await;
                Ok(false)
            }
            _ => self
                .expect(
                    response,
                    &scope,
                    || format!("a body of {bytes} bytes to {}/{repository}", self.host()),
                    |status| status.is_success(),
                )
                .await
                .map(|_| true),
        };
        self.cancel(repository, UploadSession { target, ..opened })
            .await;
        passed
    }

    /// Whether the registry accepts an index whose child it lacks. It refuses such indexes if it
    /// names the child as the cause, or accepts the same index without the child. An accepted index
    /// is deleted again, if the registry allows that.
    ///
    /// # Errors
    /// If the request fails, for another reason than the missing child or for an unknown reason.
    pub async fn accepts_sparse_index(
        &self,
        repository: &str,
    ) -> Result<SparseIndexSupport, HttpError> {
        let child = Digest::sha256(b"landfall doctor: no registry has this manifest");
        let index = |children: serde_json::Value| {
            Bytes::from(
                serde_json::json!({
                    "schemaVersion": 2,
                    "mediaType": media_type::OCI_INDEX,
                    "manifests": children,
                })
                .to_string(),
            )
        };
        let sparse = index(serde_json::json!([{
            "mediaType": media_type::OCI_MANIFEST,
            "digest": child,
            "size": 2,
            "platform": {"os": "linux", "architecture": "amd64"},
        }]));
        let size = sparse.len() as u64;
        let put = async |bytes: Bytes| {
            let digest = Digest::sha256(&bytes);
            self.put_manifest(
                repository,
                &digest.to_string(),
                media_type::OCI_INDEX,
                bytes,
            )
            .await?;
            // whether it could be deleted again
            Ok::<_, HttpError>(self.delete_manifest(repository, &digest).await.is_ok())
        };
        let error = match put(sparse).await {
            Ok(true) => return Ok(SparseIndexSupport::Accepted),
            Ok(false) => return Ok(SparseIndexSupport::AcceptedAndKept(size)),
            Err(error) => error,
        };
        let is_about_the_child = match SparseRefusal::of(&error, &[child]) {
            SparseRefusal::Stated => true,
            SparseRefusal::Possible => put(index(serde_json::json!([]))).await.is_ok(),
            SparseRefusal::Unrelated => false,
        };
        if is_about_the_child {
            Ok(SparseIndexSupport::Refused)
        } else {
            Err(error)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(code: &str, message: &str) -> Vec<DistributionError> {
        vec![DistributionError {
            code: code.into(),
            message: message.into(),
            ..DistributionError::default()
        }]
    }

    #[test]
    fn quota_errors_are_recognized() {
        let quota = errors(
            "DENIED",
            "Quota exceeded when processing the request of adding 1 MiB of storage resource",
        );
        assert!(
            is_quota_error(ErrorKind::Denied, &quota)
                && is_quota_error(ErrorKind::Status(412), &quota)
        );
        assert!(is_quota_error(ErrorKind::Status(507), &[]));
        let requests = errors(
            "TOOMANYREQUESTS",
            "Quota exceeded for quota metric 'Requests per project per region'",
        );
        assert!(!is_quota_error(ErrorKind::Status(429), &requests));
        let denied = errors("DENIED", "may not write");
        assert!(
            !is_quota_error(ErrorKind::Denied, &denied)
                && !is_quota_error(ErrorKind::Network, &quota)
        );
    }

    #[test]
    fn only_a_named_child_states_that_children_are_missing() {
        let [absent, kept] = ["absent", "kept"].map(|text| Digest::sha256(text.as_bytes()));
        let of = |status: u16, code: &str, detail: &str| {
            let mut error = HttpError::new(ErrorKind::Status(status), "refused");
            error.codes = errors(code, "not valid");
            error.codes[0].detail = detail.into();
            SparseRefusal::of(&error, std::slice::from_ref(&absent))
        };
        for code in ["MANIFEST_BLOB_UNKNOWN", "MANIFEST_INVALID"] {
            assert_eq!(of(400, code, &absent.to_string()), SparseRefusal::Stated);
            assert_eq!(of(400, code, &kept.to_string()), SparseRefusal::Possible);
            assert_eq!(of(404, code, ""), SparseRefusal::Possible);
        }
        for status in [413, 429, 500, 503] {
            let refusal = of(status, "MANIFEST_INVALID", "");
            assert_eq!(refusal, SparseRefusal::Unrelated, "{status}");
        }
        let immutable = of(400, "TAG_INVALID", "it is immutable");
        assert_eq!(immutable, SparseRefusal::Unrelated);
    }

    #[test]
    fn immutable_tag_errors_are_recognized() {
        let ecr = errors(
            "TAG_INVALID",
            "The image tag '1' already exists and cannot be overwritten",
        );
        let harbor = errors(
            "PRECONDITION",
            "Failed to process request due to 'x:1' configured as immutable.",
        );
        let mut nexus = errors("BLOB_UPLOAD_INVALID", "blob upload invalid");
        nexus[0].detail = "Repository does not allow updating assets: hosted".into();
        let locked = errors(
            "REGISTRY_DISALLOWED_OPERATION",
            "The operation is disallowed on this registry, repository or image.",
        );
        let overwrite = errors(
            "DENIED",
            "Not enough permissions to delete/overwrite artifact",
        );
        assert!(
            is_immutable_tag_error(ErrorKind::Status(400), &nexus)
                && is_immutable_tag_error(ErrorKind::Status(405), &locked)
                && is_immutable_tag_error(ErrorKind::Denied, &overwrite)
        );
        assert!(
            is_immutable_tag_error(ErrorKind::Status(400), &ecr)
                && is_immutable_tag_error(ErrorKind::Status(412), &harbor)
        );
        assert!(
            !is_immutable_tag_error(ErrorKind::Status(500), &ecr)
                && !is_immutable_tag_error(ErrorKind::Denied, &[])
        );
    }
}
