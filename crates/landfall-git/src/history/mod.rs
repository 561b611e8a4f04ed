//! The objects that a ref or a request needs, in a fixed order; large files, their servers, and
//! submodules.

mod reach;
mod submodules;

use self::reach::{ObjectSet, mark_reachable};
use crate::GitError;
use crate::object::{CommitLinks, EntryMode, GitObjectKind, ObjectId, TreeEntries, TreeEntry};
use crate::pack::{ObjectDatabase, ObjectIndex};
use crate::wire::FetchRequest;
use std::collections::{HashMap, HashSet, VecDeque};

pub use self::reach::{IncompleteTip, check_complete, reaches, shallow_boundary};
pub use self::submodules::{PinnedSubmodule, RootFile, RootFiles, large_files, pinned_submodules};

// The objects of a pack, in their order, each with the base of its delta.

/// The maximum depth of the folders of a tree, like git's core.maxTreeDepth.
const MAX_FOLDERS: u64 = 1024;

/// The maximum total size of the open trees, as a multiple of the maximum size of one object. The
/// trees from the root to the current folder are open, each with its version in the previous
/// commit. For each open tree, the map of names in the previous commit needs several times the size
/// of the tree in memory.
const MAX_OPEN_TREES: u64 = 4;

/// The objects of a pack, in their order: commits, tags, trees, blobs. Each commit comes after its
/// parents. Trees and blobs are in the order of the first commits that need them.
#[derive(Default)]
pub struct GitPackPlan {
    commits: Vec<PlannedObject>,
    tags: Vec<PlannedObject>,
    trees: Vec<PlannedObject>,
    blobs: Vec<PlannedObject>,
}

/// An object of a pack.
#[derive(Clone, Copy)]
pub(crate) struct PlannedObject {
    pub(crate) object: ObjectIndex,
    /// An earlier version of the same file or folder.
    pub(crate) base: Option<ObjectIndex>,
}

impl GitPackPlan {
    /// The least size of the pack, in bytes: that of all objects that are not deltas, since packs
    /// are not compressed.
    pub fn least_size(&self, database: &ObjectDatabase) -> u64 {
        let whole = self.objects().filter(|planned| planned.base.is_none());
        whole.map(|planned| database.size(planned.object)).sum()
    }

    /// Plans a pack with everything that `tips` need and `before` do not. Follows every link, and
    /// so verifies that no object is missing.
    ///
    /// # Errors
    /// If an object is missing or not valid.
    pub fn new(
        database: &ObjectDatabase,
        tips: &[ObjectId],
        before: &[ObjectId],
    ) -> Result<GitPackPlan, GitError> {
        let mut seen = ObjectSet::new(database);
        mark_reachable(database, before, &mut seen)?;
        let mut planner = Planner {
            database,
            seen,
            plan: GitPackPlan::default(),
            open_bytes: 0,
        };
        let mut tips = tips.to_vec();
        tips.sort();
        let mut commits = Vec::new();
        let mut others = Vec::new();
        for tip in tips {
            let tip = planner.peel(database.find(tip)?)?;
            match database.kind(tip) {
                GitObjectKind::Commit => {
                    add_in_order(database, tip, &mut planner.seen, &mut commits)?;
                }
                _ => others.push(tip),
            }
        }
        for (object, links) in &commits {
            planner.add_commit(*object, links)?;
        }
        // tags may name trees and blobs
        for object in others {
            match database.kind(object) {
                GitObjectKind::Tree => planner.add_tree(object, None, 0)?,
                _ => planner.add_blob(object, None),
            }
        }
        Ok(planner.plan)
    }

    /// Whether the pack would have no objects.
    pub fn is_empty(&self) -> bool {
        self.objects().next().is_none()
    }

    /// The objects in their order.
    pub(crate) fn objects(&self) -> impl Iterator<Item = &PlannedObject> {
        let groups = [&self.commits, &self.tags, &self.trees, &self.blobs];
        groups.into_iter().flatten()
    }
}

struct Planner<'a> {
    database: &'a ObjectDatabase,
    seen: ObjectSet,
    plan: GitPackPlan,
    /// The total size in bytes of the trees from the root to the current folder, each with its
    /// version in the previous commit.
    open_bytes: u64,
}

impl Planner<'_> {
    /// Follows annotated tags and adds them to the plan. Returns the object that the last tag
    /// names.
    fn peel(&mut self, mut object: ObjectIndex) -> Result<ObjectIndex, GitError> {
        // the tags below a tag that was seen are known too
        while self.database.kind(object) == GitObjectKind::Tag && self.seen.insert(object) {
            let target = self.database.tag_target(object)?;
            self.plan.tags.push(PlannedObject { object, base: None });
            object = self.database.linked(target.id, target.kind)?;
        }
        self.database.peeled(object)
    }

    fn add_commit(&mut self, object: ObjectIndex, links: &CommitLinks) -> Result<(), GitError> {
        self.plan.commits.push(PlannedObject { object, base: None });
        let tree = self.database.find(links.tree)?;
        let before = match links.parents.first() {
            Some(parent) => {
                let parent = self.database.commit(self.database.find(*parent)?)?;
                Some(self.database.find(parent.tree)?)
            }
            None => None,
        };
        self.add_tree(tree, before, 0)
    }

    /// Plans a tree and everything below it. `before` is the same folder in the first parent.
    fn add_tree(
        &mut self,
        object: ObjectIndex,
        before: Option<ObjectIndex>,
        depth: u64,
    ) -> Result<(), GitError> {
        self.database.expect(object, GitObjectKind::Tree)?;
        if !self.seen.insert(object) {
            return Ok(());
        }
        GitError::check_limit("a tree has deeper folders", depth, MAX_FOLDERS)?;
        self.plan.trees.push(PlannedObject {
            object,
            base: before,
        });
        let trees = std::iter::once(object).chain(before);
        let own_bytes: u64 = trees.map(|tree| self.database.size(tree)).sum();
        let limit = MAX_OPEN_TREES * self.database.limits.git_object_bytes;
        self.open_bytes += own_bytes;
        GitError::check_limit("nested folders together are larger", self.open_bytes, limit)?;
        let content = self.database.content(object)?;
        let content_before = before.map(|before| self.database.content(before));
        let content_before = content_before.transpose()?;
        let entries_before: HashMap<&[u8], TreeEntry<'_>> = content_before
            .iter()
            .flat_map(|content| TreeEntries::new(content).map_while(Result::ok))
            .map(|entry| (entry.name, entry))
            .collect();
        for entry in TreeEntries::new(&content) {
            let entry = entry.map_err(|why| self.database.invalid(object, why))?;
            if entry.mode == EntryMode::Submodule {
                continue;
            }
            let found = self.database.find(entry.id)?;
            if self.seen.contains(found) {
                self.check_kind(found, entry.mode)?;
                continue;
            }
            let before = entries_before
                .get(entry.name)
                .filter(|before| before.mode == entry.mode)
                .and_then(|before| self.database.find(before.id).ok());
            match entry.mode {
                EntryMode::Folder => self.add_tree(found, before, depth + 1)?,
                _ => {
                    self.check_kind(found, entry.mode)?;
                    self.add_blob(found, before);
                }
            }
        }
        self.open_bytes -= own_bytes;
        Ok(())
    }

    fn check_kind(&self, object: ObjectIndex, mode: EntryMode) -> Result<(), GitError> {
        let kind = match mode {
            EntryMode::Folder => GitObjectKind::Tree,
            _ => GitObjectKind::Blob,
        };
        self.database.expect(object, kind)
    }

    fn add_blob(&mut self, object: ObjectIndex, base: Option<ObjectIndex>) {
        if self.seen.insert(object) {
            self.plan.blobs.push(PlannedObject { object, base });
        }
    }
}

/// Appends to `order` the commits that can be reached from `tip` and are not in `seen`, each after
/// its parents, and adds them to `seen`. The first parent is followed first, so that the order
/// depends on the history alone, and not on dates or on how it was fetched.
fn add_in_order(
    database: &ObjectDatabase,
    tip: ObjectIndex,
    seen: &mut ObjectSet,
    order: &mut Vec<(ObjectIndex, CommitLinks)>,
) -> Result<(), GitError> {
    // commits whose parents are being visited, each with the number of parents that were visited
    let mut open: Vec<((ObjectIndex, CommitLinks), usize)> = Vec::new();
    let mut next = Some(tip);
    loop {
        if let Some(object) = next.take()
            && seen.insert(object)
        {
            let links = database.commit(object)?;
            open.push(((object, links), 0));
        }
        let Some(((_, links), visited)) = open.last_mut() else {
            return Ok(());
        };
        if let Some(parent) = links.parents.get(*visited) {
            *visited += 1;
            next = Some(database.linked(*parent, GitObjectKind::Commit)?);
        } else if let Some((done, _)) = open.pop() {
            order.push(done);
        }
    }
}

// The objects that a server sends for a request.

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
