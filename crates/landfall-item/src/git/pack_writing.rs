//! Writes the pack with the new commits of a repository, after its signatures, submodules and large
//! files were read.

use super::large_files::{LargeFilesOfServer, large_files_by_server, locked_submodules};
use super::locked::{LockedGitRef, LockedGitSubmodule, VerifiedGitRef};
use super::request::GitRequest;
use super::resolve::GitResolveError;
use super::signatures::verified_refs;
use landfall_content::store::DiskStore;
use landfall_content::upstream::write_pack_file;
use landfall_content::{BlobPackBytes, BlobRead, DiskSpace, GitPack, GitPacks};
use landfall_git::{
    GitError, GitPackPlan, ObjectDatabase, ObjectId, PackBytes, reaches, shallow_boundary,
};
use landfall_model::{Digest, Failure, Limits, human_size};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// After this many packs, a new lock begins with one pack again: many small packs take more space
/// than one, and each costs requests.
const MAX_PACKS: usize = 32;

/// The input for writing a pack with new commits.
pub(super) struct PackWriting {
    pub(super) disk: DiskStore,
    pub(super) limits: Limits,
    /// The packs of the old lock from which objects are read. Empty if the store lacks one of them,
    /// or if the refs of a history with a depth changed.
    pub(super) stored: GitPacks,
    /// The packs of the old lock.
    pub(super) old: Vec<GitPack>,
    /// Packs with the objects that the stored packs lack.
    pub(super) fetched: Vec<Arc<dyn PackBytes>>,
    pub(super) wants: Vec<ObjectId>,
    pub(super) request: GitRequest,
    pub(super) refs: Vec<LockedGitRef>,
    /// The branch that a clone checks out.
    pub(super) head: Option<String>,
}

/// Why refs are not verified, or submodules cannot be locked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GitFault {
    /// An object cannot be read.
    #[error(transparent)]
    Object(#[from] GitError),
    /// Any other reason.
    #[error(transparent)]
    Failed(#[from] Failure),
}

#[derive(Default)]
pub(super) struct WrittenPacks {
    pub(super) packs: Vec<GitPack>,
    /// The commits whose parents are not carried.
    pub(super) shallow: Vec<ObjectId>,
    pub(super) verified: Vec<VerifiedGitRef>,
    pub(super) submodules: Option<Vec<LockedGitSubmodule>>,
    /// The large files by server, if they are carried.
    pub(super) large_files: Option<Vec<LargeFilesOfServer>>,
    /// Whether the packs of the old lock have commits that no ref needs any more.
    pub(super) is_rewritten: bool,
}

/// Opens `packs`, which are in `blobs`.
pub(super) fn stored_objects(
    blobs: &Arc<dyn BlobRead>,
    packs: &[GitPack],
    limits: Limits,
) -> Result<ObjectDatabase, GitError> {
    let mut database = ObjectDatabase::new(limits);
    for pack in packs {
        let bytes = BlobPackBytes::new(blobs.clone(), pack.digest.clone(), pack.size);
        database.add_pack(Arc::new(bytes))?;
    }
    Ok(database)
}

impl PackWriting {
    /// Writes the pack. `refutes_old` of an error says that a signature is not valid.
    pub(super) fn run(self) -> Result<WrittenPacks, GitResolveError> {
        let blobs: Arc<dyn BlobRead> = Arc::new(self.disk.clone());
        let mut database = stored_objects(&blobs, &self.stored.packs, self.limits)?;
        for pack in &self.fetched {
            database.add_pack(pack.clone())?;
        }
        let GitRequest { url, .. } = &self.request;
        let verified =
            verified_refs(&database, &self.refs, &self.request.ref_rules()).map_err(|fault| {
                GitResolveError {
                    refutes_old: matches!(fault, GitFault::Failed(_)),
                    ..fault.into()
                }
            })?;
        let submodules = if self.request.submodules {
            Some(locked_submodules(&database, url, &self.refs)?)
        } else {
            None
        };
        let large_files = if self.request.lfs {
            let head = self.head.as_deref();
            let found =
                large_files_by_server(&database, &self.request, head, &self.refs, &self.limits)?;
            Some(found)
        } else {
            None
        };
        let shallow = match self.request.depth {
            Some(depth) => shallow_boundary(&database, &self.wants, depth)?,
            None => Vec::new(),
        };
        database.set_shallow(&shallow);
        let written = self.write(&database)?;
        Ok(WrittenPacks {
            shallow,
            verified,
            submodules,
            large_files,
            ..written
        })
    }

    /// Writes a pack with everything that the packs of the old lock lack, or with everything if
    /// these packs are not kept.
    fn write(self, database: &ObjectDatabase) -> Result<WrittenPacks, GitError> {
        let mut before = Vec::new();
        for pack in &self.old {
            before.extend(pack.tips.iter().copied());
        }
        let mut packs = self.old;
        // a shallow history is always one pack, since its boundary changes with its tips
        let is_replaced = self.request.depth.is_some() && before != self.wants;
        let is_rewritten = !is_replaced && !reaches(database, &self.wants, &before)?;
        if is_replaced || is_rewritten || packs.len() >= MAX_PACKS {
            packs.clear();
            before.clear();
        }
        let plan = GitPackPlan::new(database, &self.wants, &before)?;
        if !plan.is_empty() {
            let needed = plan.least_size(database);
            check_space(self.disk.dir(), needed).map_err(GitError::WritePack)?;
            let (digest, size) = store_pack(&self.disk, database, &plan)?;
            packs.push(GitPack {
                digest,
                size,
                tips: self.wants,
            });
        }
        Ok(WrittenPacks {
            packs,
            is_rewritten,
            ..WrittenPacks::default()
        })
    }
}

/// Writes the pack of `plan` to the store. Returns its digest, and its size in bytes.
pub(super) fn store_pack(
    disk: &DiskStore,
    database: &ObjectDatabase,
    plan: &GitPackPlan,
) -> Result<(Digest, u64), GitError> {
    let failed = |error| GitError::WritePack(io::Error::other(error));
    let file = disk.temporary_file().map_err(failed)?;
    let (digest, size) = write_pack_file(database, plan, file.as_file())?;
    disk.adopt(file, &digest).map_err(failed)?;
    Ok((digest, size))
}

/// Checks that a pack of at least `needed` bytes fits on the disk: a small pack of a server may
/// unpack to gigabytes.
fn check_space(store: &Path, needed: u64) -> io::Result<()> {
    let space = DiskSpace::measure(store, needed)?;
    if space.is_enough() {
        return Ok(());
    }
    let why = format!(
        "it has at least {}, and {} has {} free; free some space, or limit the history with depth",
        human_size(needed),
        store.display(),
        space.shown_free()
    );
    Err(io::Error::new(io::ErrorKind::StorageFull, why))
}
