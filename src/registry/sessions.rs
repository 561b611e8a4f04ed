//! Which session a host gets: names, mirrors, schemes, and the rules that flags and site give.

use super::credentials::{Keychain, site_secret};
use super::session::Session;
use crate::config::Site;
use crate::http::{Error, ErrorKind, HostRule, ProxyAccount, ProxyRules, TlsProfile, Transport};
use crate::model::Target;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use url::Url;

/// A setting that cannot be used: which one, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SetupError(pub String);

/// All sessions of a run.
pub struct Sessions {
    transport: Transport,
    keychain: Arc<Keychain>,
    mirrors: BTreeMap<String, Url>,
    plain: Vec<String>,
    open: Mutex<HashMap<(String, bool), Arc<Opening>>>,
}

/// Where a registry is.
#[derive(Debug, Clone)]
pub struct Place {
    /// Its URL, with a mirror's path.
    pub url: Url,
    /// The host that a mirror stands in for.
    pub origin: Option<String>,
    /// Credentials may be sent: plain http was not found by probing.
    pub trusted: bool,
}

type Opening = tokio::sync::OnceCell<Arc<Session>>;

impl Sessions {
    /// No session yet. `plain` are the hosts that the user allowed plain http for.
    ///
    /// # Errors
    /// A mirror of the site that is no URL.
    pub fn new(
        transport: Transport,
        keychain: Arc<Keychain>,
        site: Option<&Site>,
        plain: Vec<String>,
    ) -> Result<Sessions, SetupError> {
        let mut mirrors = BTreeMap::new();
        for (host, upstream) in site.iter().flat_map(|site| &site.upstreams) {
            if let Some(mirror) = &upstream.mirror {
                mirrors.insert(host.clone(), mirror_url(host, mirror)?);
            }
        }
        Ok(Sessions { transport, keychain, mirrors, plain, open: Mutex::default() })
    }

    /// The transport under all sessions.
    pub fn transport(&self) -> &Transport {
        &self.transport
    }

    /// Where accounts are found.
    pub fn keychain(&self) -> &Keychain {
        &self.keychain
    }

    /// The session to read from `host`, through its mirror where it has one.
    ///
    /// # Errors
    /// When it cannot be found out how to reach it.
    pub async fn upstream(&self, host: &str) -> Result<Arc<Session>, Error> {
        self.session(host, true).await
    }

    /// The session to write to `host`. Mirrors do not count.
    ///
    /// # Errors
    /// When it cannot be found out how to reach it.
    pub async fn destination(&self, host: &str) -> Result<Arc<Session>, Error> {
        self.session(host, false).await
    }

    async fn session(&self, host: &str, mirrored: bool) -> Result<Arc<Session>, Error> {
        let cell = {
            let mut open = self.open.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            open.entry((host.to_owned(), mirrored)).or_default().clone()
        };
        cell.get_or_try_init(|| async { Ok(Arc::new(self.connect(host, mirrored).await?)) }).await.cloned()
    }

    async fn connect(&self, host: &str, mirrored: bool) -> Result<Session, Error> {
        let (transport, keychain) = (self.transport.clone(), self.keychain.clone());
        let Place { url, origin, trusted } = self.place(host, mirrored).await?;
        let prefix = if origin.is_some() { url.path().trim_matches('/').to_owned() } else { String::new() };
        Ok(Session::new(host, url, prefix, origin, transport, keychain, trusted))
    }

    /// Where a registry is read from, through its mirror where it has one.
    ///
    /// # Errors
    /// When it cannot be found out how to reach it.
    pub async fn place_of(&self, host: &str) -> Result<Place, Error> {
        self.place(host, true).await
    }

    async fn place(&self, host: &str, mirrored: bool) -> Result<Place, Error> {
        if let Some(mirror) = self.mirrors.get(host).filter(|_| mirrored) {
            return Ok(Place { url: mirror.clone(), origin: Some(host.to_owned()), trusted: true });
        }
        let real = if host == "docker.io" { "registry-1.docker.io" } else { host };
        let url = self.transport.base_url(real).await?;
        let trusted = url.scheme() == "https" || self.plain.iter().any(|plain| covers(plain, host));
        Ok(Place { url, origin: None, trusted })
    }

    /// The URL to fetch a plain file from, and the origin that a mirror stands in for.
    ///
    /// # Errors
    /// When `url` is no http or https URL.
    pub fn file_url(&self, url: &str) -> Result<(Url, Option<String>), Error> {
        let parsed = Url::parse(url)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
            .ok_or_else(|| Error::new(ErrorKind::Local, format!("'{url}' is no http or https URL")))?;
        let host = parsed.host_str().unwrap_or_default();
        let with_port = parsed.port().map_or(host.to_owned(), |port| format!("{host}:{port}"));
        let Some(mirror) = self.mirrors.get(&with_port).or_else(|| self.mirrors.get(host)) else {
            return Ok((parsed, None));
        };
        let mut target = mirror.clone();
        target.set_path(&format!("{}{}", mirror.path().trim_end_matches('/'), parsed.path()));
        target.set_query(parsed.query());
        Ok((target, Some(with_port)))
    }
}

fn mirror_url(host: &str, mirror: &str) -> Result<Url, SetupError> {
    let wrong = |why: &str| SetupError(format!("upstreams.{host}.mirror of the site: {why}"));
    let url = Url::parse(mirror).map_err(|error| wrong(&format!("no URL ({error})")))?;
    match url.scheme() {
        _ if !url.username().is_empty() || url.password().is_some() => {
            Err(wrong("a URL with a user name is refused; name credentials beside it"))
        }
        "http" | "https" if url.has_host() => Ok(url),
        _ => Err(wrong("write http://… or https://…")),
    }
}

/// Whether a `HOST[:PORT]` that the user wrote means this registry host.
fn covers(written: &str, host: &str) -> bool {
    written == host
        || host.rsplit_once(':').is_some_and(|(name, _)| name == written && !written.contains(':'))
}

/// The rules by host that flags, site, keychain and certs.d folders (`trust`) give.
pub fn host_rules(
    site: Option<&Site>,
    plain: &[String],
    keychain: &Keychain,
    trust: BTreeMap<String, TlsProfile>,
) -> BTreeMap<String, HostRule> {
    let mut rules: BTreeMap<String, HostRule> = BTreeMap::new();
    if let Some(site) = site {
        if let Some(registry) = &site.registry
            && let Ok(target) = registry.address.parse::<Target>()
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
            let mirror = upstream.mirror.as_deref().and_then(|mirror| Url::parse(mirror).ok());
            let real = if host == "docker.io" { "registry-1.docker.io" } else { host };
            let key = mirror.as_ref().map_or(real.to_owned(), |url| {
                format!("{}:{}", url.host_str().unwrap_or_default(), url.port_or_known_default().unwrap_or(0))
            });
            let rule = rules.entry(key).or_default();
            let ca: Vec<PathBuf> = upstream.ca.iter().map(|path| site.resolve(path)).collect();
            rule.tls.ca.extend(ca);
            rule.tls.skip_verify |= upstream.skip_verify;
            rule.plain_http |= upstream.plain_http;
            rule.has_credentials |= upstream.credentials.is_some();
            rule.max_concurrent = match (rule.max_concurrent, upstream.max_concurrent) {
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
        rules.entry(host).or_default().has_credentials = true;
    }
    // the rule of a host and port hides that of the host alone, so it takes that one's in
    for (key, bare) in rules.clone() {
        for (other, rule) in rules.iter_mut() {
            if other.strip_prefix(&key).is_some_and(|rest| rest.starts_with(':') && !rest.contains(']')) {
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

/// The proxy rules: the site's `proxy`, when it has one, in place of the environment's variables as a
/// whole. The site's registry, file server and mirrors bypass it, unless `viaProxy` says otherwise.
///
/// # Errors
/// What is wrong with a proxy's URL or its credentials; never the URL itself.
pub fn proxy_rules(
    site: Option<&Site>,
    get: impl Fn(&str) -> Option<String>,
) -> Result<ProxyRules, SetupError> {
    let Some((site, proxy)) = site.and_then(|site| site.proxy.as_ref().map(|proxy| (site, proxy))) else {
        let rules = ProxyRules::from_env(&get).map_err(SetupError)?;
        return Ok(rules.with_bypass(site.into_iter().flat_map(bypassed)));
    };
    let account = match &proxy.credentials {
        Some(from) => {
            let (user, password, source) =
                site_secret(site, from, "proxy.credentials of the site", &get).map_err(SetupError)?;
            Some(ProxyAccount { user, password, source })
        }
        None => None,
    };
    let rules = ProxyRules::from_site(proxy, account).map_err(SetupError)?;
    Ok(rules.with_bypass(bypassed(site)))
}

/// The site's own hosts, each with the key that names it.
fn bypassed(site: &Site) -> Vec<(String, String)> {
    let url_host = |text: &str| {
        let url = Url::parse(text).ok()?;
        Some(format!("{}:{}", url.host_str()?, url.port_or_known_default()?))
    };
    let mut hosts = Vec::new();
    if let Some(registry) = site.registry.as_ref().filter(|registry| !registry.via_proxy)
        && let Ok(target) = registry.address.parse::<Target>()
    {
        hosts.push((target.registry, "registry.address of the site".to_owned()));
    }
    if let Some(host) = site.files.as_deref().and_then(url_host) {
        hosts.push((host, "files of the site".to_owned()));
    }
    for (name, upstream) in site.upstreams.iter().filter(|(_, upstream)| !upstream.via_proxy) {
        if let Some(host) = upstream.mirror.as_deref().and_then(url_host) {
            hosts.push((host, format!("upstreams.{name}.mirror of the site")));
        }
    }
    hosts
}
