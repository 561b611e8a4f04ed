//! Writes landfall's packs of a git repository from the pack that its server sends.

use super::git_remote::{fetch_pack, git_error};
use crate::GitPacks;
use crate::registry::RegistrySessions;
use landfall_git::{GitError, GitPackPlan, ObjectDatabase, write_pack};
use landfall_http::{ErrorKind, HttpError};
use landfall_model::{Algorithm, Digest, Hasher, Limits};
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use tokio::task::spawn_blocking;

/// A pack that landfall wrote into an unnamed file.
pub(super) struct WrittenPack {
    file: Arc<File>,
}

/// The digest and size of a pack that was written.
pub struct PackFacts {
    /// SHA-256 of the pack.
    pub digest: Digest,
    /// The size of the pack in bytes.
    pub size: u64,
}

/// Writes the pack of `plan` into `file`.
///
/// # Errors
/// If an object cannot be read, or the file cannot be written.
pub fn write_pack_file(
    database: &ObjectDatabase,
    plan: &GitPackPlan,
    file: &File,
) -> Result<PackFacts, GitError> {
    let mut hashed = HashedFile {
        file,
        hasher: Hasher::new(Algorithm::Sha256),
    };
    let mut buffered = BufWriter::with_capacity(256 << 10, &mut hashed);
    let size = write_pack(database, plan, &mut buffered)?;
    buffered.flush().map_err(GitError::WritePack)?;
    drop(buffered);
    let digest = hashed.hasher.finish();
    Ok(PackFacts { digest, size })
}

/// A file whose bytes are hashed while they are written.
struct HashedFile<'a> {
    file: &'a File,
    hasher: Hasher,
}

impl Write for HashedFile<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write(bytes)?;
        self.hasher.update(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl WrittenPack {
    /// Reads the pack from `offset`.
    pub(super) fn reader(&self, offset: u64) -> Box<dyn Read + Send> {
        Box::new(FileFrom::new(self.file.clone(), offset))
    }
}

/// Reads a file from an offset, without moving the position that all readers of the file share.
pub(super) struct FileFrom {
    file: Arc<File>,
    at: u64,
}

impl FileFrom {
    /// Reads `file` from the offset `at`.
    pub(super) fn new(file: Arc<File>, at: u64) -> FileFrom {
        FileFrom { file, at }
    }
}

impl Read for FileFrom {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(buffer, self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

/// Fetches a repository and writes all its packs.
pub(super) async fn fetch_packs(
    sessions: &RegistrySessions,
    packs: Arc<GitPacks>,
) -> Result<Arc<Vec<WrittenPack>>, HttpError> {
    let written = write_packs(sessions, packs, |database, plan| {
        let file = tempfile::tempfile().map_err(GitError::WritePack)?;
        write_pack_file(database, plan, &file)?;
        Ok(WrittenPack {
            file: Arc::new(file),
        })
    });
    written.await.map(Arc::new)
}

/// Fetches a repository, and lets `write` write each of its packs by a plan.
///
/// # Errors
/// If the repository cannot be fetched, or a pack cannot be written.
pub async fn write_packs<T: Send + 'static>(
    sessions: &RegistrySessions,
    packs: Arc<GitPacks>,
    write: impl Fn(&ObjectDatabase, &GitPackPlan) -> Result<T, GitError> + Send + 'static,
) -> Result<Vec<T>, HttpError> {
    let tips = packs.tips_before(packs.packs.len());
    let fetched = fetch_pack(sessions, &packs.url, &tips, &[], packs.depth).await?;
    let limits = *sessions.transport().limits();
    let busy = sessions.transport().activity().busy();
    let written = spawn_blocking(move || write_all(fetched.file, &packs, limits, write));
    let written = written
        .await
        .map_err(|error| HttpError::new(ErrorKind::Local, error.to_string()))?;
    drop(busy);
    written.map_err(git_error)
}

/// Writes all packs of a repository from the pack that its server sent.
fn write_all<T>(
    fetched: File,
    packs: &GitPacks,
    limits: Limits,
    write: impl Fn(&ObjectDatabase, &GitPackPlan) -> Result<T, GitError>,
) -> Result<Vec<T>, GitError> {
    let mut database = ObjectDatabase::new(limits);
    database.add_pack(Arc::new(fetched))?;
    database.set_shallow(&packs.shallow);
    let mut written = Vec::new();
    for (at, pack) in packs.packs.iter().enumerate() {
        let plan = GitPackPlan::new(&database, &pack.tips, &packs.tips_before(at))?;
        written.push(write(&database, &plan)?);
    }
    Ok(written)
}
