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
    if !policy.allows_other_versions() {
        return Ok(());
    }
    let (message, help) = match version {
        None => (
            format!("{what} without a tag has no version"),
            "write its tag before the digest",
        ),
        // `update` edits the text that contains the version, which is that of the variable
        Some(version) if version.contains("${") => (
            format!(
                "the version of this {} is in a variable",
                what.rsplit(' ').next().unwrap_or(what)
            ),
            "set the update policy at the variable",
        ),
        Some(_) => return Ok(()),
    };
    Err(at.fault(message, Some(help.into())))
}
