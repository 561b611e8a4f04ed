//! What a refusal of a registry's is about, where the status does not say it: registries tell it by
//! the codes and words of their error objects.

use landfall_http::{DistributionError, ErrorKind, HttpError};

/// A refusal that an index with missing children gets (distribution-spec, "Error Codes"). Other
/// refusals, of the tag or of the size, are not about children.
pub fn is_missing_children_error(error: &HttpError) -> bool {
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

/// Whether a manifest may be refused only because another client delivers the same at this moment:
/// for want of blobs that it names, or for its digest, as docker-registry says when one manifest is
/// written twice at once (distribution-spec, "Error Codes").
pub fn may_be_push_race(error: &HttpError) -> bool {
    ["MANIFEST_BLOB_UNKNOWN", "BLOB_UNKNOWN", "DIGEST_INVALID"]
        .iter()
        .any(|code| error.has_code(code))
}

/// Whether the registry has no room for more: a quota of the project, or its disk.
pub fn is_quota_error(kind: ErrorKind, codes: &[DistributionError]) -> bool {
    let refused = match kind {
        ErrorKind::Status(507) => return true,
        ErrorKind::Status(status) => (400..500).contains(&status),
        kind => kind == ErrorKind::Denied,
    };
    refused && speak_of(codes, &["quota"])
}

/// Whether the registry may keep a tag from being written again: ECR and Harbor answer 400, 409 or
/// 412.
pub fn is_immutable_tag_error(kind: ErrorKind, codes: &[DistributionError]) -> bool {
    let refused = matches!(
        kind,
        ErrorKind::Denied | ErrorKind::Status(400 | 405 | 409 | 412)
    );
    refused
        && speak_of(
            codes,
            &["immutable", "already exist", "tag_invalid", "overwrit"],
        )
}

fn speak_of(codes: &[DistributionError], words: &[&str]) -> bool {
    codes.iter().any(|error| {
        let said = format!("{} {}", error.code, error.message).to_ascii_lowercase();
        words.iter().any(|word| said.contains(word))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(code: &str, message: &str) -> Vec<DistributionError> {
        vec![DistributionError {
            code: code.into(),
            message: message.into(),
            ..DistributionError::default()
        }]
    }

    #[test]
    fn a_quota_is_told_from_other_refusals() {
        let quota = said(
            "DENIED",
            "Quota exceeded when processing the request of adding 1 MiB of storage resource",
        );
        assert!(
            is_quota_error(ErrorKind::Denied, &quota)
                && is_quota_error(ErrorKind::Status(412), &quota)
        );
        assert!(is_quota_error(ErrorKind::Status(507), &[]));
        let denied = said("DENIED", "may not write");
        assert!(
            !is_quota_error(ErrorKind::Denied, &denied)
                && !is_quota_error(ErrorKind::Network, &quota)
        );
    }

    #[test]
    fn an_immutable_tag_is_told_from_other_refusals() {
        let ecr = said(
            "TAG_INVALID",
            "The image tag '1' already exists and cannot be overwritten",
        );
        let harbor = said(
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
