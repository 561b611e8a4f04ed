//! What commits say about other content: their submodules, the commits of other repositories that
//! they pin, their configuration files, and their Git LFS files.

use super::reach::ObjectSet;
use crate::GitError;
use crate::object::{
    EntryMode, GitObjectKind, LfsConfig, LfsPointer, ObjectId, TreeEntries, parse_gitmodules,
};
use crate::pack::{ObjectDatabase, ObjectIndex};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The file with the paths and URLs of submodules.
const FILE: &str = ".gitmodules";

/// The maximum total size of the trees that are read again, because the same folder is at another
/// depth of another path. Real repositories hardly have any.
const MAX_BYTES_AGAIN: u64 = 256 << 20;

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

/// Returns the submodules of `tips`, which are commits or tags of commits. A submodule with the
/// same URL and commit in several of them is returned once. Folders without a URL and URLs without
/// a commit are ignored, as in git.
///
/// Refs share most of their folders and files, and their paths share their first folders. So the
/// paths of all refs are searched together, one folder after the other from the root: each
/// `.gitmodules` and each tree is read once.
///
/// # Errors
/// If an object is missing, a `.gitmodules` is not valid, or there are too many submodules.
pub fn pinned_submodules(
    database: &ObjectDatabase,
    tips: &[ObjectId],
) -> Result<Vec<PinnedSubmodule>, GitError> {
    let mut files = RootFiles::new(database, FILE);
    let mut trees_by_file: BTreeMap<ObjectIndex, BTreeSet<ObjectIndex>> = BTreeMap::new();
    for tip in tips {
        if let Some(RootFile { tree, file }) = files.find(*tip)? {
            trees_by_file.entry(file).or_default().insert(tree);
        }
    }
    let mut level: OpenTrees = BTreeMap::new();
    let mut search = SubmoduleSearch {
        database,
        files: Vec::new(),
        read: ObjectSet::new(database),
        bytes_again: 0,
        seen: BTreeSet::new(),
        found: BTreeMap::new(),
    };
    for (file, trees) in trees_by_file {
        let paths = search.paths_of(&mut files, file)?;
        let range = PathRange {
            file: search.files.len(),
            from: 0,
            to: paths.len(),
            offset: 0,
        };
        search.files.push(paths);
        for tree in trees {
            level.entry(tree).or_default().insert(range);
        }
    }
    while !level.is_empty() {
        let mut next = BTreeMap::new();
        for (tree, ranges) in level {
            search.read_tree(tree, &ranges, &mut next)?;
        }
        level = next;
    }
    let found = search.found.into_iter();
    let found = found.map(|((url, commit), path)| PinnedSubmodule { path, url, commit });
    Ok(found.collect())
}

/// The path and URL of an entry of `.gitmodules`.
struct SubmodulePath {
    path: String,
    url: String,
}

/// Paths of one `.gitmodules` that have the same folders before `offset`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct PathRange {
    file: usize,
    from: usize,
    to: usize,
    offset: usize,
}

/// The trees to read, with the paths that lead through them.
type OpenTrees = BTreeMap<ObjectIndex, BTreeSet<PathRange>>;

struct SubmoduleSearch<'a> {
    database: &'a ObjectDatabase,
    /// The entries of each `.gitmodules`, sorted by the names of their folders.
    files: Vec<Vec<SubmodulePath>>,
    /// The trees that were read.
    read: ObjectSet,
    bytes_again: u64,
    /// The entries with their commits, so that URLs are not compared for each tree.
    seen: BTreeSet<(usize, usize, ObjectId)>,
    found: BTreeMap<(String, ObjectId), String>,
}

impl SubmoduleSearch<'_> {
    fn paths_of(
        &self,
        files: &mut RootFiles<'_>,
        file: ObjectIndex,
    ) -> Result<Vec<SubmodulePath>, GitError> {
        let entries = files.parse(file, parse_gitmodules)?;
        let limit = self.database.limits.git_submodules as u64;
        let found = entries.len() as u64;
        GitError::check_limit("a .gitmodules has more submodules", found, limit)?;
        let entries = entries.into_iter();
        let paths = entries.filter_map(|entry| {
            let (path, url) = (entry.path?, entry.url?);
            Some(SubmodulePath { path, url })
        });
        let mut paths: Vec<_> = paths.collect();
        paths.sort_by(|a, b| a.path.split('/').cmp(b.path.split('/')));
        Ok(paths)
    }

    /// Looks up the next names of `ranges` in `tree`, and adds their folders to `next`.
    fn read_tree(
        &mut self,
        tree: ObjectIndex,
        ranges: &BTreeSet<PathRange>,
        next: &mut OpenTrees,
    ) -> Result<(), GitError> {
        self.database.expect(tree, GitObjectKind::Tree)?;
        if !self.read.insert(tree) {
            self.bytes_again += self.database.size(tree);
            let what = "the paths of submodules need the same folders, whose lists are longer";
            GitError::check_limit(what, self.bytes_again, MAX_BYTES_AGAIN)?;
        }
        let mut wanted: HashMap<&[u8], Vec<PathRange>> = HashMap::new();
        for range in ranges {
            let mut from = range.from;
            while from < range.to {
                let paths = &self.files[range.file][from..range.to];
                let name = next_name(&paths[0], range.offset);
                let is_other = |one: &SubmodulePath| next_name(one, range.offset) != name;
                let count = paths.iter().position(is_other).unwrap_or(paths.len());
                let to = from + count;
                let group = PathRange { from, to, ..*range };
                wanted.entry(name.as_bytes()).or_default().push(group);
                from = to;
            }
        }
        let content = self.database.content(tree)?;
        for entry in TreeEntries::new(&content).map_while(Result::ok) {
            for group in wanted.get(entry.name).into_iter().flatten() {
                let end = group.offset + entry.name.len();
                let paths = &self.files[group.file][group.from..group.to];
                // the paths that end here are the first ones
                let inner = group.from + paths.partition_point(|one| one.path.len() == end);
                match entry.mode {
                    EntryMode::Submodule => {
                        for at in group.from..inner {
                            if self.seen.insert((group.file, at, entry.id)) {
                                let SubmodulePath { path, url } = &self.files[group.file][at];
                                let key = (url.clone(), entry.id);
                                self.found.entry(key).or_insert_with(|| path.clone());
                            }
                        }
                    }
                    EntryMode::Folder if inner < group.to => {
                        let folder = self.database.find(entry.id)?;
                        next.entry(folder).or_default().insert(PathRange {
                            from: inner,
                            offset: end + 1,
                            ..*group
                        });
                    }
                    EntryMode::Folder | EntryMode::File => {}
                }
            }
            let limit = self.database.limits.git_submodules as u64;
            let found = self.found.len() as u64;
            GitError::check_limit("the refs together have more submodules", found, limit)?;
        }
        Ok(())
    }
}

/// The name of the folder or submodule in a path at `offset`.
fn next_name(one: &SubmodulePath, offset: usize) -> &str {
    one.path[offset..].split('/').next().unwrap_or_default()
}

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
        GitError::check_limit("a .gitmodules or .lfsconfig is larger", size, MAX_FILE)?;
        self.bytes += size;
        let what = "the different .gitmodules or .lfsconfig files of the refs together are larger";
        GitError::check_limit(what, self.bytes, database.limits.git_config_bytes)?;
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

// Finds the Git LFS files of commits by the pointers in their trees.

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
        let count = found.len() as u64;
        GitError::check_limit("the repository has more large files", count, most as u64)?;
    }
    Ok(found)
}
