//! Stored frames: zstd frames of raw blocks (RFC 8878). The file offset of a byte can be computed
//! from its offset in the content, so content is written and read in place, without encoding or
//! decoding.

use super::frame::{FrameHash, FrameRecord};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;
use xxhash_rust::xxh64::Xxh64;

/// The number of content bytes in a frame. Longer content is split; only the last frame may have
/// fewer.
pub(crate) const CHUNK: usize = 1 << 20;

/// The maximum content of a raw block (RFC 8878, §3.1.1.2.4).
pub(crate) const BLOCK: usize = 128 << 10;

/// The length of the header of a raw block.
pub(crate) const BLOCK_HEAD: usize = 3;

/// The beginning of every frame: magic number; descriptor 0x84 (content size in 4 bytes, checksum);
/// window 2^20 (RFC 8878, §3.1.1.1).
pub(crate) const PREFIX: [u8; 6] = [0x28, 0xb5, 0x2f, 0xfd, 0x84, 0x50];

/// The length of the frame header: prefix and content size.
pub(crate) const HEAD: usize = PREFIX.len() + 4;

/// The length of the checksum at the end of a frame.
pub(crate) const CHECKSUM: usize = 4;

/// The header of a frame with `content` bytes of content.
pub(crate) fn head(content: usize) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    let (prefix, size) = head.split_at_mut(PREFIX.len());
    prefix.copy_from_slice(&PREFIX);
    size.copy_from_slice(&(content as u32).to_le_bytes());
    head
}

/// The header of the raw block at `from` in a frame with `content` bytes of content.
pub(crate) fn block_header(content: usize, from: usize) -> [u8; BLOCK_HEAD] {
    let block = BLOCK.min(content - from);
    // Last_Block in bit 0, Block_Type 0 (raw) in bits 1 and 2, Block_Size above
    let [low, middle, high, _] =
        ((block as u32) << 3 | u32::from(from + block == content)).to_le_bytes();
    [low, middle, high]
}

/// The checksum of a frame: the low four bytes of XXH64.
pub(crate) fn checksum(of: &Xxh64) -> [u8; CHECKSUM] {
    (of.digest() as u32).to_le_bytes()
}

/// The length in the file of `content` bytes in stored frames.
pub(crate) fn stored_len(content: u64) -> u64 {
    let rest = content % CHUNK as u64;
    let last = if rest > 0 { frame_len(rest) } else { 0 };
    content / CHUNK as u64 * frame_len(CHUNK as u64) + last
}

/// The length of one stored frame with `content` bytes.
fn frame_len(content: u64) -> u64 {
    // an empty frame has one empty block
    let blocks = content.div_ceil(BLOCK as u64).max(1);
    (HEAD + CHECKSUM) as u64 + BLOCK_HEAD as u64 * blocks + content
}

/// The offset of a content byte in consecutive stored frames, and the number of bytes from there to
/// the end of its raw block, if the block is full.
pub(crate) fn stored_position(content: u64) -> (u64, usize) {
    let frame = content / CHUNK as u64;
    let inside = content % CHUNK as u64;
    let block = inside / BLOCK as u64;
    let at =
        frame * stored_len(CHUNK as u64) + HEAD as u64 + BLOCK_HEAD as u64 * (block + 1) + inside;
    (at, BLOCK - (inside % BLOCK as u64) as usize)
}

/// Splits `length` bytes of content from `at` on into runs that are contiguous in stored frames.
/// Returns the offset of each run, and its range in the `length` bytes.
pub(crate) fn runs(at: u64, length: usize) -> impl Iterator<Item = (u64, Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let from = done;
        let (offset, run) = stored_position(at + from as u64);
        done = length.min(from + run);
        (from < length).then_some((offset, from..done))
    })
}

/// Decodes a stored frame, which must contain `size` bytes; `None` if it is malformed.
pub(super) fn decode(frame: &[u8], size: usize) -> Option<Vec<u8>> {
    let (blocks, sum) = frame.split_last_chunk::<CHECKSUM>()?;
    let mut content = Vec::with_capacity(size);
    let mut hasher = Xxh64::new(0);
    let mut end = HEAD;
    for (offset, run) in runs(0, size) {
        let block = blocks.get(end..offset as usize + run.len())?;
        let (header, bytes) = block.split_first_chunk::<BLOCK_HEAD>()?;
        // content has only one valid form: other block sizes, which would decode to the same
        // content, are rejected
        if *header != block_header(size, run.start) {
            return None;
        }
        hasher.update(bytes);
        content.extend_from_slice(bytes);
        end += block.len();
    }
    (end == blocks.len() && *sum == checksum(&hasher)).then_some(content)
}

/// Reads bytes at any offset.
pub(crate) trait ReadAt {
    /// Fills `buffer` with the bytes at offset `at`.
    fn read_exact_at(&self, buffer: &mut [u8], at: u64) -> io::Result<()>;

    /// Reads `length` bytes at offset `at`.
    fn bytes_at(&self, at: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.read_exact_at(&mut bytes, at)?;
        Ok(bytes)
    }
}

impl<T: ReadAt> ReadAt for Arc<T> {
    fn read_exact_at(&self, buffer: &mut [u8], at: u64) -> io::Result<()> {
        (**self).read_exact_at(buffer, at)
    }
}

/// Reads content from the raw blocks of stored frames, without verifying anything.
pub(crate) struct StoredReader<T> {
    pub source: T,
    /// The offset of the first frame in the source.
    pub start: u64,
    /// The offset of the next byte in the content.
    pub at: u64,
    /// The size of the content in bytes.
    pub size: u64,
}

impl<T> StoredReader<T> {
    /// The offset of the next byte in the source, and the number of content bytes that are
    /// contiguous from that offset on.
    pub(crate) fn next_run(&self) -> (u64, usize) {
        let (offset, run) = stored_position(self.at);
        (
            self.start + offset,
            self.size.saturating_sub(self.at).min(run as u64) as usize,
        )
    }
}

impl<T: ReadAt> Read for StoredReader<T> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (offset, run) = self.next_run();
        let count = run.min(buffer.len());
        if count > 0 {
            self.source.read_exact_at(&mut buffer[..count], offset)?;
            self.at += count as u64;
        }
        Ok(count)
    }
}

/// Computes the hash of each stored frame, and the bytes around its content. The content arrives in
/// pieces of any length.
pub(crate) struct FrameStream {
    size: u64,
    at: u64,
    checksum: Xxh64,
    hash: Sha256,
}

/// A frame whose content is complete, and the headers and the checksum around its content, each
/// with its offset from the beginning of the first frame.
pub(crate) type ClosedFrame = (FrameRecord, Vec<(u64, Vec<u8>)>);

impl FrameStream {
    /// Starts a stream of `size` bytes.
    pub(crate) fn new(size: u64) -> FrameStream {
        FrameStream {
            size,
            at: 0,
            checksum: Xxh64::new(0),
            hash: Sha256::new(),
        }
    }

    /// The number of bytes received.
    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    /// Processes the next bytes and returns the frames that end in them.
    pub(crate) fn push(&mut self, mut bytes: &[u8]) -> Vec<ClosedFrame> {
        let mut closed = Vec::new();
        while !bytes.is_empty() && self.at < self.size {
            let inside = (self.at % CHUNK as u64) as usize;
            let begin = self.at - inside as u64;
            let content = (self.size - begin).min(CHUNK as u64) as usize;
            if inside == 0 {
                self.hash.update(head(content));
            }
            // the hash covers the frame as it is in the file, with the headers of its blocks
            if inside.is_multiple_of(BLOCK) {
                self.hash.update(block_header(content, inside));
            }
            // at most to the end of the block, because the header of the next block follows it
            let run = bytes
                .len()
                .min(BLOCK - inside % BLOCK)
                .min(content - inside);
            let (piece, rest) = bytes.split_at(run);
            self.hash.update(piece);
            self.checksum.update(piece);
            self.at += run as u64;
            bytes = rest;
            if inside + run == content {
                closed.push(self.end(begin, content));
            }
        }
        closed
    }

    fn end(&mut self, begin: u64, content: usize) -> ClosedFrame {
        let checksum = checksum(&self.checksum);
        self.checksum.reset(0);
        self.hash.update(checksum);
        let at = stored_len(begin);
        let blocks = (0..content).step_by(BLOCK).map(|from| {
            let mut before = Vec::new();
            if from == 0 {
                before.extend(head(content));
            }
            before.extend(block_header(content, from));
            (
                stored_position(begin + from as u64).0 - before.len() as u64,
                before,
            )
        });
        let length = stored_len(content as u64);
        let around = blocks
            .chain([(at + length - CHECKSUM as u64, checksum.to_vec())])
            .collect();
        let hash = FrameHash(self.hash.finalize_reset().into());
        (FrameRecord(length as u32, hash), around)
    }
}

/// How the frames of an entry encode its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ContentForm {
    /// In raw blocks: the content is already compressed or encrypted.
    Stored,
    /// In blocks compressed with zstd.
    Compressed,
}

/// A media type that ends with one of these words means compressed or encrypted content:
/// `…tar+gzip`, `…tar.gzip`, `application/x-xz`.
const TYPES: [&str; 12] = [
    "gzip",
    "gz",
    "tgz",
    "zstd",
    "zst",
    "xz",
    "bzip2",
    "zip",
    "lzma",
    "lz4",
    "br",
    "encrypted",
];

/// The file name suffixes of compressed or encrypted content.
const NAMES: [&str; 24] = [
    ".gz", ".tgz", ".zst", ".tzst", ".xz", ".txz", ".bz2", ".tbz2", ".tbz", ".lzma", ".lz", ".lz4",
    ".br", ".zip", ".7z", ".rar", ".jar", ".whl", ".deb", ".rpm", ".apk", ".drpm", ".gpg", ".age",
];

impl ContentForm {
    /// The form of content with this media type and, for a file, this URL.
    pub fn of(media_type: &str, url: Option<&str>) -> ContentForm {
        let kind = media_type.split(';').next().unwrap_or(media_type).trim();
        // the last word names the outermost encoding
        let word = kind.rsplit(['+', '.', '-', '/']).next().unwrap_or(kind);
        let path = url.map(|url| {
            url.split(['?', '#'])
                .next()
                .unwrap_or(url)
                .to_ascii_lowercase()
        });
        let dense = TYPES.iter().any(|known| word.eq_ignore_ascii_case(known))
            || path.is_some_and(|path| NAMES.iter().any(|end| path.ends_with(end)));
        if dense {
            ContentForm::Stored
        } else {
            ContentForm::Compressed
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::frame::stored;
    use crate::testkit::sample::noise;

    struct Bytes(Vec<u8>);

    impl ReadAt for Bytes {
        fn read_exact_at(&self, buffer: &mut [u8], at: u64) -> io::Result<()> {
            (&self.0[at as usize..]).read_exact(buffer)
        }
    }

    #[test]
    fn offsets_of_stored_content_match_its_frames() {
        let content: Vec<u8> = (0..2 * CHUNK + BLOCK + 5)
            .map(|n| ((n * 31) >> 7) as u8)
            .collect();
        let file: Vec<u8> = content.chunks(CHUNK).flat_map(stored).collect();
        for from in [0, 1, BLOCK + 7, CHUNK, content.len()] {
            let mut read = vec![0; content.len() - from];
            for (offset, run) in runs(from as u64, read.len()) {
                let length = run.len();
                read[run].copy_from_slice(&file[offset as usize..][..length]);
            }
            assert!(read == content[from..], "{from}");
            let source = Bytes(file.clone());
            let size = content.len() as u64;
            let mut reader = StoredReader {
                source,
                start: 0,
                at: from as u64,
                size,
            };
            let mut read = Vec::new();
            reader.read_to_end(&mut read).unwrap();
            assert!(read == content[from..], "{from}");
        }
        assert_eq!(
            stored_position(BLOCK as u64 + 7),
            (HEAD as u64 + 6 + BLOCK as u64 + 7, BLOCK - 7)
        );
        assert_eq!(
            stored_len(CHUNK as u64 + 1),
            stored_len(CHUNK as u64) + stored_len(1)
        );
        assert_eq!(stored_len(0), 0);
    }

    #[test]
    fn content_in_pieces_makes_the_same_frames() {
        for len in [
            0,
            1,
            BLOCK,
            BLOCK + 1,
            CHUNK,
            CHUNK + 1,
            2 * CHUNK + BLOCK + 5,
        ] {
            let content = noise(len);
            let wanted: Vec<u8> = content.chunks(CHUNK).flat_map(stored).collect();
            let hashes: Vec<FrameRecord> = content
                .chunks(CHUNK)
                .map(|chunk| (stored(chunk).len() as u32, FrameHash::of(&stored(chunk))))
                .map(|(length, hash)| FrameRecord(length, hash))
                .collect();
            for step in [len.max(1), 7919, 300_000] {
                let mut file = vec![0; wanted.len()];
                let mut stream = FrameStream::new(len as u64);
                let mut closed = Vec::new();
                for piece in content.chunks(step) {
                    for (at, run) in runs(stream.at(), piece.len()) {
                        file[at as usize..][..run.len()].copy_from_slice(&piece[run]);
                    }
                    closed.extend(stream.push(piece));
                }
                for (at, bytes) in closed.iter().flat_map(|(_, around)| around) {
                    file[*at as usize..*at as usize + bytes.len()].copy_from_slice(bytes);
                }
                assert!(file == wanted, "{len} in {step}");
                assert_eq!(
                    closed.iter().map(|(frame, _)| *frame).collect::<Vec<_>>(),
                    hashes
                );
            }
        }
    }

    #[test]
    fn media_type_and_name_determine_the_form() {
        for stored in [
            "application/vnd.oci.image.layer.v1.tar+gzip",
            "application/vnd.oci.image.layer.v1.tar+zstd",
            "application/vnd.docker.image.rootfs.diff.tar.gzip",
            "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip",
            "application/vnd.cncf.helm.chart.content.v1.tar+gzip",
            "application/vnd.oci.image.layer.v1.tar+gzip+encrypted",
            "application/x-xz",
            "application/zip; charset=binary",
        ] {
            assert_eq!(
                ContentForm::of(stored, None),
                ContentForm::Stored,
                "{stored}"
            );
        }
        for compressed in [
            "application/vnd.oci.image.layer.v1.tar",
            "application/vnd.oci.image.manifest.v1+json",
            "application/octet-stream",
            "",
        ] {
            assert_eq!(
                ContentForm::of(compressed, None),
                ContentForm::Compressed,
                "{compressed}"
            );
        }
        let octets = "application/octet-stream";
        for url in [
            "https://h/a.tar.gz",
            "https://h/A.TGZ?x=1#y",
            "https://h/p_1_amd64.deb",
        ] {
            assert_eq!(
                ContentForm::of(octets, Some(url)),
                ContentForm::Stored,
                "{url}"
            );
        }
        for url in [
            "https://h/kubelet",
            "https://h/a.tgz.sha256",
            "https://h/?f=a.tgz",
        ] {
            assert_eq!(
                ContentForm::of(octets, Some(url)),
                ContentForm::Compressed,
                "{url}"
            );
        }
    }
}
