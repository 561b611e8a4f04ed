//! The proxy as pods are told of it: two URLs and a list, in the names of variables and of charts.

use super::error::RenderError;
use super::kubernetes_objects::map;
use super::no_proxy::NoProxyDialect;
use super::request::RenderRequest;
use serde_yaml::Value;

/// The proxy as pods are told of it.
pub(super) struct PodProxy {
    pub http: String,
    pub https: String,
    pub no_proxy: String,
    /// Whether the URLs hold an account.
    pub has_account: bool,
}

impl PodProxy {
    /// The site's proxy, where it has one, with names in this dialect. A URL that the site lacks is
    /// the other one.
    ///
    /// # Errors
    /// When the proxy's account cannot be read.
    pub(super) fn of(
        request: &RenderRequest<'_>,
        dialect: NoProxyDialect,
    ) -> Result<Option<PodProxy>, RenderError> {
        let Some(proxy) = request.proxy()? else {
            return Ok(None);
        };
        let (Some(http), Some(https)) = (
            proxy.http.as_ref().or(proxy.https.as_ref()),
            proxy.https.as_ref().or(proxy.http.as_ref()),
        ) else {
            return Ok(None);
        };
        Ok(Some(PodProxy {
            http: http.url(),
            https: https.url(),
            no_proxy: request.no_proxy().list(dialect),
            has_account: proxy.has_account(),
        }))
    }

    /// The six variables, each in both cases.
    pub(super) fn variables(&self) -> Vec<(&'static str, String)> {
        let (http, https, no_proxy) = (&self.http, &self.https, &self.no_proxy);
        [
            ("HTTP_PROXY", http),
            ("http_proxy", http),
            ("HTTPS_PROXY", https),
            ("https_proxy", https),
            ("NO_PROXY", no_proxy),
            ("no_proxy", no_proxy),
        ]
        .map(|(name, value)| (name, value.clone()))
        .into()
    }

    /// `http`, `https`, `noProxy`: as Giant Swarm's charts spell it.
    pub(super) fn chart_values(&self) -> Value {
        map([
            ("http", self.http.as_str().into()),
            ("https", self.https.as_str().into()),
            ("noProxy", self.no_proxy.as_str().into()),
        ])
    }
}
