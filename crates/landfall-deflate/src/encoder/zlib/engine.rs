//! The search for matches of zlib and GNU gzip: with lazy matching, without, and without a
//! dictionary.
//!
//! With lazy matching, a match is used unless the next position has a longer one, in which case a
//! literal is written and the next position decides again. Without, each match is used at once.
//!
//! Matches of three bytes at a distance above 4,096 cost more than literals and are dropped by the
//! lazy search. All positions of a match enter the dictionary, without lazy matching only if the
//! match is short.

use super::block::write_block;
use super::chains::HashChains;
use super::effort::{Effort, Parsing};
use super::index::PositionIndex;
use super::tokens::Tokens;
use super::window::{Match, Search, ThreeByteHash, WANTED_AHEAD, Window};
use crate::bits::BitWriter;
use crate::encoder::block::write_stored;
use crate::encoder::symbols::{MAX_LENGTH, MIN_LENGTH, Token};

/// The length that stands for "no match".
const NO_MATCH: usize = MIN_LENGTH - 1;
/// The lazy search drops matches of three bytes that are farther than this.
pub(super) const FARTHEST_OF_SHORTEST: usize = 4096;

/// What differs between zlib and GNU gzip.
pub(super) trait Dialect {
    /// Whether the search and the dictionary may take bytes after the end of the input for input.
    /// Then the match that is cut at the end of the input need not be the nearest one.
    const READS_PAST_END: bool;

    /// Whether the block ends after its latest token. `plain_size` is the number of bytes between
    /// the beginning of the block and the position that the search has reached.
    fn ends_block(&mut self, tokens: &Tokens, plain_size: usize) -> bool;
}

/// How far input is available.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InputEnd {
    /// More may follow.
    Open,
    /// All input until a flush or the end of the stream is there.
    Reached,
}

/// An encoder at work.
#[derive(Debug)]
pub(super) struct Engine<D> {
    dialect: D,
    effort: Effort,
    window: Window,
    /// The dictionary without lazy matching.
    chains: HashChains,
    /// The dictionary with lazy matching.
    index: PositionIndex,
    tokens: Tokens,
    /// The position that is searched next.
    position: usize,
    /// How many bytes follow in the window, from `position` on.
    ahead: usize,
    /// Where the block began; negative after the window has dropped its beginning.
    block_start: isize,
    /// How many positions before `position` wait for bytes to enter `chains`.
    pending_inserts: usize,
    /// The match at the position before, its length 2 if there is none.
    latest: Match,
    /// Whether the byte before `position` is neither written nor part of a match.
    literal_waits: bool,
    /// Whether the bytes past the end of the input were cleared.
    end_marked: bool,
}

impl<D: Dialect> Engine<D> {
    /// `window_bits` is from 9 to 15, `hash_bits` from 8 to 16.
    pub(super) fn new(dialect: D, effort: Effort, window_bits: u8, hash_bits: u8) -> Self {
        let window = Window::new(window_bits);
        let hash = ThreeByteHash::new(hash_bits);
        Self {
            dialect,
            effort,
            chains: HashChains::new(window.size(), hash),
            index: PositionIndex::new(window.size(), hash),
            window,
            tokens: Tokens::new(),
            position: 0,
            ahead: 0,
            block_start: 0,
            pending_inserts: 0,
            latest: Match {
                length: NO_MATCH,
                position: 0,
            },
            literal_waits: false,
            end_marked: false,
        }
    }

    /// Compresses `input` as far as the bytes that follow cannot matter.
    pub(super) fn write(&mut self, input: &[u8], out: &mut BitWriter) {
        self.run(input, InputEnd::Open, out);
    }

    /// Writes all input that waits, and ends the block if there is one.
    pub(super) fn end_block(&mut self, out: &mut BitWriter) {
        self.run(&[], InputEnd::Reached, out);
        self.settle();
        if self.tokens.len() > 0 {
            self.write_block(false, out);
        }
    }

    /// Ends the block and writes an empty stored block.
    pub(super) fn sync(&mut self, out: &mut BitWriter) {
        self.end_block(out);
        write_stored(&[], false, out);
    }

    /// Writes the last block, and pads to a whole byte.
    pub(super) fn finish(&mut self, out: &mut BitWriter) {
        self.run(&[], InputEnd::Reached, out);
        self.settle();
        self.write_block(true, out);
        out.align();
    }

    /// Forgets all earlier input, and takes the last 32 KiB of `dictionary` in its stead. All
    /// blocks must have ended.
    pub(super) fn restart(&mut self, dictionary: &[u8]) {
        let used = dictionary.len().min(self.window.size());
        self.position = self
            .window
            .append(0, &dictionary[dictionary.len() - used..]);
        self.block_start = self.position as isize;
        self.ahead = 0;
        match self.effort.parsing {
            Parsing::Greedy => {
                self.chains.forget();
                self.pending_inserts = self.position.min(NO_MATCH);
                self.insert_range(0, self.position - self.pending_inserts);
            }
            Parsing::Lazy => {
                self.index.forget();
                self.index.link_up_to(self.window.bytes(), self.position);
            }
            Parsing::Runs | Parsing::Literals => {}
        }
    }

    fn run(&mut self, mut input: &[u8], end: InputEnd, out: &mut BitWriter) {
        match self.effort.parsing {
            Parsing::Lazy => self.search_lazily(&mut input, end, out),
            Parsing::Greedy => self.search_greedily(&mut input, end, out),
            Parsing::Runs => self.search_runs(&mut input, end, out),
            Parsing::Literals => self.take_literals(&mut input, end, out),
        }
    }

    /// Writes the literal that waits at the end of the input. The block is written next, whether
    /// it is full or not.
    fn settle(&mut self) {
        if self.literal_waits {
            self.push_literal(self.position - 1);
            self.literal_waits = false;
        }
        self.latest.length = NO_MATCH;
        self.end_marked = false;
        // the hashes of the last two positions need bytes that follow
        self.pending_inserts = self.position.min(NO_MATCH);
    }

    /// Takes input into the window until `wanted` bytes are ahead, or the input is used up.
    fn fill(&mut self, wanted: usize, input: &mut &[u8], end: InputEnd) {
        loop {
            let moves = match end {
                // the window moves once it could not be filled up to what is wanted: until then,
                // the original, to which the whole input was available, had no reason to look
                InputEnd::Open => 2 * self.window.size() - self.position < wanted,
                InputEnd::Reached => self.is_movable() && !self.end_marked,
            };
            if moves {
                self.slide();
            }
            if input.is_empty() {
                break;
            }
            let count = self.window.append(self.position + self.ahead, input);
            *input = &input[count..];
            self.ahead += count;
            self.enter_input();
            if self.ahead >= wanted {
                break;
            }
        }
        if D::READS_PAST_END && end == InputEnd::Reached && !self.end_marked {
            let end = self.position + self.ahead;
            self.window.clear(end, MIN_LENGTH - 1);
            self.index.link_up_to(self.window.bytes(), end + MAX_LENGTH);
            self.end_marked = true;
        }
    }

    /// Whether no match can reach the lower half of the window any more.
    fn is_movable(&self) -> bool {
        self.position >= 2 * self.window.size() - WANTED_AHEAD
    }

    fn slide(&mut self) {
        let size = self.window.size();
        self.window.slide();
        match self.effort.parsing {
            Parsing::Greedy => self.chains.slide(),
            Parsing::Lazy => self.index.slide(),
            Parsing::Runs | Parsing::Literals => {}
        }
        self.position -= size;
        self.block_start -= size as isize;
        // without a match, the position of the latest one can be anywhere
        self.latest.position = self.latest.position.wrapping_sub(size);
        self.pending_inserts = self.pending_inserts.min(self.position);
    }

    /// Enters positions into the dictionary whose bytes have arrived.
    fn enter_input(&mut self) {
        match self.effort.parsing {
            Parsing::Greedy => {
                while self.pending_inserts > 0 && self.ahead + self.pending_inserts >= MIN_LENGTH {
                    let at = self.position - self.pending_inserts;
                    self.chains.insert(self.window.bytes(), at);
                    self.pending_inserts -= 1;
                }
            }
            Parsing::Lazy => {
                let end = self.position + self.ahead;
                self.index.link_up_to(self.window.bytes(), end);
            }
            Parsing::Runs | Parsing::Literals => {}
        }
    }

    fn insert_range(&mut self, from: usize, to: usize) {
        for at in from..to {
            self.chains.insert(self.window.bytes(), at);
        }
    }

    /// Makes sure that `wanted` bytes are ahead. Returns whether the position can be searched.
    #[inline]
    fn prepare(&mut self, wanted: usize, input: &mut &[u8], end: InputEnd) -> bool {
        if self.ahead >= wanted {
            return true;
        }
        self.fill(wanted, input, end);
        self.ahead >= wanted || (end == InputEnd::Reached && self.ahead > 0)
    }

    /// How to search for a match of the position that is longer than `longer_than`. Returns nothing
    /// if there can be none. `head` is the head of the position's chain.
    #[inline]
    fn plan_search(&self, head: usize, longer_than: usize) -> Option<Search> {
        let too_far = self.position - head > self.window.size() - WANTED_AHEAD;
        // only after the end of the input can the position be this near to the window's end
        let near_end = self.position > 2 * self.window.size() - WANTED_AHEAD;
        if head == 0 || too_far || near_end || longer_than >= self.ahead {
            return None;
        }
        let patient = longer_than < self.effort.good;
        Some(Search {
            longer_than,
            chain: if patient {
                self.effort.chain
            } else {
                self.effort.chain / 4
            },
            nice: if D::READS_PAST_END {
                self.effort.nice
            } else {
                self.effort.nice.min(self.ahead)
            },
        })
    }

    /// Searches for a match of the position that is longer than `longer_than`, with lazy matching.
    #[inline]
    fn search_index(&self, longer_than: usize) -> Option<Match> {
        let head = self.index.head(self.position);
        let search = self.plan_search(head, longer_than)?;
        let bytes = self.window.bytes();
        let mut found = self
            .index
            .longest_match(bytes, self.position, head, search)?;
        found.length = found.length.min(self.ahead);
        Some(found)
    }

    /// Enters the position into the chains and searches for a match, without lazy matching.
    #[inline]
    fn search_chain(&mut self) -> Option<Match> {
        if !D::READS_PAST_END && self.ahead < MIN_LENGTH {
            return None;
        }
        let head = self.chains.insert(self.window.bytes(), self.position);
        let search = self.plan_search(head, NO_MATCH)?;
        let bytes = self.window.bytes();
        let mut found = self
            .chains
            .longest_match(bytes, self.position, head, search)?;
        found.length = found.length.min(self.ahead);
        Some(found)
    }

    fn search_lazily(&mut self, input: &mut &[u8], end: InputEnd, out: &mut BitWriter) {
        while self.prepare(WANTED_AHEAD, input, end) {
            let before = self.latest;
            self.latest.length = NO_MATCH;
            if before.length < self.effort.lazy
                && let Some(found) = self.search_index(before.length)
            {
                self.latest = found;
                let far = self.position - found.position > FARTHEST_OF_SHORTEST;
                if (found.length == MIN_LENGTH && far)
                    || found.length <= self.effort.shortest_dropped
                {
                    self.latest.length = NO_MATCH;
                }
            }
            if before.length >= MIN_LENGTH && self.latest.length <= before.length {
                self.take_match_before(before, out);
            } else if self.literal_waits {
                self.push_literal(self.position - 1);
                if self.block_is_full() {
                    self.write_block(false, out);
                }
                self.position += 1;
                self.ahead -= 1;
            } else {
                self.literal_waits = true;
                self.position += 1;
                self.ahead -= 1;
            }
        }
    }

    /// Writes the match that begins at the position before.
    #[inline]
    fn take_match_before(&mut self, found: Match, out: &mut BitWriter) {
        let start = self.position - 1;
        let distance = start - found.position;
        self.tokens.push(Token::matched(found.length, distance));
        // judged before the position moves behind the match
        let full = self.block_is_full();
        self.ahead -= found.length - 1;
        self.position = start + found.length;
        self.literal_waits = false;
        self.latest.length = NO_MATCH;
        if full {
            self.write_block(false, out);
        }
    }

    fn search_greedily(&mut self, input: &mut &[u8], end: InputEnd, out: &mut BitWriter) {
        while self.prepare(WANTED_AHEAD, input, end) {
            let full;
            match self.search_chain() {
                Some(found) if found.length >= MIN_LENGTH => {
                    let distance = self.position - found.position;
                    self.tokens.push(Token::matched(found.length, distance));
                    full = self.block_is_full();
                    self.ahead -= found.length;
                    let after = self.position + found.length;
                    let inserts = found.length <= self.effort.lazy
                        && (D::READS_PAST_END || self.ahead >= MIN_LENGTH);
                    if inserts {
                        self.insert_range(self.position + 1, after);
                    }
                    self.position = after;
                }
                _ => {
                    self.push_literal(self.position);
                    full = self.block_is_full();
                    self.ahead -= 1;
                    self.position += 1;
                }
            }
            if full {
                self.write_block(false, out);
            }
        }
    }

    /// Takes runs of one byte for matches at distance 1, and no other match.
    fn search_runs(&mut self, input: &mut &[u8], end: InputEnd, out: &mut BitWriter) {
        while self.prepare(MAX_LENGTH + 1, input, end) {
            let run = self.window.run_length(self.position).min(self.ahead);
            let taken = if run >= MIN_LENGTH {
                self.tokens.push(Token::matched(run, 1));
                run
            } else {
                self.push_literal(self.position);
                1
            };
            let full = self.block_is_full();
            self.position += taken;
            self.ahead -= taken;
            if full {
                self.write_block(false, out);
            }
        }
    }

    fn take_literals(&mut self, input: &mut &[u8], end: InputEnd, out: &mut BitWriter) {
        while self.prepare(1, input, end) {
            self.push_literal(self.position);
            let full = self.block_is_full();
            self.position += 1;
            self.ahead -= 1;
            if full {
                self.write_block(false, out);
            }
        }
    }

    #[inline]
    fn push_literal(&mut self, at: usize) {
        self.tokens.push(Token::literal(self.window.byte(at)));
    }

    /// Judges the block at its latest token, while `position` is still where the token was found.
    #[inline]
    fn block_is_full(&mut self) -> bool {
        let plain_size = self.position as isize - self.block_start;
        self.dialect.ends_block(&self.tokens, plain_size as usize)
    }

    #[cold]
    fn write_block(&mut self, last: bool, out: &mut BitWriter) {
        let plain_size = (self.position as isize - self.block_start) as usize;
        let plain = usize::try_from(self.block_start)
            .ok()
            .map(|start| self.window.slice(start, self.position));
        let choice = self.effort.blocks;
        write_block(self.tokens.as_slice(), plain, plain_size, choice, last, out);
        self.tokens.clear();
        self.block_start = self.position as isize;
    }
}
