//! The words with which a server explains a refusal, from the body and headers of its response.

use super::body::HttpResponse;
use super::error::{DistributionError, HttpError};
use super::html_page::{is_html, is_html_type, page_title};
use landfall_model::report::one_line;
use landfall_model::{from_json, redact_urls};
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, SERVER};
use serde_json::Value;

/// The maximum number of bytes of a body that are read for an explanation.
const BODY: usize = 64 << 10;

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
        let has_body = self.method != Method::HEAD;
        let body = if has_body {
            self.bytes(BODY).await.unwrap_or_default().to_vec()
        } else {
            self.discard().await;
            Vec::new()
        };
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
    if content_type.is_some_and(is_html_type) || is_html(body) {
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

/// The message of a JSON document that is not of the distribution API: `message`, `error`,
/// `error_description` or `detail`.
fn other_message(body: &[u8]) -> Option<String> {
    let document: Value = from_json(body).ok()?;
    let keys = ["error_description", "message", "error", "detail", "title"];
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

#[cfg(test)]
mod tests {
    use super::*;

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
        let long = "x".repeat(1000);
        let detail = format!(r#"{{"description":"{long}","mediaType":"a/b"}}"#);
        let body = format!(r#"{{"errors":[{{"code":"MANIFEST_INVALID","detail":{detail}}}]}}"#);
        let start = r#": MANIFEST_INVALID ({"mediaType":"a/b","description":"xxx"#;
        assert!(said(&body, None, None).starts_with(start));
        assert_eq!(said(&long, None, None).chars().count(), SHOWN + 3);
    }
}
