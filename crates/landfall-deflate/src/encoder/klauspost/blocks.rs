//! Decides which kind of block is written, and whether it reuses the codes of the previous block.
//!
//! A block with dynamic codes is left open. The next tokens are appended to it if its codes cover
//! all symbols of the tokens, and if the tokens then take at most as many bits as the estimate for
//! a new block.

use super::rules::KlauspostRules;
use crate::bits::BitWriter;
use crate::encoder::block::{
    BlockCodes, DistanceCode, DynamicHeader, LiteralCode, MAX_STORED, stored_size,
    write_fixed_header, write_stored,
};
use crate::encoder::huffman::{Code, SymbolCounts, Token, distance_extra_bits, length_extra_bits};
use crate::symbols::{DISTANCE_SYMBOLS, END_OF_BLOCK, FIRST_LENGTH_SYMBOL, LITERAL_SYMBOLS};

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
            let size = header.size + codes.size(&counts) + extra_bits;
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
            self.open(&header, out);
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
        own_code.set_counts(&counts.literals, self.rules.ties);
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
        }
        self.append_literals(plain, is_flush, out);
    }

    /// Writes literals into the open block. If there is none, begins one with the code for literals
    /// that is set.
    fn append_literals(&mut self, plain: &[u8], is_flush: bool, out: &mut BitWriter) {
        if self.open_header == 0 {
            let header = DynamicHeader::new(
                &self.codes.literals,
                END_OF_BLOCK + 1,
                &self.no_distances,
                1,
                self.rules.ties,
            );
            self.open(&header, out);
            self.has_only_literals = true;
        }
        self.codes.write_literals(plain, out);
        if is_flush {
            self.close(out);
            self.has_only_literals = false;
        }
    }

    fn open(&mut self, header: &DynamicHeader, out: &mut BitWriter) {
        header.write(false, out);
        self.open_header = header.size;
    }

    fn covers(&self, counts: &SymbolCounts) -> bool {
        self.codes.literals.covers(&counts.literals)
            && self.codes.distances.covers(&counts.distances)
    }

    fn build_codes(&mut self, counts: &SymbolCounts) {
        let ties = self.rules.ties;
        let codes = &mut self.codes;
        codes.literals.set_counts(&counts.literals, ties);
        codes.distances.set_counts(&counts.distances, ties);
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

// Releases of klauspost/compress up to 1.13: an open block has codes for all symbols.

impl KlauspostBlockWriter {
    /// Writes tokens, or stores their bytes if a stored block is smaller than 17/16 of the size of
    /// the coded tokens.
    fn write_filled(
        &mut self,
        tokens: &[Token],
        plain: Option<&[u8]>,
        is_flush: bool,
        out: &mut BitWriter,
    ) {
        let mut counts = SymbolCounts::of_tokens(tokens);
        if self.has_only_literals && self.open_header > 0 {
            self.close(out);
            self.has_only_literals = false;
        }
        let mut total = tokens.len();
        if is_flush {
            counts.literals[END_OF_BLOCK] = 1;
        } else {
            total += fill(&mut counts.literals[..LITERAL_SYMBOLS]);
            fill(&mut counts.distances[..DISTANCE_SYMBOLS]);
        }
        let estimated = estimated_bits(&counts, total, !self.rules.guesses_literals);
        if counts.used_distances() == 0 {
            counts.distances[0] = 1;
        }
        let extra_bits = counts.extra_bits();
        let plain = plain.filter(|plain| plain.len() <= MAX_STORED);
        let stored =
            |size: u64| plain.filter(|plain| stored_size(plain.len()) < size + (size >> 4));
        if self.open_header > 0 {
            let estimate = self.open_header + estimated;
            let new_size = estimate + (estimate >> self.penalty_shift);
            let reused_size = self.codes.size(&counts) + extra_bits;
            if new_size < reused_size {
                self.close(out);
            }
            if let Some(plain) = stored(new_size.min(reused_size)) {
                return self.write_stored(plain, out);
            }
        }
        if self.open_header == 0 {
            self.build_codes(&counts);
            let codes = &self.codes;
            let header = DynamicHeader::new(
                &codes.literals,
                counts.used_literals(),
                &codes.distances,
                counts.used_distances(),
                self.rules.ties,
            );
            if let Some(plain) = stored(header.size + codes.size(&counts) + extra_bits) {
                return self.write_stored(plain, out);
            }
            self.open(&header, out);
            self.has_only_literals = false;
        }
        self.codes.write_tokens(tokens, out);
        if is_flush {
            self.close(out);
        }
    }

    /// Writes bytes as literals, or stores them, in releases that guess the size of literals.
    fn write_guessed_literals(&mut self, plain: &[u8], is_flush: bool, out: &mut BitWriter) {
        let mut counts = SymbolCounts::of_literals(plain);
        let literals = &counts.literals[..END_OF_BLOCK];
        let unused = literals.iter().filter(|count| **count == 0).count();
        let added = if is_flush { 0 } else { unused };
        let is_filled_later = self.rules.guesses_filled_literals;
        let mut own_size = if is_filled_later {
            estimated_literal_bits(literals, plain.len()) + 15
        } else {
            estimated_literal_bits(literals, plain.len() + added) + plain.len() as u64 / 32
        };
        own_size += match self.open_header {
            0 => EXPECTED_HEADER,
            size => size,
        };
        own_size += own_size >> self.penalty_shift;
        if stored_size(plain.len()) < own_size {
            return self.write_stored(plain, out);
        }
        if is_filled_later {
            own_size += estimated_rare_bits(added, plain.len());
            if !is_flush {
                fill(&mut counts.literals[..END_OF_BLOCK]);
            }
        }
        let reused_size = self.codes.literals.size(&counts.literals[..END_OF_BLOCK]);
        if self.open_header > 0 && own_size < reused_size {
            self.close(out);
        }
        if self.open_header == 0 {
            if !is_flush {
                fill(&mut counts.literals[..END_OF_BLOCK]);
            }
            counts.literals[END_OF_BLOCK] = 1;
            let ties = self.rules.ties;
            self.codes.literals.set_counts(&counts.literals, ties);
        }
        self.append_literals(plain, is_flush, out);
    }
}

/// Sets the count of each unused symbol to 1. Returns the number of these symbols.
fn fill(counts: &mut [u32]) -> usize {
    let mut filled = 0;
    for count in counts.iter_mut().filter(|count| **count == 0) {
        *count = 1;
        filled += 1;
    }
    filled
}

// Estimates the size of a block with codes of its own, without building them.
//
// The estimate is a sum of single-precision numbers in a fixed order, with a logarithm that is
// a polynomial of the mantissa. Each operation affects the result. Programs that Go compiled for
// arm64 round less often, because they fuse multiplications and additions (`klauspost/compress`
// 1.20.4 avoids this). Their estimates differ by a few bits. This changes the decision for at most
// one of many thousands of blocks, and is not reproduced.

/// The estimated total bits of `count` occurrences of a symbol among `1 / inverse_total` symbols.
fn bits(count: u32, inverse_total: f32, bounds: BitBounds) -> f32 {
    let count = count as f32;
    let each = -fast_log2(count * inverse_total);
    let bounded = match bounds {
        BitBounds::None => each,
        BitBounds::AtLeastOne => each.max(1.0),
        BitBounds::OneToFifteen => each.clamp(1.0, 15.0),
    };
    bounded * count
}

/// The limits on the estimated bits for one occurrence of a symbol.
#[derive(Debug, Clone, Copy)]
enum BitBounds {
    None,
    AtLeastOne,
    OneToFifteen,
}

/// The binary logarithm of a positive number, to about two digits.
fn fast_log2(value: f32) -> f32 {
    let bits = value.to_bits();
    let exponent = (bits >> 23 & 0xff) as i32 - 128;
    // the mantissa as a number of 1 to 2
    let mantissa = f32::from_bits((bits & 0x807f_ffff) + (127 << 23));
    #[expect(clippy::excessive_precision, reason = "the digits of the original")]
    let fraction = (-0.344_848_43_f32 * mantissa + 2.024_665_78) * mantissa - 0.674_877_59;
    exponent as f32 + fraction
}

/// The estimated size in bits of literals with these counts. `total` is the number of literals. It
/// may also count one literal for each symbol that does not occur.
fn estimated_literal_bits(counts: &[u32], total: usize) -> u64 {
    let inverse_total = 1.0 / total as f32;
    let mut sum = 0.0_f32;
    for count in counts.iter().filter(|count| **count > 0) {
        sum += bits(*count, inverse_total, BitBounds::AtLeastOne);
    }
    (sum + 0.99) as u64
}

/// The estimated size in bits of `added` literals, each of which occurs once among `total`.
fn estimated_rare_bits(added: usize, total: usize) -> u64 {
    let each = bits(1, 1.0 / total as f32, BitBounds::AtLeastOne);
    let mut sum = 0.0_f32;
    for _ in 0..added {
        sum += each;
    }
    (sum + 0.99) as u64
}

/// The estimated size in bits of a block with `tokens` tokens that have these counts. The end of
/// the block is counted as 15 bits. If `is_bounded` is set, each symbol costs 1 to 15 bits.
fn estimated_bits(counts: &SymbolCounts, tokens: usize, is_bounded: bool) -> u64 {
    let bounds = if is_bounded {
        BitBounds::OneToFifteen
    } else {
        BitBounds::None
    };
    let mut sum = 0.0_f32;
    let mut extra_bits = 0;
    let mut matches = 0;
    if tokens > 0 {
        let inverse_total = 1.0 / tokens as f32;
        let used = |(_, count): &(usize, &u32)| **count > 0;
        let literals = &counts.literals;
        for (_, count) in literals[..END_OF_BLOCK].iter().enumerate().filter(used) {
            sum += bits(*count, inverse_total, bounds);
        }
        sum += 15.0;
        let lengths = &literals[FIRST_LENGTH_SYMBOL..LITERAL_SYMBOLS];
        for (code, count) in lengths.iter().enumerate().filter(used) {
            sum += bits(*count, inverse_total, bounds);
            extra_bits += u64::from(length_extra_bits(code)) * u64::from(*count);
            matches += count;
        }
    }
    if matches > 0 {
        let inverse_total = 1.0 / matches as f32;
        let distances = &counts.distances[..DISTANCE_SYMBOLS];
        for (code, count) in distances.iter().enumerate() {
            if *count > 0 {
                sum += bits(*count, inverse_total, bounds);
                extra_bits += u64::from(distance_extra_bits(code)) * u64::from(*count);
            }
        }
    }
    sum as u64 + extra_bits
}
