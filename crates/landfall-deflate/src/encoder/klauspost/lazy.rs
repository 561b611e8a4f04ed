//! Levels 7 to 9: hash chains over a window of 64 KiB.

use super::Restart;
use super::blocks::BlockWriter;
use super::rules::{LazyMatchEnd, Rules};
use crate::bits::BitWriter;
use crate::encoder::Encoder;
use crate::encoder::bytes::{load32, match_length};
use crate::encoder::chains::{Chains, Hash, LINKS, WINDOW, Window, new_window};
use crate::encoder::huffman::{Code, MAX_BITS};
use crate::encoder::symbols::{
    LENGTH_CODES, MAX_DISTANCE, MAX_LENGTH, MIN_LENGTH, Token, distance_code, distance_extra_bits,
    length_extra_bits,
};

/// The shortest match that is looked for.
const MIN_MATCH: usize = 4;
/// A match is only looked for if so many bytes follow, unless the stream is flushed.
const LOOKAHEAD: usize = MIN_MATCH + MAX_LENGTH;
/// The number of tokens of a block.
const BLOCK_TOKENS: usize = 1 << 15;
/// The estimate of a new block is raised by a part of 2^8.
const PENALTY_SHIFT: u32 = 8;
/// The bytes that a better match at the end of a match may differ in.
const SKIPPED: usize = 2;

/// How a level searches.
#[derive(Debug, Clone, Copy)]
struct SearchRules {
    /// How many positions of a chain are tried.
    tries: usize,
    /// A match of this length ends the search.
    nice: usize,
    /// A match shorter than this is given up if the next position has a longer one.
    lazy: usize,
    /// Whether matches are compared by the bits that they save, not by their lengths alone.
    estimates: bool,
}

impl SearchRules {
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

/// A match that was found; without one, the length is that of no match.
#[derive(Debug, Clone, Copy)]
struct Match {
    length: usize,
    distance: usize,
}

const NO_MATCH: Match = Match {
    length: MIN_MATCH - 1,
    distance: 0,
};

/// The encoder of levels 7 to 9.
#[derive(Debug)]
pub(super) struct LazyEncoder {
    rules: Rules,
    search: SearchRules,
    window: Box<Window>,
    /// The next position to encode.
    index: usize,
    /// The end of the bytes in the window.
    end: usize,
    /// The first position of the block, or `None` if it has left the window.
    block_start: Option<usize>,
    /// The match at the position before `index`.
    previous: Match,
    /// Whether the byte before `index` is still to be encoded.
    is_byte_pending: bool,
    /// The number of literals since the last match; it begins again after 65,535.
    literals: u16,
    /// The estimated bits of the literals from the beginning of a part of the window up to each
    /// position, at level 9.
    literal_bits: Vec<u32>,
    chains: Chains,
    tokens: Vec<Token>,
    blocks: BlockWriter,
}

impl LazyEncoder {
    pub(super) fn new(level: i8, rules: Rules) -> Self {
        Self {
            rules,
            search: SearchRules::of_level(level),
            window: new_window(),
            index: 0,
            end: 0,
            block_start: Some(0),
            previous: NO_MATCH,
            is_byte_pending: false,
            literals: 0,
            literal_bits: Vec::new(),
            chains: Chains::new(Hash::LittleEndian),
            tokens: Vec::with_capacity(BLOCK_TOKENS),
            blocks: BlockWriter::new(rules, PENALTY_SHIFT),
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

    /// Encodes the bytes in the window. Without `is_flush`, some are left for when more follow.
    fn encode(&mut self, is_flush: bool, out: &mut BitWriter) {
        let needed = if is_flush { 1 } else { LOOKAHEAD };
        if self.end - self.index >= needed && self.search.estimates {
            self.estimate_literals();
        }
        let insert_end = self.end.saturating_sub(MIN_MATCH - 1);
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
        let links = self.insert(insert_end);
        let mut previous = std::mem::replace(&mut self.previous, NO_MATCH);
        if links != 0 && lookahead > previous.length && previous.length < self.search.lazy {
            self.previous = if self.search.estimates {
                self.most_saving_match(links, lookahead)
            } else {
                // a match that is not longer than the previous one would not be used
                self.longest_match(links, previous.length, lookahead)
            };
        }
        if previous.length >= MIN_MATCH && self.previous.length <= previous.length {
            match self.rules.lazy_match_end {
                LazyMatchEnd::Whole => self.improve_whole(&mut previous, lookahead, insert_end),
                LazyMatchEnd::Skipping => {
                    self.improve_skipping(&mut previous, lookahead, insert_end, is_flush, out);
                }
            }
            self.tokens
                .push(Token::matched(previous.length, previous.distance));
            let next = self.index + previous.length - 1;
            for position in self.index + 1..next.min(insert_end) {
                self.chains.insert(&self.window, position);
            }
            self.index = next;
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
                self.skip(1 + ((excess + 1) >> 6), insert_end, is_flush, out);
            }
        } else {
            self.index += 1;
            self.is_byte_pending = true;
        }
    }

    /// Inserts the position `index`.
    #[inline]
    fn insert(&mut self, insert_end: usize) -> u64 {
        if self.index < insert_end {
            self.chains.insert(&self.window, self.index)
        } else {
            0
        }
    }

    /// Writes the byte before `index` as a literal.
    #[inline]
    fn push_literal(&mut self, is_flush: bool, out: &mut BitWriter) {
        self.tokens
            .push(Token::literal(self.window[self.index - 1]));
        self.write_full_block(is_flush, out);
    }

    /// Writes up to `count` bytes and one more as literals without a search, because there has been
    /// no match for long.
    fn skip(&mut self, count: usize, insert_end: usize, is_flush: bool, out: &mut BitWriter) {
        for _ in 0..count {
            if self.index + 1 >= self.end {
                break;
            }
            self.push_literal(is_flush, out);
            self.insert(insert_end);
            self.index += 1;
        }
        self.is_byte_pending = false;
        self.push_literal(is_flush, out);
    }

    /// The first of the longest matches at `index` that are longer than `longer_than` bytes.
    fn longest_match(&self, links: u64, longer_than: usize, lookahead: usize) -> Match {
        self.best_match(links, longer_than, lookahead, |_| true)
    }

    /// The longest match at `index` that is reached by matches which save more bits each.
    fn most_saving_match(&self, links: u64, lookahead: usize) -> Match {
        let (mut most_saved, cost) = match self.rules.lazy_match_end {
            LazyMatchEnd::Whole => (0, 6),
            LazyMatchEnd::Skipping => (4, 3),
        };
        let bits = &self.literal_bits[self.index..];
        self.best_match(links, NO_MATCH.length, lookahead, |found| {
            // The distance is taken for a distance − 1, whose greatest value has no code.
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
        mut is_better: impl FnMut(Match) -> bool,
    ) -> Match {
        let window = &*self.window;
        let position = self.index;
        let limit = lookahead.min(MAX_LENGTH);
        let nice = self.search.nice.min(limit);
        let first = position.saturating_sub(MAX_DISTANCE);
        let mut best = Match {
            length: longer_than,
            distance: 0,
        };
        // A longer match also agrees in the four bytes that end behind the best one.
        let mut offset = best.length - 3;
        let mut last_bytes = load32(window, position + offset);
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
                if load32(window, candidate + offset) != last_bytes {
                    continue;
                }
                let found = Match {
                    length: match_length(window, candidate, position, limit),
                    distance: position - candidate,
                };
                if found.length > best.length && is_better(found) {
                    best = found;
                    if found.length >= nice {
                        break 'search;
                    }
                    offset = (found.length - 3).min(MAX_LENGTH - 3);
                    last_bytes = load32(window, position + offset);
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

    /// Replaces a match at `index` − 1 by a longer one that the last two of its bytes and the two
    /// behind them lead to.
    fn improve_whole(&self, found: &mut Match, lookahead: usize, insert_end: usize) {
        let start = self.index - 1;
        let end = start + found.length;
        if end + 2 >= insert_end {
            return;
        }
        let first = self.index.saturating_sub(MAX_DISTANCE);
        let source = self.chains.last(&self.window, end - 2);
        let Some(source) = source.and_then(|last| (last + 2).checked_sub(found.length)) else {
            return;
        };
        if source > first {
            let limit = lookahead.min(MAX_LENGTH);
            let length = match_length(&self.window[..], source, start, limit);
            if length > found.length {
                *found = Match {
                    length,
                    distance: start - source,
                };
            }
        }
    }

    /// Replaces a match at `index` − 1 by a longer one that the bytes behind it lead to. Its first two
    /// bytes may differ: they are then written as literals.
    fn improve_skipping(
        &mut self,
        found: &mut Match,
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
        let source = self.chains.last(&self.window, start + found.length);
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
        *found = Match {
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
                self.insert(insert_end);
            }
            break;
        }
    }

    /// Estimates the bits of each literal from those in the window.
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

impl Restart for LazyEncoder {
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
        for position in 0..known.len().saturating_sub(MIN_MATCH - 1) {
            self.chains.insert(&self.window, position);
        }
    }
}
