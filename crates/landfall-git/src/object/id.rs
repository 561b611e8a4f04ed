//! The id of an object: the SHA-1 of its header and content.

use super::kind::GitObjectKind;
use std::fmt;
use std::str::FromStr;

/// The id of a git object.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId([u8; ObjectId::BYTES]);

impl ObjectId {
    /// The length of an id in bytes.
    pub const BYTES: usize = 20;

    /// The id that means "no object" in the protocol.
    pub const ZERO: ObjectId = ObjectId([0; ObjectId::BYTES]);

    /// Computes the id of an object. `None` if the content is part of a known attack on SHA-1.
    pub fn of_object(kind: GitObjectKind, content: &[u8]) -> Option<ObjectId> {
        use sha1_checked::Digest;
        let mut hasher = sha1_checked::Sha1::new();
        hasher.update(format!("{} {}\0", kind.word(), content.len()));
        hasher.update(content);
        let result = hasher.try_finalize();
        (!result.has_collision()).then(|| ObjectId((*result.hash()).into()))
    }

    /// The id in the first 20 bytes of `bytes`; `None` if there are fewer.
    pub fn from_prefix(bytes: &[u8]) -> Option<ObjectId> {
        Some(ObjectId(*bytes.first_chunk()?))
    }

    /// The bytes of the id.
    pub fn as_bytes(&self) -> &[u8; ObjectId::BYTES] {
        &self.0
    }
}

impl FromStr for ObjectId {
    type Err = String;

    fn from_str(text: &str) -> Result<ObjectId, String> {
        let invalid = || format!("'{}' is not an object id", text.escape_default());
        // upper case would give one object two names
        let is_hex = |byte: u8| {
            byte.is_ascii_digit() || (byte.is_ascii_hexdigit() && byte.is_ascii_lowercase())
        };
        if text.len() != 2 * ObjectId::BYTES || !text.bytes().all(is_hex) {
            return Err(invalid());
        }
        let mut bytes = [0; ObjectId::BYTES];
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).map_err(|_| invalid())?;
        }
        Ok(ObjectId(bytes))
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_those_of_git() {
        // `git hash-object` of an empty blob and an empty tree
        for (kind, id) in [
            (
                GitObjectKind::Blob,
                "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
            ),
            (
                GitObjectKind::Tree,
                "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
            ),
        ] {
            assert_eq!(ObjectId::of_object(kind, b"").unwrap().to_string(), id);
            assert_eq!(id.parse::<ObjectId>().unwrap().to_string(), id);
        }
    }

    #[test]
    fn other_texts_are_not_ids() {
        for text in [
            "",
            "e69d",
            "E69DE29BB2D1D6434B8B29AE775AD8C2E48C5391",
            &"é".repeat(20),
        ] {
            assert!(text.parse::<ObjectId>().is_err(), "{text}");
        }
    }
}
