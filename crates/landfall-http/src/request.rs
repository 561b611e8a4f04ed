//! A request, as the transport takes it.

use super::body::RequestBody;
use super::host_limiter::{QuotaKey, SlotClass};
use super::ledger::RequestPurpose;
use super::upload_source::is_reading_for_upload;
use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use url::{Origin, Url};

/// A request, as [`Transport::send`](crate::Transport::send) takes it.
#[derive(Clone)]
pub struct HttpRequest {
    /// The method.
    pub method: Method,
    /// Where the first attempt goes; redirects are followed from there.
    pub url: Url,
    /// Headers, `Authorization` included. A redirect to another host drops `Authorization`.
    pub headers: HeaderMap,
    /// The body, which is sent anew with each attempt.
    pub body: RequestBody,
    /// What the host is contacted for, for the ledger.
    pub purpose: RequestPurpose,
    /// Whether the transport retries. The sender of an upload begins a new upload itself.
    pub retried: bool,
    /// Whether rate limits of registries count it, as they count manifests that are fetched.
    pub metered: bool,
    /// Which of its host's slots it takes. If this task reads for an upload, it takes a slot of
    /// [`SlotClass::UploadSource`] in place of an ordinary one.
    pub class: SlotClass,
    /// The upstream host that a mirror replaces, if the request goes to a mirror.
    pub origin: Option<String>,
    /// `host:port` of the response that named this URL, if no lock names it: a token realm, or the
    /// URL of a foreign layer.
    pub named_by: Option<String>,
    /// Whether it carries a secret for this host alone, in a header or in its body: a redirect to
    /// another host is an error.
    pub secret: bool,
    /// `Authorization` for other origins that a redirect may lead to.
    pub elsewhere: Vec<(Origin, String)>,
}

impl HttpRequest {
    /// A request without headers and body.
    pub fn new(method: Method, url: Url, purpose: RequestPurpose) -> HttpRequest {
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

    /// The class of the slot that it takes if this task sends it.
    pub(super) fn slot_class(&self) -> SlotClass {
        match self.class {
            SlotClass::Ordinary if is_reading_for_upload() => SlotClass::UploadSource,
            class => class,
        }
    }

    /// What decides whether the host put it off.
    pub(super) fn quota_key(&self) -> QuotaKey<'_> {
        QuotaKey {
            metered: self.metered,
            origin: self.origin.as_deref(),
        }
    }

    /// The `Authorization` for a redirect to `target`, if there is one for that origin.
    pub(super) fn authorization_for(&self, target: &Url) -> Option<HeaderValue> {
        let origin = target.origin();
        let (_, value) = self.elsewhere.iter().find(|(known, _)| *known == origin)?;
        HeaderValue::from_str(value).ok()
    }

    /// The same request with another header. A value that no header can hold is left out.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: &str) -> HttpRequest {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.insert(name, value);
        }
        self
    }
}
