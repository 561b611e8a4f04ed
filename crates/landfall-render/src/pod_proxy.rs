//! The proxy settings of pods: two URLs and NO_PROXY, as variables and as chart values.

use super::error::RenderError;
use super::kubernetes_objects::map;
use super::no_proxy::NoProxyDialect;
use super::request::RenderRequest;
use serde_yaml::Value;

/// The proxy settings of pods.
pub(super) struct PodProxy {
    pub http: String,
    pub https: String,
    pub no_proxy: String,
    /// Whether the URLs contain credentials.
    pub has_account: bool,
}

impl PodProxy {
    /// Returns the settings for the site's proxy, with NO_PROXY in this dialect; `None` if the site
    /// has no proxy. If the proxy has only one URL, that URL is used for both schemes.
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

    /// Returns the variables in upper and in lower case: wget reads only lower case, and curl reads
    /// `http_proxy` only in lower case.
    pub(super) fn variables(&self) -> Vec<(&'static str, String)> {
        [
            ("HTTP_PROXY", &self.http),
            ("http_proxy", &self.http),
            ("HTTPS_PROXY", &self.https),
            ("https_proxy", &self.https),
            ("NO_PROXY", &self.no_proxy),
            ("no_proxy", &self.no_proxy),
        ]
        .map(|(name, value)| (name, value.clone()))
        .into()
    }

    /// Returns the chart values `http`, `https` and `noProxy`, as in the charts of Giant Swarm.
    pub(super) fn chart_values(&self) -> Value {
        map([
            ("http", self.http.as_str().into()),
            ("https", self.https.as_str().into()),
            ("noProxy", self.no_proxy.as_str().into()),
        ])
    }
}
