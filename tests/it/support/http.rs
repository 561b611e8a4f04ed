//! A small HTTP client over a plain socket, independent of the client under test.

use serde_json::Value;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// The manifest types that a careful client accepts, in one header.
pub const ACCEPT: &str = "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, \
     application/vnd.docker.distribution.manifest.list.v2+json, application/vnd.docker.distribution.manifest.v2+json";

/// A response, read to its end.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Response {
    /// The first header of this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(n, _)| n.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The status, and the code of the first error of a registry.
    pub fn refusal(&self) -> (u16, String) {
        let document = self.json();
        let code = document["errors"][0]["code"].as_str().unwrap_or_default();
        (self.status, code.to_owned())
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }
}

/// Sends one request on a new connection. `address` is `host:port`; `target` begins with `/`.
pub fn request(
    method: &str,
    address: &str,
    target: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Response {
    attempt(method, address, target, headers, body)
        .unwrap_or_else(|| panic!("{method} {target}: no HTTP response from {address}"))
}

/// Whether the server closes or resets the connection within a minute.
pub fn is_closed(mut stream: &TcpStream) -> bool {
    stream
        .set_read_timeout(Some(Duration::from_mins(1)))
        .unwrap();
    match stream.read_to_end(&mut Vec::new()) {
        Ok(_) => true,
        Err(error) => error.kind() == ErrorKind::ConnectionReset,
    }
}

/// The value of a metric of the server at `address`. Metrics with labels have no line before the
/// first event, so their value is then 0.
pub fn metric(address: &str, name: &str) -> u64 {
    let page = get(address, "/metrics").text();
    let family = name.split('{').next().unwrap_or(name);
    assert!(
        page.contains(&format!("# TYPE {family} ")),
        "{name}: {page}"
    );
    page.lines()
        .filter_map(|line| line.rsplit_once(' '))
        .find(|(found, _)| *found == name)
        .map_or(0, |(_, value)| value.parse().unwrap())
}

/// Like `request`, but returns `None` if the connection ends without a complete response head: if
/// the server aborts the connection, even a response that it has sent can be lost.
pub fn attempt(
    method: &str,
    address: &str,
    target: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Option<Response> {
    let mut stream =
        TcpStream::connect(address).unwrap_or_else(|error| panic!("{address}: {error}"));
    // even on a busy machine, only a hanging server takes that long
    stream
        .set_read_timeout(Some(Duration::from_mins(5)))
        .unwrap();
    let mut head = format!("{method} {target} HTTP/1.1\r\nConnection: close\r\n");
    if !headers.iter().any(|(name, _)| *name == "Host") {
        head += &format!("Host: {address}\r\n");
    }
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    if !body.is_empty() || matches!(method, "PUT" | "POST" | "PATCH") {
        head += &format!("Content-Length: {}\r\n", body.len());
    }
    stream.write_all(format!("{head}\r\n").as_bytes()).unwrap();
    // a server may answer and close before it has read the body; the response is read nevertheless
    let _ = stream.write_all(body);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    parse(method, &answer)
}

pub fn get(address: &str, target: &str) -> Response {
    request("GET", address, target, &[], b"")
}

/// Requests a manifest by tag or digest.
pub fn manifest(address: &str, repository: &str, reference: &str) -> Response {
    request(
        "GET",
        address,
        &format!("/v2/{repository}/manifests/{reference}"),
        &[("Accept", ACCEPT)],
        b"",
    )
}

/// Uploads a blob by POST and one PUT, unless the repository has it.
pub fn put_blob(address: &str, repository: &str, digest: &str, bytes: &[u8]) {
    let head = request(
        "HEAD",
        address,
        &format!("/v2/{repository}/blobs/{digest}"),
        &[],
        b"",
    );
    if head.status == 200 {
        return;
    }
    let begun = request(
        "POST",
        address,
        &format!("/v2/{repository}/blobs/uploads/"),
        &[],
        b"",
    );
    assert_eq!(begun.status, 202, "{}", begun.text());
    let location = begun.header("location").expect("an upload has a location");
    let path = location
        .split_once("://")
        .map_or(location, |(_, rest)| &rest[rest.find('/').unwrap_or(0)..]);
    let joint = if path.contains('?') { '&' } else { '?' };
    let octets = [("Content-Type", "application/octet-stream")];
    let put = request(
        "PUT",
        address,
        &format!("{path}{joint}digest={digest}"),
        &octets,
        bytes,
    );
    assert_eq!(put.status, 201, "{}", put.text());
}

/// Sends a manifest by tag or digest.
pub fn put_manifest(
    address: &str,
    repository: &str,
    reference: &str,
    media_type: &str,
    bytes: &[u8],
) {
    let target = format!("/v2/{repository}/manifests/{reference}");
    let put = request(
        "PUT",
        address,
        &target,
        &[("Content-Type", media_type)],
        bytes,
    );
    assert_eq!(put.status, 201, "{target}: {}", put.text());
}

fn parse(method: &str, answer: &[u8]) -> Option<Response> {
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    let mut lines = head.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    if status == 100 {
        return parse(method, &answer[end + 4..]);
    }
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let body = &answer[end + 4..];
    let chunked = headers
        .iter()
        .any(|(n, v)| n == "transfer-encoding" && v.eq_ignore_ascii_case("chunked"));
    let body = if chunked && method != "HEAD" {
        unchunk(body)
    } else {
        body.to_vec()
    };
    Some(Response {
        status,
        headers,
        body,
    })
}

fn unchunk(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|window| window == b"\r\n") {
        let line = String::from_utf8_lossy(&rest[..end]).into_owned();
        let size =
            usize::from_str_radix(line.split(';').next().unwrap_or("").trim(), 16).unwrap_or(0);
        let from = end + 2;
        if size == 0 || rest.len() < from + size + 2 {
            break;
        }
        body.extend_from_slice(&rest[from..from + size]);
        rest = &rest[from + size + 2..];
    }
    body
}
