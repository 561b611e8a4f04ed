//! The sessions of a run: for each registry host, one for reads, which may use a mirror, and one
//! for writes.

use super::host_rules::is_host_with_port;
use super::keychain::Keychain;
use super::response::BaseUrl;
use super::session::RegistrySession;
use landfall_http::{ErrorKind, HttpError, OnceMap, Transport, host_of, host_port};
use landfall_model::config::{Site, SiteUpstream};
use landfall_model::{Failure, has_userinfo, locked, upstream_host};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use url::Url;

/// All registry sessions of a run.
pub struct RegistrySessions {
    transport: Transport,
    keychain: Arc<Keychain>,
    /// `upstreams` of the site.
    upstreams: BTreeMap<String, SiteUpstream>,
    /// The URLs of their mirrors.
    mirrors: BTreeMap<String, Url>,
    plain: Vec<String>,
    /// The hosts that had a file at a path with `+`, but not at the path with `%2B`.
    plain_plus: Mutex<BTreeSet<String>>,
    /// The open sessions, by host and whether a mirror may be used.
    open: OnceMap<(String, bool), Arc<RegistrySession>>,
}

impl RegistrySessions {
    /// Returns the sessions of a run; each is opened when it is first used. `plain` are the hosts
    /// for which the user allowed plain http.
    ///
    /// # Errors
    /// If the URL of a mirror in the site is invalid.
    pub fn new(
        transport: Transport,
        keychain: Arc<Keychain>,
        site: Option<&Site>,
        plain: Vec<String>,
    ) -> Result<RegistrySessions, Failure> {
        let upstreams = site.map(|site| site.upstreams.clone()).unwrap_or_default();
        let mut mirrors = BTreeMap::new();
        for (host, upstream) in &upstreams {
            if let Some(mirror) = &upstream.mirror {
                mirrors.insert(host.clone(), mirror_url(host, mirror)?);
            }
        }
        Ok(RegistrySessions {
            transport,
            keychain,
            upstreams,
            mirrors,
            plain,
            plain_plus: Mutex::default(),
            open: OnceMap::default(),
        })
    }

    /// Returns sessions with the same settings, but without accounts.
    #[must_use]
    pub fn without_accounts(&self) -> RegistrySessions {
        RegistrySessions {
            transport: self.transport.clone(),
            keychain: Arc::default(),
            upstreams: self.upstreams.clone(),
            mirrors: self.mirrors.clone(),
            plain: self.plain.clone(),
            plain_plus: Mutex::default(),
            open: OnceMap::default(),
        }
    }

    /// Whether `+` in paths is sent to `host` as it is, not as `%2B`.
    pub(crate) fn takes_plain_plus(&self, host: &str) -> bool {
        locked(&self.plain_plus).contains(host)
    }

    /// Records which form of `+` in paths worked at `host`.
    pub(crate) fn set_plain_plus(&self, host: &str, is_plain: bool) {
        let mut hosts = locked(&self.plain_plus);
        if is_plain {
            hosts.insert(host.to_owned());
        } else {
            hosts.remove(host);
        }
    }

    /// The mirror of a host of references.
    fn mirror_of(&self, host: &str) -> Option<&Url> {
        self.mirrors.get(&upstream_host(host))
    }

    /// Whether `upstreams` of the site has this host.
    pub fn is_in_site(&self, host: &str) -> bool {
        self.upstreams.contains_key(&upstream_host(host))
    }

    /// Returns the transport of all sessions.
    pub fn transport(&self) -> &Transport {
        &self.transport
    }

    /// Returns the keychain with the accounts.
    pub fn keychain(&self) -> &Keychain {
        &self.keychain
    }

    /// Returns the session to read from `host`, through its mirror if it has one.
    ///
    /// # Errors
    /// If the scheme of the host cannot be determined.
    pub async fn upstream(&self, host: &str) -> Result<Arc<RegistrySession>, HttpError> {
        self.session(host, true).await
    }

    /// Returns the session to write to `host`, never through a mirror.
    ///
    /// # Errors
    /// If the scheme of the host cannot be determined.
    pub async fn destination(&self, host: &str) -> Result<Arc<RegistrySession>, HttpError> {
        self.session(host, false).await
    }

    async fn session(&self, host: &str, mirrored: bool) -> Result<Arc<RegistrySession>, HttpError> {
        let connect = async || Ok(Arc::new(self.connect(host, mirrored).await?));
        self.open
            .get_or_try_init((host.to_owned(), mirrored), connect)
            .await
    }

    async fn connect(&self, host: &str, mirrored: bool) -> Result<RegistrySession, HttpError> {
        let transport = self.transport.clone();
        let keychain = self.keychain.clone();
        let base = self.find_base_url(host, mirrored).await?;
        // the user has named the destination, so a private address is allowed
        if !mirrored {
            transport.add_own_host(&base.url);
        }
        Ok(RegistrySession::new(host, base, transport, keychain))
    }

    /// Returns the base URL for reads from `host`: that of its mirror if it has one.
    ///
    /// # Errors
    /// If the scheme of the host cannot be determined.
    pub async fn base_url(&self, host: &str) -> Result<BaseUrl, HttpError> {
        self.find_base_url(host, true).await
    }

    async fn find_base_url(&self, host: &str, mirrored: bool) -> Result<BaseUrl, HttpError> {
        if let Some(mirror) = self.mirror_of(host).filter(|_| mirrored) {
            let upstream = self.upstreams.get(&upstream_host(host));
            let lists_all_tags = upstream.is_some_and(|upstream| upstream.lists_all_tags);
            return Ok(BaseUrl {
                url: mirror.clone(),
                origin: Some(host.to_owned()),
                // the site states the mirror's scheme, so plain http is the user's decision
                trusted: true,
                lists_all_tags,
            });
        }
        let url = self.transport.base_url(api_host(host)).await?;
        let trusted = url.scheme() == "https" || self.is_plain(host);
        Ok(BaseUrl {
            url,
            origin: None,
            trusted,
            lists_all_tags: true,
        })
    }

    /// Whether the user allowed plain http for `host`, so that credentials may be sent over it.
    pub fn is_plain(&self, host: &str) -> bool {
        self.plain.iter().any(|plain| covers(plain, host))
    }

    /// Returns the URL to read from `host` according to the settings, without probing.
    ///
    /// # Errors
    /// If the host does not form a URL.
    pub fn expected_url(&self, host: &str) -> Result<Url, HttpError> {
        match self.mirror_of(host) {
            Some(mirror) => Ok(mirror.clone()),
            None => self.transport.configured_url(api_host(host)),
        }
    }

    /// Checks a `url` that was found in the file at the URL `by`: if the host of `by` is public,
    /// `url` must not lead to a private address. If the host of `by` has a mirror, the host of the
    /// mirror decides, because the mirror may have written the URL. A `url` that has a mirror is
    /// exempt. For an `oci` URL, its registry is checked.
    ///
    /// # Errors
    /// If `url` leads to a private address that the site does not allow, or its scheme is not http,
    /// https or oci.
    pub async fn check_named_target(&self, url: &str, by: &str) -> Result<(), HttpError> {
        let (target, mirrored) = self.file_url(&oci_to_https(url))?;
        let (by, _) = self.file_url(&oci_to_https(by))?;
        match mirrored {
            Some(_) => Ok(()),
            None => {
                self.transport
                    .check_named_target(&target, &host_port(&by))
                    .await
            }
        }
    }

    /// Records that the source at `by` led to the requests to `url`, which the lock does not name,
    /// such as those for a list of mirrors. Then `egress` lists the host of `url` for the source.
    pub fn note_named(&self, url: &str, by: &str) {
        if let (Ok((url, _)), Ok((by, _))) = (self.file_url(url), self.file_url(by))
            && host_port(&url) != host_port(&by)
        {
            self.transport.ledger().add_named_by(&url, &host_port(&by));
        }
    }

    /// Returns the URL to fetch a plain file from, and the host that a mirror replaces, if any.
    ///
    /// # Errors
    /// If `url` is not an http or https URL.
    pub fn file_url(&self, url: &str) -> Result<(Url, Option<String>), HttpError> {
        let parsed = Url::parse(url)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
            .ok_or_else(|| {
                HttpError::new(
                    ErrorKind::Local,
                    format!("'{url}' is not an http or https URL"),
                )
            })?;
        let host = parsed.host_str().unwrap_or_default();
        // a mirror for `host:port` is more specific than one for `host`
        let with_port = host_of(&parsed);
        let Some(mirror) = self
            .mirrors
            .get(with_port)
            .or_else(|| self.mirrors.get(host))
        else {
            return Ok((parsed, None));
        };
        let mut target = mirror.clone();
        target.set_path(&format!(
            "{}{}",
            mirror.path().trim_end_matches('/'),
            parsed.path()
        ));
        target.set_query(parsed.query());
        Ok((target, Some(with_port.to_owned())))
    }
}

/// Returns the host of a registry's API. For Docker Hub, it is not the host in image references.
pub(super) fn api_host(host: &str) -> &str {
    if host == "docker.io" {
        "registry-1.docker.io"
    } else {
        host
    }
}

fn mirror_url(host: &str, mirror: &str) -> Result<Url, Failure> {
    check_mirror_url(mirror)
        .map_err(|fault| Failure::usage(format!("upstreams.{host}.mirror of the site: {fault}")))
}

fn check_mirror_url(mirror: &str) -> Result<Url, String> {
    let url = Url::parse(mirror).map_err(|error| format!("not a valid URL: {error}"))?;
    match url.scheme() {
        // URLs appear in messages and reports, so they must not contain secrets
        _ if has_userinfo(&url) => {
            Err("a URL with a user name is refused; use `credentials` next to it".into())
        }
        "http" | "https" if url.has_host() => Ok(url),
        _ => Err("write http://… or https://…".into()),
    }
}

/// Replaces the scheme `oci` by `https`. The host stays the same.
fn oci_to_https(url: &str) -> String {
    match url.strip_prefix("oci://") {
        Some(rest) => format!("https://{rest}"),
        None => url.to_owned(),
    }
}

/// Whether the `HOST[:PORT]` that a user wrote includes this registry host; without a port it
/// includes all ports.
fn covers(written: &str, host: &str) -> bool {
    written == host || is_host_with_port(host, written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_without_a_port_covers_all_ports() {
        for (written, host, is_covered) in [
            ("reg.test", "reg.test", true),
            ("reg.test", "reg.test:5000", true),
            ("reg.test:5000", "reg.test:5000", true),
            ("reg.test:5000", "reg.test", false),
            ("reg.test:5000", "reg.test:5001", false),
            ("reg", "reg.test:5000", false),
            ("[::1]", "[::1]", true),
            ("[::1]", "[::1]:5000", true),
            ("[::1]:5000", "[::1]", false),
            ("[:", "[::1]", false),
            ("[", "[::1]:5000", false),
        ] {
            assert_eq!(covers(written, host), is_covered, "{written} {host}");
        }
    }
}
