//! Lists the versions of a source: the tags of an image or git repository, a text, a JSON document,
//! the index of a chart repository, or a registry of providers.

use super::json_path::texts_at;
use landfall_content::upstream::list_refs;
use landfall_item::{ResolveError, Resolver, VersionSource, chart_versions, provider_versions};
use landfall_model::document::VersionsFrom;
use landfall_model::from_json;

/// The maximum length of a version in bytes: that of a tag in the OCI distribution specification.
const MAX_VERSION_BYTES: usize = 128;

/// The versions that a source lists, unsorted.
pub(super) async fn versions(
    resolver: &Resolver,
    from: &VersionSource,
) -> Result<Vec<String>, ResolveError> {
    let found = match from {
        VersionSource::Tags {
            image,
            before,
            after,
        } => {
            let tags = resolver.all_tags(image).await?;
            let session = resolver.sessions().upstream(&image.registry).await?;
            let tags = tags.ok_or_else(|| {
                let why = session.tags_failure();
                ResolveError::from(format!(
                    "the registry does not list the tags of {}, or too many{}; name another source \
                     with `from:`",
                    image.name(),
                    why.map(|why| format!(" ({why})")).unwrap_or_default()
                ))
            })?;
            // the version may be only a part of the tag, as in `app:v${version}-debian`
            tags.iter()
                .filter_map(|tag| Some(tag.strip_prefix(before)?.strip_suffix(after)?.to_owned()))
                .collect()
        }
        VersionSource::Chart(from) => chart_versions(resolver, &from.repo, &from.chart).await?,
        VersionSource::GitTags(url) => {
            let refs = list_refs(resolver.sessions(), url).await?;
            resolver.keep_git_tags(url, &refs);
            refs.iter()
                .filter_map(|one| Some(one.name.strip_prefix("refs/tags/")?.to_owned()))
                .collect()
        }
        VersionSource::Provider(address) => provider_versions(resolver, address).await?,
        VersionSource::Document(from) => document_versions(resolver, from).await?,
        // the versions of packages are compared by the rules of apt or yum: see `packages`
        VersionSource::Packages(_) => Vec::new(),
    };
    Ok(found
        .into_iter()
        .filter(|version| is_version(version))
        .collect())
}

/// Whether a text can be written into a manifest without quotes. The text comes from a server,
/// so it must not be able to add YAML to the manifest.
fn is_version(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= MAX_VERSION_BYTES
        // a colon at the end would begin a mapping
        && !text.ends_with(':')
        && text.bytes().all(|byte| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b'+' | b':')
        })
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
            // a list of all releases may be larger than other documents: it has the limit of
            // archives
            let bytes = resolver
                .small_file(&json.url, limits.archive_bytes as usize, None)
                .await?;
            let document = from_json(&bytes).map_err(|error| {
                ResolveError::from(format!("{} is not JSON: {error}", json.url))
            })?;
            let found = texts_at(document, &json.path)
                .map_err(|error| ResolveError::from(error.to_string()))?;
            // An empty result would look like "nothing newer" and hide a wrong path, or a document
            // that changed its form.
            if found.is_empty() {
                return Err(format!("{} has nothing at `{}`", json.url, json.path).into());
            }
            Ok(found)
        }
        VersionsFrom::Chart(from) => chart_versions(resolver, &from.repo, &from.chart).await,
    }
}

/// Adds or removes the leading `v` of `version` to match `current`. So a document may list `1.2.4`
/// for the version that the manifest writes as `v1.2.4`.
pub(super) fn written_like(current: &str, version: &str) -> String {
    match (
        current.strip_prefix('v').is_some_and(begins_with_digit),
        version.strip_prefix('v'),
    ) {
        (true, None) if begins_with_digit(version) => format!("v{version}"),
        (false, Some(bare)) if begins_with_digit(current) && begins_with_digit(bare) => {
            bare.to_owned()
        }
        // for other forms, such as `go1.2`, a `v` has no such meaning
        _ => version.to_owned(),
    }
}

fn begins_with_digit(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_gets_the_leading_v_of_the_current_one() {
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
        assert!(is_version("db_2026-09-28T00:37:02Z_1790577750.tar.zst"));
        for bad in ["", "a:", "1.0 # x", "a: b", "\"1\"", "1\n2"] {
            assert!(!is_version(bad), "{bad}");
        }
    }
}
