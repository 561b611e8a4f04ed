//! Requests to a server: the commands of version 2, and the one request of version 0.

use super::packet::{Packet, Packets};
use crate::error::GitError;
use crate::object::ObjectId;

/// A request to `git-upload-pack`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UploadPackRequest {
    /// A request for the list of refs.
    ListRefs(RefsRequest),
    /// A request for a pack.
    Fetch(FetchRequest),
}

/// A request for the list of refs, in version 2.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RefsRequest {
    /// The prefixes of the names to list; if it is empty, all refs are listed.
    pub prefixes: Vec<String>,
    /// Whether the targets of annotated tags are listed.
    pub peel: bool,
    /// Whether the branch that `HEAD` points to is listed.
    pub symrefs: bool,
}

/// A request for a pack.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FetchRequest {
    /// The objects that the client wants with everything that they need.
    pub wants: Vec<ObjectId>,
    /// The commits that the client has.
    pub haves: Vec<ObjectId>,
    /// The commits whose parents the client does not have.
    pub shallow: Vec<ObjectId>,
    /// The maximum number of commits that are sent from each history; `None` means no limit.
    pub depth: Option<u32>,
    /// Whether files are left out unless they are wanted by their ids.
    pub without_blobs: bool,
    /// Whether annotated tags are sent together with the commits that they name.
    pub include_tags: bool,
    /// Whether the client reads deltas that name their base by an offset.
    pub offset_deltas: bool,
    /// Whether the client ended the negotiation and expects the pack.
    pub done: bool,
    /// Whether the pack is sent in packets with bands. Always true in version 2.
    pub bands: bool,
}

impl UploadPackRequest {
    /// Reads a request of version 2.
    ///
    /// # Errors
    /// If it is not valid, or needs a feature that the server does not offer.
    pub fn parse(message: &[u8]) -> Result<UploadPackRequest, GitError> {
        let mut lines = Lines::new(message);
        let mut command = None;
        // the command and the capabilities of the client, up to the delimiter
        while let Some(line) = lines.next_line()? {
            match line.split_once('=') {
                Some(("command", word)) => command = Some(word.to_owned()),
                Some(("object-format", format)) if format != "sha1" => {
                    return Err(GitError::Unsupported("this repository uses SHA-1"));
                }
                _ => {}
            }
        }
        match command.as_deref() {
            Some("ls-refs") => lines.refs_request().map(UploadPackRequest::ListRefs),
            Some("fetch") => lines.fetch_request().map(UploadPackRequest::Fetch),
            _ => Err(GitError::Protocol("the command is not known".into())),
        }
    }
}

impl FetchRequest {
    /// Reads a request of version 0.
    ///
    /// # Errors
    /// If it is not valid, or needs a feature that the server does not offer.
    pub fn parse_version_0(message: &[u8]) -> Result<FetchRequest, GitError> {
        let mut request = FetchRequest::default();
        for packet in Packets::new(message) {
            let Some(line) = packet?.line().map(str::to_owned) else {
                continue;
            };
            // the capabilities follow the first want
            let mut words = line.splitn(3, ' ');
            let key = words.next();
            let value = words.next();
            for capability in words.next().unwrap_or_default().split(' ') {
                match capability {
                    "side-band-64k" => request.bands = true,
                    "ofs-delta" => request.offset_deltas = true,
                    "include-tag" => request.include_tags = true,
                    _ => {}
                }
            }
            let line = [key, value]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
                .join(" ");
            request.add(&line)?;
        }
        Ok(request)
    }

    fn add(&mut self, line: &str) -> Result<(), GitError> {
        let id = |text: &str| text.parse::<ObjectId>().map_err(GitError::Protocol);
        match line.split_once(' ').unwrap_or((line, "")) {
            ("want", text) => self.wants.push(id(text)?),
            ("have", text) => self.haves.push(id(text)?),
            ("shallow", text) => self.shallow.push(id(text)?),
            ("deepen", text) => {
                let depth: u32 = text
                    .parse()
                    .map_err(|_| GitError::Protocol("the depth is not a number".into()))?;
                self.depth = Some(depth).filter(|depth| *depth > 0);
            }
            ("filter", "blob:none") => self.without_blobs = true,
            ("filter", _) => {
                return Err(GitError::Unsupported(
                    "only the filter blob:none is offered",
                ));
            }
            ("deepen-since" | "deepen-not" | "deepen-relative", _) => {
                return Err(GitError::Unsupported(
                    "only --depth is offered for shallow clones",
                ));
            }
            ("ofs-delta", _) => self.offset_deltas = true,
            ("include-tag", _) => self.include_tags = true,
            ("done", _) => self.done = true,
            // `thin-pack` and `no-progress` are ignored, because the server never sends a thin pack
            // or progress messages
            _ => {}
        }
        Ok(())
    }
}

/// The lines of a message, section by section.
struct Lines<'a>(Packets<'a>);

impl<'a> Lines<'a> {
    fn new(message: &'a [u8]) -> Lines<'a> {
        Lines(Packets::new(message))
    }

    /// The next line of the section; `None` at its end.
    fn next_line(&mut self) -> Result<Option<&'a str>, GitError> {
        match self.0.next().transpose()? {
            Some(packet @ Packet::Data(_)) => packet
                .line()
                .map(Some)
                .ok_or_else(|| GitError::Protocol("a line is not UTF-8".into())),
            _ => Ok(None),
        }
    }

    fn refs_request(mut self) -> Result<RefsRequest, GitError> {
        let mut request = RefsRequest::default();
        while let Some(line) = self.next_line()? {
            match line.split_once(' ').unwrap_or((line, "")) {
                ("ref-prefix", prefix) => request.prefixes.push(prefix.to_owned()),
                ("peel", _) => request.peel = true,
                ("symrefs", _) => request.symrefs = true,
                _ => {}
            }
        }
        Ok(request)
    }

    fn fetch_request(mut self) -> Result<FetchRequest, GitError> {
        let mut request = FetchRequest {
            bands: true,
            ..FetchRequest::default()
        };
        while let Some(line) = self.next_line()? {
            request.add(line)?;
        }
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{fetch_request, ls_refs_request};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_requests_of_landfall_itself_are_read() {
        let id: ObjectId = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391".parse().unwrap();
        let request = UploadPackRequest::parse(&ls_refs_request()).unwrap();
        let UploadPackRequest::ListRefs(refs) = request else {
            panic!("{request:?}")
        };
        assert!(refs.peel && refs.symrefs && refs.prefixes.contains(&"HEAD".to_owned()));
        let request = UploadPackRequest::parse(&fetch_request(&[id], &[id], Some(3))).unwrap();
        let expected = FetchRequest {
            wants: vec![id],
            haves: vec![id],
            depth: Some(3),
            offset_deltas: true,
            done: true,
            bands: true,
            ..FetchRequest::default()
        };
        assert_eq!(request, UploadPackRequest::Fetch(expected));
    }

    #[test]
    fn a_request_of_version_0_has_its_capabilities_after_the_first_want() {
        let id = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391";
        let first = format!("want {id} side-band-64k ofs-delta agent=x\n");
        let message = format!("{:04x}{first}000ddeepen 1\n00000009done\n", first.len() + 4);
        let request = FetchRequest::parse_version_0(message.as_bytes()).unwrap();
        assert!(request.bands && request.offset_deltas && request.done);
        assert_eq!((request.depth, request.wants.len()), (Some(1), 1));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_request_or_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = UploadPackRequest::parse(&bytes);
            let _ = FetchRequest::parse_version_0(&bytes);
        }
    }
}
