//! The commits at which a history with a limited depth ends.

use super::reach::ObjectSet;
use crate::error::GitError;
use crate::object::{GitObjectKind, ObjectId};
use crate::pack::{ObjectDatabase, ObjectIndex};

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
