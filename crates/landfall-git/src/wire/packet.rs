//! Packets: a length of four hex digits, then data (gitprotocol-common, "pkt-line Format").

use crate::error::GitError;

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
    /// If the bytes are not a packet.
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
                return Ok(Some(Packet::Data(data)));
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
pub struct Packets<'a>(&'a [u8]);

impl<'a> Packets<'a> {
    /// The packets in `message`.
    pub fn new(message: &'a [u8]) -> Packets<'a> {
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
        let packet = packet.and_then(|packet| match packet {
            Packet::Data(data) if data.starts_with(b"ERR ") => Err(remote_error(&data[4..])),
            packet => Ok(packet),
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
            match packet {
                Packet::Data(data) if data.starts_with(b"ERR ") => {
                    return Err(remote_error(&data[4..]));
                }
                packet => each(packet)?,
            }
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

#[cfg(test)]
mod tests {
    use super::*;
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
}
