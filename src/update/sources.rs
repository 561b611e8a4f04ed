//! The sources of versions: the tags of a repository, a text, a JSON document, the index of a chart
//! repository.

use super::json_path::texts_at;
use landfall_item::{ResolveError, Resolver, VersionSource, chart_versions};
use landfall_model::document::VersionsFrom;

/// The longest version in bytes, which is the longest tag of the distribution specification.
const LONGEST: usize = 128;

/// The versions that a source has, unsorted.
pub(super) async fn versions(
    resolver: &Resolver,
    from: &VersionSource,
) -> Result<Vec<String>, ResolveError> {
    let found = match from {
        VersionSource::Tags(image, before, after) => {
            let tags = resolver.tags(image, resolver.limits().pages).await?.ok_or_else(|| {
                ResolveError::from(format!(
                    "the registry does not list the tags of {}; name another source with `from:`",
                    image.name()
                ))
            })?;
            let version =
                |tag: &String| Some(tag.strip_prefix(before)?.strip_suffix(after)?.to_owned());
            tags.iter().filter_map(version).collect()
        }
        VersionSource::Chart(from) => chart_versions(resolver, &from.repo, &from.chart).await?,
        VersionSource::Document(from) => document_versions(resolver, from).await?,
        // see `packages`
        VersionSource::Packages(_) => Vec::new(),
    };
    Ok(found
        .into_iter()
        .filter(|version| is_version(version))
        .collect())
}

/// Whether a text can be written into a manifest without quotes: it must not change what the YAML
/// means.
fn is_version(text: &str) -> bool {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b'+');
    !text.is_empty() && text.len() <= LONGEST && text.bytes().all(good)
}

async fn document_versions(
    resolver: &Resolver,
    from: &VersionsFrom,
) -> Result<Vec<String>, ResolveError> {
    let limits = resolver.limits();
    match from {
        VersionsFrom::Text(url) => {
            let bytes = resolver
                .small_file(url, limits.document_bytes, None)
                .await?;
            let text = String::from_utf8_lossy(&bytes);
            Ok(text.lines().map(|line| line.trim().to_owned()).collect())
        }
        VersionsFrom::Json(json) => {
            let bytes = resolver
                .small_file(&json.url, limits.archive_bytes as usize, None)
                .await?;
            let document = serde_json::from_slice(&bytes).map_err(|error| {
                ResolveError::from(format!("{} is not JSON: {error}", json.url))
            })?;
            let found = texts_at(&document, &json.path)
                .map_err(|error| ResolveError::from(error.to_string()))?;
            if found.is_empty() {
                return Err(format!("{} has nothing at `{}`", json.url, json.path).into());
            }
            Ok(found)
        }
        VersionsFrom::Chart(from) => chart_versions(resolver, &from.repo, &from.chart).await,
    }
}

/// `version` with a `v` at its start if `current` has one, else without.
pub(super) fn written_like(current: &str, version: &str) -> String {
    let digits = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
    match (
        current.strip_prefix('v').is_some_and(digits),
        version.strip_prefix('v'),
    ) {
        (true, None) if digits(version) => format!("v{version}"),
        (false, Some(bare)) if digits(current) && digits(bare) => bare.to_owned(),
        _ => version.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_written_as_the_one_before() {
        for (current, version, written) in [
            ("v1.2.3", "1.2.4", "v1.2.4"),
            ("1.2.3", "v1.2.4", "1.2.4"),
            ("v1.2.3", "v1.2.4", "v1.2.4"),
            ("1.2.3", "1.2.4", "1.2.4"),
            ("go1.2", "1.3", "1.3"),
        ] {
            assert_eq!(written_like(current, version), written);
        }
    }

    #[test]
    fn text_with_a_meaning_in_yaml_is_not_a_version() {
        assert!(is_version("v1.30.0-rke2r1") && is_version("1.2.3+k3s1"));
        for bad in ["", "1.0 # x", "a: b", "\"1\"", "1\n2"] {
            assert!(!is_version(bad), "{bad}");
        }
    }
}
