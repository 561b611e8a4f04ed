//! A repository on this machine: a working copy, a bare repository or a git bundle.
//!
//! Nothing runs git, and no configuration of the repository is followed: hooks, filters, includes
//! and repositories with further objects (alternates) have no effect. Links are not followed.

mod bundle;
mod folder;

use crate::GitError;
use crate::object::ObjectId;
use crate::pack::PackBytes;
use crate::wire::OfferedRef;
use landfall_model::Limits;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// A git repository on this machine.
pub struct LocalRepository {
    /// The branches and tags, and `HEAD` if it points to one of the branches. `peeled` is not
    /// known.
    pub refs: Vec<OfferedRef>,
    /// The commits at which the history ends although they have parents.
    pub shallow: Vec<ObjectId>,
    objects: LocalObjects,
}

/// Where the objects of a [`LocalRepository`] are.
enum LocalObjects {
    Bundle(bundle::BundlePack),
    Folder(folder::GitFolder),
}

impl LocalRepository {
    /// Opens the repository at `path` and reads its refs: the folder of a working copy, a bare
    /// repository, or the file of a git bundle.
    ///
    /// # Errors
    /// If there is no repository, it cannot be read, exceeds a limit, or uses a format that
    /// landfall does not read.
    pub fn open(path: &Path, limits: &Limits) -> Result<LocalRepository, GitError> {
        if path.is_dir() {
            folder::open(path, limits)
        } else {
            bundle::open(path, limits)
        }
    }

    /// The packs with the objects: the repository's own, or copies in unnamed files. A later
    /// change of the repository does not change what they contain.
    ///
    /// # Errors
    /// If they cannot be read, exceed a limit, or the repository changed since it was opened.
    pub fn packs(&self, limits: &Limits) -> Result<Vec<Arc<dyn PackBytes>>, GitError> {
        match &self.objects {
            LocalObjects::Bundle(pack) => Ok(vec![Arc::new(pack.copy(limits)?)]),
            LocalObjects::Folder(folder) => {
                let packs = folder.packs(limits)?;
                if folder.refs(limits)? == self.refs {
                    Ok(packs)
                } else {
                    Err(changed())
                }
            }
        }
    }
}

/// The refs of a repository from the ids of its branches and tags. `head` is the branch to which
/// `HEAD` points.
fn refs_of(ids: BTreeMap<String, ObjectId>, head: Option<String>) -> Vec<OfferedRef> {
    let head = head.and_then(|target| Some(("HEAD".to_owned(), *ids.get(&target)?, Some(target))));
    let all = ids.into_iter().map(|(name, id)| (name, id, None));
    let refs = head.into_iter().chain(all);
    refs.map(|(name, id, target)| OfferedRef {
        name,
        id,
        peeled: None,
        target,
    })
    .collect()
}

/// Whether `name` is that of a branch or tag. It may be one that
/// [`is_ref_name`](crate::is_ref_name) refuses.
fn is_carried(name: &str) -> bool {
    name.starts_with("refs/heads/") || name.starts_with("refs/tags/")
}

/// The error for a repository on this machine that cannot be read.
fn unreadable(why: impl Into<String>) -> GitError {
    GitError::LocalRepository(why.into())
}

fn changed() -> GitError {
    unreadable("it changed while it was read; lock again")
}

fn temporary_file() -> Result<File, GitError> {
    tempfile::tempfile().map_err(GitError::WritePack)
}

/// The error for a file or folder of the repository, by its path below the repository.
fn file_error(path: &Path, error: &io::Error) -> GitError {
    unreadable(format!("cannot read {}: {error}", path.display()))
}
