//! The ids, types and names of objects: an id is the SHA-1 of an object's header and content.

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

// The types of objects.

/// The type of a git object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GitObjectKind {
    /// A commit.
    Commit,
    /// A folder.
    Tree,
    /// The content of a file.
    Blob,
    /// An annotated tag.
    Tag,
}

impl GitObjectKind {
    /// The word for this type in the header that is hashed with an object.
    pub fn word(self) -> &'static str {
        match self {
            GitObjectKind::Commit => "commit",
            GitObjectKind::Tree => "tree",
            GitObjectKind::Blob => "blob",
            GitObjectKind::Tag => "tag",
        }
    }

    /// The number in the header of a pack entry (gitformat-pack).
    pub(crate) fn number(self) -> u8 {
        match self {
            GitObjectKind::Commit => 1,
            GitObjectKind::Tree => 2,
            GitObjectKind::Blob => 3,
            GitObjectKind::Tag => 4,
        }
    }

    /// The type with this [`word`](GitObjectKind::word).
    pub(crate) fn from_word(word: &[u8]) -> Option<GitObjectKind> {
        use GitObjectKind::{Blob, Commit, Tag, Tree};
        [Commit, Tree, Blob, Tag]
            .into_iter()
            .find(|kind| kind.word().as_bytes() == word)
    }
}

/// Whether `name` is the full name of a branch, a tag or another ref: `refs/…/…`, by the rules of
/// git-check-ref-format and some stricter ones. Such a name is safe as a relative path: it cannot
/// leave its folder.
pub fn is_ref_name(name: &str) -> bool {
    /// The maximum length in bytes, which fits into a packet and a path.
    const MAX: usize = 1024;
    let is_component = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && !part.ends_with('.')
            && !part.to_ascii_lowercase().ends_with(".lock")
    };
    name.len() <= MAX
        && name
            .strip_prefix("refs/")
            .is_some_and(|rest| rest.contains('/'))
        && name.split('/').all(is_component)
        && !name.contains("..")
        && !name.contains("@{")
        && !name.contains(|c: char| {
            c.is_control()
                || c.is_whitespace()
                // replaces bytes that are not UTF-8, so different names could become equal
                || matches!(c, '~' | '^' | ':' | '?' | '*' | '[' | '\\' | '\u{fffd}')
        })
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

    #[test]
    fn only_valid_full_names_are_ref_names() {
        for name in ["refs/heads/main", "refs/tags/v1.0-rc.1", "refs/heads/a/b@c"] {
            assert!(is_ref_name(name), "{name}");
        }
        for name in [
            "",
            "main",
            "refs/",
            "refs/x",
            "HEAD",
            "refs/heads/",
            "refs/heads/../x",
            "refs/heads/a..b",
            "refs/heads/.a",
            "refs/heads/a.lock",
            "refs/heads/a b",
            "refs//a",
            "refs/heads/a\nb",
            "/refs/heads/a",
            "refs/heads/a\\b",
            "refs/heads/a.",
            "refs/heads/@{",
            "refs/heads/\u{fffd}",
        ] {
            assert!(!is_ref_name(name), "{name}");
        }
    }
}
