//! The accounts of registry paths that have separate credentials in the site.

use super::credentials::BasicCredentials;
use super::error::RenderError;
use super::node_registry::{NodeRegistry, auth_file};
use super::request::RenderRequest;
use std::collections::BTreeSet;

/// A repository of locked images whose account is not that of the registry.
struct SeparateAccount {
    repository: String,
    /// The account, or the error if it cannot be read.
    account: Result<BasicCredentials, RenderError>,
}

/// Returns an auth file for programs that select the account by the repository. The file has the
/// account of the registry and the accounts of repositories with separate credentials. Returns
/// `None` if there are no accounts.
pub(super) fn auth_file_of_repositories(
    request: &RenderRequest<'_>,
    registry: &NodeRegistry<'_>,
) -> Result<Option<String>, RenderError> {
    let host = registry.target.registry.as_str();
    let mut accounts = Vec::new();
    if let Some(account) = registry.account(&request.mapping.target().prefix)? {
        accounts.push((host.to_owned(), account));
    }
    for separate in separate_accounts(request, registry)? {
        let repository = format!("{host}/{}", separate.repository);
        accounts.push((repository, separate.account?));
    }
    Ok((!accounts.is_empty()).then(|| auth_file(&accounts)))
}

/// Returns a note about the repositories with separate credentials, for platforms that have at most
/// one account for the registry.
pub(super) fn separate_accounts_note(
    request: &RenderRequest<'_>,
    registry: &NodeRegistry<'_>,
) -> Result<Option<String>, RenderError> {
    // an account that cannot be read here is another one as well
    let separate = separate_accounts(request, registry)?;
    let Some(SeparateAccount {
        repository: first, ..
    }) = separate.first()
    else {
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

/// Returns the repositories with accounts of their own, sorted.
fn separate_accounts(
    request: &RenderRequest<'_>,
    registry: &NodeRegistry<'_>,
) -> Result<Vec<SeparateAccount>, RenderError> {
    if !registry.has_accounts_of_paths() {
        return Ok(Vec::new());
    }
    let usual = registry.account(&request.mapping.target().prefix)?;
    let repositories: BTreeSet<String> = request
        .images()
        .flat_map(|image| request.mapping.destinations(image))
        .map(|destination| destination.repository)
        .collect();
    let accounts = repositories.into_iter().filter_map(|repository| {
        let account = registry.account(&repository).transpose()?;
        let is_usual = account
            .as_ref()
            .is_ok_and(|account| Some(account) == usual.as_ref());
        (!is_usual).then_some(SeparateAccount {
            repository,
            account,
        })
    });
    Ok(accounts.collect())
}
