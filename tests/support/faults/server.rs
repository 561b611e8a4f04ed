//! The server: the distribution API, a token realm, plain files and a second host, over [`Content`].

use super::content::Content;
use super::switch::{ALWAYS, Fault, Later, Location, On, What};
use super::wire::{Answer, Request, Wire};
use crate::support::images::sha256;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

/// One request as it was answered.
#[derive(Clone, Debug)]
pub struct Seen {
    pub on: Option<On>,
    pub method: String,
    pub path: String,
    pub range: Option<usize>,
    /// `digest` of the query.
    pub digest: Option<String>,
    pub authorization: bool,
    pub status: u16,
    /// Bytes of the answer's body that were sent.
    pub sent: usize,
}

/// How tokens are wanted: `/v2/` answers 401 without one.
#[derive(Clone, Debug)]
pub struct Auth {
    /// A token is good for so many requests.
    pub uses: usize,
    /// What the realm answers; `TOKEN` stands for a new token.
    pub answer: String,
}

/// How the server is set up, beside its faults.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    pub auth: Option<Auth>,
    /// Pulls left; counted down by manifests, then 429 without `Retry-After`.
    pub quota: Option<u64>,
    /// There is no referrers API.
    pub no_referrers: bool,
    /// Blobs, files and uploads in pieces of so many bytes, with a pause after each.
    pub pace: Option<(usize, Duration)>,
}

/// A fault registry that runs until the process ends.
#[derive(Clone)]
pub struct Faults {
    /// `127.0.0.1:port`.
    pub address: String,
    /// Where redirects and Locations of another host lead.
    pub second: String,
    state: Arc<Mutex<State>>,
    moved: Arc<AtomicUsize>,
}

#[derive(Default)]
struct State {
    content: Content,
    settings: Settings,
    faults: Vec<Fault>,
    /// Faults that were met, by name.
    met: BTreeMap<String, usize>,
    seen: Vec<Seen>,
    /// How often `seen` was emptied: a slow answer must not be noted in the next list.
    epoch: usize,
    tokens: Vec<usize>,
    uploads: Vec<Option<Vec<u8>>>,
}

impl Faults {
    pub fn new(content: Content) -> Faults {
        let bind = || TcpListener::bind("127.0.0.1:0").unwrap();
        let (first, second) = (bind(), bind());
        let address = |listener: &TcpListener| listener.local_addr().unwrap().to_string();
        let faults = Faults {
            address: address(&first),
            second: address(&second),
            state: Arc::new(Mutex::new(State { content, ..State::default() })),
            moved: Arc::default(),
        };
        for (listener, is_second) in [(first, false), (second, true)] {
            let faults = faults.clone();
            std::thread::spawn(move || {
                for stream in listener.incoming().flatten() {
                    let faults = faults.clone();
                    std::thread::spawn(move || faults.serve(stream, is_second));
                }
            });
        }
        faults
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Takes back all faults and what was seen, and arms these.
    pub fn arm(&self, faults: impl IntoIterator<Item = Fault>) {
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

    /// Changes what it holds.
    pub fn content<T>(&self, change: impl FnOnce(&mut Content) -> T) -> T {
        change(&mut self.state().content)
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.state().seen.clone()
    }

    /// Bytes of bodies that went either way so far.
    pub fn moved(&self) -> usize {
        self.moved.load(Ordering::Relaxed)
    }

    /// What was seen, a line a request.
    pub fn shown(&self) -> String {
        let line = |seen: &Seen| {
            let range = seen.range.map(|start| format!(" from {start}")).unwrap_or_default();
            format!("{} {}{range}: {}, {} bytes sent\n", seen.method, seen.path, seen.status, seen.sent)
        };
        self.seen().iter().map(line).collect()
    }

    /// How many faults were met since they were armed.
    pub fn met(&self) -> usize {
        self.state().met.values().sum()
    }

    fn serve(&self, stream: TcpStream, second: bool) {
        let mut wire = Wire::new(stream, self.moved.clone());
        while let Some(request) = wire.request() {
            let on = kind(&request, second);
            let fault = on.and_then(|on| self.next(on, &request));
            if let Some(What::CutUpload(bytes)) = fault {
                wire.body(bytes.min(request.length), None);
                self.log(on, &request, 0);
                wire.hang_up();
                return;
            }
            let pace = self.state().settings.pace;
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
            if matches!(on, Some(On::Blob | On::File)) {
                answer.drip = answer.drip.or(pace);
            }
            let (epoch, at) = self.log(on, &request, answer.status);
            let (sent, goes_on) = wire.answer(&answer, request.method == "HEAD");
            let mut state = self.state();
            if state.epoch == epoch {
                state.seen[at].sent = sent;
            }
            drop(state);
            if !goes_on {
                wire.hang_up();
                return;
            }
        }
    }

    fn log(&self, on: Option<On>, request: &Request, status: u16) -> (usize, usize) {
        let mut state = self.state();
        state.seen.push(Seen {
            on,
            method: request.method.clone(),
            path: request.path.clone(),
            range: request.range(),
            digest: request.query("digest").map(str::to_owned),
            authorization: request.header("authorization").is_some(),
            status,
            sent: 0,
        });
        (state.epoch, state.seen.len() - 1)
    }

    /// The fault that the next request of this kind meets.
    fn next(&self, on: On, request: &Request) -> Option<What> {
        let mut state = self.state();
        let mut found = None;
        let fits = |fault: &Fault| {
            let ranged = request.range().is_some() || !fault.what.is_of_ranges();
            fault.on == on && ranged && request.path.contains(&fault.at)
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

    /// Answers that come before anything is looked up.
    fn early(&self, on: Option<On>, request: &Request, fault: Option<&What>) -> Option<Answer> {
        match fault {
            Some(What::Status(403)) => return Some(Answer::error(403, "DENIED")),
            Some(What::Status(status)) => return Some(Answer::error(*status, "UNKNOWN")),
            Some(What::Page(title)) => {
                let page = format!("<!DOCTYPE html>\n<html><head><title>{title}</title></head></html>\n");
                return Some(Answer::new(200, page).header("Content-Type", "text/html; charset=utf-8"));
            }
            Some(What::TooLarge(most)) if request.length > *most => {
                return Some(Answer::new(413, "<html><title>413 Request Entity Too Large</title></html>"));
            }
            Some(What::Busy(status, later)) => return Some(busy(*status, *later)),
            Some(What::Unauthorized) => {
                self.state().tokens.fill(0);
                return Some(self.challenge(request));
            }
            _ => {}
        }
        if on == Some(On::Token) {
            return Some(self.token(fault));
        }
        if on == Some(On::Manifest) {
            let mut state = self.state();
            if let Some(left) = &mut state.settings.quota {
                if *left == 0 {
                    return Some(busy(429, Later::Quota(21600)));
                }
                *left -= 1;
            }
        }
        if request.path.starts_with("/v2/") && on != Some(On::Second) && !self.passes(request) {
            return Some(self.challenge(request));
        }
        None
    }

    fn token(&self, fault: Option<&What>) -> Answer {
        let mut state = self.state();
        let Some(auth) = state.settings.auth.clone() else { return Answer::error(404, "UNSUPPORTED") };
        state.tokens.push(auth.uses);
        let answer = match fault {
            Some(What::TokenAnswer(answer)) => (*answer).to_owned(),
            _ => auth.answer,
        };
        // opaque: nothing in it can be read
        let token = format!("~opaque/{}+==", state.tokens.len() - 1);
        Answer::new(200, answer.replace("TOKEN", &token)).header("Content-Type", "application/json")
    }

    fn passes(&self, request: &Request) -> bool {
        let mut state = self.state();
        if state.settings.auth.is_none() {
            return true;
        }
        let token = request.header("authorization").and_then(|value| value.strip_prefix("Bearer ~opaque/"));
        let number = token.and_then(|token| token.strip_suffix("+==")?.parse::<usize>().ok());
        match number.and_then(|number| state.tokens.get_mut(number)) {
            Some(left) if *left > 0 => {
                *left -= 1;
                true
            }
            _ => false,
        }
    }

    fn challenge(&self, request: &Request) -> Answer {
        let repository = repository(&request.path).unwrap_or_default();
        let challenge = format!(
            "Bearer realm=\"http://{}/token\",service=\"faults\",scope=\"repository:{repository}:pull\"",
            self.address
        );
        Answer::error(401, "UNAUTHORIZED").header("WWW-Authenticate", challenge)
    }

    fn act(&self, on: Option<On>, request: &Request, body: Vec<u8>, fault: Option<&What>) -> Answer {
        let repository = repository(&request.path).unwrap_or_default();
        let last = request.path.rsplit('/').next().unwrap_or_default().to_owned();
        match on {
            Some(On::Manifest | On::ManifestHead) => self.manifest(&repository, &last, fault),
            Some(On::Blob) if matches!(fault, Some(What::Redirect { .. })) => {
                let expired = matches!(fault, Some(What::Redirect { expired: true }));
                let signature = if expired { "expired" } else { "good" };
                let target = format!("http://{}/signed/{last}?signature={signature}", self.second);
                Answer::new(307, "").header("Location", target)
            }
            Some(On::Blob | On::BlobHead) => {
                let found = self.state().content.blobs.get(&(repository, last.clone())).cloned();
                match found {
                    Some(bytes) => ranged(request, &bytes, fault).header("Docker-Content-Digest", last),
                    None => Answer::error(404, "BLOB_UNKNOWN"),
                }
            }
            Some(On::Second) => self.second(request, body, &last, fault),
            Some(On::File) => {
                let found = self.state().content.files.get(&request.path).cloned();
                found.map_or(Answer::error(404, "NAME_UNKNOWN"), |bytes| ranged(request, &bytes, fault))
            }
            Some(On::Tags) => self.tags(request, &repository, fault),
            Some(On::Referrers) => self.referrers(request, &repository, &last, fault),
            Some(On::Begin) => self.begin(request, &repository, fault),
            Some(On::Patch) => self.patch(request, &last, body, fault),
            Some(On::Upload) => self.finish(request, &repository, &last, body, fault),
            Some(On::PutManifest) => self.put_manifest(request, &repository, &last, body, fault),
            Some(On::Token) | None => match request.method.as_str() {
                "DELETE" => Answer::new(202, ""),
                _ if request.path == "/v2/" => Answer::new(200, "{}"),
                _ => Answer::error(404, "UNSUPPORTED"),
            },
        }
    }

    fn manifest(&self, repository: &str, reference: &str, fault: Option<&What>) -> Answer {
        let mut state = self.state();
        let key = |name: &str| (repository.to_owned(), name.to_owned());
        let mut digest = state.content.tags.get(&key(reference)).cloned().unwrap_or(reference.to_owned());
        let other = state.content.tags.get(&key("other")).cloned();
        if let (Some(What::Moving), Some(other), false) = (fault, other, reference.starts_with("sha256:")) {
            // it stands there, and somewhere else from now on
            state.content.tags.insert(key("other"), digest.clone());
            state.content.tags.insert(key(reference), other.clone());
            digest = other;
        }
        let quota = state.settings.quota;
        let Some((kind, bytes)) = state.content.manifests.get(&key(&digest)) else {
            return Answer::error(404, "MANIFEST_UNKNOWN");
        };
        let answer = Answer::new(200, bytes.to_vec())
            .header("Content-Type", kind)
            .header("Docker-Content-Digest", digest);
        match quota {
            Some(left) => answer
                .header("ratelimit-limit", "100;w=21600")
                .header("ratelimit-remaining", format!("{left};w=21600"))
                .header("docker-ratelimit-source", "192.0.2.7"),
            None => answer,
        }
    }

    fn tags(&self, request: &Request, repository: &str, fault: Option<&What>) -> Answer {
        let state = self.state();
        let all = state.content.tags.keys().filter(|(own, _)| own == repository);
        let all: Vec<&String> = all.map(|(_, tag)| tag).collect();
        let (page, link) = page(request, &all, fault);
        let tags = if fault == Some(&What::NullTags) { json!(null) } else { json!(page) };
        let answer = Answer::new(200, json!({"name": repository, "tags": tags}).to_string());
        link.into_iter().fold(answer, |answer, link| answer.header("Link", link))
    }

    fn referrers(&self, request: &Request, repository: &str, subject: &str, fault: Option<&What>) -> Answer {
        let state = self.state();
        if state.settings.no_referrers {
            return Answer::error(404, "UNSUPPORTED");
        }
        let own = state.content.manifests.iter().filter(|((own, _), _)| own == repository);
        let about = |bytes: &[u8]| {
            let document: Value = serde_json::from_slice(bytes).unwrap_or_default();
            document["subject"]["digest"] == subject
        };
        let own = own.filter(|(_, (_, bytes))| about(bytes));
        let all: Vec<Value> = own
            .map(|((_, digest), (kind, bytes))| json!({"mediaType": kind, "digest": digest, "size": bytes.len()}))
            .collect();
        let (page, link) = page(request, &all, fault);
        let index = json!({"schemaVersion": 2, "mediaType": super::content::OCI_INDEX, "manifests": page});
        let answer = Answer::new(200, index.to_string()).header("Content-Type", super::content::OCI_INDEX);
        link.into_iter().fold(answer, |answer, link| answer.header("Link", link))
    }

    fn second(&self, request: &Request, body: Vec<u8>, last: &str, fault: Option<&What>) -> Answer {
        if request.header("authorization").is_some() {
            return Answer::new(400, "only one way of authentication is allowed");
        }
        if request.method == "PUT" {
            let repository = request.query("repository").unwrap_or_default().to_owned();
            return self.finish(request, &repository, last, body, fault);
        }
        if request.query("signature") != Some("good") {
            return Answer::new(
                403,
                "<Error><Code>AccessDenied</Code><Message>Request has expired</Message>",
            );
        }
        match self.state().content.any_blob(last) {
            Some(bytes) => ranged(request, &bytes, fault),
            None => Answer::new(404, ""),
        }
    }

    fn begin(&self, request: &Request, repository: &str, fault: Option<&What>) -> Answer {
        let mut state = self.state();
        if let Some(digest) = request.query("mount") {
            let from = request.query("from").unwrap_or_default();
            let there = state.content.blobs.get(&(from.to_owned(), digest.to_owned())).cloned();
            match (fault, there) {
                (Some(What::Mount(401)), _) => {
                    drop(state);
                    return self.challenge(request);
                }
                (Some(What::Mount(202)), _) | (_, None) => {}
                (Some(What::Mount(status)), _) => return Answer::error(*status, "NAME_UNKNOWN"),
                (_, Some(bytes)) => {
                    state.content.blobs.insert((repository.to_owned(), digest.to_owned()), bytes);
                    let location = format!("/v2/{repository}/blobs/{digest}");
                    return Answer::new(201, "").header("Location", location);
                }
            }
        }
        state.uploads.push(Some(Vec::new()));
        let path = format!("/v2/{repository}/blobs/uploads/{}?_state=a%2Fb", state.uploads.len() - 1);
        let host = self.address.split(':').next().unwrap();
        let location = match fault {
            Some(What::Location(Location::Relative)) => path,
            Some(What::Location(Location::NoPort)) => format!("http://{host}{path}"),
            Some(What::Location(Location::NoScheme)) => format!("//{}{path}", self.address),
            Some(What::Location(Location::OtherHost)) => {
                format!("http://{}{path}&repository={repository}", self.second)
            }
            _ => format!("http://{}{path}", self.address),
        };
        Answer::new(202, "").header("Location", location).header("Range", "0-0")
    }

    fn patch(&self, request: &Request, last: &str, body: Vec<u8>, fault: Option<&What>) -> Answer {
        let mut state = self.state();
        let upload = last.parse::<usize>().ok().and_then(|at| state.uploads.get_mut(at)?.as_mut());
        let Some(upload) = upload else { return Answer::error(404, "BLOB_UPLOAD_UNKNOWN") };
        upload.extend(body);
        let end = if fault == Some(&What::StaleRange) { 0 } else { upload.len().saturating_sub(1) };
        let status = if let Some(What::PatchStatus(status)) = fault { *status } else { 202 };
        let location = format!("{}?_state=next", request.path);
        Answer::new(status, "").header("Location", location).header("Range", format!("0-{end}"))
    }

    fn finish(
        &self,
        request: &Request,
        repository: &str,
        last: &str,
        body: Vec<u8>,
        fault: Option<&What>,
    ) -> Answer {
        let mut state = self.state();
        let upload = last.parse::<usize>().ok().and_then(|at| state.uploads.get_mut(at)?.take());
        let Some(mut bytes) = upload else { return Answer::error(404, "BLOB_UPLOAD_UNKNOWN") };
        bytes.extend(body);
        let digest = request.query("digest").unwrap_or_default().to_owned();
        if sha256(&bytes) != digest {
            return Answer::error(400, "DIGEST_INVALID");
        }
        state.content.blobs.insert((repository.to_owned(), digest.clone()), Arc::new(bytes));
        let answer = Answer::new(201, "");
        match fault {
            Some(What::NoLocation) => answer,
            _ => answer.header("Location", format!("/v2/{repository}/blobs/{digest}")),
        }
    }

    fn put_manifest(
        &self,
        request: &Request,
        repository: &str,
        last: &str,
        body: Vec<u8>,
        fault: Option<&What>,
    ) -> Answer {
        let mut state = self.state();
        if !state.content.lacking(repository, &body).is_empty() {
            return Answer::error(400, "MANIFEST_BLOB_UNKNOWN");
        }
        let digest = sha256(&body);
        if last.starts_with("sha256:") && last != digest {
            return Answer::error(400, "DIGEST_INVALID");
        }
        let document: Value = serde_json::from_slice(&body).unwrap_or_default();
        let subject = document["subject"]["digest"].as_str().map(str::to_owned);
        let kind = request.header("content-type").unwrap_or_default().to_owned();
        let key = (repository.to_owned(), digest.clone());
        state.content.manifests.insert(key, (kind, Arc::new(body)));
        if !last.starts_with("sha256:") {
            state.content.tags.insert((repository.to_owned(), last.to_owned()), digest.clone());
        }
        let mut answer = Answer::new(201, "").header("Docker-Content-Digest", digest.clone());
        if let (Some(subject), false, false) =
            (subject, state.settings.no_referrers, fault == Some(&What::NoSubject))
        {
            answer = answer.header("OCI-Subject", subject);
        }
        match fault {
            Some(What::NoLocation) => answer,
            _ => answer.header("Location", format!("/v2/{repository}/manifests/{digest}")),
        }
    }
}

fn kind(request: &Request, second: bool) -> Option<On> {
    let path = request.path.as_str();
    let blob = path.contains("/blobs/") && !path.contains("/uploads/");
    match request.method.as_str() {
        _ if second => Some(On::Second),
        "GET" if path == "/token" => Some(On::Token),
        "GET" | "HEAD" if path.starts_with("/files/") => Some(On::File),
        "GET" if path.contains("/manifests/") => Some(On::Manifest),
        "HEAD" if path.contains("/manifests/") => Some(On::ManifestHead),
        "PUT" if path.contains("/manifests/") => Some(On::PutManifest),
        "GET" if path.ends_with("/tags/list") => Some(On::Tags),
        "GET" if path.contains("/referrers/") => Some(On::Referrers),
        "GET" if blob => Some(On::Blob),
        "HEAD" if blob => Some(On::BlobHead),
        "POST" => Some(On::Begin),
        "PATCH" => Some(On::Patch),
        "PUT" => Some(On::Upload),
        _ => None,
    }
}

/// The entries of a list that this request gets, and the `Link` to those after them.
fn page<T: Clone>(request: &Request, all: &[T], fault: Option<&What>) -> (Vec<T>, Option<String>) {
    let start = request.query("from").and_then(|from| from.parse().ok()).unwrap_or(0).min(all.len());
    let size = match fault {
        Some(What::Pages(size)) => *size,
        _ => all.len(),
    };
    let end = (start + size).min(all.len());
    let link = (end < all.len()).then(|| format!("<{}?from={end}>; rel=\"next\"", request.path));
    (all[start..end].to_vec(), link)
}

fn repository(path: &str) -> Option<String> {
    let rest = path.strip_prefix("/v2/")?;
    let end = ["/manifests/", "/blobs/", "/tags/", "/referrers/"].iter().find_map(|word| rest.find(word))?;
    Some(rest[..end].to_owned())
}

/// The content, or the part of it that was asked for, as the fault wants it.
fn ranged(request: &Request, bytes: &[u8], fault: Option<&What>) -> Answer {
    let octets =
        |status, body: &[u8]| Answer::new(status, body).header("Content-Type", "application/octet-stream");
    let size = bytes.len();
    let part = |named: usize, start: usize| {
        let range = format!("bytes {named}-{}/{size}", size.saturating_sub(1));
        octets(206, &bytes[start.min(size)..]).header("Content-Range", range)
    };
    match (request.range().filter(|start| *start > 0), fault) {
        (None, _) | (_, Some(What::RangeDropped)) => octets(200, bytes),
        (Some(_), Some(What::RangeRefused(status))) => {
            // docker-registry's 416: the length of the blob, and a short body
            Answer { length: Some(size), ..octets(*status, b"requested range not satisfiable\n") }
        }
        (Some(start), Some(What::RangeShifted)) => part(start / 2, start / 2),
        (Some(start), Some(What::RangeLies)) => {
            let mut answer = part(start, start);
            answer.body.reverse();
            answer
        }
        (Some(start), _) if start >= size => Answer { length: Some(size), ..octets(416, b"no") },
        (Some(start), _) => part(start, start),
    }
}

fn busy(status: u16, later: Later) -> Answer {
    let answer = Answer::error(status, "TOOMANYREQUESTS");
    match later {
        Later::Seconds(seconds) => answer.header("Retry-After", seconds.to_string()),
        Later::Date(seconds) => {
            let when = SystemTime::now() + Duration::from_secs(seconds);
            answer.header("Retry-After", httpdate::fmt_http_date(when))
        }
        Later::Unsaid => answer,
        Later::Quota(seconds) => answer
            .header("ratelimit-limit", format!("100;w={seconds}"))
            .header("ratelimit-remaining", format!("0;w={seconds}"))
            .header("docker-ratelimit-source", "192.0.2.7"),
    }
}

/// What a fault does to an answer that is good so far.
fn spoil(answer: &mut Answer, fault: &What, request: &Request) {
    match fault {
        What::Cut(at) => answer.cut = Some(*at),
        What::Stall(at) => answer.stall = Some(*at),
        What::Drip(piece, pause) => answer.drip = Some((*piece, *pause)),
        What::Hold(pause) => answer.hold = *pause,
        What::HangUp => answer.hang_up = true,
        What::Corrupt => {
            let middle = answer.body.len() / 2;
            if let Some(byte) = answer.body.get_mut(middle) {
                *byte ^= 0x20;
            }
        }
        What::Gzip if answer.status == 200 => {
            answer.body = crate::support::images::gzip(&answer.body);
            answer.length = Some(answer.body.len());
            answer.headers.push(("Content-Encoding".into(), "gzip".into()));
        }
        What::NoDigest => answer.headers.retain(|(name, _)| name != "Docker-Content-Digest"),
        What::NoLength if request.method == "HEAD" => answer.length = None,
        _ => {}
    }
}
