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

mod filling;
mod parsing;

use super::block::write_block;
use super::chains::HashChains;
use super::effort::{Effort, Parsing};
use super::index::PositionIndex;
use super::tokens::Tokens;
use super::window::{Match, ThreeByteHash, Window};
use crate::bits::BitWriter;
use crate::encoder::block::write_stored;
use crate::encoder::symbols::{MIN_LENGTH, Token};

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
