//! Determines the proxy rules of a run from the site or the environment.

use super::credential::CredentialError;
use super::setup_error::SetupError;
use super::site_credentials::site_secret;
use landfall_http::{ProxyAccount, ProxyRules};
use landfall_model::TargetRegistry;
use landfall_model::config::Site;
use url::Url;

/// Returns the proxy rules. If the site has `proxy`, it replaces all variables of the environment.
/// The file server of the site bypasses the proxy, and so do its registry and mirrors unless they
/// set `viaProxy`.
///
/// # Errors
/// If the URL of a proxy or its credentials are invalid. The message does not contain the URL,
/// which may include a password.
pub fn proxy_rules(
    site: Option<&Site>,
    get: impl Fn(&str) -> Option<String>,
) -> Result<ProxyRules, SetupError> {
    let Some((site, proxy)) = site.and_then(|site| site.proxy.as_ref().map(|proxy| (site, proxy)))
    else {
        let rules = ProxyRules::from_env(&get)?;
        return Ok(rules.with_bypass(site.into_iter().flat_map(bypassed)));
    };
    let account = match &proxy.credentials {
        Some(from) => {
            let secret = site_secret(site, from, "proxy.credentials of the site", &get);
            let (user, password, source) = secret.map_err(|error| match error {
                CredentialError::NoSource { setting } => CredentialError::NoProxySource { setting },
                other => other,
            })?;
            Some(ProxyAccount {
                user,
                password,
                source,
            })
        }
        None => None,
    };
    let rules = ProxyRules::from_site(proxy, account)?;
    Ok(rules.with_bypass(bypassed(site)))
}

/// Returns the `host:port` of a URL.
fn url_host(text: &str) -> Option<String> {
    let url = Url::parse(text).ok()?;
    Some(format!(
        "{}:{}",
        url.host_str()?,
        url.port_or_known_default()?
    ))
}

/// Returns the site's own hosts, each with the site key that names it.
fn bypassed(site: &Site) -> Vec<(String, String)> {
    let mut hosts = Vec::new();
    if let Some(registry) = site
        .registry
        .as_ref()
        // a corporate proxy cannot reach a registry on the local network, so bypassing is the
        // default
        .filter(|registry| !registry.via_proxy)
        && let Ok(target) = registry.address.parse::<TargetRegistry>()
    {
        hosts.push((target.registry, "registry.address of the site".to_owned()));
    }
    if let Some(host) = site.files.as_deref().and_then(url_host) {
        hosts.push((host, "files of the site".to_owned()));
    }
    for (name, upstream) in site
        .upstreams
        .iter()
        .filter(|(_, upstream)| !upstream.via_proxy)
    {
        if let Some(host) = upstream.mirror.as_deref().and_then(url_host) {
            hosts.push((host, format!("upstreams.{name}.mirror of the site")));
        }
    }
    hosts
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn an_auth_file_is_not_a_source_of_the_proxys_account() {
        let site = "apiVersion: landfall/v1\nkind: Site\nproxy: {https: \"http://proxy.test:3128\", \
                    credentials: {authFile: auth.json}}\n";
        let site = Site::parse(Path::new("site.yaml"), site).unwrap();
        let error = proxy_rules(Some(&site), |_| None).err().unwrap();
        assert_eq!(
            error.to_string(),
            "proxy.credentials of the site: name usernameEnv and passwordEnv, or file; an auth \
             file has accounts of registries only"
        );
    }
}
