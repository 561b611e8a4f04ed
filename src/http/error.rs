//! What goes wrong on the wire.

use std::time::Duration;
use url::Url;

/// A failed request: its class, and a message that names host, cause and mend.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// The class, for decisions.
    pub kind: ErrorKind,
    /// The message, for people. It holds no credentials and no query strings.
    pub message: String,
    /// Error codes of the distribution API, such as `MANIFEST_UNKNOWN`, where the answer named some.
    pub codes: Vec<String>,
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
    /// The server asks to come back later than `--max-wait` allows.
    ComeBack(Duration),
    /// The connection failed, was cut or stalled; trying again may help.
    Network,
    /// The server answered with a status that is no success.
    Status(u16),
    /// The server's answer breaks the protocol, or its bytes have another digest.
    Invalid,
    /// Our own side failed: a file, a setting.
    Local,
}

impl Error {
    /// An error of this class.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error { kind, message: message.into(), codes: Vec::new() }
    }

    /// Whether another attempt may succeed.
    pub fn is_transient(&self) -> bool {
        match self.kind {
            ErrorKind::Network => true,
            ErrorKind::Status(status) | ErrorKind::Proxy(status) => super::retry::is_transient(status),
            _ => false,
        }
    }
}

/// A URL as it may be shown: without userinfo, and with `?…` for a query.
pub fn shown_url(url: &Url) -> String {
    let mut shown = url.clone();
    let _ = shown.set_username("");
    let _ = shown.set_password(None);
    let query = shown.query().is_some();
    shown.set_query(None);
    shown.set_fragment(None);
    format!("{shown}{}", if query { "?…" } else { "" })
}
