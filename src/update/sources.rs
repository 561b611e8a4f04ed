//! Lists the versions of a source: the tags of an image or git repository, a text, a JSON document,
//! the index of a chart repository, or a registry of providers.

use landfall_content::upstream::list_refs;
use landfall_item::{ResolveError, Resolver, VersionSource, chart_versions, provider_versions};
use landfall_model::document::VersionsFrom;
use landfall_model::{Failure, from_json};
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

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
            let session = resolver.sessions.upstream(&image.registry).await?;
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
            let refs = list_refs(&resolver.sessions, url).await?;
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
        .filter(|version| match from {
            VersionSource::GitTags(_) => is_tag(version),
            _ => is_version(version),
        })
        .collect())
}

/// Whether the name of a git tag can be written into a manifest. Those of repositories with several
/// products are like `kustomize/v5.4.2` or `@scope/app@1.2.3`.
fn is_tag(name: &str) -> bool {
    is_version(&name.replace(['/', '@'], "-"))
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
            let bytes = resolver.document(url).await?;
            let text = String::from_utf8_lossy(&bytes);
            let lines = text.trim_start_matches('\u{feff}').lines();
            let found: Vec<String> = lines.map(|line| line.trim().to_owned()).collect();
            // as for a path: this would look like "nothing newer"
            if !found.iter().any(|line| is_version(line)) {
                return Err(format!("{url} has no line that is a version").into());
            }
            Ok(found)
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

/// `version`, which the source `from` lists, in the form in which the manifest writes `current`.
pub(super) fn in_form_of(
    current: &str,
    from: &Result<VersionSource, String>,
    version: String,
) -> String {
    match from {
        Ok(VersionSource::Document(_)) => written_like(current, &version),
        // the tag of a chart has `_` in place of the `+` of its version
        Ok(VersionSource::Tags { .. }) if current.contains('+') => version.replace('_', "+"),
        // a tag or chart version exists only in the form that its source lists
        _ => version,
    }
}

/// Adds or removes the leading `v` of `version` to match `current`. So a document may list `1.2.4`
/// for the version that the manifest writes as `v1.2.4`.
fn written_like(current: &str, version: &str) -> String {
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

// Paths into JSON documents that list versions: `[].tag_name`, `items[0].latest`, `versions{}`.

/// The maximum number of elements of a list, or members of an object, on a path. Each takes more
/// memory than its text may have.
const MOST_VALUES: usize = 200_000;

enum JsonPathStep<'a> {
    /// The value of a key.
    Key(&'a str),
    /// All elements of a list.
    Each,
    /// One element of a list, by its index from 0.
    At(usize),
    /// The keys of an object.
    Keys,
}

/// A value that a path has led to so far.
enum JsonNode<'a> {
    Value(&'a RawValue),
    /// The key of an object.
    Name(String),
}

/// The members of an object or the elements of a list, in the order of the document. Elements have
/// an empty name. `None` if there are too many.
struct JsonMembers<'a>(Option<Vec<(String, &'a RawValue)>>);

impl<'de: 'a, 'a> Deserialize<'de> for JsonMembers<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<JsonMembers<'a>, D::Error> {
        struct MembersVisitor;
        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = JsonMembers<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object or a list")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while members.len() < MOST_VALUES {
                    match map.next_entry()? {
                        Some(member) => members.push(member),
                        None => return Ok(JsonMembers(Some(members))),
                    }
                }
                let is_cut = map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some();
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(JsonMembers((!is_cut).then_some(members)))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut elements = Vec::new();
                while elements.len() < MOST_VALUES {
                    match list.next_element()? {
                        Some(element) => elements.push((String::new(), element)),
                        None => return Ok(JsonMembers(Some(elements))),
                    }
                }
                let is_cut = list.next_element::<IgnoredAny>()?.is_some();
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(JsonMembers((!is_cut).then_some(elements)))
            }
        }
        deserializer.deserialize_any(MembersVisitor)
    }
}

/// The failure of a path on which a list or an object has too many members.
fn too_long(path: &str) -> Failure {
    Failure::failed(format!(
        "a list or an object at `{path}` has more than {MOST_VALUES} members"
    ))
}

/// The strings, numbers and keys at `path` in `document`, in the order of the document. Numbers are
/// as they are written: `1.10` is not the same version as `1.1`.
pub(super) fn texts_at(document: &RawValue, path: &str) -> Result<Vec<String>, Failure> {
    let mut found = vec![JsonNode::Value(document)];
    for step in steps(path).ok_or_else(|| {
        Failure::usage(format!(
            "`{path}` is not a path: write keys with dots between them, `[]` for every element of \
             a list, `[0]` for one, `{{}}` for the keys of an object"
        ))
    })? {
        let mut next = Vec::new();
        for node in found {
            if let JsonNode::Value(value) = node {
                let led = follow(value.get(), &step);
                next.extend(
                    led.filter(|led| next.len() + led.len() <= MOST_VALUES)
                        .ok_or_else(|| too_long(path))?,
                );
            }
        }
        found = next;
    }
    let texts = found.into_iter().filter_map(|node| match node {
        JsonNode::Name(name) => Some(name),
        JsonNode::Value(value) => match value.get().as_bytes().first()? {
            b'"' => serde_json::from_str(value.get()).ok(),
            // some documents write a version such as 1.5 as a number
            b'-' | b'0'..=b'9' => Some(value.get().to_owned()),
            _ => None,
        },
    });
    Ok(texts.collect())
}

/// The values to which `step` leads from `value`; `None` if there are too many. A step that does
/// not fit leads to none: elements of a list may have different keys.
fn follow<'a>(value: &'a str, step: &JsonPathStep<'_>) -> Option<Vec<JsonNode<'a>>> {
    let is_list = value.starts_with('[');
    let is_for_lists = matches!(step, JsonPathStep::Each | JsonPathStep::At(_));
    if is_list != is_for_lists {
        return Some(Vec::new());
    }
    let JsonMembers(members) =
        serde_json::from_str(value).unwrap_or_else(|_| JsonMembers(Some(Vec::new())));
    let mut members = members?.into_iter();
    let value = |(_, value)| JsonNode::Value(value);
    Some(match step {
        // if a document has a key twice, the last one counts
        JsonPathStep::Key(key) => {
            let found = members.rfind(|(name, _)| name == key);
            found.map(value).into_iter().collect()
        }
        JsonPathStep::Each => members.map(value).collect(),
        JsonPathStep::At(at) => members.nth(*at).map(value).into_iter().collect(),
        // the keys of an object are versions in some documents: `{"versions": {"1.0": {}}}`
        JsonPathStep::Keys => members.map(|(name, _)| JsonNode::Name(name)).collect(),
    })
}

fn steps(path: &str) -> Option<Vec<JsonPathStep<'_>>> {
    let mut steps = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(remaining) = rest.strip_prefix("[]") {
            steps.push(JsonPathStep::Each);
            rest = remaining;
        } else if let Some(remaining) = rest.strip_prefix("{}") {
            steps.push(JsonPathStep::Keys);
            rest = remaining;
        } else if let Some(remaining) = rest.strip_prefix('[') {
            let (number, remaining) = remaining.split_once(']')?;
            steps.push(JsonPathStep::At(number.parse().ok()?));
            rest = remaining;
        } else {
            let key = match (rest.strip_prefix('.'), steps.is_empty()) {
                // a leading dot is optional: `.a.b` and `a.b` are the same path
                (Some(key), _) => key,
                (None, true) => rest,
                (None, false) => return None,
            };
            let end = key.find(['.', '[', '{']).unwrap_or(key.len());
            if end == 0 {
                return None;
            }
            steps.push(JsonPathStep::Key(&key[..end]));
            rest = &key[end..];
        }
    }
    Some(steps)
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
    fn the_tag_of_a_chart_is_written_like_the_current_version() {
        let tags = VersionSource::Tags {
            image: "h.test/charts/app".parse().unwrap(),
            before: String::new(),
            after: String::new(),
        };
        for (current, tag, written) in [
            ("303.0.0+up0.14.9", "303.0.1_up0.15.2", "303.0.1+up0.15.2"),
            ("303.0.0_up0.14.9", "303.0.1_up0.15.2", "303.0.1_up0.15.2"),
            ("1.2.3", "1_2", "1_2"),
        ] {
            let version = in_form_of(current, &Ok(tags.clone()), tag.to_owned());
            assert_eq!(version, written);
        }
    }

    #[test]
    fn text_with_a_meaning_in_yaml_is_not_a_version() {
        assert!(is_version("v1.30.0-rke2r1") && is_version("1.2.3+k3s1"));
        assert!(is_version("db_2026-09-28T00:37:02Z_1790577750.tar.zst"));
        for bad in ["", "a:", "1.0 # x", "a: b", "\"1\"", "1\n2"] {
            assert!(!is_version(bad) && !is_tag(bad), "{bad}");
        }
        for tag in ["kustomize/v5.4.2", "@scope/app@1.2.3"] {
            assert!(is_tag(tag) && !is_version(tag), "{tag}");
        }
    }

    #[test]
    fn a_path_leads_to_texts() {
        let releases =
            r#"[{"tag_name": "v2", "n": 1.10}, {"tag_name": "v1", "n": -2e1}, {"n": true}]"#;
        let nested = r#" {"a": {"b": [{"v": "1"}, {"v": "\u0032"}], "b2": null},
            "versions": {"1.10": {}, "1.9": {}}, "twice": "1", "twice": "2"}"#;
        for (document, path, found) in [
            (releases, "[].tag_name", &["v2", "v1"][..]),
            (releases, "[1].tag_name", &["v1"]),
            (releases, "[].n", &["1.10", "-2e1"]),
            (releases, "[9].tag_name", &[]),
            (releases, "tag_name", &[]),
            (releases, "[].tag_name.x", &[]),
            (nested, "a.b[].v", &["1", "2"]),
            (nested, ".a.b[0].v", &["1"]),
            (nested, "versions{}", &["1.10", "1.9"]),
            (nested, "versions{}[]", &[]),
            (nested, "twice", &["2"]),
            (nested, "a.c", &[]),
            (nested, "[]", &[]),
            (r#"["1", "2"]"#, "[]", &["1", "2"]),
            (" 1.20\n", "", &["1.20"]),
        ] {
            let document: &RawValue = serde_json::from_str(document).unwrap();
            assert_eq!(texts_at(document, path).unwrap(), found, "{path}");
        }
        let releases: &RawValue = serde_json::from_str(releases).unwrap();
        for bad in ["[", "[x]", "a..b", "a[]b"] {
            assert!(texts_at(releases, bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn long_lists_and_objects_are_refused() {
        let list = |count: usize| format!("[{}\"v\"]", "0,".repeat(count - 1));
        let read = |document: &str, path: &str| {
            let document: &RawValue = serde_json::from_str(document).unwrap();
            texts_at(document, path)
        };
        assert_eq!(read(&list(MOST_VALUES), "[]").unwrap().len(), MOST_VALUES);
        let too_long = |path: &str| Err(too_long(path));
        assert_eq!(read(&list(MOST_VALUES + 1), "[]"), too_long("[]"));
        let half = list(MOST_VALUES / 2 + 1);
        assert_eq!(read(&format!("[{half},{half}]"), "[][]"), too_long("[][]"));
        let members: String = (0..MOST_VALUES).map(|n| format!("\"{n}\":0,")).collect();
        let object = format!("{{{members}\"v\":0}}");
        assert_eq!(read(&object, "{}"), too_long("{}"));
        assert_eq!(read(&object, "v"), too_long("v"));
    }
}
