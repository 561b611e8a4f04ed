//! Routes of the distribution API: the resource that a path names, and the values of its query.

use crate::catalog::BundleCatalog;
use crate::response::RequestError;
use http::header::{AsHeaderName, HOST};
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderMap, Request, Uri};
use landfall_model::{
    Digest, extend_distinct, is_repository, is_tag, split_port, without_brackets,
};
use percent_encoding::percent_decode_str;
use std::net::IpAddr;

/// The resource that a path below `/v2/` names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    /// The check of the API version, `/v2/`.
    Version,
    /// The names of all repositories, `/v2/_catalog`.
    Catalog,
    /// The tags of a repository, `/v2/NAME/tags/list`.
    Tags(String),
    /// A manifest of a repository, `/v2/NAME/manifests/REFERENCE`.
    Manifest(String, ManifestReference),
    /// A blob of a repository, `/v2/NAME/blobs/DIGEST`.
    Blob(String, Digest),
    /// The uploads to a repository, `/v2/NAME/blobs/uploads/`.
    Uploads(String),
    /// An upload in progress by its id, `/v2/NAME/blobs/uploads/ID`.
    Upload(String, String),
    /// The referrers of a manifest, `/v2/NAME/referrers/DIGEST`.
    Referrers(String, Digest),
}

/// `<reference>` of the distribution-spec, which names a manifest in its repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ManifestReference {
    Tag(String),
    Digest(Digest),
    /// Neither a tag nor a digest by their grammars; no manifest can have this name.
    Invalid(String),
}

impl Route {
    /// Parses a percent-encoded path that begins with `/v2`. Fails if the API has no such path, or
    /// if a name or digest in it is malformed.
    pub(crate) fn parse(path: &str) -> Result<Route, RequestError> {
        let path = percent_decode_str(path).decode_utf8_lossy();
        let path = path.strip_prefix("/v2").ok_or_else(unknown_route)?;
        match path {
            "" | "/" => return Ok(Route::Version),
            "/_catalog" | "/_catalog/" => return Ok(Route::Catalog),
            _ => {}
        }
        let path = path.strip_prefix('/').ok_or_else(unknown_route)?;
        // parsed from the end: a repository name may contain the words of the API, too
        if let Some(name) = path.strip_suffix("/tags/list") {
            return Ok(Route::Tags(repository(name)?));
        }
        if let Some(name) = path
            .strip_suffix("/blobs/uploads/")
            .or_else(|| path.strip_suffix("/blobs/uploads"))
        {
            return Ok(Route::Uploads(repository(name)?));
        }
        let (front, last) = path.rsplit_once('/').ok_or_else(unknown_route)?;
        if let Some(name) = front.strip_suffix("/blobs/uploads") {
            return Ok(Route::Upload(repository(name)?, last.to_owned()));
        }
        let (name, resource) = front.rsplit_once('/').ok_or_else(unknown_route)?;
        match resource {
            "manifests" => Ok(Route::Manifest(repository(name)?, reference(last)?)),
            "blobs" => Ok(Route::Blob(repository(name)?, digest(last)?)),
            "referrers" => Ok(Route::Referrers(repository(name)?, digest(last)?)),
            _ => Err(unknown_route()),
        }
    }
}

fn unknown_route() -> RequestError {
    RequestError::not_found(
        "NAME_UNKNOWN",
        "there is no such resource in the distribution API",
    )
}

fn repository(name: &str) -> Result<String, RequestError> {
    if is_repository(name) {
        return Ok(name.to_owned());
    }
    Err(RequestError::bad_request(
        "NAME_INVALID",
        format!(
            "'{name}' is not a repository name: use lower-case letters and digits, with . _ or - \
             between them"
        ),
    ))
}

pub(crate) fn digest(text: &str) -> Result<Digest, RequestError> {
    text.parse().map_err(|error: landfall_model::DigestError| {
        RequestError::bad_request("DIGEST_INVALID", error.to_string())
    })
}

fn reference(text: &str) -> Result<ManifestReference, RequestError> {
    // a tag cannot contain a colon, a digest always does
    if text.contains(':') {
        Ok(ManifestReference::Digest(digest(text)?))
    } else if is_tag(text) {
        Ok(ManifestReference::Tag(text.to_owned()))
    } else {
        // not an error of the request: the specification answers an unknown reference with 404
        Ok(ManifestReference::Invalid(text.to_owned()))
    }
}

/// `uri` with single slashes in its path; `None` if it has no others. Base URLs often end in a
/// slash, and other registries and web servers merge it with the next one.
pub(crate) fn with_single_slashes(uri: &Uri) -> Option<Uri> {
    if !uri.path().contains("//") {
        return None;
    }
    let mut target = String::new();
    for c in uri.path().chars() {
        if c != '/' || !target.ends_with('/') {
            target.push(c);
        }
    }
    if let Some(query) = uri.query() {
        target += "?";
        target += query;
    }
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(target.parse().ok()?);
    Uri::from_parts(parts).ok()
}

/// The first value of `key` in a query string, decoded.
pub(crate) fn query_value(query: Option<&str>, key: &str) -> Option<String> {
    query_values(query, key).next()
}

/// All values of `key` in a query string, decoded.
pub(crate) fn query_values<'a>(
    query: Option<&'a str>,
    key: &'a str,
) -> impl Iterator<Item = String> + 'a {
    url::form_urlencoded::parse(query.unwrap_or("").as_bytes())
        .filter(move |(name, _)| name == key)
        .map(|(_, value)| value.into_owned())
}

// Determines the host that a request means: by its `Host` header or, over TLS, by the name in the
// handshake. With an entry in a name server or a rewriting proxy, the original URLs of files and
// the original names of images lead to this server.

/// The server name in the TLS handshake (SNI), if the client sent one. Every request over TLS has
/// this extension.
#[derive(Clone)]
pub(crate) struct ServerName(pub(crate) Option<String>);

/// The header in which a proxy says whether its client speaks TLS.
pub(crate) const FORWARDED_PROTO: &str = "x-forwarded-proto";

/// Whether the client of a request speaks TLS: to this server, or to the proxy in front of it that
/// is nearest to the client.
pub(crate) fn is_over_tls(parts: &Parts) -> bool {
    let forwarded = header_text(&parts.headers, FORWARDED_PROTO);
    let forwarded = forwarded.and_then(|schemes| schemes.split(',').next());
    parts.extensions.get::<ServerName>().is_some()
        || forwarded.is_some_and(|scheme| scheme.trim().eq_ignore_ascii_case("https"))
}

/// The host that the request names: the host of an absolute target, or else of the `Host` header.
pub(crate) fn host_as_written<'r>(uri: &'r Uri, headers: &'r HeaderMap) -> Option<&'r str> {
    let authority = uri.authority().map(Authority::as_str);
    authority.or_else(|| header_text(headers, HOST))
}

fn named_host(uri: &Uri, headers: &HeaderMap) -> Option<String> {
    host_as_written(uri, headers).map(str::to_ascii_lowercase)
}

/// The value of a header, if it is text.
pub(crate) fn header_text(headers: &HeaderMap, name: impl AsHeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

/// The spellings under which URLs may name `host`: with its port, and without the port if that is a
/// default port or one of `ports`, the ports of this server.
fn spellings(host: &str, ports: &[u16]) -> Vec<String> {
    let (name, port) = split_port(host);
    let port = port.and_then(|port| port.parse::<u16>().ok());
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
            extend_distinct(&mut hosts, spellings(candidate, ports));
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

    /// The likeliest host that may be another server. An address or `localhost` is this server,
    /// even if it does not know the address, as behind a forwarded port: only names can lead here
    /// instead of to their own servers.
    pub(crate) fn other_server(&self) -> Option<&str> {
        let is_name = |host: &str| {
            let (name, _) = split_port(host);
            name != "localhost" && without_brackets(name).parse::<IpAddr>().is_err()
        };
        let mut hosts = self.0.iter().map(String::as_str);
        hosts.find(|host| is_name(host))
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
    fn paths_are_parsed_from_their_end() {
        let digest = Digest::sha256(b"x");
        let route = |path: &str| Route::parse(path);
        assert_eq!(route("/v2").ok(), Some(Route::Version));
        assert_eq!(route("/v2/_catalog").ok(), Some(Route::Catalog));
        assert_eq!(
            route("/v2/blobs/manifests/tags/list").ok(),
            Some(Route::Tags("blobs/manifests".into())),
            "names may contain the API's own words"
        );
        let manifest = Route::Manifest("a/b".into(), ManifestReference::Digest(digest.clone()));
        assert_eq!(
            route(&format!("/v2/a/b/manifests/{digest}")).ok(),
            Some(manifest.clone())
        );
        let encoded = digest.to_string().replace(':', "%3A");
        assert_eq!(
            route(&format!("/v2/a/b/manifests/{encoded}")).ok(),
            Some(manifest)
        );
        assert_eq!(
            route("/v2/a/blobs/uploads/").ok(),
            Some(Route::Uploads("a".into()))
        );
        assert_eq!(
            route("/v2/a/blobs/uploads/7").ok(),
            Some(Route::Upload("a".into(), "7".into()))
        );
        let neither = Route::Manifest("a".into(), ManifestReference::Invalid(".x".into()));
        assert_eq!(route("/v2/a/manifests/.x").ok(), Some(neither));
        for (path, code) in [
            ("/v2/../x/manifests/1", "NAME_INVALID"),
            ("/v2/a/%2e%2e/b/manifests/1", "NAME_INVALID"),
            ("/v2/a/blobs/sha256:00", "DIGEST_INVALID"),
            ("/v2/a", "NAME_UNKNOWN"),
            ("/v2x", "NAME_UNKNOWN"),
        ] {
            assert_eq!(
                route(path).err().map(|problem| problem.code),
                Some(code),
                "{path}"
            );
        }
    }

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
    fn slashes_are_merged_in_the_path_only() {
        let merged = |uri: &str| {
            let merged = with_single_slashes(&uri.parse().unwrap())?;
            Some(merged.to_string())
        };
        for (uri, expected) in [
            ("//v2///a/", "/v2/a/"),
            ("/files//h/a?u=http://x//y", "/files/h/a?u=http://x//y"),
            ("http://h:1//a", "http://h:1/a"),
        ] {
            assert_eq!(merged(uri).as_deref(), Some(expected));
        }
        for single in ["/", "/a/b/", "/a?x=//y", "http://h/a", "*"] {
            assert_eq!(merged(single), None, "{single}");
        }
    }

    #[test]
    fn a_client_that_names_an_address_means_this_server() {
        let other = |hosts: &[&str]| {
            let hosts = hosts.iter().map(|host| (*host).to_owned());
            let hosts = RequestHosts(hosts.collect());
            hosts.other_server().map(str::to_owned)
        };
        assert_eq!(other(&["172.20.0.2:5000", "[fd00::2]", "localhost"]), None);
        assert_eq!(other(&["172.20.0.2", "h"]).as_deref(), Some("h"));
    }

    #[test]
    fn a_proxy_says_that_its_client_speaks_tls() {
        let is_tls = |scheme: &str| {
            let request = Request::builder().header("X-Forwarded-Proto", scheme);
            is_over_tls(&request.body(()).unwrap().into_parts().0)
        };
        assert!(is_tls("https") && is_tls("HTTPS, http"));
        assert!(!is_tls("http") && !is_tls("http, https") && !is_tls(""));
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
