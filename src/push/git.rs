//! Pushes git repositories to a git server: the branches and tags that the lock names.

use landfall_content::registry::RegistrySessions;
use landfall_content::upstream::{
    GitPush, git_error, missing_large_files, push_refs, pushed_refs, upload_large_files,
};
use landfall_content::{BlobRead, LfsServer};
use landfall_git::{
    FetchRequest, GitError, ObjectId, PackSending, ReceiveAdvertisement, RefUpdate,
    SelectedObjects, reaches, send_pack,
};
use landfall_http::{ErrorKind, HttpError};
use landfall_item::lockfile::Lock;
use landfall_item::{LockedGitRepository, LockedLargeFile};
use landfall_model::report::{EntryKind, ItemStatus, Progress, ReportItem, count_of};
use landfall_model::{Descriptor, Failure, Limits, redact_urls, sum_sizes};
use std::collections::BTreeMap;
use std::io::{BufWriter, Seek, Write};
use std::sync::Arc;
use tokio::task::spawn_blocking;
use url::Url;

/// The git server to which repositories are pushed.
#[derive(Debug, Clone)]
pub struct GitTarget {
    /// The URL of the server. Each repository is below this URL, at its upstream path.
    pub url: Url,
    /// Replace branches and tags that point elsewhere.
    pub move_refs: bool,
    /// Look up the refs and the large files of the server, and upload nothing.
    pub dry_run: bool,
}

impl GitTarget {
    /// The URL of a repository at the server: the URL of the server, followed by the upstream path.
    fn url_of(&self, repository: &LockedGitRepository) -> String {
        let path = repository.url().splitn(4, '/').nth(3).unwrap_or_default();
        format!("{}/{path}", self.url.as_str().trim_end_matches('/'))
    }
}

/// Pushes the repositories of `lock`, whose packs are in `blobs`. Returns an item for each. Fails
/// if two repositories would have one URL at the server.
pub(crate) async fn push_git(
    lock: &Lock,
    blobs: &Arc<dyn BlobRead>,
    target: &GitTarget,
    sessions: &RegistrySessions,
    progress: &dyn Progress,
) -> Result<Vec<ReportItem>, Failure> {
    let mut urls: BTreeMap<String, &str> = BTreeMap::new();
    for repository in &lock.git {
        let url = target.url_of(repository);
        if let Some(first) = urls.insert(url.clone(), &repository.name) {
            return Err(Failure::usage(format!(
                "{first} and {} would both be pushed to {}",
                repository.name,
                redact_urls(&url)
            )));
        }
    }
    let mut items = Vec::new();
    progress.begin("push", lock.git.len() as u64, 0);
    for repository in &lock.git {
        let pushed = push_one(repository, blobs, target, sessions).await;
        let (status, reason) =
            pushed.unwrap_or_else(|error| (ItemStatus::Failed, Some(error.to_string())));
        if status != ItemStatus::Failed {
            let lfs = LfsServer::of_repository(&target.url_of(repository));
            let note = repository.lfs_note(&redact_urls(&lfs.url));
            note.iter().for_each(|note| progress.note(note));
        }
        progress.item(&repository.name);
        items.push(ReportItem {
            kind: EntryKind::Git,
            name: repository.name.clone(),
            digest: Some(repository.digest.clone()),
            bytes: Some(sum_sizes(repository.packs.iter().map(|pack| pack.size))),
            packages: 0,
            status,
            reason,
        });
    }
    progress.end();
    Ok(items)
}

async fn push_one(
    repository: &LockedGitRepository,
    blobs: &Arc<dyn BlobRead>,
    target: &GitTarget,
    sessions: &RegistrySessions,
) -> Result<(ItemStatus, Option<String>), HttpError> {
    let url = target.url_of(repository);
    let receiver = pushed_refs(sessions, &url).await.map_err(|error| {
        let advice = "the git server has no such repository; create it there, or correct --git-to";
        match error.kind {
            ErrorKind::NotFound => error.about(advice),
            _ => error,
        }
    })?;
    let server = &receiver.advertisement;
    let lfs = LfsServer::of_repository(&url);
    // large files before the refs, so that nobody sees pointers without their files
    let large_files = repository.large_files.iter().flatten();
    let large_files: Vec<Descriptor> = large_files.map(LockedLargeFile::descriptor).collect();
    let uploaded = if target.dry_run {
        missing_large_files(sessions, &lfs, &large_files).await?
    } else {
        upload_large_files(sessions, &lfs, &large_files, blobs).await?
    };
    let would_push = |mut changes: Vec<String>| {
        if uploaded > 0 {
            changes.push(count_of(uploaded, "large file"));
        }
        let target = redact_urls(&url);
        let reason = format!("would be pushed to {target}: {}", changes.join(", "));
        (ItemStatus::Skipped, Some(reason))
    };
    let is_right = |name: &str, id: &ObjectId| server.refs.get(name) == Some(id);
    if repository
        .refs
        .iter()
        .all(|one| is_right(&one.name, &one.id))
    {
        return Ok(match uploaded {
            0 => (ItemStatus::Present, None),
            _ if target.dry_run => would_push(Vec::new()),
            _ => (ItemStatus::Done, None),
        });
    }
    let locked = repository.clone();
    let blobs = blobs.clone();
    let known = server.clone();
    let move_refs = target.move_refs;
    let limits = *sessions.transport().limits();
    let busy = sessions.transport().activity().busy();
    let plan = spawn_blocking(move || plan_push(&locked, &blobs, &known, move_refs, limits)).await;
    drop(busy);
    let (push, conflicts) = plan?.map_err(git_error)?;
    if let Some(push) = push {
        if !target.dry_run {
            push_refs(sessions, &url, &receiver, &push).await?;
        } else if conflicts.is_empty() {
            let changes = push.updates.into_iter().map(|one| one.name);
            return Ok(would_push(changes.collect()));
        }
    }
    if conflicts.is_empty() {
        return Ok((ItemStatus::Done, None));
    }
    Ok((ItemStatus::Failed, Some(conflicts.join("; "))))
}

/// Returns the changes to make at the server, or `None` if there are none, and the refs that are
/// not changed, each with the reason.
fn plan_push(
    repository: &LockedGitRepository,
    blobs: &Arc<dyn BlobRead>,
    server: &ReceiveAdvertisement,
    move_refs: bool,
    limits: Limits,
) -> Result<(Option<GitPush>, Vec<String>), GitError> {
    let database = repository.objects(blobs, limits)?;
    let mut conflicts = Vec::new();
    let mut updates = Vec::new();
    for one in &repository.refs {
        let old = server.refs.get(&one.name).copied();
        if old == Some(one.id) {
            continue;
        }
        // a branch may be fast-forwarded, but a tag may not change
        let is_forward = match old {
            None => true,
            Some(old) => {
                one.name.starts_with("refs/heads/")
                    && database.contains(old)
                    && reaches(&database, &[one.id], &[old])?
            }
        };
        match old {
            Some(old) if !is_forward && !move_refs => conflicts.push(format!(
                "{} is {old} at the server, not {}; --move-tags replaces it",
                one.name, one.id
            )),
            _ => updates.push(RefUpdate {
                name: one.name.clone(),
                old,
                new: one.id,
            }),
        }
    }
    if updates.is_empty() {
        return Ok((None, conflicts));
    }
    let request = FetchRequest {
        wants: updates.iter().map(|update| update.new).collect(),
        haves: server.refs.values().copied().collect(),
        ..FetchRequest::default()
    };
    let selected = SelectedObjects::new(&database, &request, &[])?;
    let mut pack = tempfile::tempfile().map_err(GitError::WritePack)?;
    let mut out = BufWriter::with_capacity(256 << 10, &mut pack);
    let sending = PackSending {
        offset_deltas: server.has("ofs-delta"),
        is_compact: false,
    };
    send_pack(&database, &selected.objects, sending, &mut out)?;
    out.flush().map_err(GitError::WritePack)?;
    drop(out);
    let size = pack.stream_position().map_err(GitError::WritePack)?;
    let push = GitPush {
        updates,
        shallow: selected.shallow,
        pack: Arc::new(pack),
        size,
    };
    Ok((Some(push), conflicts))
}
