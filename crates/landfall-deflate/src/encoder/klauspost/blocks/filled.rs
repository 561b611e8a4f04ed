//! Releases of klauspost/compress up to 1.13: an open block has codes for all symbols.

use super::KlauspostBlockWriter;
use crate::bits::BitWriter;
use crate::encoder::block::{DynamicHeader, MAX_STORED, stored_size};
use crate::encoder::huffman::MAX_BITS;
use crate::encoder::klauspost::estimate::{
    estimated_bits, estimated_literal_bits, estimated_rare_bits,
};
use crate::encoder::symbols::{
    DISTANCE_SYMBOLS, END_OF_BLOCK, LITERAL_SYMBOLS, SymbolCounts, Token,
};

impl KlauspostBlockWriter {
    /// Writes tokens, or stores their bytes if a stored block is smaller than 17/16 of the size of
    /// the coded tokens.
    pub(super) fn write_filled(
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
            if let Some(plain) = stored(header.size() + codes.size(&counts) + extra_bits) {
                return self.write_stored(plain, out);
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

    /// Writes bytes as literals, or stores them, in releases that guess the size of literals.
    pub(super) fn write_guessed_literals(
        &mut self,
        plain: &[u8],
        is_flush: bool,
        out: &mut BitWriter,
    ) {
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
            0 => super::EXPECTED_HEADER,
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
            self.codes
                .literals
                .set_counts(&counts.literals, MAX_BITS, ties);
            let header = DynamicHeader::new(
                &self.codes.literals,
                END_OF_BLOCK + 1,
                &self.no_distances,
                1,
                ties,
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
