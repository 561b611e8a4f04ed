//! Collects the settings of each host from flags, site, keychain and `certs.d` folders.

use super::credential::site_secret;
use super::keychain::Keychain;
use super::sessions::api_host;
use landfall_http::{HostRule, ProxyAccount, ProxyRules, TlsProfile, host_port};
use landfall_model::config::Site;
use landfall_model::{Failure, TargetRegistry};
use std::collections::BTreeMap;
use std::path::PathBuf;
use url::Url;

/// Returns the rules of each host. `plain` are the hosts of `--plain-http`, and `trust` the
/// settings in `certs.d` folders.
pub fn host_rules(
    site: Option<&Site>,
    plain: &[String],
    keychain: &Keychain,
    trust: BTreeMap<String, TlsProfile>,
) -> BTreeMap<String, HostRule> {
    let mut rules: BTreeMap<String, HostRule> = BTreeMap::new();
    if let Some(site) = site {
        if let Some(registry) = &site.registry
            && let Ok(target) = registry.address.parse::<TargetRegistry>()
        {
            let rule = rules.entry(target.registry).or_default();
            rule.tls = TlsProfile {
                ca: registry.ca.iter().map(|path| site.resolve(path)).collect(),
                client: registry
                    .client_cert
                    .as_ref()
                    .zip(registry.client_key.as_ref())
                    .map(|(certificate, key)| (site.resolve(certificate), site.resolve(key))),
                skip_verify: registry.skip_verify,
            };
            rule.plain_http = registry.plain_http;
            rule.has_credentials = registry.credentials.is_some();
        }
        for (host, upstream) in &site.upstreams {
            // requests go to the mirror, so the rule is for its host and port
            let mirror = upstream
                .mirror
                .as_deref()
                .and_then(|mirror| Url::parse(mirror).ok());
            let key = mirror
                .as_ref()
                .map_or_else(|| api_host(host).to_owned(), host_port);
            let rule = rules.entry(key).or_default();
            let ca: Vec<PathBuf> = upstream.ca.iter().map(|path| site.resolve(path)).collect();
            rule.tls.ca.extend(ca);
            let client = upstream.client_cert.iter().zip(&upstream.client_key);
            let mut client =
                client.map(|(certificate, key)| (site.resolve(certificate), site.resolve(key)));
            rule.tls.client = rule.tls.client.take().or_else(|| client.next());
            rule.tls.skip_verify |= upstream.skip_verify;
            rule.plain_http |= upstream.plain_http;
            rule.has_credentials |= upstream.credentials.is_some();
            rule.max_concurrent = match (rule.max_concurrent, upstream.max_concurrent) {
                // several upstreams may share a mirror; the strictest limit protects it
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
        }
    }
    for host in plain {
        rules.entry(host.clone()).or_default().plain_http = true;
    }
    for (host, profile) in trust {
        let tls = &mut rules.entry(host).or_default().tls;
        tls.ca.extend(profile.ca);
        tls.client = tls.client.take().or(profile.client);
    }
    for host in keychain.hosts() {
        // a host with credentials is not probed for plain http: credentials are not sent over it
        rules.entry(host).or_default().has_credentials = true;
    }
    // only the most specific rule of a host applies, so a rule with a port includes the rule of
    // the host without a port
    for (key, bare) in rules.clone() {
        for (other, rule) in &mut rules {
            if is_host_with_port(other, &key) {
                rule.tls.ca.extend(bare.tls.ca.clone());
                rule.tls.client = rule.tls.client.take().or(bare.tls.client.clone());
                rule.tls.skip_verify |= bare.tls.skip_verify;
                rule.plain_http |= bare.plain_http;
                rule.has_credentials |= bare.has_credentials;
                rule.max_concurrent = rule.max_concurrent.or(bare.max_concurrent);
            }
        }
    }
    rules
}

/// Whether `address` is `host` with a port. An IPv6 address is in brackets.
pub(super) fn is_host_with_port(address: &str, host: &str) -> bool {
    let rest = address.strip_prefix(host);
    rest.is_some_and(|rest| rest.starts_with(':') && !rest.contains(']'))
}

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
) -> Result<ProxyRules, Failure> {
    let Some((site, proxy)) = site.and_then(|site| site.proxy.as_ref().map(|proxy| (site, proxy)))
    else {
        let rules = ProxyRules::from_env(&get)?;
        return Ok(rules.with_bypass(site.into_iter().flat_map(bypassed)));
    };
    let account = match &proxy.credentials {
        Some(from) => {
            let setting = "proxy.credentials of the site";
            let missing = "name usernameEnv and passwordEnv, or file; an auth file has accounts \
                           of registries only";
            let (user, password, source) = site_secret(site, from, setting, missing, &get)?;
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
    let url = Url::parse(text).ok().filter(Url::has_host)?;
    Some(host_port(&url))
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

    #[test]
    fn hosts_of_the_site_bypass_the_proxy_unless_they_are_reached_through_it() {
        let own = "proxy: {http: \"http://proxy.test:1\", https: \"http://proxy.test:1\"}\n";
        for (proxy, variable) in [(own, None), ("", Some("http://proxy.test:1"))] {
            let direct = |via: &str| {
                let site = format!(
                    "apiVersion: landfall/v1\nkind: Site\n{proxy}\
                     registry: {{address: \"registry.test:5000\"{via}}}\n\
                     files: \"http://files.test:8080\"\n\
                     upstreams: {{quay.io: {{mirror: \"https://mirror.test/quay\"{via}}}}}\n"
                );
                let site = Site::parse(Path::new("site.yaml"), &site).unwrap();
                let get = |name: &str| {
                    let is_set = ["HTTP_PROXY", "HTTPS_PROXY"].contains(&name);
                    variable.filter(|_| is_set).map(str::to_owned)
                };
                let rules = proxy_rules(Some(&site), get).unwrap();
                [
                    "https://registry.test:5000/v2/",
                    "http://files.test:8080/x",
                    "https://mirror.test/v2/quay/a/tags/list",
                    "https://quay.io/v2/",
                    "https://registry.test/",
                ]
                .map(|url| rules.proxy_for(&Url::parse(url).unwrap()).is_none())
            };
            assert_eq!(direct(""), [true, true, true, false, false]);
            assert_eq!(
                direct(", viaProxy: true"),
                [false, true, false, false, false]
            );
        }
    }
}
