//! Reading rows of the frame table where they are needed. Each piece of the table is checked when
//! it is read, and the last few are kept.

use super::volume_reader::VolumeReader;
use crate::format::damage::Damage;
use crate::format::form::Form;
use crate::format::frame;
use crate::format::frame_table::{self, FrameTable, ROW};
use crate::format::hash::Hash;
use crate::format::names::FRAMES;
use crate::format::stored::{CHUNK, stored_len};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// How many pieces of the table are kept. Each is at most 1 MiB, and about 25 GiB of content have
/// their rows in it.
const KEPT: usize = 4;

/// The rows of a bundle's frame table. Any number of threads may read.
#[derive(Debug)]
pub struct FrameRows {
    table: FrameTable,
    kept: Mutex<VecDeque<(usize, Arc<Vec<u8>>)>>,
}

impl FrameRows {
    /// The rows of this table.
    pub fn new(table: FrameTable) -> FrameRows {
        FrameRows {
            table,
            kept: Mutex::default(),
        }
    }

    /// Offset and hash of the frame with this number.
    ///
    /// # Errors
    /// When the table is damaged there.
    pub fn row(&self, volumes: &VolumeReader, number: u64) -> Result<(u64, Hash), Damage> {
        let mut row = [0; ROW];
        let mut filled = 0;
        while filled < ROW {
            let at = number * ROW as u64 + filled as u64;
            // a row may lie in two pieces
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
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
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

    /// The content of one frame of the table's entry: its tar header, a piece of the table, or the
    /// padding.
    ///
    /// # Errors
    /// When it is damaged.
    pub fn frame(&self, volumes: &VolumeReader, index: usize) -> Result<Vec<u8>, Damage> {
        let none = || Damage::new(FRAMES, self.table.offset, "it has too few frames");
        let frame = self.table.frame(index).ok_or_else(none)?;
        let damage = |why: String| Damage::new(FRAMES, frame.offset, why);
        let bytes = volumes.bytes_at(frame.offset, stored_len(frame.content as u64) as usize);
        let bytes = bytes.map_err(|error| Damage::unread(FRAMES, frame.offset, &error))?;
        if Hash::of(&bytes) != frame.hash {
            return Err(damage(
                "its bytes do not have the hash that the contents index gives them".into(),
            ));
        }
        frame::decode(Form::Stored, &bytes, frame.content).map_err(damage)
    }
}
