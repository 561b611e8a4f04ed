//! Finds the best match at a position.

use super::LazyEncoder;
use super::effort::{LazyMatch, NO_MATCH};
use crate::encoder::bytes::{load32, match_length};
use crate::encoder::chains::{LINKS, WINDOW};
use crate::encoder::huffman::{Code, MAX_BITS};
use crate::encoder::klauspost::rules::MatchEndRule;
use crate::encoder::symbols::{
    LENGTH_CODES, MAX_DISTANCE, MAX_LENGTH, MIN_LENGTH, distance_code, distance_extra_bits,
    length_extra_bits,
};

impl LazyEncoder {
    /// The first of the longest matches at `index` that are longer than `longer_than` bytes.
    pub(super) fn longest_match(
        &self,
        links: u64,
        longer_than: usize,
        lookahead: usize,
    ) -> LazyMatch {
        self.best_match(links, longer_than, lookahead, |_| true)
    }

    /// The longest match at `index` that is reached by matches which save more bits each.
    pub(super) fn most_saving_match(&self, links: u64, lookahead: usize) -> LazyMatch {
        let (mut most_saved, cost) = match self.rules.lazy_match_end {
            MatchEndRule::Unused | MatchEndRule::Whole => (0, 6),
            MatchEndRule::Skipping => (4, 3),
        };
        let bits = &self.literal_bits[self.index..];
        self.best_match(links, NO_MATCH.length, lookahead, |found| {
            // the release interprets the distance as a distance − 1, whose greatest value has no
            // code
            let distance_bits = match found.distance {
                MAX_DISTANCE => 6,
                distance => distance_extra_bits(distance_code(distance as u16)),
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
        mut links: u64,
        longer_than: usize,
        lookahead: usize,
        mut is_better: impl FnMut(LazyMatch) -> bool,
    ) -> LazyMatch {
        let window = &*self.window;
        let position = self.index;
        let limit = lookahead.min(MAX_LENGTH);
        let nice = self.search.nice.min(limit);
        let first = position.saturating_sub(MAX_DISTANCE);
        let mut best = LazyMatch {
            length: longer_than,
            distance: 0,
        };
        // a longer match also agrees in the four bytes that end one byte after the best one (8 bits
        // suffice, and spare the checks of bounds below)
        let mut offset = (best.length - 3) as u8;
        let mut last_bytes = load32(window, position + usize::from(offset));
        'search: for _ in 0..self.search.tries / LINKS {
            let mut candidate = 0;
            for _ in 0..LINKS {
                let entry = usize::from(links as u16);
                links >>= 16;
                // none, or out of reach
                if entry <= first {
                    break 'search;
                }
                candidate = entry - 1;
                if load32(window, candidate + usize::from(offset)) != last_bytes {
                    continue;
                }
                let found = LazyMatch {
                    length: match_length(window, candidate, position, limit),
                    distance: position - candidate,
                };
                if found.length > best.length && is_better(found) {
                    best = found;
                    if found.length >= nice {
                        break 'search;
                    }
                    offset = (found.length - 3) as u8;
                    last_bytes = load32(window, position + usize::from(offset));
                }
            }
            // the links of the first position in reach are already those of this one
            if candidate <= first {
                break;
            }
            links = self.chains.links(candidate);
        }
        if best.distance == 0 { NO_MATCH } else { best }
    }

    /// Estimates the bits of each literal from those in the window.
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
