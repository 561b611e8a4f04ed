//! HTTP repositories of charts: finds the archive of a version in the repository's `index.yaml`.
//!
//! The index is untrusted. Its size is limited; of a large one only the lines about the requested
//! chart are parsed; URLs with other schemes are refused; and the archive is compared with its
//! digest.

use super::metadata::plain;
use super::name::ChartName;
use crate::resolver::{ResolveError, Resolver};
use landfall_model::document;
use landfall_model::{Digest, has_userinfo};
use serde::Deserialize;
use serde_yaml::Value;
use std::collections::BTreeMap;
use url::Url;

/// A version of a chart in an index.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct IndexedChart {
    #[serde(default)]
    version: Value,
    #[serde(default)]
    urls: Vec<String>,
    #[serde(default)]
    digest: Option<String>,
}

#[derive(Deserialize)]
struct ChartIndex {
    #[serde(default)]
    entries: BTreeMap<String, Vec<IndexedChart>>,
}

/// Where an HTTP repository stores the archive of a chart version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ArchiveLocation {
    /// The URL of the archive: `http`, `https` or `oci`.
    pub(super) url: Url,
    /// The digest of the archive, if the index has one.
    pub(super) digest: Option<Digest>,
}

/// The versions of `chart` that the repository at `url` lists.
///
/// # Errors
/// If the index cannot be downloaded or parsed, or does not contain the chart.
pub async fn versions(
    resolver: &Resolver,
    url: &str,
    chart: &str,
) -> Result<Vec<String>, ResolveError> {
    let url = url.trim_end_matches('/');
    let listed = listed(resolver, url, chart).await;
    let listed = listed.map_err(|cause| cause.about(&format!("chart `{chart}` of {url}")))?;
    Ok(listed
        .iter()
        .filter_map(|one| plain(&one.version))
        .collect())
}

/// Finds the archive of `name` in its repository at `url`.
pub(super) async fn archive(
    resolver: &Resolver,
    url: &str,
    name: &ChartName,
) -> Result<ArchiveLocation, ResolveError> {
    let listed = listed(resolver, url, &name.chart).await?;
    let archive = find(&listed, url, name)?;
    resolver
        .sessions()
        .check_named_target(archive.url.as_str(), url)
        .await?;
    Ok(archive)
}

/// The URL of the index of the repository at `url`.
pub(super) fn index_of(url: &str) -> String {
    format!("{url}/index.yaml")
}

async fn listed(
    resolver: &Resolver,
    url: &str,
    chart: &str,
) -> Result<Vec<IndexedChart>, ResolveError> {
    let index = resolver.index(&index_of(url)).await?;
    let text = String::from_utf8_lossy(&index);
    let read = read(&text, chart, resolver.limits().document_bytes);
    read.map_err(|why| ResolveError::from(format!("{}: {why}", index_of(url))))?
        .ok_or_else(ResolveError::gone)
}

/// The versions of `chart` in an index; `None` if it does not contain the chart. More than `most`
/// bytes are not parsed.
fn read(text: &str, chart: &str, most: usize) -> Result<Option<Vec<IndexedChart>>, String> {
    let fault = |why: &str| format!("this is no index of charts: {why}");
    let parsed =
        |text: &str| document::read("index.yaml", text).map_err(|error| fault(&error.message));
    match section(text, chart) {
        Some("") => Ok(None),
        Some(lines) if lines.len() <= most => {
            let mut read: BTreeMap<String, Vec<IndexedChart>> = parsed(lines)?;
            Ok(read.remove(chart))
        }
        None if text.len() <= most => {
            let mut index: ChartIndex =
                document::read("index.yaml", text).map_err(|error| fault(&error.message))?;
            Ok(index.entries.remove(chart))
        }
        _ => Err(fault(&format!(
            "more than {most} bytes of it would have to be parsed"
        ))),
    }
}

/// The lines about `chart` in an index with one key on each line, as Helm writes it; empty if it
/// does not contain the chart. `None` for an index in another layout.
fn section<'t>(text: &'t str, chart: &str) -> Option<&'t str> {
    let mut at = if text.starts_with("entries:\n") {
        9
    } else {
        text.find("\nentries:\n")? + 10
    };
    let indent_of = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let (mut indent, mut start) = (None, None);
    for line in text[at..].split_inclusive('\n') {
        let begin = at;
        at += line.len();
        let words = line.trim();
        let own = indent_of(line);
        if words.is_empty() || words.starts_with('#') {
            continue;
        }
        let indent = *indent.get_or_insert(own);
        if own > indent || (own == indent && words.starts_with("- ")) {
            continue;
        }
        if let Some(start) = start {
            return Some(&text[start..begin]);
        }
        if own < indent || indent == 0 {
            return (indent > 0).then_some("");
        }
        let key = words.strip_suffix(':')?.trim_matches(['"', '\'']);
        if key == chart {
            start = Some(begin);
        }
    }
    Some(start.map_or("", |start| &text[start..]))
}

fn find(
    listed: &[IndexedChart],
    repository: &str,
    name: &ChartName,
) -> Result<ArchiveLocation, ResolveError> {
    let version = |one: &IndexedChart| plain(&one.version).unwrap_or_default();
    let Some(found) = listed.iter().find(|one| version(one) == name.version) else {
        let bare = |version: &str| version.trim_start_matches('v').to_owned();
        let near = listed
            .iter()
            .map(version)
            .find(|one| bare(one) == bare(&name.version));
        return Err(near.map_or_else(ResolveError::gone, |near| {
            ResolveError::from(format!(
                "its repository calls this version {near}; write it so"
            ))
        }));
    };
    let first = found
        .urls
        .first()
        .ok_or("its repository names no URL for it")?;
    let wrong =
        || format!("its repository gives it the URL '{first}', which nothing can be fetched from");
    let base: Url = format!("{repository}/").parse().map_err(|_| wrong())?;
    let url = base.join(first).map_err(|_| wrong())?;
    if !matches!(url.scheme(), "http" | "https" | "oci") || !url.has_host() || has_userinfo(&url) {
        return Err(wrong().into());
    }
    if base.scheme() == "https" && url.scheme() == "http" {
        return Err(
            format!("its repository sends from https to '{url}', which nobody protects").into(),
        );
    }
    let digest = found.digest.as_deref().filter(|digest| !digest.is_empty());
    let digest =
        digest.map(|digest| format!("sha256:{}", digest.trim_start_matches("sha256:")).parse());
    let digest = digest
        .transpose()
        .map_err(|_| "its repository gives it a digest that is none")?;
    Ok(ArchiveLocation { url, digest })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELM: &str = "apiVersion: v1\nentries:\n  app:\n  - apiVersion: v2\n    version: 1.2.3\n    urls:\n    - app-1.2.3.tgz\n    digest: AA\n  # a comment\n\n  - version: \"1.10\"\n  other:\n    - version: 2.0.0\n      urls: [\"https://h/x.tgz\"]\ngenerated: \"2026\"\n";

    fn versions(text: &str, chart: &str, most: usize) -> Result<Option<Vec<String>>, String> {
        let listed = read(text, chart, most)?;
        Ok(listed.map(|all| all.iter().filter_map(|one| plain(&one.version)).collect()))
    }

    #[test]
    fn an_index_is_read_chart_by_chart_in_any_form() {
        let (app, other) = (
            Ok(Some(vec!["1.2.3".to_owned(), "1.10".to_owned()])),
            vec!["2.0.0".to_owned()],
        );
        assert_eq!(versions(HELM, "app", 200), app);
        assert_eq!(versions(HELM, "other", 200), Ok(Some(other.clone())));
        assert_eq!(versions(HELM, "none", 200), Ok(None));
        let json = "{\"entries\": {\"other\": [{\"version\": \"2.0.0\"}]}}";
        assert_eq!(versions(json, "other", 200), Ok(Some(other)));
        assert_eq!(versions(json, "app", 200), Ok(None));
        assert!(
            versions(json, "app", 10)
                .unwrap_err()
                .contains("more than 10 bytes")
        );
        assert!(
            versions(HELM, "app", 10)
                .unwrap_err()
                .contains("more than 10 bytes")
        );
        assert!(versions("<html>", "app", 99).is_err());
        assert!(versions(&format!("entries: {}", "[".repeat(500)), "app", 999).is_err());
    }

    fn place(urls: &str, digest: &str) -> Result<ArchiveLocation, String> {
        let text = format!("[{{version: 1.2.3, urls: [{urls}], digest: '{digest}'}}]");
        let listed: Vec<IndexedChart> = serde_yaml::from_str(&text).unwrap();
        let name = ChartName::in_repository("https://h:8443/charts", "app", "1.2.3").unwrap();
        find(&listed, name.repository.as_deref().unwrap(), &name).map_err(|cause| cause.message)
    }

    #[test]
    fn urls_are_relative_to_the_repository_and_hostile_ones_refused() {
        let hex = "ab".repeat(32);
        let url = |urls: &str| place(urls, &hex).unwrap().url.to_string();
        assert_eq!(url("app-1.2.3.tgz"), "https://h:8443/charts/app-1.2.3.tgz");
        assert_eq!(url("/x/app.tgz"), "https://h:8443/x/app.tgz");
        assert_eq!(url("'https://other/app.tgz'"), "https://other/app.tgz");
        assert_eq!(
            url("'oci://quay.io/a/app:1.2.3'"),
            "oci://quay.io/a/app:1.2.3"
        );
        assert_eq!(
            place("a", &hex).unwrap().digest,
            Some(format!("sha256:{hex}").parse().unwrap())
        );
        assert_eq!(place("a", "").unwrap().digest, None);
        for bad in [
            "'file:///etc/passwd'",
            "'ftp://h/x'",
            "'https://u:p@h/x'",
            "",
            "'http://h/x'",
        ] {
            assert!(place(bad, &hex).is_err(), "{bad}");
        }
        assert!(
            place("a", "xyz")
                .unwrap_err()
                .contains("digest that is none")
        );
    }
}
