//! Reads user name and password of a `credentials` entry in the site, for registries and the proxy.

use super::credential::CredentialError;
use landfall_model::config::{Site, SiteCredentials};

/// Reads user name, password and their source from a `credentials` entry of the site. Fails if a
/// variable or file is missing or empty.
pub(super) fn site_secret(
    site: &Site,
    from: &SiteCredentials,
    setting: &str,
    get: &impl Fn(&str) -> Option<String>,
) -> Result<(String, String, String), CredentialError> {
    if let Some(path) = &from.file {
        let path = site.resolve(path);
        let text = std::fs::read_to_string(&path).map_err(|source| CredentialError::ReadNamed {
            setting: setting.into(),
            path: path.clone(),
            source,
        })?;
        let line = text.lines().next().unwrap_or_default();
        let shown = path.display().to_string();
        let pair = line.split_once(':');
        let no_pair = || CredentialError::NoPair {
            setting: setting.into(),
            path,
        };
        return pair
            .map(|(user, password)| (user.into(), password.into(), shown))
            .ok_or_else(no_pair);
    }
    let (Some(user), Some(password)) = (&from.username_env, &from.password_env) else {
        return Err(CredentialError::NoSource {
            setting: setting.into(),
        });
    };
    let value = |name: &str| {
        let missing = || CredentialError::NoVariable {
            setting: setting.into(),
            variable: name.into(),
        };
        get(name)
            .filter(|value| !value.is_empty())
            .ok_or_else(missing)
    };
    // the name of the variable, not its value, as the source appears in messages
    Ok((value(user)?, value(password)?, format!("${user}")))
}
