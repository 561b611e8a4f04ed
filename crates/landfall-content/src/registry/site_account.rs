//! Reads the credentials that a site names, for generated node configuration that contains them.

use super::credential::{CredentialError, RegistrySecret};
use super::keychain::Keychain;
use super::proxy_settings::proxy_rules;
use super::setup_error::SetupError;
use landfall_model::config::Site;
use std::sync::Arc;

/// A user name and its password.
type SiteAccount = (String, String);

/// Variables that lead to the personal credentials of the user, which must not get to nodes.
const PERSONAL_VARIABLES: [&str; 6] = [
    "DOCKER_AUTH_CONFIG",
    "DOCKER_CONFIG",
    "HOME",
    "REGISTRY_AUTH_FILE",
    "XDG_CONFIG_HOME",
    "XDG_RUNTIME_DIR",
];

/// Returns the user name and password that `site` names for `host/repository`.
///
/// # Errors
/// If the credentials cannot be read, or are an identity token.
pub fn site_account(
    site: &Site,
    get: impl Fn(&str) -> Option<String>,
    host: &str,
    repository: &str,
) -> Result<Option<SiteAccount>, Arc<CredentialError>> {
    let keychain = Keychain::load(Some(site), |name| {
        if PERSONAL_VARIABLES.contains(&name) {
            None
        } else {
            get(name)
        }
    })?;
    // callers are synchronous; an auth file of the site may name a helper to run
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(CredentialError::Runtime)?;
    match runtime.block_on(keychain.find(host, repository))? {
        None => Ok(None),
        Some(found) => match found.secret {
            RegistrySecret::Basic(user, password) => Ok(Some((user, password))),
            RegistrySecret::Identity(_) => Err(CredentialError::Token(found.source).into()),
        },
    }
}

/// Returns the credentials for the proxies of the site: for http targets, and for https targets.
///
/// # Errors
/// If the URL of a proxy or its credentials are invalid.
pub fn site_proxy_accounts(
    site: &Site,
    get: impl Fn(&str) -> Option<String>,
) -> Result<[Option<SiteAccount>; 2], SetupError> {
    let rules = proxy_rules(Some(site), get)?;
    Ok(rules.by_scheme().map(|proxy| {
        let account = proxy?.account.as_ref()?;
        Some((account.user.clone(), account.password.clone()))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn personal_accounts_are_not_returned() {
        let dir = tempfile::tempdir().unwrap();
        let auth = r#"{"auths": {"far.test": {"username": "me", "password": "p"}}}"#;
        for path in [
            "containers/auth.json",
            ".config/containers/auth.json",
            ".docker/config.json",
        ] {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, auth).unwrap();
        }
        let text = "apiVersion: landfall/v1\nkind: Site\nregistry: {address: far.test}\n";
        let site = Site::parse(Path::new("site.yaml"), text).unwrap();
        let folder = dir.path().display().to_string();
        for name in ["HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"] {
            let get = |variable: &str| (variable == name).then(|| folder.clone());
            let personal = Keychain::load(None, get).unwrap();
            assert_eq!(personal.hosts(), vec!["far.test"; personal.hosts().len()]);
            assert!(!personal.hosts().is_empty(), "{name}");
            let found = site_account(&site, get, "far.test", "x").unwrap();
            assert_eq!(found, None, "{name}");
        }
    }
}
