//! Determines the proxy rules of a run from the site or the environment.

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
            let (user, password, source) =
                site_secret(site, from, "proxy.credentials of the site", &get)?;
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
