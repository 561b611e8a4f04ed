//! Reads rows of the frame table on demand. Each piece of the table is verified when it is read,
//! and the last few pieces are cached.

use super::volume_reader::VolumeReader;
use crate::format::content_form::ContentForm;
use crate::format::damage::Damage;
use crate::format::frame;
use crate::format::frame_table::{self, FrameTable, ROW};
use crate::format::hash::FrameHash;
use crate::format::names::FRAMES;
use crate::format::stored::{CHUNK, stored_len};
use landfall_model::locked;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// The number of cached pieces of the table. Each has at most 1 MiB, with the rows for about 25 GiB
/// of content.
const KEPT: usize = 4;

/// The frame table of an open bundle. Any number of threads may read.
#[derive(Debug)]
pub struct FrameRows {
    table: FrameTable,
    kept: Mutex<VecDeque<(usize, Arc<Vec<u8>>)>>,
}

impl FrameRows {
    /// Returns a reader for the rows of this table, without cached pieces.
    pub fn new(table: FrameTable) -> FrameRows {
        FrameRows {
            table,
            kept: Mutex::default(),
        }
    }

    /// Offset and hash of the frame with this number.
    pub fn row(&self, volumes: &VolumeReader, number: u64) -> Result<(u64, FrameHash), Damage> {
        let mut row = [0; ROW];
        let mut filled = 0;
        while filled < ROW {
            let at = number * ROW as u64 + filled as u64;
            // a row may be split between two pieces
            let piece = self.piece(volumes, (at / CHUNK as u64) as usize)?;
            let from = (at % CHUNK as u64) as usize;
            let bytes = piece.get(from..).unwrap_or_default();
            let count = bytes.len().min(ROW - filled);
            if count == 0 {
                return Err(Damage::new(
                    FRAMES,
                    self.table.offset,
                    "it has no row for a frame",
                ));
            }
            row[filled..filled + count].copy_from_slice(&bytes[..count]);
            filled += count;
        }
        Ok(frame_table::parse(&row))
    }

    fn piece(&self, volumes: &VolumeReader, number: usize) -> Result<Arc<Vec<u8>>, Damage> {
        // locked while a piece is read: threads that read in order need the same piece next
        let mut kept = locked(&self.kept);
        if let Some((_, piece)) = kept.iter().find(|(of, _)| *of == number) {
            return Ok(piece.clone());
        }
        let piece = Arc::new(self.frame(volumes, number + 1)?);
        if kept.len() == KEPT {
            kept.pop_front();
        }
        kept.push_back((number, piece.clone()));
        Ok(piece)
    }

    /// The content of one frame of the table's entry: the tar header, a piece of the table, or the
    /// padding.
    pub fn frame(&self, volumes: &VolumeReader, index: usize) -> Result<Vec<u8>, Damage> {
        let frame = self
            .table
            .frame(index)
            .ok_or_else(|| Damage::new(FRAMES, self.table.offset, "it has too few frames"))?;
        let bytes = volumes.bytes_at(frame.offset, stored_len(frame.content as u64) as usize);
        let bytes = bytes.map_err(|error| Damage::unread(FRAMES, frame.offset, &error))?;
        if FrameHash::of(&bytes) != frame.hash {
            let why = "its bytes do not have the hash in the contents index";
            return Err(Damage::new(FRAMES, frame.offset, why));
        }
        frame::decode(ContentForm::Stored, &bytes, frame.content)
            .map_err(|why| Damage::new(FRAMES, frame.offset, why))
    }
}
