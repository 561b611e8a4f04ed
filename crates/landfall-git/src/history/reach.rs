//! Sets of objects, and the objects that can be reached from given objects.

use crate::GitError;
use crate::object::{EntryMode, GitObjectKind, ObjectId, TreeEntries};
use crate::pack::{ObjectDatabase, ObjectIndex};

/// A set of objects of a database.
pub(super) struct ObjectSet(Vec<u64>);

impl ObjectSet {
    pub(super) fn new(database: &ObjectDatabase) -> ObjectSet {
        ObjectSet(vec![0; database.len().div_ceil(64)])
    }

    /// Adds an object. Returns `true` if the set did not contain it.
    pub(super) fn insert(&mut self, object: ObjectIndex) -> bool {
        let word = &mut self.0[object.0 as usize / 64];
        let bit = 1 << (object.0 % 64);
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    pub(super) fn contains(&self, object: ObjectIndex) -> bool {
        self.0[object.0 as usize / 64] >> (object.0 % 64) & 1 == 1
    }
}

/// Adds everything that can be reached from `tips` to `set`. An object that is in the set already
/// is not followed.
pub(super) fn mark_reachable(
    database: &ObjectDatabase,
    tips: &[ObjectId],
    set: &mut ObjectSet,
) -> Result<(), GitError> {
    let open = Vec::new();
    let mut marker = Marker {
        database,
        set,
        open,
    };
    for tip in tips {
        marker.mark(database.find(*tip)?);
    }
    while let Some(object) = marker.open.pop() {
        marker.mark_links(object)?;
    }
    Ok(())
}

struct Marker<'a> {
    database: &'a ObjectDatabase,
    set: &'a mut ObjectSet,
    /// The objects in the set whose links are not followed yet.
    open: Vec<ObjectIndex>,
}

impl Marker<'_> {
    fn mark(&mut self, object: ObjectIndex) {
        if self.set.insert(object) && self.database.kind(object) != GitObjectKind::Blob {
            self.open.push(object);
        }
    }

    fn mark_linked(&mut self, id: ObjectId, kind: GitObjectKind) -> Result<(), GitError> {
        let linked = self.database.linked(id, kind)?;
        self.mark(linked);
        Ok(())
    }

    fn mark_links(&mut self, object: ObjectIndex) -> Result<(), GitError> {
        match self.database.kind(object) {
            GitObjectKind::Blob => {}
            GitObjectKind::Tag => {
                let target = self.database.tag_target(object)?;
                self.mark_linked(target.id, target.kind)?;
            }
            GitObjectKind::Commit => {
                let links = self.database.commit(object)?;
                for parent in links.parents {
                    self.mark_linked(parent, GitObjectKind::Commit)?;
                }
                self.mark_linked(links.tree, GitObjectKind::Tree)?;
            }
            GitObjectKind::Tree => {
                let content = self.database.content(object)?;
                for entry in TreeEntries::new(&content) {
                    let entry = entry.map_err(|why| self.database.invalid(object, why))?;
                    match entry.mode {
                        EntryMode::Folder => self.mark_linked(entry.id, GitObjectKind::Tree)?,
                        EntryMode::File => self.mark_linked(entry.id, GitObjectKind::Blob)?,
                        // a commit of another repository
                        EntryMode::Submodule => {}
                    }
                }
            }
        }
        Ok(())
    }
}

/// A tip that needs an object which is missing or not valid.
#[derive(Debug)]
pub struct IncompleteTip {
    /// The tip.
    pub tip: ObjectId,
    /// The error for the first missing or invalid object that was found.
    pub why: GitError,
}

/// Verifies that every object that `tips` need exists and is valid: follows every link of tags,
/// commits and trees, except the links to submodules. Needs one bit of memory for each object, and
/// up to four bytes for each commit, tree and tag.
///
/// # Errors
/// Returns the first tip that is not complete.
pub fn check_complete(database: &ObjectDatabase, tips: &[ObjectId]) -> Result<(), IncompleteTip> {
    let mut set = ObjectSet::new(database);
    for tip in tips {
        mark_reachable(database, &[*tip], &mut set)
            .map_err(|why| IncompleteTip { tip: *tip, why })?;
    }
    Ok(())
}

/// Whether all `targets` (commits or annotated tags) can be reached from `tips` by the links of
/// tags, and of commits to their parents.
///
/// # Errors
/// If an object on the way is missing or not valid.
pub fn reaches(
    database: &ObjectDatabase,
    tips: &[ObjectId],
    targets: &[ObjectId],
) -> Result<bool, GitError> {
    let mut seen = ObjectSet::new(database);
    let mut open = Vec::new();
    for tip in tips {
        open.push(database.find(*tip)?);
    }
    while let Some(object) = open.pop() {
        if !seen.insert(object) {
            continue;
        }
        match database.kind(object) {
            GitObjectKind::Tag => open.push(database.find(database.tag_target(object)?.id)?),
            GitObjectKind::Commit => {
                for parent in database.commit(object)?.parents {
                    open.push(database.find(parent)?);
                }
            }
            GitObjectKind::Tree | GitObjectKind::Blob => {}
        }
    }
    let is_seen = |id: &ObjectId| database.find(*id).is_ok_and(|found| seen.contains(found));
    Ok(targets.iter().all(is_seen))
}

/// Returns, sorted, the commits at which a history with at most `depth` commits from each of `tips`
/// ends. These are the commits at this distance that have parents. git has the same rule: if a
/// client requests `depth`, the server sends the history up to these commits.
///
/// # Errors
/// If an object is missing or not valid.
pub fn shallow_boundary(
    database: &ObjectDatabase,
    tips: &[ObjectId],
    depth: u32,
) -> Result<Vec<ObjectId>, GitError> {
    let mut seen = ObjectSet::new(database);
    // one distance after the other, so that each commit is found at its shortest distance
    let mut level: Vec<ObjectIndex> = Vec::new();
    for tip in tips {
        let object = database.peeled(database.find(*tip)?)?;
        if database.kind(object) == GitObjectKind::Commit && seen.insert(object) {
            level.push(object);
        }
    }
    for _ in 1..depth {
        let mut next = Vec::new();
        for commit in level {
            for parent in database.commit(commit)?.parents {
                let parent = database.find(parent)?;
                if seen.insert(parent) {
                    next.push(parent);
                }
            }
        }
        if next.is_empty() {
            return Ok(Vec::new());
        }
        level = next;
    }
    let mut boundary = Vec::new();
    for commit in level {
        if !database.commit(commit)?.parents.is_empty() {
            boundary.push(database.id(commit));
        }
    }
    boundary.sort();
    Ok(boundary)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TestPack, sample};
    use landfall_model::Limits;
    use std::sync::Arc;

    fn database(pack: &TestPack) -> ObjectDatabase {
        let mut database = ObjectDatabase::new(Limits::DEFAULT);
        database.add_pack(Arc::new(pack.bytes())).unwrap();
        database
    }

    /// Returns why `check_complete` fails for one tip of a pack, or `None` if it succeeds.
    fn incompleteness(pack: &TestPack, tip: ObjectId) -> Option<String> {
        let database = database(pack);
        let found = check_complete(&database, &[tip]).err()?;
        assert_eq!(found.tip, tip);
        Some(found.why.to_string())
    }

    #[test]
    fn the_first_object_that_a_tip_lacks_is_named() {
        let (pack, tip) = sample();
        assert_eq!(incompleteness(&pack, tip), None);
        let absent = ObjectId::of_object(GitObjectKind::Blob, b"absent").unwrap();
        let mut pack = TestPack::default();
        let blob = pack.add(GitObjectKind::Blob, b"x");
        let whole = pack.add_tree(&[("100644", "a", blob), ("160000", "b", absent)]);
        let good = pack.add_commit(whole, &[]);
        assert_eq!(
            incompleteness(&pack, good),
            None,
            "a submodule is not followed"
        );
        let missing = |kind: &str| Some(format!("the {kind} {absent} is missing"));
        let folder = pack.add_tree(&[("100644", "a", absent)]);
        let tree = pack.add_tree(&[("40000", "folder", folder)]);
        let without_file = pack.add_commit(tree, &[good]);
        // deep in the history
        let tip = pack.add_commit(whole, &[without_file]);
        assert_eq!(incompleteness(&pack, tip), missing("blob"));
        let tree = pack.add_tree(&[("40000", "folder", absent)]);
        let tip = pack.add_commit(tree, &[good]);
        assert_eq!(incompleteness(&pack, tip), missing("tree"));
        let tip = pack.add_commit(whole, &[good, absent]);
        assert_eq!(incompleteness(&pack, tip), missing("commit"));
        let tip = pack.add_commit(absent, &[]);
        assert_eq!(incompleteness(&pack, tip), missing("tree"));
        let tag = format!("object {absent}\ntype commit\ntag v1\n\n");
        let tip = pack.add(GitObjectKind::Tag, tag.as_bytes());
        assert_eq!(incompleteness(&pack, tip), missing("commit"));
        assert_eq!(incompleteness(&pack, absent), missing("object"));
    }

    #[test]
    fn a_link_to_an_object_of_another_type_is_an_error() {
        let mut pack = TestPack::default();
        let blob = pack.add(GitObjectKind::Blob, b"x");
        let empty = pack.add_tree(&[]);
        let of_blob = pack.add_commit(blob, &[]);
        let of_folder = pack.add_tree(&[("40000", "a", blob)]);
        let of_file = pack.add_tree(&[("100644", "a", empty)]);
        let of_parent = pack.add_commit(empty, &[empty]);
        let tag = format!("object {blob}\ntype commit\ntag v1\n\n");
        let of_tag = pack.add(GitObjectKind::Tag, tag.as_bytes());
        for (tip, expected) in [
            (
                of_blob,
                format!("blob {blob} is not valid: it is not a tree"),
            ),
            (
                of_folder,
                format!("blob {blob} is not valid: it is not a tree"),
            ),
            (
                of_file,
                format!("tree {empty} is not valid: it is not a blob"),
            ),
            (
                of_parent,
                format!("tree {empty} is not valid: it is not a commit"),
            ),
            (
                of_tag,
                format!("blob {blob} is not valid: it is not a commit"),
            ),
        ] {
            assert_eq!(incompleteness(&pack, tip), Some(expected));
        }
    }

    #[test]
    fn a_shallow_history_is_complete_up_to_its_boundary() {
        let mut pack = TestPack::default();
        let empty = pack.add_tree(&[]);
        let tip = pack.add_commit(empty, &[ObjectId::ZERO]);
        let why = incompleteness(&pack, tip).unwrap();
        assert!(why.starts_with("the commit 0000"), "{why}");
        let mut database = database(&pack);
        database.set_shallow(&[tip]);
        assert!(check_complete(&database, &[tip]).is_ok());
    }
}
