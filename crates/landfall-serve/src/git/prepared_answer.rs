//! Prepares the answer to a command of git's protocol: the objects of a pack, and the bytes before
//! it.

use crate::connections::RequestPermit;
use crate::response::{Body, streamed_body};
use bytes::Bytes;
use landfall_git::{
    FetchRequest, GitError, ObjectDatabase, ObjectId, OfferedRef, OfferedRepository, PackSending,
    Packet, SelectedObjects, push_data, push_delimiter, push_flush, push_text, send_pack,
};
use landfall_item::LockedGitRepository;
use landfall_model::report::Progress;
use std::io::{self, Write};
use std::sync::Arc;
use std::thread::Builder;
use tokio::sync::mpsc::{Receiver, Sender, channel};

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
        // a clone checks out the only ref, such as the tag of a commit
        None if refs.len() == 1 => database.commit_of(refs[0].id)?.map(|id| OfferedRef {
            name: "HEAD".into(),
            id,
            peeled: None,
            target: None,
        }),
        None => None,
    };
    refs.splice(0..0, head);
    Ok(refs)
}

/// How many pieces are written ahead of the client.
const PIECES: usize = 1;
/// The size from which a piece is sent, in bytes.
const PIECE: usize = 64 << 10;
/// The memory of a thread, its buffers and all pieces that are not sent yet, in bytes.
pub(super) const PIECES_MEMORY: u64 = 1 << 20;
/// The side band that carries the pack.
const PACK_BAND: u8 = 1;

/// Sends the pieces of a body.
type PieceSender = Sender<io::Result<Bytes>>;

/// The parts of a response body with a pack.
pub(super) struct PackBody {
    /// Held until the last piece is written.
    pub(super) permit: RequestPermit,
    pub(super) offered: Arc<OfferedRepository>,
    pub(super) selected: SelectedObjects,
    /// The bytes before the pack.
    pub(super) head: Vec<u8>,
    /// Whether the pack is sent in side-band packets.
    pub(super) bands: bool,
    pub(super) offset_deltas: bool,
    pub(super) progress: Arc<dyn Progress>,
}

impl PackBody {
    /// The body. A failure aborts the connection, so that the client sees that the pack is
    /// incomplete.
    pub(super) fn into_body(self) -> Body {
        let progress = self.progress.clone();
        written_body(progress, move |sender| self.write(sender))
    }

    fn write(self, sender: &PieceSender) -> Result<(), String> {
        let mut out = PacketWriter {
            sender,
            piece: self.head,
            bands: self.bands,
        };
        send_pack(
            &self.offered.database,
            &self.selected.objects,
            PackSending {
                offset_deltas: self.offset_deltas,
                is_compact: false,
            },
            &mut io::BufWriter::with_capacity(Packet::MAX_DATA - 1, &mut out),
        )
        .map_err(|error| error.to_string())?;
        if out.bands {
            push_flush(&mut out.piece);
        }
        let sent = out.send().map_err(|error| error.to_string());
        drop(self.permit);
        sent
    }
}

/// The body that `write` sends, which may block until the client receives it.
fn written_body(
    progress: Arc<dyn Progress>,
    write: impl FnOnce(&PieceSender) -> Result<(), String> + Send + 'static,
) -> Body {
    let (sender, receiver) = channel(PIECES);
    let (refused, notes) = (sender.clone(), progress.clone());
    // A thread of its own, not one of the runtime: their number is limited, so clients that receive
    // slowly would leave none for other requests.
    let started = Builder::new().name("git pack".into()).spawn(move || {
        if let Err(error) = write(&sender)
            // a client that disconnected is not a failure of the server
            && !sender.is_closed()
        {
            progress.note(&format!("a pack was not sent completely: {error}"));
            let _ = sender.blocking_send(Err(io::Error::other(error)));
        }
    });
    if let Err(error) = started {
        notes.note(&format!("a pack was not sent: {error}"));
        let _ = refused.try_send(Err(error));
    }
    let next = async |mut receiver: Receiver<io::Result<Bytes>>| {
        let piece = receiver.recv().await?;
        Some((piece, receiver))
    };
    streamed_body(futures_util::stream::unfold(receiver, next))
}

/// Sends the written bytes in pieces. With `bands`, a piece consists of side-band packets.
struct PacketWriter<'a> {
    sender: &'a PieceSender,
    piece: Vec<u8>,
    bands: bool,
}

impl PacketWriter<'_> {
    fn send(&mut self) -> io::Result<()> {
        let piece = std::mem::take(&mut self.piece);
        self.sender
            .blocking_send(Ok(piece.into()))
            .map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

impl Write for PacketWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for data in bytes.chunks(Packet::MAX_DATA - 1) {
            if self.bands {
                push_data(&mut self.piece, &[&[PACK_BAND], data].concat());
            } else {
                self.piece.extend_from_slice(data);
            }
            if self.piece.len() >= PIECE {
                self.send()?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_model::report::SilentProgress;
    use std::time::Duration;
    use tokio::task::spawn_blocking;
    use tokio::time::timeout;

    #[test]
    fn a_client_that_receives_nothing_occupies_no_thread_of_the_runtime() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .max_blocking_threads(1)
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let body = written_body(Arc::new(SilentProgress), |sender| {
                while sender.blocking_send(Ok(Bytes::from_static(b"x"))).is_ok() {}
                Ok(())
            });
            let other = timeout(Duration::from_mins(1), spawn_blocking(|| ()));
            other.await.unwrap().unwrap();
            drop(body);
        });
    }
}
