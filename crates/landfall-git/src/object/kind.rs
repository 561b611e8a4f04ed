//! The types of objects.

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
