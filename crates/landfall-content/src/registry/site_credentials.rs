//! Reads user name and password of a `credentials` entry in the site, for registries and the proxy.

use super::credential::CredentialError;
use landfall_model::config::{Site, SiteCredentials};

/// Reads user name, password and their source from a `credentials` entry of the site. Fails if the
/// entry names neither a file nor two variables, if a variable is missing or empty, if the file
/// cannot be read, or if its first line is not `user:password`.
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
        let pair = line.split_once(':');
        let pair = pair.filter(|(user, password)| !user.is_empty() && !password.is_empty());
        let Some((user, password)) = pair else {
            return Err(CredentialError::NoPair {
                setting: setting.into(),
                path,
            });
        };
        return Ok((user.into(), password.into(), path.display().to_string()));
    }
    let (Some(user), Some(password)) = (&from.username_env, &from.password_env) else {
        return Err(CredentialError::NoSource {
            setting: setting.into(),
        });
    };
    // the name of the variable, not its value, because the source appears in messages
    let source = format!("${user}");
    let user = required_variable(user, setting, get)?;
    let password = required_variable(password, setting, get)?;
    Ok((user, password, source))
}

fn required_variable(
    name: &str,
    setting: &str,
    get: &impl Fn(&str) -> Option<String>,
) -> Result<String, CredentialError> {
    get(name)
        .filter(|value| !value.is_empty())
        .ok_or_else(|| CredentialError::NoVariable {
            setting: setting.into(),
            variable: name.into(),
        })
}
