//! Routes of the distribution API: the resource that a path names, and the values of its query.

use crate::response::RequestError;
use landfall_model::{Digest, is_repository, is_tag};
use percent_encoding::percent_decode_str;

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

fn digest(text: &str) -> Result<Digest, RequestError> {
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
}
