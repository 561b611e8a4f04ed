//! Sends a request once, and follows redirects hop by hop.

use super::body::{HttpResponse, RequestBody};
use super::error::{ErrorKind, HttpError, host_port, redacted_url};
use super::explain;
use super::ledger::{Contact, RequestPurpose};
use super::named_targets::{Led, refused_name};
use super::proxy::ProxyUrl;
use super::proxy_sign_in::Turn;
use super::request::HttpRequest;
use super::retry;
use super::transport::Transport;
use super::upload_source::{read_for_upload, stream_for_upload};
use super::upload_watch::{lent_while_waiting, watched};
use futures_util::StreamExt;
use reqwest::header::{ACCEPT_ENCODING, AUTHORIZATION, CONTENT_LENGTH, HeaderValue, LOCATION};
use reqwest::{Method, StatusCode};
use std::sync::Arc;
use url::Url;

impl Transport {
    /// Sends `request` once and follows redirects: of GET and HEAD, and those that keep the method
    /// (307 and 308) of all.
    pub(super) async fn follow(&self, request: &HttpRequest) -> Result<HttpResponse, HttpError> {
        let mut hop = request.clone();
        let mut led_by = self.led_by(request).await;
        for _ in 0..=self.limits().redirects {
            let response = self
                .once(&hop, led_by.as_deref().map(|by| Led { by }))
                .await?;
            let keeps = matches!(response.status.as_u16(), 307 | 308);
            let reads = matches!(hop.method, Method::GET | Method::HEAD);
            let follows = response.status.is_redirection() && (keeps || reads);
            let Some(location) = response.header(LOCATION.as_str()).filter(|_| follows) else {
                return Ok(response);
            };
            let invalid = |words: String| HttpError::new(ErrorKind::Invalid, words).at(&hop.url);
            let target = hop.url.join(location).map_err(|error| {
                invalid("redirect to something that is no URL".into()).caused_by(error)
            })?;
            if hop.url.scheme() == "https" && target.scheme() != "https" {
                let (shown, scheme) = (redacted_url(&target), target.scheme());
                return Err(invalid(format!(
                    "it redirects to {shown}, from https to {scheme}; refused"
                )));
            }
            if target.origin() != hop.url.origin() {
                if request.secret {
                    let shown = redacted_url(&target);
                    let words = format!(
                        "it redirects to another host, {shown}, where no secret follows; refused"
                    );
                    return Err(invalid(words));
                }
                hop.headers.remove(AUTHORIZATION);
                let own = request
                    .elsewhere
                    .iter()
                    .find(|(origin, _)| *origin == target.origin());
                if let Some(value) = own.and_then(|(_, header)| HeaderValue::from_str(header).ok())
                {
                    hop.headers.insert(AUTHORIZATION, value);
                }
                led_by = response.is_public.then(|| host_port(&hop.url));
                hop.purpose = RequestPurpose::Redirect;
                hop.named_by = request
                    .named_by
                    .clone()
                    .or_else(|| Some(host_port(&request.url)));
            }
            hop.url = target;
            response.discard().await;
        }
        let words = format!("more than {} redirects", self.limits().redirects);
        Err(HttpError::new(ErrorKind::Invalid, words).at(&request.url))
    }

    /// Sends `request` once. `led` says that an answer of a public host named its URL.
    async fn once(
        &self,
        request: &HttpRequest,
        led: Option<Led<'_>>,
    ) -> Result<HttpResponse, HttpError> {
        let url = &request.url;
        let route = self.proxies().proxy_for(url);
        let client = self.client_for(url, route, led.as_ref())?;
        let busy = self.0.activity.busy();
        // opened before the slot is taken: no slot of the destination waits for a source that
        // cannot be opened
        let stream = match &request.body {
            RequestBody::Stream { open, .. } => {
                Some(stream_for_upload(read_for_upload(open()).await?))
            }
            _ => None,
        };
        let turn = match route {
            Some(proxy) => self.proxy_sign_in(proxy).enter(proxy, url).await?,
            None => None,
        };
        let limiter = self.limiter(url, request.slot_class());
        drop(busy);
        let slot = Arc::new(limiter.slot().await);
        let _busy = self.0.activity.busy();
        let given_up = || self.0.lost_hosts.check(&host_port(url));
        let refusal = limiter.refusal((request.metered, request.origin.as_deref()));
        if let Some(error) = refusal.or_else(given_up) {
            return Err(error);
        }
        let asked = tokio::time::Instant::now();
        let contact = Contact::new(url, request.origin.clone(), route.map(ProxyUrl::shown));
        let entry = self
            .0
            .ledger
            .request(contact, request.purpose, request.named_by.as_deref());
        let mut builder = client
            .request(request.method.clone(), url.clone())
            .headers(request.headers.clone())
            .header(ACCEPT_ENCODING, "identity");
        let limits = self.limits();
        let limit = if route.is_some() {
            limits.first_byte_proxied
        } else {
            limits.first_byte
        };
        let sent = match &request.body {
            RequestBody::Empty => {
                if matches!(request.method, Method::POST | Method::PUT | Method::PATCH) {
                    builder = builder.header(CONTENT_LENGTH, 0);
                }
                tokio::time::timeout(limit, builder.send()).await
            }
            RequestBody::Bytes(bytes) => {
                self.0.ledger.bytes(&entry, bytes.len() as u64);
                tokio::time::timeout(limit, builder.body(bytes.clone()).send()).await
            }
            RequestBody::Stream { length, .. } => {
                let stream = stream.unwrap_or_else(|| futures_util::stream::empty().boxed());
                let stream = lent_while_waiting(stream, Arc::downgrade(&slot));
                let (body, watch) = watched(stream, *length, self.0.ledger.clone(), entry.clone());
                let sending = builder.header(CONTENT_LENGTH, *length).body(body).send();
                tokio::select! {
                    sent = sending => match watch.failure() {
                        Some(error) => return Err(error),
                        None => Ok(sent),
                    },
                    () = watch.stalled(limits.idle, limits.upload_answer) => {
                        return Err(HttpError::new(ErrorKind::Network, "the upload stalled").at(url));
                    }
                }
            }
        };
        let inner = match sent {
            Ok(Ok(inner)) => Ok(inner),
            Ok(Err(error)) => {
                if let Some(refused) = led.and_then(|led| refused_name(url, &led, &error)) {
                    return Err(refused);
                }
                let hung_up = !error.is_connect();
                let explained =
                    explain::failure(url, route, &self.tls_profile(url, route), error).await;
                Err(explained.hung_up(hung_up))
            }
            Err(_) => {
                let words = format!("nothing was answered for {} s", limit.as_secs());
                Err(HttpError::new(ErrorKind::Network, words).at(url))
            }
        };
        let inner = match route {
            Some(proxy) => self.through_proxy(proxy, url, turn, inner)?,
            None => inner?,
        };
        let is_public = self.note_peer(url, route, inner.remote_addr());
        // a host that breaks off every body has not answered yet
        let has_body = inner.status().is_success() && request.method != Method::HEAD;
        let put_off = inner.status() == StatusCode::TOO_MANY_REQUESTS;
        if !has_body && !put_off && !retry::is_failing(inner.status()) {
            self.0.lost_hosts.answered(&host_port(url));
        }
        Ok(HttpResponse {
            method: request.method.clone(),
            via: route.map(ProxyUrl::shown),
            asked,
            status: inner.status(),
            headers: inner.headers().clone(),
            url: url.clone(),
            is_public,
            inner,
            transport: self.clone(),
            entry,
            // a HEAD has no body to wait for
            slot: (request.method != Method::HEAD).then_some(slot),
        })
    }

    /// An answer through a proxy: the proxy's own refusals are errors, and its sign-in learns from
    /// all of them.
    fn through_proxy(
        &self,
        proxy: &ProxyUrl,
        url: &Url,
        turn: Option<Turn>,
        answer: Result<reqwest::Response, HttpError>,
    ) -> Result<reqwest::Response, HttpError> {
        let answer = answer.and_then(|inner| {
            let refusal = explain::refusal_in_answer(url, proxy, inner.status(), inner.headers());
            refusal.map_or(Ok(inner), Err)
        });
        self.proxy_sign_in(proxy)
            .learn(proxy, turn.is_some(), answer.as_ref().map(|_| ()));
        answer
    }
}
