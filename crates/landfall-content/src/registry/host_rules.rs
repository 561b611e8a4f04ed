//! Collects the settings of each host from flags, site, keychain and `certs.d` folders.

use super::keychain::Keychain;
use landfall_http::{HostRule, TlsProfile};
use landfall_model::TargetRegistry;
use landfall_model::config::Site;
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
            let real = if host == "docker.io" {
                "registry-1.docker.io"
            } else {
                host
            };
            let key = mirror.as_ref().map_or(real.to_owned(), |url| {
                format!(
                    "{}:{}",
                    url.host_str().unwrap_or_default(),
                    url.port_or_known_default().unwrap_or(0)
                )
            });
            let rule = rules.entry(key).or_default();
            let ca: Vec<PathBuf> = upstream.ca.iter().map(|path| site.resolve(path)).collect();
            rule.tls.ca.extend(ca);
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
