//! The submodules of a commit, and the commits of other repositories that they pin.

use crate::error::GitError;
use crate::object::{EntryMode, GitObjectKind, ObjectId, TreeEntries, parse_gitmodules};
use crate::pack::{ObjectDatabase, ObjectIndex};

/// The file with the paths and URLs of submodules.
const FILE: &str = ".gitmodules";
/// The maximum size of the file in bytes.
const MAX_FILE: u64 = 1 << 20;

/// A submodule of a commit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PinnedSubmodule {
    /// The folder of the submodule.
    pub path: String,
    /// The URL as it is written: absolute, or relative to the URL of the repository.
    pub url: String,
    /// The commit of the other repository.
    pub commit: ObjectId,
}

/// Returns the submodules of `tip`, a commit or a tag of a commit. Folders without a URL and URLs
/// without a commit are ignored, as in git.
///
/// # Errors
/// If an object is missing, or `.gitmodules` is not valid.
pub fn pinned_submodules(
    database: &ObjectDatabase,
    tip: ObjectId,
) -> Result<Vec<PinnedSubmodule>, GitError> {
    let tip = database.peeled(database.find(tip)?)?;
    if database.kind(tip) != GitObjectKind::Commit {
        return Ok(Vec::new());
    }
    let tree = database.find(database.commit(tip)?.tree)?;
    let Some((EntryMode::File, file)) = entry_at(database, tree, FILE)? else {
        return Ok(Vec::new());
    };
    let file = database.find(file)?;
    if database.size(file) > MAX_FILE {
        return Err(GitError::TooLarge {
            what: "a .gitmodules is larger",
            limit: MAX_FILE,
        });
    }
    let content = database.content(file)?;
    let invalid = |why: String| database.invalid(file, format!("as {FILE}: {why}"));
    let text = std::str::from_utf8(&content).map_err(|_| invalid("it is not UTF-8".into()))?;
    let mut pinned = Vec::new();
    let entries = parse_gitmodules(text).map_err(invalid)?;
    // limited, because the search for each entry reads the trees from their beginning
    let limit = database.limits().git_submodules;
    if entries.len() > limit {
        return Err(GitError::TooLarge {
            what: "a .gitmodules has more submodules",
            limit: limit as u64,
        });
    }
    for entry in entries {
        let (Some(path), Some(url)) = (entry.path, entry.url) else {
            continue;
        };
        if let Some((EntryMode::Submodule, commit)) = entry_at(database, tree, &path)? {
            pinned.push(PinnedSubmodule { path, url, commit });
        }
    }
    Ok(pinned)
}

/// The entry at `path` below `tree`.
fn entry_at(
    database: &ObjectDatabase,
    mut tree: ObjectIndex,
    path: &str,
) -> Result<Option<(EntryMode, ObjectId)>, GitError> {
    let mut names = path.split('/').peekable();
    while let Some(name) = names.next() {
        database.expect(tree, GitObjectKind::Tree)?;
        let content = database.content(tree)?;
        let mut entries = TreeEntries::new(&content).map_while(Result::ok);
        let Some(entry) = entries.find(|entry| entry.name == name.as_bytes()) else {
            return Ok(None);
        };
        match (names.peek(), entry.mode) {
            (None, mode) => return Ok(Some((mode, entry.id))),
            (Some(_), EntryMode::Folder) => tree = database.find(entry.id)?,
            (Some(_), _) => return Ok(None),
        }
    }
    Ok(None)
}
