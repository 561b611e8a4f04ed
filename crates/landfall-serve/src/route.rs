//! Routes of the distribution API: which resource a path names, and the values of its query.

use super::response::ApiError;
use landfall_model::{Digest, is_repository, is_tag};
use percent_encoding::percent_decode_str;

/// The resource that a path below `/v2/` names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Route {
    /// `/v2/`
    Version,
    /// `/v2/_catalog`
    Catalog,
    /// `/v2/NAME/tags/list`
    Tags(String),
    /// `/v2/NAME/manifests/REFERENCE`
    Manifest(String, Reference),
    /// `/v2/NAME/blobs/DIGEST`
    Blob(String, Digest),
    /// `/v2/NAME/blobs/uploads/`
    Uploads(String),
    /// `/v2/NAME/blobs/uploads/ID`
    Upload(String, String),
    /// `/v2/NAME/referrers/DIGEST`
    Referrers(String, Digest),
}

/// `<reference>` of the distribution-spec: what names a manifest in its repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reference {
    /// A tag by the grammar.
    Tag(String),
    /// A digest.
    Digest(Digest),
    /// Neither; no manifest can have this name.
    Neither(String),
}

impl Route {
    /// Reads a path, still percent-encoded, that begins with `/v2`.
    ///
    /// # Errors
    /// When the API has no such path, or a name or digest in it is not well formed.
    pub(super) fn parse(path: &str) -> Result<Route, ApiError> {
        let path = percent_decode_str(path).decode_utf8_lossy();
        let unknown = || {
            ApiError::not_found(
                "NAME_UNKNOWN",
                "there is no such resource in the distribution API",
            )
        };
        let rest = path.strip_prefix("/v2").ok_or_else(unknown)?;
        match rest {
            "" | "/" => return Ok(Route::Version),
            "/_catalog" | "/_catalog/" => return Ok(Route::Catalog),
            _ => {}
        }
        let rest = rest.strip_prefix('/').ok_or_else(unknown)?;
        let name = |text: &str| match is_repository(text) {
            true => Ok(text.to_owned()),
            false => Err(ApiError::bad(
                "NAME_INVALID",
                format!(
                    "'{text}' is no repository name: lower-case letters, digits, and . _ - between them"
                ),
            )),
        };
        let digest = |text: &str| {
            text.parse::<Digest>()
                .map_err(|error| ApiError::bad("DIGEST_INVALID", error.to_string()))
        };
        if let Some(repository) = rest.strip_suffix("/tags/list") {
            return Ok(Route::Tags(name(repository)?));
        }
        if let Some(repository) = rest
            .strip_suffix("/blobs/uploads/")
            .or_else(|| rest.strip_suffix("/blobs/uploads"))
        {
            return Ok(Route::Uploads(name(repository)?));
        }
        let (front, last) = rest.rsplit_once('/').ok_or_else(unknown)?;
        if let Some(repository) = front.strip_suffix("/blobs/uploads") {
            return Ok(Route::Upload(name(repository)?, last.to_owned()));
        }
        let (repository, kind) = front.rsplit_once('/').ok_or_else(unknown)?;
        match kind {
            "manifests" if last.contains(':') => Ok(Route::Manifest(
                name(repository)?,
                Reference::Digest(digest(last)?),
            )),
            "manifests" if is_tag(last) => Ok(Route::Manifest(
                name(repository)?,
                Reference::Tag(last.to_owned()),
            )),
            "manifests" => Ok(Route::Manifest(
                name(repository)?,
                Reference::Neither(last.to_owned()),
            )),
            "blobs" => Ok(Route::Blob(name(repository)?, digest(last)?)),
            "referrers" => Ok(Route::Referrers(name(repository)?, digest(last)?)),
            _ => Err(unknown()),
        }
    }
}

/// The first value of `key` in a query string, decoded.
pub(super) fn query(query: Option<&str>, key: &str) -> Option<String> {
    queries(query, key).next()
}

/// All values of `key` in a query string, decoded.
pub(super) fn queries<'a>(
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
    fn paths_are_read_from_their_end() {
        let digest = Digest::sha256(b"x");
        let route = |path: &str| Route::parse(path);
        assert_eq!(route("/v2").ok(), Some(Route::Version));
        assert_eq!(route("/v2/_catalog").ok(), Some(Route::Catalog));
        assert_eq!(
            route("/v2/blobs/manifests/tags/list").ok(),
            Some(Route::Tags("blobs/manifests".into())),
            "names may hold the API's own words"
        );
        let manifest = Route::Manifest("a/b".into(), Reference::Digest(digest.clone()));
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
        let neither = Route::Manifest("a".into(), Reference::Neither(".x".into()));
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
