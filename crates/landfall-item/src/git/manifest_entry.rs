//! A git repository in a manifest, and how it expands to requests.

use super::locked::{lfs_url, url_of};
use super::request::GitRequest;
use crate::local::local_place;
use crate::text::{check_keeps_one, update_rule};
use crate::{
    EntryFields, EntryPathStep, EntryReader, ManifestEntry, ManifestResult, MovableVersion,
};
use landfall_content::LocalForm;
use landfall_git::is_ref_name;
use landfall_model::document::{SourceSpan, UpdateRule};
use landfall_model::has_userinfo;
use landfall_model::sign::GitSigners;
use regex_lite::Regex;
use schemars::JsonSchema;
use serde::Deserialize;
use std::num::NonZeroU32;
use url::Url;

/// A git repository in a manifest.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("required" = ["url"]))]
pub struct GitEntry {
    /// The http or https URL, as `git clone` takes it.
    pub url: Option<String>,
    /// A working copy, bare repository or git bundle next to the manifest that has the objects.
    /// `url` is then only the name, by which clients and documents refer to the repository.
    pub path: Option<String>,
    /// A branch or tag by its name, as in `v1.4.0`, or by its full name, as in `refs/heads/main`.
    /// Or the id of a commit.
    pub r#ref: Option<String>,
    /// Several branches, tags and commits.
    pub refs: Vec<String>,
    /// A regular expression. All tags whose names it matches are carried.
    pub tags: Option<String>,
    /// How many commits of each history are carried; all if it is left out.
    pub depth: Option<NonZeroU32>,
    /// Whether the submodules' repositories are carried too, with the required commits.
    pub submodules: bool,
    /// Whether the large files (Git LFS) of the branches, tags and commits are carried too. Or the
    /// URL of the Git LFS server that has them, in place of the one that the repository names.
    pub lfs: LfsChoice,
    /// The signatures that the branches, tags and commits need.
    pub verify: Option<GitVerification>,
    /// The tags that `landfall update` may move `ref` to: `patch`, `minor`, a range as in `~1.9`, a
    /// pattern, or `never`. Or a mapping with one of these as `policy` and, optionally, `minAge`.
    pub update: Option<UpdateRule>,
}

/// Whether and from where large files are carried.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum LfsChoice {
    /// Whether they are carried.
    Carried(bool),
    /// They are carried from the Git LFS server at this URL.
    Server(String),
}

impl Default for LfsChoice {
    fn default() -> LfsChoice {
        LfsChoice::Carried(false)
    }
}

/// The keys for the signatures of an entry. Each branch, tag and commit must be signed by one of
/// them.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GitVerification {
    /// Files with public keys of OpenPGP or OpenSSH, or with allowed signers. One of the keys must
    /// have signed each tag or, if the tag has no signature, its commit. For a branch, it must have
    /// signed the commit.
    pub keys: Vec<String>,
}

impl ManifestEntry for GitEntry {
    type Request = GitRequest;

    fn check(&self, reader: EntryReader<'_>) -> ManifestResult<()> {
        if self.url.is_none() {
            let why = "a repository needs `url`, which is its name everywhere else";
            let help = "add the URL at which clients and documents find the repository, as in \
                        url: https://git.example.com/team/app.git";
            return Err(reader.here().fault(why, Some(help)));
        }
        if self.path.is_some() && self.update.is_some() {
            let why = "a repository with `path` has no newer versions to look up";
            let help = "remove `update`, or select tags with `tags`";
            return Err(reader.at("update").fault(why, Some(help)));
        }
        if self.path.is_some() && matches!(self.lfs, LfsChoice::Carried(true)) {
            let why = "large files are not read from the repository at `path`";
            let help = "write the URL of the Git LFS server that has them, as in \
                        lfs: https://git.example.com/team/app.git/info/lfs";
            return Err(reader.at("lfs").fault(why, Some(help)));
        }
        if self.r#ref.is_none() && self.refs.is_empty() && self.tags.is_none() {
            let why = "a repository needs `ref`, `refs` or `tags`";
            let help = "write `ref: v1.4.0`, `refs: [main, v1.4.0]` or `tags: \"^v1\"`";
            return Err(reader.here().fault(why, Some(help)));
        }
        Ok(())
    }

    fn add_fields<'e>(&'e mut self, fields: &mut EntryFields<'_, 'e>) {
        fields.add("url", &mut self.url);
        fields.add("path", &mut self.path);
        fields.add("ref", &mut self.r#ref);
        fields.add("tags", &mut self.tags);
        fields.add_list("refs", &mut self.refs);
        fields.add_policy("update", &mut self.update);
    }

    fn requests(
        &self,
        written: &GitEntry,
        reader: EntryReader<'_>,
    ) -> ManifestResult<Vec<(GitRequest, SourceSpan)>> {
        let at = reader.at("url");
        let signers = signers_of(self.verify.as_ref(), reader)?;
        let lfs_server = match &self.lfs {
            LfsChoice::Carried(_) => None,
            LfsChoice::Server(text) => Some(lfs_server_of(text, &reader.at("lfs"))?),
        };
        let url = url_of(self.url.as_deref().unwrap_or_default(), &at)?;
        let place = match &self.path {
            Some(path) => {
                let at = reader.at("path");
                Some(local_place(path, LocalForm::Repository, &at, reader)?.1)
            }
            None => None,
        };
        let mut wanted = Vec::new();
        if let Some(text) = &self.r#ref {
            wanted.push(ref_of(text, &reader.at("ref"))?);
        }
        for (index, text) in self.refs.iter().enumerate() {
            wanted.push(ref_of(text, &reader.item_at("refs", index))?);
        }
        if let Some(text) = &self.tags {
            wanted.push(pattern_of(text, &reader.at("tags"))?);
        }
        wanted.sort();
        wanted.dedup();
        let rule = self.update.as_ref();
        let update_reader = reader.below("update");
        if let Some(rule) = rule {
            check_keeps_one(rule, &update_reader.at("keep"))?;
        }
        let version = written.r#ref.as_deref();
        let update = update_rule(rule, version, "a repository", update_reader)?;
        let request = GitRequest {
            name: format!("{}{url}", GitRequest::PREFIX),
            url,
            place,
            wanted,
            depth: self.depth.map(NonZeroU32::get),
            submodules: self.submodules,
            lfs: !matches!(self.lfs, LfsChoice::Carried(false)),
            lfs_server,
            named_by: None,
            level: 0,
            signers: signers.into_iter().collect(),
            update,
            at: at.location(),
        };
        Ok(vec![(request, at)])
    }

    fn movable_versions(&self) -> Vec<MovableVersion<'_>> {
        let (Some(url), Some(text), Some(rule)) = (&self.url, &self.r#ref, &self.update) else {
            return Vec::new();
        };
        // the name of a tag may have slashes, as in `kustomize/v5.4.2`
        let tag = text.strip_prefix("refs/tags/").unwrap_or(text);
        let start = text.len() - tag.len();
        vec![MovableVersion {
            rule,
            name: format!("{}{url}", GitRequest::PREFIX),
            item_key: "url",
            path: vec![EntryPathStep::Key("ref")],
            text,
            version: start..text.len(),
        }]
    }
}

/// Reads the keys of `verify`. `None` if there are none.
fn signers_of(
    verify: Option<&GitVerification>,
    reader: EntryReader<'_>,
) -> ManifestResult<Option<Vec<GitSigners>>> {
    let Some(GitVerification { keys }) = verify else {
        return Ok(None);
    };
    let reader = reader.below("verify");
    if keys.is_empty() {
        let help = "name the files of the keys, as in keys: [keys/release.asc]";
        return Err(reader.here().fault("`verify` needs keys", Some(help)));
    }
    let mut signers = Vec::new();
    for (index, path) in keys.iter().enumerate() {
        let at = reader.item_at("keys", index);
        let found = GitSigners::parse(path, &reader.read_file(path, &at)?);
        signers.push(found.map_err(|error| at.fault(format!("{path}: {error}"), None))?);
    }
    Ok(Some(signers))
}

/// Checks the URL of a Git LFS server.
fn lfs_server_of(text: &str, span: &SourceSpan) -> ManifestResult<String> {
    let help = "write true, or the URL as in https://lfs.example.com/team/repo; credentials are \
                configured in the site file (`upstreams`)";
    let fault = |why: &str| span.fault(why, Some(help));
    if Url::parse(text).is_ok_and(|url| has_userinfo(&url)) {
        return Err(fault(
            "a URL must not contain a user name or password: manifests and locks are not secret",
        ));
    }
    lfs_url(text).map_err(|why| fault(&format!("the Git LFS server of `lfs`: {why}")))
}

/// Checks the name of a branch or tag, or the id of a commit.
fn ref_of(text: &str, span: &SourceSpan) -> ManifestResult<String> {
    check_ref(text).map_err(|why| {
        let help = "write v1.4.0, the full name as in refs/heads/main, or the id of a commit";
        span.fault(why, Some(help))
    })?;
    Ok(text.to_owned())
}

/// Checks the name of a branch or tag, or the id of a commit. The error says what is wrong.
pub(crate) fn check_ref(text: &str) -> Result<(), String> {
    let full = match text.strip_prefix("refs/") {
        Some(_) => text.to_owned(),
        None => format!("refs/tags/{text}"),
    };
    let is_carried = full.starts_with("refs/heads/") || full.starts_with("refs/tags/");
    if is_carried && is_ref_name(&full) {
        return Ok(());
    }
    Err(format!(
        "`{text}` is not the name of a branch or tag, or the id of a commit"
    ))
}

fn pattern_of(text: &str, span: &SourceSpan) -> ManifestResult<String> {
    Regex::new(text)
        .map(|_| GitRequest::pattern(text))
        .map_err(|_| span.fault("this is not a regular expression", None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_whole_name_of_the_tag() {
        for (written, version) in [
            ("v1.4.0", "v1.4.0"),
            ("refs/tags/v1.4.0", "v1.4.0"),
            ("kustomize/v5.4.2", "kustomize/v5.4.2"),
            ("refs/tags/sdk/core/v1.0.0", "sdk/core/v1.0.0"),
        ] {
            let entry = GitEntry {
                url: Some("https://git.example.com/team/app.git".into()),
                r#ref: Some(written.into()),
                update: serde_yaml::from_str("minor").ok(),
                ..GitEntry::default()
            };
            let movable = entry.movable_versions();
            assert_eq!(movable.len(), 1, "{written}");
            assert_eq!(&written[movable[0].version.clone()], version);
        }
    }
}
