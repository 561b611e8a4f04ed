//! Files under their original URLs: which host a request means, by its `Host` header or, over TLS,
//! by the name in the handshake. So an entry in a name server, or a proxy that rewrites, makes old
//! URLs work.

use super::response::ApiError;
use super::state::State;
use axum::http::header::HOST;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Uri};
use landfall_model::Digest;

/// The name in the TLS handshake of the connection (SNI), where the client gave one: an extension
/// of each request over TLS.
#[derive(Clone)]
pub(super) struct ServerName(pub(super) Option<String>);

/// The host that the request names: that of an absolute target, else that of the `Host` header. In
/// lower case, as it came else.
fn named(uri: &Uri, headers: &HeaderMap) -> Option<String> {
    let target = uri.authority().map(Authority::as_str);
    let header = || headers.get(HOST).and_then(|host| host.to_str().ok());
    target.or_else(header).map(str::to_ascii_lowercase)
}

/// The names that `host` has in URLs: itself, and without its port where that is one at which
/// clients reach this server.
fn spellings(host: &str, ports: &[u16]) -> Vec<String> {
    let (name, port) = match host
        .rsplit_once(':')
        .filter(|(_, port)| !port.contains(']'))
    {
        Some((name, port)) => (name, port.parse::<u16>().ok()),
        None => (host, None),
    };
    let name = name.trim_end_matches('.');
    let with_port = port.map(|port| format!("{name}:{port}"));
    let is_ours = port.is_none_or(|port| matches!(port, 80 | 443) || ports.contains(&port));
    with_port
        .into_iter()
        .chain(is_ours.then(|| name.to_owned()))
        .collect()
}

/// The hosts that the request may mean, the likeliest first; none where it names this server.
pub(super) fn hosts<T>(state: &State, request: &axum::http::Request<T>) -> Hosts {
    let sni = request
        .extensions()
        .get::<ServerName>()
        .and_then(|name| name.0.clone());
    let sni = sni.map(|name| name.to_ascii_lowercase());
    let named = named(request.uri(), request.headers());
    let is_own = |host: &String| state.bundles.is_own_host(host);
    let mut hosts = Vec::new();
    for host in named.filter(|host| !is_own(host)).into_iter().chain(sni) {
        for spelling in spellings(&host, &state.ports) {
            if !hosts.contains(&spelling) {
                hosts.push(spelling);
            }
        }
    }
    Hosts(hosts)
}

/// Hosts that a request may mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hosts(Vec<String>);

impl Hosts {
    /// The content of the URL at the first of them that has such a path; `None` where none has.
    pub(super) fn file<'s>(
        &self,
        state: &'s State,
        path: &str,
        query: Option<&str>,
    ) -> Option<Result<&'s Digest, ApiError>> {
        let files = &state.bundles.files;
        let at = |host: &String| format!("{host}{path}");
        self.0
            .iter()
            .map(at)
            .find(|at| files.has(at))
            .map(|at| files.find(&at, query))
    }

    /// The first of them of which files are served.
    pub(super) fn of_files<'a>(&'a self, state: &State) -> Option<&'a str> {
        self.0
            .iter()
            .find(|host| state.bundles.files.has_host(host))
            .map(String::as_str)
    }

    /// The first of them of which images are served: what containerd says by its parameter `ns`.
    pub(super) fn of_images<'a>(&'a self, state: &State) -> Option<&'a str> {
        self.0
            .iter()
            .find(|host| state.bundles.has_source(host))
            .map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_counts_unless_it_is_one_of_ours() {
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
            "another origin"
        );
        assert_eq!(spellings("[::1]:80", &[5000]), ["[::1]:80", "[::1]"]);
        assert_eq!(spellings("[::1]", &[5000]), ["[::1]"]);
    }

    #[test]
    fn an_absolute_target_counts_more_than_the_header() {
        let headers = HeaderMap::from_iter([(HOST, "here:5000".parse().unwrap())]);
        let of = |uri: &str| named(&uri.parse().unwrap(), &headers);
        assert_eq!(of("http://DL.k8s.io/x").as_deref(), Some("dl.k8s.io"));
        assert_eq!(of("/x").as_deref(), Some("here:5000"));
        assert_eq!(named(&"/x".parse().unwrap(), &HeaderMap::new()), None);
    }
}
