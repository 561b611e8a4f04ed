//! Reads one entry of a bundle frame by frame. Each frame is verified before any byte of it is
//! returned.

use super::{FrameContent, OpenBundle};
use crate::format::damage::Damage;
use crate::format::entry::TarEntry;
use crate::format::stored::{CHUNK, ReadAt};
use landfall_content::RangeReader;
use landfall_model::{Hasher, locked};
use std::io::{self, Read};
use std::sync::{Arc, Mutex};

/// Reads the content of an entry frame by frame.
pub(super) struct BundleEntryReader {
    bundle: Arc<OpenBundle>,
    source: SequentialReader,
    entry_index: usize,
    /// The number of the next frame.
    next: usize,
    /// The bytes to skip at the beginning of that frame's content.
    skip: usize,
    piece: io::Cursor<Vec<u8>>,
    /// Set if the whole entry is read and its digest was not verified before.
    hasher: Option<Hasher>,
    /// Verifies and decodes a frame.
    content: FrameContent,
}

impl BundleEntryReader {
    /// Reads the entry with this index, starting at this offset of its content.
    pub(super) fn new(
        bundle: Arc<OpenBundle>,
        entry_index: usize,
        offset: u64,
    ) -> BundleEntryReader {
        let entry = bundle.entry(entry_index);
        let offset = offset.min(entry.size);
        let next = 1 + (offset / CHUNK as u64) as usize;
        BundleEntryReader {
            entry_index,
            next,
            skip: (offset % CHUNK as u64) as usize,
            piece: io::Cursor::default(),
            // the digest is over the whole blob, so a read from the middle is verified only by the
            // hashes of the frames
            hasher: (offset == 0).then(|| Hasher::new(entry.digest.algorithm())),
            content: TarEntry::content,
            source: SequentialReader::new(Arc::clone(&bundle), entry.end()),
            bundle,
        }
    }

    /// Like `new`, for an entry whose digest was already verified: compares only each frame's
    /// checksum.
    pub(super) fn of_known(
        bundle: Arc<OpenBundle>,
        entry_index: usize,
        offset: u64,
    ) -> BundleEntryReader {
        let reader = BundleEntryReader::new(bundle, entry_index, offset);
        BundleEntryReader {
            hasher: None,
            content: TarEntry::decoded,
            ..reader
        }
    }

    fn load(&mut self) -> io::Result<()> {
        let entry = self.bundle.entry(self.entry_index);
        let volumes = &self.bundle.volumes;
        let damaged = |damage: Damage| {
            // a read error of an object store may be temporary and does not mean damage
            let kind = if damage.is_unread && volumes.is_remote() {
                io::ErrorKind::Other
            } else {
                io::ErrorKind::InvalidData
            };
            io::Error::new(kind, volumes.locate(damage).to_string())
        };
        if entry.is_content(self.next) {
            let frame = self
                .bundle
                .frame(self.entry_index, self.next)
                .map_err(damaged)?;
            let bytes = self.source.bytes_at(frame.offset, frame.length);
            let content = self
                .bundle
                .content(self.entry_index, &frame, bytes, self.content);
            let content = content.map_err(damaged)?;
            if let Some(hasher) = &mut self.hasher {
                hasher.update(&content);
            }
            self.piece = io::Cursor::new(content);
            self.piece
                // only the first frame is read from its middle
                .set_position(std::mem::take(&mut self.skip) as u64);
            self.next += 1;
        }
        if !entry.is_content(self.next)
            && self
                .hasher
                .take()
                .is_some_and(|hasher| hasher.finish() != entry.digest)
        {
            // the last piece is dropped, so that no receiver gets a complete blob with wrong bytes
            self.piece = io::Cursor::default();
            let why = format!("its content does not have the digest {}", entry.digest);
            return Err(damaged(Damage::new(&entry.name, entry.offset, why)));
        }
        Ok(())
    }
}

impl Read for BundleEntryReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.piece.position() == self.piece.get_ref().len() as u64 && !buffer.is_empty() {
            self.load()?;
        }
        self.piece.read(buffer)
    }
}

// Reads a part of a bundle from its beginning to its end: an entry, or all entries. Local files
// are read at each requested offset; from an object store, one request fetches the whole part in
// order.

/// The maximum number of bytes that are read and discarded to avoid another request.
const SKIPPED: u64 = 256 << 10;

/// Reads the bytes of a bundle up to an offset, in order.
pub(super) struct SequentialReader {
    pub(super) bundle: Arc<OpenBundle>,
    end: u64,
    response: Mutex<Option<OpenRange>>,
}

/// A response that was not read to its end.
struct OpenRange {
    /// The offset of its next byte in the bundle.
    at: u64,
    /// The offset of its end in the bundle.
    end: u64,
    reader: RangeReader,
}

impl SequentialReader {
    /// Reads the bundle up to the offset `end`.
    pub(super) fn new(bundle: Arc<OpenBundle>, end: u64) -> SequentialReader {
        SequentialReader {
            bundle,
            end,
            response: Mutex::default(),
        }
    }
}

impl ReadAt for SequentialReader {
    fn read_exact_at(&self, buffer: &mut [u8], at: u64) -> io::Result<()> {
        let volumes = &self.bundle.volumes;
        let to = at + buffer.len() as u64;
        let mut response = locked(&self.response);
        // taken out: after a failed read, the position of the response is unknown
        let usable = response
            .take()
            .filter(|open| open.at <= at && at - open.at <= SKIPPED && to <= open.end);
        let mut open = match usable {
            Some(open) => open,
            None => match volumes.reader(at..self.end.max(to)) {
                Some((end, reader)) if to <= end => OpenRange { at, end, reader },
                // local files, short ranges, ranges in memory, and reads past the end of the object
                _ => return volumes.read_exact_at(buffer, at),
            },
        };
        // a few bytes between frames are cheaper to read than a new request
        io::copy(&mut (&mut open.reader).take(at - open.at), &mut io::sink())?;
        open.reader.read_exact(buffer)?;
        *response = Some(OpenRange { at: to, ..open });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::testkit::sample::{forged_bundle, noise};
    use crate::{Bundle, verify};
    use landfall_content::{BlobRead, FileRunRead, MemoryObject, VerifiedRead};
    use landfall_model::Digest;
    use landfall_model::report::SilentProgress;
    use std::io::{ErrorKind, Read};
    use std::sync::Arc;

    /// A blob that does not compress, and the bundle that contains it.
    fn stored() -> (Vec<u8>, Vec<u8>) {
        let content = noise((3 << 20) + 77);
        let (packed, _) = forged_bundle(&content, &content);
        (content, std::fs::read(&packed.path).unwrap())
    }

    fn opened(object: &Arc<MemoryObject>) -> Bundle {
        Bundle::open_object(object.clone()).unwrap()
    }

    #[test]
    fn opening_an_object_reads_its_end_and_a_blob_takes_one_request() {
        let (content, file) = stored();
        let size = file.len() as u64;
        let digest = Digest::sha256(&content);
        let object = Arc::new(MemoryObject::of(&file));
        let bundle = opened(&object);
        assert!(matches!(&object.requests()[..], [end] if *end == (size - (1 << 20)..size)));
        let read = |mut reader: Box<dyn Read + Send>| {
            let mut bytes = Vec::new();
            reader.read_to_end(&mut bytes).unwrap();
            (bytes, object.requests())
        };
        for offset in [0, 1 << 20, content.len() - 1] {
            let (bytes, requests) = read(bundle.open_verified(&digest, offset as u64).unwrap());
            assert!(bytes == content[offset..], "{offset}");
            assert!(requests.len() <= 1, "{offset}: {requests:?}");
        }
        for (bytes, requests) in [bundle.open(&digest, 0), bundle.open_whole(&digest)]
            .map(|reader| read(reader.unwrap()))
        {
            assert!(bytes == content);
            assert_eq!(requests.len(), 1, "{requests:?}");
        }
        assert!(bundle.verify(&digest).unwrap());
        assert!(bundle.file_runs(&digest, 0).unwrap().is_none());
        object.requests();
        verify(&bundle, &SilentProgress).unwrap();
        let requests = object.requests();
        assert_eq!(
            requests.len(),
            2,
            "one for the entries, and one for a window with manifests and lock: {requests:?}"
        );
    }

    #[test]
    fn broken_responses_are_resumed_and_a_replaced_object_is_reported() {
        let (content, file) = stored();
        let digest = Digest::sha256(&content);
        let object = Arc::new(MemoryObject {
            cut: 300_000,
            ..MemoryObject::of(&file)
        });
        let bundle = opened(&object);
        verify(&bundle, &SilentProgress).unwrap();
        assert_eq!(
            bundle.file_stamps(&digest).unwrap(),
            opened(&object).file_stamps(&digest).unwrap()
        );
        let mut reader = bundle.open(&digest, 0).unwrap();
        *object.replaced.lock().unwrap() = true;
        let error = reader.read(&mut [0; 10]).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("cannot be read: it was replaced"),
            "{error}"
        );
        assert_eq!(error.kind(), ErrorKind::Other, "the blob is not damaged");
    }

    #[test]
    fn no_byte_of_a_damaged_frame_is_returned() {
        let (content, mut file) = stored();
        let part = &content[(1 << 20) + 1000..][..32];
        let at = file.windows(32).position(|bytes| bytes == part).unwrap();
        file[at] ^= 1;
        let bundle = opened(&Arc::new(MemoryObject::of(&file)));
        let mut bytes = Vec::new();
        let digest = Digest::sha256(&content);
        let error = bundle
            .open_verified(&digest, 0)
            .unwrap()
            .read_to_end(&mut bytes)
            .unwrap_err();
        assert_eq!(
            (bytes.len(), error.kind()),
            (1 << 20, ErrorKind::InvalidData)
        );
        assert!(verify(&bundle, &SilentProgress).is_err());
    }
}
