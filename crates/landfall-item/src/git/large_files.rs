//! The large files (Git LFS) of the locked refs of a repository.

use super::locked::LockedLargeFile;
use landfall_git::{GitError, ObjectDatabase, ObjectId, large_files};
use landfall_model::Limits;

/// The large files in the trees of `tips`, sorted. Empty files are omitted.
pub(super) fn locked_large_files(
    database: &ObjectDatabase,
    tips: &[ObjectId],
    limits: &Limits,
) -> Result<Vec<LockedLargeFile>, GitError> {
    let found = large_files(database, tips, limits.git_large_files)?;
    let found = found.into_iter().filter(|file| file.size > 0);
    Ok(found.map(LockedLargeFile::from).collect())
}
