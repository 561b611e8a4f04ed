//! Requests to a server: the commands of version 2, and the one request of version 0.

use super::offered::{OfferedRepository, RefSelection};
use super::{Packet, PacketBuffer, push_delimiter, push_flush, push_text};
use crate::GitError;
use crate::object::ObjectId;
use std::collections::HashSet;
use std::sync::Arc;

/// The depth with which clients ask for a whole history (git, `commit.h`: `INFINITE_DEPTH`).
const INFINITE_DEPTH: u32 = 0x7fff_ffff;

/// A request to `git-upload-pack`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UploadPackRequest {
    /// A request for the list of refs.
    ListRefs(RefsRequest),
    /// A request for a pack.
    Fetch(FetchRequest),
}

/// A request for the list of refs, in version 2.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RefsRequest {
    /// The refs to list; if it is `None`, all refs are listed.
    pub(super) selection: Option<RefSelection>,
    /// Whether the targets of annotated tags are listed.
    pub peel: bool,
    /// Whether the branch that `HEAD` points to is listed.
    pub symrefs: bool,
}

/// A request for a pack.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FetchRequest {
    /// The objects that the client wants with everything that they need.
    pub wants: Vec<ObjectId>,
    /// The commits that the client has. A server keeps only those that the repository has, too.
    pub haves: Vec<ObjectId>,
    /// Whether the client named any commit that it has.
    pub has_haves: bool,
    /// The commits whose parents the client does not have.
    pub shallow: Vec<ObjectId>,
    /// The maximum number of commits that are sent from each history; `None` means no limit.
    pub depth: Option<u32>,
    /// Whether files are left out unless they are wanted by their ids.
    pub without_blobs: bool,
    /// Whether annotated tags are sent together with the commits that they name.
    pub include_tags: bool,
    /// Whether the client reads deltas that name their base by an offset.
    pub offset_deltas: bool,
    /// Whether the client ended the negotiation and expects the pack.
    pub done: bool,
    /// Whether the pack is sent in packets with bands. Always true in version 2.
    pub bands: bool,
}

/// Reads a request to `git-upload-pack` that arrives in pieces of any size. Keeps only what the
/// answer needs: each object that the repository has once, and no prefixes of refs. So a request
/// takes no more memory than the repository, whatever its client sends.
pub struct UploadPackReader {
    offered: Arc<OfferedRepository>,
    packets: PacketBuffer,
    state: RequestState,
}

/// The part of a request that was read.
#[derive(Debug, Default)]
struct RequestState {
    is_version_2: bool,
    command: Option<UploadPackCommand>,
    /// Whether the capabilities of version 2 have ended.
    has_capabilities: bool,
    refs: RefsRequest,
    fetch: FetchRequest,
    /// The objects in each list of `fetch`.
    seen: HashSet<(IdList, ObjectId)>,
}

#[derive(Debug, Clone, Copy)]
enum UploadPackCommand {
    ListRefs,
    Fetch,
}

/// The lists of objects of a [`FetchRequest`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum IdList {
    Wants,
    Haves,
    Shallow,
}

impl UploadPackReader {
    /// Reads a request for `offered`, of version 2 or of version 0.
    pub fn new(offered: Arc<OfferedRepository>, is_version_2: bool) -> UploadPackReader {
        UploadPackReader {
            offered,
            packets: PacketBuffer::default(),
            state: RequestState {
                is_version_2,
                command: (!is_version_2).then_some(UploadPackCommand::Fetch),
                fetch: FetchRequest {
                    bands: is_version_2,
                    ..FetchRequest::default()
                },
                ..RequestState::default()
            },
        }
    }

    /// Reads the next bytes of the request.
    ///
    /// # Errors
    /// If the request is not valid, names an object that the repository lacks, or needs a feature
    /// that the server does not offer.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), GitError> {
        let packets = &mut self.packets;
        packets.push(bytes, |packet| self.state.accept(packet, &self.offered))
    }

    /// The request, after all its bytes were read.
    ///
    /// # Errors
    /// If it is cut off, or has no known command.
    pub fn finish(self) -> Result<UploadPackRequest, GitError> {
        if !self.packets.is_empty() {
            return Err(GitError::Protocol("a packet is cut off".into()));
        }
        match self.state.command {
            Some(UploadPackCommand::ListRefs) => Ok(UploadPackRequest::ListRefs(self.state.refs)),
            Some(UploadPackCommand::Fetch) => Ok(UploadPackRequest::Fetch(self.state.fetch)),
            None => Err(GitError::Protocol("the command is not known".into())),
        }
    }
}

impl RequestState {
    fn accept(&mut self, packet: Packet<'_>, offered: &OfferedRepository) -> Result<(), GitError> {
        let Packet::Data(_) = packet else {
            // in version 2, the capabilities end at a delimiter
            self.has_capabilities |= self.is_version_2;
            return Ok(());
        };
        let line = packet
            .line()
            .ok_or_else(|| GitError::Protocol("a line is not UTF-8".into()))?;
        match self.command {
            _ if self.is_version_2 && !self.has_capabilities => self.add_capability(line),
            Some(UploadPackCommand::ListRefs) => {
                self.add_to_refs(line, offered);
                Ok(())
            }
            Some(UploadPackCommand::Fetch) if self.is_version_2 => self.add_to_fetch(line, offered),
            Some(UploadPackCommand::Fetch) => self.add_version_0(line, offered),
            None => Ok(()),
        }
    }

    fn add_capability(&mut self, line: &str) -> Result<(), GitError> {
        match line.split_once('=') {
            Some(("command", "ls-refs")) => self.command = Some(UploadPackCommand::ListRefs),
            Some(("command", "fetch")) => self.command = Some(UploadPackCommand::Fetch),
            Some(("command", _)) => self.command = None,
            Some(("object-format", format)) if format != "sha1" => {
                return Err(GitError::Unsupported("this repository uses SHA-1"));
            }
            _ => {}
        }
        Ok(())
    }

    fn add_to_refs(&mut self, line: &str, offered: &OfferedRepository) {
        match line.split_once(' ').unwrap_or((line, "")) {
            ("ref-prefix", prefix) => {
                let selection = self.refs.selection.get_or_insert_default();
                selection.add(offered.with_prefix(prefix));
            }
            ("peel", _) => self.refs.peel = true,
            ("symrefs", _) => self.refs.symrefs = true,
            _ => {}
        }
    }

    /// Reads a line of version 0, which may have capabilities after the first object.
    fn add_version_0(&mut self, line: &str, offered: &OfferedRepository) -> Result<(), GitError> {
        let capabilities = line.match_indices(' ').nth(1).map(|(at, _)| at);
        let (line, capabilities) = line.split_at(capabilities.unwrap_or(line.len()));
        for capability in capabilities.split(' ') {
            match capability {
                "side-band-64k" => self.fetch.bands = true,
                "ofs-delta" => self.fetch.offset_deltas = true,
                "include-tag" => self.fetch.include_tags = true,
                "deepen-relative" => self.fetch.depth = Some(INFINITE_DEPTH),
                _ => {}
            }
        }
        self.add_to_fetch(line, offered)
    }

    fn add_to_fetch(&mut self, line: &str, offered: &OfferedRepository) -> Result<(), GitError> {
        let list = match line.split_once(' ') {
            Some(("want", text)) => Some((IdList::Wants, text)),
            Some(("have", text)) => Some((IdList::Haves, text)),
            Some(("shallow", text)) => Some((IdList::Shallow, text)),
            _ => None,
        };
        let Some((list, text)) = list else {
            return self.fetch.add_option(line);
        };
        let id: ObjectId = text.parse().map_err(GitError::Protocol)?;
        self.fetch.has_haves |= list == IdList::Haves;
        let known = offered.database.find(id);
        if list == IdList::Wants {
            known?;
        } else if known.is_err() {
            return Ok(());
        }
        if self.seen.insert((list, id)) {
            let ids = match list {
                IdList::Wants => &mut self.fetch.wants,
                IdList::Haves => &mut self.fetch.haves,
                IdList::Shallow => &mut self.fetch.shallow,
            };
            ids.push(id);
        }
        Ok(())
    }
}

impl FetchRequest {
    fn add_option(&mut self, line: &str) -> Result<(), GitError> {
        match line.split_once(' ').unwrap_or((line, "")) {
            ("deepen", text) => {
                let depth: u32 = text
                    .parse()
                    .map_err(|_| GitError::Protocol("the depth is not a number".into()))?;
                self.depth = self.depth.max(Some(depth).filter(|depth| *depth > 0));
            }
            // other filters, and depths by dates and refs, are answered with more objects than the
            // client asks for: it keeps them, and fetches single ones that it lacks later
            ("filter", filter) => {
                self.without_blobs = filter == "blob:none" || filter.starts_with("tree:");
            }
            ("deepen-since" | "deepen-not" | "deepen-relative", _) => {
                self.depth = Some(INFINITE_DEPTH);
            }
            ("ofs-delta", _) => self.offset_deltas = true,
            ("include-tag", _) => self.include_tags = true,
            ("done", _) => self.done = true,
            // `thin-pack` and `no-progress` are ignored, because the server never sends a thin pack
            // or progress messages
            _ => {}
        }
        Ok(())
    }
}

/// The request for a pack with all objects that are reachable from `wants` but not from `haves`. If
/// `depth` is given, only the last `depth` commits of each history are requested.
pub(super) fn fetch_request(wants: &[ObjectId], haves: &[ObjectId], depth: Option<u32>) -> Vec<u8> {
    let mut request = Vec::new();
    push_text(&mut request, "command=fetch");
    push_text(&mut request, "agent=landfall");
    push_text(&mut request, "object-format=sha1");
    push_delimiter(&mut request);
    // without `thin-pack`, so that all bases of deltas are in the pack
    push_text(&mut request, "no-progress");
    push_text(&mut request, "ofs-delta");
    for id in wants {
        push_text(&mut request, &format!("want {id}"));
    }
    for id in haves {
        push_text(&mut request, &format!("have {id}"));
    }
    if let Some(depth) = depth {
        push_text(&mut request, &format!("deepen {depth}"));
    }
    // no negotiation: the server sends the pack at once
    push_text(&mut request, "done");
    push_flush(&mut request);
    request
}

#[cfg(test)]
mod tests {
    use super::super::fetch_request;
    use super::*;
    use crate::object::GitObjectKind;
    use crate::pack::ObjectDatabase;
    use crate::testing::TestPack;
    use crate::wire::{push_delimiter, push_flush, push_text};
    use landfall_model::Limits;
    use proptest::prelude::*;

    /// A repository with one object, and the id of this object.
    fn offered() -> (Arc<OfferedRepository>, ObjectId) {
        let mut pack = TestPack::default();
        pack.add(GitObjectKind::Blob, b"");
        let mut database = ObjectDatabase::new(Limits::DEFAULT);
        database.add_pack(Arc::new(pack.bytes())).unwrap();
        let id = ObjectId::of_object(GitObjectKind::Blob, b"").unwrap();
        (
            Arc::new(OfferedRepository::new(database, Vec::new(), Vec::new())),
            id,
        )
    }

    /// The request in `message`, which arrives in pieces of `length` bytes.
    fn read(
        offered: &Arc<OfferedRepository>,
        message: &[u8],
        is_version_2: bool,
        length: usize,
    ) -> Result<UploadPackRequest, GitError> {
        let mut reader = UploadPackReader::new(offered.clone(), is_version_2);
        for piece in message.chunks(length) {
            reader.push(piece)?;
        }
        reader.finish()
    }

    #[test]
    fn the_requests_of_landfall_itself_are_read() {
        let (offered, id) = offered();
        let expected = FetchRequest {
            wants: vec![id],
            haves: vec![id],
            has_haves: true,
            depth: Some(3),
            offset_deltas: true,
            done: true,
            bands: true,
            ..FetchRequest::default()
        };
        let message = fetch_request(&[id], &[id], Some(3));
        for length in [1, 7, 1000] {
            let request = read(&offered, &message, true, length).unwrap();
            assert_eq!(request, UploadPackRequest::Fetch(expected.clone()));
        }
        let cut = &message[..message.len() - 3];
        assert!(read(&offered, cut, true, 1000).is_err());
    }

    #[test]
    fn a_request_of_version_0_has_its_capabilities_after_the_first_want() {
        let (offered, id) = offered();
        let first = format!("want {id} side-band-64k ofs-delta agent=x\n");
        let message = format!("{:04x}{first}000ddeepen 1\n00000009done\n", first.len() + 4);
        let request = read(&offered, message.as_bytes(), false, 1000).unwrap();
        let UploadPackRequest::Fetch(request) = request else {
            panic!("{request:?}")
        };
        assert!(request.bands && request.offset_deltas && request.done && !request.has_haves);
        assert_eq!((request.depth, request.wants), (Some(1), vec![id]));
    }

    #[test]
    fn other_filters_and_depths_are_answered_with_more_than_they_ask_for() {
        let (offered, _) = offered();
        let fetch = |lines: &[&str]| {
            let mut message = Vec::new();
            push_text(&mut message, "command=fetch");
            push_delimiter(&mut message);
            for line in lines {
                push_text(&mut message, line);
            }
            push_flush(&mut message);
            let read = read(&offered, &message, true, 99).unwrap();
            let UploadPackRequest::Fetch(request) = read else {
                panic!("{read:?}")
            };
            (request.without_blobs, request.depth)
        };
        for (filter, without_blobs) in [
            ("filter blob:none", true),
            ("filter tree:0", true),
            ("filter blob:limit=1024", false),
            ("filter combine:blob:none+tree:0", false),
        ] {
            assert_eq!(fetch(&[filter]), (without_blobs, None), "{filter}");
        }
        for lines in [
            &["deepen 3", "deepen-relative"][..],
            &["deepen-since 1700000000"],
            &["deepen-not v1"],
        ] {
            assert_eq!(fetch(lines), (false, Some(INFINITE_DEPTH)), "{lines:?}");
        }
        assert_eq!(fetch(&["deepen 3"]), (false, Some(3)));
    }

    #[test]
    fn a_request_keeps_each_object_of_the_repository_once() {
        let (offered, id) = offered();
        let mut message = Vec::new();
        push_text(&mut message, "command=fetch");
        push_delimiter(&mut message);
        let foreign = ObjectId::ZERO;
        for _ in 0..9 {
            for line in ["want", "have", "shallow"] {
                push_text(&mut message, &format!("{line} {id}"));
            }
            push_text(&mut message, &format!("have {foreign}"));
            push_text(&mut message, &format!("shallow {foreign}"));
        }
        push_flush(&mut message);
        let UploadPackRequest::Fetch(request) = read(&offered, &message, true, 99).unwrap() else {
            panic!("not a fetch")
        };
        assert_eq!(
            [&request.wants, &request.haves, &request.shallow],
            [&[id]; 3]
        );
        let mut unknown = Vec::new();
        push_text(&mut unknown, &format!("want {foreign}"));
        let refused = read(&offered, &unknown, false, 99).unwrap_err();
        assert!(
            matches!(refused, GitError::MissingObject { .. }),
            "{refused}"
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_request_or_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let (offered, _) = offered();
            for is_version_2 in [false, true] {
                let _ = read(&offered, &bytes, is_version_2, 7);
            }
        }
    }
}
