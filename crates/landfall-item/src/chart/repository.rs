//! HTTP repositories of charts: finds the archive of a version in the repository's `index.yaml`.
//!
//! The index is untrusted. Its size is limited; only the lines about the requested chart are
//! parsed, if the layout of the index allows that; URLs with schemes other than `http`, `https` and
//! `oci` are rejected; and the archive is compared with its digest.

use super::metadata::plain;
use super::name::{ChartName, bare};
use crate::resolver::{ResolveError, Resolver};
use landfall_model::document::nearest;
use landfall_model::{Digest, document, has_userinfo, keeping_https};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_yaml::Value;
use std::collections::BTreeMap;
use url::Url;

/// The number of versions that the message for a version that does not exist lists. Indexes list
/// the newest version first.
const LISTED_VERSIONS: usize = 3;

/// A version of a chart in an index.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct IndexedChart {
    #[serde(default)]
    version: Value,
    // any values: odd ones must not hide the version
    #[serde(default)]
    urls: Value,
    #[serde(default)]
    digest: Value,
}

#[derive(Deserialize)]
struct ChartIndex {
    #[serde(default, deserialize_with = "landfall_model::null_as_default")]
    entries: BTreeMap<String, Value>,
}

/// The location of the archive of a chart version in an HTTP repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ArchiveLocation {
    /// The URLs of the archive, at least one: `http`, `https` or `oci`. The first one that works is
    /// used.
    pub(super) urls: Vec<Url>,
    /// The digest in the index, if it has one. It is the digest of the archive; for an `oci` URL,
    /// it may instead be that of the artifact.
    pub(super) digest: Option<Digest>,
    /// The digest in the index, if it is not a SHA-256 and is ignored.
    odd_digest: Option<String>,
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
    let indexed = fetch_index(resolver, url, chart)
        .await
        .map_err(|cause| cause.about(&format!("chart `{chart}` of {url}")))?;
    Ok(indexed
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
    let indexed = fetch_index(resolver, url, &name.chart).await?;
    let mut archive = find(&indexed, url, name)?;
    if let Some(text) = &archive.odd_digest {
        resolver.note_once(&format!(
            "{name}: its repository lists the digest '{}', which is not a SHA-256, so the archive \
             was not compared with it",
            text.escape_default()
        ));
    }
    let mut allowed = Vec::new();
    let mut refused = None;
    for target in archive.urls {
        // a public index must not lead to hosts of the local network
        let sessions = &resolver.sessions;
        match sessions.check_named_target(target.as_str(), url).await {
            Ok(()) => allowed.push(target),
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    archive.urls = allowed;
    match refused.filter(|_| archive.urls.is_empty()) {
        Some(error) => Err(error.into()),
        None => Ok(archive),
    }
}

/// The URL of the index of the repository at `url`.
pub(super) fn index_of(url: &str) -> String {
    format!("{url}/index.yaml")
}

/// The versions of `chart` in the index of the repository at `url`.
async fn fetch_index(
    resolver: &Resolver,
    url: &str,
    chart: &str,
) -> Result<Vec<IndexedChart>, ResolveError> {
    let index = resolver.index(&index_of(url)).await?;
    let text = String::from_utf8_lossy(&index);
    read(&text, chart, resolver.limits().document_bytes)
        .map_err(|why| {
            ResolveError::from(format!(
                "{}: not a valid index of charts: {why}",
                index_of(url)
            ))
        })?
        .ok_or_else(|| {
            let near = nearest(chart, chart_names(&text));
            let near = near.map(|near| format!("; did you mean {near}?"));
            let near = near.unwrap_or_default();
            ResolveError::gone_but(&format!("the repository has no chart {chart}{near}"))
        })
}

/// The versions of `chart` in an index. `None` if the index does not contain the chart. Fails if
/// more than `limit` bytes would have to be parsed.
fn read(text: &str, chart: &str, limit: usize) -> Result<Option<Vec<IndexedChart>>, String> {
    // an index lists every version of every chart, and one chart is a small part of it
    match section(text, chart) {
        Some("") => Ok(None),
        Some(lines) if lines.len() <= limit => match parse::<BTreeMap<String, Value>>(lines) {
            Ok(mut entries) => Ok(entries.remove(chart).map(versions_in)),
            Err(why) => {
                let versions = readable_versions(lines);
                (!versions.is_empty()).then_some(Some(versions)).ok_or(why)
            }
        },
        None if text.len() <= limit => {
            let mut index: ChartIndex = parse(text)?;
            Ok(index.entries.remove(chart).map(versions_in))
        }
        _ => Err(format!("landfall parses at most {limit} bytes of it")),
    }
}

/// The versions in the entry of a chart. A version that cannot be read does not hide the others.
fn versions_in(entry: Value) -> Vec<IndexedChart> {
    let Value::Sequence(versions) = entry else {
        return Vec::new();
    };
    let versions = versions.into_iter();
    versions
        .filter_map(|version| serde_yaml::from_value(version).ok())
        .collect()
}

/// The versions in the lines about a chart, of which some are not valid YAML.
fn readable_versions(lines: &str) -> Vec<IndexedChart> {
    let indent_of = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let is_item = |line: &&str| line.trim_start_matches(' ').starts_with("- ");
    let Some(indent) = lines.lines().skip(1).find(is_item).map(indent_of) else {
        return Vec::new();
    };
    let mut items: Vec<String> = Vec::new();
    for line in lines.split_inclusive('\n').skip(1) {
        if is_item(&line) && indent_of(line) == indent {
            items.push(String::new());
        }
        if let Some(item) = items.last_mut() {
            item.push_str(line);
        }
    }
    let parsed = items.iter().filter_map(|item| parse::<Value>(item).ok());
    parsed.flat_map(versions_in).collect()
}

fn parse<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    document::read("index.yaml", text).map_err(|error| error.message)
}

/// The names of the charts in an index that has one key on each line; otherwise empty.
fn chart_names(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut names_indent = None;
    for line in text.lines().skip_while(|line| *line != "entries:").skip(1) {
        let words = line.trim_start_matches(' ');
        if words.is_empty() || words.starts_with(['#', '-']) {
            continue;
        }
        let indent = line.len() - words.len();
        let names_indent = *names_indent.get_or_insert(indent);
        // the next key of the index
        if indent < names_indent || names_indent == 0 {
            break;
        }
        if indent == names_indent
            && let Some((key, _)) = words.split_once(':')
        {
            names.push(key.trim_matches(['"', '\'']));
        }
    }
    names
}

/// The lines about `chart` in an index that has one key on each line, which is the layout that Helm
/// writes. Empty if the index does not contain the chart. `None` for an index in another layout.
fn section<'t>(text: &'t str, chart: &str) -> Option<&'t str> {
    let mut at = 0;
    let mut lines = text.split_inclusive('\n');
    let mut is_found = false;
    while !is_found {
        let line = lines.next()?;
        at += line.len();
        is_found = line.trim_end() == "entries:";
    }
    // the indentation of the chart names, and the start of the lines about `chart`
    let mut names_indent = None;
    let mut start = None;
    for line in lines {
        let line_start = at;
        at += line.len();
        let words = line.trim();
        let indent = line.len() - line.trim_start_matches(' ').len();
        if words.is_empty() || words.starts_with('#') {
            continue;
        }
        let names_indent = *names_indent.get_or_insert(indent);
        // Helm writes the items of a list at the indentation of its key
        if indent > names_indent || (indent == names_indent && words.starts_with("- ")) {
            continue;
        }
        if let Some(start) = start {
            return Some(&text[start..line_start]);
        }
        // a line that is indented less is the next key of the index
        if indent < names_indent || names_indent == 0 {
            return (names_indent > 0).then_some("");
        }
        let (key, _) = words.split_once(':')?;
        let key = key.trim_matches(['"', '\'']);
        if key == chart {
            start = Some(line_start);
        }
    }
    Some(start.map_or("", |start| &text[start..]))
}

/// Finds the archive of `name` among the versions of its chart in the index of `repository`.
fn find(
    indexed: &[IndexedChart],
    repository: &str,
    name: &ChartName,
) -> Result<ArchiveLocation, ResolveError> {
    let mut versions = indexed
        .iter()
        .map(|one| (plain(&one.version).unwrap_or_default(), one));
    let Some((_, found)) = versions
        .clone()
        .find(|(version, _)| *version == name.version)
    else {
        let similar = versions.find(|(version, _)| bare(version) == bare(&name.version));
        return Err(match similar {
            Some((version, _)) => {
                format!("its repository calls this version {version}; use this spelling").into()
            }
            None => {
                let newest: Vec<String> = indexed
                    .iter()
                    .filter_map(|one| plain(&one.version))
                    .take(LISTED_VERSIONS)
                    .collect();
                let more = if indexed.len() > newest.len() {
                    ", …"
                } else {
                    ""
                };
                ResolveError::gone_but(&format!(
                    "the repository has {}{more} of this chart",
                    newest.join(", ")
                ))
            }
        });
    };
    let listed = match &found.urls {
        Value::Sequence(urls) => urls.iter().filter_map(Value::as_str).collect(),
        Value::String(url) => vec![url.as_str()],
        _ => Vec::new(),
    };
    if listed.is_empty() {
        return Err("its repository lists no URL for this version".into());
    }
    let mut urls = Vec::new();
    let mut invalid = None;
    for text in listed {
        match archive_url(repository, text) {
            Ok(url) => urls.push(url),
            Err(why) => invalid = invalid.or(Some(why)),
        }
    }
    match invalid.filter(|_| urls.is_empty()) {
        Some(why) => Err(why.into()),
        None => {
            let digest = archive_digest(&found.digest);
            let odd_digest = plain(&found.digest).filter(|_| digest.is_none());
            Ok(ArchiveLocation {
                urls,
                digest,
                odd_digest,
            })
        }
    }
}

/// Resolves `text`, a URL of an archive in the index of `repository`.
fn archive_url(repository: &str, text: &str) -> Result<Url, String> {
    let invalid_url =
        || format!("its repository lists the URL '{text}', which is not a valid download URL");
    // a relative URL is relative to the folder of the index
    let base: Url = format!("{repository}/")
        .parse()
        .map_err(|_| invalid_url())?;
    let url = base.join(text).map_err(|_| invalid_url())?;
    let url = keeping_https(&base, url);
    if text.trim().is_empty()
        || !matches!(url.scheme(), "http" | "https" | "oci")
        || !url.has_host()
        || has_userinfo(&url)
    {
        return Err(invalid_url());
    }
    if base.scheme() == "https" && url.scheme() == "http" {
        return Err(format!(
            "its repository uses https, but lists the unencrypted URL '{url}'"
        ));
    }
    Ok(url)
}

/// The digest of an archive in an index. Helm writes it without its algorithm. Like helm, which
/// does not compare it, landfall ignores a text that is no SHA-256.
fn archive_digest(digest: &Value) -> Option<Digest> {
    let text = plain(digest)?.trim().to_ascii_lowercase();
    let hex = text.strip_prefix("sha256:").unwrap_or(&text);
    format!("sha256:{hex}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELM: &str = "apiVersion: v1\nentries:\n  app:\n  - apiVersion: v2\n    version: 1.2.3\n    urls:\n    - app-1.2.3.tgz\n    digest: AA\n  # a comment\n\n  - version: \"1.10\"\n  other:\n    - version: 2.0.0\n      urls: [\"https://h/x.tgz\"]\ngenerated: \"2026\"\n";

    fn versions(text: &str, chart: &str, limit: usize) -> Result<Option<Vec<String>>, String> {
        let listed = read(text, chart, limit)?;
        Ok(listed.map(|all| all.iter().filter_map(|one| plain(&one.version)).collect()))
    }

    #[test]
    fn a_chart_is_found_in_an_index_of_any_layout_within_the_limit() {
        let app = Ok(Some(vec!["1.2.3".to_owned(), "1.10".to_owned()]));
        let other = vec!["2.0.0".to_owned()];
        assert_eq!(versions(HELM, "app", 200), app);
        assert_eq!(versions(HELM, "other", 200), Ok(Some(other.clone())));
        assert_eq!(versions(HELM, "none", 200), Ok(None));
        assert_eq!(chart_names(HELM), ["app", "other"]);
        // an index that was written on Windows
        let windows = HELM.replace('\n', "\r\n");
        assert!(windows.len() > 200);
        assert_eq!(versions(&windows, "app", 200), app);
        assert_eq!(versions(&windows, "none", 200), Ok(None));
        let json = "{\"entries\": {\"other\": [{\"version\": \"2.0.0\"}]}}";
        assert_eq!(versions(json, "other", 200), Ok(Some(other)));
        assert_eq!(versions(json, "app", 200), Ok(None));
        assert_eq!(chart_names(json), [""; 0]);
        assert!(
            versions(json, "app", 10)
                .unwrap_err()
                .contains("at most 10 bytes")
        );
        assert!(
            versions(HELM, "app", 10)
                .unwrap_err()
                .contains("at most 10 bytes")
        );
        assert!(versions("<html>", "app", 99).is_err());
        assert!(versions(&format!("entries: {}", "[".repeat(500)), "app", 999).is_err());
    }

    #[test]
    fn odd_entries_of_an_index_do_not_hide_others() {
        let index = r#"{"entries": {"none": null, "odd": 7, "app": [1,
            {"version": "0.9.0", "urls": {}}, {"version": "1.0.0", "urls": null, "digest": [1]}]}}"#;
        let app = versions(index, "app", 999);
        assert_eq!(app, Ok(Some(vec!["0.9.0".to_owned(), "1.0.0".to_owned()])));
        // a version that is not YAML, and another chart with a value in its line
        let text = "entries:\n  none: [{]\n  app:\n  - version: 0.8.0\n    home: a: b\n  - version: 1.0.0\n    urls:\n    - a.tgz\n  odd: {{}\n";
        assert_eq!(
            versions(text, "app", 999),
            Ok(Some(vec!["1.0.0".to_owned()]))
        );
        assert!(versions(text, "odd", 999).is_err());
        assert_eq!(versions(index, "none", 999), Ok(Some(vec![])));
        assert_eq!(versions(r#"{"entries": null}"#, "app", 99), Ok(None));
    }

    fn location(urls: &str, digest: &str) -> Result<ArchiveLocation, String> {
        let text = format!("[{{version: 1.2.3, urls: [{urls}], digest: '{digest}'}}]");
        let listed: Vec<IndexedChart> = serde_yaml::from_str(&text).unwrap();
        let name = ChartName::in_repository("https://h:8443/charts", "app", "1.2.3").unwrap();
        find(&listed, name.repository.as_deref().unwrap(), &name).map_err(|cause| cause.message)
    }

    #[test]
    fn urls_are_relative_to_the_repository_and_hostile_ones_are_rejected() {
        let hex = "ab".repeat(32);
        let url = |urls: &str| location(urls, &hex).unwrap().urls[0].to_string();
        assert_eq!(url("app-1.2.3.tgz"), "https://h:8443/charts/app-1.2.3.tgz");
        assert_eq!(url("/x/app.tgz"), "https://h:8443/x/app.tgz");
        assert_eq!(url("'https://other/app.tgz'"), "https://other/app.tgz");
        assert_eq!(
            url("'oci://quay.io/a/app:1.2.3'"),
            "oci://quay.io/a/app:1.2.3"
        );
        assert_eq!(
            location("a", &hex).unwrap().digest,
            Some(format!("sha256:{hex}").parse().unwrap())
        );
        assert_eq!(location("a", "").unwrap().digest, None);
        for bad in [
            "'file:///etc/passwd'",
            "'ftp://h/x'",
            "'https://u:p@h/x'",
            "",
            "'http://h/x'",
            "'http://other:8443/x'",
        ] {
            assert!(location(bad, &hex).is_err(), "{bad}");
        }
        // from a server that does not know of TLS
        assert_eq!(url("'http://h:8443/x'"), "https://h:8443/x");
        for digest in [
            hex.to_uppercase(),
            format!("SHA256:{hex}"),
            format!(" {hex} "),
        ] {
            let read = location("a", &digest).unwrap().digest.unwrap();
            assert_eq!(read.hex(), hex, "{digest}");
        }
        assert_eq!(location("a", "xyz").unwrap().digest, None);
        let listed: Vec<IndexedChart> =
            serde_yaml::from_str("[{version: 1.2.3}, {version: 1.2.2}]").unwrap();
        let other = ChartName::in_repository("https://h/charts", "app", "1.2.4").unwrap();
        let gone = find(&listed, "https://h/charts", &other).unwrap_err();
        assert_eq!(gone.recorded, "upstream does not have it");
        let ends = ": the repository has 1.2.3, 1.2.2 of this chart";
        assert!(gone.is_gone && gone.message.ends_with(ends), "{gone}");
        let some = location("'ftp://h/x', 7, b.tgz, 'https://other/c.tgz'", &hex).unwrap();
        let urls: Vec<&str> = some.urls.iter().map(Url::as_str).collect();
        assert_eq!(urls, ["https://h:8443/charts/b.tgz", "https://other/c.tgz"]);
    }
}
