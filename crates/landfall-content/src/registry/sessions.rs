//! The sessions of a run: which one a host gets, by its name, its mirror and its scheme.

use super::keychain::Keychain;
use super::registry_url::BaseUrl;
use super::session::RegistrySession;
use super::setup_error::{MirrorFault, SetupError};
use landfall_http::{ErrorKind, HttpError, OnceMap, Transport, host_port};
use landfall_model::config::Site;
use landfall_model::has_userinfo;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use url::Url;

/// All sessions of a run.
pub struct RegistrySessions {
    transport: Transport,
    keychain: Arc<Keychain>,
    mirrors: BTreeMap<String, Url>,
    /// The hosts whose mirrors list all tags.
    whole_lists: BTreeSet<String>,
    plain: Vec<String>,
    /// The hosts that the site has settings for.
    in_site: BTreeSet<String>,
    /// By host, and whether its mirror may stand in.
    open: OnceMap<(String, bool), Arc<RegistrySession>>,
}

impl RegistrySessions {
    /// No session yet. `plain` names the hosts that the user allowed plain http for.
    ///
    /// # Errors
    /// A mirror of the site that is no URL.
    pub fn new(
        transport: Transport,
        keychain: Arc<Keychain>,
        site: Option<&Site>,
        plain: Vec<String>,
    ) -> Result<RegistrySessions, SetupError> {
        let (mut mirrors, mut whole_lists) = (BTreeMap::new(), BTreeSet::new());
        for (host, upstream) in site.iter().flat_map(|site| &site.upstreams) {
            if let Some(mirror) = &upstream.mirror {
                mirrors.insert(host.clone(), mirror_url(host, mirror)?);
            }
            if upstream.lists_all_tags {
                whole_lists.insert(host.clone());
            }
        }
        let in_site = site
            .iter()
            .flat_map(|site| site.upstreams.keys().cloned())
            .collect();
        Ok(RegistrySessions {
            transport,
            keychain,
            mirrors,
            whole_lists,
            plain,
            in_site,
            open: OnceMap::default(),
        })
    }

    /// The same without any account.
    #[must_use]
    pub fn without_accounts(&self) -> RegistrySessions {
        RegistrySessions {
            transport: self.transport.clone(),
            keychain: Arc::default(),
            mirrors: self.mirrors.clone(),
            whole_lists: self.whole_lists.clone(),
            plain: self.plain.clone(),
            in_site: self.in_site.clone(),
            open: OnceMap::default(),
        }
    }

    /// Whether the `upstreams` of the site name `host`.
    pub fn is_in_site(&self, host: &str) -> bool {
        self.in_site.contains(host)
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
    /// When landfall cannot find out how to reach it.
    pub async fn upstream(&self, host: &str) -> Result<Arc<RegistrySession>, HttpError> {
        self.session(host, true).await
    }

    /// The session to write to `host`, never through a mirror.
    ///
    /// # Errors
    /// When landfall cannot find out how to reach it.
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
        let (transport, keychain) = (self.transport.clone(), self.keychain.clone());
        let base = self.find_base_url(host, mirrored).await?;
        if !mirrored {
            transport.add_own_host(&base.url);
        }
        Ok(RegistrySession::new(host, base, transport, keychain))
    }

    /// Where a registry is read from, through its mirror where it has one.
    ///
    /// # Errors
    /// When landfall cannot find out how to reach it.
    pub async fn base_url(&self, host: &str) -> Result<BaseUrl, HttpError> {
        self.find_base_url(host, true).await
    }

    async fn find_base_url(&self, host: &str, mirrored: bool) -> Result<BaseUrl, HttpError> {
        if let Some(mirror) = self.mirrors.get(host).filter(|_| mirrored) {
            let lists_all_tags = self.whole_lists.contains(host);
            let origin = Some(host.to_owned());
            return Ok(BaseUrl {
                url: mirror.clone(),
                origin,
                trusted: true,
                lists_all_tags,
            });
        }
        let url = self.transport.base_url(real_host(host)).await?;
        let trusted = url.scheme() == "https" || self.is_plain(host);
        Ok(BaseUrl {
            url,
            origin: None,
            trusted,
            lists_all_tags: true,
        })
    }

    /// Whether the user allowed plain http for `host`: then its account goes over it.
    pub fn is_plain(&self, host: &str) -> bool {
        self.plain.iter().any(|plain| covers(plain, host))
    }

    /// Where a registry is read from, as far as settings tell: nothing is asked.
    ///
    /// # Errors
    /// A host that can stand in no URL.
    pub fn expected_url(&self, host: &str) -> Result<Url, HttpError> {
        match self.mirrors.get(host) {
            Some(mirror) => Ok(mirror.clone()),
            None => self.transport.configured_url(real_host(host)),
        }
    }

    /// Checks that `url`, which the file at the URL `by` names, leads from no public host to a
    /// private address, unless the site has a mirror for it. Of an `oci` URL, its registry is
    /// checked.
    ///
    /// # Errors
    /// When it does, and the site does not allow it; a URL of another scheme.
    pub async fn check_named_target(&self, url: &str, by: &str) -> Result<(), HttpError> {
        let https = |url: &str| match url.strip_prefix("oci://") {
            Some(rest) => format!("https://{rest}"),
            None => url.to_owned(),
        };
        let ((target, mirrored), (by, _)) =
            (self.file_url(&https(url))?, self.file_url(&https(by))?);
        match mirrored {
            Some(_) => Ok(()),
            None => {
                self.transport
                    .check_named_target(&target, &host_port(&by))
                    .await
            }
        }
    }

    /// The URL to fetch a plain file from, and the origin that a mirror replaces.
    ///
    /// # Errors
    /// When `url` is no http or https URL.
    pub fn file_url(&self, url: &str) -> Result<(Url, Option<String>), HttpError> {
        let parsed = Url::parse(url)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
            .ok_or_else(|| {
                HttpError::new(ErrorKind::Local, format!("'{url}' is no http or https URL"))
            })?;
        let host = parsed.host_str().unwrap_or_default();
        let with_port = parsed
            .port()
            .map_or(host.to_owned(), |port| format!("{host}:{port}"));
        let Some(mirror) = self
            .mirrors
            .get(&with_port)
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
        Ok((target, Some(with_port)))
    }
}

/// The host that a registry's API is at.
fn real_host(host: &str) -> &str {
    if host == "docker.io" {
        "registry-1.docker.io"
    } else {
        host
    }
}

fn mirror_url(host: &str, mirror: &str) -> Result<Url, SetupError> {
    let wrong = |fault| SetupError::Mirror {
        host: host.into(),
        fault,
    };
    let url = Url::parse(mirror).map_err(|error| wrong(error.into()))?;
    match url.scheme() {
        _ if has_userinfo(&url) => Err(wrong(MirrorFault::UserName)),
        "http" | "https" if url.has_host() => Ok(url),
        _ => Err(wrong(MirrorFault::Scheme)),
    }
}

/// Whether a `HOST[:PORT]` that the user wrote means this registry host.
fn covers(written: &str, host: &str) -> bool {
    written == host
        || host
            .rsplit_once(':')
            .is_some_and(|(name, _)| name == written && !written.contains(':'))
}
