//! The order of commits: each after its parents.

use super::reach::ObjectSet;
use crate::error::GitError;
use crate::object::{CommitLinks, GitObjectKind};
use crate::pack::{ObjectDatabase, ObjectIndex};

/// A commit with its links.
pub(super) struct OrderedCommit {
    pub(super) object: ObjectIndex,
    pub(super) links: CommitLinks,
}

/// A commit whose parents are being visited.
struct OpenCommit {
    commit: OrderedCommit,
    /// The number of parents that were visited.
    visited: usize,
}

/// Appends to `order` the commits that can be reached from `tip` and are not in `seen`, each after
/// its parents, and adds them to `seen`. The first parent is followed first, so that the order
/// depends on the history alone, and not on dates or on how it was fetched.
pub(super) fn add_in_order(
    database: &ObjectDatabase,
    tip: ObjectIndex,
    seen: &mut ObjectSet,
    order: &mut Vec<OrderedCommit>,
) -> Result<(), GitError> {
    let mut open: Vec<OpenCommit> = Vec::new();
    let mut next = Some(tip);
    loop {
        if let Some(object) = next.take()
            && seen.insert(object)
        {
            let links = database.commit(object)?;
            open.push(OpenCommit {
                commit: OrderedCommit { object, links },
                visited: 0,
            });
        }
        let Some(last) = open.last_mut() else {
            return Ok(());
        };
        if let Some(parent) = last.commit.links.parents.get(last.visited) {
            last.visited += 1;
            next = Some(database.linked(*parent, GitObjectKind::Commit)?);
        } else if let Some(done) = open.pop() {
            order.push(done.commit);
        }
    }
}
