//! The SSH encoding of keys and signatures (RFC 4251, section 5), and the armor around it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Reads one field after the other. Methods return `None` if the bytes end early or a field is
/// malformed.
pub(super) struct SshReader<'a>(pub &'a [u8]);

impl<'a> SshReader<'a> {
    pub(super) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_be_bytes)
    }

    pub(super) fn string(&mut self) -> Option<&'a [u8]> {
        let length = self.u32()?;
        self.take(usize::try_from(length).ok()?)
    }

    pub(super) fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.string()?).ok()
    }

    /// Reads a non-negative `mpint`: big-endian bytes, without leading zeros.
    pub(super) fn number(&mut self) -> Option<&'a [u8]> {
        let bytes = self.string()?;
        let zeros = bytes.iter().take_while(|&&byte| byte == 0).count();
        (bytes.first().is_none_or(|first| first & 0x80 == 0)).then(|| &bytes[zeros..])
    }

    /// Returns `None` if any bytes remain.
    pub(super) fn end(self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}

/// Encodes fields one after the other, each with its length.
pub(super) fn strings(fields: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for field in fields {
        bytes.extend((field.len() as u32).to_be_bytes());
        bytes.extend(*field);
    }
    bytes
}

/// Encodes a number, given in big-endian bytes, as [`SshReader::number`] reads it.
pub(super) fn number(bytes: &[u8]) -> Vec<u8> {
    let zeros = bytes.iter().take_while(|&&byte| byte == 0).count();
    let bytes = &bytes[zeros..];
    // a set first bit would make it negative
    if bytes.first().is_some_and(|first| first & 0x80 != 0) {
        strings(&[&[&[0], bytes].concat()])
    } else {
        strings(&[bytes])
    }
}

/// Encodes bytes in base64 between `-----BEGIN label-----` and `-----END label-----`, in lines of
/// 70 characters like OpenSSH.
pub(super) fn armor(label: &str, bytes: &[u8]) -> String {
    let text = STANDARD.encode(bytes);
    let lines: String = text
        .as_bytes()
        .chunks(70)
        .flat_map(|line| line.iter().copied().chain([b'\n']).map(char::from))
        .collect();
    format!("-----BEGIN {label}-----\n{lines}-----END {label}-----\n")
}

/// Decodes the content of the armor `label`. Returns `None` if `text` is not this armor, or its
/// content is not base64.
pub(super) fn dearmor(label: &str, text: &str) -> Option<Vec<u8>> {
    let inside = text
        .trim()
        .strip_prefix(&format!("-----BEGIN {label}-----"))?;
    let inside = inside.strip_suffix(&format!("-----END {label}-----"))?;
    base64(&inside.split_ascii_whitespace().collect::<String>())
}

pub(super) fn base64(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_fields_are_decoded_again() {
        let bytes = [
            strings(&[b"ssh", b""]),
            number(&[0, 0, 0x80]),
            number(&[]),
            vec![0, 0, 0, 7],
        ]
        .concat();
        let mut reader = SshReader(&bytes);
        assert_eq!(
            (reader.text(), reader.string()),
            (Some("ssh"), Some(&[][..]))
        );
        assert_eq!(
            (reader.number(), reader.number()),
            (Some(&[0x80][..]), Some(&[][..]))
        );
        assert_eq!((reader.u32(), reader.u32()), (Some(7), None));
        assert_eq!(SshReader(&[0, 0, 0, 9, 1]).string(), None);
        assert_eq!(SshReader(&[0, 0, 0, 1, 0x80]).number(), None);
        assert_eq!(SshReader(&[1]).end(), None);
    }

    #[test]
    fn armor_is_removed_again() {
        let bytes: Vec<u8> = (0..=255).collect();
        let text = armor("X Y", &bytes);
        assert!(text.lines().all(|line| line.len() <= 70) && text.ends_with("-----END X Y-----\n"));
        assert_eq!(dearmor("X Y", &text), Some(bytes));
        assert_eq!(dearmor("X", &text), None);
        assert_eq!(
            dearmor("X Y", "-----BEGIN X Y-----\n%\n-----END X Y-----"),
            None
        );
    }
}
