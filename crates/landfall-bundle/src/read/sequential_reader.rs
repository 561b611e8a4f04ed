//! Reads a part of a bundle from its beginning to its end: an entry, or all entries. Local files
//! are read at each requested offset; from an object store, one request fetches the whole part in
//! order.

use super::open_bundle::OpenBundle;
use crate::format::stored::ReadAt;
use landfall_content::RangeReader;
use landfall_model::locked;
use std::io::{self, Read};
use std::sync::{Arc, Mutex};

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

    /// Reads `length` bytes at offset `at`.
    pub(super) fn bytes_at(&self, at: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.read_exact_at(&mut bytes, at)?;
        Ok(bytes)
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
