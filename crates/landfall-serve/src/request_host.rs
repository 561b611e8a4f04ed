//! Determines the host that a request means: by its `Host` header or, over TLS, by the name in the
//! handshake. With an entry in a name server or a rewriting proxy, the original URLs of files and
//! the original names of images lead to this server.

use crate::catalog::BundleCatalog;
use crate::response::RequestError;
use axum::http::header::HOST;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Request, Uri};
use landfall_model::Digest;

/// The server name in the TLS handshake (SNI), if the client sent one. Every request over TLS has
/// this extension.
#[derive(Clone)]
pub(crate) struct ServerName(pub(crate) Option<String>);

/// The host that the request names, in lower case: the host of an absolute target, or else of the
/// `Host` header.
fn named_host(uri: &Uri, headers: &HeaderMap) -> Option<String> {
    let host = match uri.authority().map(Authority::as_str) {
        Some(authority) => authority,
        None => headers.get(HOST)?.to_str().ok()?,
    };
    Some(host.to_ascii_lowercase())
}

/// The spellings under which URLs may name `host`: with its port, and without the port if that is a
/// default port or one of `ports`, the ports of this server.
fn spellings(host: &str, ports: &[u16]) -> Vec<String> {
    // the colons of an IPv6 address in brackets do not begin a port
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, port.parse::<u16>().ok()),
        _ => (host, None),
    };
    // a fully qualified name may end in a dot
    let name = name.trim_end_matches('.');
    let mut spellings = Vec::new();
    if let Some(port) = port {
        spellings.push(format!("{name}:{port}"));
    }
    if port.is_none_or(|port| matches!(port, 80 | 443) || ports.contains(&port)) {
        spellings.push(name.to_owned());
    }
    spellings
}

/// The hosts that a request may mean, the likeliest first. The named host is omitted if it is this
/// server itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestHosts(Vec<String>);

impl RequestHosts {
    /// Collects the hosts of `request`, which reached one of `ports`.
    pub(crate) fn of<T>(bundles: &BundleCatalog, ports: &[u16], request: &Request<T>) -> Self {
        let mut candidates = Vec::new();
        let named = named_host(request.uri(), request.headers());
        // a client that names this server itself requests the server's own paths
        candidates.extend(named.filter(|host| !bundles.is_own_host(host)));
        if let Some(ServerName(Some(sni))) = request.extensions().get() {
            candidates.push(sni.to_ascii_lowercase());
        }
        let mut hosts = Vec::new();
        for candidate in &candidates {
            for spelling in spellings(candidate, ports) {
                if !hosts.contains(&spelling) {
                    hosts.push(spelling);
                }
            }
        }
        RequestHosts(hosts)
    }

    /// The digest of the file at `path` of the first host that has one; `None` if no host has one.
    pub(crate) fn file<'b>(
        &self,
        bundles: &'b BundleCatalog,
        path: &str,
        query: Option<&str>,
    ) -> Option<Result<&'b Digest, RequestError>> {
        let files = &bundles.files;
        self.0
            .iter()
            .map(|host| format!("{host}{path}"))
            .find(|url| files.has(url))
            .map(|url| files.find(&url, query))
    }

    /// The names of the hosts.
    pub(crate) fn names(&self) -> impl Iterator<Item = &String> {
        self.0.iter()
    }

    /// The first host whose files are served.
    pub(crate) fn host_of_files(&self, bundles: &BundleCatalog) -> Option<&str> {
        let host = self.0.iter().find(|host| bundles.files.has_host(host))?;
        Some(host)
    }

    /// The first host whose images are served; containerd sends this host as the parameter `ns`.
    pub(crate) fn host_of_images(&self, bundles: &BundleCatalog) -> Option<&str> {
        let host = self.0.iter().find(|host| bundles.has_source(host))?;
        Some(host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_ports_and_those_of_the_server_may_be_omitted() {
        assert_eq!(spellings("dl.k8s.io", &[5000]), ["dl.k8s.io"]);
        assert_eq!(
            spellings("dl.k8s.io.:443", &[5000]),
            ["dl.k8s.io:443", "dl.k8s.io"]
        );
        assert_eq!(
            spellings("dl.k8s.io:5000", &[5000]),
            ["dl.k8s.io:5000", "dl.k8s.io"]
        );
        assert_eq!(
            spellings("dl.k8s.io:8443", &[5000]),
            ["dl.k8s.io:8443"],
            "port 8443 belongs to another origin"
        );
        assert_eq!(spellings("[::1]:80", &[5000]), ["[::1]:80", "[::1]"]);
        assert_eq!(spellings("[::1]", &[5000]), ["[::1]"]);
    }

    #[test]
    fn an_absolute_target_overrides_the_host_header() {
        let headers = HeaderMap::from_iter([(HOST, "here:5000".parse().unwrap())]);
        let of = |uri: &str| named_host(&uri.parse().unwrap(), &headers);
        assert_eq!(of("http://DL.k8s.io/x").as_deref(), Some("dl.k8s.io"));
        assert_eq!(of("/x").as_deref(), Some("here:5000"));
        assert_eq!(named_host(&"/x".parse().unwrap(), &HeaderMap::new()), None);
    }
}
