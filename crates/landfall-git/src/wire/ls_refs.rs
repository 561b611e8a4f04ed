//! The command `ls-refs`: the list of the refs of a repository.

use super::packet::{Packet, PacketBuffer, push_delimiter, push_flush, push_text};
use crate::error::GitError;
use crate::object::ObjectId;

/// A ref of a remote repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteRef {
    /// The full name: `HEAD` or `refs/…`. It may be one that [`is_ref_name`](crate::is_ref_name)
    /// refuses; U+FFFD replaces bytes that are not UTF-8.
    pub name: String,
    /// The object that the ref points to; for an annotated tag, the tag object and not the commit
    /// that it names.
    pub id: ObjectId,
    /// The object that an annotated tag names in the end.
    pub peeled: Option<ObjectId>,
    /// For `HEAD`: the ref that it points to, if the server says so. `None` for every other ref.
    pub target: Option<String>,
}

/// The request for all branches and tags and `HEAD`.
pub fn ls_refs_request() -> Vec<u8> {
    let mut request = Vec::new();
    push_text(&mut request, "command=ls-refs");
    push_text(&mut request, "agent=landfall");
    push_text(&mut request, "object-format=sha1");
    push_delimiter(&mut request);
    for line in [
        "peel",
        "symrefs",
        "ref-prefix HEAD",
        "ref-prefix refs/heads/",
        "ref-prefix refs/tags/",
    ] {
        push_text(&mut request, line);
    }
    push_flush(&mut request);
    request
}

/// Reads the answer to [`ls_refs_request`], which arrives in pieces of any size, and keeps only the
/// refs.
pub struct RefListStream {
    packets: PacketBuffer,
    refs: Vec<RemoteRef>,
    most: usize,
    is_done: bool,
}

impl RefListStream {
    /// Accepts at most `most` refs, whatever their names are.
    pub fn new(most: usize) -> RefListStream {
        RefListStream {
            packets: PacketBuffer::default(),
            refs: Vec::new(),
            most,
            is_done: false,
        }
    }

    /// Reads the next bytes of the answer.
    ///
    /// # Errors
    /// If the server reports an error, the bytes are not an answer to [`ls_refs_request`], or it
    /// has too many refs.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), GitError> {
        let RefListStream {
            packets,
            refs,
            most,
            is_done,
        } = self;
        packets.push(bytes, |packet| match packet {
            // bytes after the end are ignored
            _ if *is_done => Ok(()),
            Packet::Flush => {
                *is_done = true;
                Ok(())
            }
            Packet::Data(data) if refs.len() < *most => {
                let line = String::from_utf8_lossy(data);
                let found = parse_ref(line.strip_suffix('\n').unwrap_or(&line));
                refs.push(found.ok_or_else(not_a_ref)?);
                Ok(())
            }
            Packet::Data(_) => Err(GitError::TooLarge {
                what: "the repository has more refs",
                limit: *most as u64,
            }),
            Packet::Delimiter | Packet::ResponseEnd => Err(not_a_ref()),
        })
    }

    /// The refs.
    ///
    /// # Errors
    /// If the answer is cut off.
    pub fn finish(self) -> Result<Vec<RemoteRef>, GitError> {
        if self.is_done {
            return Ok(self.refs);
        }
        Err(GitError::Protocol("the list of refs is cut off".into()))
    }
}

fn not_a_ref() -> GitError {
    GitError::Protocol("a line of the list of refs is not a ref".into())
}

/// Reads `<id> <name>[ symref-target:<name>][ peeled:<id>]`.
fn parse_ref(line: &str) -> Option<RemoteRef> {
    let mut words = line.split(' ');
    let id = words.next()?.parse().ok()?;
    let name = words.next()?.to_owned();
    let mut found = RemoteRef {
        name,
        id,
        peeled: None,
        target: None,
    };
    for word in words {
        if let Some(peeled) = word.strip_prefix("peeled:") {
            found.peeled = Some(peeled.parse().ok()?);
        } else if let Some(target) = word.strip_prefix("symref-target:") {
            found.target = (found.name == "HEAD").then(|| target.to_owned());
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::super::packet::push_data;
    use super::*;
    use crate::object::is_ref_name;

    const ID: &str = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391";

    #[test]
    fn refs_have_ids_and_their_attributes() {
        let mut message = Vec::new();
        push_text(
            &mut message,
            &format!("{ID} HEAD symref-target:refs/heads/main"),
        );
        push_text(&mut message, &format!("{ID} refs/tags/v1 peeled:{ID}"));
        push_text(&mut message, &format!("{ID} refs/heads/../../etc"));
        push_data(
            &mut message,
            &[ID.as_bytes(), b" refs/heads/\xe4\n"].concat(),
        );
        let read = |message: &[u8], most: usize, size: usize| {
            let mut stream = RefListStream::new(most);
            let mut pieces = message.chunks(size);
            pieces.try_for_each(|piece| stream.push(piece))?;
            stream.finish()
        };
        assert!(read(&message, 9, 9).is_err(), "no flush");
        push_flush(&mut message);
        let refs = read(&message, 4, 1000).unwrap();
        for size in [1, 3, 77] {
            assert_eq!(read(&message, 4, size).unwrap(), refs, "{size}");
        }
        assert_eq!(refs.len(), 4);
        assert_eq!(refs[0].target.as_deref(), Some("refs/heads/main"));
        assert_eq!(refs[1].peeled, ID.parse().ok());
        assert_eq!(refs[3].name, "refs/heads/\u{fffd}");
        assert!(!is_ref_name(&refs[2].name) && !is_ref_name(&refs[3].name));
        assert!(read(&message, 3, 1000).is_err());
        let error = read(b"000aERR no", 9, 2).unwrap_err();
        assert_eq!(error.to_string(), "the server answered: no");
    }
}
