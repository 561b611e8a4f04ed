//! The objects that a server sends for a request.

use super::reach::{ObjectSet, mark_reachable};
use crate::error::GitError;
use crate::object::{EntryMode, GitObjectKind, ObjectId, TreeEntries};
use crate::pack::{ObjectDatabase, ObjectIndex};
use crate::wire::FetchRequest;
use std::collections::{HashMap, HashSet, VecDeque};

/// The objects that a server sends for a request.
#[derive(Debug, Default)]
pub struct SelectedObjects {
    /// The objects, in the order in which the packs have them.
    pub objects: Vec<ObjectIndex>,
    /// Commits at which the client's history ends: their parents are not sent.
    pub shallow: Vec<ObjectId>,
    /// Commits whose parents the client lacked and now receives.
    pub unshallow: Vec<ObjectId>,
}

impl SelectedObjects {
    /// Selects the objects that `request` needs. `tags` are the annotated tags among the refs.
    ///
    /// # Errors
    /// If the repository does not have a requested object, or an object cannot be read.
    pub fn new(
        database: &ObjectDatabase,
        request: &FetchRequest,
        tags: &[ObjectId],
    ) -> Result<SelectedObjects, GitError> {
        let mut selector = Selector {
            database,
            client_shallow: request.shallow.iter().copied().collect(),
            seen: ObjectSet::new(database),
            selected: SelectedObjects::default(),
            without_blobs: request.without_blobs,
        };
        selector.mark_client_objects(&request.haves)?;
        let mut commits = Vec::new();
        for want in &request.wants {
            if let Some(commit) = selector.add_want(database.find(*want)?)? {
                commits.push(commit);
            }
        }
        selector.add_commits(&commits, request.depth)?;
        if request.include_tags {
            tags.iter().try_for_each(|tag| selector.add_tag(*tag))?;
        }
        let mut selected = selector.selected;
        selected
            .objects
            .sort_by_key(|object| database.pack_position(*object));
        selected.shallow.sort();
        selected.unshallow.sort();
        Ok(selected)
    }
}

struct Selector<'a> {
    database: &'a ObjectDatabase,
    client_shallow: HashSet<ObjectId>,
    /// The objects that the client has, and the selected objects.
    seen: ObjectSet,
    selected: SelectedObjects,
    without_blobs: bool,
}

impl Selector<'_> {
    /// Marks the objects that the client has, according to the commits that it named.
    fn mark_client_objects(&mut self, haves: &[ObjectId]) -> Result<(), GitError> {
        let mut open: Vec<ObjectId> = haves.to_vec();
        while let Some(id) = open.pop() {
            // the client may name commits that this repository does not have
            let Ok(object) = self.database.find(id) else {
                continue;
            };
            if self.database.kind(object) != GitObjectKind::Commit {
                mark_reachable(self.database, &[id], &mut self.seen)?;
                continue;
            }
            if !self.seen.insert(object) {
                continue;
            }
            let links = self.database.commit(object)?;
            mark_reachable(self.database, &[links.tree], &mut self.seen)?;
            if !self.client_shallow.contains(&id) {
                open.extend(links.parents);
            }
        }
        Ok(())
    }

    fn select(&mut self, object: ObjectIndex) -> bool {
        let is_new = self.seen.insert(object);
        if is_new {
            self.selected.objects.push(object);
        }
        is_new
    }

    /// Selects a wanted tag, tree or blob. Returns the commit if the wanted object is a commit or
    /// a tag of a commit; that commit is not selected yet.
    fn add_want(&mut self, object: ObjectIndex) -> Result<Option<ObjectIndex>, GitError> {
        self.select_tags(object)?;
        let object = self.database.peeled(object)?;
        match self.database.kind(object) {
            GitObjectKind::Commit => return Ok(Some(object)),
            GitObjectKind::Tree => self.add_tree(object)?,
            GitObjectKind::Blob | GitObjectKind::Tag => {
                self.select(object);
            }
        }
        Ok(None)
    }

    /// Selects an annotated tag and the tags that it names. The tags below a tag that the client
    /// has, or that is selected, are known too.
    fn select_tags(&mut self, mut object: ObjectIndex) -> Result<(), GitError> {
        while self.database.kind(object) == GitObjectKind::Tag && self.select(object) {
            object = self.database.find(self.database.tag_target(object)?.id)?;
        }
        Ok(())
    }

    /// Selects commits and the objects that they need, at most `depth` commits of each line of
    /// history.
    fn add_commits(&mut self, tips: &[ObjectIndex], depth: Option<u32>) -> Result<(), GitError> {
        let mut distance: HashMap<ObjectIndex, u32> = HashMap::new();
        let mut open: VecDeque<ObjectIndex> = VecDeque::new();
        for tip in tips {
            if distance.insert(*tip, 1).is_none() {
                open.push_back(*tip);
            }
        }
        // breadth first, so that each commit gets its shortest distance
        while let Some(commit) = open.pop_front() {
            let id = self.database.id(commit);
            let is_new = self.select(commit);
            // with a depth, a commit that the client has may still become the end of the client's
            // history, or need parents that the client lacks
            if !is_new && depth.is_none() {
                continue;
            }
            let links = self.database.commit(commit)?;
            if is_new {
                self.add_tree(self.database.find(links.tree)?)?;
            }
            let at = distance.get(&commit).copied().unwrap_or(1);
            let is_deep_enough = depth.is_some_and(|depth| at >= depth);
            if self.database.is_shallow(commit) || is_deep_enough && !links.parents.is_empty() {
                self.selected.shallow.push(id);
            }
            if self.database.is_shallow(commit) || is_deep_enough {
                continue;
            }
            if depth.is_some() && self.client_shallow.contains(&id) {
                self.selected.unshallow.push(id);
            }
            for parent in links.parents {
                let parent = self.database.find(parent)?;
                if let std::collections::hash_map::Entry::Vacant(entry) = distance.entry(parent) {
                    entry.insert(at + 1);
                    open.push_back(parent);
                }
            }
        }
        Ok(())
    }

    fn add_tree(&mut self, tree: ObjectIndex) -> Result<(), GitError> {
        let mut open = vec![tree];
        while let Some(tree) = open.pop() {
            self.database.expect(tree, GitObjectKind::Tree)?;
            if !self.select(tree) {
                continue;
            }
            let content = self.database.content(tree)?;
            for entry in TreeEntries::new(&content) {
                let entry = entry.map_err(|why| self.database.invalid(tree, why))?;
                match entry.mode {
                    EntryMode::Folder => open.push(self.database.find(entry.id)?),
                    EntryMode::File if !self.without_blobs => {
                        self.select(self.database.find(entry.id)?);
                    }
                    EntryMode::File | EntryMode::Submodule => {}
                }
            }
        }
        Ok(())
    }

    /// Selects an annotated tag if the client has or will receive the object that the tag names.
    fn add_tag(&mut self, tag: ObjectId) -> Result<(), GitError> {
        let tag = self.database.find(tag)?;
        if self.seen.contains(self.database.peeled(tag)?) {
            self.select_tags(tag)?;
        }
        Ok(())
    }
}
