//! Checks the update policy of a manifest entry.

use super::entry_reader::{EntryContext, ManifestResult};
use landfall_model::document::{SourceSpan, UpdateRule, YamlNode};
use landfall_model::{PolicyError, UpdatePolicy};

/// Checks `rule`, written at `node`. `what` names the kind of item in messages. `version` is the
/// text that the policy may change, or `None` if the item has no version.
pub(super) fn check_rule(
    rule: &UpdateRule,
    version: Option<&str>,
    what: &str,
    node: &YamlNode<'_>,
    reader: &EntryContext<'_>,
) -> ManifestResult<()> {
    let at = reader.here(node.get("policy"));
    let policy: UpdatePolicy = rule
        .policy
        .parse()
        .map_err(|error: PolicyError| at.fault(error.to_string(), Some(error.help().into())))?;
    if !policy.allows_other_versions() {
        if rule.keep.is_some() {
            let help = "write a policy such as `minor`, or remove `keep`";
            return Err(at.fault(
                "`keep` needs a policy that moves versions",
                Some(help.into()),
            ));
        }
        return Ok(());
    }
    let (message, help) = match version {
        None => (
            format!("{what} without a tag has no version"),
            "write its tag before the digest",
        ),
        // `update` edits the text that contains the version, here the value of the variable
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

/// Rejects `keep` at an entry that is always one item, such as a set of packages. `at` is the
/// position of `keep`.
pub(super) fn check_keeps_one(rule: &UpdateRule, at: &SourceSpan) -> ManifestResult<()> {
    if rule.keep.is_none() {
        return Ok(());
    }
    let help = "use a variable as version, and write `keep` there, as in `vars: {app: {value: \
                [v1.1.0, v1.2.0], update: {policy: minor, keep: 2}}}`";
    let message = "`keep` applies to variables, images and charts only";
    Err(at.fault(message, Some(help.into())))
}
