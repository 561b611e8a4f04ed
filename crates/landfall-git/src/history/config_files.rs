//! Finds the files of commits that configure git: `.gitmodules` and `.lfsconfig`.

use crate::error::GitError;
use crate::object::{EntryMode, GitObjectKind, LfsConfig, ObjectId, TreeEntries};
use crate::pack::{ObjectDatabase, ObjectIndex};
use std::collections::HashMap;

/// The maximum size of such a file in bytes.
const MAX_FILE: u64 = 1 << 20;

/// Finds and reads one file of the root folders of commits. Reads each folder once, because many
/// refs may have the same one.
pub struct RootFiles<'a> {
    database: &'a ObjectDatabase,
    name: &'static str,
    by_tree: HashMap<ObjectIndex, Option<ObjectIndex>>,
    /// The total size of the files that were read.
    bytes: u64,
}

/// A file in the root folder of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RootFile {
    pub(super) tree: ObjectIndex,
    /// The content.
    pub file: ObjectIndex,
}

impl<'a> RootFiles<'a> {
    /// Finds `.lfsconfig`, which names the server of the large files.
    pub fn lfs_config(database: &'a ObjectDatabase) -> RootFiles<'a> {
        RootFiles::new(database, ".lfsconfig")
    }

    pub(super) fn new(database: &'a ObjectDatabase, name: &'static str) -> RootFiles<'a> {
        RootFiles {
            database,
            name,
            by_tree: HashMap::new(),
            bytes: 0,
        }
    }

    /// The file of `tip`, a commit or a tag of a commit. `None` if there is no such file, or `tip`
    /// is not a commit.
    ///
    /// # Errors
    /// If an object is missing or not valid.
    pub fn find(&mut self, tip: ObjectId) -> Result<Option<RootFile>, GitError> {
        let database = self.database;
        let tip = database.peeled(database.find(tip)?)?;
        if database.kind(tip) != GitObjectKind::Commit {
            return Ok(None);
        }
        let tree = database.find(database.commit(tip)?.tree)?;
        let file = match self.by_tree.get(&tree) {
            Some(file) => *file,
            None => {
                let file = self.file_in(tree)?;
                self.by_tree.insert(tree, file);
                file
            }
        };
        Ok(file.map(|file| RootFile { tree, file }))
    }

    fn file_in(&self, tree: ObjectIndex) -> Result<Option<ObjectIndex>, GitError> {
        self.database.expect(tree, GitObjectKind::Tree)?;
        let content = self.database.content(tree)?;
        let mut entries = TreeEntries::new(&content).map_while(Result::ok);
        match entries.find(|entry| entry.name == self.name.as_bytes()) {
            Some(entry) if entry.mode == EntryMode::File => self.database.find(entry.id).map(Some),
            _ => Ok(None),
        }
    }

    /// Reads a file with `parse`. All files that are read share a limit on their total size.
    pub(super) fn parse<T>(
        &mut self,
        file: ObjectIndex,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<T, GitError> {
        let (database, name) = (self.database, self.name);
        let size = database.size(file);
        if size > MAX_FILE {
            return Err(GitError::TooLarge {
                what: "a .gitmodules or .lfsconfig is larger",
                limit: MAX_FILE,
            });
        }
        self.bytes += size;
        let limit = database.limits().git_config_bytes;
        if self.bytes > limit {
            return Err(GitError::TooLarge {
                what: "the different .gitmodules or .lfsconfig files of the refs together are larger",
                limit,
            });
        }
        let content = database.content(file)?;
        let parsed = std::str::from_utf8(&content)
            .map_err(|_| "it is not UTF-8".to_owned())
            .and_then(parse);
        parsed.map_err(|why| database.invalid(file, format!("as {name}: {why}")))
    }

    /// Reads a `.lfsconfig`. A clone reads the file of the commit that is checked out, and a bare
    /// repository that of `HEAD`.
    ///
    /// # Errors
    /// If it cannot be read, or git-lfs could not read it.
    pub fn parse_lfs_config(&mut self, file: RootFile) -> Result<LfsConfig, GitError> {
        self.parse(file.file, LfsConfig::parse)
    }
}
