//! The first answer of a server: the version of the protocol that it speaks and, in version 0, its
//! refs; and what depends on them. Azure DevOps speaks only version 0, and so do servers behind a
//! gateway that removes the header `Git-Protocol`.

use super::{
    OfferedRef, PackStream, PackStreamState, Packet, PacketBuffer, fetch_request, push_flush,
    push_text,
};
use crate::GitError;
use crate::object::ObjectId;

/// What a server offers in its first answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Advertisement {
    /// The branches, tags and `HEAD` of a server that speaks version 0. In version 2, they are
    /// requested with a command.
    pub refs: Option<Vec<OfferedRef>>,
    /// The capabilities of a server that speaks version 0.
    capabilities: Vec<String>,
}

impl Advertisement {
    /// Whether the server speaks version 2 of the protocol.
    pub fn is_version_2(&self) -> bool {
        self.refs.is_none()
    }

    /// The request for a pack with all objects that are reachable from `wants` but not from
    /// `haves`. If `depth` is given, only the last `depth` commits of each history are requested.
    ///
    /// # Errors
    /// If the server does not support such a request.
    pub fn fetch_request(
        &self,
        wants: &[ObjectId],
        haves: &[ObjectId],
        depth: Option<u32>,
    ) -> Result<Vec<u8>, GitError> {
        if self.is_version_2() {
            return Ok(fetch_request(wants, haves, depth));
        }
        let offers = |word: &&str| self.capabilities.iter().any(|offered| offered == *word);
        let Some(bands) = ["side-band-64k", "side-band"].into_iter().find(offers) else {
            return Err(GitError::Unsupported(
                "the server sends packs without bands (side-band), which landfall does not support",
            ));
        };
        if depth.is_some() && !offers(&"shallow") {
            return Err(GitError::Unsupported(
                "the server does not support `depth`; remove it from the manifest",
            ));
        }
        // Azure DevOps refuses clients that do not support several acknowledgements
        let acknowledgements = ["multi_ack_detailed", "multi_ack"];
        let acknowledgements = acknowledgements.into_iter().find(offers);
        // without `thin-pack`, so that all bases of deltas are in the pack
        let others = ["no-progress", "ofs-delta"].into_iter().filter(offers);
        let words = acknowledgements.into_iter().chain([bands]).chain(others);
        // the capabilities follow the first object
        let mut words: String = words.flat_map(|word| [" ", word]).collect();
        let mut request = Vec::new();
        for id in wants {
            let words = std::mem::take(&mut words);
            push_text(&mut request, &format!("want {id}{words}"));
        }
        if let Some(depth) = depth {
            push_text(&mut request, &format!("deepen {depth}"));
        }
        push_flush(&mut request);
        for id in haves {
            push_text(&mut request, &format!("have {id}"));
        }
        // no negotiation: the server sends the pack at once
        push_text(&mut request, "done");
        Ok(request)
    }

    /// Finds the pack in the answer to [`Advertisement::fetch_request`].
    pub fn pack_stream(&self) -> PackStream {
        PackStream {
            state: if self.is_version_2() {
                PackStreamState::Head
            } else {
                PackStreamState::Acknowledgement
            },
            ..PackStream::default()
        }
    }
}

/// Reads the first answer of a server, which arrives in pieces of any size, and keeps only the
/// refs.
pub struct AdvertisementStream {
    packets: PacketBuffer,
    section: Section,
    is_version_2: bool,
    refs: Vec<OfferedRef>,
    most: usize,
    capabilities: Vec<String>,
}

/// The part of the answer that is being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    /// The name of the service, which some servers omit.
    Service,
    /// The version, or the refs of version 0.
    Content,
    /// After the end.
    Done,
}

impl AdvertisementStream {
    /// Accepts at most `most` refs, whatever their names are.
    pub fn new(most: usize) -> AdvertisementStream {
        AdvertisementStream {
            packets: PacketBuffer::default(),
            section: Section::Service,
            is_version_2: false,
            refs: Vec::new(),
            most,
            capabilities: Vec::new(),
        }
    }

    /// Reads the next bytes of the answer.
    ///
    /// # Errors
    /// If the server reports an error, its repository uses SHA-256, it has too many refs, or the
    /// bytes are not the first answer of a server.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), GitError> {
        let mut packets = std::mem::take(&mut self.packets);
        let read = packets.push(bytes, |packet| self.accept(packet));
        self.packets = packets;
        read
    }

    fn accept(&mut self, packet: Packet<'_>) -> Result<(), GitError> {
        match (self.section, packet) {
            // bytes after the end are ignored
            (Section::Done, _) | (Section::Service, Packet::Data([b'#', ..])) => Ok(()),
            (Section::Service, Packet::Flush) => {
                self.section = Section::Content;
                Ok(())
            }
            (Section::Content, Packet::Flush) => {
                self.section = Section::Done;
                Ok(())
            }
            (_, Packet::Data(data)) => {
                self.section = Section::Content;
                self.read_line(&String::from_utf8_lossy(data))
            }
            (_, Packet::Delimiter | Packet::ResponseEnd) => Err(not_a_ref()),
        }
    }

    /// Reads the version, a capability of version 2, or `<id> <name>`.
    fn read_line(&mut self, line: &str) -> Result<(), GitError> {
        // the capabilities of version 0 follow the first ref
        let (line, capabilities) = line.split_once('\0').unwrap_or((line, ""));
        let line = line.trim_end();
        if self.capabilities.is_empty() {
            let words = capabilities.split_whitespace();
            self.capabilities = words.map(str::to_owned).collect();
        }
        let mut words = line.split(' ').chain(capabilities.split_whitespace());
        if words.any(|word| word.starts_with("object-format=") && word != "object-format=sha1") {
            return Err(GitError::Unsupported(
                "the repository uses SHA-256, which landfall does not support",
            ));
        }
        if self.is_version_2 || line == "version 2" {
            self.is_version_2 = true;
            return Ok(());
        }
        let (id, name) = line.split_once(' ').ok_or_else(not_a_ref)?;
        // version 1 differs by this line only; `shallow` are commits at which the history ends
        if matches!(id, "version" | "shallow") {
            return Ok(());
        }
        let id: ObjectId = id.parse().map_err(|_| not_a_ref())?;
        if let Some(tag) = name.strip_suffix("^{}") {
            // not that of the line with the capabilities of a repository without refs
            if let Some(last) = self.refs.last_mut().filter(|last| last.name == tag) {
                last.peeled = Some(id);
            }
            return Ok(());
        }
        let is_listed = name == "HEAD"
            || ["refs/heads/", "refs/tags/"]
                .iter()
                .any(|prefix| name.starts_with(prefix));
        if !is_listed {
            return Ok(());
        }
        GitError::check_refs(self.refs.len() + 1, self.most)?;
        self.refs.push(OfferedRef {
            name: name.to_owned(),
            id,
            peeled: None,
            target: None,
        });
        Ok(())
    }

    /// What the server offers.
    ///
    /// # Errors
    /// If the answer is cut off.
    pub fn finish(self) -> Result<Advertisement, GitError> {
        if self.section != Section::Done && !self.is_version_2 {
            return Err(GitError::Protocol("the list of refs is cut off".into()));
        }
        if self.is_version_2 {
            return Ok(Advertisement::default());
        }
        let mut refs = self.refs;
        let mut words = self.capabilities.iter();
        let target = words.find_map(|word| word.strip_prefix("symref=HEAD:"));
        if let Some(head) = refs.iter_mut().find(|one| one.name == "HEAD") {
            head.target = target.map(str::to_owned);
        }
        Ok(Advertisement {
            refs: Some(refs),
            capabilities: self.capabilities,
        })
    }
}

fn not_a_ref() -> GitError {
    GitError::Protocol(
        "the server does not offer version 2 of git's protocol, and a line of its list of refs is \
         not a ref"
            .into(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::push_data;
    use proptest::prelude::*;

    const ID: &str = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391";

    fn advertisement(lines: &[&str]) -> Vec<u8> {
        let mut message = Vec::new();
        push_text(&mut message, "# service=git-upload-pack");
        push_flush(&mut message);
        lines.iter().for_each(|line| push_text(&mut message, line));
        push_flush(&mut message);
        message
    }

    fn read(message: &[u8], size: usize) -> Result<Advertisement, GitError> {
        let mut stream = AdvertisementStream::new(3);
        let mut pieces = message.chunks(size);
        pieces.try_for_each(|piece| stream.push(piece))?;
        stream.finish()
    }

    #[test]
    fn only_repositories_with_sha1_are_accepted() {
        let accepted = advertisement(&["version 2", "ls-refs=unborn", "object-format=sha1"]);
        assert!(read(&accepted, 9).unwrap().is_version_2());
        // without the name of the service
        assert!(read(&accepted[34..], 9).unwrap().is_version_2());
        let first = format!("{ID} HEAD\0multi_ack object-format=sha256");
        for lines in [
            &["version 2", "object-format=sha256"][..],
            &[first.as_str()],
        ] {
            let error = read(&advertisement(lines), 1000).unwrap_err();
            assert!(error.to_string().contains("SHA-256"), "{error}");
        }
        for message in [&advertisement(&["x"])[..], b"<html>", b""] {
            assert!(read(message, 1000).is_err());
        }
    }

    #[test]
    fn version_0_lists_the_refs_at_once() {
        let lines = [
            format!("{ID} HEAD\0multi_ack side-band side-band-64k symref=HEAD:refs/heads/main"),
            format!("{ID} refs/heads/main"),
            format!("{ID} refs/pull/1/head"),
            format!("{ID} refs/tags/v1"),
            format!("{ID} refs/tags/v1^{{}}"),
            format!("shallow {ID}"),
        ];
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let message = advertisement(&lines);
        let offered = read(&message, 1000).unwrap();
        for size in [1, 3, 77] {
            assert_eq!(read(&message, size).unwrap(), offered, "{size}");
        }
        let refs = offered.refs.as_deref().unwrap();
        let names: Vec<&str> = refs.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["HEAD", "refs/heads/main", "refs/tags/v1"]);
        assert_eq!(refs[0].target.as_deref(), Some("refs/heads/main"));
        assert_eq!(refs[2].peeled, ID.parse().ok());
        assert!(read(&message[..message.len() - 4], 1000).is_err());
        let second = format!("{ID} refs/tags/v2");
        let more = [&lines[..], &[second.as_str()]].concat();
        let error = read(&advertisement(&more), 1000).unwrap_err();
        assert!(error.to_string().contains("more refs"), "{error}");
        let zeros = "0".repeat(40);
        let empty = advertisement(&[&*format!("{zeros} capabilities^{{}}\0multi_ack")]);
        assert_eq!(read(&empty, 1000).unwrap().refs, Some(Vec::new()));
    }

    #[test]
    fn a_pack_of_version_0_is_requested_and_found() {
        let id: ObjectId = ID.parse().unwrap();
        let of = |capabilities: &str| {
            let message = advertisement(&[&*format!("{ID} HEAD\0{capabilities}")]);
            read(&message, 1000).unwrap()
        };
        let offered = of("multi_ack thin-pack side-band side-band-64k shallow ofs-delta");
        let request = offered.fetch_request(&[id, id], &[id], Some(3)).unwrap();
        assert_eq!(
            String::from_utf8(request).unwrap(),
            format!(
                "0054want {ID} multi_ack side-band-64k ofs-delta\n0032want {ID}\n\
                 000ddeepen 3\n00000032have {ID}\n0009done\n"
            )
        );
        assert!(of("multi_ack").fetch_request(&[id], &[], None).is_err());
        assert!(of("side-band").fetch_request(&[id], &[], Some(1)).is_err());
        // the last one ends the acknowledgements
        let common = format!("ACK {ID} common");
        let ready = format!("ACK {ID} ready");
        let continued = format!("ACK {ID} continue");
        let last = format!("ACK {ID}");
        for acknowledgements in [
            &["NAK"][..],
            &[common.as_str(), ready.as_str(), last.as_str()],
            &[continued.as_str(), last.as_str()],
            &[last.as_str()],
        ] {
            let mut answer = Vec::new();
            push_text(&mut answer, &format!("shallow {ID}"));
            push_flush(&mut answer);
            for line in acknowledgements {
                push_text(&mut answer, line);
            }
            push_data(&mut answer, b"\x02Counting objects");
            push_data(&mut answer, b"\x01PACK");
            push_flush(&mut answer);
            for size in [1, 7, 1000] {
                let mut stream = offered.pack_stream();
                let mut pack = Vec::new();
                for piece in answer.chunks(size) {
                    stream.push(piece, &mut pack).unwrap();
                }
                stream.finish().unwrap();
                assert_eq!(pack, b"PACK", "{acknowledgements:?}");
            }
        }
        let mut pack = Vec::new();
        assert!(
            offered
                .pack_stream()
                .push(b"0009done\n", &mut pack)
                .is_err()
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_advertisement_or_an_error(
            bytes in prop::collection::vec(any::<u8>(), 0..200)
        ) {
            let _ = read(&bytes, 7);
        }
    }
}
