//! A session with one registry host: its URL, and the authentication of requests.

use super::auth::Auth;
use super::challenge::TokenScope;
use super::error_codes::known_cause;
use super::keychain::Keychain;
use super::manifests::ManifestHeads;
use super::response::BaseUrl;
use super::token_service::BearerToken;
use super::upload::{BodyLimit, SelfMounts};
use futures_util::future::BoxFuture;
use landfall_http::{
    ErrorKind, HttpError, HttpRequest, HttpResponse, OnceMap, SlotClass, Transport, host_of,
    host_port, redacted_url,
};
use landfall_model::locked;
use reqwest::StatusCode;
use reqwest::header::AUTHORIZATION;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use tokio::time::Instant;
use tracing::debug;
use url::{Origin, Url};

/// A session with one registry host. Its users share connections, tokens and the detected
/// properties of the registry.
pub struct RegistrySession {
    /// The host as in image references.
    host: String,
    /// The path of a mirror, which is inserted between `/v2/` and the repository.
    prefix: String,
    pub(super) base: Url,
    origin: Option<String>,
    pub(super) transport: Transport,
    pub(super) auth: Auth,
    pub(super) body_limit: BodyLimit,
    pub(super) self_mounts: SelfMounts,
    /// Whether a PUT with a whole blob was refused.
    pub(super) refuses_whole_puts: AtomicBool,
    /// The host in the `Location` of uploads, once it turned out that it cannot be used.
    pub(super) misdirected_uploads: OnceLock<String>,
    /// For each repository, whether the first request for referrers showed that there is no API.
    pub(super) lacks_referrers_api: OnceMap<String, bool>,
    /// Whether tag lists are complete.
    lists_all_tags: bool,
    /// The repositories where a HEAD of a manifest failed whose GET succeeded.
    pub(super) refused_heads: Mutex<HashSet<String>>,
    pub(super) manifest_heads: ManifestHeads,
    /// Whether the registry lists tags: a list succeeded, or two requests for a list failed with
    /// 500 before any succeeded.
    pub(super) lists_tags: OnceLock<Result<(), HttpError>>,
    /// The turn to request a list of tags, until `lists_tags` is known. Otherwise all repositories
    /// would request theirs before the first failure is known.
    pub(super) first_tags: tokio::sync::Mutex<()>,
}

impl RegistrySession {
    /// Returns a session with `host` at `base`.
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
        // a mirror gets the credentials of its own address, not those of the host that it replaces
        let account_host = match &origin {
            Some(_) => host_of(&base).to_owned(),
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
            refuses_whole_puts: AtomicBool::new(false),
            misdirected_uploads: OnceLock::new(),
            lacks_referrers_api: OnceMap::default(),
            lists_all_tags,
            refused_heads: Mutex::default(),
            manifest_heads: ManifestHeads::default(),
            lists_tags: OnceLock::new(),
            first_tags: tokio::sync::Mutex::default(),
        }
    }

    /// Returns the host as in image references.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the `host:port` that requests are sent to.
    pub fn address(&self) -> String {
        host_port(&self.base)
    }

    /// Returns a note for a registry whose plain http was found by probing rather than configured.
    pub fn plain_http_note(&self) -> Option<String> {
        (self.base.scheme() == "http" && !self.auth.trusted).then(|| {
            format!(
                "note: {host} uses plain http (found by probing): traffic is not protected, and no \
                 credentials are sent; add `plainHTTP: true` under registry in the site (or use \
                 --plain-http {host}); `landfall render` needs this setting too",
                host = self.host
            )
        })
    }

    /// Whether tag lists are complete. A caching mirror may list only the tags that it has cached.
    pub fn lists_all_tags(&self) -> bool {
        self.lists_all_tags
    }

    /// Returns the repository with the address that requests are sent to, such as
    /// `cache.example:443/quay/prometheus/alertmanager`.
    pub fn repository_address(&self, repository: &str) -> String {
        format!("{}/{}", self.address(), self.full(repository))
    }

    /// Returns the repository with the path of the mirror.
    pub(super) fn full(&self, repository: &str) -> String {
        if self.prefix.is_empty() {
            repository.into()
        } else {
            format!("{}/{repository}", self.prefix)
        }
    }

    /// Returns the URL of a path in the repository.
    pub(super) fn url(&self, repository: &str, rest: &str) -> Result<Url, HttpError> {
        self.base
            .join(&format!("/v2/{}/{rest}", self.full(repository)))
            .map_err(|error| {
                let words = format!("'{repository}' is not valid in a URL");
                HttpError::new(ErrorKind::Invalid, words).caused_by(error)
            })
    }

    /// Sends a request with the authentication that the registry requires. Challenges are answered
    /// at any time of the run, and the request is sent again, including its body.
    //
    // Boxed like `Transport::send`: otherwise its code would be generated again for each caller.
    pub(super) fn send<'a>(
        &'a self,
        request: HttpRequest,
        scope: &'a TokenScope,
    ) -> BoxFuture<'a, Result<HttpResponse, HttpError>> {
        Box::pin(self.send_signed_in(request, scope))
    }

    async fn send_signed_in(
        &self,
        mut request: HttpRequest,
        scope: &TokenScope,
    ) -> Result<HttpResponse, HttpError> {
        request.origin = self.origin.clone();
        if request.url.origin() != self.base.origin() {
            // an upload that continues at another host gets no credentials, and challenges of that
            // host are not answered
            request.named_by = Some(self.address());
            return self.transport.send(&request).await;
        }
        let (mut account, mut turn) = self.auth.enter(scope).await;
        let mut may_sign_in_unasked = self.auth.is_anonymous();
        let mut challenges = 0;
        let mut denials = 0;
        let mut challenges_elsewhere = 0;
        loop {
            let signed = self.auth.authorization(scope, &account).await?;
            request.elsewhere = self.auth.foreign.for_scope(scope).await;
            let header = signed.as_ref().map(|signed| signed.header.as_str());
            let sent = request.clone().optional_header(AUTHORIZATION, header);
            // requests that wait for this one may hold all ordinary slots of the host
            let class = if turn.is_some() {
                SlotClass::SignIn
            } else {
                sent.class
            };
            let response = self.transport.send(&HttpRequest { class, ..sent }).await?;
            let is_redirected = response.url.origin() != request.url.origin();
            let is_hidden = may_sign_in_unasked
                && signed.is_none()
                && !is_redirected
                && matches!(
                    response.status,
                    StatusCode::FORBIDDEN | StatusCode::NOT_FOUND
                );
            if is_hidden && let Some(signer) = self.auth.unasked_account(scope).await {
                may_sign_in_unasked = false;
                // it holds a slot of its host, which the sign-in may need
                response.discard().await;
                Box::pin(self.auth.sign_in_unasked(scope, &signer)).await;
                drop(turn.take());
                (account, turn) = self.auth.enter(scope).await;
                continue;
            }
            // a 401 from the target of a redirect says nothing about the account: this registry
            // accepted it
            if response.status != StatusCode::UNAUTHORIZED || is_redirected {
                if let Some(signed) = &signed {
                    signed.accepted.store(true, Ordering::Relaxed);
                }
                account.state.request_accepted(signed.is_some());
                // requests that wait may be sent now, before the body of this response is read
                turn = None;
            }
            if response.status != StatusCode::UNAUTHORIZED {
                return Ok(response);
            }
            // the response holds a slot of its host, so it is discarded before the next request
            let headers = response.headers.clone();
            let url = response.url.clone();
            let words = response.server_words().await;
            let said = match known_cause(401, &words.errors, &words.text) {
                Some(advice) => format!("{}; {advice}", words.text),
                None => words.text,
            };
            challenges += 1;
            debug!(
                url = %redacted_url(&url),
                challenges,
                was_signed = signed.is_some(),
                "401: signing in"
            );
            if is_redirected {
                challenges_elsewhere += 1;
                if challenges_elsewhere > self.transport.limits().attempts {
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
            // a token that was accepted before has expired; only the denial of a new token counts
            let is_fresh = signed
                .as_ref()
                .is_some_and(|signed| !signed.accepted.load(Ordering::Relaxed));
            denials += u32::from(is_fresh);
            if denials > 1 || challenges > self.transport.limits().waits {
                return Err(self.auth.denied_again(scope, &account, header, &said).await);
            }
            if is_fresh {
                // if the clock of the registry is behind, a new token is not valid yet
                tokio::time::sleep(self.transport.retry_policy().pause(1)).await;
            }
            self.auth
                .challenged(&headers, &url, scope, &account, header, &said)
                .await?;
            // the turn is kept unless the request now uses another account
            if turn.is_none() || !self.auth.is_current(scope, &account).await {
                drop(turn.take());
                (account, turn) = self.auth.enter(scope).await;
            }
        }
    }

    /// Returns the scope of a request that reads, or with `push` also writes.
    pub(super) fn scope(&self, repository: &str, push: bool) -> TokenScope {
        TokenScope {
            repository: self.full(repository),
            push,
            ..TokenScope::default()
        }
    }

    /// Returns the scope of a `DELETE` request. docker-registry requires the action `delete` for
    /// manifests and for uploads alike.
    pub(super) fn delete_scope(&self, repository: &str) -> TokenScope {
        TokenScope {
            delete: true,
            ..self.scope(repository, false)
        }
    }
}

// Tokens for redirected requests. A registry such as registry.k8s.io may redirect to a host that
// has its own token realm. There is one token for each scope and host, shared by all workers. The
// tokens are anonymous, because no credentials are sent to another host.

/// The tokens for hosts that a registry redirects to.
#[derive(Default)]
pub(super) struct RedirectTokens(Mutex<HashMap<TokenScope, HashMap<Origin, Arc<TokenSlot>>>>);

type TokenSlot = tokio::sync::Mutex<Option<BearerToken>>;

impl RedirectTokens {
    /// Returns the slot for the token of this scope at a host. While one request holds its lock and
    /// fetches the token, other requests wait for the token.
    pub(super) fn slot(&self, scope: &TokenScope, origin: Origin) -> Arc<TokenSlot> {
        let mut all = locked(&self.0);
        all.entry(scope.clone())
            .or_default()
            .entry(origin)
            .or_default()
            .clone()
    }

    /// Returns the `Authorization` headers of redirected requests of this scope, by host.
    pub(super) async fn for_scope(&self, scope: &TokenScope) -> Vec<(Origin, String)> {
        // the map is unlocked before waiting for the tokens, each of which may be fetched right now
        let slots: Vec<(Origin, Arc<TokenSlot>)> = {
            let all = locked(&self.0);
            let slots = all.get(scope).into_iter().flatten();
            slots
                .map(|(origin, slot)| (origin.clone(), slot.clone()))
                .collect()
        };
        let mut found = Vec::new();
        for (origin, slot) in slots {
            if let Some(token) = slot
                .lock()
                .await
                .as_ref()
                .filter(|token| token.until > Instant::now())
            {
                found.push((origin, token.authorization.header.clone()));
            }
        }
        found
    }
}
