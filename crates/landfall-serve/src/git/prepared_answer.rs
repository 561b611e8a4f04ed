//! Prepares the answer to a command of git's protocol: the objects of a pack, and the bytes before
//! it.

use super::pack_body::PIECES_MEMORY;
use landfall_git::{
    FetchRequest, GitError, ObjectDatabase, ObjectId, OfferedRef, OfferedRepository,
    SelectedObjects, push_delimiter, push_flush, push_text,
};
use landfall_item::LockedGitRepository;

/// An answer to a command before it is sent.
pub(super) enum PreparedAnswer {
    /// A message without a pack.
    Message(Vec<u8>),
    /// A pack.
    Pack(PreparedPack),
}

/// A pack before it is sent.
pub(super) struct PreparedPack {
    /// The bytes before the pack.
    pub(super) head: Vec<u8>,
    pub(super) selected: SelectedObjects,
    pub(super) request: FetchRequest,
}

impl PreparedPack {
    /// The memory that sending the pack takes, in bytes: an entry of two lists for each object, and
    /// the largest delta with its content, because it may have to be sent as a whole.
    pub(super) fn memory(&self, database: &ObjectDatabase) -> u64 {
        let objects = &self.selected.objects;
        let deltas = objects.iter().filter(|object| database.is_delta(**object));
        let largest = deltas.map(|object| database.size(*object)).max();
        PIECES_MEMORY + objects.len() as u64 * 12 + largest.unwrap_or_default() * 3
    }
}

/// Selects the objects of a pack, and writes the bytes before it. If the protocol requires another
/// request first, the answer is a message without a pack.
pub(super) fn prepare_pack(
    offered: &OfferedRepository,
    request: FetchRequest,
    is_version_2: bool,
) -> Result<PreparedAnswer, GitError> {
    let mut head = Vec::new();
    let common = &request.haves;
    if is_version_2 && !request.done {
        push_text(&mut head, "acknowledgments");
        if common.is_empty() {
            push_text(&mut head, "NAK");
            push_flush(&mut head);
            return Ok(PreparedAnswer::Message(head));
        }
        for id in common {
            push_text(&mut head, &format!("ACK {id}"));
        }
        // one common commit is enough: clients name the newest first
        push_text(&mut head, "ready");
        push_delimiter(&mut head);
    }
    let tags: Vec<ObjectId> = offered.tags().collect();
    let selected = SelectedObjects::new(&offered.database, &request, &tags)?;
    // in version 0, clients know from the list of refs where the history of the repository ends
    let has_depth = request.depth.is_some()
        || (is_version_2 && !(request.shallow.is_empty() && selected.shallow.is_empty()));
    if has_depth {
        if is_version_2 {
            push_text(&mut head, "shallow-info");
        }
        for id in &selected.shallow {
            push_text(&mut head, &format!("shallow {id}"));
        }
        for id in &selected.unshallow {
            push_text(&mut head, &format!("unshallow {id}"));
        }
        if is_version_2 {
            push_delimiter(&mut head);
        } else {
            push_flush(&mut head);
        }
    }
    if is_version_2 {
        push_text(&mut head, "packfile");
    } else {
        match common.first() {
            Some(id) => push_text(&mut head, &format!("ACK {id}")),
            // the client only asks which commits are shallow
            None if !request.done && !request.has_haves => {}
            None => push_text(&mut head, "NAK"),
        }
        if !request.done {
            return Ok(PreparedAnswer::Message(head));
        }
    }
    Ok(PreparedAnswer::Pack(PreparedPack {
        head,
        selected,
        request,
    }))
}

/// The refs of a repository, with `HEAD` if it is known what a clone checks out.
pub(super) fn offered_refs(
    database: &ObjectDatabase,
    repository: &LockedGitRepository,
) -> Result<Vec<OfferedRef>, GitError> {
    let mut refs = Vec::new();
    for one in &repository.refs {
        let peeled = database.id(database.peeled(database.find(one.id)?)?);
        refs.push(OfferedRef {
            name: one.name.clone(),
            id: one.id,
            peeled: (peeled != one.id).then_some(peeled),
            target: None,
        });
    }
    let of_branch = |one: &&OfferedRef| repository.head.as_ref() == Some(&one.name);
    let head = match refs.iter().find(of_branch) {
        Some(branch) => Some(OfferedRef {
            name: "HEAD".into(),
            target: Some(branch.name.clone()),
            ..branch.clone()
        }),
        // a clone checks out the only ref, such as a tag
        None if refs.len() == 1 => Some(OfferedRef {
            name: "HEAD".into(),
            id: refs[0].peeled.unwrap_or(refs[0].id),
            peeled: None,
            target: None,
        }),
        None => None,
    };
    refs.splice(0..0, head);
    Ok(refs)
}
