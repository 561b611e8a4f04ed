//! The HTTP clients: one for each combination of TLS settings, proxy and address scope.

use super::error::{ErrorKind, HttpError};
use super::error_causes::describe;
use super::private_targets::PublicOnly;
use super::proxy::ProxyUrl;
use super::transport::{AddressScope, ClientKey, Transport};
use landfall_model::locked;
use reqwest::redirect::Policy;
use std::sync::Arc;
use url::Url;

impl Transport {
    /// Returns the client for the host of `url` on this route. Fails if a file of the TLS settings
    /// cannot be used.
    pub(super) fn client(
        &self,
        url: &Url,
        route: Option<&ProxyUrl>,
        scope: AddressScope,
    ) -> Result<reqwest::Client, HttpError> {
        let key = ClientKey {
            tls: self.tls_profile(url, route),
            proxy: route.map(|proxy| proxy.url.to_string()),
            has_proxy_account: route.is_some_and(|proxy| proxy.account.is_some()),
            scope,
        };
        // locked until the client is stored, so that each is created once and its connections are
        // shared
        let mut clients = locked(&self.0.clients);
        if let Some(client) = clients.get(&key) {
            return Ok(client.clone());
        }
        let tls = key.tls.config().map_err(|error| {
            HttpError::new(ErrorKind::Local, error.to_string()).caused_by(error)
        })?;
        // Redirects are followed by `Transport::follow`, which keeps `Authorization` at its host.
        // HTTP/1.1 only: HTTP/2 multiplexes all streams over one connection, which cannot fill a
        // fast link.
        let mut builder = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .http1_only()
            // reqwest would read the proxy variables itself; `ProxyRules` decides instead
            .no_proxy()
            .redirect(Policy::none())
            .connect_timeout(self.limits().connect)
            .tcp_nodelay(true)
            .user_agent(concat!("landfall/", env!("CARGO_PKG_VERSION")));
        if scope == AddressScope::Public {
            let resolver = PublicOnly(self.0.config.private_targets.clone());
            builder = builder.dns_resolver(Arc::new(resolver));
        }
        if let Some(proxy) = route {
            let mut all = reqwest::Proxy::all(proxy.url.clone()).map_err(unusable_client)?;
            if let Some(account) = &proxy.account {
                all = all.basic_auth(&account.user, &account.password);
            }
            builder = builder.proxy(all);
        }
        let client = builder.build().map_err(unusable_client)?;
        clients.insert(key, client.clone());
        Ok(client)
    }
}

fn unusable_client(error: reqwest::Error) -> HttpError {
    HttpError::new(ErrorKind::Local, describe(&error)).caused_by(error)
}
