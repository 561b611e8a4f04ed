//! The encoder of Go's `compress/flate` up to 1.26.
//!
//! At all levels, the last block of the stream is an empty stored block, and a flush writes an
//! empty stored block. Each block has codes of its own; see [`GoBlockWriter`] for the choice
//! between stored, fixed and dynamic blocks.
//!
//! Level 1 cuts the stream into blocks of 65,535 bytes, and searches each from left to right. A
//! table of 2^14 entries holds, for each hash of four bytes, the last position and the bytes there.
//! If the bytes are the same and the distance is at most 32 KiB, this is a match, and it is used.
//! If a block has more tokens than 15/16 of its bytes, it is written as literals. A block of fewer
//! than 128 bytes, which only a flush or the end of the stream makes, is written without a search:
//! up to 16 bytes are stored, more are written as literals. The next block does not refer to
//! earlier bytes.
//!
//! Levels 2 to 9 have hash chains of four bytes over a window of 64 KiB. When the encoder has come
//! so close to the window's end that at most 262 bytes follow, the window moves by 32 KiB. A
//! match does not refer to bytes before the window. The level limits how many positions of a chain
//! are tried, and sets the length of a match that ends the search. Levels 2 and 3 use the longest
//! match at once; levels 4 to 9 use it if the next position does not have a longer one. A block
//! ends when it has 2^14 tokens.
//!
//! The way in which the input is split between calls matters in one case only. Go moves the window
//! when it gets more bytes. If a call ends less than 262 bytes before the window's end, the
//! window can therefore move one position earlier, which puts a match of the greatest distance out
//! of reach. The encoder here moves the window as Go does if it gets all input at once, or in
//! pieces that divide 32 KiB.
//!
//! Level 0 stores blocks of 65,535 bytes; level −2 writes such blocks as literals.

use super::GoLevel;
use super::chain::{BLOCK_TOKENS, ChainEncoder, ChainRules};
use crate::bits::BitWriter;
use crate::encoder::block::{
    BlockCodes, DynamicHeader, MAX_STORED, stored_size, write_fixed_header, write_stored,
};
use crate::encoder::chains::{boxed_array, load32, load64, match_length};
use crate::encoder::huffman::{SymbolCounts, TieOrder, Token};
use crate::encoder::{BlockSize, Encoder};
use crate::symbols::{END_OF_BLOCK, MAX_DISTANCE, MAX_LENGTH};

/// Whether the first block of a stream at a level can be full at this size.
pub(super) fn can_be_full(level: GoLevel, size: BlockSize) -> bool {
    match level.resolved() {
        ..=1 => size.plain_bytes == MAX_STORED as u64,
        2.. => size.tokens == BLOCK_TOKENS as u64,
    }
}

/// Starts the encoder of a level.
pub(super) fn start(level: GoLevel) -> Box<dyn Encoder> {
    match level.resolved() {
        GoLevel::HUFFMAN_ONLY => Box::new(GoPlainEncoder::literals()),
        0 => Box::new(GoPlainEncoder::stored()),
        1 => Box::new(SpeedEncoder::new()),
        level => Box::new(ChainEncoder::new(ChainRules::of_level(level))),
    }
}

// Decides which kind of block is written, as Go does up to 1.26.

/// Writes the blocks of a stream, each dynamic block with codes of its own. None of them is the
/// last block of the stream, which is always an empty stored block.
#[derive(Debug)]
pub(super) struct GoBlockWriter {
    fixed: BlockCodes,
    dynamic: BlockCodes,
}

impl GoBlockWriter {
    pub(super) fn new() -> Self {
        Self {
            fixed: BlockCodes::fixed(),
            dynamic: BlockCodes::EMPTY,
        }
    }

    /// Writes the smallest of a fixed, a dynamic and a stored block; the first of them if sizes are
    /// equal. `plain` are the bytes of the block if they are still in the window. Without them, or
    /// if they are more than [`MAX_STORED`], the block is not stored.
    pub(super) fn write_smallest(
        &mut self,
        tokens: &[Token],
        plain: Option<&[u8]>,
        out: &mut BitWriter,
    ) {
        let (counts, header) = self.prepare(tokens);
        let extra_bits = counts.extra_bits();
        let fixed_size = 3 + self.fixed.size(&counts) + extra_bits;
        let dynamic_size = header.size + self.dynamic.size(&counts) + extra_bits;
        let smallest = fixed_size.min(dynamic_size);
        if let Some(plain) = plain
            && plain.len() <= MAX_STORED
            && stored_size(plain.len()) < smallest
        {
            write_stored(plain, false, out);
        } else if dynamic_size < fixed_size {
            header.write(false, out);
            self.dynamic.write_tokens(tokens, out);
            self.dynamic.write_end(out);
        } else {
            write_fixed_header(false, out);
            self.fixed.write_tokens(tokens, out);
            self.fixed.write_end(out);
        }
    }

    /// Writes a dynamic block, or a stored block if that is smaller than 17/16 of the dynamic one.
    /// The size of the dynamic block is measured without the extra bits of matches.
    fn write_dynamic(&mut self, tokens: &[Token], plain: &[u8], out: &mut BitWriter) {
        let (counts, header) = self.prepare(tokens);
        if is_better_stored(plain, header.size + self.dynamic.size(&counts)) {
            write_stored(plain, false, out);
        } else {
            header.write(false, out);
            self.dynamic.write_tokens(tokens, out);
            self.dynamic.write_end(out);
        }
    }

    /// Writes a dynamic block of literals only, or a stored block if that is smaller than 17/16 of
    /// the dynamic one.
    fn write_literals(&mut self, plain: &[u8], out: &mut BitWriter) {
        let mut counts = SymbolCounts::of_literals(plain);
        // one distance symbol has to be transmitted
        counts.distances[0] = 1;
        let header = self.build(&mut counts);
        if is_better_stored(plain, header.size + self.dynamic.size(&counts)) {
            write_stored(plain, false, out);
        } else {
            header.write(false, out);
            self.dynamic.write_literals(plain, out);
            self.dynamic.write_end(out);
        }
    }

    fn prepare(&mut self, tokens: &[Token]) -> (SymbolCounts, DynamicHeader) {
        let mut counts = SymbolCounts::of_tokens(tokens);
        if counts.used_distances() == 0 {
            counts.distances[0] = 1;
        }
        let header = self.build(&mut counts);
        (counts, header)
    }

    fn build(&mut self, counts: &mut SymbolCounts) -> DynamicHeader {
        counts.literals[END_OF_BLOCK] = 1;
        let codes = &mut self.dynamic;
        codes
            .literals
            .set_counts(&counts.literals, TieOrder::SubtreeFirst);
        codes
            .distances
            .set_counts(&counts.distances, TieOrder::SubtreeFirst);
        DynamicHeader::new(
            &codes.literals,
            counts.used_literals(),
            &codes.distances,
            counts.used_distances(),
            TieOrder::SubtreeFirst,
        )
    }
}

fn is_better_stored(plain: &[u8], size: u64) -> bool {
    plain.len() <= MAX_STORED && stored_size(plain.len()) < size + (size >> 4)
}

/// The encoder of levels 0 and −2.
#[derive(Debug)]
struct GoPlainEncoder {
    block: Vec<u8>,
    /// Writes Huffman-coded literals; without it, all blocks are stored.
    blocks: Option<GoBlockWriter>,
}

impl GoPlainEncoder {
    /// Level 0: stores all bytes.
    fn stored() -> Self {
        Self {
            block: Vec::with_capacity(MAX_STORED),
            blocks: None,
        }
    }

    /// Level −2: codes the literals of a block unless a stored block is about as small.
    fn literals() -> Self {
        Self {
            block: Vec::with_capacity(MAX_STORED),
            blocks: Some(GoBlockWriter::new()),
        }
    }

    fn write_block(&mut self, out: &mut BitWriter) {
        if self.block.is_empty() {
            return;
        }
        match &mut self.blocks {
            Some(blocks) => blocks.write_literals(&self.block, out),
            None => write_stored(&self.block, false, out),
        }
        self.block.clear();
    }
}

impl Encoder for GoPlainEncoder {
    fn write(&mut self, mut plain: &[u8], out: &mut BitWriter) {
        while !plain.is_empty() {
            if self.block.len() == MAX_STORED {
                self.write_block(out);
            }
            let (now, later) = plain.split_at(plain.len().min(MAX_STORED - self.block.len()));
            self.block.extend_from_slice(now);
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

// Level 1: a table of the last position of each hash, and blocks of 65,535 bytes.

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
struct SpeedEncoder {
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
    fn new() -> Self {
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
