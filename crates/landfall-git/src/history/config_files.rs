//! Finds the files of a commit that configure git: `.gitmodules` and `.lfsconfig`.

use crate::error::GitError;
use crate::object::{EntryMode, GitObjectKind, LfsConfig, ObjectId, TreeEntries};
use crate::pack::{ObjectDatabase, ObjectIndex};

/// The maximum size of such a file in bytes.
const MAX_FILE: u64 = 1 << 20;
/// The file with the server of the large files.
const LFS_CONFIG: &str = ".lfsconfig";

/// Returns the configuration of Git LFS in the tree of `tip`, a commit or a tag of a commit; `None`
/// if the tree has no `.lfsconfig`. A clone reads the file of the commit that is checked out, and a
/// bare repository that of `HEAD`.
///
/// # Errors
/// If an object is missing, or git-lfs could not read the file.
pub fn lfs_config(database: &ObjectDatabase, tip: ObjectId) -> Result<Option<LfsConfig>, GitError> {
    let Some((_, file)) = file_of(database, tip, LFS_CONFIG)? else {
        return Ok(None);
    };
    let text = config_text(database, file, LFS_CONFIG)?;
    let config = LfsConfig::parse(&text);
    let config = config.map_err(|why| database.invalid(file, format!("as {LFS_CONFIG}: {why}")))?;
    Ok(Some(config))
}

/// The root tree of `tip`, and the file with this name in it. `None` if there is no such file, or
/// `tip` is not a commit.
pub(super) fn file_of(
    database: &ObjectDatabase,
    tip: ObjectId,
    name: &str,
) -> Result<Option<(ObjectIndex, ObjectIndex)>, GitError> {
    let tip = database.peeled(database.find(tip)?)?;
    if database.kind(tip) != GitObjectKind::Commit {
        return Ok(None);
    }
    let tree = database.find(database.commit(tip)?.tree)?;
    Ok(match entry_at(database, tree, name)? {
        Some((EntryMode::File, file)) => Some((tree, database.find(file)?)),
        _ => None,
    })
}

/// The text of `file`, which is called `name`.
pub(super) fn config_text(
    database: &ObjectDatabase,
    file: ObjectIndex,
    name: &str,
) -> Result<String, GitError> {
    if database.size(file) > MAX_FILE {
        return Err(GitError::TooLarge {
            what: "a .gitmodules or .lfsconfig is larger",
            limit: MAX_FILE,
        });
    }
    let content = database.content(file)?;
    let text = std::str::from_utf8(&content).map(str::to_owned);
    text.map_err(|_| database.invalid(file, format!("as {name}: it is not UTF-8")))
}

/// The entry at `path` below `tree`.
pub(super) fn entry_at(
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
