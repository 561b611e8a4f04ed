//! A request, with everything that the transport needs to know about it.

use super::body::RequestBody;
use super::host_limiter::{QuotaKey, SlotClass};
use super::ledger::RequestPurpose;
use super::upload_source::is_reading_for_upload;
use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use url::{Origin, Url};

/// A request, and how [`Transport::send`](crate::Transport::send) treats it.
#[derive(Clone)]
pub struct HttpRequest {
    /// The HTTP method. It stays the same when redirects are followed.
    pub method: Method,
    /// The URL of the first hop; redirects are followed from there.
    pub url: Url,
    /// The headers. A redirect to another origin drops `Authorization`, and others that may contain
    /// a secret.
    pub headers: HeaderMap,
    /// The body, which is sent again with each attempt.
    pub body: RequestBody,
    /// The purpose of the request, for the ledger.
    pub purpose: RequestPurpose,
    /// Whether the transport retries the request. The sender of an upload does that itself, because
    /// a retry is a new upload.
    pub retried: bool,
    /// Whether rate limits of registries count the request, as they count the download of a
    /// manifest.
    pub metered: bool,
    /// The class of the slot that the request takes. If the task that sends an ordinary request
    /// reads for an upload, the request takes a slot of [`SlotClass::UploadSource`] instead.
    pub class: SlotClass,
    /// The upstream host that a mirror replaces, if the request goes to a mirror.
    pub origin: Option<String>,
    /// `host:port` of the server whose response named this URL, such as a token realm or the URL of
    /// a foreign layer.
    pub named_by: Option<String>,
    /// Whether a header or the body contains a secret for this host only. A redirect to another
    /// origin is then an error.
    pub secret: bool,
    /// `Authorization` for other origins that a redirect may lead to.
    pub elsewhere: Vec<(Origin, String)>,
}

impl HttpRequest {
    /// Creates a request without headers and body.
    pub fn new(method: Method, url: Url, purpose: RequestPurpose) -> HttpRequest {
        // many requests wait for one token, so token requests must not queue behind them
        let class = match purpose {
            RequestPurpose::Token => SlotClass::SignIn,
            _ => SlotClass::Ordinary,
        };
        HttpRequest {
            method,
            url,
            headers: HeaderMap::new(),
            body: RequestBody::Empty,
            purpose,
            retried: true,
            metered: false,
            class,
            origin: None,
            named_by: None,
            secret: false,
            elsewhere: Vec::new(),
        }
    }

    /// Returns the class of the slot that the request takes if this task sends it.
    pub(super) fn slot_class(&self) -> SlotClass {
        match self.class {
            SlotClass::Ordinary if is_reading_for_upload() => SlotClass::UploadSource,
            class => class,
        }
    }

    /// Returns the properties that decide whether a deferral of the host applies.
    pub(super) fn quota_key(&self) -> QuotaKey<'_> {
        QuotaKey {
            metered: self.metered,
            origin: self.origin.as_deref(),
        }
    }

    /// Returns the `Authorization` for a redirect to `target`, if there is one for that origin.
    pub(super) fn authorization_for(&self, target: &Url) -> Option<HeaderValue> {
        let origin = target.origin();
        let (_, value) = self.elsewhere.iter().find(|(known, _)| *known == origin)?;
        HeaderValue::from_str(value).ok()
    }

    /// Sets a header. A value that is not valid in a header is ignored.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: &str) -> HttpRequest {
        // values come from locks and sites, which may contain any text
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.insert(name, value);
        }
        self
    }
}
