//! URLs of repositories.

use crate::ManifestResult;
use landfall_model::document::SourceSpan;
use landfall_model::has_userinfo;
use url::Url;

/// Parses the URL of a repository in a manifest and returns its normal form.
pub(super) fn url_of(text: &str, span: &SourceSpan) -> ManifestResult<String> {
    normal_url(text).map_err(|why| {
        let help = "write it as https://host/path/name.git; credentials are configured in the \
                    site file (`upstreams`)";
        span.fault(why, Some(help.into()))
    })
}

/// The URL of a Git LFS server as requests and locks have it: without a slash at its end, and
/// without a user name or password, because accounts come from the site. Otherwise as written, so
/// that `insteadOf` of a client's configuration matches it. The error says why `text` is not such a
/// URL.
pub(super) fn lfs_url(text: &str) -> Result<String, String> {
    let is_odd = |c: char| c.is_whitespace() || c.is_control();
    let url = Url::parse(text).ok().filter(|_| !text.contains(is_odd));
    let url = url.filter(|url| text.contains("://") && url.has_host());
    match url.as_ref().map(Url::scheme) {
        Some("http" | "https") => {}
        Some("ssh" | "git+ssh" | "ssh+git") => {
            return Err("large files are fetched over http or https, not over ssh".into());
        }
        // `user@host:path`, as git writes it
        _ if text.contains('@') && !text.contains("://") => {
            return Err("large files are fetched over http or https, not over ssh".into());
        }
        _ => return Err("it is not an http or https URL".into()),
    }
    if text.contains(['?', '#']) {
        return Err("the URL of a Git LFS server has no query and no fragment".into());
    }
    let (scheme, rest) = text.split_once("://").unwrap_or_default();
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit('@').next().unwrap_or(authority);
    Ok(format!("{scheme}://{host}{path}")
        .trim_end_matches('/')
        .to_owned())
}

/// The normal form of the URL of a repository. The error says why `text` is not such a URL.
pub(super) fn normal_url(text: &str) -> Result<String, String> {
    if text.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err("this URL contains white space".into());
    }
    let no_repository = || "this is not the URL of a repository".to_owned();
    let url = Url::parse(text)
        .ok()
        .filter(|url| text.contains("://") && url.has_host())
        .ok_or_else(no_repository)?;
    if !matches!(url.scheme(), "http" | "https") {
        let scheme = url.scheme();
        return Err(format!(
            "repositories are fetched over http or https, not over {scheme}"
        ));
    }
    if has_userinfo(&url) {
        return Err(
            "a URL must not contain a user name or password: manifests and locks are not secret"
                .into(),
        );
    }
    let has_path = !url.path().trim_end_matches('/').is_empty();
    if url.query().is_some() || url.fragment().is_some() || !has_path {
        return Err(no_repository());
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}
