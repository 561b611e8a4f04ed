//! One request, as the transport takes it.

use super::body::RequestBody;
use super::host_limiter::SlotClass;
use super::ledger::RequestPurpose;
use super::upload_source::is_reading_for_upload;
use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use url::{Origin, Url};

/// One request.
#[derive(Clone)]
pub struct HttpRequest {
    /// Method.
    pub method: Method,
    /// URL.
    pub url: Url,
    /// Headers, `Authorization` included; a redirect to another host drops that one.
    pub headers: HeaderMap,
    /// Sent with the request.
    pub body: RequestBody,
    /// What the host is contacted for, for the ledger.
    pub purpose: RequestPurpose,
    /// Whether the transport tries again. The sender of an upload starts it anew itself.
    pub retried: bool,
    /// Registries with a rate limit count it: they count manifests that are fetched.
    pub metered: bool,
    /// Which of its host's slots it takes. One that is made for an upload takes a slot of
    /// [`SlotClass::UploadSource`] in place of an ordinary one.
    pub class: SlotClass,
    /// The origin that a mirror replaces.
    pub origin: Option<String>,
    /// `host:port` whose answer named this URL, where it stands in no lock: a token realm, a
    /// foreign layer.
    pub named_by: Option<String>,
    /// It carries a secret for this host alone, in a header or in its body: a redirect to another
    /// host is an error.
    pub secret: bool,
    /// `Authorization` for other hosts that a redirect may lead to.
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

    /// Which of its host's slots it takes, sent by this task.
    pub(super) fn slot_class(&self) -> SlotClass {
        match self.class {
            SlotClass::Ordinary if is_reading_for_upload() => SlotClass::UploadSource,
            class => class,
        }
    }

    /// The same with a header.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: &str) -> HttpRequest {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.insert(name, value);
        }
        self
    }
}
