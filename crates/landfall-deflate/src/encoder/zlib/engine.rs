//! Searches for matches as zlib and GNU gzip do: with lazy matching, without lazy matching, and
//! without a dictionary.
//!
//! With lazy matching, a match is used unless the next position has a longer one. If it has one, a
//! literal is written, and the longer match is compared with the match at the position after it.
//! Without lazy matching, each match is used at once.
//!
//! Matches of three bytes at a distance above 4,096 cost more than literals and are dropped by the
//! lazy search. With lazy matching, all positions of a match enter the dictionary. Without lazy
//! matching, a long match enters only its first position.

use super::blocks::{BlockChoice, Tokens, write_block};
use super::dictionary::{
    FARTHEST_OF_SHORTEST, HashChains, Match, PositionIndex, Search, ThreeByteHash, WANTED_AHEAD,
    Window,
};
use crate::bits::BitWriter;
use crate::encoder::block::write_stored;
use crate::encoder::huffman::Token;
use crate::symbols::{MAX_LENGTH, MIN_LENGTH};

/// The length that means that there is no match.
const NO_MATCH: usize = MIN_LENGTH - 1;

/// The differences between zlib and GNU gzip.
pub(super) trait Dialect {
    /// Whether the search and the dictionary may read bytes after the end of the input. If so, a
    /// match that is cut at the end of the input need not be the nearest one.
    const READS_PAST_END: bool;

    /// Whether the block ends after its latest token. `plain_size` is the number of bytes between
    /// the beginning of the block and the position that the search has reached.
    fn ends_block(&mut self, tokens: &Tokens, plain_size: usize) -> bool;

    /// Whether no match after a flush refers to bytes before the flush.
    fn forgets_at_flush(&self) -> bool {
        false
    }
}

/// Whether more input may follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InputEnd {
    /// More input may follow.
    Open,
    /// All input up to a flush or the end of the stream was received.
    Reached,
}

/// The state of an encoder.
#[derive(Debug)]
pub(super) struct Engine<D> {
    dialect: D,
    effort: Effort,
    window: Window,
    /// The dictionary of the search without lazy matching.
    chains: HashChains,
    /// The dictionary of the search with lazy matching.
    index: PositionIndex,
    tokens: Tokens,
    /// The position that is searched next.
    position: usize,
    /// The number of bytes in the window from `position` on.
    ahead: usize,
    /// The index at which the block began; negative after the window has dropped its beginning.
    block_start: isize,
    /// The number of positions before `position` that need further bytes before they enter
    /// `chains`.
    pending_inserts: usize,
    /// The match at the previous position; its length is 2 if there is none.
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
            chains: HashChains::new(window.size, hash),
            index: PositionIndex::new(window.size, hash),
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

    /// Compresses the part of `input` whose tokens do not depend on later bytes.
    pub(super) fn write(&mut self, input: &[u8], out: &mut BitWriter) {
        self.run(input, InputEnd::Open, out);
    }

    /// Writes all input that waits, and ends the block if there is one.
    pub(super) fn end_block(&mut self, out: &mut BitWriter) {
        self.run(&[], InputEnd::Reached, out);
        self.push_last_literal();
        if self.tokens.len() > 0 {
            self.write_block(false, out);
        }
    }

    /// Ends the block and writes an empty stored block.
    pub(super) fn flush(&mut self, out: &mut BitWriter) {
        self.end_block(out);
        write_stored(&[], false, out);
        if self.dialect.forgets_at_flush() {
            self.restart(&[]);
        }
    }

    /// Writes the last block, and pads to a whole byte.
    pub(super) fn finish(&mut self, out: &mut BitWriter) {
        self.run(&[], InputEnd::Reached, out);
        self.push_last_literal();
        self.write_block(true, out);
        out.align();
    }

    /// Replaces all earlier input by the end of `dictionary`, up to the size of the window. All
    /// blocks must have ended.
    pub(super) fn restart(&mut self, dictionary: &[u8]) {
        let used = dictionary.len().min(self.window.size);
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
                self.index.link_up_to(&self.window.bytes, self.position);
            }
            Parsing::Runs | Parsing::Literals => {}
        }
    }

    /// Writes the literal that waits at the end of the input, and prepares the search for further
    /// input. The block is written next, whether it is full or not.
    fn push_last_literal(&mut self) {
        if self.literal_waits {
            self.push_literal(self.position - 1);
            self.literal_waits = false;
        }
        self.latest.length = NO_MATCH;
        self.end_marked = false;
        // the hashes of the last two positions need bytes that follow
        self.pending_inserts = self.position.min(NO_MATCH);
    }

    #[inline]
    fn push_literal(&mut self, at: usize) {
        self.tokens.push(Token::literal(self.window.byte(at)));
    }

    /// Whether the block ends after its latest token. `position` must still be where the search
    /// found this token.
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

impl<D: Dialect> Engine<D> {
    /// Copies input into the window until `wanted` bytes are ahead or the input is used up.
    fn fill(&mut self, wanted: usize, input: &mut &[u8], end: InputEnd) {
        loop {
            let moves = match end {
                // the window moves once it has no room for `wanted` bytes: if zlib gets the whole
                // input at once, it does not check earlier
                InputEnd::Open => 2 * self.window.size - self.position < wanted,
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
            self.index.link_up_to(&self.window.bytes, end + MAX_LENGTH);
            self.end_marked = true;
        }
    }

    /// Whether no match can reach the lower half of the window any more.
    fn is_movable(&self) -> bool {
        self.position >= 2 * self.window.size - WANTED_AHEAD
    }

    fn slide(&mut self) {
        let size = self.window.size;
        self.window.slide();
        match self.effort.parsing {
            Parsing::Greedy => self.chains.slide(),
            Parsing::Lazy => self.index.slide(),
            Parsing::Runs | Parsing::Literals => {}
        }
        self.position -= size;
        self.block_start -= size as isize;
        // if there is no match, this position can have any value
        self.latest.position = self.latest.position.wrapping_sub(size);
        self.pending_inserts = self.pending_inserts.min(self.position);
    }

    /// Enters positions into the dictionary if all bytes that they need have arrived.
    fn enter_input(&mut self) {
        match self.effort.parsing {
            Parsing::Greedy => {
                while self.pending_inserts > 0 && self.ahead + self.pending_inserts >= MIN_LENGTH {
                    let at = self.position - self.pending_inserts;
                    self.chains.insert(&self.window.bytes, at);
                    self.pending_inserts -= 1;
                }
            }
            Parsing::Lazy => {
                let end = self.position + self.ahead;
                self.index.link_up_to(&self.window.bytes, end);
            }
            Parsing::Runs | Parsing::Literals => {}
        }
    }

    fn insert_range(&mut self, from: usize, to: usize) {
        for at in from..to {
            self.chains.insert(&self.window.bytes, at);
        }
    }

    /// Reads input until `wanted` bytes are ahead, or the input is used up. Returns whether the
    /// position can be searched.
    #[inline]
    fn prepare(&mut self, wanted: usize, input: &mut &[u8], end: InputEnd) -> bool {
        if self.ahead >= wanted {
            return true;
        }
        self.fill(wanted, input, end);
        self.ahead >= wanted || (end == InputEnd::Reached && self.ahead > 0)
    }
}

impl<D: Dialect> Engine<D> {
    /// Cuts `input` and the remaining earlier input into tokens. If more input may follow, the last
    /// bytes remain for the next call.
    fn run(&mut self, mut input: &[u8], end: InputEnd, out: &mut BitWriter) {
        match self.effort.parsing {
            Parsing::Lazy => self.search_lazily(&mut input, end, out),
            Parsing::Greedy => self.search_greedily(&mut input, end, out),
            Parsing::Runs => self.search_runs(&mut input, end, out),
            Parsing::Literals => self.collect_literals(&mut input, end, out),
        }
    }

    /// The parameters of a search for a match that is longer than `longer_than`. Returns `None` if
    /// there can be no such match. `head` is the head of the position's chain.
    #[inline]
    fn plan_search(&self, head: usize, longer_than: usize) -> Option<Search> {
        let too_far = self.position - head > self.window.size - WANTED_AHEAD;
        // the position can be this near to the window's end only after the end of the input
        let near_end = self.position > 2 * self.window.size - WANTED_AHEAD;
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

    /// Searches for a match of more than `longer_than` bytes at the position, with lazy matching.
    #[inline]
    fn search_index(&self, longer_than: usize) -> Option<Match> {
        let head = self.index.head(self.position);
        let search = self.plan_search(head, longer_than)?;
        let bytes = &self.window.bytes;
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
        let head = self.chains.insert(&self.window.bytes, self.position);
        let search = self.plan_search(head, NO_MATCH)?;
        let bytes = &self.window.bytes;
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
                self.push_match_before(before, out);
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

    /// Writes the match that begins at the previous position.
    #[inline]
    fn push_match_before(&mut self, found: Match, out: &mut BitWriter) {
        let start = self.position - 1;
        let distance = start - found.position;
        self.tokens.push(Token::matched(found.length, distance));
        // decided before the position moves past the match
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

    /// Writes runs of one byte as matches at distance 1, and finds no other matches.
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

    fn collect_literals(&mut self, input: &mut &[u8], end: InputEnd, out: &mut BitWriter) {
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
}

// The parameters of the search, by level and strategy. zlib and GNU gzip have the same levels.

/// The way in which plain bytes are cut into literals and matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Parsing {
    /// Each match is used at once.
    Greedy,
    /// A match is used unless the next position has a longer one.
    Lazy,
    /// Only runs of one byte are matches.
    Runs,
    /// All bytes are literals.
    Literals,
}

/// The effort of the search for matches.
#[derive(Debug, Clone, Copy)]
pub(super) struct Effort {
    pub(super) parsing: Parsing,
    /// After a match of at least this length, only a quarter of the chain is searched for a longer
    /// one.
    good: usize,
    /// After a match of at least this length, the next position is not searched. Without lazy
    /// matching: the positions inside longer matches do not enter the dictionary.
    pub(super) lazy: usize,
    /// A match of this length ends the search.
    pub(super) nice: usize,
    /// The maximum number of positions that are compared.
    pub(super) chain: u32,
    /// Matches up to this length are dropped by the lazy search.
    pub(super) shortest_dropped: usize,
    pub(super) blocks: BlockChoice,
}

impl Effort {
    /// The search of a level from 1 to 9, with the default strategy.
    pub(super) fn of_level(level: u8) -> Self {
        let (good, lazy, nice, chain) = match level {
            0 | 1 => (4, 4, 8, 4),
            2 => (4, 5, 16, 8),
            3 => (4, 6, 32, 32),
            4 => (4, 4, 16, 16),
            5 => (8, 16, 32, 32),
            6 => (8, 16, 128, 128),
            7 => (8, 32, 128, 256),
            8 => (32, 128, 258, 1024),
            _ => (32, 258, 258, 4096),
        };
        Self {
            parsing: if level < 4 {
                Parsing::Greedy
            } else {
                Parsing::Lazy
            },
            good,
            lazy,
            nice,
            chain,
            shortest_dropped: 0,
            blocks: BlockChoice::Shortest,
        }
    }
}
