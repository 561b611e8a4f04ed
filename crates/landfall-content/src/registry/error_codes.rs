//! Classifies errors of registries by the codes and messages of their error objects, because the
//! status alone does not say what is wrong.

use landfall_http::{DistributionError, ErrorKind, HttpError};

/// Whether an index was refused because the registry lacks some of its children (distribution-spec,
/// "Error Codes"), rather than for its tag or size.
pub fn is_missing_children_error(error: &HttpError) -> bool {
    // registries disagree about the code: docker-registry sends MANIFEST_BLOB_UNKNOWN
    let about_children = [
        "MANIFEST_BLOB_UNKNOWN",
        "BLOB_UNKNOWN",
        "MANIFEST_UNKNOWN",
        "MANIFEST_INVALID",
    ];
    error
        .codes
        .iter()
        .any(|error| about_children.contains(&error.code.as_str()))
}

/// Whether a manifest may have been refused only because another client pushes the same manifest at
/// the same time. The registry then reports missing blobs, or an invalid digest as docker-registry
/// does (distribution-spec, "Error Codes").
pub fn may_be_push_race(error: &HttpError) -> bool {
    ["MANIFEST_BLOB_UNKNOWN", "BLOB_UNKNOWN", "DIGEST_INVALID"]
        .iter()
        .any(|code| error.has_code(code))
}

/// Whether the quota of the project or the disk of the registry is exhausted.
pub fn is_quota_error(kind: ErrorKind, codes: &[DistributionError]) -> bool {
    let refused = match kind {
        // 507 Insufficient Storage (RFC 4918, section 11.5)
        ErrorKind::Status(507) => return true,
        ErrorKind::Status(status) => (400..500).contains(&status),
        kind => kind == ErrorKind::Denied,
    };
    refused && mention(codes, &["quota"])
}

/// Whether a push was refused because its tag is immutable. ECR and Harbor answer 400, 409 or 412.
pub fn is_immutable_tag_error(kind: ErrorKind, codes: &[DistributionError]) -> bool {
    let refused = matches!(
        kind,
        ErrorKind::Denied | ErrorKind::Status(400 | 405 | 409 | 412)
    );
    refused
        && mention(
            codes,
            // the specification has no code for this case, so codes and messages are searched
            &["immutable", "already exist", "tag_invalid", "overwrit"],
        )
}

/// Whether a code or message contains one of the words.
fn mention(codes: &[DistributionError], words: &[&str]) -> bool {
    codes.iter().any(|error| {
        let text = format!("{} {}", error.code, error.message).to_ascii_lowercase();
        words.iter().any(|word| text.contains(word))
    })
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
        let denied = errors("DENIED", "may not write");
        assert!(
            !is_quota_error(ErrorKind::Denied, &denied)
                && !is_quota_error(ErrorKind::Network, &quota)
        );
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
