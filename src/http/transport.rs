//! Sends requests: one client for each way of trust and route, redirects hop by hop.

use super::body::{Body, Response, causes};
use super::door::{Door, Doors, Turn};
use super::error::{Error, ErrorKind, shown_url};
use super::explain::{self, host_port};
use super::gate::Gate;
use super::ledger::{Ledger, Why};
use super::probe::{Spoken, may_probe, probe};
use super::proxy::{ProxyRules, ProxyUrl};
use super::tls::TlsProfile;
use super::upload::watched;
use crate::model::Limits;
use crate::report::Progress;
use futures_util::StreamExt;
use reqwest::Method;
use reqwest::header::{ACCEPT_ENCODING, AUTHORIZATION, CONTENT_LENGTH, HeaderMap, HeaderValue, LOCATION};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use tokio::sync::OnceCell;
use url::Url;

/// What is configured for one `host` or `host:port`.
#[derive(Debug, Clone, Default)]
pub struct HostRule {
    /// Trust and client certificate.
    pub tls: TlsProfile,
    /// Speak plain http; the user said so.
    pub plain_http: bool,
    /// Credentials are configured for it, so it is never probed for plain http.
    pub has_credentials: bool,
    /// Requests in flight.
    pub max_concurrent: Option<usize>,
}

/// What a [`Transport`] is made from.
pub struct TransportConfig {
    /// Bounds.
    pub limits: Limits,
    /// Proxies.
    pub proxies: ProxyRules,
    /// Certificate authority added for every host reached through a proxy.
    pub proxy_ca: Option<PathBuf>,
    /// Rules by `host` or `host:port`.
    pub hosts: BTreeMap<String, HostRule>,
    /// Where warnings and waits are shown.
    pub progress: Arc<dyn Progress>,
}

/// One request.
#[derive(Clone)]
pub struct Request {
    /// Method.
    pub method: Method,
    /// URL.
    pub url: Url,
    /// Headers, `Authorization` included; that one is dropped at a redirect to another host.
    pub headers: HeaderMap,
    /// Body.
    pub body: Body,
    /// For the ledger.
    pub why: Why,
    /// Whether the transport tries again. An upload is begun anew by whoever sends it.
    pub retried: bool,
    /// Registries with a quota count it: a pull is a manifest that is fetched.
    pub metered: bool,
    /// Its answer is the body of an upload to the same host, which would wait for the slot that it holds: it
    /// enters by a gate of its own.
    pub feeds: bool,
    /// The origin that a mirror stands in for.
    pub origin: Option<String>,
}

impl Request {
    /// A request without headers and body.
    pub fn new(method: Method, url: Url, why: Why) -> Request {
        Request {
            method,
            url,
            headers: HeaderMap::new(),
            body: Body::Empty,
            why,
            retried: true,
            metered: false,
            feeds: false,
            origin: None,
        }
    }

    /// The same with a header.
    pub fn header(mut self, name: reqwest::header::HeaderName, value: &str) -> Request {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.insert(name, value);
        }
        self
    }
}

/// The transport. Cheap to clone; all clones share connections, gates and the ledger.
#[derive(Clone)]
pub struct Transport(pub(super) Arc<Inner>);

pub(super) struct Inner {
    config: TransportConfig,
    ledger: Arc<Ledger>,
    clients: Mutex<HashMap<(TlsProfile, Option<String>), reqwest::Client>>,
    gates: Mutex<HashMap<String, Arc<Gate>>>,
    spoken: Mutex<HashMap<String, Arc<OnceCell<Spoken>>>>,
    doors: Doors,
    /// Hosts that lie about ranges.
    pub(super) liars: Mutex<HashSet<String>>,
    /// Hosts whose quota was shown.
    pub(super) quotas: Mutex<HashSet<String>>,
}

impl Transport {
    /// A transport that has contacted nobody.
    pub fn new(config: TransportConfig) -> Transport {
        Transport(Arc::new(Inner {
            config,
            ledger: Arc::default(),
            clients: Mutex::default(),
            gates: Mutex::default(),
            spoken: Mutex::default(),
            doors: Doors::default(),
            liars: Mutex::default(),
            quotas: Mutex::default(),
        }))
    }

    /// The record of hosts.
    pub fn ledger(&self) -> &Ledger {
        &self.0.ledger
    }

    /// Bounds.
    pub fn limits(&self) -> &Limits {
        &self.0.config.limits
    }

    /// Where warnings are shown.
    pub fn progress(&self) -> &Arc<dyn Progress> {
        &self.0.config.progress
    }

    /// Sends `request` once and follows redirects: of GET and HEAD, and those that keep the method (307 and
    /// 308) of all.
    pub(super) async fn follow(&self, request: &Request) -> Result<Response, Error> {
        let mut hop = request.clone();
        for _ in 0..=self.limits().redirects {
            let response = self.once(&hop).await?;
            let keeps = matches!(response.status.as_u16(), 307 | 308);
            let reads = matches!(hop.method, Method::GET | Method::HEAD);
            let follows = response.status.is_redirection() && (keeps || reads);
            let Some(location) = response.header(LOCATION.as_str()).filter(|_| follows) else {
                return Ok(response);
            };
            let target = hop.url.join(location).map_err(|_| {
                let message = format!("{}: redirect to something that is no URL", shown_url(&hop.url));
                Error::new(ErrorKind::Invalid, message)
            })?;
            if hop.url.scheme() == "https" && target.scheme() != "https" {
                let message = format!(
                    "{} redirects to {}, from https to {}; refused",
                    shown_url(&hop.url),
                    shown_url(&target),
                    target.scheme()
                );
                return Err(Error::new(ErrorKind::Invalid, message));
            }
            if target.origin() != hop.url.origin() {
                hop.headers.remove(AUTHORIZATION);
                hop.why = Why::Redirect;
            }
            hop.url = target;
            response.discard().await;
        }
        let message = format!("{}: more than {} redirects", shown_url(&request.url), self.limits().redirects);
        Err(Error::new(ErrorKind::Invalid, message))
    }

    async fn once(&self, request: &Request) -> Result<Response, Error> {
        let url = &request.url;
        let route = self.0.config.proxies.decide(url);
        let client = self.client(url, route)?;
        // opened before the slot is taken: a source at the same host needs a slot of its own
        let stream = match &request.body {
            Body::Stream { open, .. } => Some(open().await?),
            _ => None,
        };
        let turn = match route {
            Some(proxy) => self.door(proxy).enter(proxy, url).await?,
            None => None,
        };
        let gate = self.gate_of(url, request.feeds);
        let slot = gate.enter().await;
        if let Some(error) = gate.refusal(request.metered) {
            return Err(error);
        }
        let asked = tokio::time::Instant::now();
        let port = url.port_or_known_default().unwrap_or(0);
        let host = url.host_str().unwrap_or("?");
        let entry = self.0.ledger.request(
            host,
            port,
            request.origin.clone(),
            route.map(ProxyUrl::shown),
            request.why,
        );
        let mut builder = client
            .request(request.method.clone(), url.clone())
            .headers(request.headers.clone())
            .header(ACCEPT_ENCODING, "identity");
        let limits = self.limits();
        let limit = if route.is_some() { limits.first_byte_proxied } else { limits.first_byte };
        let sent = match &request.body {
            Body::Empty => {
                if matches!(request.method, Method::POST | Method::PUT | Method::PATCH) {
                    builder = builder.header(CONTENT_LENGTH, 0);
                }
                tokio::time::timeout(limit, builder.send()).await
            }
            Body::Bytes(bytes) => {
                self.0.ledger.bytes(&entry, bytes.len() as u64);
                tokio::time::timeout(limit, builder.body(bytes.clone()).send()).await
            }
            Body::Stream { length, .. } => {
                let stream = stream.unwrap_or_else(|| futures_util::stream::empty().boxed());
                let (body, watch) = watched(stream, *length, self.0.ledger.clone(), entry.clone());
                let sending = builder.header(CONTENT_LENGTH, *length).body(body).send();
                tokio::select! {
                    sent = sending => match watch.failure() {
                        Some(error) => return Err(error),
                        None => Ok(sent),
                    },
                    () = watch.stalled(limits.idle, limits.upload_answer) => {
                        let message = format!("{}: the upload stalled", shown_url(url));
                        return Err(Error::new(ErrorKind::Network, message));
                    }
                }
            }
        };
        let inner = match sent {
            Ok(Ok(inner)) => Ok(inner),
            Ok(Err(error)) => Err(explain::failure(url, route, &self.tls_profile(url, route), &error).await),
            Err(_) => {
                let message = format!("{}: nothing was answered for {} s", shown_url(url), limit.as_secs());
                Err(Error::new(ErrorKind::Network, message))
            }
        };
        let inner = match route {
            Some(proxy) => self.past(proxy, url, turn, inner)?,
            None => inner?,
        };
        Ok(Response {
            method: request.method.clone(),
            via: route.map(ProxyUrl::shown),
            asked,
            status: inner.status(),
            headers: inner.headers().clone(),
            url: url.clone(),
            inner,
            ledger: self.0.ledger.clone(),
            entry,
            idle: limits.idle,
            // a HEAD has no body to wait for
            slot: (request.method != Method::HEAD).then_some(slot),
        })
    }

    /// What came by way of a proxy: its own refusals are errors, and its door learns from all of it.
    fn past(
        &self,
        proxy: &ProxyUrl,
        url: &Url,
        turn: Option<Turn>,
        answer: Result<reqwest::Response, Error>,
    ) -> Result<reqwest::Response, Error> {
        let answer = answer.and_then(|inner| {
            let refusal = explain::refusal(url, proxy, inner.status(), inner.headers(), false);
            refusal.map_or(Ok(inner), Err)
        });
        self.door(proxy).learn(proxy, url, turn.is_some(), answer.as_ref().map(|_| ()));
        answer
    }

    pub(super) fn door(&self, proxy: &ProxyUrl) -> Arc<Door> {
        self.0.doors.of(proxy)
    }

    /// Proxies and their exceptions.
    pub fn proxies(&self) -> &ProxyRules {
        &self.0.config.proxies
    }

    /// How a URL's host is trusted on this way.
    pub(super) fn tls_profile(&self, url: &Url, route: Option<&ProxyUrl>) -> TlsProfile {
        let mut tls = self.rule(url).map(|rule| rule.tls.clone()).unwrap_or_default();
        if route.is_some() {
            tls.ca.extend(self.0.config.proxy_ca.clone());
        }
        tls
    }

    /// Whether the certificate of this URL's host is checked.
    pub fn checks_certificate(&self, url: &Url) -> bool {
        !self.rule(url).is_some_and(|rule| rule.tls.skip_verify)
    }

    pub(super) fn gate(&self, url: &Url) -> Arc<Gate> {
        self.gate_of(url, false)
    }

    fn gate_of(&self, url: &Url, feeds: bool) -> Arc<Gate> {
        let key = host_port(url) + if feeds { " (fed back)" } else { "" };
        let limits = self.limits();
        let slots = self.rule(url).and_then(|rule| rule.max_concurrent).unwrap_or(limits.per_host);
        let mut gates = self.0.gates.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        gates.entry(key).or_insert_with(|| Arc::new(Gate::new(slots))).clone()
    }

    fn rule(&self, url: &Url) -> Option<&HostRule> {
        let hosts = &self.0.config.hosts;
        hosts.get(&host_port(url)).or_else(|| hosts.get(url.host_str()?))
    }

    fn client(&self, url: &Url, route: Option<&ProxyUrl>) -> Result<reqwest::Client, Error> {
        let key = (
            self.tls_profile(url, route),
            route.map(|proxy| format!("{}|{}", proxy.url, proxy.account.is_some())),
        );
        let mut clients = self.0.clients.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(client) = clients.get(&key) {
            return Ok(client.clone());
        }
        let local = |why: String| Error::new(ErrorKind::Local, why);
        let mut builder = reqwest::Client::builder()
            .tls_backend_preconfigured(key.0.config().map_err(local)?)
            .http1_only()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(self.limits().connect)
            .tcp_nodelay(true)
            .user_agent(concat!("landfall/", env!("CARGO_PKG_VERSION")));
        if let Some(proxy) = route {
            let mut all = reqwest::Proxy::all(proxy.url.clone()).map_err(|error| local(causes(&error)))?;
            if let Some(account) = &proxy.account {
                all = all.basic_auth(&account.user, &account.password);
            }
            builder = builder.proxy(all);
        }
        let client = builder.build().map_err(|error| local(causes(&error)))?;
        clients.insert(key, client.clone());
        Ok(client)
    }

    /// The scheme and port to use for a registry host as it stands in a reference: the flag and the
    /// site decide; a private literal without any setting is probed once.
    ///
    /// # Errors
    /// When a probe finds neither TLS nor HTTP.
    pub async fn base_url(&self, host: &str) -> Result<Url, Error> {
        let local = |why: String| Error::new(ErrorKind::Local, why);
        let https = Url::parse(&format!("https://{host}/")).map_err(|why| local(format!("{host}: {why}")))?;
        let http = || Url::parse(&format!("http://{host}/")).map_err(|why| local(format!("{host}: {why}")));
        let hosts = &self.0.config.hosts;
        let rules = [hosts.get(host), https.host_str().and_then(|name| hosts.get(name))];
        let any = |test: fn(&HostRule) -> bool| rules.iter().flatten().any(|rule| test(rule));
        if any(|rule| rule.plain_http) {
            return http();
        }
        let settled = any(|rule| !rule.tls.is_default() || rule.has_credentials);
        let name = https.host_str().unwrap_or_default().to_owned();
        if settled || !may_probe(&name) || self.0.config.proxies.decide(&https).is_some() {
            return Ok(https);
        }
        let cell = {
            let mut spoken = self.0.spoken.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            spoken.entry(host.to_owned()).or_default().clone()
        };
        let port = https.port_or_known_default().unwrap_or(443);
        let asking = || async {
            self.0.ledger.contact(&name, port, None, None, Why::Registry);
            probe(&name, port, self.limits().connect).await
        };
        let found = cell.get_or_try_init(asking).await;
        match found.map_err(|why| Error::new(ErrorKind::Network, format!("{host}: {why}")))? {
            Spoken::Tls => Ok(https),
            Spoken::PlainHttp => http(),
        }
    }
}
