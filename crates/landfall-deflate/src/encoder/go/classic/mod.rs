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

mod chain;
mod speed;

use super::level::GoLevel;
use crate::bits::BitWriter;
use crate::encoder::block::{
    BlockCodes, DynamicHeader, MAX_STORED, stored_size, write_fixed_header, write_stored,
};
use crate::encoder::huffman::{MAX_BITS, TieOrder};
use crate::encoder::symbols::{END_OF_BLOCK, SymbolCounts, Token};
use crate::encoder::{BlockSize, Encoder};
use chain::{ChainEncoder, ChainRules};
use speed::SpeedEncoder;

/// Whether the first block of a stream at a level can be full at this size.
pub(super) fn can_be_full(level: GoLevel, size: BlockSize) -> bool {
    match level.resolved() {
        ..=1 => size.plain_bytes == MAX_STORED as u64,
        2.. => size.tokens == chain::BLOCK_TOKENS as u64,
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
struct GoBlockWriter {
    fixed: BlockCodes,
    dynamic: BlockCodes,
}

impl GoBlockWriter {
    fn new() -> Self {
        Self {
            fixed: BlockCodes::fixed(),
            dynamic: BlockCodes::EMPTY,
        }
    }

    /// Writes the smallest of a fixed, a dynamic and a stored block; the first of them if sizes are
    /// equal. `plain` are the bytes of the block if they are still in the window. Without them, or
    /// if they are more than [`MAX_STORED`], the block is not stored.
    fn write_smallest(&mut self, tokens: &[Token], plain: Option<&[u8]>, out: &mut BitWriter) {
        let (counts, header) = self.prepare(tokens);
        let extra_bits = counts.extra_bits();
        let fixed_size = 3 + self.fixed.size(&counts) + extra_bits;
        let dynamic_size = header.size() + self.dynamic.size(&counts) + extra_bits;
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
        if is_better_stored(plain, header.size() + self.dynamic.size(&counts)) {
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
        if is_better_stored(plain, header.size() + self.dynamic.size(&counts)) {
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
            .set_counts(&counts.literals, MAX_BITS, TieOrder::SubtreeFirst);
        codes
            .distances
            .set_counts(&counts.distances, MAX_BITS, TieOrder::SubtreeFirst);
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
