//! Decides which kind of block is written, as Go does up to 1.26.

use crate::bits::BitWriter;
use crate::encoder::block::{
    BlockCodes, DynamicHeader, MAX_STORED, stored_size, write_fixed_header, write_stored,
};
use crate::encoder::huffman::{MAX_BITS, TieOrder};
use crate::encoder::symbols::{END_OF_BLOCK, SymbolCounts, Token};

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
    pub(super) fn write_dynamic(&mut self, tokens: &[Token], plain: &[u8], out: &mut BitWriter) {
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
    pub(super) fn write_literals(&mut self, plain: &[u8], out: &mut BitWriter) {
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
