//! Levels 7 to 9: hash chains over a window of 64 KiB.

use super::blocks::KlauspostBlockWriter;
use super::rules::{KlauspostRules, MatchEndRule};
use crate::bits::BitWriter;
use crate::encoder::chains::{
    ChainHash, ChainMatch, ChainSearch, ChainWindow, LinkedChains, WINDOW, match_length, new_window,
};
use crate::encoder::huffman::{Code, Token, distance_extra_bits, length_extra_bits};
use crate::encoder::{Encoder, RestartEncoder};
use crate::symbols::{MAX_DISTANCE, MAX_LENGTH, distance_symbol, length_index};

/// The number of bytes that must follow before a match is searched, unless the stream is flushed.
const LOOKAHEAD: usize = MIN_MATCH + MAX_LENGTH;
/// The number of tokens of a block.
pub(super) const BLOCK_TOKENS: usize = 1 << 15;
/// The estimated size of a new block is increased by `estimate >> PENALTY_SHIFT`, a 256th.
const PENALTY_SHIFT: u32 = 8;

/// The encoder of levels 7 to 9.
#[derive(Debug)]
pub(super) struct LazyEncoder {
    rules: KlauspostRules,
    search: LazySearchRules,
    window: Box<ChainWindow>,
    /// The next position to encode.
    index: usize,
    /// The end of the bytes in the window.
    end: usize,
    /// The first position of the block, or `None` if it has left the window.
    block_start: Option<usize>,
    /// The match at the position before `index`.
    previous: ChainMatch,
    /// Whether the byte before `index` is still to be encoded.
    is_byte_pending: bool,
    /// The number of literals since the last match; it begins again at 0 after 65,535.
    literals: u16,
    /// At level 9: for each position, the estimated bits of all literals before it, counted from an
    /// earlier position of the window.
    literal_bits: Vec<u32>,
    chains: LinkedChains,
    tokens: Vec<Token>,
    blocks: KlauspostBlockWriter,
}

impl LazyEncoder {
    pub(super) fn new(level: i8, rules: KlauspostRules) -> Self {
        Self {
            rules,
            search: LazySearchRules::of_level(level),
            window: new_window(),
            index: 0,
            end: 0,
            block_start: Some(0),
            previous: NO_MATCH,
            is_byte_pending: false,
            literals: 0,
            literal_bits: Vec::new(),
            chains: LinkedChains::new(ChainHash::LittleEndian),
            tokens: Vec::with_capacity(BLOCK_TOKENS),
            blocks: KlauspostBlockWriter::new(rules, PENALTY_SHIFT),
        }
    }

    /// Copies the beginning of `plain` into the window, and returns the rest.
    fn fill<'p>(&mut self, plain: &'p [u8]) -> &'p [u8] {
        if self.index >= WINDOW - LOOKAHEAD {
            self.window.copy_within(MAX_DISTANCE..WINDOW, 0);
            self.index -= MAX_DISTANCE;
            self.end -= MAX_DISTANCE;
            self.block_start = self
                .block_start
                .and_then(|start| start.checked_sub(MAX_DISTANCE));
            self.chains.slide();
        }
        let (now, later) = plain.split_at(plain.len().min(WINDOW - self.end));
        self.window[self.end..self.end + now.len()].copy_from_slice(now);
        self.end += now.len();
        later
    }

    /// Encodes the bytes in the window. Without `is_flush`, some are kept until more bytes follow.
    fn encode(&mut self, is_flush: bool, out: &mut BitWriter) {
        let needed = if is_flush { 1 } else { LOOKAHEAD };
        if self.end - self.index >= needed && self.search.estimates {
            self.estimate_literals();
        }
        let insert_end = self.end.saturating_sub(MIN_MATCH - 1);
        self.chains.link_up_to(&self.window, insert_end);
        if is_flush {
            self.chains.skip_to(self.end);
        }
        while self.end - self.index >= needed {
            self.encode_position(insert_end, is_flush, out);
        }
        if is_flush {
            if self.is_byte_pending {
                self.tokens
                    .push(Token::literal(self.window[self.index - 1]));
                self.is_byte_pending = false;
            }
            if !self.tokens.is_empty() {
                self.write_block(is_flush, out);
            }
        }
    }

    fn encode_position(&mut self, insert_end: usize, is_flush: bool, out: &mut BitWriter) {
        let lookahead = self.end - self.index;
        let mut previous = std::mem::replace(&mut self.previous, NO_MATCH);
        if self.chains.has_candidate(self.index)
            && lookahead > previous.length
            && previous.length < self.search.lazy
        {
            self.previous = if self.search.estimates {
                self.most_saving_match(lookahead)
            } else {
                // a match that is not longer than the previous one would not be used
                self.longest_match(previous.length, lookahead)
            };
        }
        if previous.length >= MIN_MATCH && self.previous.length <= previous.length {
            match self.rules.lazy_match_end {
                MatchEndRule::Unused => {}
                MatchEndRule::Whole => self.improve_whole(&mut previous, lookahead, insert_end),
                MatchEndRule::Skipping => {
                    self.improve_skipping(&mut previous, lookahead, insert_end, is_flush, out);
                }
            }
            self.tokens
                .push(Token::matched(previous.length, previous.distance));
            self.index += previous.length - 1;
            self.is_byte_pending = false;
            self.previous = NO_MATCH;
            self.literals = 0;
            self.write_full_block(is_flush, out);
            return;
        }
        if self.previous.length >= MIN_MATCH {
            self.literals = 0;
        }
        if self.is_byte_pending {
            self.literals = self.literals.wrapping_add(1);
            self.push_literal(is_flush, out);
            self.index += 1;
            let unmatched = usize::from(self.literals);
            if let Some(excess) = unmatched.checked_sub(self.search.tries + 1) {
                self.skip(1 + ((excess + 1) >> 6), is_flush, out);
            }
        } else {
            self.index += 1;
            self.is_byte_pending = true;
        }
    }

    /// Writes the byte before `index` as a literal.
    #[inline]
    fn push_literal(&mut self, is_flush: bool, out: &mut BitWriter) {
        self.tokens
            .push(Token::literal(self.window[self.index - 1]));
        self.write_full_block(is_flush, out);
    }

    /// Writes up to `count` bytes and one more as literals without a search, because the last match
    /// is far back.
    fn skip(&mut self, count: usize, is_flush: bool, out: &mut BitWriter) {
        for _ in 0..count {
            if self.index + 1 >= self.end {
                break;
            }
            self.push_literal(is_flush, out);
            self.index += 1;
        }
        self.is_byte_pending = false;
        self.push_literal(is_flush, out);
    }

    fn write_full_block(&mut self, is_flush: bool, out: &mut BitWriter) {
        if self.tokens.len() == BLOCK_TOKENS {
            self.write_block(is_flush, out);
        }
    }

    /// Writes the tokens as a block that ends before `index`.
    fn write_block(&mut self, is_flush: bool, out: &mut BitWriter) {
        let plain = self
            .block_start
            .map(|start| &self.window[start..self.index]);
        self.blocks.write_tokens(&self.tokens, plain, is_flush, out);
        self.tokens.clear();
        self.block_start = Some(self.index);
    }
}

impl Encoder for LazyEncoder {
    fn write(&mut self, mut plain: &[u8], out: &mut BitWriter) {
        while !plain.is_empty() {
            if self.end == WINDOW {
                self.encode(false, out);
            }
            plain = self.fill(plain);
        }
    }

    fn flush(&mut self, out: &mut BitWriter) {
        self.encode(true, out);
        self.blocks.write_stored(&[], out);
    }

    fn finish(&mut self, out: &mut BitWriter) {
        self.encode(true, out);
        self.blocks.finish(out);
    }
}

impl RestartEncoder for LazyEncoder {
    fn restart(&mut self, dictionary: &[u8]) {
        self.blocks.reset();
        self.tokens.clear();
        self.chains.clear();
        self.previous = NO_MATCH;
        self.is_byte_pending = false;
        self.literals = 0;
        let known = &dictionary[dictionary.len().saturating_sub(MAX_DISTANCE)..];
        self.window[..known.len()].copy_from_slice(known);
        self.index = known.len();
        self.end = known.len();
        // most releases regard the dictionary as part of the first block
        let is_separate = self.rules.ends_dictionary;
        self.block_start = Some(if is_separate { known.len() } else { 0 });
        let insert_end = known.len().saturating_sub(MIN_MATCH - 1);
        self.chains.link_up_to(&self.window, insert_end);
        self.chains.skip_to(known.len());
    }
}

/// The shortest match that is looked for.
const MIN_MATCH: usize = 4;

/// The parameters of the search for matches at one level.
#[derive(Debug, Clone, Copy)]
struct LazySearchRules {
    /// The maximum number of positions of a chain that are tried.
    tries: usize,
    /// A match of this length ends the search.
    nice: usize,
    /// A match shorter than this is dropped if the next position has a longer one.
    lazy: usize,
    /// Whether matches are compared by the bits that they save, instead of only by their lengths.
    estimates: bool,
}

impl LazySearchRules {
    fn of_level(level: i8) -> Self {
        let (lazy, nice, tries) = match level {
            ..=7 => (12, 16, 24),
            8 => (30, 40, 64),
            9.. => (258, 258, 1024),
        };
        Self {
            tries,
            nice,
            lazy,
            estimates: level >= 9,
        }
    }
}

/// The value that means that there is no match.
const NO_MATCH: ChainMatch = ChainMatch {
    length: MIN_MATCH - 1,
    distance: 0,
};

// Looks for a better match at the end of a match.

/// The maximum number of bytes by which a better match may begin later.
const SKIPPED: usize = 2;

impl LazyEncoder {
    /// Replaces the match at `index` − 1 by a longer one if there is one. The longer match is found
    /// by the hash of the last two bytes of the first match and the two bytes after it.
    fn improve_whole(&self, found: &mut ChainMatch, lookahead: usize, insert_end: usize) {
        let start = self.index - 1;
        let end = start + found.length;
        if end + 2 >= insert_end {
            return;
        }
        let first = self.index.saturating_sub(MAX_DISTANCE);
        let source = self.chains.last_up_to(self.index, end - 2);
        let Some(source) = source.and_then(|last| (last + 2).checked_sub(found.length)) else {
            return;
        };
        if source > first {
            let limit = lookahead.min(MAX_LENGTH);
            let length = match_length(&self.window[..], source, start, limit);
            if length > found.length {
                *found = ChainMatch {
                    length,
                    distance: start - source,
                };
            }
        }
    }

    /// Replaces the match at `index` − 1 by a longer one if there is one. The longer match is found
    /// by the hash of the bytes after the first match. It may begin up to two bytes later; the
    /// bytes before it are then literals.
    fn improve_skipping(
        &mut self,
        found: &mut ChainMatch,
        lookahead: usize,
        insert_end: usize,
        is_flush: bool,
        out: &mut BitWriter,
    ) {
        let start = self.index - 1;
        if found.length >= MAX_LENGTH - SKIPPED || start + found.length >= insert_end {
            return;
        }
        let first = self.index.saturating_sub(MAX_DISTANCE);
        let source = self.chains.last_up_to(self.index, start + found.length);
        let Some(source) = source.and_then(|last| last.checked_sub(found.length)) else {
            return;
        };
        if start - source == found.distance || source <= first + SKIPPED {
            return;
        }
        let limit = lookahead.min(MAX_LENGTH + SKIPPED) - SKIPPED;
        let length = match_length(&self.window[..], source + SKIPPED, start + SKIPPED, limit);
        if length <= found.length {
            return;
        }
        *found = ChainMatch {
            length,
            distance: start - source,
        };
        for offset in (0..SKIPPED).rev() {
            if found.length < MAX_LENGTH
                && self.window[start + offset] == self.window[source + offset]
            {
                found.length += 1;
                continue;
            }
            for _ in 0..=offset {
                self.push_literal(is_flush, out);
                self.index += 1;
            }
            break;
        }
    }
}

impl LazyEncoder {
    /// The first of the longest matches at `index` that are longer than `longer_than` bytes.
    fn longest_match(&self, longer_than: usize, lookahead: usize) -> ChainMatch {
        self.best_match(longer_than, lookahead, |_| true)
    }

    /// The match at `index` that saves the most bits. A match that is not longer than the best one
    /// so far is not considered.
    fn most_saving_match(&self, lookahead: usize) -> ChainMatch {
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
            let length_bits = length_extra_bits(length_index(found.length));
            let match_bits = distance_bits + cost + length_bits;
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
    fn estimate_literals(&mut self) {
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
        code.set_counts(&counts, self.rules.ties);
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
