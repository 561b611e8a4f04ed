//! The fault registry: serves [`Content`] by the distribution API, with a token realm, plain files
//! and a second host.

use super::answers::ranged;
use super::content::Content;
use super::rules::Rule;
use super::switch::{ALWAYS, Fault, FaultKind, RequestKind, RetryAfter};
use super::wire::{Answer, Request, Wire};
use crate::support::free_listener;
use crate::support::images::gzip;
use std::collections::BTreeMap;
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

/// A recorded request and facts about its response.
#[derive(Clone, Debug)]
pub struct Seen {
    pub on: Option<RequestKind>,
    pub method: String,
    /// Path and query as received.
    pub target: String,
    pub path: String,
    pub range: Option<usize>,
    /// The query parameter `digest`.
    pub digest: Option<String>,
    pub authorization: bool,
    /// Whether caches must ask the server if their copy is current.
    pub is_revalidated: bool,
    pub status: u16,
    /// Length of the response body.
    pub length: usize,
    /// Bytes of the response body that were sent.
    pub sent: usize,
}

/// Makes the registry require tokens: a request below `/v2/` without a valid token gets 401.
#[derive(Clone, Debug)]
pub struct Auth {
    /// The number of requests for which a token is valid.
    pub uses: usize,
    /// The response of the realm; `TOKEN` is replaced by a new token.
    pub answer: String,
}

/// The configuration of the server, without the faults.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    pub auth: Option<Auth>,
    /// The remaining pulls. Each GET of a manifest uses one. If none is left, the response is 429
    /// without `Retry-After`.
    pub quota: Option<u64>,
    /// Omits the referrers API.
    pub no_referrers: bool,
    /// Answers 403 instead of 404 for manifests and blobs, as some registries do.
    pub hides_missing: bool,
    /// Transfers blobs, files and uploads in pieces of this many bytes, with a pause after each.
    pub pace: Option<(usize, Duration)>,
    /// Sends a `Date` that is this many days ahead of the machine's clock, or behind if negative.
    pub clock_days: Option<i64>,
    /// The behaviour of a registry product.
    pub rules: Arc<[Rule]>,
}

impl Settings {
    /// The tokens that requests need.
    fn auth(&self) -> Option<Auth> {
        let of_product = self.rules.iter().find_map(|rule| match rule {
            Rule::Token(answer) => Some(Auth {
                uses: usize::MAX,
                answer: answer.clone(),
            }),
            _ => None,
        });
        self.auth.clone().or(of_product)
    }
}

/// A fault registry that runs until this value is dropped.
pub struct Faults {
    /// `127.0.0.1:port`.
    pub address: String,
    /// The second host: the target of redirects and of `Location`s on another host.
    pub second: String,
    state: Arc<Mutex<State>>,
    moved: Arc<AtomicUsize>,
    /// The number of open connections.
    connections: Arc<AtomicUsize>,
    /// Stops the server when dropped; `None` for handles in the threads of the server.
    end: Option<End>,
}

/// Stops a server when dropped: closes its listeners and deletes its content.
struct End {
    over: Arc<AtomicBool>,
    listeners: Vec<(String, JoinHandle<()>)>,
    state: Arc<Mutex<State>>,
}

impl Drop for End {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        for (address, thread) in self.listeners.drain(..) {
            // a connection wakes the thread that waits for one
            let _ = TcpStream::connect(address);
            let _ = thread.join();
        }
        let mut state = self
            .state
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        state.content = Content::default();
        state.uploads.clear();
    }
}

#[derive(Default)]
pub(super) struct State {
    pub(super) content: Content,
    pub(super) settings: Settings,
    faults: Vec<Fault>,
    /// The number of requests that each fault applied to.
    met: BTreeMap<String, usize>,
    seen: Vec<Seen>,
    /// How often `seen` was emptied: a late response must not be added to the next list.
    epoch: usize,
    /// The number of answers that are being sent.
    open: usize,
    tokens: Vec<usize>,
    pub(super) uploads: Vec<Option<Vec<u8>>>,
}

impl Faults {
    pub fn new(content: Content) -> Faults {
        // no other test gets these ports later, so a late client of this test cannot reach the
        // server of another test
        let first = free_listener();
        let second = free_listener();
        let address = |listener: &TcpListener| listener.local_addr().unwrap().to_string();
        let mut faults = Faults {
            address: address(&first),
            second: address(&second),
            state: Arc::new(Mutex::new(State {
                content,
                ..State::default()
            })),
            moved: Arc::default(),
            connections: Arc::default(),
            end: None,
        };
        let over = Arc::new(AtomicBool::new(false));
        let mut listeners = Vec::new();
        for (listener, is_second) in [(first, false), (second, true)] {
            let address = address(&listener);
            let own = faults.shared();
            let over = over.clone();
            let thread = std::thread::spawn(move || {
                for stream in listener.incoming().flatten() {
                    if over.load(Ordering::SeqCst) {
                        break;
                    }
                    let own = own.shared();
                    own.connections.fetch_add(1, Ordering::SeqCst);
                    std::thread::spawn(move || {
                        own.serve(stream, is_second);
                        own.connections.fetch_sub(1, Ordering::SeqCst);
                    });
                }
            });
            listeners.push((address, thread));
        }
        faults.end = Some(End {
            over,
            listeners,
            state: faults.state.clone(),
        });
        faults
    }

    /// A handle for a thread of the server.
    fn shared(&self) -> Faults {
        Faults {
            address: self.address.clone(),
            second: self.second.clone(),
            state: self.state.clone(),
            moved: self.moved.clone(),
            connections: self.connections.clone(),
            end: None,
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Removes all faults and recorded requests, and adds these faults.
    pub fn set_faults(&self, faults: impl IntoIterator<Item = Fault>) {
        let mut state = self.state();
        state.faults = faults.into_iter().collect();
        state.met.clear();
        state.seen.clear();
        state.epoch += 1;
    }

    pub fn set(&self, settings: Settings) {
        let mut state = self.state();
        state.settings = settings;
        state.tokens.clear();
    }

    /// Calls `change` with the content, and returns the result of `change`.
    pub fn content<T>(&self, change: impl FnOnce(&mut Content) -> T) -> T {
        change(&mut self.state().content)
    }

    /// A copy of the content.
    pub fn content_copy(&self) -> Content {
        self.content(|content| content.clone())
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.state().seen.clone()
    }

    /// Waits until no answer is being sent, so that [`Seen::sent`] is complete: a client may have
    /// the last byte of an answer before it is counted. Answers to a process that was killed end
    /// when its connections are closed.
    pub fn settle(&self) {
        while self.state().open > 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Bytes of bodies in both directions so far.
    pub fn moved(&self) -> usize {
        self.moved.load(Ordering::Relaxed)
    }

    /// The recorded requests, one line each.
    pub fn shown(&self) -> String {
        let line = |seen: &Seen| {
            let range = seen
                .range
                .map(|start| format!(" from {start}"))
                .unwrap_or_default();
            format!(
                "{} {}{range}: {}, {} bytes sent\n",
                seen.method, seen.path, seen.status, seen.sent
            )
        };
        self.seen().iter().map(line).collect()
    }

    /// The recorded requests in the log format of docker-registry.
    pub fn access_log(&self) -> String {
        let line = |seen: &Seen| {
            let Seen {
                method,
                target,
                status,
                length,
                ..
            } = seen;
            format!("127.0.0.1 - - \"{method} {target} HTTP/1.1\" {status} {length}\n")
        };
        self.seen().iter().map(line).collect()
    }

    /// How many requests a fault applied to since the faults were added.
    pub fn met(&self) -> usize {
        self.state().met.values().sum()
    }

    /// Waits until all connections are closed: then all requests are handled and recorded.
    pub fn wait_for_closed_connections(&self) {
        let began = Instant::now();
        while self.connections.load(Ordering::SeqCst) > 0 {
            assert!(
                began.elapsed() < Duration::from_mins(1),
                "a connection stays open\n{}",
                self.shown()
            );
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn serve(&self, stream: TcpStream, second: bool) {
        let mut wire = Wire::new(stream, self.moved.clone());
        while let Some(request) = wire.request() {
            let on = kind(&request, second);
            let fault = on.and_then(|on| {
                let own = self.next(on, &request);
                own.or_else(|| self.product_fault(on, &request))
            });
            if let Some(FaultKind::CutUpload(bytes)) = fault {
                wire.body(bytes.min(request.length), None);
                self.log(on, &request, 0, 0);
                self.state().open -= 1;
                wire.hang_up();
                return;
            }
            let Settings {
                pace,
                clock_days,
                hides_missing,
                ..
            } = self.state().settings.clone();
            let body = wire.body(request.length, pace);
            if body.len() < request.length {
                return;
            }
            let mut answer = match self.early(on, &request, fault.as_ref()) {
                Some(answer) => answer,
                None => self.act(on, &request, body, fault.as_ref()),
            };
            if let Some(fault) = &fault {
                spoil(&mut answer, fault, &request);
            }
            let is_content = matches!(
                on,
                Some(RequestKind::Manifest | RequestKind::ManifestHead | RequestKind::BlobHead)
            );
            if hides_missing && is_content && answer.status == 404 {
                answer = Answer::error(403, "DENIED");
            }
            if let Some(days) = clock_days {
                answer = answer.header("Date", http_date(days));
            }
            if matches!(on, Some(RequestKind::Blob | RequestKind::File)) {
                answer.drip = answer.drip.or(pace);
            }
            let (epoch, at) = self.log(on, &request, answer.status, answer.body.len());
            let (sent, is_kept_open) = wire.answer(&answer, request.method == "HEAD");
            let mut state = self.state();
            state.open -= 1;
            if state.epoch == epoch {
                state.seen[at].sent = sent;
            }
            drop(state);
            if !is_kept_open || request.header("connection") == Some("close") {
                wire.hang_up();
                return;
            }
        }
    }

    fn log(
        &self,
        on: Option<RequestKind>,
        request: &Request,
        status: u16,
        length: usize,
    ) -> (usize, usize) {
        let mut state = self.state();
        state.seen.push(Seen {
            on,
            method: request.method.clone(),
            target: request.target.clone(),
            path: request.path.clone(),
            range: request.range(),
            digest: request.query("digest").map(str::to_owned),
            authorization: request.header("authorization").is_some(),
            is_revalidated: request.header("cache-control").is_some(),
            status,
            length: if request.method == "HEAD" { 0 } else { length },
            sent: 0,
        });
        state.open += 1;
        (state.epoch, state.seen.len() - 1)
    }

    /// The fault that applies to this request, if any. The request also counts as skipped for every
    /// other matching fault whose `skip` is not yet 0.
    fn next(&self, on: RequestKind, request: &Request) -> Option<FaultKind> {
        let mut state = self.state();
        let mut found = None;
        let path = format!("{}$", request.path);
        let fits = |fault: &Fault| {
            let ranged = request.range().is_some() || !fault.what.is_of_ranges();
            fault.on == on && ranged && path.contains(&fault.at)
        };
        for fault in state.faults.iter_mut().filter(|fault| fits(fault)) {
            if fault.skip > 0 {
                fault.skip -= 1;
            } else if fault.times > 0 && found.is_none() {
                if fault.times != ALWAYS {
                    fault.times -= 1;
                }
                found = Some(fault.what.clone());
            }
        }
        if let Some(what) = &found {
            *state.met.entry(format!("{on:?} {what:?}")).or_default() += 1;
        }
        found
    }

    /// The response to a request if it does not depend on the content: the response of a fault, a
    /// token, or a refusal because the quota is exhausted or the request has no valid token.
    fn early(
        &self,
        on: Option<RequestKind>,
        request: &Request,
        fault: Option<&FaultKind>,
    ) -> Option<Answer> {
        match fault {
            Some(FaultKind::Status(403)) => return Some(Answer::error(403, "DENIED")),
            Some(FaultKind::Status(status)) => return Some(Answer::error(*status, "UNKNOWN")),
            Some(FaultKind::Refusal(status, code)) => return Some(Answer::error(*status, code)),
            Some(FaultKind::Page(title)) => {
                // longer than the part of a page that landfall reads to find the title
                let styles = "p {}\n".repeat(20_000);
                let page = format!(
                    "<!DOCTYPE html>\n<html><head><title>{title}</title>\n\
                     <style>{styles}</style></head></html>\n"
                );
                return Some(
                    Answer::new(200, page).header("Content-Type", "text/html; charset=utf-8"),
                );
            }
            Some(FaultKind::TooLarge(limit)) if request.length > *limit => {
                return Some(Answer::new(
                    413,
                    "<html><title>413 Request Entity Too Large</title></html>",
                ));
            }
            Some(FaultKind::Busy(status, later)) => return Some(busy(*status, *later)),
            Some(FaultKind::Unauthorized) => {
                self.state().tokens.fill(0);
                return Some(self.challenge(request));
            }
            _ => {}
        }
        if on == Some(RequestKind::Token) {
            return Some(self.token(fault));
        }
        if on == Some(RequestKind::Manifest) {
            let mut state = self.state();
            if let Some(left) = &mut state.settings.quota {
                if *left == 0 {
                    return Some(busy(429, RetryAfter::Quota(21600)));
                }
                *left -= 1;
            }
        }
        if request.path.starts_with("/v2/")
            && on != Some(RequestKind::Second)
            && !self.passes(request)
        {
            return Some(self.challenge(request));
        }
        None
    }

    fn token(&self, fault: Option<&FaultKind>) -> Answer {
        let mut state = self.state();
        let Some(auth) = state.settings.auth() else {
            return Answer::error(404, "UNSUPPORTED");
        };
        state.tokens.push(auth.uses);
        let answer = match fault {
            Some(FaultKind::TokenAnswer(answer)) => (*answer).to_owned(),
            _ => auth.answer,
        };
        // unlike a JSON web token, this token has no readable content
        let token = format!("~opaque/{}+==", state.tokens.len() - 1);
        Answer::new(200, answer.replace("TOKEN", &token)).header("Content-Type", "application/json")
    }

    fn passes(&self, request: &Request) -> bool {
        let mut state = self.state();
        if state.settings.auth().is_none() {
            return true;
        }
        let token = request
            .header("authorization")
            .and_then(|value| value.strip_prefix("Bearer ~opaque/"));
        let number = token.and_then(|token| token.strip_suffix("+==")?.parse::<usize>().ok());
        match number.and_then(|number| state.tokens.get_mut(number)) {
            Some(left) if *left > 0 => {
                *left -= 1;
                true
            }
            _ => false,
        }
    }

    pub(super) fn challenge(&self, request: &Request) -> Answer {
        let repository = repository(&request.path).unwrap_or_default();
        let challenge = format!(
            "Bearer realm=\"http://{}/token\",service=\"faults\",scope=\"repository:{repository}:pull\"",
            self.address
        );
        Answer::error(401, "UNAUTHORIZED").header("WWW-Authenticate", challenge)
    }

    fn act(
        &self,
        on: Option<RequestKind>,
        request: &Request,
        body: Vec<u8>,
        fault: Option<&FaultKind>,
    ) -> Answer {
        let repository = repository(&request.path).unwrap_or_default();
        let last = request
            .path
            .rsplit('/')
            .next()
            .unwrap_or_default()
            .to_owned();
        if let Some(answer) = self.product_answer(on, request, &repository, &last, &body) {
            return answer;
        }
        let answer = self.act_on_content(on, request, &repository, &last, body, fault);
        self.as_product(on, &repository, &last, answer)
    }

    fn act_on_content(
        &self,
        on: Option<RequestKind>,
        request: &Request,
        repository: &str,
        last: &str,
        body: Vec<u8>,
        fault: Option<&FaultKind>,
    ) -> Answer {
        match on {
            Some(RequestKind::Manifest | RequestKind::ManifestHead) => {
                let digest = self.tag_as_digest(repository, last);
                self.manifest(repository, digest.as_deref().unwrap_or(last), fault)
            }
            Some(RequestKind::Blob) if matches!(fault, Some(FaultKind::Redirect { .. })) => {
                let expired = matches!(fault, Some(FaultKind::Redirect { expired: true }));
                let signature = if expired { "expired" } else { "good" };
                let target = format!("http://{}/signed/{last}?signature={signature}", self.second);
                Answer::new(307, "").header("Location", target)
            }
            Some(RequestKind::Blob | RequestKind::BlobHead) => {
                let found = self
                    .state()
                    .content
                    .blobs
                    .get(&(repository.to_owned(), last.to_owned()))
                    .cloned();
                match found {
                    Some(bytes) => {
                        ranged(request, &bytes, fault).header("Docker-Content-Digest", last)
                    }
                    None => Answer::error(404, "BLOB_UNKNOWN"),
                }
            }
            Some(RequestKind::Second) => self.second(request, body, last, fault),
            Some(RequestKind::File) => {
                let state = self.state();
                let found = state.content.files.get(&request.path).cloned();
                let found =
                    found.or_else(|| state.content.in_folder(&request.path).map(Into::into));
                drop(state);
                found.map_or(Answer::error(404, "NAME_UNKNOWN"), |bytes| {
                    ranged(request, &bytes, fault)
                })
            }
            Some(RequestKind::Tags) => self.tags(request, repository, fault),
            Some(RequestKind::Referrers) => self.referrers(request, repository, last, fault),
            Some(RequestKind::Begin) => self.begin(request, repository, fault),
            Some(RequestKind::Patch) => self.patch(request, last, body, fault),
            Some(RequestKind::Upload) => self.finish(request, repository, last, body, fault),
            Some(RequestKind::PutManifest) => {
                self.put_manifest(request, repository, last, body, fault)
            }
            Some(RequestKind::Token) | None => match request.method.as_str() {
                "DELETE" => {
                    self.state().content.forget(repository, last);
                    Answer::new(202, "")
                }
                _ if request.path == "/v2/" => Answer::new(200, "{}"),
                _ => match self.state().content.in_folder(&request.path) {
                    Some(bytes) => ranged(request, &bytes, None),
                    None => Answer::error(404, "UNSUPPORTED"),
                },
            },
        }
    }
}

fn kind(request: &Request, second: bool) -> Option<RequestKind> {
    let path = request.path.as_str();
    let blob = path.contains("/blobs/") && !path.contains("/uploads/");
    match request.method.as_str() {
        _ if second => Some(RequestKind::Second),
        "GET" if path == "/token" => Some(RequestKind::Token),
        "GET" | "HEAD" if path.starts_with("/files/") => Some(RequestKind::File),
        "GET" if path.contains("/manifests/") => Some(RequestKind::Manifest),
        "HEAD" if path.contains("/manifests/") => Some(RequestKind::ManifestHead),
        "PUT" if path.contains("/manifests/") => Some(RequestKind::PutManifest),
        "GET" if path.ends_with("/tags/list") => Some(RequestKind::Tags),
        "GET" if path.contains("/referrers/") => Some(RequestKind::Referrers),
        "GET" if blob => Some(RequestKind::Blob),
        "HEAD" if blob => Some(RequestKind::BlobHead),
        "POST" => Some(RequestKind::Begin),
        "PATCH" => Some(RequestKind::Patch),
        "PUT" => Some(RequestKind::Upload),
        _ => None,
    }
}

fn repository(path: &str) -> Option<String> {
    let rest = path.strip_prefix("/v2/")?;
    let end = ["/manifests/", "/blobs/", "/tags/", "/referrers/"]
        .iter()
        .find_map(|word| rest.find(word))?;
    Some(rest[..end].to_owned())
}

fn busy(status: u16, later: RetryAfter) -> Answer {
    let answer = Answer::error(status, "TOOMANYREQUESTS");
    match later {
        RetryAfter::Seconds(seconds) => answer.header("Retry-After", seconds.to_string()),
        RetryAfter::Date(seconds) => {
            let when = SystemTime::now() + Duration::from_secs(seconds);
            answer.header("Retry-After", httpdate::fmt_http_date(when))
        }
        RetryAfter::Text(text) => answer.header("Retry-After", text),
        RetryAfter::Unsaid => answer,
        RetryAfter::Quota(seconds) => answer
            .header("ratelimit-limit", format!("100;w={seconds}"))
            .header("ratelimit-remaining", format!("0;w={seconds}"))
            .header("docker-ratelimit-source", "192.0.2.7"),
    }
}

/// Applies the faults that change a finished response.
fn spoil(answer: &mut Answer, fault: &FaultKind, request: &Request) {
    match fault {
        FaultKind::Cut(at) => answer.cut = Some(*at),
        FaultKind::Stall(at) => answer.stall = Some(*at),
        FaultKind::Drip(piece, pause) => answer.drip = Some((*piece, *pause)),
        FaultKind::Hold(pause) => answer.hold = *pause,
        FaultKind::HangUp => answer.hang_up = true,
        FaultKind::Corrupt => {
            let middle = answer.body.len() / 2;
            if let Some(byte) = answer.body.get_mut(middle) {
                *byte ^= 0x20;
            }
        }
        FaultKind::Gzip if answer.status == 200 => {
            answer.body = gzip(&answer.body);
            answer.length = Some(answer.body.len());
            answer
                .headers
                .push(("Content-Encoding".into(), "gzip".into()));
        }
        FaultKind::NoDigest => answer
            .headers
            .retain(|(name, _)| name != "Docker-Content-Digest"),
        FaultKind::Header(name, value) => {
            let is_named = |own: &str| own.eq_ignore_ascii_case(name);
            let old = answer.headers.iter().find(|(own, _)| is_named(own));
            let value = value.replace("VALUE", old.map_or("", |(_, value)| value));
            answer.headers.retain(|(own, _)| !is_named(own));
            answer.headers.push(((*name).to_owned(), value));
        }
        FaultKind::NoLength if request.method == "HEAD" => answer.length = None,
        _ => {}
    }
}

/// The value of `Date` for a time this many days ahead of the machine's clock, or behind if
/// negative.
fn http_date(days: i64) -> String {
    let day = Duration::from_hours(24);
    let span = day * u32::try_from(days.unsigned_abs()).unwrap();
    let now = SystemTime::now();
    httpdate::fmt_http_date(if days < 0 { now - span } else { now + span })
}
