//! Decides which kind of block is written, and whether it reuses the codes of the previous block.
//!
//! A block with dynamic codes is left open. The next tokens are appended to it if its codes cover
//! all symbols of the tokens, and if the tokens then take at most as many bits as the estimate for
//! a new block.

mod filled;

use super::estimate::estimated_bits;
use super::rules::KlauspostRules;
use crate::bits::BitWriter;
use crate::encoder::block::{
    BlockCodes, DistanceCode, DynamicHeader, LiteralCode, MAX_STORED, stored_size,
    write_fixed_header, write_stored,
};
use crate::encoder::huffman::{Code, MAX_BITS};
use crate::encoder::symbols::{
    DISTANCE_SYMBOLS, END_OF_BLOCK, LITERAL_SYMBOLS, SymbolCounts, Token,
};

/// Fixed codes are only considered for blocks with fewer tokens.
const MAX_FIXED_TOKENS: usize = 250;
/// The size in bits that a header is expected to have.
const EXPECTED_HEADER: u64 = 70 * 8;
/// Longer blocks of literals are stored if all byte values occur about equally often.
const MIN_NOISE: usize = 1024;

/// Writes the blocks of a stream.
#[derive(Debug)]
pub(super) struct KlauspostBlockWriter {
    rules: KlauspostRules,
    /// The estimated size of a new block is increased by `estimate >> penalty_shift`.
    penalty_shift: u32,
    fixed: BlockCodes,
    codes: BlockCodes,
    /// The distance code of blocks that contain only literals.
    no_distances: DistanceCode,
    /// The size in bits of the open block's header, 0 if no block is open.
    open_header: u64,
    /// Whether the open block has codes for literals only.
    has_only_literals: bool,
}

impl KlauspostBlockWriter {
    pub(super) fn new(rules: KlauspostRules, penalty_shift: u32) -> Self {
        let mut no_distances = Code::EMPTY;
        no_distances.set_lengths(&[1]);
        Self {
            rules,
            penalty_shift,
            fixed: BlockCodes::fixed(),
            codes: BlockCodes::EMPTY,
            no_distances,
            open_header: 0,
            has_only_literals: false,
        }
    }

    fn close(&mut self, out: &mut BitWriter) {
        if self.open_header > 0 {
            self.codes.write_end(out);
            self.open_header = 0;
        }
    }

    pub(super) fn write_stored(&mut self, plain: &[u8], out: &mut BitWriter) {
        self.close(out);
        write_stored(plain, false, out);
    }

    /// Ends the stream with an empty fixed block.
    pub(super) fn finish(&mut self, out: &mut BitWriter) {
        self.close(out);
        write_fixed_header(true, out);
        self.fixed.write_end(out);
        out.align();
    }

    /// Resets the state to the beginning of a stream.
    pub(super) fn reset(&mut self) {
        self.open_header = 0;
        self.has_only_literals = false;
    }

    fn write_fixed(&mut self, tokens: &[Token], out: &mut BitWriter) {
        self.close(out);
        write_fixed_header(false, out);
        self.fixed.write_tokens(tokens, out);
        self.fixed.write_end(out);
    }

    /// Writes tokens. `plain` has their bytes; without them, no stored block is written. `is_flush`
    /// closes the block, because a flush follows.
    pub(super) fn write_tokens(
        &mut self,
        tokens: &[Token],
        plain: Option<&[u8]>,
        is_flush: bool,
        out: &mut BitWriter,
    ) {
        if self.rules.fills_codes {
            return self.write_filled(tokens, plain, is_flush, out);
        }
        let mut counts = SymbolCounts::of_tokens(tokens);
        let token_count = tokens.len() + usize::from(is_flush);
        if self.has_only_literals && self.open_header > 0 {
            self.close(out);
            self.has_only_literals = false;
        }
        if !self.covers(&counts) {
            self.close(out);
        }
        let estimated = if self.open_header > 0 {
            estimated_bits(&counts, token_count, true)
        } else {
            0
        };
        let is_trimmed = is_flush || self.rules.trims_headers;
        if is_trimmed {
            counts.literals[END_OF_BLOCK] = 1;
            if counts.used_distances() == 0 {
                counts.distances[0] = 1;
            }
        }
        let plain = plain.filter(|plain| plain.len() <= MAX_STORED);
        let stored = plain.map(|plain| (plain, stored_size(plain.len())));
        let extra_bits = counts.extra_bits();
        let can_be_fixed = token_count < MAX_FIXED_TOKENS;

        if self.open_header > 0 {
            let estimate = self.open_header + estimated;
            let new_size = estimate
                + u64::from(self.codes.literals.length(END_OF_BLOCK))
                + (estimate >> self.penalty_shift);
            let reused_size = self.codes.size(&counts) + extra_bits;
            if new_size < reused_size {
                self.close(out);
            }
            let size = new_size.min(reused_size);
            if let Some((plain, stored_size)) = stored
                && stored_size <= size
            {
                return self.write_stored(plain, out);
            }
            // 10 bits: the header of the fixed block, and the end of the open block
            if can_be_fixed && self.fixed.size(&counts) + extra_bits + 10 < size {
                return self.write_fixed(tokens, out);
            }
        }
        if self.open_header == 0 {
            counts.literals[END_OF_BLOCK] = 1;
            self.build_codes(&counts);
            let (literals, distances) = if is_trimmed {
                (counts.used_literals(), counts.used_distances())
            } else {
                (LITERAL_SYMBOLS, DISTANCE_SYMBOLS)
            };
            let codes = &self.codes;
            let header = DynamicHeader::new(
                &codes.literals,
                literals,
                &codes.distances,
                distances,
                self.rules.ties,
            );
            let size = header.size() + codes.size(&counts) + extra_bits;
            let fixed_size = 3 + self.fixed.size(&counts) + extra_bits;
            let is_fixed = can_be_fixed && fixed_size <= size;
            if let Some((plain, stored_size)) = stored
                && stored_size <= if is_fixed { fixed_size } else { size }
            {
                return self.write_stored(plain, out);
            }
            if is_fixed {
                return self.write_fixed(tokens, out);
            }
            header.write(false, out);
            self.open_header = header.size();
            self.has_only_literals = false;
        }
        self.codes.write_tokens(tokens, out);
        if is_flush {
            self.close(out);
        }
    }

    /// Writes bytes as literals, or stores them.
    pub(super) fn write_literals(&mut self, plain: &[u8], is_flush: bool, out: &mut BitWriter) {
        if self.rules.guesses_literals {
            return self.write_guessed_literals(plain, is_flush, out);
        }
        let mut counts = SymbolCounts::of_literals(plain);
        let may_be_noise = plain.len() > MIN_NOISE && !self.rules.fills_codes;
        if may_be_noise && is_noise(&counts, plain.len()) {
            return self.write_stored(plain, out);
        }
        let literal_counts = counts.literals;
        counts.literals[END_OF_BLOCK] = 1;
        let mut own_code: LiteralCode = Code::EMPTY;
        own_code.set_counts(&counts.literals, MAX_BITS, self.rules.ties);
        let header_size = match self.open_header {
            0 => EXPECTED_HEADER,
            size => size,
        };
        let mut own_size = own_code.size(&counts.literals) + header_size;
        own_size += own_size >> self.penalty_shift;
        if stored_size(plain.len()) <= own_size {
            return self.write_stored(plain, out);
        }
        if self.open_header > 0
            && (!self.codes.literals.covers(&literal_counts)
                || own_size < self.codes.literals.size(&literal_counts))
        {
            self.close(out);
        }
        if self.open_header == 0 {
            self.codes.literals = own_code;
            let header = DynamicHeader::new(
                &self.codes.literals,
                END_OF_BLOCK + 1,
                &self.no_distances,
                1,
                self.rules.ties,
            );
            header.write(false, out);
            self.open_header = header.size();
            self.has_only_literals = true;
        }
        self.codes.write_literals(plain, out);
        if is_flush {
            self.close(out);
            self.has_only_literals = false;
        }
    }

    fn covers(&self, counts: &SymbolCounts) -> bool {
        self.codes.literals.covers(&counts.literals)
            && self.codes.distances.covers(&counts.distances)
    }

    fn build_codes(&mut self, counts: &SymbolCounts) {
        let ties = self.rules.ties;
        let codes = &mut self.codes;
        codes.literals.set_counts(&counts.literals, MAX_BITS, ties);
        codes
            .distances
            .set_counts(&counts.distances, MAX_BITS, ties);
    }
}

/// Whether the variance of the counts is less than about twice the variance for random bytes.
fn is_noise(counts: &SymbolCounts, length: usize) -> bool {
    // the mean is length / 256; to avoid fractions, the differences are multiplied by 256, and so
    // the sum of their squares by 256²
    let length = length as u64;
    let squares = counts.literals[..END_OF_BLOCK].iter().map(|count| {
        let difference = (u64::from(*count) * 256).abs_diff(length);
        difference * difference
    });
    squares.sum::<u64>() < 2 * length * 256 * 256
}
