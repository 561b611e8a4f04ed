//! Resolves a repository: finds the commits of its refs, fetches the new ones, and writes the pack.

use super::choose::{ChosenRefs, choose_refs};
use super::large_files::find_large_files;
use super::locked::{LockedGitRef, LockedGitRepository, LockedLargeFile};
use super::pack_writing::{PackWriting, PackWritingError, WrittenPacks};
use super::parts;
use super::request::GitRequest;
use crate::resolver::{ResolveError, Resolver};
use landfall_content::GitPacks;
use landfall_content::store::DiskStore;
use landfall_content::upstream::{fetch_pack, git_error, list_refs};
use landfall_git::{GitError, ObjectId};
use landfall_http::HttpError;
use landfall_model::Digest;

/// The reason why a repository cannot be resolved.
pub(super) struct GitResolveError {
    pub(super) cause: ResolveError,
    /// Whether the old pin must not be kept, because it has the same refs and their signatures are
    /// not valid.
    pub(super) refutes_old: bool,
}

impl From<ResolveError> for GitResolveError {
    fn from(cause: ResolveError) -> GitResolveError {
        GitResolveError {
            cause,
            refutes_old: false,
        }
    }
}

impl From<HttpError> for GitResolveError {
    fn from(error: HttpError) -> GitResolveError {
        ResolveError::from(error).into()
    }
}

/// Resolves `request`. The packs of `old` are kept unless the refs no longer need all their commits
/// (the history was rewritten, or a ref was removed), the depth changed, a history with a depth has
/// other tips, or there are already `MAX_PACKS` packs.
pub(super) async fn resolve(
    resolver: &Resolver,
    request: &GitRequest,
    old: Option<&LockedGitRepository>,
) -> Result<LockedGitRepository, GitResolveError> {
    let refs = list_refs(resolver.sessions(), &request.url).await?;
    let chosen = choose_refs(request, &refs)?;
    let moved = old.map(|old| moved_tags(&old.refs, &chosen.refs));
    let old = old.filter(|old| old.depth == request.depth);
    let has_old_refs = old.is_some_and(|old| old.refs == chosen.refs);
    // signatures, submodules and pointers to large files are in objects
    let needs_objects = |old: &LockedGitRepository| {
        !request.signers.is_empty()
            || request.submodules && old.submodules.is_none()
            || request.lfs && (old.large_files.is_none() || old.lfs_server != request.lfs_server)
    };
    if let Some(old) = old.filter(|old| has_old_refs && !needs_objects(old)) {
        return Ok(locked(
            request,
            chosen,
            WrittenPacks {
                packs: old.packs.clone(),
                shallow: old.shallow.clone(),
                submodules: old.submodules.clone().filter(|_| request.submodules),
                ..WrittenPacks::default()
            },
            old.large_files.clone().filter(|_| request.lfs),
        ));
    }
    let mut wants: Vec<ObjectId> = chosen.refs.iter().map(|one| one.id).collect();
    wants.sort();
    wants.dedup();
    let old_packs = old.map(LockedGitRepository::git_packs);
    let stored = match &old_packs {
        Some(packs)
            if (request.depth.is_none() || has_old_refs)
                && are_stored(resolver.disk().clone(), packs.clone()).await =>
        {
            packs.clone()
        }
        _ => GitPacks {
            url: request.url.clone(),
            packs: Vec::new(),
            depth: request.depth,
            shallow: Vec::new(),
        },
    };
    let haves = stored.tips_before(stored.packs.len());
    let new: Vec<ObjectId> = wants
        .iter()
        .filter(|id| haves.binary_search(id).is_err())
        .copied()
        .collect();
    let fetched = if new.is_empty() {
        None
    } else {
        let sessions = resolver.sessions();
        Some(fetch_pack(sessions, &request.url, &new, &haves, request.depth).await?)
    };
    let writing = PackWriting {
        disk: resolver.disk().clone(),
        limits: *resolver.limits(),
        stored,
        old: old.map(|old| old.packs.clone()).unwrap_or_default(),
        fetched,
        wants,
        request: request.clone(),
        refs: chosen.refs.clone(),
        head: chosen.head.clone(),
    };
    let busy = resolver.sessions().transport().activity().busy();
    let written = tokio::task::spawn_blocking(move || writing.run()).await;
    drop(busy);
    let written = written.map_err(|error| ResolveError::local(error.to_string()))?;
    let mut written = written.map_err(|error| match error {
        PackWritingError::Object(error) => object_error(error).into(),
        PackWritingError::Submodule(error) => ResolveError::from(error.to_string()).into(),
        PackWritingError::Signature(error) => GitResolveError {
            cause: error.to_string().into(),
            refutes_old: has_old_refs,
        },
    })?;
    let large_files = match written.large_files.take() {
        Some(wanted) => Some(find_large_files(resolver.sessions(), wanted).await?),
        None => None,
    };
    let rewritten = written.is_rewritten.then(|| {
        "the history was rewritten or a ref was removed, so all commits are packed again".to_owned()
    });
    for change in moved.into_iter().flatten().chain(rewritten) {
        let line = format!("{}: {change}", request.name);
        resolver.progress().note(&line);
    }
    Ok(locked(request, chosen, written, large_files))
}

/// Describes each tag that names another object than in the old lock. Both lists are sorted by
/// name.
fn moved_tags(old: &[LockedGitRef], new: &[LockedGitRef]) -> Vec<String> {
    let mut moved = Vec::new();
    for LockedGitRef { name, id } in new {
        if name.starts_with("refs/tags/")
            && let Ok(at) = old.binary_search_by(|before| before.name.cmp(name))
            && old[at].id != *id
        {
            moved.push(format!("{name} moved from {} to {id}", old[at].id));
        }
    }
    moved
}

fn object_error(error: GitError) -> ResolveError {
    match error {
        GitError::WritePack(_) | GitError::ReadPack(_) => ResolveError::local(error.to_string()),
        error => git_error(error).into(),
    }
}

fn locked(
    request: &GitRequest,
    chosen: ChosenRefs,
    written: WrittenPacks,
    large_files: Option<Vec<LockedLargeFile>>,
) -> LockedGitRepository {
    let mut repository = LockedGitRepository {
        name: request.name.clone(),
        digest: Digest::sha256(b""),
        wanted: request.wanted.clone(),
        head: chosen.head,
        refs: chosen.refs,
        verified: written.verified,
        depth: request.depth,
        shallow: written.shallow,
        submodules: written.submodules,
        lfs_server: request.lfs_server.clone(),
        large_files,
        packs: written.packs,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moved_tags_are_described() {
        let one = |name: &str, digit: &str| LockedGitRef {
            name: name.into(),
            id: digit.repeat(40).parse().unwrap(),
        };
        let old = [
            one("refs/heads/main", "1"),
            one("refs/tags/v1", "1"),
            one("refs/tags/v2", "1"),
        ];
        let new = [
            one("refs/heads/main", "2"),
            one("refs/tags/v1", "2"),
            one("refs/tags/v2", "1"),
            one("refs/tags/v3", "2"),
        ];
        let expected = format!("refs/tags/v1 moved from {} to {}", old[1].id, new[1].id);
        assert_eq!(moved_tags(&old, &new), [expected]);
        assert!(moved_tags(&new, &new).is_empty());
    }
}
