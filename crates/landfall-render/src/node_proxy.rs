//! The site's proxy in the form that nodes need: URLs with percent-encoded credentials.

use super::certificates::read_certificates;
use super::credentials::BasicCredentials;
use super::error::RenderError;
use landfall_content::registry::site_proxy_accounts;
use landfall_model::config::Site;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The site's proxy in the form that nodes need.
#[derive(Debug, Clone, Default)]
pub struct NodeProxy {
    /// The proxy for http targets.
    pub http: Option<ProxyAddress>,
    /// The proxy for https targets.
    pub https: Option<ProxyAddress>,
    /// The certificate authorities for hosts reached through the proxy, in PEM form.
    pub ca: Option<String>,
}

/// The address of a proxy, with its credentials kept apart: `Debug` prints only the address.
#[derive(Clone, PartialEq, Eq)]
pub struct ProxyAddress {
    /// `scheme://host[:port]`, as in the site.
    plain: String,
    account: Option<BasicCredentials>,
}

impl std::fmt::Debug for ProxyAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.plain)
    }
}

/// The characters that are percent-encoded in the credentials of a URL: all characters except the
/// unreserved ones (RFC 3986, section 2.3).
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

impl ProxyAddress {
    /// Parses a proxy URL of the site, which was validated when the site was loaded. Drops the
    /// credentials in the URL: `account` has them, or other credentials with a higher priority.
    fn new(text: &str, account: Option<BasicCredentials>) -> ProxyAddress {
        let (scheme, rest) = text
            .trim()
            .split_once("://")
            .unwrap_or(("http", text.trim()));
        // the last `@` ends the credentials, because a password may contain `@` too
        let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
        ProxyAddress {
            plain: format!("{scheme}://{}", host.trim_end_matches('/')),
            account,
        }
    }

    /// Returns the URL with the percent-encoded credentials, if there are any. Programs read a raw
    /// `@`, `:` or `#` in a password in different ways.
    pub fn url(&self) -> String {
        let Some(BasicCredentials { username, password }) = &self.account else {
            return self.plain.clone();
        };
        let (scheme, host) = self
            .plain
            .split_once("://")
            .unwrap_or(("http", &self.plain));
        format!(
            "{scheme}://{}:{}@{host}",
            percent_encoded(username),
            percent_encoded(password)
        )
    }

    /// Whether the URL contains credentials.
    pub fn has_account(&self) -> bool {
        self.account.is_some()
    }
}

fn percent_encoded(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

impl NodeProxy {
    /// Returns the proxy of `site`, if it has one. `get` returns variables of the environment.
    ///
    /// # Errors
    /// If the credentials or certificates cannot be read.
    pub fn of(
        site: &Site,
        get: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<NodeProxy>, RenderError> {
        let Some(proxy) = site
            .proxy
            .as_ref()
            .filter(|proxy| proxy.http.is_some() || proxy.https.is_some())
        else {
            return Ok(None);
        };
        let [http, https] =
            site_proxy_accounts(site, get)?.map(|account| account.map(BasicCredentials::from));
        let ca = proxy
            .ca
            .as_ref()
            .map(|path| read_certificates(site, path))
            .transpose()?;
        Ok(Some(NodeProxy {
            http: proxy_address(proxy.http.as_deref(), http),
            https: proxy_address(proxy.https.as_deref(), https),
            ca,
        }))
    }

    /// Whether one of the URLs contains credentials.
    pub fn has_account(&self) -> bool {
        self.http
            .iter()
            .chain(&self.https)
            .any(ProxyAddress::has_account)
    }
}

fn proxy_address(text: Option<&str>, account: Option<BasicCredentials>) -> Option<ProxyAddress> {
    text.map(|text| ProxyAddress::new(text, account))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn credentials_of_the_site_are_encoded_and_replace_those_in_the_url() {
        let text = "apiVersion: landfall/v1\nkind: Site\n\
                    proxy: {http: \"http://asdf\", https: \"https://old:one@10.0.0.1:80/\", \
                    credentials: {usernameEnv: U, passwordEnv: P}}\n";
        let site = Site::parse(Path::new("s"), text).unwrap();
        let get = |name: &str| Some(if name == "U" { "dom\\me" } else { "p@ss:w/d%" }.to_owned());
        let proxy = NodeProxy::of(&site, get).unwrap().unwrap();
        let http = proxy.http.clone().unwrap();
        let https = proxy.https.clone().unwrap();
        assert_eq!(http.url(), "http://dom%5Cme:p%40ss%3Aw%2Fd%25@asdf");
        assert_eq!(
            https.url(),
            "https://dom%5Cme:p%40ss%3Aw%2Fd%25@10.0.0.1:80"
        );
        assert_eq!(
            (&*http.plain, &*https.plain),
            ("http://asdf", "https://10.0.0.1:80")
        );
        assert!(proxy.has_account() && !format!("{proxy:?}").contains("p@ss"));
    }
}
