//! Sets of objects, and the objects that can be reached from given ones.

use crate::error::GitError;
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

/// Adds everything that can be reached from `tips` to `set`.
pub(super) fn mark_reachable(
    database: &ObjectDatabase,
    tips: &[ObjectId],
    set: &mut ObjectSet,
) -> Result<(), GitError> {
    let mut open = Vec::new();
    for tip in tips {
        add_new(database, *tip, set, &mut open)?;
    }
    while let Some(object) = open.pop() {
        match database.kind(object) {
            GitObjectKind::Blob => {}
            GitObjectKind::Tag => {
                add_new(database, database.tag_target(object)?.id, set, &mut open)?;
            }
            GitObjectKind::Commit => {
                let links = database.commit(object)?;
                for id in links.parents.iter().chain([&links.tree]) {
                    add_new(database, *id, set, &mut open)?;
                }
            }
            GitObjectKind::Tree => {
                let content = database.content(object)?;
                for entry in TreeEntries::new(&content) {
                    let entry = entry.map_err(|why| database.invalid(object, why))?;
                    if entry.mode != EntryMode::Submodule {
                        add_new(database, entry.id, set, &mut open)?;
                    }
                }
            }
        }
    }
    Ok(())
}

/// Adds an object to `set`, and to `open` if the set did not contain it. So `open` has each object
/// once, also if many trees contain it.
fn add_new(
    database: &ObjectDatabase,
    id: ObjectId,
    set: &mut ObjectSet,
    open: &mut Vec<ObjectIndex>,
) -> Result<(), GitError> {
    let found = database.find(id)?;
    if set.insert(found) {
        open.push(found);
    }
    Ok(())
}

/// Whether all `targets` (commits or annotated tags) can be reached from `tips` by the links of
/// tags and commits.
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
