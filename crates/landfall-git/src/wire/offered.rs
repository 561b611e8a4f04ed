//! A repository as a server offers it: its objects and its refs, and the lists of refs that it
//! sends.

use super::server_request::RefsRequest;
use super::{Packet, PacketBuffer, push_data, push_delimiter, push_flush, push_text};
use crate::GitError;
use crate::object::ObjectId;
use crate::pack::ObjectDatabase;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// The size from which the next piece of a list of refs begins, in bytes.
const PIECE: usize = 16 << 10;

/// A ref that a server offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedRef {
    /// The full name: `HEAD` or `refs/…`. It may be one that [`is_ref_name`](crate::is_ref_name)
    /// refuses, if the server is another one; U+FFFD replaces bytes that are not UTF-8.
    pub name: String,
    /// The object that the ref points to; for an annotated tag, the tag object and not the commit
    /// that it names.
    pub id: ObjectId,
    /// The object that an annotated tag names in the end. `None` in a repository on this machine.
    pub peeled: Option<ObjectId>,
    /// For `HEAD`: the ref that it points to, if the server says so. `None` for every other ref.
    pub target: Option<String>,
}

/// A repository as a server offers it.
pub struct OfferedRepository {
    /// The objects.
    pub database: ObjectDatabase,
    /// The refs by their names; `HEAD` is the first.
    refs: Vec<OfferedRef>,
    /// The commits at which the history ends.
    shallow: Vec<ObjectId>,
}

/// A selection of refs by prefixes of their names. Two prefixes select the same refs, different
/// refs, or one selects all refs of the other: so the selection needs no more memory than the refs,
/// however many prefixes a request has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct RefSelection {
    /// Separate ranges of refs: their starts and ends.
    ranges: BTreeMap<usize, usize>,
}

impl OfferedRepository {
    /// A repository with these refs, whose history ends at `shallow`.
    pub fn new(
        mut database: ObjectDatabase,
        mut refs: Vec<OfferedRef>,
        shallow: Vec<ObjectId>,
    ) -> OfferedRepository {
        database.set_shallow(&shallow);
        refs.sort_by(|one, other| one.name.cmp(&other.name));
        OfferedRepository {
            database,
            refs,
            shallow,
        }
    }

    /// The annotated tags among the refs.
    pub fn tags(&self) -> impl Iterator<Item = ObjectId> {
        let tags = self.refs.iter().filter(|one| one.peeled.is_some());
        tags.map(|one| one.id)
    }

    /// The refs whose names begin with `prefix`.
    pub(super) fn with_prefix(&self, prefix: &str) -> Range<usize> {
        let start = self.refs.partition_point(|one| *one.name < *prefix);
        let rest = &self.refs[start..];
        start..start + rest.partition_point(|one| one.name.starts_with(prefix))
    }
}

impl RefSelection {
    pub(super) fn add(&mut self, added: Range<usize>) {
        if added.is_empty() {
            return;
        }
        let before = self.ranges.range(..=added.start).next_back();
        if before.is_some_and(|(_, end)| *end >= added.end) {
            return;
        }
        while let Some((start, _)) = self.ranges.range(added.clone()).next() {
            let start = *start;
            self.ranges.remove(&start);
        }
        self.ranges.insert(added.start, added.end);
    }
}

/// The answer to `ls-refs`, in pieces that are made when they are needed.
pub fn list_refs_answer(
    offered: Arc<OfferedRepository>,
    request: RefsRequest,
) -> impl Iterator<Item = Vec<u8>> + Send + 'static {
    let all = || BTreeMap::from([(0, offered.refs.len())]);
    let ranges = request
        .selection
        .map_or_else(all, |selection| selection.ranges);
    let wanted = ranges.into_iter().flat_map(|(start, end)| start..end);
    let lines = wanted.map(move |number| {
        let one = &offered.refs[number];
        let mut line = format!("{} {}", one.id, one.name);
        if let Some(target) = one.target.as_ref().filter(|_| request.symrefs) {
            line.push_str(&format!(" symref-target:{target}"));
        }
        if let Some(peeled) = one.peeled.filter(|_| request.peel) {
            line.push_str(&format!(" peeled:{peeled}"));
        }
        line
    });
    message_in_pieces(Vec::new(), lines)
}

/// The refs and capabilities of a server that speaks version 0, and the commits at which its
/// history ends, in pieces that are made when they are needed.
pub fn advertise_version_0(
    offered: Arc<OfferedRepository>,
) -> impl Iterator<Item = Vec<u8>> + Send + 'static {
    let mut capabilities =
        "\0side-band-64k ofs-delta shallow deepen-since deepen-not deepen-relative no-progress \
         include-tag allow-tip-sha1-in-want allow-reachable-sha1-in-want filter object-format=sha1 \
         agent=landfall"
            .to_owned();
    for one in &offered.refs {
        if let Some(target) = &one.target {
            capabilities.push_str(&format!(" symref={}:{target}", one.name));
        }
    }
    let listed = offered.clone();
    // the capabilities follow the first ref
    let refs = (0..listed.refs.len()).flat_map(move |number| {
        let one = &listed.refs[number];
        let capabilities = std::mem::take(&mut capabilities);
        let peeled = one
            .peeled
            .map(|peeled| format!("{peeled} {}^{{}}", one.name));
        [
            Some(format!("{} {}{capabilities}", one.id, one.name)),
            peeled,
        ]
        .into_iter()
        .flatten()
    });
    let shallow = (0..offered.shallow.len())
        .map(move |number| format!("shallow {}", offered.shallow[number]));
    message_in_pieces(service_line(), refs.chain(shallow))
}

/// A message of `head` and `lines`. Only one piece of it is in memory.
fn message_in_pieces(
    head: Vec<u8>,
    mut lines: impl Iterator<Item = String> + Send + 'static,
) -> impl Iterator<Item = Vec<u8>> + Send + 'static {
    let mut next = Some(head);
    std::iter::from_fn(move || {
        let mut piece = next.take()?;
        while piece.len() < PIECE {
            let Some(line) = lines.next() else {
                push_flush(&mut piece);
                return Some(piece);
            };
            push_text(&mut piece, &line);
        }
        next = Some(Vec::with_capacity(PIECE));
        Some(piece)
    })
}

/// The request for all branches and tags and `HEAD`.
pub fn ls_refs_request() -> Vec<u8> {
    let mut request = Vec::new();
    push_text(&mut request, "command=ls-refs");
    push_text(&mut request, "agent=landfall");
    push_text(&mut request, "object-format=sha1");
    push_delimiter(&mut request);
    for line in [
        "peel",
        "symrefs",
        "ref-prefix HEAD",
        "ref-prefix refs/heads/",
        "ref-prefix refs/tags/",
    ] {
        push_text(&mut request, line);
    }
    push_flush(&mut request);
    request
}

/// Reads the answer to [`ls_refs_request`], which arrives in pieces of any size, and keeps only the
/// refs.
pub struct RefListStream {
    packets: PacketBuffer,
    refs: Vec<OfferedRef>,
    most: usize,
    is_done: bool,
}

impl RefListStream {
    /// Accepts at most `most` refs, whatever their names are.
    pub fn new(most: usize) -> RefListStream {
        RefListStream {
            packets: PacketBuffer::default(),
            refs: Vec::new(),
            most,
            is_done: false,
        }
    }

    /// Reads the next bytes of the answer.
    ///
    /// # Errors
    /// If the server reports an error, the bytes are not an answer to [`ls_refs_request`], or it
    /// has too many refs.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), GitError> {
        self.packets.push(bytes, |packet| match packet {
            // bytes after the end are ignored
            _ if self.is_done => Ok(()),
            Packet::Flush => {
                self.is_done = true;
                Ok(())
            }
            Packet::Data(data) => {
                GitError::check_refs(self.refs.len() + 1, self.most)?;
                let line = String::from_utf8_lossy(data);
                let found = parse_ref(line.strip_suffix('\n').unwrap_or(&line));
                self.refs.push(found.ok_or_else(not_a_ref)?);
                Ok(())
            }
            Packet::Delimiter | Packet::ResponseEnd => Err(not_a_ref()),
        })
    }

    /// The refs.
    ///
    /// # Errors
    /// If the answer is cut off.
    pub fn finish(self) -> Result<Vec<OfferedRef>, GitError> {
        if self.is_done {
            return Ok(self.refs);
        }
        Err(GitError::Protocol("the list of refs is cut off".into()))
    }
}

fn not_a_ref() -> GitError {
    GitError::Protocol("a line of the list of refs is not a ref".into())
}

/// Reads `<id> <name>[ symref-target:<name>][ peeled:<id>]`.
fn parse_ref(line: &str) -> Option<OfferedRef> {
    let mut words = line.split(' ');
    let id = words.next()?.parse().ok()?;
    let name = words.next()?.to_owned();
    let mut found = OfferedRef {
        name,
        id,
        peeled: None,
        target: None,
    };
    for word in words {
        if let Some(peeled) = word.strip_prefix("peeled:") {
            found.peeled = Some(peeled.parse().ok()?);
        } else if let Some(target) = word.strip_prefix("symref-target:") {
            found.target = (found.name == "HEAD").then(|| target.to_owned());
        }
    }
    Some(found)
}

// The short answers of a server: its capabilities and errors.

/// The capabilities of a server that speaks version 2.
pub fn advertise_version_2() -> Vec<u8> {
    let mut message = service_line();
    for line in [
        "version 2",
        "agent=landfall",
        "ls-refs",
        "fetch=shallow filter",
        "object-format=sha1",
    ] {
        push_text(&mut message, line);
    }
    push_flush(&mut message);
    message
}

/// An answer that reports an error to the client.
pub fn error_answer(why: &str) -> Vec<u8> {
    let mut message = Vec::new();
    push_data(&mut message, format!("ERR {why}\n").as_bytes());
    message
}

/// The line with which every answer to `info/refs` begins (gitprotocol-http).
pub(super) fn service_line() -> Vec<u8> {
    let mut message = Vec::new();
    push_text(&mut message, "# service=git-upload-pack");
    push_flush(&mut message);
    message
}

#[cfg(test)]
mod tests {
    use super::super::{AdvertisementStream, RefListStream, ls_refs_request};
    use super::*;
    use crate::object::is_ref_name;
    use crate::wire::push_data;
    use crate::wire::{UploadPackReader, UploadPackRequest};
    use landfall_model::Limits;

    fn plain(name: &str) -> OfferedRef {
        OfferedRef {
            name: name.into(),
            id: ObjectId::ZERO,
            peeled: None,
            target: None,
        }
    }

    fn offered(refs: Vec<OfferedRef>, shallow: Vec<ObjectId>) -> Arc<OfferedRepository> {
        let database = ObjectDatabase::new(Limits::DEFAULT);
        Arc::new(OfferedRepository::new(database, refs, shallow))
    }

    fn parse_refs(message: &[u8]) -> Vec<OfferedRef> {
        let mut stream = RefListStream::new(10_000);
        stream.push(message).unwrap();
        stream.finish().unwrap()
    }

    fn answer(offered: &Arc<OfferedRepository>, message: &[u8]) -> Vec<u8> {
        let mut reader = UploadPackReader::new(offered.clone(), true);
        reader.push(message).unwrap();
        let UploadPackRequest::ListRefs(request) = reader.finish().unwrap() else {
            panic!("not a list")
        };
        list_refs_answer(offered.clone(), request)
            .flatten()
            .collect()
    }

    #[test]
    fn landfall_reads_what_landfall_offers() {
        let advertised = |message: &[u8]| {
            let mut stream = AdvertisementStream::new(10);
            stream.push(message).unwrap();
            stream.finish().unwrap()
        };
        assert!(advertised(&advertise_version_2()).is_version_2());
        let head = OfferedRef {
            target: Some("refs/heads/main".into()),
            ..plain("HEAD")
        };
        let tag = OfferedRef {
            peeled: Some(ObjectId::ZERO),
            ..plain("refs/tags/v1")
        };
        let offered = offered(vec![tag, head.clone()], vec![ObjectId::ZERO]);
        let found = parse_refs(&answer(&offered, &ls_refs_request()));
        assert_eq!(found[0].target, head.target);
        assert_eq!((found[1].peeled, found.len()), (Some(ObjectId::ZERO), 2));
        let old: Vec<u8> = advertise_version_0(offered).flatten().collect();
        assert_eq!(advertised(&old).refs, Some(found));
        let old = String::from_utf8(old).unwrap();
        assert!(
            old.contains("HEAD\0side-band-64k") && old.contains("refs/tags/v1^{}\n0035shallow 0"),
            "{old}"
        );
        assert_eq!(old.matches("side-band-64k").count(), 1, "{old}");
    }

    #[test]
    fn prefixes_select_refs_without_being_kept() {
        let names = ["refs/a", "refs/a/b", "refs/a/c", "refs/ab", "refs/b"];
        let offered = offered(names.map(plain).to_vec(), Vec::new());
        let selected = |prefixes: &[&str]| {
            let mut selection = RefSelection::default();
            for prefix in prefixes {
                selection.add(offered.with_prefix(prefix));
            }
            assert!(selection.ranges.len() <= names.len());
            let ranges = selection.ranges.into_iter();
            let numbers = ranges.flat_map(|(start, end)| start..end);
            numbers.map(|number| names[number]).collect::<Vec<_>>()
        };
        assert_eq!(selected(&["refs/c", "HEAD"]), [""; 0]);
        assert_eq!(selected(&["refs/a/c", "refs/a/", "refs/a/b"]), names[1..3]);
        assert_eq!(selected(&["refs/b", "refs/a/b", "refs/a"]), names);
        assert_eq!(selected(&["", "refs/b"]), names);
        assert_eq!(selected(&["refs/b", "refs/ab", "refs/b"]), names[3..]);
    }

    #[test]
    fn a_long_list_of_refs_is_made_piece_by_piece() {
        let names = (0..10_000).map(|number| format!("refs/tags/{number:05}"));
        let offered = offered(names.map(|name| plain(&name)).collect(), Vec::new());
        let request = RefsRequest::default();
        let pieces: Vec<Vec<u8>> = list_refs_answer(offered, request).collect();
        assert!(pieces.iter().all(|piece| piece.len() < 2 * PIECE));
        let refs = parse_refs(&pieces.concat());
        assert_eq!(refs.len(), 10_000);
        assert_eq!(refs[9_999].name, "refs/tags/09999");
    }

    const ID: &str = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391";

    #[test]
    fn refs_have_ids_and_their_attributes() {
        let mut message = Vec::new();
        push_text(
            &mut message,
            &format!("{ID} HEAD symref-target:refs/heads/main"),
        );
        push_text(&mut message, &format!("{ID} refs/tags/v1 peeled:{ID}"));
        push_text(&mut message, &format!("{ID} refs/heads/../../etc"));
        push_data(
            &mut message,
            &[ID.as_bytes(), b" refs/heads/\xe4\n"].concat(),
        );
        let read = |message: &[u8], most: usize, size: usize| {
            let mut stream = RefListStream::new(most);
            let mut pieces = message.chunks(size);
            pieces.try_for_each(|piece| stream.push(piece))?;
            stream.finish()
        };
        assert!(read(&message, 9, 9).is_err(), "no flush");
        push_flush(&mut message);
        let refs = read(&message, 4, 1000).unwrap();
        for size in [1, 3, 77] {
            assert_eq!(read(&message, 4, size).unwrap(), refs, "{size}");
        }
        assert_eq!(refs.len(), 4);
        assert_eq!(refs[0].target.as_deref(), Some("refs/heads/main"));
        assert_eq!(refs[1].peeled, ID.parse().ok());
        assert_eq!(refs[3].name, "refs/heads/\u{fffd}");
        assert!(!is_ref_name(&refs[2].name) && !is_ref_name(&refs[3].name));
        assert!(read(&message, 3, 1000).is_err());
        let error = read(b"000aERR no", 9, 2).unwrap_err();
        assert_eq!(error.to_string(), "the server answered: no");
    }
}
