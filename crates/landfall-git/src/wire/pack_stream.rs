//! Reads the pack from the answer to `fetch` while the answer arrives.

use super::packet::{Packet, remote_error};
use crate::error::GitError;

/// Finds the pack in the answer to `fetch`, which arrives in pieces of any size.
#[derive(Default)]
pub struct PackStream {
    /// Bytes of a packet that is not complete.
    rest: Vec<u8>,
    state: PackStreamState,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum PackStreamState {
    /// Before the pack.
    #[default]
    Head,
    /// In the pack, between two packets.
    Pack,
    /// After the end of the message.
    Done,
}

impl PackStream {
    /// Adds the next bytes of the answer, and appends the bytes of the pack in them to `pack`.
    ///
    /// # Errors
    /// If the server reports an error, or the bytes are not such an answer.
    pub fn push(&mut self, bytes: &[u8], pack: &mut Vec<u8>) -> Result<(), GitError> {
        self.rest.extend_from_slice(bytes);
        let buffered = std::mem::take(&mut self.rest);
        let mut open = &buffered[..];
        while let Some(packet) = Packet::take(&mut open)? {
            self.accept(packet, pack)?;
        }
        self.rest = open.to_vec();
        Ok(())
    }

    fn accept(&mut self, packet: Packet<'_>, pack: &mut Vec<u8>) -> Result<(), GitError> {
        match (self.state, packet) {
            (_, Packet::Data(data)) if data.starts_with(b"ERR ") => {
                return Err(remote_error(&data[4..]));
            }
            (PackStreamState::Head, packet) => match packet.line() {
                Some("packfile") => self.state = PackStreamState::Pack,
                _ => return Err(GitError::Protocol("the answer has no pack".into())),
            },
            (PackStreamState::Pack, Packet::Data(data)) => match data.split_first() {
                Some((1, data)) => pack.extend_from_slice(data),
                // progress, for people
                Some((2, _)) => {}
                Some((3, words)) => return Err(remote_error(words)),
                _ => return Err(GitError::Protocol("a packet has no valid band".into())),
            },
            (PackStreamState::Pack, Packet::Flush | Packet::ResponseEnd) => {
                self.state = PackStreamState::Done;
            }
            (PackStreamState::Done, Packet::Flush | Packet::ResponseEnd) => {}
            _ => return Err(GitError::Protocol("a packet is out of place".into())),
        }
        Ok(())
    }

    /// Checks that the answer is complete.
    ///
    /// # Errors
    /// If it is cut off.
    pub fn finish(self) -> Result<(), GitError> {
        if self.state == PackStreamState::Done && self.rest.is_empty() {
            return Ok(());
        }
        Err(GitError::Protocol("the answer is cut off".into()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::packet::{push_data, push_flush, push_text};
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
            let (mut stream, mut pack) = (PackStream::default(), Vec::new());
            for piece in message().chunks(size) {
                stream.push(piece, &mut pack).unwrap();
            }
            stream.finish().unwrap();
            assert_eq!(pack, b"PACK");
        }
    }

    #[test]
    fn errors_and_cuts_are_noticed() {
        let (mut stream, mut pack) = (PackStream::default(), Vec::new());
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
