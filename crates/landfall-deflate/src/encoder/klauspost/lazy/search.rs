//! Finds the best match at a position.

use super::LazyEncoder;
use super::effort::NO_MATCH;
use crate::encoder::chain_search::{ChainMatch, ChainSearch};
use crate::encoder::chains::WINDOW;
use crate::encoder::huffman::{Code, MAX_BITS};
use crate::encoder::klauspost::rules::MatchEndRule;
use crate::encoder::symbols::{
    LENGTH_CODES, MAX_DISTANCE, MIN_LENGTH, distance_extra_bits, length_extra_bits,
};
use crate::symbols::distance_symbol;

impl LazyEncoder {
    /// The first of the longest matches at `index` that are longer than `longer_than` bytes.
    pub(super) fn longest_match(&self, longer_than: usize, lookahead: usize) -> ChainMatch {
        self.best_match(longer_than, lookahead, |_| true)
    }

    /// The match at `index` that saves the most bits. A match that is not longer than the best one
    /// so far is not considered.
    pub(super) fn most_saving_match(&self, lookahead: usize) -> ChainMatch {
        let (mut most_saved, cost) = match self.rules.lazy_match_end {
            MatchEndRule::Unused | MatchEndRule::Whole => (0, 6),
            MatchEndRule::Skipping => (4, 3),
        };
        let bits = &self.literal_bits[self.index..];
        self.best_match(NO_MATCH.length, lookahead, |found| {
            // the original passes the distance where its table expects the distance − 1, so the
            // table has no code for the greatest distance
            let distance_bits = match found.distance {
                MAX_DISTANCE => 6,
                distance => distance_extra_bits(distance_symbol(distance + 1)),
            };
            let length_code = LENGTH_CODES[found.length - MIN_LENGTH];
            let match_bits = distance_bits + cost + length_extra_bits(usize::from(length_code));
            let saved = (bits[found.length] - bits[0]).cast_signed() - match_bits.cast_signed();
            let is_better = saved > most_saved;
            if is_better {
                most_saved = saved;
            }
            is_better
        })
    }

    #[inline]
    fn best_match(
        &self,
        longer_than: usize,
        lookahead: usize,
        is_better: impl FnMut(ChainMatch) -> bool,
    ) -> ChainMatch {
        let search = ChainSearch {
            position: self.index,
            lookahead,
            longer_than,
            tries: self.search.tries,
            nice: self.search.nice,
        };
        let best = self.chains.best_match(&self.window, search, is_better);
        best.or(NO_MATCH)
    }

    /// Estimates the bits of each literal from the next bytes in the window.
    pub(super) fn estimate_literals(&mut self) {
        let plain = &self.window[self.index..self.end];
        let mut counts = [0_u32; 256];
        for byte in &plain[..plain.len().min(self.rules.literal_sample)] {
            counts[usize::from(*byte)] += 1;
        }
        for count in &mut counts {
            // releases that sample all bytes count with 16 bits
            *count &= 0xffff;
        }
        let mut code: Code<256> = Code::EMPTY;
        code.set_counts(&counts, MAX_BITS, self.rules.ties);
        self.literal_bits.resize(WINDOW + 1, 0);
        let mut total = 0;
        let literal_bits = &mut self.literal_bits[self.index..];
        literal_bits[0] = 0;
        for (bits, byte) in literal_bits[1..].iter_mut().zip(plain) {
            total += code
                .length(usize::from(*byte))
                .max(self.rules.rare_literal_bits);
            *bits = total;
        }
    }
}
