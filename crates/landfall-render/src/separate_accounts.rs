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
    if !registry.has_accounts_of_paths() {
        return Ok(None);
    }
    let usual = registry.account(&request.mapping.target().prefix)?;
    let mut separate = Vec::new();
    for repository in locked_repositories(request) {
        // an account that cannot be read here is another one as well
        let is_separate = match registry.account(&repository) {
            Ok(account) => account.is_some() && account != usual,
            Err(_) => true,
        };
        if is_separate {
            separate.push(repository);
        }
    }
    let Some(first) = separate.first() else {
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
    for repository in locked_repositories(request) {
        if let Some(account) = registry.account(&repository)?
            && Some(&account) != usual.as_ref()
        {
            separate.push((repository, account));
        }
    }
    Ok(separate)
}

/// Returns the repositories of the locked images at the registry.
fn locked_repositories(request: &RenderRequest<'_>) -> BTreeSet<String> {
    let destinations = request
        .images()
        .flat_map(|image| request.mapping.destinations(image));
    destinations
        .map(|destination| destination.repository)
        .collect()
}
