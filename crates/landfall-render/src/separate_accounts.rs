//! The accounts of registry paths that have separate credentials in the site.

use super::credentials::BasicCredentials;
use super::error::RenderError;
use super::node_registry::NodeRegistry;
use super::request::RenderRequest;
use serde_json::{Map, json};
use std::collections::BTreeSet;

/// Returns an auth file for programs that select the account by the repository. The file has the
/// account of the registry and the accounts of repositories with separate credentials. Returns
/// `None` if there are no accounts.
pub(super) fn auth_file_of_repositories(
    request: &RenderRequest<'_>,
    registry: &NodeRegistry<'_>,
) -> Result<Option<String>, RenderError> {
    let host = registry.target.registry.as_str();
    let mut auths = Map::new();
    if let Some(account) = registry.account(&request.mapping.target().prefix)? {
        auths.insert(host.to_owned(), json!({"auth": account.encoded()}));
    }
    for (repository, account) in separate_accounts(request, registry)? {
        auths.insert(
            format!("{host}/{repository}"),
            json!({"auth": account.encoded()}),
        );
    }
    if auths.is_empty() {
        return Ok(None);
    }
    Ok(Some(format!("{:#}\n", json!({"auths": auths}))))
}

/// Returns a note about the repositories with separate credentials, for platforms that have at most
/// one account for the registry.
pub(super) fn separate_accounts_note(
    request: &RenderRequest<'_>,
    registry: &NodeRegistry<'_>,
) -> Result<Option<String>, RenderError> {
    let separate = separate_accounts(request, registry)?;
    let Some((first, _)) = separate.first() else {
        return Ok(None);
    };
    let more = match separate.len() - 1 {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    Ok(Some(if registry.has_account() {
        format!(
            "nodes have one account for the registry; {first}{more} needs another account; allow \
             the account of the registry to read it too, or give the pods that use it an \
             imagePullSecret"
        )
    } else {
        format!(
            "nodes have no account for the registry; {first}{more} needs one; give the pods that \
             use it an imagePullSecret"
        )
    }))
}

/// Returns the repositories of the locked images whose account is not that of the registry.
fn separate_accounts(
    request: &RenderRequest<'_>,
    registry: &NodeRegistry<'_>,
) -> Result<Vec<(String, BasicCredentials)>, RenderError> {
    let mut separate = Vec::new();
    if !registry.has_accounts_of_paths() {
        return Ok(separate);
    }
    let usual = registry.account(&request.mapping.target().prefix)?;
    let repositories: BTreeSet<String> = request
        .images()
        .flat_map(|image| request.mapping.destinations(image))
        .map(|destination| destination.repository)
        .collect();
    for repository in repositories {
        if let Some(account) = registry.account(&repository)?
            && Some(&account) != usual.as_ref()
        {
            separate.push((repository, account));
        }
    }
    Ok(separate)
}
