//! Resolves a repository: finds the commits of its refs, fetches the new ones, and writes the pack.

use super::choose::{ChosenRefs, choose_refs};
use super::locked::{LockedGitPack, LockedGitRepository};
use super::parts;
use super::request::GitRequest;
use crate::resolver::{ResolveError, Resolver};
use landfall_content::store::DiskStore;
use landfall_content::upstream::{FetchedPack, fetch_pack, git_error, list_refs, write_pack_file};
use landfall_content::{BlobPackBytes, GitPacks};
use landfall_git::{GitError, GitPackPlan, ObjectDatabase, ObjectId, reaches};
use landfall_model::{Digest, Limits};
use std::sync::Arc;

/// After this many packs, a new lock begins with one pack again: many small packs are larger than
/// one, and each costs requests.
const MAX_PACKS: usize = 32;

/// Resolves `request`. The packs of `old` are kept unless history was rewritten, a ref was removed
/// or there are [`MAX_PACKS`] of them.
pub(super) async fn resolve(
    resolver: &Resolver,
    request: &GitRequest,
    old: Option<&LockedGitRepository>,
) -> Result<LockedGitRepository, ResolveError> {
    let refs = list_refs(resolver.sessions(), &request.url).await?;
    let chosen = choose_refs(request, &refs)?;
    if let Some(old) = old.filter(|old| old.refs == chosen.refs) {
        return Ok(locked(request, chosen, old.packs.clone()));
    }
    let mut wants: Vec<ObjectId> = chosen.refs.iter().map(|one| one.id).collect();
    wants.sort();
    wants.dedup();
    let old_packs = old.map(LockedGitRepository::git_packs);
    let stored = match &old_packs {
        Some(packs) if are_stored(resolver.disk().clone(), packs.clone()).await => packs.clone(),
        _ => GitPacks {
            url: request.url.clone(),
            packs: Vec::new(),
        },
    };
    let haves = stored.tips_before(stored.packs.len());
    let new: Vec<ObjectId> = wants
        .iter()
        .filter(|id| !haves.contains(id))
        .copied()
        .collect();
    let fetched = if new.is_empty() {
        None
    } else {
        Some(fetch_pack(resolver.sessions(), &request.url, &new, &haves).await?)
    };
    let writing = PackWriting {
        disk: resolver.disk().clone(),
        limits: *resolver.limits(),
        stored,
        old: old.map(|old| old.packs.clone()).unwrap_or_default(),
        fetched,
        wants,
    };
    let busy = resolver.sessions().transport().activity().busy();
    let written = tokio::task::spawn_blocking(move || writing.run()).await;
    drop(busy);
    let written = written
        .map_err(|error| ResolveError::local(error.to_string()))?
        .map_err(|error| match error {
            GitError::WritePack(_) | GitError::ReadPack(_) => {
                ResolveError::local(error.to_string())
            }
            error => ResolveError::from(git_error(error)),
        })?;
    if written.is_rewritten {
        let line = format!(
            "{}: the history was rewritten or a ref was removed, so all commits are packed again",
            request.name
        );
        resolver.progress().note(&line);
    }
    Ok(locked(request, chosen, written.packs))
}

fn locked(
    request: &GitRequest,
    chosen: ChosenRefs,
    packs: Vec<LockedGitPack>,
) -> LockedGitRepository {
    let mut repository = LockedGitRepository {
        name: request.name.clone(),
        digest: Digest::sha256(b""),
        wanted: request.wanted.clone(),
        head: chosen.head,
        refs: chosen.refs,
        packs,
    };
    repository.digest = parts::digest(&repository);
    repository
}

/// Whether the store has all these packs.
async fn are_stored(disk: DiskStore, packs: GitPacks) -> bool {
    let looking = tokio::task::spawn_blocking(move || {
        let mut packs = packs.packs.iter();
        packs.all(|pack| disk.has(&pack.digest, pack.size).unwrap_or(false))
    });
    looking.await.unwrap_or(false)
}

/// The input for a pack with new commits.
struct PackWriting {
    disk: DiskStore,
    limits: Limits,
    /// The packs of the old lock, if the store has all of them.
    stored: GitPacks,
    /// The packs of the old lock.
    old: Vec<LockedGitPack>,
    fetched: Option<FetchedPack>,
    wants: Vec<ObjectId>,
}

struct WrittenPacks {
    packs: Vec<LockedGitPack>,
    /// Whether the packs of the old lock have commits that no ref needs any more.
    is_rewritten: bool,
}

impl PackWriting {
    fn run(self) -> Result<WrittenPacks, GitError> {
        let mut database = ObjectDatabase::new(self.limits);
        for pack in &self.stored.packs {
            let blobs = Arc::new(self.disk.clone());
            let bytes = BlobPackBytes::new(blobs, pack.digest.clone(), pack.size);
            database.add_pack(Arc::new(bytes))?;
        }
        if let Some(fetched) = self.fetched {
            database.add_pack(Arc::new(fetched.file))?;
        }
        let mut before = Vec::new();
        for pack in &self.old {
            before.extend(pack.tips.iter().copied());
        }
        let is_rewritten = !reaches(&database, &self.wants, &before)?;
        let mut packs = self.old;
        if is_rewritten || packs.len() >= MAX_PACKS {
            packs.clear();
            before.clear();
        }
        let plan = GitPackPlan::new(&database, &self.wants, &before)?;
        if !plan.is_empty() {
            let file = self
                .disk
                .temporary_file()
                .map_err(|error| GitError::WritePack(std::io::Error::other(error)))?;
            let facts = write_pack_file(&database, &plan, file.as_file())?;
            self.disk
                .adopt(file, &facts.digest)
                .map_err(|error| GitError::WritePack(std::io::Error::other(error)))?;
            packs.push(LockedGitPack {
                digest: facts.digest,
                size: facts.size,
                tips: self.wants,
            });
        }
        Ok(WrittenPacks {
            packs,
            is_rewritten,
        })
    }
}
