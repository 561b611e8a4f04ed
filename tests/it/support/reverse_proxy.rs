//! A reverse proxy: a server in front of another one. It forwards a request as it is, changes the
//! request or the response, or answers the request itself, as registries and proxies do in
//! practice.

use super::http;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A request to the proxy.
#[derive(Debug, Clone)]
pub struct RecordedRequest {
    pub method: String,
    /// The path and query of the request.
    pub target: String,
    pub headers: Vec<(String, String)>,
    /// `Content-Length`.
    pub length: usize,
    /// The body; empty until it was read.
    pub body: Vec<u8>,
}

impl RecordedRequest {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, value)| value.as_str())
    }

    /// Whether the request has this method, and its target contains this text.
    pub fn is(&self, method: &str, part: &str) -> bool {
        self.method == method && self.target.contains(part)
    }
}

/// How a request is handled.
pub enum ProxyAction {
    /// The request is forwarded unchanged.
    Pass,
    /// The request is forwarded with this target.
    As(String),
    /// Forwarded, and the response is changed.
    Change(Box<dyn FnOnce(&mut http::Response)>),
    /// Answered here, after its body was read.
    Answer(u16, Vec<(String, String)>, String),
    /// Answered here with status 200 and this body.
    Bytes(Vec<u8>),
    /// Decided after its body was read.
    Read(Box<dyn FnOnce(&RecordedRequest) -> ProxyAction>),
    /// The connection is closed after this many bytes of the request body.
    CutAt(usize),
}

impl ProxyAction {
    /// An error of the distribution API.
    pub fn refuse(status: u16, code: &str, message: &str) -> ProxyAction {
        let body = serde_json::json!({"errors": [{"code": code, "message": message}]});
        ProxyAction::Answer(
            status,
            vec![("Content-Type".into(), "application/json".into())],
            body.to_string(),
        )
    }

    pub fn status(status: u16) -> ProxyAction {
        ProxyAction::Answer(status, Vec::new(), String::new())
    }
}

/// The rule of a proxy. Several threads may call it at once.
pub type Rule = dyn Fn(&RecordedRequest) -> ProxyAction + Send + Sync;

/// A reverse proxy that runs until the process ends.
pub struct ReverseProxy {
    pub address: String,
    requests: Arc<Mutex<Vec<RecordedRequest>>>,
}

impl ReverseProxy {
    /// A proxy in front of the server at `upstream`.
    pub fn new(
        upstream: &str,
        rule: impl Fn(&RecordedRequest) -> ProxyAction + Send + Sync + 'static,
    ) -> ReverseProxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let requests: Arc<Mutex<Vec<RecordedRequest>>> = Arc::default();
        let (rule, log): (Arc<Rule>, _) = (Arc::new(rule), requests.clone());
        let front = address.clone();
        let upstream = upstream.to_owned();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (rule, log, front, upstream) =
                    (rule.clone(), log.clone(), front.clone(), upstream.clone());
                std::thread::spawn(move || answer(stream, &*rule, &log, &front, &upstream));
            }
        });
        ReverseProxy { address, requests }
    }

    /// All requests so far in the order of arrival, without bodies.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.requests.lock().unwrap().clone()
    }

    /// The requests since the last call, without bodies.
    pub fn take_requests(&self) -> Vec<RecordedRequest> {
        std::mem::take(&mut *self.requests.lock().unwrap())
    }

    /// How many requests with this method have this text in their target.
    pub fn count(&self, method: &str, part: &str) -> usize {
        self.requests()
            .iter()
            .filter(|request| request.is(method, part))
            .count()
    }
}

fn answer(
    mut stream: TcpStream,
    rule: &Rule,
    log: &Mutex<Vec<RecordedRequest>>,
    front: &str,
    upstream: &str,
) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let Some(mut request) = read_head(&mut reader) else {
        // the ClientHello of a probe is not a request; servers of plain http answer it like this
        let bad = "HTTP/1.1 400 X\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
        let _ = stream.write_all(bad.as_bytes());
        return;
    };
    log.lock().unwrap().push(request.clone());
    let mut action = rule(&request);
    if let ProxyAction::CutAt(bytes) = action {
        let _ = std::io::copy(&mut reader.take(bytes as u64), &mut std::io::sink());
        return;
    }
    let _ = reader
        .take(request.length as u64)
        .read_to_end(&mut request.body);
    if let ProxyAction::Read(decide) = action {
        action = decide(&request);
    }
    if let ProxyAction::As(target) = &action {
        request.target.clone_from(target);
    }
    let response = match action {
        ProxyAction::Answer(status, headers, body) => http::Response {
            status,
            headers,
            body: body.into_bytes(),
        },
        ProxyAction::Bytes(body) => http::Response {
            status: 200,
            headers: Vec::new(),
            body,
        },
        action => {
            let mut response = forward(&request, front, upstream);
            if let ProxyAction::Change(change) = action {
                change(&mut response);
            }
            response
        }
    };
    let mut head = format!("HTTP/1.1 {} X\r\nConnection: close\r\n", response.status);
    let has_length = response.header("content-length").is_some();
    for (name, value) in &response.headers {
        head += &format!("{name}: {value}\r\n");
    }
    if !(request.method == "HEAD" && has_length) {
        head += &format!("Content-Length: {}\r\n", response.body.len());
    }
    let _ = stream.write_all(format!("{head}\r\n").as_bytes());
    if request.method != "HEAD" {
        let _ = stream.write_all(&response.body);
    }
    let _ = stream.shutdown(Shutdown::Write);
}

fn read_head(reader: &mut impl BufRead) -> Option<RecordedRequest> {
    let mut head = String::new();
    let mut line = String::new();
    while reader.read_line(&mut line).unwrap_or(0) > 2 {
        head.push_str(&line);
        line.clear();
    }
    let mut lines = head.lines();
    let mut first = lines.next()?.split(' ');
    let method = first.next()?.to_owned();
    let target = first.next()?.to_owned();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length
        .and_then(|(_, length)| length.parse().ok())
        .unwrap_or(0);
    Some(RecordedRequest {
        method,
        target,
        headers,
        length,
        body: Vec::new(),
    })
}

fn forward(request: &RecordedRequest, front: &str, upstream: &str) -> http::Response {
    let kept: Vec<(&str, &str)> = request
        .headers
        .iter()
        .filter(|(name, _)| {
            ["accept", "content-type", "range", "content-range"].contains(&name.as_str())
        })
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    let mut answer = http::request(
        &request.method,
        upstream,
        &request.target,
        &kept,
        &request.body,
    );
    answer.headers.retain(|(name, _)| {
        !["connection", "transfer-encoding"].contains(&name.as_str())
            && (request.method == "HEAD" || name != "content-length")
    });
    for (name, value) in &mut answer.headers {
        if name == "location" {
            *value = value.replace(upstream, front);
        }
    }
    answer
}
