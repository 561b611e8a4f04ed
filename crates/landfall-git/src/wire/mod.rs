//! The packets and messages of the smart HTTP protocol (gitprotocol-v2, gitprotocol-http).
//!
//! As a client, landfall fetches with version 2, or with version 0 if the server does not speak
//! version 2, and pushes with version 0, because version 2 has no push. As a server, it speaks
//! version 2 and, because the git clients of some `GitOps` controllers still use it, version 0.

mod advertisement;
mod offered;
mod receive;
mod server_request;

use self::server_request::fetch_request;
use crate::GitError;

pub use self::advertisement::{Advertisement, AdvertisementStream};
pub use self::offered::{
    OfferedRef, OfferedRepository, RefListStream, advertise_version_0, advertise_version_2,
    error_answer, list_refs_answer, ls_refs_request,
};
pub use self::receive::{ReceiveAdvertisement, RefUpdate, check_report};
pub use self::server_request::{FetchRequest, RefsRequest, UploadPackReader, UploadPackRequest};

// Packets: a length of four hex digits, then data (gitprotocol-common, "pkt-line Format").

/// A packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packet<'a> {
    /// The end of a message.
    Flush,
    /// The end of a section of a message.
    Delimiter,
    /// The end of a response, on connections without other framing.
    ResponseEnd,
    /// Data.
    Data(&'a [u8]),
}

/// The length of the head of a packet.
const HEAD: usize = 4;

impl<'a> Packet<'a> {
    /// The maximum number of bytes of data in a packet.
    pub const MAX_DATA: usize = 65516;

    /// Takes a packet from the front of `bytes`. `None` if it is not complete.
    ///
    /// # Errors
    /// If the bytes are not a packet, or the packet reports an error of the server.
    pub fn take(bytes: &mut &'a [u8]) -> Result<Option<Packet<'a>>, GitError> {
        let Some((head, rest)) = bytes.split_first_chunk::<HEAD>() else {
            return Ok(None);
        };
        let length = std::str::from_utf8(head)
            .ok()
            .filter(|head| head.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .and_then(|head| usize::from_str_radix(head, 16).ok())
            .filter(|length| *length != 3 && *length <= Packet::MAX_DATA + HEAD)
            .ok_or_else(|| {
                GitError::Protocol(format!("'{}' is not a packet", head.escape_ascii()))
            })?;
        let packet = match length {
            0 => Packet::Flush,
            1 => Packet::Delimiter,
            2 => Packet::ResponseEnd,
            _ => {
                let Some((data, rest)) = rest.split_at_checked(length - HEAD) else {
                    return Ok(None);
                };
                *bytes = rest;
                return match data.strip_prefix(b"ERR ") {
                    Some(words) => Err(remote_error(words)),
                    None => Ok(Some(Packet::Data(data))),
                };
            }
        };
        *bytes = rest;
        Ok(Some(packet))
    }

    /// The data as a line without its line break. `None` if this is not data, or not UTF-8.
    pub fn line(&self) -> Option<&'a str> {
        match self {
            Packet::Data(data) => {
                let text = std::str::from_utf8(data).ok()?;
                Some(text.strip_suffix('\n').unwrap_or(text))
            }
            _ => None,
        }
    }
}

/// The packets of a whole message.
pub(super) struct Packets<'a>(&'a [u8]);

impl<'a> Packets<'a> {
    /// The packets in `message`.
    pub(super) fn new(message: &'a [u8]) -> Packets<'a> {
        Packets(message)
    }
}

impl<'a> Iterator for Packets<'a> {
    type Item = Result<Packet<'a>, GitError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let packet = Packet::take(&mut self.0).and_then(|packet| {
            packet.ok_or_else(|| GitError::Protocol("a packet is cut off".into()))
        });
        if packet.is_err() {
            self.0 = &[];
        }
        Some(packet)
    }
}

/// Finds the packets of a message that arrives in pieces of any size.
#[derive(Default)]
pub(super) struct PacketBuffer {
    /// Bytes of a packet that is not complete.
    rest: Vec<u8>,
}

impl PacketBuffer {
    /// Calls `each` with the packets that `bytes` complete. Fails if the server reports an error.
    pub(super) fn push(
        &mut self,
        bytes: &[u8],
        mut each: impl FnMut(Packet<'_>) -> Result<(), GitError>,
    ) -> Result<(), GitError> {
        self.rest.extend_from_slice(bytes);
        let mut open = &self.rest[..];
        while let Some(packet) = Packet::take(&mut open)? {
            each(packet)?;
        }
        let length = self.rest.len() - open.len();
        self.rest.drain(..length);
        Ok(())
    }

    /// Whether the last packet is complete.
    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }
}

/// The error that a server reports in its own words, which are shortened and escaped.
pub(super) fn remote_error(words: &[u8]) -> GitError {
    const MAX: usize = 400;
    let words = words[..words.len().min(MAX)].trim_ascii();
    GitError::Remote(words.escape_ascii().to_string())
}

/// Appends a packet with `data`, at most [`Packet::MAX_DATA`] bytes.
pub fn push_data(out: &mut Vec<u8>, data: &[u8]) {
    out.extend(format!("{:04x}", data.len() + HEAD).bytes());
    out.extend(data);
}

/// Appends a packet with a line.
pub fn push_text(out: &mut Vec<u8>, line: &str) {
    out.extend(format!("{:04x}{line}\n", line.len() + 1 + HEAD).bytes());
}

/// Appends the end of a message.
pub fn push_flush(out: &mut Vec<u8>) {
    out.extend(b"0000");
}

/// Appends the end of a section.
pub fn push_delimiter(out: &mut Vec<u8>) {
    out.extend(b"0001");
}

// Reads the pack from the answer to `fetch` while the answer arrives.

/// Finds the pack in the answer to `fetch`, which arrives in pieces of any size.
#[derive(Default)]
pub struct PackStream {
    packets: PacketBuffer,
    state: PackStreamState,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum PackStreamState {
    /// Before the pack.
    #[default]
    Head,
    /// Before the pack, in version 0.
    Acknowledgement,
    /// In the list of commits whose parents are not sent.
    ShallowInfo,
    /// Between the packets of the pack.
    Pack,
    /// After the end of the message.
    Done,
}

impl PackStream {
    /// Reads the next bytes of the answer, and appends those that belong to the pack to `pack`.
    ///
    /// # Errors
    /// If the server reports an error, or the bytes are not an answer to `fetch`.
    pub fn push(&mut self, bytes: &[u8], pack: &mut Vec<u8>) -> Result<(), GitError> {
        let state = &mut self.state;
        self.packets
            .push(bytes, |packet| state.accept(packet, pack))
    }

    /// Checks that the answer is complete.
    ///
    /// # Errors
    /// If it is cut off.
    pub fn finish(self) -> Result<(), GitError> {
        if self.state == PackStreamState::Done && self.packets.is_empty() {
            return Ok(());
        }
        Err(GitError::Protocol("the answer is cut off".into()))
    }
}

impl PackStreamState {
    fn accept(&mut self, packet: Packet<'_>, pack: &mut Vec<u8>) -> Result<(), GitError> {
        match (*self, packet) {
            (PackStreamState::Head, packet) => match packet.line() {
                Some("packfile") => *self = PackStreamState::Pack,
                Some("shallow-info") => *self = PackStreamState::ShallowInfo,
                _ => return Err(GitError::Protocol("the answer has no pack".into())),
            },
            (PackStreamState::Acknowledgement, packet) => match packet.line() {
                Some("NAK") => *self = PackStreamState::Pack,
                // only the last one ends with the object; others add `common`, `continue`, `ready`
                Some(line) if line.starts_with("ACK ") && line.rfind(' ') == Some(3) => {
                    *self = PackStreamState::Pack;
                }
                // the list of commits whose parents are not sent, and its end
                Some(line) if line.starts_with("ACK ") || line.starts_with("shallow ") => {}
                None if packet == Packet::Flush => {}
                _ => return Err(GitError::Protocol("the answer has no pack".into())),
            },
            // not needed: `shallow_boundary` computes these commits from the requested depth
            (PackStreamState::ShallowInfo, Packet::Data(_)) => {}
            (PackStreamState::ShallowInfo, Packet::Delimiter) => *self = PackStreamState::Head,
            (PackStreamState::Pack, Packet::Data(data)) => match data.split_first() {
                Some((1, data)) => pack.extend_from_slice(data),
                // progress, for people
                Some((2, _)) => {}
                Some((3, words)) => return Err(remote_error(words)),
                _ => return Err(GitError::Protocol("a packet has no valid band".into())),
            },
            (PackStreamState::Pack, Packet::Flush | Packet::ResponseEnd) => {
                *self = PackStreamState::Done;
            }
            (PackStreamState::Done, Packet::Flush | Packet::ResponseEnd) => {}
            _ => return Err(GitError::Protocol("a packet is out of place".into())),
        }
        Ok(())
    }
}

/// Whether a server's list of refs or capabilities has its last packet. Without a `Content-Length`,
/// only that shows that it was not cut off.
pub fn is_whole_advertisement(message: &[u8]) -> bool {
    let mut is_whole = false;
    let mut is_head = false;
    for packet in Packets::new(message) {
        let Ok(packet) = packet else {
            return false;
        };
        // the name of the service, which version 2 lacks, is followed by a flush packet too
        is_whole = packet == Packet::Flush && !is_head;
        is_head = matches!(packet, Packet::Data(data) if data.starts_with(b"# service="));
    }
    is_whole
}

#[cfg(test)]
mod tests {
    use super::{push_data, push_delimiter, push_flush, push_text, *};
    use proptest::prelude::*;

    #[test]
    fn packets_are_read_as_they_are_written() {
        let mut message = Vec::new();
        push_text(&mut message, "version 2");
        push_delimiter(&mut message);
        push_data(&mut message, b"x");
        push_flush(&mut message);
        assert_eq!(message, b"000eversion 2\n00010005x0000");
        let packets: Vec<_> = Packets::new(&message).map(Result::unwrap).collect();
        let expected = [
            Packet::Data(b"version 2\n"),
            Packet::Delimiter,
            Packet::Data(b"x"),
            Packet::Flush,
        ];
        assert_eq!(packets, expected);
        assert_eq!(packets[0].line(), Some("version 2"));
    }

    #[test]
    fn an_error_of_the_server_is_escaped_and_invalid_packets_are_errors() {
        let mut message = Vec::new();
        push_text(&mut message, "ERR no\u{1b}[2J");
        let error = Packets::new(&message).next().unwrap().unwrap_err();
        assert_eq!(error.to_string(), "the server answered: no\\x1b[2J");
        for bad in ["0003", "000", "fff1", "+00a", "<htm", "0009ab"] {
            assert!(
                Packets::new(bad.as_bytes()).next().unwrap().is_err(),
                "{bad}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_packets_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Packets::new(&bytes).count();
        }
    }

    fn message() -> Vec<u8> {
        let mut message = Vec::new();
        push_text(&mut message, "packfile");
        push_data(&mut message, b"\x01PA");
        push_data(&mut message, b"\x02Counting objects");
        push_data(&mut message, b"\x01CK");
        push_flush(&mut message);
        message
    }

    #[test]
    fn the_pack_is_found_in_pieces_of_any_size() {
        for size in [1, 3, 1000] {
            let mut stream = PackStream::default();
            let mut pack = Vec::new();
            for piece in message().chunks(size) {
                stream.push(piece, &mut pack).unwrap();
            }
            stream.finish().unwrap();
            assert_eq!(pack, b"PACK");
        }
    }

    #[test]
    fn the_list_of_shallow_commits_before_the_pack_is_skipped() {
        let mut answer = Vec::new();
        push_text(&mut answer, "shallow-info");
        push_text(
            &mut answer,
            "shallow e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
        );
        push_delimiter(&mut answer);
        answer.extend(message());
        let mut stream = PackStream::default();
        let mut pack = Vec::new();
        stream.push(&answer, &mut pack).unwrap();
        stream.finish().unwrap();
        assert_eq!(pack, b"PACK");
    }

    #[test]
    fn errors_and_cuts_are_noticed() {
        let mut stream = PackStream::default();
        let mut pack = Vec::new();
        let message = message();
        stream
            .push(&message[..message.len() - 4], &mut pack)
            .unwrap();
        assert!(stream.finish().is_err());
        let mut message = Vec::new();
        push_text(&mut message, "packfile");
        push_data(&mut message, b"\x03no space");
        let error = PackStream::default().push(&message, &mut pack).unwrap_err();
        assert_eq!(error.to_string(), "the server answered: no space");
        assert!(PackStream::default().push(b"0008NAK\n", &mut pack).is_err());
    }
}
