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
