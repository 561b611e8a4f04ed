//! HTML pages in place of the requested content: proxies and sign-in portals send them with status
//! 200.

use super::body::{ByteStream, HttpResponse};
use super::error::{ErrorKind, HttpError};
use futures_util::StreamExt;
use reqwest::Method;
use url::Url;

/// The maximum number of bytes of a page that are read to find its title.
const PAGE: usize = 64 << 10;

impl HttpResponse {
    /// Whether the `Content-Type` of the response is HTML.
    pub fn is_page(&self) -> bool {
        self.header("content-type").is_some_and(is_html_type)
    }

    /// Reads the page that was sent instead of `what`, and returns the error with its title.
    pub async fn page_error(self, what: &str) -> HttpError {
        let url = self.url.clone();
        let via = self.via.clone();
        let has_body = self.method != Method::HEAD;
        // without a body, the error is the same except for the title
        let mut body = Vec::new();
        if has_body {
            body = page_beginning(self.stream(), body).await;
        }
        page_error(&url, via.as_deref(), what, &body)
    }

    /// Returns the body as a stream, if it may be the `length` bytes of `what`.
    ///
    /// # Errors
    /// An HTML page in place of the content; a compressed part of the content, or a compression that
    /// landfall does not know.
    pub async fn content_stream(self, length: u64, what: &str) -> Result<ByteStream, HttpError> {
        let announced = self
            .header("content-length")
            .and_then(|length| length.parse::<u64>().ok());
        // a body of the right length may be an HTML file that was requested; its digest decides
        if announced == Some(length) {
            return Ok(self.stream());
        }
        if let Some(error) = self.compression_error(what) {
            return self.decoded_stream(length).ok_or(error);
        }
        let url = self.url.clone();
        let via = self.via.clone();
        let says_page = self.is_page();
        let mut stream = self.stream();
        // an empty body is left to the caller, who compares its length
        let Some(first) = stream.next().await else {
            return Ok(stream);
        };
        let first = first?;
        // Without a length, the body may be the content, so both signs of a page are required.
        let is_page = match announced {
            Some(_) => says_page || is_html(&first),
            None => says_page && is_html(&first),
        };
        if !is_page {
            return Ok(futures_util::stream::iter([Ok(first)])
                .chain(stream)
                .boxed());
        }
        let body = page_beginning(stream, first.to_vec()).await;
        Err(page_error(&url, via.as_deref(), what, &body))
    }
}

/// Appends the next bytes of a page to `body`, until `body` has `PAGE` bytes or the page ends or
/// fails.
async fn page_beginning(mut stream: ByteStream, mut body: Vec<u8>) -> Vec<u8> {
    while body.len() < PAGE
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

/// Whether the value of a `Content-Type` is HTML. Media types ignore case (RFC 9110, 8.3.1).
pub fn is_html_type(content_type: &str) -> bool {
    let media_type = content_type.split(';').next().unwrap_or_default();
    media_type.trim().eq_ignore_ascii_case("text/html")
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
pub fn page_title(body: &[u8]) -> Option<String> {
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

    #[test]
    fn pages_and_their_titles_are_recognized() {
        let page =
            b"\n<!DOCTYPE html>\n<html><head><TITLE lang=en> Access\n  denied </TITLE></head>";
        assert!(is_html(page) && is_html(b"<HTML>"));
        assert!(!is_html(b"\x1f\x8b") && !is_html(b"") && !is_html(b"{}"));
        assert_eq!(page_title(page).as_deref(), Some("Access denied"));
        assert_eq!(page_title(b"<html><title></title>"), None);
        assert_eq!(page_title(b"no page"), None);
        assert!(is_html_type("text/html") && is_html_type(" Text/HTML ;charset=utf-8"));
        assert!(!is_html_type("text/htmlx") && !is_html_type("application/json"));
    }
}
