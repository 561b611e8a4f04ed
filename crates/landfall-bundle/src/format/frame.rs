//! zstd frames (RFC 8878) with at most 1 MiB of content. All headers have the same form: never
//! single-segment, window 1 MiB, content size in four bytes. An XXH64 checksum is at the end.

use super::contents::{FrameBuilder, compressed};
use super::header;
use super::names::FRAMES;
use super::stored::{CHUNK, ContentForm, head, stored_len};
use landfall_model::{hex, locked, serde_as_text, unhex};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::io;
use std::ops::Range;
use std::str::FromStr;
use std::sync::Mutex;
use zstd::bulk::Decompressor;
use zstd::zstd_safe::find_frame_compressed_size;

/// The maximum length of a frame: incompressible content with the block headers that zstd adds.
pub(crate) const MAX_FRAME: usize = CHUNK + CHUNK / 128;

/// Encodes one frame of `content`, which is at most [`CHUNK`] bytes long.
pub(crate) fn encode(form: ContentForm, level: i32, content: &[u8]) -> io::Result<Vec<u8>> {
    match form {
        ContentForm::Stored => Ok(stored(content)),
        ContentForm::Compressed => compressed(level, content),
    }
}

/// Encodes a frame of raw blocks.
pub(crate) fn stored(content: &[u8]) -> Vec<u8> {
    FrameBuilder::of(ContentForm::Stored, content).stored()
}

/// Decodes a frame that must contain exactly `size` bytes.
pub(crate) fn decode(form: ContentForm, frame: &[u8], size: usize) -> Result<Vec<u8>, String> {
    if size > CHUNK || !frame.starts_with(&head(size)) {
        return Err(format!("there is no frame of {size} bytes at this offset"));
    }
    match form {
        ContentForm::Stored => super::stored::decode(frame, size)
            .ok_or_else(|| "the frame is not made of raw blocks with the right checksum".into()),
        ContentForm::Compressed => {
            // the decompressor accepts bytes after the frame, in which anything could be hidden
            let whole = find_frame_compressed_size(frame) == Ok(frame.len());
            // `size` bounds the memory, whatever the frame declares
            let content = Decompressor::new().and_then(|mut zstd| zstd.decompress(frame, size));
            match content {
                Ok(content) if whole && content.len() == size => Ok(content),
                Ok(_) => Err("other bytes follow the frame".into()),
                Err(error) => Err(format!("the frame cannot be decompressed: {error}")),
            }
        }
    }
}

/// Splits `bytes` after the first frame.
pub(crate) fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    bytes.split_at_checked(find_frame_compressed_size(bytes).ok()?)
}

// Reusable buffers: the system clears fresh memory page by page, which takes as long as hashing.

/// A pool of unused buffers.
#[derive(Debug, Default)]
pub(crate) struct FrameBuffers(Mutex<Vec<Vec<u8>>>);

impl FrameBuffers {
    /// The minimum capacity in bytes of a buffer that is kept. Smaller ones are cheap to allocate.
    const LEAST: usize = 128 << 10;

    /// Removes a buffer from the pool, or creates one. Its length and content are unspecified.
    pub(crate) fn take(&self) -> Vec<u8> {
        locked(&self.0).pop().unwrap_or_default()
    }

    /// Returns a buffer to the pool.
    pub(crate) fn give(&self, buffer: Vec<u8>) {
        if buffer.capacity() >= FrameBuffers::LEAST {
            locked(&self.0).push(buffer);
        }
    }
}

// The SHA-256 of a frame, and its record.

/// The SHA-256 of a frame or another part of a bundle, serialized as 64 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, derive_more::Display, derive_more::Debug)]
#[display("{}", hex(_0))]
#[debug("{self}")]
pub struct FrameHash(pub(super) [u8; 32]);

/// A zstd frame: its length in the file, and the SHA-256 of its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameRecord(pub u32, pub FrameHash);

impl FrameHash {
    /// Computes the SHA-256 of `bytes`.
    pub fn of(bytes: &[u8]) -> FrameHash {
        FrameHash(Sha256::digest(bytes).into())
    }
}

impl From<Sha256> for FrameHash {
    /// The SHA-256 of everything that the hasher received.
    fn from(hasher: Sha256) -> FrameHash {
        FrameHash(hasher.finalize().into())
    }
}

impl FrameRecord {
    /// The record of the frame with these bytes.
    pub(crate) fn of(bytes: &[u8]) -> FrameRecord {
        FrameRecord(bytes.len() as u32, FrameHash::of(bytes))
    }
}

impl FromStr for FrameHash {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<FrameHash, Self::Err> {
        unhex(text)
            .map(FrameHash)
            .ok_or("a hash has 64 lower-case hex digits")
    }
}

serde_as_text!(FrameHash);

// The frame table: a row with offset and hash for each frame. It is separate from the contents
// index, so that little must be read to open a large bundle: rows are read together with their
// frames.

/// The length of a row: the file offset of the frame in 8 bytes, little-endian, and SHA-256 of its
/// bytes.
pub(crate) const ROW: usize = 8 + 32;

/// The location of the frame table, as recorded in the contents index. The table is not compressed,
/// so the offsets of its frames can be computed from its offset and size.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameTable {
    /// The file offset of its entry.
    pub offset: u64,
    /// The size of the table in bytes: 40 for each frame.
    pub size: u64,
    /// SHA-256 of each frame of the table's entry: tar header, content, padding.
    pub hashes: Vec<FrameHash>,
}

/// A frame of the table's entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableFrame {
    /// The file offset of the frame.
    pub offset: u64,
    /// The number of bytes that it decodes to.
    pub content: usize,
    /// SHA-256 of the bytes of the frame.
    pub hash: FrameHash,
}

/// Encodes a row of the table.
pub(crate) fn row(offset: u64, hash: FrameHash) -> [u8; ROW] {
    let mut row = [0; ROW];
    row[..8].copy_from_slice(&offset.to_le_bytes());
    row[8..].copy_from_slice(&hash.0);
    row
}

/// Parses a row: offset and hash of a frame.
pub(crate) fn parse(row: &[u8; ROW]) -> (u64, FrameHash) {
    let (offset, hash) = row.split_at(8);
    let mut number = [0; 8];
    let mut bytes = [0; 32];
    number.copy_from_slice(offset);
    bytes.copy_from_slice(hash);
    (u64::from_le_bytes(number), FrameHash(bytes))
}

/// The content of each frame of the table's entry: tar header, pieces, padding.
pub(crate) fn pieces(table: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let size = table.len() as u64;
    let padding = vec![0; header::padding(size)];
    let content = table.chunks(CHUNK).map(<[u8]>::to_vec);
    let all = std::iter::once(header::encode(FRAMES, size))
        .chain(content)
        .chain([padding]);
    // a table whose size is a multiple of 512 has no padding
    all.filter(|piece| !piece.is_empty())
}

impl FrameTable {
    /// The frame at `index` of the table's entry: the tar header, a piece of the table, or the
    /// padding.
    pub fn frame(&self, index: usize) -> Option<TableFrame> {
        let hash = *self.hashes.get(index)?;
        // the name of the entry is short, so its tar header is one block in one stored frame
        let head = stored_len(header::BLOCK as u64);
        let pieces = self.size.div_ceil(CHUNK as u64) as usize;
        let (before, content) = match index {
            0 => (0, header::BLOCK),
            n if n <= pieces => {
                let from = (n as u64 - 1) * CHUNK as u64;
                (
                    head + stored_len(from),
                    (self.size - from).min(CHUNK as u64) as usize,
                )
            }
            _ => (head + stored_len(self.size), header::padding(self.size)),
        };
        Some(TableFrame {
            // the numbers come from the file, so their sum may overflow
            offset: self.offset.checked_add(before)?,
            content,
            hash,
        })
    }

    /// The frames of the table's entry that contain these rows.
    pub(crate) fn frames_with_rows(&self, rows: Range<u64>) -> impl Iterator<Item = TableFrame> {
        // a row may be split between two pieces; the frame before the pieces has the tar header
        let piece = |byte: u64| 1 + (byte / CHUNK as u64) as usize;
        let first = piece(rows.start * ROW as u64);
        let end = piece((rows.end * ROW as u64).saturating_sub(1)) + 1;
        (first..end).filter_map(|index| self.frame(index))
    }

    /// The file offset after the table's entry.
    pub fn end(&self) -> Option<u64> {
        let length = header::frames_around(FRAMES, self.size) + stored_len(self.size);
        self.offset.checked_add(length)
    }
}

#[cfg(test)]
mod tests {
    use super::super::entry::TarEntry;
    use super::super::stored::{BLOCK, stored_len};
    use super::*;
    use crate::testkit::sample::noise;
    use landfall_model::Digest;

    #[test]
    fn frames_of_both_forms_are_ordinary_zstd_and_decode_to_their_content() {
        for len in [
            1,
            2,
            511,
            512,
            BLOCK - 1,
            BLOCK,
            BLOCK + 1,
            CHUNK - 1,
            CHUNK,
        ] {
            for content in [noise(len), vec![b'x'; len]] {
                for form in [ContentForm::Stored, ContentForm::Compressed] {
                    let frame = encode(form, 3, &content).unwrap();
                    assert!(frame.starts_with(&head(len)) && frame.len() <= MAX_FRAME);
                    assert_eq!(decode(form, &frame, len).unwrap(), content);
                    assert_eq!(zstd::stream::decode_all(&frame[..]).unwrap(), content);
                    if form == ContentForm::Stored {
                        assert_eq!(frame.len() as u64, stored_len(len as u64));
                    }
                }
            }
        }
    }

    #[test]
    fn a_changed_or_cut_frame_is_refused() {
        let content = noise(70_000);
        for form in [ContentForm::Stored, ContentForm::Compressed] {
            let frame = encode(form, 3, &content).unwrap();
            assert!(decode(form, &frame, 69_999).is_err());
            assert!(decode(form, &frame[..frame.len() - 1], 70_000).is_err());
            assert!(decode(form, &[&frame[..], &frame[..]].concat(), 70_000).is_err());
            assert!(decode(form, &frame[..4], 70_000).is_err());
            for at in [0, 4, 5, 6, 9, 10, 11, 12, 500, frame.len() - 1] {
                let mut bad = frame.clone();
                bad[at] ^= 1;
                assert!(decode(form, &bad, 70_000).is_err(), "{form:?} {at}");
            }
        }
    }

    #[test]
    fn a_frame_that_decompresses_to_too_much_is_refused() {
        let mut frame = compressed(3, &vec![0; CHUNK]).unwrap();
        frame[6..10].copy_from_slice(&100u32.to_le_bytes());
        assert!(decode(ContentForm::Compressed, &frame, 100).is_err());
    }

    #[test]
    fn hashes_are_parsed_as_they_are_printed() {
        let hash = FrameHash::of(b"abc");
        assert_eq!(hash.to_string(), Digest::sha256(b"abc").hex());
        assert_eq!(hash.to_string().parse(), Ok(hash));
        for bad in ["", "00", &"A".repeat(64), &"0".repeat(65), &"é".repeat(32)] {
            assert!(bad.parse::<FrameHash>().is_err(), "{bad}");
        }
    }

    #[test]
    fn rows_are_in_the_frames_of_their_pieces() {
        // the row at a boundary between pieces is in both
        let split = CHUNK as u64 / ROW as u64;
        let table = FrameTable {
            offset: 0,
            size: 3 * CHUNK as u64,
            hashes: vec![FrameHash::of(b""); 4],
        };
        let pieces = |rows| {
            let frames = table.frames_with_rows(rows);
            let index = |frame: TableFrame| (0..4).find(|at| table.frame(*at) == Some(frame));
            frames.filter_map(index).collect::<Vec<_>>()
        };
        assert_eq!(pieces(0..split), [1]);
        assert_eq!(pieces(split..split + 1), [1, 2]);
        assert_eq!(pieces(split + 1..split + 2), [2]);
        assert_eq!(pieces(0..2 * split + 9), [1, 2, 3]);
    }

    #[test]
    fn offsets_in_the_table_match_the_frames_of_the_entry() {
        for rows in [0, 1, 64, CHUNK / ROW + 3] {
            let table: Vec<u8> = (0..rows as u64)
                .flat_map(|n| row(n, FrameHash::of(&n.to_le_bytes())))
                .collect();
            let frames: Vec<Vec<u8>> = pieces(&table).map(|piece| stored(&piece)).collect();
            let hashes = frames.iter().map(|frame| FrameHash::of(frame)).collect();
            let at = FrameTable {
                offset: 77,
                size: table.len() as u64,
                hashes,
            };
            assert_eq!(frames.len() as u64, TarEntry::frame_count(at.size));
            let mut end = 77;
            for (index, frame) in frames.iter().enumerate() {
                let found = at.frame(index).unwrap();
                assert_eq!(
                    (found.offset, stored_len(found.content as u64)),
                    (end, frame.len() as u64)
                );
                end += frame.len() as u64;
            }
            assert_eq!((at.end(), at.frame(frames.len())), (Some(end), None));
        }
        let hash = FrameHash::of(b"x");
        assert_eq!(parse(&row(1 << 40, hash)), (1 << 40, hash));
    }
}
