//! A git repository in the lock, and its text there.

use super::request::GitRequest;
use crate::text::quoted;
use landfall_content::{GitPack, GitPacks};
use landfall_git::{ObjectId, is_ref_name};
use landfall_model::Digest;
use serde::Deserialize;
use std::fmt::{self, Write};

/// A git repository in the lock.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedGitRepository {
    /// The name of the repository: its URL with the scheme `git+https` or `git+http`.
    pub name: String,
    /// SHA-256 of the manifest of the artifact that carries the repository.
    pub digest: Digest,
    /// The requested branches, tags, and patterns of tags between slashes.
    pub wanted: Vec<String>,
    /// The branch that a clone checks out, if a branch is carried.
    #[serde(default)]
    pub head: Option<String>,
    /// The branches and tags, sorted by name.
    pub refs: Vec<LockedGitRef>,
    /// The packs with the objects, the oldest first.
    pub packs: Vec<LockedGitPack>,
}

/// A branch or tag of a locked repository.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct LockedGitRef {
    /// The full name, as in `refs/heads/main`.
    pub name: String,
    /// The commit, or the tag itself if it is annotated.
    pub id: ObjectId,
}

/// A pack of a locked repository.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedGitPack {
    /// SHA-256 of the pack.
    pub digest: Digest,
    /// The size of the pack in bytes.
    pub size: u64,
    /// The commits and annotated tags that are complete with this pack and the packs before it.
    #[serde(deserialize_with = "object_ids")]
    pub tips: Vec<ObjectId>,
}

impl LockedGitRepository {
    /// The http or https URL of the repository.
    pub fn url(&self) -> &str {
        self.name
            .strip_prefix(GitRequest::PREFIX)
            .unwrap_or(&self.name)
    }

    /// The URLs by which documents name the repository: the locked URL, and that URL with `.git`
    /// added. `.git` is never removed, because the result may be a link to a web page.
    pub fn urls(&self) -> Vec<String> {
        let url = self.url();
        let mut urls = vec![url.to_owned()];
        if !url.ends_with(".git") {
            urls.push(format!("{url}.git"));
        }
        urls
    }

    /// The packs, as they are fetched.
    pub fn git_packs(&self) -> GitPacks {
        let packs = self.packs.iter().map(|pack| GitPack {
            digest: pack.digest.clone(),
            size: pack.size,
            tips: pack.tips.clone(),
        });
        GitPacks {
            url: self.url().to_owned(),
            packs: packs.collect(),
        }
    }
}

impl TryFrom<String> for LockedGitRef {
    type Error = String;

    fn try_from(text: String) -> Result<LockedGitRef, String> {
        let (name, id) = text
            .split_once(' ')
            .ok_or("a ref is written as `<name> <id>`")?;
        if !is_ref_name(name) {
            return Err(format!(
                "'{}' is not the name of a ref",
                name.escape_default()
            ));
        }
        Ok(LockedGitRef {
            name: name.to_owned(),
            id: id.parse()?,
        })
    }
}

impl fmt::Display for LockedGitRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.id)
    }
}

fn object_ids<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<ObjectId>, D::Error> {
    let texts = Vec::<String>::deserialize(from)?;
    let ids = texts.iter().map(|text| text.parse());
    ids.collect::<Result<_, _>>()
        .map_err(serde::de::Error::custom)
}

/// Writes `repository` as YAML, one value on each line so that diffs are small.
pub(super) fn write(repository: &LockedGitRepository, out: &mut dyn Write) -> fmt::Result {
    let LockedGitRepository {
        name,
        digest,
        wanted,
        head,
        refs,
        packs,
    } = repository;
    writeln!(
        out,
        "- name: {}\n  digest: {digest}\n  wanted:",
        quoted(name)
    )?;
    for text in wanted {
        writeln!(out, "  - {}", quoted(text))?;
    }
    if let Some(head) = head {
        writeln!(out, "  head: {}", quoted(head))?;
    }
    writeln!(out, "  refs:")?;
    for one in refs {
        writeln!(out, "  - {}", quoted(&one.to_string()))?;
    }
    writeln!(out, "  packs:")?;
    for pack in packs {
        writeln!(
            out,
            "  - digest: {}\n    size: {}\n    tips:",
            pack.digest, pack.size
        )?;
        for tip in &pack.tips {
            // an id may look like a number
            writeln!(out, "    - \"{tip}\"")?;
        }
    }
    Ok(())
}
