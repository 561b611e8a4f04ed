//! The site's proxy in the forms that nodes, pods and static pods need.

use crate::kubernetes_objects::{document, map};
use crate::no_proxy::NoProxyDialect;
use crate::node_registry::read_certificates;
use crate::rendered_file::RenderedFile;
use crate::request::{BasicCredentials, RenderRequest};
use landfall_content::registry::site_proxy_accounts;
use landfall_model::Failure;
use landfall_model::config::Site;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_yaml::Value;

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
    ) -> Result<Option<NodeProxy>, Failure> {
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
    ) -> Result<Option<PodProxy>, Failure> {
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

// Proxy settings for static pods. The kubelet starts them from files that kubeadm writes, so
// admission webhooks do not see them, and kubeadm must patch them.

/// The folder for kubeadm patches on a node.
pub(super) const PATCHES: &str = "/etc/kubernetes/patches";

/// Returns patches that add these variables to the static pods of the API server, the controller
/// manager and the scheduler. The paths of the patches are the paths on a node without the leading
/// `/`.
pub(super) fn static_pod_patches(
    variables: &[(&'static str, String)],
    secret: bool,
) -> Vec<RenderedFile> {
    [
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
    ]
    .map(|pod| {
        let container = map([("name", pod.into()), ("env", env(variables))]);
        let patch = map([("spec", map([("containers", vec![container].into())]))]);
        let path = format!("{}/{pod}0+strategic.yaml", PATCHES.trim_start_matches('/'));
        RenderedFile::new(path, document(&patch))
            .mode(0o600)
            .secret(secret)
    })
    .into()
}

/// Returns variables as the `env` of a container.
pub(super) fn env(variables: &[(&'static str, String)]) -> Value {
    variables
        .iter()
        .map(|(name, value): &(&str, String)| {
            map([("name", (*name).into()), ("value", value.as_str().into())])
        })
        .collect::<Vec<_>>()
        .into()
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
