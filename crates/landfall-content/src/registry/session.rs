//! A session with one registry host: where it is, and how a request is signed in there.

use super::auth::Auth;
use super::keychain::Keychain;
use super::list_responses::ReferrersResponse;
use super::registry_url::BaseUrl;
use super::scope::TokenScope;
use super::upload_session::{BodyLimit, SelfMounts};
use landfall_http::{
    ErrorKind, HttpError, HttpRequest, HttpResponse, OnceMap, SlotClass, Transport, host_port,
    redacted_url,
};
use reqwest::StatusCode;
use reqwest::header::AUTHORIZATION;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tracing::debug;
use url::Url;

/// A session with one registry host. Its users share connections, tokens and what it learned.
pub struct RegistrySession {
    /// The host as it stands in references.
    host: String,
    /// A mirror's path, which goes between `/v2/` and the repository.
    prefix: String,
    pub(super) base: Url,
    origin: Option<String>,
    pub(super) transport: Transport,
    pub(super) auth: Auth,
    pub(super) body_limit: BodyLimit,
    pub(super) self_mounts: SelfMounts,
    /// The answer for all subjects of a repository, or `None` if the registry lists what refers to
    /// each.
    pub(super) lists_referrers: OnceMap<String, Option<ReferrersResponse>>,
    /// Whether its lists of tags are whole.
    lists_all_tags: bool,
}

impl RegistrySession {
    /// A session with `host` at `base`.
    pub(super) fn new(
        host: &str,
        base: BaseUrl,
        transport: Transport,
        keychain: Arc<Keychain>,
    ) -> RegistrySession {
        let BaseUrl {
            url: base,
            origin,
            trusted,
            lists_all_tags,
        } = base;
        let prefix = match &origin {
            Some(_) => base.path().trim_matches('/').to_owned(),
            None => String::new(),
        };
        let account_host = match &origin {
            Some(_) => host_of(&base),
            None => host.to_owned(),
        };
        let auth = Auth::new(
            account_host,
            base.clone(),
            transport.clone(),
            keychain,
            trusted,
        );
        RegistrySession {
            host: host.into(),
            prefix,
            base,
            origin,
            transport,
            auth,
            body_limit: BodyLimit::default(),
            self_mounts: SelfMounts::default(),
            lists_referrers: OnceMap::default(),
            lists_all_tags,
        }
    }

    /// The host as it stands in references.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// `host:port` that is asked.
    pub fn address(&self) -> String {
        host_port(&self.base)
    }

    /// A note for a registry that speaks plain http although nothing says so: landfall found out by
    /// probing.
    pub fn plain_http_note(&self) -> Option<String> {
        (self.base.scheme() == "http" && !self.auth.trusted).then(|| {
            format!(
                "note: {host} speaks plain http, which landfall found out by probing: nothing protects what is sent there, and \
                 no credentials are sent; add `plainHTTP: true` under registry in the site (or say --plain-http {host}), which \
                 `landfall render` needs too",
                host = self.host
            )
        })
    }

    /// Whether its lists of tags are whole. A mirror may be a cache that lists no more than it
    /// holds.
    pub fn lists_all_tags(&self) -> bool {
        self.lists_all_tags
    }

    /// The repository with the address that is asked for it, such as
    /// `cache.example:443/quay/prometheus/alertmanager`.
    pub fn repository_address(&self, repository: &str) -> String {
        format!("{}/{}", self.address(), self.full(repository))
    }

    /// The repository as the registry knows it: with the mirror's path before it.
    pub(super) fn full(&self, repository: &str) -> String {
        if self.prefix.is_empty() {
            repository.into()
        } else {
            format!("{}/{repository}", self.prefix)
        }
    }

    /// The URL of `rest` in the repository.
    pub(super) fn url(&self, repository: &str, rest: &str) -> Result<Url, HttpError> {
        self.base
            .join(&format!("/v2/{}/{rest}", self.full(repository)))
            .map_err(|error| {
                let words = format!("'{repository}' cannot stand in a URL");
                HttpError::new(ErrorKind::Invalid, words).caused_by(error)
            })
    }

    /// Sends a request with the authentication that the registry wants. It answers a challenge in
    /// the middle of a run too, and sends the request again, body included.
    pub(super) async fn send(
        &self,
        mut request: HttpRequest,
        scope: &TokenScope,
    ) -> Result<HttpResponse, HttpError> {
        request.origin = self.origin.clone();
        if request.url.origin() != self.base.origin() {
            // an upload that continues at another host: it gets no credentials, and its challenge
            // is not ours
            request.named_by = Some(self.address());
            return self.transport.send(&request).await;
        }
        let (mut signer, mut turn) = self.auth.enter(scope).await;
        let (mut challenges, mut refusals, mut elsewhere) = (0, 0, 0);
        loop {
            let signed = self.auth.authorization(scope, &signer).await?;
            request.elsewhere = self.auth.foreign.for_scope(scope).await;
            let sent = match &signed {
                Some(signed) => request.clone().header(AUTHORIZATION, &signed.header),
                None => request.clone(),
            };
            // requests that wait for the turn may hold slots of this host
            let class = if turn.is_some() {
                SlotClass::SignIn
            } else {
                sent.class
            };
            let response = self.transport.send(&HttpRequest { class, ..sent }).await?;
            let is_redirected = response.url.origin() != request.url.origin();
            if response.status != StatusCode::UNAUTHORIZED || is_redirected {
                if let Some(signed) = &signed {
                    signed.taken.store(true, Ordering::Relaxed);
                }
                signer.standing.accepted(signed.is_some());
                turn = None;
            }
            if response.status != StatusCode::UNAUTHORIZED {
                return Ok(response);
            }
            // the answer is read to its end before anything else is asked: it holds a slot of its
            // host
            let (headers, url) = (response.headers.clone(), response.url.clone());
            response.discard().await;
            challenges += 1;
            debug!(
                url = %redacted_url(&url),
                challenges,
                was_signed = signed.is_some(),
                "401: signing in"
            );
            if is_redirected {
                elsewhere += 1;
                if elsewhere > self.transport.limits().attempts {
                    let words = format!(
                        "redirected to {}, which refuses the token of its own realm",
                        redacted_url(&url)
                    );
                    return Err(HttpError::new(ErrorKind::Denied, words)
                        .at(&url)
                        .about(&*self.host));
                }
                self.auth
                    .challenged_elsewhere(&headers, &url, scope, &request.elsewhere)
                    .await?;
                continue;
            }
            // a token that was good before has expired, and other workers may use up the next one
            // too
            let fresh = signed
                .as_ref()
                .is_some_and(|signed| !signed.taken.load(Ordering::Relaxed));
            refusals += u32::from(fresh);
            let header = signed.as_ref().map(|signed| signed.header.as_str());
            if refusals > 1 || challenges > self.transport.limits().waits {
                return Err(self.auth.refused_again(scope, &signer, header).await);
            }
            if fresh {
                // by a clock that is behind, a new token is not good yet
                tokio::time::sleep(self.transport.retry_policy().pause(1)).await;
            }
            self.auth
                .challenged(&headers, &url, scope, &signer, header)
                .await?;
            // a turn is kept, unless the registry asks for an account now
            if turn.is_none() || !self.auth.is_signed_by(scope, &signer).await {
                drop(turn.take());
                (signer, turn) = self.auth.enter(scope).await;
            }
        }
    }

    /// The scope of a request that reads, or reads and writes.
    pub(super) fn scope(&self, repository: &str, push: bool) -> TokenScope {
        TokenScope {
            repository: self.full(repository),
            push,
            delete: false,
            from: None,
        }
    }
}

/// `host[:port]` of a URL.
pub(super) fn host_of(url: &Url) -> String {
    let port = url
        .port()
        .map(|port| format!(":{port}"))
        .unwrap_or_default();
    format!("{}{port}", url.host_str().unwrap_or("?"))
}
