//! The submodules of a commit, and the commits of other repositories that they pin.

use super::config_files::{config_text, entry_at, file_of};
use crate::error::GitError;
use crate::object::{EntryMode, ObjectId, parse_gitmodules};
use crate::pack::ObjectDatabase;

/// The file with the paths and URLs of submodules.
const FILE: &str = ".gitmodules";

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
    let Some((tree, file)) = file_of(database, tip, FILE)? else {
        return Ok(Vec::new());
    };
    let invalid = |why: String| database.invalid(file, format!("as {FILE}: {why}"));
    let text = config_text(database, file, FILE)?;
    let mut pinned = Vec::new();
    let entries = parse_gitmodules(&text).map_err(invalid)?;
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
