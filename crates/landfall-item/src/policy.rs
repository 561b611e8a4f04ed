//! Checks the update policy of a manifest entry.

use super::entry_reader::ManifestResult;
use landfall_model::document::SourceSpan;
use landfall_model::{PolicyError, UpdatePolicy};

/// Checks the policy `text` at position `at`. `what` is how messages name the kind of item.
/// `version` is the text that the policy may change, or `None` if the item has no version.
pub(super) fn check_policy(
    text: &str,
    version: Option<&str>,
    what: &str,
    at: &SourceSpan,
) -> ManifestResult<()> {
    let policy: UpdatePolicy = text
        .parse()
        .map_err(|error: PolicyError| at.fault(error.to_string(), Some(error.help().into())))?;
    let fault = |message: String, help: &str| Err(at.fault(message, Some(help.into())));
    match version {
        None if policy.allows_other_versions() => fault(
            format!("{what} without a tag has no version"),
            "write its tag before the digest",
        ),
        Some(version) if policy.allows_other_versions() && version.contains("${") => fault(
            format!(
                "the version of this {} stands in a variable",
                what.rsplit(' ').next().unwrap_or(what)
            ),
            "give the policy to the variable",
        ),
        _ => Ok(()),
    }
}
