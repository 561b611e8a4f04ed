//! Reads the pack from the answer to `fetch` while the answer arrives.

use super::packet::{Packet, PacketBuffer, Packets, remote_error};
use crate::error::GitError;

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

/// The maximum size of the first answer of a server that speaks version 2, in bytes. A list of refs
/// may be longer.
pub const MAX_ADVERTISEMENT: usize = 1 << 20;

/// Checks that a server speaks version 2 of the protocol, and that its repository uses SHA-1.
///
/// # Errors
/// If the server does not offer version 2, the repository uses SHA-256, or the message is not an
/// advertisement.
pub fn check_advertisement(message: &[u8]) -> Result<(), GitError> {
    let mut is_version_2 = false;
    let other_version = "the server does not offer version 2 of git's protocol";
    if message.len() >= MAX_ADVERTISEMENT {
        return Err(GitError::Unsupported(other_version));
    }
    for packet in Packets::new(message) {
        let line = packet?.line().map(str::trim_end);
        match line {
            Some("version 2") => is_version_2 = true,
            Some(line) if line.starts_with("object-format=") && line != "object-format=sha1" => {
                return Err(GitError::Unsupported(
                    "the repository uses SHA-256, which landfall does not support",
                ));
            }
            _ => {}
        }
    }
    if is_version_2 {
        return Ok(());
    }
    Err(GitError::Unsupported(other_version))
}

#[cfg(test)]
mod tests {
    use super::super::packet::{push_data, push_delimiter, push_flush, push_text};
    use super::*;

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

    fn advertisement(lines: &[&str]) -> Vec<u8> {
        let mut message = Vec::new();
        push_text(&mut message, "# service=git-upload-pack");
        push_flush(&mut message);
        lines.iter().for_each(|line| push_text(&mut message, line));
        push_flush(&mut message);
        message
    }

    #[test]
    fn only_version_2_with_sha1_is_accepted() {
        let accepted = advertisement(&["version 2", "ls-refs=unborn", "object-format=sha1"]);
        assert!(check_advertisement(&accepted).is_ok());
        let id = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391 HEAD\0multi_ack";
        for lines in [&["version 2", "object-format=sha256"][..], &[id], &[]] {
            assert!(
                check_advertisement(&advertisement(lines)).is_err(),
                "{lines:?}"
            );
        }
        assert!(check_advertisement(b"<html>").is_err());
    }
}
