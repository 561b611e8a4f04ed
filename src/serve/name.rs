//! Names of the distribution API: which texts are repositories and tags, and which resource a path means.

use super::reply::Problem;
use crate::model::Digest;
use percent_encoding::percent_decode_str;

/// Longest repository name that is taken, in bytes (what docker-registry takes).
const REPOSITORY_BYTES: usize = 255;

/// What a path below `/v2/` means.
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

/// What names a manifest in its repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reference {
    /// A tag by the grammar.
    Tag(String),
    /// A digest.
    Digest(Digest),
    /// Neither; nothing can have this name.
    Neither(String),
}

/// Whether `text` is a repository name by distribution-spec "Pulling manifests": components of lower-case
/// letters and digits, parted by `.`, `_`, `__` or any number of `-`. A component is never `..` or empty,
/// so that such a name is a safe path.
pub(super) fn is_repository(text: &str) -> bool {
    text.len() <= REPOSITORY_BYTES && text.split('/').all(is_component)
}

fn is_component(text: &str) -> bool {
    let word = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let mut rest = text.as_bytes();
    loop {
        let letters = rest.iter().take_while(|byte| word(byte)).count();
        rest = &rest[letters..];
        if letters == 0 || rest.is_empty() {
            return letters > 0;
        }
        let mark = rest.iter().take_while(|byte| !word(byte)).count();
        let known = matches!(&rest[..mark], b"." | b"_" | b"__") || rest[..mark].iter().all(|&b| b == b'-');
        if !known {
            return false;
        }
        rest = &rest[mark..];
    }
}

/// Whether `text` is a tag: up to 128 of `[A-Za-z0-9_.-]`, the first neither `.` nor `-`.
pub(super) fn is_tag(text: &str) -> bool {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    (1..=128).contains(&text.len()) && text.bytes().all(good) && !text.starts_with(['.', '-'])
}

impl Route {
    /// Reads a path, still percent-encoded, that begins with `/v2`.
    ///
    /// # Errors
    /// When it is no path of the API, or a name or digest in it is not well formed.
    pub(super) fn parse(path: &str) -> Result<Route, Problem> {
        let path = percent_decode_str(path).decode_utf8_lossy();
        let unknown =
            || Problem::not_found("NAME_UNKNOWN", "there is no such resource in the distribution API");
        let rest = path.strip_prefix("/v2").ok_or_else(unknown)?;
        match rest {
            "" | "/" => return Ok(Route::Version),
            "/_catalog" | "/_catalog/" => return Ok(Route::Catalog),
            _ => {}
        }
        let rest = rest.strip_prefix('/').ok_or_else(unknown)?;
        let name = |text: &str| match is_repository(text) {
            true => Ok(text.to_owned()),
            false => Err(Problem::bad(
                "NAME_INVALID",
                format!("'{text}' is no repository name: lower-case letters, digits, and . _ - between them"),
            )),
        };
        let digest = |text: &str| {
            text.parse::<Digest>().map_err(|error| Problem::bad("DIGEST_INVALID", error.to_string()))
        };
        if let Some(repository) = rest.strip_suffix("/tags/list") {
            return Ok(Route::Tags(name(repository)?));
        }
        if let Some(repository) =
            rest.strip_suffix("/blobs/uploads/").or_else(|| rest.strip_suffix("/blobs/uploads"))
        {
            return Ok(Route::Uploads(name(repository)?));
        }
        let (front, last) = rest.rsplit_once('/').ok_or_else(unknown)?;
        if let Some(repository) = front.strip_suffix("/blobs/uploads") {
            return Ok(Route::Upload(name(repository)?, last.to_owned()));
        }
        let (repository, kind) = front.rsplit_once('/').ok_or_else(unknown)?;
        match kind {
            "manifests" if last.contains(':') => {
                Ok(Route::Manifest(name(repository)?, Reference::Digest(digest(last)?)))
            }
            "manifests" if is_tag(last) => {
                Ok(Route::Manifest(name(repository)?, Reference::Tag(last.to_owned())))
            }
            "manifests" => Ok(Route::Manifest(name(repository)?, Reference::Neither(last.to_owned()))),
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
pub(super) fn queries<'a>(query: Option<&'a str>, key: &'a str) -> impl Iterator<Item = String> + 'a {
    url::form_urlencoded::parse(query.unwrap_or("").as_bytes())
        .filter(move |(name, _)| name == key)
        .map(|(_, value)| value.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repositories_and_tags_by_the_grammar() {
        for good in ["a", "library/nginx", "a.b/c_d/e__f/g---h", "files/dl.k8s.io/00ff", "localhost_5001/a"] {
            assert!(is_repository(good), "{good}");
        }
        let long = "a".repeat(256);
        for bad in
            ["", "A", "a//b", "/a", "a/", "..", "a/../b", ".a", "a.", "a..b", "a___b", "_a", "a:b", &long]
        {
            assert!(!is_repository(bad), "{bad}");
        }
        assert!(is_tag("v1.33.4") && is_tag("_x") && is_tag("sha256-ab.sig"));
        for bad in ["", ".", "..", "-a", "a/b", "a:b", &"t".repeat(129)] {
            assert!(!is_tag(bad), "{bad}");
        }
    }

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
        assert_eq!(route(&format!("/v2/a/b/manifests/{digest}")).ok(), Some(manifest.clone()));
        let encoded = digest.to_string().replace(':', "%3A");
        assert_eq!(route(&format!("/v2/a/b/manifests/{encoded}")).ok(), Some(manifest));
        assert_eq!(route("/v2/a/blobs/uploads/").ok(), Some(Route::Uploads("a".into())));
        assert_eq!(route("/v2/a/blobs/uploads/7").ok(), Some(Route::Upload("a".into(), "7".into())));
        let neither = Route::Manifest("a".into(), Reference::Neither(".x".into()));
        assert_eq!(route("/v2/a/manifests/.x").ok(), Some(neither));
        for (path, code) in [
            ("/v2/../x/manifests/1", "NAME_INVALID"),
            ("/v2/a/%2e%2e/b/manifests/1", "NAME_INVALID"),
            ("/v2/a/blobs/sha256:00", "DIGEST_INVALID"),
            ("/v2/a", "NAME_UNKNOWN"),
            ("/v2x", "NAME_UNKNOWN"),
        ] {
            assert_eq!(route(path).err().map(|problem| problem.code), Some(code), "{path}");
        }
    }
}
