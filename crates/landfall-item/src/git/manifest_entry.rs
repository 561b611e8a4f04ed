//! A git repository in a manifest, and how it expands to requests.

use super::request::GitRequest;
use crate::entry_reader::check_no_userinfo;
use crate::policy::{check_keeps_one, check_rule};
use crate::{
    EntryContext, EntryPathStep, ManifestEntry, ManifestResult, MovableVersion, UpdatableEntry,
};
use landfall_git::is_ref_name;
use landfall_model::document::{SourceSpan, UpdateRule, YamlNode};
use regex::Regex;
use schemars::JsonSchema;
use serde::Deserialize;
use url::Url;

/// A git repository in a manifest.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GitEntry {
    /// The http or https URL, as `git clone` takes it.
    pub url: String,
    /// A branch or tag: `v1.4.0`, or its full name as in `refs/heads/main`.
    #[serde(default)]
    pub r#ref: Option<String>,
    /// Several branches and tags.
    #[serde(default)]
    pub refs: Vec<String>,
    /// A regular expression: all tags whose names it matches.
    #[serde(default)]
    pub tags: Option<String>,
    /// What `landfall update` may move the tag in `ref` to: `patch`, `minor`, a range as in `~1.9`,
    /// a pattern, or `never`; or a mapping with this as `policy`, and `minAge`.
    #[serde(default)]
    pub update: Option<UpdateRule>,
}

impl ManifestEntry for GitEntry {
    type Request = GitRequest;

    fn expand(
        &self,
        node: &YamlNode<'_>,
        reader: &EntryContext<'_>,
    ) -> ManifestResult<Vec<(GitRequest, SourceSpan)>> {
        let at = reader.here(node.get("url"));
        let mut fields = vec![reader.field(node, "url", &self.url)];
        for (key, text) in [("ref", &self.r#ref), ("tags", &self.tags)] {
            fields.extend(text.iter().map(|text| reader.field(node, key, text)));
        }
        fields.extend(reader.list_fields(node, "refs", &self.refs));
        if self.r#ref.is_none() && self.refs.is_empty() && self.tags.is_none() {
            let help = "write `ref: v1.4.0`, `refs: [main, v1.4.0]` or `tags: \"^v1\"`";
            return Err(reader.here(node).fault(
                "a repository needs `ref`, `refs` or `tags`",
                Some(help.into()),
            ));
        }
        let policy = self.update.as_ref().map(|rule| &rule.policy);
        fields.extend(policy.map(|text| reader.field(node.get("update"), "policy", text)));
        let mut requests = Vec::new();
        for binding in reader.vars.bindings(&fields)? {
            let url = url_of(&binding.fill(&self.url), &at)?;
            let mut wanted = Vec::new();
            if let Some(text) = &self.r#ref {
                let at = reader.here(node.get("ref"));
                wanted.push(ref_of(&binding.fill(text), &at)?);
            }
            for (index, text) in self.refs.iter().enumerate() {
                let at = reader.item_at(node, "refs", index);
                wanted.push(ref_of(&binding.fill(text), &at)?);
            }
            if let Some(text) = &self.tags {
                let at = reader.here(node.get("tags"));
                wanted.push(pattern_of(&binding.fill(text), &at)?);
            }
            wanted.sort();
            wanted.dedup();
            let update = self
                .update
                .as_ref()
                .map(|rule| rule.completed(binding.fill(&rule.policy), reader.min_age.as_ref()));
            if let Some(rule) = &update {
                let node = node.get("update");
                check_keeps_one(rule, &reader.here(node.get("keep")))?;
                check_rule(rule, self.r#ref.as_deref(), "a repository", node, reader)?;
            }
            let request = GitRequest {
                name: format!("{}{url}", GitRequest::PREFIX),
                url,
                wanted,
                update,
                at: at.location(),
            };
            requests.push((request, at.clone()));
        }
        Ok(requests)
    }
}

impl UpdatableEntry for GitEntry {
    fn movable_versions(&self) -> Vec<MovableVersion<'_>> {
        let (Some(text), Some(rule)) = (&self.r#ref, &self.update) else {
            return Vec::new();
        };
        let start = text.rfind('/').map_or(0, |slash| slash + 1);
        vec![MovableVersion {
            rule,
            name: format!("{}{}", GitRequest::PREFIX, self.url),
            item_key: "url",
            path: vec![EntryPathStep::Key("ref")],
            text,
            version: start..text.len(),
        }]
    }
}

/// Parses the URL of a repository and returns its normal form.
pub(super) fn url_of(text: &str, span: &SourceSpan) -> ManifestResult<String> {
    if text.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(span.fault("this URL contains white space", None));
    }
    let help = || Some("write it as https://host/path/name.git".into());
    let url = Url::parse(text)
        .ok()
        .filter(|url| text.contains("://") && url.has_host())
        .ok_or_else(|| span.fault("this is not the URL of a repository", help()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(span.fault(
            format!(
                "repositories are fetched over http or https, not over {}",
                url.scheme()
            ),
            help(),
        ));
    }
    check_no_userinfo(&url, span)?;
    if url.query().is_some() || url.fragment().is_some() || url.path().len() < 2 {
        return Err(span.fault("this is not the URL of a repository", help()));
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

/// Checks the name of a branch or tag.
fn ref_of(text: &str, span: &SourceSpan) -> ManifestResult<String> {
    let full = match text.strip_prefix("refs/") {
        Some(_) => text.to_owned(),
        None => format!("refs/tags/{text}"),
    };
    let is_carried = full.starts_with("refs/heads/") || full.starts_with("refs/tags/");
    if is_carried && is_ref_name(&full) {
        return Ok(text.to_owned());
    }
    Err(span.fault(
        format!("`{text}` is not the name of a branch or tag"),
        Some("write v1.4.0, or the full name as in refs/heads/main".into()),
    ))
}

fn pattern_of(text: &str, span: &SourceSpan) -> ManifestResult<String> {
    Regex::new(text)
        .map(|_| GitRequest::pattern(text))
        .map_err(|_| span.fault("this is not a regular expression", None))
}
