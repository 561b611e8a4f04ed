//! Git objects: their ids, types and contents, and the names of refs.

mod config_file;
mod tree;

use landfall_model::{hex, unhex};
use std::fmt;
use std::str::FromStr;

pub use self::config_file::{LfsConfig, LfsPointer};
pub(crate) use self::config_file::{parse_config, parse_gitmodules};
pub(crate) use self::tree::{EntryMode, TreeEntries, TreeEntry};

// The ids, types and names of objects: an id is the SHA-1 of an object's header and content.

/// The id of a git object.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, derive_more::Debug)]
#[debug("{self}")]
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
    pub(crate) fn from_prefix(bytes: &[u8]) -> Option<ObjectId> {
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
        // upper case would give one object two names
        unhex(text)
            .map(ObjectId)
            .ok_or_else(|| format!("'{}' is not an object id", text.escape_default()))
    }
}

/// Whether all characters are hexadecimal digits. Upper case would give one object two names.
pub(crate) fn is_hex(text: &str) -> bool {
    text.bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

// The types of objects.

/// The type of a git object, with its number in the header of a pack entry (gitformat-pack).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GitObjectKind {
    /// A commit.
    Commit = 1,
    /// A folder.
    Tree = 2,
    /// The content of a file.
    Blob = 3,
    /// An annotated tag.
    Tag = 4,
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

// The links of commits and annotated tags to other objects.

/// The objects that a commit names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommitLinks {
    /// The folder that the commit records.
    pub tree: ObjectId,
    /// The parents, in the order in which the commit lists them.
    pub parents: Vec<ObjectId>,
}

impl CommitLinks {
    /// Reads the first lines of a commit. `None` if they are not those of a commit.
    pub(crate) fn parse(content: &[u8]) -> Option<CommitLinks> {
        let (tree, mut rest) = id_line(content, b"tree ")?;
        let mut parents = Vec::new();
        while let Some((parent, after)) = id_line(rest, b"parent ") {
            parents.push(parent);
            rest = after;
        }
        rest.starts_with(b"author ")
            .then_some(CommitLinks { tree, parents })
    }
}

/// The object that an annotated tag names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TagTarget {
    /// The object.
    pub id: ObjectId,
    /// The type of the object, as the tag says.
    pub kind: GitObjectKind,
}

impl TagTarget {
    /// Reads the first lines of an annotated tag. `None` if they are not those of a tag.
    pub(crate) fn parse(content: &[u8]) -> Option<TagTarget> {
        let (id, rest) = id_line(content, b"object ")?;
        let rest = rest.strip_prefix(b"type ")?;
        let end = rest.iter().position(|byte| *byte == b'\n')?;
        let kind = GitObjectKind::from_word(&rest[..end])?;
        rest[end + 1..]
            .starts_with(b"tag ")
            .then_some(TagTarget { id, kind })
    }
}

/// The name that an annotated tag gives itself. `None` if the content is not that of a tag.
pub fn tag_name(content: &[u8]) -> Option<&[u8]> {
    let (_, rest) = id_line(content, b"object ")?;
    let mut lines = rest.split(|byte| *byte == b'\n');
    lines.next()?.strip_prefix(b"type ")?;
    lines.next()?.strip_prefix(b"tag ")
}

/// Reads a line with `key` and an id. Returns the id and the bytes after the line.
fn id_line<'a>(content: &'a [u8], key: &[u8]) -> Option<(ObjectId, &'a [u8])> {
    const HEX: usize = 2 * ObjectId::BYTES;
    let rest = content.strip_prefix(key)?;
    let (hex, rest) = rest.split_at_checked(HEX)?;
    let id = std::str::from_utf8(hex).ok()?.parse().ok()?;
    Some((id, rest.strip_prefix(b"\n")?))
}

/// A signed commit or annotated tag, split into the signed bytes and the signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedObject {
    /// The bytes that are signed: the object without its signature.
    pub payload: Vec<u8>,
    /// The armored signature.
    pub signature: Vec<u8>,
}

/// The lines with which signatures of tags begin (gitformat-signature).
const SIGNATURE_LINES: [&[u8]; 4] = [
    b"-----BEGIN PGP SIGNATURE-----",
    b"-----BEGIN PGP MESSAGE-----",
    b"-----BEGIN SSH SIGNATURE-----",
    b"-----BEGIN SIGNED MESSAGE-----",
];

/// The beginning of the header that contains the signature of a commit.
const SIGNATURE_HEADER: &[u8] = b"gpgsig ";

/// The part of a commit to which a line of its head belongs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CommitPart {
    Payload,
    Signature,
    /// The signature of the same commit in another object format. It is not among the signed bytes.
    OtherSignature,
}

impl SignedObject {
    /// Splits a commit. `None` if it has no signature.
    pub fn of_commit(content: &[u8]) -> Option<SignedObject> {
        let mut payload = Vec::new();
        let mut signature = Vec::new();
        let mut part = CommitPart::Payload;
        let mut rest = content;
        while let Some(line) = first_line(rest) {
            // an empty line ends the head; the message may contain anything
            if line == b"\n" {
                break;
            }
            rest = &rest[line.len()..];
            if !line.starts_with(b" ") {
                part = if line.starts_with(SIGNATURE_HEADER) {
                    CommitPart::Signature
                } else if line.starts_with(b"gpgsig") {
                    CommitPart::OtherSignature
                } else {
                    CommitPart::Payload
                };
            }
            match part {
                CommitPart::Payload => payload.extend(line),
                CommitPart::OtherSignature => {}
                // further lines of a header are indented by a space
                CommitPart::Signature => {
                    let text = line.strip_prefix(SIGNATURE_HEADER);
                    signature.extend(text.unwrap_or_else(|| &line[1..]));
                }
            }
        }
        payload.extend(rest);
        (!signature.is_empty()).then_some(SignedObject { payload, signature })
    }

    /// Splits an annotated tag. `None` if it has no signature.
    pub fn of_tag(content: &[u8]) -> Option<SignedObject> {
        let mut at = 0;
        let mut start = None;
        while let Some(line) = first_line(&content[at..]) {
            if SIGNATURE_LINES.iter().any(|begin| line.starts_with(begin)) {
                // as in git, the last one counts: the message may quote a signature
                start = Some(at);
            }
            at += line.len();
        }
        let (payload, signature) = content.split_at(start?);
        Some(SignedObject {
            payload: payload.to_vec(),
            signature: signature.to_vec(),
        })
    }

    /// The time of the commit or tag in seconds since 1970, as its signer wrote it.
    pub fn time(&self) -> Option<i64> {
        let mut rest = &self.payload[..];
        while let Some(line) = first_line(rest).filter(|line| *line != b"\n") {
            if line.starts_with(b"committer ") || line.starts_with(b"tagger ") {
                let text = std::str::from_utf8(line).ok()?;
                let (_, time) = text.rsplit_once("> ")?;
                return time.split(' ').next()?.parse().ok();
            }
            rest = &rest[line.len()..];
        }
        None
    }
}

/// The first line of `bytes` with its line break. `None` if there are no bytes.
fn first_line(bytes: &[u8]) -> Option<&[u8]> {
    let end = bytes.iter().position(|byte| *byte == b'\n');
    let line = &bytes[..end.map_or(bytes.len(), |end| end + 1)];
    (!line.is_empty()).then_some(line)
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

    const ID: &str = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391";

    #[test]
    fn a_commit_links_to_its_tree_and_parents() {
        let text =
            format!("tree {ID}\nparent {ID}\nparent {ID}\nauthor A <a> 0 +0000\n\nparent {ID}\n");
        let links = CommitLinks::parse(text.as_bytes()).unwrap();
        assert_eq!(
            (links.tree.to_string().as_str(), links.parents.len()),
            (ID, 2)
        );
        for bad in [
            "",
            "tree \n",
            &format!("tree {ID}"),
            &format!("parent {ID}\ntree {ID}\nauthor "),
        ] {
            assert_eq!(CommitLinks::parse(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn a_tag_names_an_object_and_its_type() {
        let target = TagTarget::parse(format!("object {ID}\ntype tree\ntag v1\n").as_bytes());
        assert_eq!(target.unwrap().kind, GitObjectKind::Tree);
        let content = format!("object {ID}\ntype tree\ntag v1\n");
        assert_eq!(tag_name(content.as_bytes()), Some(&b"v1"[..]));
        assert_eq!(
            TagTarget::parse(format!("object {ID}\ntype x\ntag v\n").as_bytes()),
            None
        );
    }

    const HEAD: &str = "tree e69de29bb2d1d6434b8b29ae775ad8c2e48c5391\nauthor A <a> 1 +0000\n\
                committer C <c> 1700000000 +0100\n";

    #[test]
    fn the_signature_of_a_commit_is_a_header() {
        let commit = format!(
            "{HEAD}gpgsig -----BEGIN SSH SIGNATURE-----\n U1NI\n \n -----END SSH SIGNATURE-----\n\
     gpgsig-sha256 x\n y\nencoding UTF-8\n\ngpgsig in the message\n"
        );
        let signed = SignedObject::of_commit(commit.as_bytes()).unwrap();
        assert_eq!(
            String::from_utf8(signed.payload.clone()).unwrap(),
            format!("{HEAD}encoding UTF-8\n\ngpgsig in the message\n")
        );
        assert_eq!(
            signed.signature,
            b"-----BEGIN SSH SIGNATURE-----\nU1NI\n\n-----END SSH SIGNATURE-----\n"
        );
        assert_eq!(signed.time(), Some(1_700_000_000));
        let unsigned = format!("{HEAD}\n-----BEGIN SSH SIGNATURE-----\n");
        assert_eq!(SignedObject::of_commit(unsigned.as_bytes()), None);
    }

    #[test]
    fn the_signature_of_a_tag_follows_its_message() {
        let payload = "object e69de29bb2d1d6434b8b29ae775ad8c2e48c5391\ntype commit\ntag v1\n\
               tagger T <t> 5 +0000\n\n-----BEGIN PGP SIGNATURE-----\nquoted\n";
        let signature = "-----BEGIN PGP SIGNATURE-----\nx\n-----END PGP SIGNATURE-----\n";
        let signed = SignedObject::of_tag(format!("{payload}{signature}").as_bytes()).unwrap();
        assert_eq!(signed.payload, payload.as_bytes());
        assert_eq!(signed.signature, signature.as_bytes());
        assert_eq!(signed.time(), Some(5));
        assert_eq!(SignedObject::of_tag(b"object x\n\n ----- no\n"), None);
    }
}
