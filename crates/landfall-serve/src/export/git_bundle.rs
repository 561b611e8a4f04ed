//! Git bundles (gitformat-bundle): a repository in one file, from which git clones and fetches.

use landfall_content::{BlobRead, ContentError, digest_of};
use landfall_git::{
    FetchRequest, GitError, ObjectDatabase, ObjectId, PackSending, SelectedObjects, send_pack,
};
use landfall_item::LockedGitRepository;
use landfall_model::{Algorithm, Digest, Limits};
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::sync::Arc;
use tempfile::NamedTempFile;

/// The first line of a bundle whose objects have SHA-1 ids.
const SIGNATURE: &str = "# v2 git bundle";

/// A git bundle in a temporary file.
pub(super) struct GitBundle {
    file: NamedTempFile,
    pub(super) digest: Digest,
    /// The size of the bundle in bytes.
    pub(super) size: u64,
}

impl GitBundle {
    /// Writes a bundle with all refs of a repository, whose packs are in `blobs`. Reads the packs
    /// and hashes all their objects.
    pub(super) fn create(
        repository: &LockedGitRepository,
        blobs: &Arc<dyn BlobRead>,
        limits: Limits,
    ) -> Result<GitBundle, GitError> {
        if !repository.shallow.is_empty() {
            return Err(GitError::Unsupported(
                "a git bundle cannot contain a shallow history; use --format bare",
            ));
        }
        let database = repository.objects(blobs, limits)?;
        let mut file = NamedTempFile::new().map_err(GitError::WritePack)?;
        write(repository, &database, file.as_file())?;
        file.as_file_mut().rewind().map_err(GitError::WritePack)?;
        let digest = digest_of(&mut file, Algorithm::Sha256).map_err(GitError::WritePack)?;
        let size = file.stream_position().map_err(GitError::WritePack)?;
        Ok(GitBundle { file, digest, size })
    }

    fn reader(&self, offset: u64) -> io::Result<File> {
        let mut file = self.file.reopen()?;
        file.seek(SeekFrom::Start(offset))?;
        Ok(file)
    }
}

/// Writes the list of refs, and a pack with everything that they need.
fn write(
    repository: &LockedGitRepository,
    database: &ObjectDatabase,
    file: &File,
) -> Result<(), GitError> {
    let mut head = format!("{SIGNATURE}\n");
    for one in &repository.refs {
        head += &format!("{} {}\n", one.id, one.name);
    }
    if let Some(id) = checked_out(repository, database)? {
        head += &format!("{id} HEAD\n");
    }
    let request = FetchRequest {
        wants: repository.refs.iter().map(|one| one.id).collect(),
        ..FetchRequest::default()
    };
    let selected = SelectedObjects::new(database, &request, &[])?;
    let mut out = BufWriter::with_capacity(256 << 10, file);
    writeln!(out, "{head}").map_err(GitError::WritePack)?;
    let form = PackSending {
        offset_deltas: true,
        is_compact: true,
    };
    send_pack(database, &selected.objects, form, &mut out)?;
    out.flush().map_err(GitError::WritePack)
}

/// The commit that a clone checks out: that of the default branch or, if the lock names no default
/// branch, that of the last ref.
fn checked_out(
    repository: &LockedGitRepository,
    database: &ObjectDatabase,
) -> Result<Option<ObjectId>, GitError> {
    let is_head = |name: &String| Some(name) == repository.head.as_ref();
    let mut refs = repository.refs.iter();
    match refs
        .find(|one| is_head(&one.name))
        .or(repository.refs.last())
    {
        Some(one) => {
            let commit = database.peeled(database.find(one.id)?)?;
            Ok(Some(database.id(commit)))
        }
        None => Ok(None),
    }
}

impl BlobRead for GitBundle {
    fn stat(&self, digest: &Digest) -> Result<Option<u64>, ContentError> {
        Ok((*digest == self.digest).then_some(self.size))
    }

    fn open(&self, digest: &Digest, offset: u64) -> Result<Box<dyn Read + Send>, ContentError> {
        if *digest != self.digest {
            return Err(ContentError::missing(digest));
        }
        match self.reader(offset) {
            Ok(file) => Ok(Box::new(file)),
            Err(error) => Err(ContentError::read(digest, error)),
        }
    }
}
