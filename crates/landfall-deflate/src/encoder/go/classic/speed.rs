//! Level 1: a table of the last position of each hash, and blocks of 65,535 bytes.

use super::GoBlockWriter;
use crate::bits::BitWriter;
use crate::encoder::Encoder;
use crate::encoder::block::{MAX_STORED, write_stored};
use crate::encoder::bytes::{boxed_array, load32, load64, match_length};
use crate::encoder::symbols::{MAX_DISTANCE, MAX_LENGTH, Token};

const HASH_BITS: u32 = 14;
/// The maximum number of bytes of a block.
const BLOCK: usize = MAX_STORED;
/// The number of bytes at the end of a block in which no match begins.
const MARGIN: usize = 15;
/// A block of fewer bytes than this is written without a search for matches, and later blocks do
/// not refer to it or to earlier blocks.
const MIN_SEARCHED: usize = 128;
/// A block of at most this many bytes is stored. A longer one of fewer than [`MIN_SEARCHED`] bytes
/// is written as literals.
const MAX_FLUSH_STORED: usize = 16;
/// The length of a match whose bytes the table has verified.
const KNOWN_LENGTH: usize = 4;
/// When positions have grown beyond this, all entries are lowered.
const MAX_BASE: u32 = 1 << 30;

/// The last position of a hash, and the four bytes there.
#[derive(Debug, Clone, Copy)]
struct SpeedEntry {
    bytes: u32,
    /// The position in the stream, plus an offset, so that 0 is too far away from all positions.
    position: u32,
}

const NO_ENTRY: SpeedEntry = SpeedEntry {
    bytes: 0,
    position: 0,
};

fn hash(bytes: u32) -> usize {
    (bytes.wrapping_mul(0x1e35_a7bd) >> (32 - HASH_BITS)) as usize
}

/// The encoder of level 1.
#[derive(Debug)]
pub(super) struct SpeedEncoder {
    /// The end of the previous block, up to 32 KiB, then the block.
    buffer: Vec<u8>,
    /// The index in `buffer` at which the block begins.
    start: usize,
    /// The position of the block's first byte, as entries record it.
    base: u32,
    table: Box<[SpeedEntry; 1 << HASH_BITS]>,
    tokens: Vec<Token>,
    blocks: GoBlockWriter,
}

impl SpeedEncoder {
    pub(super) fn new() -> Self {
        Self {
            buffer: Vec::with_capacity(MAX_DISTANCE + BLOCK),
            start: 0,
            base: MAX_DISTANCE as u32 + 1,
            table: boxed_array(NO_ENTRY),
            tokens: Vec::with_capacity(BLOCK),
            blocks: GoBlockWriter::new(),
        }
    }

    fn block_length(&self) -> usize {
        self.buffer.len() - self.start
    }

    /// Writes the block if it is not empty, and begins the next.
    fn write_block(&mut self, out: &mut BitWriter) {
        let length = self.block_length();
        if length == 0 {
            return;
        }
        if length < MIN_SEARCHED {
            let plain = &self.buffer[self.start..];
            if length <= MAX_FLUSH_STORED {
                write_stored(plain, false, out);
            } else {
                self.blocks.write_literals(plain, out);
            }
            self.forget();
            return;
        }
        self.find_tokens();
        let plain = &self.buffer[self.start..];
        if self.tokens.len() > length - (length >> 4) {
            self.blocks.write_literals(plain, out);
        } else {
            self.blocks.write_dynamic(&self.tokens, plain, out);
        }
        self.next_block(length.min(MAX_DISTANCE));
    }

    /// Begins a block whose matches do not refer to earlier blocks.
    fn forget(&mut self) {
        self.base += MAX_DISTANCE as u32;
        self.next_block(0);
    }

    /// Begins the next block, with the last `kept` bytes of this block as history.
    fn next_block(&mut self, kept: usize) {
        self.base += self.block_length() as u32;
        let end = self.buffer.len();
        self.buffer.copy_within(end - kept.., 0);
        self.buffer.truncate(kept);
        self.start = kept;
        if self.base > MAX_BASE {
            let lower_by = self.base - (MAX_DISTANCE as u32 + 1);
            for entry in self.table.iter_mut() {
                // an entry that becomes 0 is too far away for a match
                entry.position = entry.position.saturating_sub(lower_by);
            }
            self.base -= lower_by;
        }
    }

    /// Splits the block into tokens.
    ///
    /// Without a match, the step grows by one after every 32 positions that were skipped or tried.
    /// After a match, the last position inside it and the position after it enter the table.
    fn find_tokens(&mut self) {
        self.tokens.clear();
        let Self {
            buffer,
            start,
            base,
            table,
            tokens,
            ..
        } = self;
        let buffer = &buffer[..];
        let end = buffer.len();
        // the difference between the position of an entry and its index in the buffer
        let shift = base.wrapping_sub(*start as u32);
        let entry_at = |place: usize, bytes: u32| SpeedEntry {
            bytes,
            position: (place as u32).wrapping_add(shift),
        };
        let distance_to = |place: usize, entry: SpeedEntry| {
            (place as u32)
                .wrapping_add(shift)
                .wrapping_sub(entry.position) as usize
        };

        let last_start = end - MARGIN;
        let mut literals = *start;
        let mut place = *start;
        let mut bytes = load32(buffer, place);
        'block: loop {
            let mut skip = 32;
            let mut next = place;
            let mut distance;
            loop {
                place = next;
                let step = skip >> 5;
                next = place + step;
                skip += step;
                if next > last_start {
                    break 'block;
                }
                let slot = &mut table[hash(bytes)];
                let candidate = std::mem::replace(slot, entry_at(place, bytes));
                distance = distance_to(place, candidate);
                if distance <= MAX_DISTANCE && candidate.bytes == bytes {
                    break;
                }
                bytes = load32(buffer, next);
            }
            push_literals(&buffer[literals..place], tokens);
            loop {
                let known_end = place + KNOWN_LENGTH;
                let limit = (MAX_LENGTH - KNOWN_LENGTH).min(end - known_end);
                // If the previous block is short, the bytes before it are not in the buffer: only
                // the four bytes in the entry are known.
                let more = known_end
                    .checked_sub(distance)
                    .map_or(0, |source| match_length(buffer, source, known_end, limit));
                tokens.push(Token::matched(KNOWN_LENGTH + more, distance));
                place = known_end + more;
                literals = place;
                if place >= last_start {
                    break 'block;
                }
                let around = load64(buffer, place - 1);
                let before = around as u32;
                bytes = (around >> 8) as u32;
                table[hash(before)] = entry_at(place - 1, before);
                let candidate = std::mem::replace(&mut table[hash(bytes)], entry_at(place, bytes));
                distance = distance_to(place, candidate);
                if distance > MAX_DISTANCE || candidate.bytes != bytes {
                    bytes = (around >> 16) as u32;
                    place += 1;
                    break;
                }
            }
        }
        push_literals(&buffer[literals..], tokens);
    }
}

fn push_literals(plain: &[u8], tokens: &mut Vec<Token>) {
    tokens.extend(plain.iter().map(|byte| Token::literal(*byte)));
}

impl Encoder for SpeedEncoder {
    fn write(&mut self, mut plain: &[u8], out: &mut BitWriter) {
        while !plain.is_empty() {
            if self.block_length() == BLOCK {
                self.write_block(out);
            }
            let (now, later) = plain.split_at(plain.len().min(BLOCK - self.block_length()));
            self.buffer.extend_from_slice(now);
            plain = later;
        }
    }

    fn flush(&mut self, out: &mut BitWriter) {
        self.write_block(out);
        write_stored(&[], false, out);
    }

    fn finish(&mut self, out: &mut BitWriter) {
        self.write_block(out);
        write_stored(&[], true, out);
    }
}
