//! Levels 2 to 9: hash chains over a window of 64 KiB.

use super::classic::GoBlockWriter;
use crate::bits::BitWriter;
use crate::encoder::Encoder;
use crate::encoder::block::write_stored;
use crate::encoder::chains::{
    ChainHash, ChainMatch, ChainSearch, ChainWindow, Chains, LinkedChains, WINDOW, best_match,
    new_window,
};
use crate::encoder::huffman::Token;
use crate::symbols::{MAX_DISTANCE, MAX_LENGTH};

/// The shortest match that is looked for.
const MIN_MATCH: usize = 4;

/// The number of bytes that must be available from a position on before a match is searched there,
/// unless the stream is flushed.
const LOOKAHEAD: usize = MIN_MATCH + MAX_LENGTH;

/// Matches of four bytes are only used up to this distance.
const MAX_SHORT_DISTANCE: usize = 4096;

/// The maximum number of tokens of a block.
pub(super) const BLOCK_TOKENS: usize = 1 << 14;

/// The parameters of the search for matches at one level.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChainRules {
    /// The maximum number of positions of a chain that are tried.
    tries: usize,
    /// A match of this length ends the search.
    nice: usize,
    strategy: ChainStrategy,
}

#[derive(Debug, Clone, Copy)]
enum ChainStrategy {
    /// A match is used at once. The positions inside matches of up to `insert` bytes are added to
    /// the chains.
    Greedy { insert: usize },
    /// A match shorter than `lazy` is dropped if the next position has a longer one.
    Lazy { lazy: usize },
}

impl ChainRules {
    /// The rules of levels 2 to 9. Lower numbers get the rules of level 2, higher ones those of
    /// level 9.
    pub(super) fn of_level(level: i8) -> Self {
        let greedy = |tries, nice, insert| Self {
            tries,
            nice,
            strategy: ChainStrategy::Greedy { insert },
        };
        let lazy = |tries, nice, lazy| Self {
            tries,
            nice,
            strategy: ChainStrategy::Lazy { lazy },
        };
        match level {
            ..=2 => greedy(8, 16, 5),
            3 => greedy(32, 32, 6),
            4 => lazy(16, 16, 4),
            5 => lazy(32, 32, 16),
            6 => lazy(128, 128, 16),
            7 => lazy(256, 128, 32),
            8 => lazy(1024, 258, 128),
            9.. => lazy(4096, 258, 258),
        }
    }
}

const NO_MATCH: ChainMatch = ChainMatch {
    length: MIN_MATCH - 1,
    distance: 0,
};

/// Whether a match is used. A match of four bytes is used only if it is near.
#[inline]
fn is_useful(found: ChainMatch) -> bool {
    found.length > MIN_MATCH || found.distance <= MAX_SHORT_DISTANCE
}

/// The encoder of levels 2 to 9.
#[derive(Debug)]
pub(super) struct ChainEncoder {
    rules: ChainRules,
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
    /// The dictionary of a greedy search.
    chains: Chains,
    /// The dictionary of a lazy search.
    linked: LinkedChains,
    tokens: Vec<Token>,
    blocks: GoBlockWriter,
}

impl ChainEncoder {
    pub(super) fn new(rules: ChainRules) -> Self {
        Self {
            rules,
            window: new_window(),
            index: 0,
            end: 0,
            block_start: Some(0),
            previous: NO_MATCH,
            is_byte_pending: false,
            chains: Chains::new(ChainHash::BigEndian),
            linked: LinkedChains::new(ChainHash::BigEndian),
            tokens: Vec::with_capacity(BLOCK_TOKENS),
            blocks: GoBlockWriter::new(),
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
            match self.rules.strategy {
                ChainStrategy::Greedy { .. } => self.chains.slide(),
                ChainStrategy::Lazy { .. } => self.linked.slide(),
            }
        }
        let (now, later) = plain.split_at(plain.len().min(WINDOW - self.end));
        self.window[self.end..self.end + now.len()].copy_from_slice(now);
        self.end += now.len();
        later
    }

    /// Encodes the bytes in the window. Without `flush`, some are kept until more bytes follow.
    fn encode(&mut self, flush: bool, out: &mut BitWriter) {
        match self.rules.strategy {
            ChainStrategy::Greedy { insert } => self.encode_greedy(insert, flush, out),
            ChainStrategy::Lazy { lazy } => self.encode_lazy(lazy, flush, out),
        }
        if flush {
            if self.is_byte_pending {
                self.tokens
                    .push(Token::literal(self.window[self.index - 1]));
                self.is_byte_pending = false;
            }
            if !self.tokens.is_empty() {
                self.write_block(self.index, out);
            }
        }
    }

    fn encode_lazy(&mut self, lazy: usize, flush: bool, out: &mut BitWriter) {
        let insert_end = self.end.saturating_sub(MIN_MATCH - 1);
        self.linked.link_up_to(&self.window, insert_end);
        if flush {
            self.linked.skip_to(self.end);
        }
        let lookahead_needed = if flush { 1 } else { LOOKAHEAD };
        while self.end - self.index >= lookahead_needed {
            let lookahead = self.end - self.index;
            let previous = std::mem::replace(&mut self.previous, NO_MATCH);
            if self.linked.has_candidate(self.index)
                && lookahead > previous.length
                && previous.length < lazy
            {
                // a match that is not longer than the previous one would not be used
                let search = self.chain_search(previous.length);
                self.previous = self
                    .linked
                    .best_match(&self.window, search, is_useful)
                    .or(NO_MATCH);
            }
            if previous.length >= MIN_MATCH && self.previous.length <= previous.length {
                self.tokens
                    .push(Token::matched(previous.length, previous.distance));
                self.index += previous.length - 1;
                self.is_byte_pending = false;
                self.previous = NO_MATCH;
                if self.tokens.len() == BLOCK_TOKENS {
                    self.write_block(self.index, out);
                }
            } else {
                if self.is_byte_pending {
                    self.tokens
                        .push(Token::literal(self.window[self.index - 1]));
                    if self.tokens.len() == BLOCK_TOKENS {
                        self.write_block(self.index, out);
                    }
                }
                self.index += 1;
                self.is_byte_pending = true;
            }
        }
    }

    fn encode_greedy(&mut self, insert: usize, flush: bool, out: &mut BitWriter) {
        let insert_end = self.end.saturating_sub(MIN_MATCH - 1);
        let lookahead_needed = if flush { 1 } else { LOOKAHEAD };
        while self.end - self.index >= lookahead_needed {
            let lookahead = self.end - self.index;
            let links = if self.index < insert_end {
                self.chains.insert(&self.window, self.index)
            } else {
                0
            };
            let found = if links != 0 && lookahead >= MIN_MATCH {
                let search = self.chain_search(NO_MATCH.length);
                let links = |position| self.chains.links(position);
                // `best_match` calls `steps` only if its constant `FOLLOWS_GRAMS` is true
                let steps = |_, _| 0;
                best_match::<false>(&self.window, search, links, steps, is_useful).or(NO_MATCH)
            } else {
                NO_MATCH
            };
            if found.length >= MIN_MATCH {
                self.tokens
                    .push(Token::matched(found.length, found.distance));
                let next = self.index + found.length;
                if found.length <= insert {
                    for position in self.index + 1..next.min(insert_end) {
                        self.chains.insert(&self.window, position);
                    }
                }
                self.index = next;
            } else {
                self.tokens.push(Token::literal(self.window[self.index]));
                self.index += 1;
            }
            if self.tokens.len() == BLOCK_TOKENS {
                self.write_block(self.index, out);
            }
        }
    }

    /// The parameters of a search at `index` for a match that is longer than `longer_than` bytes.
    fn chain_search(&self, longer_than: usize) -> ChainSearch {
        ChainSearch {
            position: self.index,
            lookahead: self.end - self.index,
            longer_than,
            tries: self.rules.tries,
            nice: self.rules.nice,
        }
    }

    /// Writes the tokens as a block that ends before window position `end`.
    fn write_block(&mut self, end: usize, out: &mut BitWriter) {
        let plain = self.block_start.map(|start| &self.window[start..end]);
        self.blocks.write_smallest(&self.tokens, plain, out);
        self.tokens.clear();
        self.block_start = Some(end);
    }
}

impl Encoder for ChainEncoder {
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
        write_stored(&[], false, out);
    }

    fn finish(&mut self, out: &mut BitWriter) {
        self.encode(true, out);
        write_stored(&[], true, out);
    }
}
