//! Sends a request once, and follows redirects hop by hop.

use crate::body::{
    ByteStream, HttpResponse, RequestBody, in_pieces, is_reading_for_upload,
    lend_while_source_waits, no_response, read_for_upload, stream_for_upload, watch_upload,
};
use crate::error::{ErrorKind, HttpError, host_port, redacted_url};
use crate::host_limiter::{HostSlot, QuotaKey, SlotClass};
use crate::ledger::{Contact, RequestPurpose, rounded};
use crate::private_targets::refused_name;
use crate::proxy::ProxyUrl;
use crate::proxy_sign_in::ProxySignInTurn;
use crate::transport::Transport;
use crate::{explain, retry};
use landfall_model::report::one_line;
use landfall_model::{keeping_https, redact_urls};
use reqwest::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, HeaderMap,
    HeaderName, HeaderValue, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, RANGE,
    SET_COOKIE,
};
use reqwest::{Method, StatusCode};
use std::sync::Arc;
use tokio::time::Instant;
use tracing::{debug, info};
use url::{Origin, Url};

/// The headers that another host gets after a redirect: they describe the request and contain no
/// secret.
const FORWARDED_HEADERS: [HeaderName; 9] = [
    ACCEPT,
    CONTENT_RANGE,
    CONTENT_TYPE,
    HeaderName::from_static("git-protocol"),
    IF_MATCH,
    IF_MODIFIED_SINCE,
    IF_NONE_MATCH,
    IF_RANGE,
    RANGE,
];

/// The headers of a request that is redirected to another host.
fn headers_for_another_host(headers: &HeaderMap) -> HeaderMap {
    let forwarded = headers
        .iter()
        .filter(|(name, _)| FORWARDED_HEADERS.contains(name));
    forwarded
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// Whether a redirect leads from plain http to https at the same host, which has got the secrets of
/// the request already.
fn is_upgrade(from: &Url, to: &Url) -> bool {
    let has_usual_port = |url: &Url, scheme: &str| url.scheme() == scheme && url.port().is_none();
    has_usual_port(from, "http") && has_usual_port(to, "https") && from.host() == to.host()
}

/// A request that may be sent now: it has a slot of its host.
struct Exchange<'a> {
    request: &'a HttpRequest,
    /// The proxy, or `None` for a direct connection.
    route: Option<&'a ProxyUrl>,
    named_by: Option<&'a str>,
    client: reqwest::Client,
    /// The body, if it is a stream.
    stream: Option<ByteStream>,
    /// The turn to try the proxy's account.
    turn: Option<ProxySignInTurn>,
    slot: Arc<HostSlot>,
}

impl Transport {
    /// Sends `request` once and follows redirects: all of them for GET, HEAD and requests whose
    /// `keeps_method` is set, and 307 and 308 for others. A `Location` with another status, such as
    /// 304, is not that of the content. `attempt` counts from 1, for the log.
    pub(super) async fn follow(
        &self,
        request: &HttpRequest,
        attempt: u32,
    ) -> Result<HttpResponse, HttpError> {
        let mut hop = request.clone();
        let mut named_by = self.named_by(request).await;
        let mut sets_cookies = false;
        for _ in 0..=self.limits().redirects {
            let response = self.send_once(&hop, named_by.as_deref(), attempt).await?;
            let is_followed = match response.status.as_u16() {
                300..=303 => {
                    request.keeps_method || matches!(hop.method, Method::GET | Method::HEAD)
                }
                307 | 308 => true,
                _ => false,
            };
            let Some(location) = response.location().filter(|_| is_followed) else {
                return Ok(response);
            };
            let target = hop.url.join(&location).map_err(|error| {
                let words = format!(
                    "it redirects to '{}', which is not a URL",
                    redact_urls(&one_line(&location))
                );
                HttpError::new(ErrorKind::Invalid, words)
                    .at(&hop.url)
                    .caused_by(error)
            })?;
            let kept = keeping_https(&hop.url, target.clone());
            // a redirect from https to http of the same URL is meant
            let target = if kept == hop.url { target } else { kept };
            // Without TLS, everything after the redirect could be read and changed on the way.
            // Other schemes, such as that of an FTP mirror, cannot be requested.
            let is_allowed = match target.scheme() {
                "https" => true,
                "http" => hop.url.scheme() == "http",
                _ => false,
            };
            if !is_allowed {
                let words = format!(
                    "it redirects to {}, from {} to {}; refused",
                    redacted_url(&target),
                    hop.url.scheme(),
                    target.scheme()
                );
                return Err(HttpError::new(ErrorKind::Invalid, words).at(&hop.url));
            }
            let is_same_host = target.origin() == hop.url.origin()
                || (request.secret && is_upgrade(&hop.url, &target));
            if !is_same_host {
                if request.secret {
                    let words = format!(
                        "it redirects to another host, {}, which must not get the secret; refused",
                        redacted_url(&target)
                    );
                    return Err(HttpError::new(ErrorKind::Invalid, words).at(&hop.url));
                }
                // distribution-spec: clients must not forward `Authorization` to another host.
                // Object stores also reject it, because a signed URL already is an authorization.
                // Headers that a git server named for its large files may have tokens, too.
                hop.headers = headers_for_another_host(&hop.headers);
                if let Some(value) = request.authorization_for(&target) {
                    hop.headers.insert(AUTHORIZATION, value);
                }
                named_by = response.is_public.then(|| host_port(&hop.url));
                hop.purpose = RequestPurpose::Redirect;
                hop.named_by = request
                    .named_by
                    .clone()
                    .or_else(|| Some(host_port(&request.url)));
            }
            hop.url = target;
            sets_cookies |= response.headers.contains_key(SET_COOKIE);
            response.discard().await;
        }
        let mut words = format!("more than {} redirects", self.limits().redirects);
        if sets_cookies {
            words += ", which set cookies: perhaps the host, or a proxy, requires a sign-in by a \
                      browser";
        }
        Err(HttpError::new(ErrorKind::Invalid, words).at(&request.url))
    }

    /// Waits until `request` may be sent, sends it once, and logs the outcome. `named_by` is the
    /// public host whose response named the URL of the request.
    async fn send_once(
        &self,
        request: &HttpRequest,
        named_by: Option<&str>,
        attempt: u32,
    ) -> Result<HttpResponse, HttpError> {
        let url = &request.url;
        let route = self.proxies().proxy_for(url);
        let client = self.client_for(url, route, named_by)?;
        let busy = self.0.activity.busy();
        // The source is opened first, so that no request holds a slot of the destination while it
        // waits for a source that cannot be opened.
        let stream = match &request.body {
            RequestBody::Stream { open, .. } => {
                Some(stream_for_upload(read_for_upload(open()).await?))
            }
            RequestBody::Empty | RequestBody::Bytes(_) => None,
        };
        let turn = match route {
            Some(proxy) => self.proxy_sign_in(proxy).enter(proxy, url).await?,
            None => None,
        };
        let limiter = self.limiter(url);
        // The wait for a slot ends only if another request ends, so it does not count as activity.
        drop(busy);
        let slot = Arc::new(limiter.acquire(request.slot_class()).await);
        let _busy = self.0.activity.busy();
        // Checked after the wait: the host may have been given up meanwhile.
        let unsent = limiter
            .deferral(request.quota_key())
            .or_else(|| self.0.lost_hosts.check(&host_port(url)));
        if let Some(error) = unsent {
            debug!(method = %request.method, url = %redacted_url(url), %error, "not sent");
            return Err(error);
        }
        let queued = slot.queued;
        let paused = slot.paused;
        let began = Instant::now();
        let result = self
            .exchange(Exchange {
                request,
                route,
                named_by,
                client,
                stream,
                turn,
                slot,
            })
            .await;
        let response = result.as_ref().ok();
        info!(
            method = %request.method,
            url = %redacted_url(url),
            status = response.map(|response| response.status.as_u16()),
            attempt,
            took = ?rounded(began.elapsed()),
            slot_wait = ?rounded(queued),
            pause = ?rounded(paused),
            class = ?request.slot_class(),
            via = response.and_then(|response| response.via.as_deref()),
            error = result.as_ref().err().map(tracing::field::display),
            "{}",
            if result.is_ok() { "answered" } else { "not answered" }
        );
        result
    }

    /// Sends a request that has a slot, and returns its response.
    async fn exchange(&self, exchange: Exchange<'_>) -> Result<HttpResponse, HttpError> {
        let Exchange {
            request,
            route,
            named_by,
            client,
            stream,
            turn,
            slot,
        } = exchange;
        let url = &request.url;
        let sent_at = Instant::now();
        let contact = Contact::new(url, request.origin.clone(), route.map(ProxyUrl::address));
        let ledger = &self.0.ledger;
        ledger.request(&contact, request.purpose, request.named_by.as_deref());
        // Without `identity`, some servers compress blobs, and digests and sizes do not match.
        let builder = client
            .request(request.method.clone(), url.clone())
            .headers(request.headers.clone())
            .header(ACCEPT_ENCODING, "identity");
        let limits = self.limits();
        // A proxy may download the whole body before it forwards any byte.
        let patience = if route.is_some() {
            limits.first_byte_proxied
        } else {
            limits.first_byte
        };
        let (stream, length, answer_within) = match &request.body {
            RequestBody::Empty => (None, 0, patience),
            RequestBody::Bytes(bytes) => {
                let pieces = in_pieces(bytes.clone());
                (Some(pieces), bytes.len() as u64, patience)
            }
            RequestBody::Stream { length, .. } => {
                let stream =
                    stream.map(|stream| lend_while_source_waits(stream, Arc::downgrade(&slot)));
                // after the last byte, a registry may hash or move a large blob before it answers
                (stream, *length, limits.upload_answer)
            }
        };
        let sent = match stream {
            None => {
                // distribution-spec: the POST that starts an upload and the empty PUT that ends it
                // have `Content-Length: 0`
                let has_length =
                    matches!(request.method, Method::POST | Method::PUT | Method::PATCH);
                let builder = if has_length {
                    builder.header(CONTENT_LENGTH, 0)
                } else {
                    builder
                };
                let sent = tokio::time::timeout(patience, builder.send()).await;
                sent.map_err(|_| no_response(patience))
            }
            Some(stream) => {
                let (body, watch) = watch_upload(stream, length, ledger.clone(), contact.clone());
                let sending = builder.header(CONTENT_LENGTH, length).body(body).send();
                // If the source fails, the connection breaks too; the source's error is the cause.
                tokio::select! {
                    sent = sending => match watch.failure() {
                        Some(error) => return Err(error),
                        None => Ok(sent),
                    },
                    error = watch.stalled(limits.idle, answer_within) => Err(error),
                }
            }
        };
        let answer = match sent {
            Ok(Ok(answer)) => Ok(answer),
            Err(timed_out) => Err(timed_out.at(url)),
            Ok(Err(error)) => {
                if let Some(named_by) = named_by
                    && let Some(refused) = refused_name(url, named_by, &error)
                {
                    return Err(refused);
                }
                let hung_up = !error.is_connect();
                let tls = self.tls_profile(url, route);
                let explained = explain::connection_error(url, route, &tls, error).await;
                Err(explained.hung_up(hung_up))
            }
        };
        let answer = match route {
            Some(proxy) => self.check_proxy_answer(proxy, url, turn, answer)?,
            None => answer?,
        };
        ledger.response(&contact, answer.status(), answer.headers());
        let is_public = self.note_peer(url, route, answer.remote_addr());
        // A host may break off every body, so a success with a body counts as an answer only later:
        // see `HttpResponse::stream`.
        let has_body = answer.status().is_success() && request.method != Method::HEAD;
        let is_postponed = answer.status() == StatusCode::TOO_MANY_REQUESTS;
        if !has_body && !is_postponed && !retry::is_failing(answer.status()) {
            self.0.lost_hosts.answered(&host_port(url));
        }
        Ok(HttpResponse {
            method: request.method.clone(),
            via: route.map(ProxyUrl::address),
            sent_at,
            status: answer.status(),
            headers: answer.headers().clone(),
            url: url.clone(),
            is_public,
            inner: answer,
            beginning: None,
            transport: self.clone(),
            contact,
            // The response to a HEAD has no body, so its slot is free at once.
            slot: (request.method != Method::HEAD).then_some(slot),
        })
    }

    /// Converts refusals of the proxy itself to errors, and reports every result to the proxy's
    /// sign-in.
    fn check_proxy_answer(
        &self,
        proxy: &ProxyUrl,
        url: &Url,
        turn: Option<ProxySignInTurn>,
        answer: Result<reqwest::Response, HttpError>,
    ) -> Result<reqwest::Response, HttpError> {
        let answer = answer.and_then(|answer| {
            let refusal = explain::refusal_in_answer(url, proxy, answer.status(), answer.headers());
            refusal.map_or(Ok(answer), Err)
        });
        self.proxy_sign_in(proxy)
            .learn(proxy, turn.is_some(), answer.as_ref().map(|_| ()));
        answer
    }
}

// A request, with everything that the transport needs to know about it.

/// A request, and how [`Transport::send`](crate::Transport::send) treats it.
#[derive(Clone)]
pub struct HttpRequest {
    /// The HTTP method. It stays the same when redirects are followed.
    pub method: Method,
    /// The URL of the first hop; redirects are followed from there.
    pub url: Url,
    /// The headers. A redirect to another origin drops `Authorization`, and others that may contain
    /// a secret.
    pub headers: HeaderMap,
    /// The body, which is sent again with each attempt.
    pub body: RequestBody,
    /// The purpose of the request, for the ledger.
    pub purpose: RequestPurpose,
    /// Whether the transport retries the request. The sender of an upload does that itself, because
    /// a retry is a new upload.
    pub retried: bool,
    /// Whether rate limits of registries count the request, as they count the download of a
    /// manifest.
    pub metered: bool,
    /// The class of the slot that the request takes. If the task that sends an ordinary request
    /// reads for an upload, the request takes a slot of [`SlotClass::UploadSource`] instead.
    pub class: SlotClass,
    /// The upstream host that a mirror replaces, if the request goes to a mirror.
    pub origin: Option<String>,
    /// `host:port` of the server whose response named this URL, such as a token realm or the URL of
    /// a foreign layer.
    pub named_by: Option<String>,
    /// Whether a header or the body contains a secret for this host only. A redirect to another
    /// origin is then an error.
    pub secret: bool,
    /// Whether redirects with status 301, 302 or 303 are followed for all methods, not only for GET
    /// and HEAD.
    pub keeps_method: bool,
    /// `Authorization` for other origins that a redirect may lead to.
    pub elsewhere: Vec<(Origin, String)>,
}

impl HttpRequest {
    /// Creates a request without headers and body.
    pub fn new(method: Method, url: Url, purpose: RequestPurpose) -> HttpRequest {
        // many requests wait for one token, so token requests must not queue behind them
        let class = match purpose {
            RequestPurpose::Token => SlotClass::SignIn,
            _ => SlotClass::Ordinary,
        };
        HttpRequest {
            method,
            url,
            headers: HeaderMap::new(),
            body: RequestBody::Empty,
            purpose,
            retried: true,
            metered: false,
            class,
            origin: None,
            named_by: None,
            secret: false,
            keeps_method: false,
            elsewhere: Vec::new(),
        }
    }

    /// Returns the class of the slot that the request takes if this task sends it.
    pub(super) fn slot_class(&self) -> SlotClass {
        match self.class {
            SlotClass::Ordinary if is_reading_for_upload() => SlotClass::UploadSource,
            class => class,
        }
    }

    /// Returns the properties that decide whether a deferral of the host applies.
    pub(super) fn quota_key(&self) -> QuotaKey<'_> {
        QuotaKey {
            metered: self.metered,
            origin: self.origin.as_deref(),
        }
    }

    /// Returns the `Authorization` for a redirect to `target`, if there is one for that origin.
    pub(super) fn authorization_for(&self, target: &Url) -> Option<HeaderValue> {
        let origin = target.origin();
        let (_, value) = self.elsewhere.iter().find(|(known, _)| *known == origin)?;
        HeaderValue::from_str(value).ok()
    }

    /// Sets a header. A value that is not valid in a header is ignored.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: &str) -> HttpRequest {
        // values come from locks and sites, which may contain any text
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.insert(name, value);
        }
        self
    }

    /// Sets a header like [`HttpRequest::header`], if there is a value for it.
    #[must_use]
    pub fn optional_header(self, name: HeaderName, value: Option<&str>) -> HttpRequest {
        match value {
            Some(value) => self.header(name, value),
            None => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::TransportConfig;
    use std::io::{BufRead, BufReader, Write};
    use std::net::{TcpListener, TcpStream};

    /// Reads a request and answers it with this status and headers, without a body.
    fn answer(mut stream: &TcpStream, head: &str) {
        let mut lines = BufReader::new(stream).lines();
        while lines.next().is_some_and(|line| !line.unwrap().is_empty()) {}
        let end = "Content-Length: 0\r\nConnection: close\r\n\r\n";
        write!(stream, "HTTP/1.1 {head}\r\n{end}").unwrap();
    }

    /// The response if a server answers `first` with this `Location`, and then 200.
    async fn response_after(
        method: Method,
        first: &'static str,
        location: &'static str,
    ) -> Result<HttpResponse, HttpError> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for status in [first, "200 OK"] {
                let (stream, _) = listener.accept().unwrap();
                answer(&stream, &format!("{status}\r\nLocation: {location}"));
            }
        });
        let transport = Transport::new(TransportConfig::default());
        let request = HttpRequest::new(method, url.parse().unwrap(), RequestPurpose::File);
        transport.send(&request).await
    }

    /// The final status if a server answers `first` with a `Location`, and then 200.
    async fn final_status(method: Method, first: &'static str) -> u16 {
        let response = response_after(method, first, "/next").await;
        response.unwrap().status.as_u16()
    }

    #[tokio::test]
    async fn a_redirect_to_another_scheme_is_refused_at_once() {
        for target in ["ftp://ftp.test/x", "file:///etc/x", "data:,x"] {
            let refused = response_after(Method::GET, "302 Found", target).await;
            let error = refused.err().unwrap();
            assert_eq!(error.kind, ErrorKind::Invalid);
            assert!(error.to_string().contains(target), "{error}");
        }
    }

    #[tokio::test]
    async fn a_header_may_have_several_lines() {
        let headers = "/next\r\nContent-Security-Policy: default-src 'self';\n  img-src *;\r\n\tx";
        let response = response_after(Method::GET, "302 Found", headers).await;
        assert_eq!(response.unwrap().status.as_u16(), 200);
    }

    #[tokio::test]
    async fn an_answer_may_have_hundreds_of_headers() {
        let headers = "\r\nX-Usage: 1".repeat(400);
        let location = format!("/next{headers}");
        let response = response_after(Method::GET, "302 Found", location.leak()).await;
        assert_eq!(response.unwrap().status.as_u16(), 200);
    }

    #[tokio::test]
    async fn endless_redirects_with_cookies_are_explained() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                answer(&stream.unwrap(), "307 x\r\nLocation: /\r\nSet-Cookie: a=b");
            }
        });
        let transport = Transport::new(TransportConfig::default());
        let request = HttpRequest::new(Method::GET, url.parse().unwrap(), RequestPurpose::File);
        let error = transport.send(&request).await.err().unwrap().to_string();
        assert!(error.contains("redirects, which set cookies"), "{error}");
    }

    #[tokio::test]
    async fn lines_that_are_no_header_are_ignored() {
        for headers in [
            "/next\r\nSet-Cookie: ___utmvaPR=dmo\u{1}OZPF; path=/",
            "/next\r\nSet-Cookie: a=b; domain=\u{7f}w",
            "/next\r\nX(y): z\r\nno colon",
            "\r\nLocation : /next",
        ] {
            let response = response_after(Method::GET, "302 Found", headers).await;
            assert_eq!(response.unwrap().status.as_u16(), 200, "{headers:?}");
        }
    }

    #[tokio::test]
    async fn chunks_override_the_content_length() {
        for (location, length) in [("/x", Some(0)), ("/x\r\nTransfer-Encoding: Chunked", None)] {
            let response = response_after(Method::GET, "200 OK", location).await;
            assert_eq!(response.unwrap().content_length(), length, "{location}");
        }
    }

    #[tokio::test]
    async fn only_a_redirect_is_followed() {
        for first in [
            "300 Multiple Choices",
            "302 Found",
            "307 Temporary Redirect",
        ] {
            assert_eq!(final_status(Method::GET, first).await, 200, "{first}");
        }
        for (first, status) in [("304 Not Modified", 304), ("305 Use Proxy", 305)] {
            assert_eq!(final_status(Method::GET, first).await, status);
        }
        assert_eq!(final_status(Method::POST, "302 Found").await, 302);
        assert_eq!(
            final_status(Method::POST, "308 Permanent Redirect").await,
            200
        );
    }

    #[test]
    fn only_https_of_the_same_host_is_an_upgrade() {
        let url = |text: &str| text.parse::<Url>().unwrap();
        let from = url("http://git.test/a");
        assert!(is_upgrade(&from, &url("https://git.test/b")));
        for other in [
            "http://git.test/b",
            "https://git.test:444/b",
            "https://x.test/",
        ] {
            assert!(!is_upgrade(&from, &url(other)), "{other}");
        }
        let with_port = url("http://git.test:3000/a");
        assert!(!is_upgrade(&with_port, &url("https://git.test/")));
    }
}
