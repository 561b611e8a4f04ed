//! What servers say besides content: their rate limits, clocks and explanations.
//!
//! The rate limit of a host, as in the headers that Docker Hub sends with manifests:
//! `ratelimit-limit: 100;w=21600`, `ratelimit-remaining` and `docker-ratelimit-source`.

use crate::body::{ByteStream, HttpResponse};
use crate::error::{DistributionError, ErrorKind, HttpError};
use crate::retry::bounded;
use futures_util::StreamExt;
use landfall_model::report::one_line;
use landfall_model::{from_json, redact_urls};
use reqwest::Method;
use reqwest::header::{AGE, CONTENT_TYPE, DATE, HeaderMap, SERVER};
use serde_json::Value;
use std::fmt;
use std::time::{Duration, SystemTime};
use url::Url;

/// The number of pulls that a host allows in a window of time, and the number that is left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RateLimit {
    limit: u64,
    remaining: u64,
    window: Option<Duration>,
    /// The address or account whose pulls are counted.
    source: Option<String>,
}

impl RateLimit {
    /// Reads the rate limit from the headers of a response.
    pub(super) fn read(headers: &HeaderMap) -> Option<RateLimit> {
        let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
        let (limit, limit_window) = split(text("ratelimit-limit")?)?;
        let (remaining, window) = split(text("ratelimit-remaining")?)?;
        // either header may contain the window
        let window = window.or(limit_window);
        let source = text("docker-ratelimit-source").filter(|source| !source.is_empty());
        Some(RateLimit {
            limit,
            remaining,
            window,
            source: source.map(str::to_owned),
        })
    }

    /// Returns the longest time until a pull is allowed again, if none is left. The headers do not
    /// say when the window began.
    pub(super) fn wait_if_spent(&self) -> Option<Duration> {
        self.window.filter(|_| self.remaining == 0)
    }
}

impl fmt::Display for RateLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} pulls left", self.remaining, self.limit)?;
        if let Some(window) = self.window {
            write!(f, " in {}", human_span(window))?;
        }
        if let Some(source) = &self.source {
            write!(f, ", counted for {source}")?;
        }
        Ok(())
    }
}

/// Splits `NUMBER;w=SECONDS` into the number and the window.
fn split(value: &str) -> Option<(u64, Option<Duration>)> {
    // a server may send any number, so the window is bounded
    let mut words = value.split(';').map(str::trim);
    let number = words.next()?.parse().ok()?;
    let window = words.find_map(|word| word.strip_prefix("w=")?.parse().ok());
    Some((number, window.map(Duration::from_secs).map(bounded)))
}

/// Formats a duration in its largest whole unit: `2 h`, `90 min`, `45 s`.
pub(super) fn human_span(time: Duration) -> String {
    match time.as_secs() {
        seconds if seconds >= 3600 && seconds.is_multiple_of(3600) => {
            format!("{} h", seconds / 3600)
        }
        seconds if seconds >= 60 && seconds.is_multiple_of(60) => format!("{} min", seconds / 60),
        seconds => format!("{seconds} s"),
    }
}

// Compares the machine's clock with those of the servers that answer.

/// Returns by how many seconds the server's clock is ahead of `now`, negative if it is behind;
/// `None` if the response has no readable date.
pub(super) fn clock_offset(headers: &HeaderMap, now: SystemTime) -> Option<i64> {
    let date = httpdate::parse_http_date(headers.get(DATE)?.to_str().ok()?).ok()?;
    // RFC 9111, 5.1: a cache repeats the date of its source, and adds how long ago that was
    let age = headers
        .get(AGE)
        .and_then(|age| age.to_str().ok()?.parse::<u32>().ok());
    let seconds = |time: SystemTime| {
        let since = time.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        i64::try_from(since.as_secs()).ok()
    };
    Some(seconds(date)? + i64::from(age.unwrap_or_default()) - seconds(now)?)
}

/// Returns the median of the offsets, or the smaller one of the two in the middle. With three or
/// more servers, one wrong clock cannot be the median.
pub(super) fn median(mut offsets: Vec<i64>) -> Option<i64> {
    offsets.sort_unstable();
    offsets.get(offsets.len().checked_sub(1)? / 2).copied()
}

// The words with which a server explains a refusal, from the body and headers of its response.

/// The maximum number of characters of a text of a server that messages show.
const SHOWN: usize = 300;

/// What a server says about a refusal.
#[derive(Debug, Clone, Default)]
pub struct ServerWords {
    /// The error objects of the distribution API, if the body has any.
    pub errors: Vec<DistributionError>,
    /// The explanation for messages, beginning with a separator; empty if there is none.
    pub text: String,
    /// The beginning of the body.
    pub body: Vec<u8>,
}

impl HttpResponse {
    /// Reads the body of a refusal, and returns what the server says. An unreadable body is treated
    /// as empty, because it only explains the status.
    pub async fn server_words(self) -> ServerWords {
        let content_type = self.header(CONTENT_TYPE.as_str()).map(str::to_owned);
        let server = self.header(SERVER.as_str()).map(str::to_owned);
        let body = read_beginning(self.stream(), Vec::new()).await;
        let errors = api_errors(&body);
        let text = describe(&errors, &body, content_type.as_deref(), server.as_deref());
        ServerWords { errors, text, body }
    }
}

impl ServerWords {
    /// Appends the explanation to `error`, and sets its error objects.
    #[must_use]
    pub fn add_to(self, error: HttpError) -> HttpError {
        let mut error = error.hint(&self.text);
        error.codes = self.errors;
        error
    }
}

/// Parses the error objects in a body (distribution-spec, "Error Codes"). Artifactory's errors have
/// the same form, with a status instead of a code.
pub fn api_errors(body: &[u8]) -> Vec<DistributionError> {
    let document: Option<Value> = from_json(body).ok();
    let errors = document
        .as_ref()
        .and_then(|document| document.get("errors")?.as_array());
    errors
        .into_iter()
        .flatten()
        .filter(|error| error.is_object())
        .map(|error| DistributionError {
            code: text_member(error, "code"),
            message: text_member(error, "message"),
            detail: error.get("detail").cloned().unwrap_or_default(),
        })
        .collect()
}

/// Returns the text of a member, or an empty string if the member is missing or not a string. The
/// specification requires only `code`, and some registries send values of other types.
fn text_member(error: &Value, key: &str) -> String {
    let text = error.get(key).and_then(Value::as_str);
    text.unwrap_or_default().to_owned()
}

/// Describes an unexpected body: its distribution API errors with their details, the title of an
/// HTML page, the message of another JSON document, or the first line of a text. The last three are
/// followed by the name of the server, since they may be the words of a proxy. Returns an empty
/// string if there is nothing to say.
pub fn describe(
    errors: &[DistributionError],
    body: &[u8],
    content_type: Option<&str>,
    server: Option<&str>,
) -> String {
    let words = errors.iter().map(error_words);
    let words: Vec<String> = words.filter(|words| !words.is_empty()).collect();
    if !words.is_empty() {
        return format!(": {}", words.join("; "));
    }
    let server = server
        .map(|server| format!(", server: {}", shown(server)))
        .unwrap_or_default();
    if is_html(body) || (content_type.is_some_and(is_html_type) && is_markup(body)) {
        let titled = page_title(body)
            .map(|title| format!(", titled '{}'", shown(&title)))
            .unwrap_or_default();
        return format!(" (an HTML page{titled}: from a proxy?{server})");
    }
    let said = other_message(body).or_else(|| first_line(body));
    match (said, server.as_str()) {
        (Some(said), "") => format!(": {}", shown(&said)),
        (Some(said), _) => format!(": {} ({})", shown(&said), &server[2..]),
        (None, "") => String::new(),
        (None, _) => format!(" ({})", &server[2..]),
    }
}

/// Code, message and detail of an error object.
fn error_words(error: &DistributionError) -> String {
    let mut words = format!("{} {}", error.code, error.message)
        .trim()
        .to_owned();
    let detail = match &error.detail {
        Value::Null => String::new(),
        Value::String(text) => text.trim().to_owned(),
        Value::Object(members) if members.is_empty() => String::new(),
        Value::Array(members) if members.is_empty() => String::new(),
        // short members first, such as the refused type: a long description is cut off
        Value::Object(members) => {
            let pairs = members.iter();
            let mut pairs: Vec<String> = pairs
                .map(|(key, value)| format!("{}:{value}", Value::from(key.as_str())))
                .collect();
            pairs.sort_by_key(String::len);
            format!("{{{}}}", pairs.join(","))
        }
        other => other.to_string(),
    };
    if !detail.is_empty() && !words.contains(&detail) {
        words = match words.as_str() {
            "" => detail,
            _ => format!("{words} ({detail})"),
        };
    }
    shown(&words)
}

/// The message of a JSON document that is not of the distribution API, such as that of the token
/// service of Docker Hub (`details`).
fn other_message(body: &[u8]) -> Option<String> {
    let document: Value = from_json(body).ok()?;
    let keys = [
        "error_description",
        "message",
        "error",
        "detail",
        "details",
        "title",
    ];
    let mut texts = keys.iter().filter_map(|key| match document.get(key)? {
        Value::String(text) => Some(text.clone()),
        Value::Object(inner) => Some(inner.get("message")?.as_str()?.to_owned()),
        _ => None,
    });
    texts.find(|text| !text.trim().is_empty())
}

/// The first line of a text that is not empty.
fn first_line(body: &[u8]) -> Option<String> {
    // JSON without a message, and binary data, explain nothing
    if body.first().is_some_and(|byte| b"{[".contains(byte)) || body.contains(&0) {
        return None;
    }
    let text = String::from_utf8_lossy(body);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.to_owned())
}

/// A text of a server as messages show it: bounded, on one line, without secrets in URLs.
fn shown(text: &str) -> String {
    let text = redact_urls(&one_line(text.trim()));
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

// HTML pages in place of the requested content: proxies and sign-in portals send them with status
// 200.

/// The maximum number of bytes of a body that are read for an explanation, such as the title of a
/// page.
const BEGINNING: usize = 64 << 10;

impl HttpResponse {
    /// Whether the `Content-Type` of the response is HTML.
    pub fn says_page(&self) -> bool {
        self.has_type("text/html")
    }

    /// Whether the response is an HTML page.
    ///
    /// The `Content-Type` alone does not show it: web frameworks declare every response as HTML
    /// that sets no other type, as Quay does with its answers to uploads, and so do web servers
    /// with scripts and files of unknown types. So the body must also begin like a page, unless it
    /// is compressed or the request was a HEAD.
    pub async fn is_page(&mut self) -> bool {
        if !self.says_page() {
            return false;
        }
        if self.method == Method::HEAD || self.compression_error("the page").is_some() {
            return true;
        }
        if self.beginning.is_none() {
            let _busy = self.transport.activity().busy();
            let idle = self.transport.limits().idle;
            let first = tokio::time::timeout(idle, self.inner.chunk()).await;
            // if nothing arrives in time, the reader of the body gets the error
            self.beginning = first.ok().and_then(Result::transpose);
        }
        matches!(&self.beginning, Some(Ok(bytes)) if is_markup(bytes))
    }

    /// Whether the `Content-Type` of the response is this media type.
    pub fn has_type(&self, media_type: &str) -> bool {
        self.header("content-type")
            .is_some_and(|value| is_type(value, media_type))
    }

    /// Reads the page that was sent instead of `what`, and returns the error with its title.
    pub async fn page_error(self, what: &str) -> HttpError {
        let url = self.url.clone();
        let via = self.via.clone();
        let body = read_beginning(self.stream(), Vec::new()).await;
        page_error(&url, via.as_deref(), what, &body)
    }

    /// Returns the body as a stream, if it may be the `length` bytes of `what`.
    ///
    /// # Errors
    /// An HTML page in place of the content; a compressed part of the content, or a compression
    /// that landfall does not know.
    pub async fn content_stream(self, length: u64, what: &str) -> Result<ByteStream, HttpError> {
        // a body of the right length may be an HTML file that was requested; its digest decides
        let announced = self.content_length();
        if announced == Some(length) {
            return Ok(self.stream());
        }
        if let Some(error) = self.compression_error(what) {
            return self.decoded_stream(length).ok_or(error);
        }
        let url = self.url.clone();
        let via = self.via.clone();
        let says_page = self.says_page();
        let mut stream = self.stream();
        // an empty body is left to the caller, who compares its length
        let Some(first) = stream.next().await else {
            return Ok(stream);
        };
        let first = first?;
        // Without a length, the body may be the content, so both signs of a page are required.
        let is_page = match announced {
            Some(_) => is_html(&first) || (says_page && is_markup(&first)),
            None => says_page && is_html(&first),
        };
        if !is_page {
            return Ok(futures_util::stream::iter([Ok(first)])
                .chain(stream)
                .boxed());
        }
        let body = read_beginning(stream, first.to_vec()).await;
        Err(page_error(&url, via.as_deref(), what, &body))
    }
}

/// Appends the next bytes to `body`, until it has `BEGINNING` bytes or the stream ends or fails.
async fn read_beginning(mut stream: ByteStream, mut body: Vec<u8>) -> Vec<u8> {
    while body.len() < BEGINNING
        && let Some(Ok(more)) = stream.next().await
    {
        body.extend_from_slice(&more);
    }
    body
}

/// Returns the error for an HTML page instead of `what`. `via` is the proxy that was used.
pub fn page_error(url: &Url, via: Option<&str>, what: &str, body: &[u8]) -> HttpError {
    let title = page_title(body)
        .map(|title| format!(", titled '{title}',"))
        .unwrap_or_default();
    let from = match via {
        Some(via) => format!("it is probably from the proxy {via}: ask its operator why"),
        None => "it is probably from a proxy, or a sign-in page".into(),
    };
    HttpError::new(
        ErrorKind::Invalid,
        format!("an HTML page{title} was sent instead of {what}; {from}"),
    )
    .at(url)
}

/// Whether the value of a `Content-Type` is HTML.
pub(crate) fn is_html_type(content_type: &str) -> bool {
    is_type(content_type, "text/html")
}

/// Whether the value of a `Content-Type` is this media type. Media types ignore case, and
/// parameters may follow them (RFC 9110, 8.3.1).
fn is_type(content_type: &str, media_type: &str) -> bool {
    let found = content_type.split(';').next().unwrap_or_default();
    found.trim().eq_ignore_ascii_case(media_type)
}

/// Whether a body that is declared as HTML begins like a page. XML is content, such as metadata of
/// yum, unless it is XHTML.
fn is_markup(body: &[u8]) -> bool {
    let start = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    let start = start.trim_ascii_start();
    if start.starts_with(b"<?xml") {
        let text = String::from_utf8_lossy(start);
        return text.to_ascii_lowercase().contains("<html");
    }
    start.starts_with(b"<")
}

/// Whether a body begins like an HTML page.
pub fn is_html(body: &[u8]) -> bool {
    let start = body.trim_ascii_start();
    let start = start
        .get(..start.len().min(14))
        .unwrap_or_default()
        .to_ascii_lowercase();
    start.starts_with(b"<!doctype html") || start.starts_with(b"<html")
}

/// Returns the title of an HTML page, with single blanks between its words.
pub(crate) fn page_title(body: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(body);
    // only ASCII is converted to lower case, so that offsets stay the same
    let lower = text.to_ascii_lowercase();
    let open = lower.find("<title")?;
    let start = open + lower[open..].find('>')? + 1;
    let end = start + lower[start..].find("</title")?;
    let words: Vec<&str> = text[start..end].split_whitespace().collect();
    Some(words.join(" ")).filter(|title| !title.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::header::{HeaderName, HeaderValue};

    fn limit_in(pairs: &[(&'static str, &str)]) -> Option<RateLimit> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.insert(*name, value.parse().unwrap());
        }
        RateLimit::read(&headers)
    }

    #[test]
    fn the_headers_of_docker_hub_are_parsed() {
        let some = [
            ("ratelimit-limit", "100;w=21600"),
            ("ratelimit-remaining", "76;w=21600"),
            ("docker-ratelimit-source", "192.0.2.1"),
        ];
        let found = limit_in(&some).unwrap();
        assert_eq!(
            found.to_string(),
            "76 of 100 pulls left in 6 h, counted for 192.0.2.1"
        );
        assert_eq!(found.wait_if_spent(), None);
        let none = limit_in(&[
            ("ratelimit-limit", "100;w=21600"),
            ("ratelimit-remaining", "0;w=21600"),
        ]);
        assert_eq!(none.unwrap().wait_if_spent(), Some(Duration::from_hours(6)));
        let huge = [
            ("ratelimit-limit", "1;w=18446744073709551615"),
            ("ratelimit-remaining", "0"),
        ];
        assert!(limit_in(&huge).unwrap().wait_if_spent().unwrap() < Duration::from_hours(400 * 24));
        assert_eq!(
            limit_in(&[("ratelimit-limit", "many"), ("ratelimit-remaining", "0")]),
            None
        );
        assert_eq!(limit_in(&[]), None);
    }

    #[test]
    fn the_offset_is_that_of_the_server_behind_a_cache() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        let headers = |pairs: &[(HeaderName, &'static str)]| {
            let pairs = pairs.iter().cloned();
            let pairs = pairs.map(|(name, value)| (name, HeaderValue::from_static(value)));
            pairs.collect::<HeaderMap>()
        };
        for (sent, offset) in [
            (&[(DATE, "Sun, 06 Nov 1994 08:49:37 GMT")][..], Some(0)),
            (&[(DATE, "Sun, 06 Nov 1994 08:49:07 GMT")], Some(-30)),
            (
                &[(DATE, "Sun, 06 Nov 1994 08:49:07 GMT"), (AGE, "40")],
                Some(10),
            ),
            (
                &[(DATE, "Mon, 07 Nov 1994 08:49:37 GMT"), (AGE, "x")],
                Some(86400),
            ),
            (&[(DATE, "today")], None),
            (&[], None),
        ] {
            assert_eq!(clock_offset(&headers(sent), now), offset, "{sent:?}");
        }
    }

    #[test]
    fn the_median_ignores_one_wrong_clock_of_three_and_is_the_smaller_offset_of_two() {
        assert_eq!(median(Vec::new()), None);
        assert_eq!(median(vec![5]), Some(5));
        assert_eq!(median(vec![-999_999, 3]), Some(-999_999));
        assert_eq!(median(vec![3, 999_999]), Some(3));
        assert_eq!(median(vec![1, 999_999, 0]), Some(1));
        assert_eq!(median(vec![-999_999, 0, 1]), Some(0));
    }

    fn said(body: &str, content_type: Option<&str>, server: Option<&str>) -> String {
        describe(
            &api_errors(body.as_bytes()),
            body.as_bytes(),
            content_type,
            server,
        )
    }

    #[test]
    fn error_objects_are_shown_with_their_detail() {
        for (body, expected) in [
            (
                r#"{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown","detail":{}}]}"#,
                ": MANIFEST_UNKNOWN manifest unknown",
            ),
            (
                r#"{"errors":[{"code":"MANIFEST_INVALID","message":"manifest invalid","detail":"unknown media type: a/b"}]}"#,
                ": MANIFEST_INVALID manifest invalid (unknown media type: a/b)",
            ),
            (
                r#"{"errors":[{"code":"UNSUPPORTED","message":"","detail":{"type":"a/b"}}]}"#,
                r#": UNSUPPORTED ({"type":"a/b"})"#,
            ),
            (
                r#"{"errors":[{"status":404,"message":"Not Found"}]}"#,
                ": Not Found",
            ),
            (r#"{"message":"project not found"}"#, ": project not found"),
            (r#"{"error":{"message":"no"}}"#, ": no"),
            (
                r#"{"details":"incorrect username or password"}"#,
                ": incorrect username or password",
            ),
            (r#"{"a":1}"#, ""),
            ("", ""),
            (
                "\n  denied by policy\u{1b}[2J\nmore",
                ": denied by policy\u{fffd}[2J",
            ),
        ] {
            let expected = expected.replace('\u{fffd}', "\u{1b}");
            let expected = one_line(&expected);
            assert_eq!(said(body, None, None), expected, "{body}");
        }
        assert_eq!(said("no", None, Some("nginx")), ": no (server: nginx)");
        assert_eq!(said("", None, Some("nginx")), " (server: nginx)");
        let page = "<!DOCTYPE html><html><head><TITLE> Blocked </TITLE>";
        assert!(said(page, Some("text/html"), None).contains("titled 'Blocked'"));
        // the type of frameworks for texts and empty bodies
        assert_eq!(said("no", Some("text/html"), None), ": no");
        assert_eq!(
            said("", Some("text/html"), Some("nginx")),
            " (server: nginx)"
        );
        let long = "x".repeat(1000);
        let detail = format!(r#"{{"description":"{long}","mediaType":"a/b"}}"#);
        let body = format!(r#"{{"errors":[{{"code":"MANIFEST_INVALID","detail":{detail}}}]}}"#);
        let start = r#": MANIFEST_INVALID ({"mediaType":"a/b","description":"xxx"#;
        assert!(said(&body, None, None).starts_with(start));
        assert_eq!(said(&long, None, None).chars().count(), SHOWN + 3);
    }

    #[test]
    fn pages_and_their_titles_are_recognized() {
        let page =
            b"\n<!DOCTYPE html>\n<html><head><TITLE lang=en> Access\n  denied </TITLE></head>";
        assert!(is_html(page) && is_html(b"<HTML>"));
        assert!(!is_html(b"\x1f\x8b") && !is_html(b"") && !is_html(b"{}"));
        for page in [
            &page[..],
            b"<head>",
            b"\xef\xbb\xbf <!-- denied -->",
            b"<?xml version=\"1.0\"?><!DOCTYPE html PUBLIC \"\"><HTML>",
        ] {
            assert!(is_markup(page), "{}", page.escape_ascii());
        }
        for content in [
            &b""[..],
            b"OK",
            b"{}",
            b"#!/bin/sh\n",
            b"<?xml?><repomd/>",
            b"\x7fELF",
        ] {
            assert!(!is_markup(content), "{}", content.escape_ascii());
        }
        assert_eq!(page_title(page).as_deref(), Some("Access denied"));
        assert_eq!(page_title(b"<html><title></title>"), None);
        assert_eq!(page_title(b"no page"), None);
        assert!(is_html_type("text/html") && is_html_type(" Text/HTML ;charset=utf-8"));
        assert!(!is_html_type("text/htmlx") && !is_html_type("application/json"));
    }
}
