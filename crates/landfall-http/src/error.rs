//! The error of a failed request: its class, the URL, the status and the registry's own error
//! objects.

use landfall_model::report::one_line;
use reqwest::StatusCode;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// A failed request. [`ErrorKind`], [`HttpError::status`] and [`HttpError::codes`] are for decisions, its
/// text is for people; the text holds no credentials and no query strings, and is one line whatever
/// a server said.
#[derive(Debug, Clone)]
pub struct HttpError {
    /// The class.
    pub kind: ErrorKind,
    /// The status, where there was an answer.
    pub status: Option<u16>,
    /// The error objects of the distribution API, where the answer held some.
    pub codes: Vec<DistributionError>,
    // boxed, so that results stay small
    text: Box<Text>,
}

#[derive(Debug, Clone)]
struct Text {
    /// What was asked for, where there is a better name for it than the URL.
    item: Option<String>,
    url: Option<String>,
    /// `host:port` that was asked.
    host: Option<String>,
    message: String,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
    /// The host took the request and hung up.
    hung_up: bool,
}

/// Classes of failed requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The server says that it does not exist.
    NotFound,
    /// The server refuses us.
    Denied,
    /// A proxy refuses us or the host, or does not reach it, with this status.
    Proxy(u16),
    /// The server asks for a longer wait than `--max-wait` allows.
    RetryAfter(Duration),
    /// The connection failed, was cut or stalled; another attempt may help.
    Network,
    /// It was tried as often as that may help, and is not tried again in this run; or the host has
    /// not answered often enough, and is asked nothing more.
    GivenUp,
    /// The server answered with another status that is no success.
    Status(u16),
    /// The server's answer breaks the protocol, or its bytes have another digest.
    Invalid,
    /// Our own side failed: a file, a setting.
    Local,
}

/// One error object of the distribution API (distribution-spec, "Error Codes").
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DistributionError {
    /// The code, such as `MANIFEST_UNKNOWN`.
    pub code: String,
    /// The registry's words.
    pub message: String,
    /// Whatever the registry adds; `null` where it adds nothing.
    pub detail: serde_json::Value,
}

impl HttpError {
    /// An error of this class.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> HttpError {
        let status = match kind {
            ErrorKind::Status(status) | ErrorKind::Proxy(status) => Some(status),
            _ => None,
        };
        let message = one_line(&message.into());
        let text = Text {
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

    /// The same for a request to `url`.
    #[must_use]
    pub fn at(mut self, url: &Url) -> HttpError {
        self.text.url = Some(redacted_url(url));
        self.text.host = Some(host_port(url));
        self
    }

    /// The same with a name for what was asked for, which its text shows in place of the URL.
    #[must_use]
    pub fn about(mut self, item: impl Into<String>) -> HttpError {
        self.text.item = Some(one_line(&item.into()));
        self
    }

    /// The same for an answer with this status.
    #[must_use]
    pub fn with_status(mut self, status: StatusCode) -> HttpError {
        self.status = Some(status.as_u16());
        self
    }

    /// The same with what caused it.
    #[must_use]
    pub fn caused_by(
        mut self,
        source: impl std::error::Error + Send + Sync + 'static,
    ) -> HttpError {
        self.text.source = Some(Arc::new(source));
        self
    }

    /// The same with these words after its text.
    #[must_use]
    pub fn hint(mut self, words: &str) -> HttpError {
        self.text.message += &one_line(words);
        self
    }

    /// The URL as it may be shown, where one was asked.
    pub fn url(&self) -> Option<&str> {
        self.text.url.as_deref()
    }

    /// `host:port` that was asked.
    pub(super) fn host(&self) -> Option<&str> {
        self.text.host.as_deref()
    }

    /// The same for a connection that ended after it had taken the request.
    pub(super) fn hung_up(mut self, hung_up: bool) -> HttpError {
        self.text.hung_up = hung_up;
        self
    }

    /// Whether the host took the request and hung up. That may be about the request; no connection,
    /// and silence, are about the host.
    pub(super) fn is_hang_up(&self) -> bool {
        self.text.hung_up
    }

    /// The words alone, without what they are about.
    pub fn message(&self) -> &str {
        &self.text.message
    }

    /// Whether the registry named this code, such as `NAME_UNKNOWN`.
    pub fn has_code(&self, code: &str) -> bool {
        self.codes.iter().any(|error| error.code == code)
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

/// `host:port` with the scheme's default port filled in.
pub fn host_port(url: &Url) -> String {
    format!(
        "{}:{}",
        url.host_str().unwrap_or("?"),
        url.port_or_known_default().unwrap_or(0)
    )
}

/// A URL as it may be shown: without userinfo, and with `?…` for a query.
pub fn redacted_url(url: &Url) -> String {
    let mut shown = url.clone();
    let _ = shown.set_username("");
    let _ = shown.set_password(None);
    let query = shown.query().is_some();
    shown.set_query(None);
    shown.set_fragment(None);
    format!("{shown}{}", if query { "?…" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_says_stays_on_its_line() {
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
