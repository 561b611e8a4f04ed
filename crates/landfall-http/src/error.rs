//! The error of a failed request: its kind, the URL, the status and the registry's own error
//! objects.

use landfall_model::report::one_line;
use reqwest::StatusCode;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// A failed request.
///
/// Code decides by [`ErrorKind`], [`HttpError::status`] and [`HttpError::codes`]; the text is for
/// people. It contains no credentials and no query strings, and is always a single line, even if it
/// quotes a server.
#[derive(Debug, Clone)]
pub struct HttpError {
    /// The kind of failure, by which callers decide whether to retry.
    pub kind: ErrorKind,
    /// The status of the response, if there was one.
    pub status: Option<u16>,
    /// The error objects of the distribution API that the response contained.
    pub codes: Vec<DistributionError>,
    // boxed, so that results stay small
    text: Box<ErrorText>,
}

#[derive(Debug, Clone)]
struct ErrorText {
    /// The name of the requested content, if messages show it instead of the URL.
    item: Option<String>,
    /// The URL of the request, redacted for messages.
    url: Option<String>,
    host: Option<String>,
    message: String,
    /// Shared, so that one error can be returned for many items.
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
    /// Whether an open connection failed before a response arrived, other than by a timeout.
    hung_up: bool,
}

/// The kind of a failed request, by what can be done about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The server says that the content does not exist.
    NotFound,
    /// The server refuses the account, or access without one.
    Denied,
    /// A proxy refuses the account or the host, or cannot reach the host. The proxy's answer has
    /// this status.
    Proxy(u16),
    /// The server asks to retry after this time. Earlier waits and this time together exceed
    /// `--max-wait`.
    RetryAfter(Duration),
    /// The connection failed, was cut or stalled; another attempt may help.
    Network,
    /// No further attempt is made in this run: all attempts failed, or the host failed too often
    /// and gets no more requests.
    GivenUp,
    /// The server answered with another status that is not a success.
    Status(u16),
    /// The response violates the protocol, or its bytes have another digest.
    Invalid,
    /// The failure is local: a file, a setting.
    Local,
}

/// An error object of the distribution API (distribution-spec, "Error Codes").
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DistributionError {
    /// The error code, such as `MANIFEST_UNKNOWN`.
    pub code: String,
    /// The registry's text for people.
    pub message: String,
    /// Further data of the registry; `null` if it sends none.
    pub detail: serde_json::Value,
}

impl HttpError {
    /// Creates an error of this kind. `message` is converted to one line.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> HttpError {
        // for other kinds, the caller sets the status if there was a response
        let status = match kind {
            ErrorKind::Status(status) | ErrorKind::Proxy(status) => Some(status),
            _ => None,
        };
        // messages may quote a server, which could otherwise imitate further lines of the output
        let message = one_line(&message.into());
        let text = ErrorText {
            item: None,
            url: None,
            host: None,
            message,
            source: None,
            hung_up: false,
        };
        HttpError {
            kind,
            status,
            codes: Vec::new(),
            text: Box::new(text),
        }
    }

    /// Sets the URL of the request, which the text shows redacted.
    #[must_use]
    pub fn at(mut self, url: &Url) -> HttpError {
        self.text.url = Some(redacted_url(url));
        self.text.host = Some(host_port(url));
        self
    }

    /// Sets the name of the requested content, which the text shows instead of the URL.
    #[must_use]
    pub fn about(mut self, item: impl Into<String>) -> HttpError {
        self.text.item = Some(one_line(&item.into()));
        self
    }

    /// Sets the status of the response.
    #[must_use]
    pub fn with_status(mut self, status: StatusCode) -> HttpError {
        self.status = Some(status.as_u16());
        self
    }

    /// Sets the cause, which `source()` returns.
    #[must_use]
    pub fn caused_by(
        mut self,
        source: impl std::error::Error + Send + Sync + 'static,
    ) -> HttpError {
        self.text.source = Some(Arc::new(source));
        self
    }

    /// Appends `words` to the text.
    #[must_use]
    pub fn hint(mut self, words: &str) -> HttpError {
        self.text.message += &one_line(words);
        self
    }

    /// Returns the redacted URL of the request, if it is known.
    pub fn url(&self) -> Option<&str> {
        self.text.url.as_deref()
    }

    pub(super) fn host(&self) -> Option<&str> {
        self.text.host.as_deref()
    }

    /// Sets whether an open connection failed before a response arrived, other than by a timeout.
    pub(super) fn hung_up(mut self, hung_up: bool) -> HttpError {
        self.text.hung_up = hung_up;
        self
    }

    /// Whether an open connection failed before a response arrived, other than by a timeout: the
    /// host closed it, or sent no valid response. In that case the request itself may be the cause.
    /// A refused connection or a timeout concerns the whole host.
    pub(super) fn is_hang_up(&self) -> bool {
        self.text.hung_up
    }

    /// Returns the message without the item or URL.
    pub fn message(&self) -> &str {
        &self.text.message
    }

    /// Whether the registry answered with this error code, such as `NAME_UNKNOWN`.
    pub fn has_code(&self, code: &str) -> bool {
        self.codes.iter().any(|error| error.code == code)
    }

    /// Whether the server may lack the content: it says so, or refuses access. Some registries and
    /// object stores answer 403 for missing content.
    pub fn may_be_missing(&self) -> bool {
        matches!(self.kind, ErrorKind::NotFound | ErrorKind::Denied)
    }

    /// Whether another attempt may succeed.
    pub fn is_transient(&self) -> bool {
        match self.kind {
            ErrorKind::Network => true,
            ErrorKind::Status(status) | ErrorKind::Proxy(status) => {
                super::retry::is_transient(status)
            }
            _ => false,
        }
    }
}

impl fmt::Display for HttpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(subject) = self.text.item.as_ref().or(self.text.url.as_ref()) {
            write!(f, "{subject}: ")?;
        }
        f.write_str(&self.text.message)
    }
}

impl std::error::Error for HttpError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        let source = self.text.source.as_deref()?;
        Some(source)
    }
}

/// Returns `host:port` of a URL, with the default port of its scheme if it has none.
pub fn host_port(url: &Url) -> String {
    format!(
        "{}:{}",
        url.host_str().unwrap_or("?"),
        url.port_or_known_default().unwrap_or(0)
    )
}

/// Returns a URL that may be shown and logged: without userinfo and fragment, and with `?…` instead
/// of the query, which may contain a signature or a token.
pub fn redacted_url(url: &Url) -> String {
    let mut shown = url.clone();
    // these fail only for URLs that cannot have userinfo
    let _ = shown.set_username("");
    let _ = shown.set_password(None);
    // `?…` shows that there was a query, for example the signature of a signed URL
    let has_query = shown.query().is_some();
    shown.set_query(None);
    shown.set_fragment(None);
    if has_query {
        format!("{shown}?…")
    } else {
        shown.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_server_stays_on_one_line() {
        let error = HttpError::new(
            ErrorKind::Status(500),
            "it said x\n::stop-commands::y\u{1b}[2J",
        )
        .hint("\ndone: 3 images")
        .about("an\nitem");
        assert_eq!(
            error.to_string(),
            "an\\nitem: it said x\\n::stop-commands::y\\u{1b}[2J\\ndone: 3 images"
        );
    }

    #[test]
    fn the_text_names_the_item_or_the_url_and_hides_the_query() {
        let url = Url::parse("https://u:pw@r.test/v2/?token=secret").unwrap();
        let error = HttpError::new(ErrorKind::Status(503), "it is down").at(&url);
        assert_eq!(error.to_string(), "https://r.test/v2/?…: it is down");
        assert_eq!(
            (error.url(), error.status),
            (Some("https://r.test/v2/?…"), Some(503))
        );
        assert_eq!(error.about("tag a").to_string(), "tag a: it is down");
    }
}
