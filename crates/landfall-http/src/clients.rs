//! The HTTP clients: one for each combination of TLS settings, proxy and address scope.

use super::error::{ErrorKind, HttpError};
use super::error_causes::describe;
use super::private_targets::PublicOnly;
use super::proxy::{ProxyAccount, ProxyUrl};
use super::transport::{AddressScope, ClientKey, Transport};
use landfall_model::{Digest, locked};
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
        let key = self.client_key(url, route, scope);
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
        if let AddressScope::Public { port } = scope {
            let allowed = self.0.config.private_targets.clone();
            let resolver = PublicOnly { allowed, port };
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

    /// The settings of the client for this host and route.
    fn client_key(&self, url: &Url, route: Option<&ProxyUrl>, scope: AddressScope) -> ClientKey {
        let account = route.and_then(|proxy| proxy.account.as_ref());
        ClientKey {
            tls: self.tls_profile(url, route),
            proxy: route.map(|proxy| proxy.url.to_string()),
            proxy_account: account.map(|account| {
                // the length shows where the user name ends, whatever it contains
                let ProxyAccount { user, password, .. } = account;
                Digest::sha256(format!("{} {user}{password}", user.len()).as_bytes())
            }),
            scope,
        }
    }
}

fn unusable_client(error: reqwest::Error) -> HttpError {
    HttpError::new(ErrorKind::Local, describe(&error)).caused_by(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::TransportConfig;
    use landfall_model::Limits;

    #[test]
    fn accounts_at_one_proxy_have_their_own_clients() {
        let transport = Transport::new(TransportConfig::direct(Limits::default()));
        let url: Url = "https://r.test/".parse().unwrap();
        let key = |user: &str, password: &str| {
            let account = ProxyAccount {
                user: user.into(),
                password: password.into(),
                source: String::new(),
            };
            let route = ProxyUrl {
                url: "http://proxy.test:3128".parse().unwrap(),
                account: Some(account).filter(|_| !user.is_empty()),
                source: String::new(),
            };
            transport.client_key(&url, Some(&route), AddressScope::Any)
        };
        assert_eq!(key("anna", "one"), key("anna", "one"));
        for (user, password) in [("otto", "one"), ("anna", "two"), ("", "")] {
            assert_ne!(key("anna", "one"), key(user, password), "{user} {password}");
        }
        // a URL may contain any character in escaped form
        assert_ne!(key("anna\n1", "one"), key("anna", "1\none"));
        assert_ne!(key("anna", "one"), key("annao", "ne"));
        assert!(!format!("{:?}", key("anna", "hush")).contains("hush"));
    }
}
