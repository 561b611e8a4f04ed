//! Content of files next to a manifest or a lock. Paths are relative to a folder and stay below it.

use crate::local_folder::{chart_of_folder, tar_of_folder};
use landfall_git::{GitError, LocalRepository, ObjectDatabase};
use landfall_model::document::open_input;
use landfall_model::{
    Algorithm, Descriptor, Digest, FolderPacking, ImageRef, Limits, digest_of, is_path_below,
};
use std::fmt::Display;
use std::fs::File;
use std::io::{self, Seek};
use std::path::{Path, PathBuf};

/// Content that is read from a path next to the lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalContent {
    /// The path, relative to the folder of the lock. `None` if the manifest of the item is not
    /// below that folder, so that only the store has the content.
    pub path: Option<String>,
    /// What is at the path.
    pub form: LocalForm,
}

/// What is at the path of local content.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum LocalForm {
    /// The file itself.
    File,
    /// A folder that becomes one file.
    Folder(FolderPacking),
    /// A chart with this name: a `.tgz`, or a folder that becomes one.
    Chart(String),
    /// An archive of another tool with the image of this name, of which the content is a part
    /// ([`ImageInArchive`](crate::archives::ImageInArchive)).
    Image(ImageRef),
    /// A working copy, bare repository or git bundle, from whose objects packs are written.
    Repository,
}

/// Why content cannot be read whose manifest is not below the folder of the lock.
const NOT_BESIDE_LOCK: &str = "the store does not have it, and its manifest is not below the \
     folder of the lock; run `landfall lock` with this store, or pull with the store that locked it";

/// Why content cannot be read from `path` next to the lock.
pub(crate) fn read_failure(path: &str, error: &dyn Display) -> String {
    format!(
        "the store does not have it, and {path} next to the lock cannot be read: {error}; restore \
         the file, or pull with the store that locked it"
    )
}

/// Reads the objects of the git repository at `path`, which is relative to the folder of the lock
/// and empty if it is not below that folder. The error says what is wrong, and what to do about it.
pub(crate) fn open_local_repository(
    folder: &Path,
    path: &str,
    limits: Limits,
) -> Result<ObjectDatabase, String> {
    if path.is_empty() {
        return Err(NOT_BESIDE_LOCK.into());
    }
    let found = path_below(folder, path).map_err(|error| read_failure(path, &error))?;
    let read = || {
        let repository = LocalRepository::open(&found, &limits)?;
        let mut database = ObjectDatabase::new(limits);
        for pack in repository.packs(&limits)? {
            database.add_pack(pack)?;
        }
        Ok::<_, GitError>(database)
    };
    read().map_err(|error| read_failure(path, &error))
}

impl LocalContent {
    /// Opens the content, which must be that of `descriptor`. `folder` is the folder of the lock.
    /// The error says what is wrong, and what to do about it.
    pub(crate) fn open(&self, folder: &Path, descriptor: &Descriptor) -> Result<File, String> {
        let Some(path) = &self.path else {
            return Err(NOT_BESIDE_LOCK.into());
        };
        let opened = folder.canonicalize().and_then(|folder| {
            let found = path_below(&folder, path)?;
            open_local(&folder, &found, &self.form, &Limits::default())
        });
        let (file, digest, size) = opened.map_err(|error| read_failure(path, &error))?;
        if (&digest, size) != (&descriptor.digest, descriptor.size) {
            return Err(format!(
                "{path} changed after it was locked: the lock has {}, and the file is {digest}; \
                 restore the file, or run `landfall lock` to accept the change",
                descriptor.digest
            ));
        }
        Ok(file)
    }
}

/// Opens the file at `path`, or packs the folder at `path`, and hashes the content. `outer` is the
/// folder that links must not leave. Both are canonical. Returns the content from its start, with
/// its SHA-256 and its size in bytes.
///
/// # Errors
/// If the content cannot be read.
pub fn open_local(
    outer: &Path,
    path: &Path,
    form: &LocalForm,
    limits: &Limits,
) -> io::Result<(File, Digest, u64)> {
    let mut file = match form {
        LocalForm::File | LocalForm::Image(_) | LocalForm::Repository => open_input(path)?,
        LocalForm::Folder(FolderPacking::Tar) => tar_of_folder(outer, path, limits)?,
        LocalForm::Chart(name) if path.is_dir() => chart_of_folder(outer, path, name, limits)?,
        LocalForm::Chart(_) => open_input(path)?,
    };
    file.rewind()?;
    let digest = digest_of(&mut file, Algorithm::Sha256)?;
    let size = file.stream_position()?;
    file.rewind()?;
    Ok((file, digest, size))
}

/// The canonical form of `path`, which is relative to `folder`.
///
/// # Errors
/// If nothing exists there, or if the path or a symbolic link leads out of the folder.
pub fn path_below(folder: &Path, path: &str) -> io::Result<PathBuf> {
    if !is_path_below(path) {
        return Err(io::Error::other("it is not a path below this folder"));
    }
    let folder = folder.canonicalize()?;
    let found = folder.join(path).canonicalize()?;
    if found.starts_with(&folder) {
        Ok(found)
    } else {
        Err(io::Error::other(format!(
            "a symbolic link leads out of the folder, to {}",
            found.display()
        )))
    }
}
