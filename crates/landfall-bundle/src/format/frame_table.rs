//! The frame table: place and hash of every frame, a row each. It is an entry of the bundle beside
//! the contents index, so that what is opened does not grow with the bundle: a row is read where
//! its frame is.

use super::hash::Hash;
use super::header;
use super::names::FRAMES;
use super::stored::{CHUNK, stored_len};
use serde::{Deserialize, Serialize};

/// Length of a row: the frame's offset in the file in 8 bytes, little-endian, and the SHA-256 of
/// its bytes.
pub(crate) const ROW: usize = 8 + 32;

/// Where the table is, as the contents index says it. Its entry is stored, so its frames follow
/// from its size.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameTable {
    /// File offset of its entry.
    pub offset: u64,
    /// Its size in bytes: 40 for each frame.
    pub size: u64,
    /// SHA-256 of each frame of its entry: tar header, content, padding.
    pub hashes: Vec<Hash>,
}

/// One frame of the table's entry, and where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableFrame {
    /// Its offset in the file.
    pub offset: u64,
    /// How many bytes of content it holds.
    pub content: usize,
    /// SHA-256 of its bytes.
    pub hash: Hash,
}

/// A row of the table.
pub(crate) fn row(offset: u64, hash: Hash) -> [u8; ROW] {
    let mut row = [0; ROW];
    row[..8].copy_from_slice(&offset.to_le_bytes());
    row[8..].copy_from_slice(&hash.0);
    row
}

/// Offset and hash of the frame that a row is about.
pub(crate) fn parse(row: &[u8; ROW]) -> (u64, Hash) {
    let (offset, hash) = row.split_at(8);
    let (mut number, mut bytes) = ([0; 8], [0; 32]);
    number.copy_from_slice(offset);
    bytes.copy_from_slice(hash);
    (u64::from_le_bytes(number), Hash(bytes))
}

/// The contents of the frames of an entry for this table.
pub(crate) fn pieces(table: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let size = table.len() as u64;
    let padding = vec![0; header::padding(size)];
    let content = table.chunks(CHUNK).map(<[u8]>::to_vec);
    let all = std::iter::once(header::encode(FRAMES, size))
        .chain(content)
        .chain([padding]);
    all.filter(|piece| !piece.is_empty())
}

impl FrameTable {
    /// How many frames the table's entry has.
    pub fn frame_count(size: u64) -> u64 {
        1 + size.div_ceil(CHUNK as u64) + u64::from(header::padding(size) > 0)
    }

    /// The frame of the table's entry at `index`: its tar header, a piece of the table, or the
    /// padding.
    pub fn frame(&self, index: usize) -> Option<TableFrame> {
        let hash = *self.hashes.get(index)?;
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
            offset: self.offset.checked_add(before)?,
            content,
            hash,
        })
    }

    /// The offset after its entry.
    pub fn end(&self) -> Option<u64> {
        let padding = stored_len(header::padding(self.size) as u64);
        let length = stored_len(header::BLOCK as u64) + stored_len(self.size) + padding;
        self.offset.checked_add(length)
    }
}

#[cfg(test)]
mod tests {
    use super::super::frame::stored;
    use super::*;

    #[test]
    fn the_frames_of_its_entry_lie_where_they_are_said_to() {
        for rows in [0, 1, 64, CHUNK / ROW + 3] {
            let table: Vec<u8> = (0..rows as u64)
                .flat_map(|n| row(n, Hash::of(&n.to_le_bytes())))
                .collect();
            let frames: Vec<Vec<u8>> = pieces(&table).map(|piece| stored(&piece)).collect();
            let hashes = frames.iter().map(|frame| Hash::of(frame)).collect();
            let at = FrameTable {
                offset: 77,
                size: table.len() as u64,
                hashes,
            };
            assert_eq!(frames.len() as u64, FrameTable::frame_count(at.size));
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
        let hash = Hash::of(b"x");
        assert_eq!(parse(&row(1 << 40, hash)), (1 << 40, hash));
    }
}
