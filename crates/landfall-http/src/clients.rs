//! The HTTP clients: one for each combination of TLS settings, proxy and reach.

use super::error::{ErrorKind, HttpError};
use super::error_causes::causes;
use super::private_targets::PublicOnly;
use super::proxy::ProxyUrl;
use super::transport::{Reach, Transport};
use std::sync::Arc;
use url::Url;

impl Transport {
    /// The client for the host of `url` on this route.
    ///
    /// # Errors
    /// A file of the TLS settings that cannot be used.
    pub(super) fn client(
        &self,
        url: &Url,
        route: Option<&ProxyUrl>,
        reach: Reach,
    ) -> Result<reqwest::Client, HttpError> {
        let key = (
            self.tls_profile(url, route),
            route.map(|proxy| format!("{}|{}", proxy.url, proxy.account.is_some())),
            reach,
        );
        let mut clients = self
            .0
            .clients
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(client) = clients.get(&key) {
            return Ok(client.clone());
        }
        let local = |error: reqwest::Error| {
            HttpError::new(ErrorKind::Local, causes(&error)).caused_by(error)
        };
        let tls = key.0.config();
        let tls = tls.map_err(|error| {
            HttpError::new(ErrorKind::Local, error.to_string()).caused_by(error)
        })?;
        let mut builder = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .http1_only()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(self.limits().connect)
            .tcp_nodelay(true)
            .user_agent(concat!("landfall/", env!("CARGO_PKG_VERSION")));
        if reach == Reach::Public {
            builder =
                builder.dns_resolver(Arc::new(PublicOnly(self.0.config.private_targets.clone())));
        }
        if let Some(proxy) = route {
            let mut all = reqwest::Proxy::all(proxy.url.clone()).map_err(local)?;
            if let Some(account) = &proxy.account {
                all = all.basic_auth(&account.user, &account.password);
            }
            builder = builder.proxy(all);
        }
        let client = builder.build().map_err(local)?;
        clients.insert(key, client.clone());
        Ok(client)
    }
}
