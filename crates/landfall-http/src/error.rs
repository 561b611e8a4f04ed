//! The error of a failed request, in landfall's own words: its kind, the URL, the status and the
//! registry's own error objects.

use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use landfall_model::report::one_line;
use landfall_model::{Failure, TransferSide};
use reqwest::StatusCode;
use rustls::AlertDescription;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};
use tower_service::Service;
use url::{Position, Url};

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

#[derive(Debug, Clone, Default)]
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

/// A task on a blocking thread that panicked.
impl From<tokio::task::JoinError> for HttpError {
    fn from(error: tokio::task::JoinError) -> HttpError {
        HttpError::new(ErrorKind::Local, error.to_string())
    }
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
            message,
            ..ErrorText::default()
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

impl From<HttpError> for Failure {
    fn from(error: HttpError) -> Failure {
        match error.kind {
            ErrorKind::Local => Failure::usage(error.to_string()),
            _ => Failure::failed(error.to_string()).on(TransferSide::Destination),
        }
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

/// A `host:port` as people write it: without the port 443.
pub(super) fn shown_host(host: &str) -> &str {
    host.strip_suffix(":443").unwrap_or(host)
}

/// Returns the host of a URL as references name it: with its port, unless that is the default of
/// its scheme.
pub fn host_of(url: &Url) -> &str {
    &url[Position::BeforeHost..Position::AfterPort]
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

// Describes errors of libraries by their causes, in landfall's own words.

/// hyper-util's error for a proxy that refuses a tunnel. That crate exports no name for it.
pub(super) type TunnelError = <Tunnel<HttpConnector> as Service<hyper::Uri>>::Error;

/// Describes why a request failed, in one line. The text of a library is shown only if the cause is
/// unknown.
pub(super) fn describe(error: &reqwest::Error) -> String {
    describe_known(error).unwrap_or_else(|| chain(error))
}

/// Describes the failure of a connection, if its cause is a known one.
pub(super) fn describe_known(error: &(dyn Error + 'static)) -> Option<String> {
    // TLS first: rustls reports its errors inside an I/O error
    if let Some(error) = find::<rustls::Error>(error) {
        return Some(describe_tls(error));
    }
    if let Some(words) = find::<io::Error>(error).and_then(describe_io) {
        return Some(words);
    }
    match find::<TunnelError>(error) {
        Some(TunnelError::TunnelUnexpectedEof) => {
            return Some("it closed the connection without an answer to CONNECT".into());
        }
        Some(TunnelError::ProxyHeadersTooLong) => {
            return Some("the headers of its answer to CONNECT are too large".into());
        }
        _ => {}
    }
    let error = find::<hyper::Error>(error)?;
    let words = if error.is_incomplete_message() {
        "the connection was closed before the end of the answer"
    } else if error.is_parse_too_large() {
        "the headers of the answer are too large, or too many"
    } else if error.is_parse() {
        "the answer is not HTTP"
    } else if error.is_timeout() {
        "the connection timed out"
    } else {
        return None;
    };
    Some(words.into())
}

/// Describes an I/O error whose kind says what failed.
pub(super) fn describe_io(error: &io::Error) -> Option<String> {
    use io::ErrorKind::{
        BrokenPipe, ConnectionAborted, ConnectionRefused, ConnectionReset, HostUnreachable,
        InvalidData, InvalidInput, NetworkUnreachable, Other, TimedOut, UnexpectedEof,
    };
    let words = match error.kind() {
        ConnectionRefused => "the connection is refused",
        ConnectionReset | ConnectionAborted => "the connection was reset",
        BrokenPipe | UnexpectedEof => "the connection was closed too early",
        HostUnreachable => "there is no route to the host",
        NetworkUnreachable => "the network is unreachable",
        TimedOut => "the connection timed out",
        Other | InvalidData | InvalidInput => return None,
        // The standard library has no kind for a failed name look-up. Such an error is recognized
        // by its inner error, which is only a text, and by its missing errno.
        _ if error.raw_os_error().is_none() && error.get_ref().is_some_and(is_text) => {
            let text = error.to_string();
            let why = text.rsplit(": ").next().unwrap_or(&text);
            return Some(format!("its name cannot be resolved: {why}"));
        }
        _ => return None,
    };
    Some(words.into())
}

/// Whether an error is only a text, such as the message of the resolver.
fn is_text(error: &(dyn Error + Send + Sync + 'static)) -> bool {
    error.downcast_ref::<io::Error>().is_none() && error.source().is_none()
}

fn describe_tls(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidMessage(_) => "the answer is not TLS".into(),
        rustls::Error::AlertReceived(alert) => {
            let hint = match alert {
                // with TLS 1.2, Apache and others answer so if there is no client certificate
                AlertDescription::HandshakeFailure => {
                    ": it may require a client certificate, or support only old versions or \
                     ciphers; landfall needs TLS 1.3, or TLS 1.2 with ECDHE and AES-GCM or ChaCha20"
                }
                AlertDescription::InsufficientSecurity | AlertDescription::ProtocolVersion => {
                    ": it may support only old versions or ciphers; landfall needs TLS 1.3, or \
                     TLS 1.2 with ECDHE and AES-GCM or ChaCha20"
                }
                _ => "",
            };
            format!("the server refuses the TLS handshake ({alert:?}){hint}")
        }
        rustls::Error::PeerIncompatible(_) => {
            "the server supports no TLS version or cipher that landfall accepts".into()
        }
        other => format!("TLS failed: {other}"),
    }
}

/// Returns the messages of an error's causes in one line, without those of reqwest and of
/// hyper-util's client: both only say that a request failed, and reqwest's contains the URL with
/// its query.
fn chain(error: &reqwest::Error) -> String {
    let Some(first) = error.source() else {
        return "the request failed".into();
    };
    let is_outer = first.is::<hyper_util::client::legacy::Error>();
    let first = first.source().filter(|_| is_outer).unwrap_or(first);
    let mut words = vec![first.to_string()];
    let mut source = first.source();
    while let Some(cause) = source {
        let next = cause.to_string();
        // Many errors repeat the message of their cause.
        if !words.iter().any(|known| known.contains(&next)) {
            words.push(next);
        }
        source = cause.source();
    }
    words.join(": ")
}

/// Returns the first error of this type among `error` and its causes. Also looks into I/O errors,
/// which do not report their inner error as a source.
pub(super) fn find<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<T>() {
            return Some(found);
        }
        next = match error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref)
        {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_handshake_says_which_versions_and_ciphers_are_needed() {
        let words = |alert| describe_tls(&rustls::Error::AlertReceived(alert));
        for alert in [
            AlertDescription::HandshakeFailure,
            AlertDescription::ProtocolVersion,
        ] {
            assert!(words(alert).contains("landfall needs TLS 1.3, or TLS 1.2 with ECDHE"));
        }
        assert!(!words(AlertDescription::UnrecognisedName).contains("needs"));
    }

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

    #[test]
    fn the_host_of_a_url_has_no_default_port() {
        for (url, host, with_port) in [
            ("https://u:pw@r.test:443/v2/", "r.test", "r.test:443"),
            ("http://r.test:443", "r.test:443", "r.test:443"),
            ("https://[::1]:5000/a:b@c", "[::1]:5000", "[::1]:5000"),
        ] {
            let url = Url::parse(url).unwrap();
            assert_eq!((host_of(&url), &*host_port(&url)), (host, with_port));
        }
    }

    #[test]
    fn io_errors_are_described_by_their_kind() {
        let printed = |error: io::Error| describe_io(&error);
        assert_eq!(
            printed(io::ErrorKind::ConnectionReset.into()).unwrap(),
            "the connection was reset"
        );
        assert_eq!(
            printed(io::Error::from_raw_os_error(111)).unwrap(),
            "the connection is refused"
        );
        let lookup = std::net::ToSocketAddrs::to_socket_addrs("nowhere.invalid:1").unwrap_err();
        let words = printed(lookup).unwrap();
        assert!(
            words.starts_with("its name cannot be resolved: ") && !words.contains("lookup"),
            "{words}"
        );
        assert_eq!(printed(io::Error::other(io::Error::other("x"))), None);
    }
}
