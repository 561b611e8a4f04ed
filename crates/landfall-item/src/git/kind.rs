//! A locked repository as an item.

use super::locked::{LockedGitRepository, LockedLargeFile};
use crate::artifact::{self, TITLE, URL, digest_fault};
use crate::file::is_file_url;
use crate::text::{digest_tag, oversize};
use landfall_content::{EntryPart, LockEntry, PartOrigin};
use landfall_model::report::{EntryKind, one_line};
use landfall_model::{Descriptor, Digest, is_path_below, media_type};
use serde_json::{Value, json};
use std::sync::Arc;

impl LockedGitRepository {
    /// The URL must be http or https, the path below the lock, sizes must be plausible, and `refs`,
    /// `packs` and `wanted` must not be empty. Refs must be sorted, and contain the head and all
    /// verified refs. Shallow commits need a depth. The digest must be that of the artifact, which
    /// is computed from the other fields. Names of refs were checked when they were parsed.
    pub(crate) fn implausibility(&self) -> Option<String> {
        let url = self.url();
        if url.len() == self.name.len() || !is_file_url(url) {
            return Some(format!(
                "'{}' is not a git repository",
                one_line(&self.name)
            ));
        }
        let mut path = self.path.iter().filter(|path| !path.is_empty());
        if let Some(path) = path.find(|path| !is_path_below(path)) {
            return Some(format!(
                "'{}' is not a path of a repository",
                one_line(path)
            ));
        }
        let packs = self.packs.iter().map(|pack| pack.size);
        let large_files = self.large_files.iter().flatten().map(|file| file.size);
        if let Some(fault) = oversize(packs.chain(large_files)) {
            return Some(fault);
        }
        if self.refs.is_empty() || self.packs.is_empty() || self.wanted.is_empty() {
            return Some(format!("'{}' lacks refs, packs or wanted refs", self.name));
        }
        let has_head = |head: &String| self.refs.iter().any(|one| one.name == *head);
        if let Some(head) = self.head.as_ref().filter(|head| !has_head(head)) {
            return Some(format!("'{}' is not among the refs", one_line(head)));
        }
        if let Some(pair) = self
            .refs
            .windows(2)
            .find(|pair| pair[0].name >= pair[1].name)
        {
            return Some(format!("the refs are not sorted: '{}'", pair[1].name));
        }
        if !self.shallow.is_empty() && self.depth.is_none() {
            return Some(format!("'{}' has shallow commits, but no depth", self.name));
        }
        let at = |name: &str| {
            self.refs
                .binary_search_by(|one| one.name.as_str().cmp(name))
        };
        let is_ref = |name: &str| at(name).is_ok();
        if let Some(one) = self.verified.iter().find(|one| !is_ref(&one.r#ref)) {
            let name = one_line(&one.r#ref);
            return Some(format!("'{name}' is verified, but not among the refs"));
        }
        digest_fault(&self.name, &self.digest, &digest(self))
    }
}

// The manifest and blobs of a locked repository, as parts to transfer. The manifest is computed
// from the lock alone, so every command gets the same bytes.

/// Lists the parts of a repository: an artifact whose config has the refs, with a layer for each
/// pack and each large file.
pub(crate) fn entry(repository: &LockedGitRepository) -> LockEntry {
    let config = config(repository);
    let manifest = manifest(repository, &config.descriptor);
    let mut parts = vec![config];
    let packs = Arc::new(repository.git_packs());
    for (pack, descriptor) in packs_of(repository).into_iter().enumerate() {
        parts.push(EntryPart {
            descriptor,
            origin: PartOrigin::Git {
                repository: packs.clone(),
                pack,
            },
        });
    }
    let large_files = repository.large_files.iter().flatten();
    parts.extend(large_files.map(|file| EntryPart {
        descriptor: file.descriptor(),
        origin: PartOrigin::LargeFile(Arc::new(repository.server_of(file))),
    }));
    artifact::entry(
        EntryKind::Git,
        repository.name.clone(),
        &repository.digest,
        format!(
            "{}:{}",
            own_repository(repository),
            digest_tag(&repository.digest)
        ),
        media_type::LANDFALL_GIT,
        parts,
        manifest,
    )
}

/// Computes the digest of a repository, ignoring its `digest` field.
pub(super) fn digest(repository: &LockedGitRepository) -> Digest {
    let config = config(repository).descriptor;
    manifest(repository, &config).descriptor.digest
}

/// The repository of the artifact at a registry: `git/<host>/<first 16 hex of the URL's SHA-256>`,
/// since a path of a git server may have characters that a registry does not allow.
pub(crate) fn own_repository(repository: &LockedGitRepository) -> String {
    let files = crate::file_repository(repository.url());
    files.replacen("files/", "git/", 1)
}

/// The config, which has the refs as text: the branch that a clone checks out, then a line for each
/// ref and for each commit whose parents are not carried.
fn config(repository: &LockedGitRepository) -> EntryPart {
    let mut text = String::new();
    if let Some(head) = &repository.head {
        text.push_str(&format!("HEAD {head}\n"));
    }
    text.extend(
        repository
            .refs
            .iter()
            .map(|one| format!("{} {}\n", one.id, one.name)),
    );
    let shallow = repository.shallow.iter();
    text.extend(shallow.map(|id| format!("shallow {id}\n")));
    artifact::computed(text.into_bytes(), media_type::LANDFALL_GIT_REFS)
}

fn packs_of(repository: &LockedGitRepository) -> Vec<Descriptor> {
    let packs = repository.packs.iter().map(|pack| {
        Descriptor::new(
            pack.digest.clone(),
            pack.size,
            media_type::LANDFALL_GIT_PACK,
        )
    });
    packs.collect()
}

fn manifest(repository: &LockedGitRepository, config: &Descriptor) -> EntryPart {
    let large_files = repository.large_files.iter().flatten();
    let blobs = packs_of(repository).into_iter();
    let blobs = blobs.chain(large_files.map(LockedLargeFile::descriptor));
    let url = repository.url();
    let title = url.rsplit('/').next().unwrap_or(url);
    artifact::manifest(
        media_type::LANDFALL_GIT,
        config,
        blobs
            .map(|blob| artifact::layer(&blob, Value::Null))
            .collect(),
        json!({URL: url, TITLE: title}),
    )
}
