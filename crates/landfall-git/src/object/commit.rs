//! The links of commits and annotated tags to other objects.

use super::id::ObjectId;
use super::kind::GitObjectKind;

/// The objects that a commit names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitLinks {
    /// The folder that the commit records.
    pub tree: ObjectId,
    /// The parents, in the order in which the commit lists them.
    pub parents: Vec<ObjectId>,
}

impl CommitLinks {
    /// Reads the first lines of a commit. `None` if they are not those of a commit.
    pub fn parse(content: &[u8]) -> Option<CommitLinks> {
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
pub struct TagTarget {
    /// The object.
    pub id: ObjectId,
    /// The type of the object, as the tag says.
    pub kind: GitObjectKind,
}

impl TagTarget {
    /// Reads the first lines of an annotated tag. `None` if they are not those of a tag.
    pub fn parse(content: &[u8]) -> Option<TagTarget> {
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
