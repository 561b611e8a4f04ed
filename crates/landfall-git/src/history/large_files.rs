//! Finds the Git LFS files of commits by the pointers in their trees.

use super::reach::ObjectSet;
use crate::error::GitError;
use crate::object::{EntryMode, GitObjectKind, LfsPointer, ObjectId, TreeEntries};
use crate::pack::ObjectDatabase;
use std::collections::BTreeSet;

/// Returns the large files in the folders of the commits `tips`, sorted. A tip may also be a tag of
/// a commit. Older commits are not searched.
///
/// # Errors
/// If an object is missing or not valid, or there are more than `most` large files.
pub fn large_files(
    database: &ObjectDatabase,
    tips: &[ObjectId],
    most: usize,
) -> Result<BTreeSet<LfsPointer>, GitError> {
    let mut seen = ObjectSet::new(database);
    let mut found = BTreeSet::new();
    let mut open = Vec::new();
    for tip in tips {
        let tip = database.peeled(database.find(*tip)?)?;
        if database.kind(tip) == GitObjectKind::Commit {
            open.push(database.find(database.commit(tip)?.tree)?);
        }
    }
    while let Some(tree) = open.pop() {
        if !seen.insert(tree) {
            continue;
        }
        let content = database.content(tree)?;
        for entry in TreeEntries::new(&content) {
            let entry = entry.map_err(|why| database.invalid(tree, why))?;
            if entry.mode == EntryMode::Submodule {
                continue;
            }
            let object = database.find(entry.id)?;
            match database.kind(object) {
                GitObjectKind::Tree => open.push(object),
                GitObjectKind::Blob
                    if database.size(object) < LfsPointer::MAX_BYTES && seen.insert(object) =>
                {
                    found.extend(LfsPointer::parse(&database.content(object)?));
                }
                _ => {}
            }
        }
        if found.len() > most {
            return Err(GitError::TooLarge {
                what: "the repository has more large files",
                limit: most as u64,
            });
        }
    }
    Ok(found)
}
