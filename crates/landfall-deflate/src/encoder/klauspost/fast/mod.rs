//! Levels 1 to 6: tables of hashes over a history of several blocks, and blocks of 65,535 bytes.

mod double;
mod pair;
mod places;
mod repeat;
mod single;

use super::blocks::KlauspostBlockWriter;
use super::restart::RestartEncoder;
use super::rules::KlauspostRules;
use crate::bits::BitWriter;
use crate::encoder::Encoder;
use crate::encoder::block::MAX_STORED;
use crate::encoder::symbols::{MAX_DISTANCE, Token};
use places::{BlockSearch, HistoryPlaces, MARGIN, TablePosition, TokenOutput};

/// The number of bytes of a block.
const BLOCK: usize = MAX_STORED;
/// Smaller blocks are not searched.
const MIN_SEARCHED: usize = MARGIN + 2;
/// In most releases, a flush of fewer bytes than this is not searched, and clears the history.
const SMALL: usize = 128;
/// A flush that is not searched is stored uncompressed if it has at most this many bytes.
const MAX_FLUSH_STORED: usize = 32;
/// When positions have grown beyond this, all entries are lowered.
const MAX_BASE: u32 = 1 << 30;

/// The encoder of levels 1 to 6.
#[derive(Debug)]
pub(super) struct FastEncoder {
    rules: KlauspostRules,
    block: Vec<u8>,
    history: Vec<u8>,
    /// The position of the first byte of the history.
    base: TablePosition,
    search: Box<dyn BlockSearch>,
    tokens: Vec<Token>,
    blocks: KlauspostBlockWriter,
}

impl FastEncoder {
    /// The encoder of a level from 1 to 6. Lower levels get the encoder of level 1, and higher
    /// levels get the encoder of level 6.
    pub(super) fn new(level: i8, rules: KlauspostRules) -> Self {
        let search: Box<dyn BlockSearch> = match level {
            ..=1 => single::level_1(rules),
            2 => single::level_2(rules),
            3 => pair::level_3(rules),
            4 => Box::new(double::Level4::new()),
            5 => Box::new(repeat::Level5::new()),
            6.. => Box::new(repeat::Level6::new()),
        };
        Self {
            rules,
            block: Vec::with_capacity(BLOCK),
            history: Vec::with_capacity(rules.history_blocks * BLOCK),
            base: MAX_DISTANCE as u32 + 1,
            search,
            tokens: Vec::with_capacity(BLOCK),
            blocks: KlauspostBlockWriter::new(rules, rules.penalty_shift),
        }
    }

    /// Puts all entries out of reach.
    fn forget(&mut self) {
        self.base += (MAX_DISTANCE + self.history.len()) as u32;
        self.history.clear();
    }

    /// Appends the block to the history, and splits it into tokens.
    fn find_tokens(&mut self) {
        self.tokens.clear();
        if self.base > MAX_BASE {
            let lower_by = self.base - (MAX_DISTANCE as u32 + 1);
            self.search.lower(lower_by);
            self.base -= lower_by;
        }
        if self.history.len() + self.block.len() > self.rules.history_blocks * BLOCK {
            let moved = self.history.len() - MAX_DISTANCE;
            self.history.copy_within(moved.., 0);
            self.history.truncate(MAX_DISTANCE);
            self.base += moved as u32;
        }
        let start = self.history.len();
        self.history.extend_from_slice(&self.block);
        if self.block.len() >= MIN_SEARCHED {
            let places = HistoryPlaces {
                bytes: &self.history,
                start,
                base: self.base,
                rules: self.rules,
            };
            let output = TokenOutput {
                tokens: &mut self.tokens,
                literals: start,
            };
            self.search.search(places, output);
        }
    }

    /// Writes the bytes that were collected. `is_flush` means that a flush or the end of the stream
    /// follows, `is_last` that the end follows.
    fn write_block(&mut self, is_flush: bool, is_last: bool, out: &mut BitWriter) {
        let length = self.block.len();
        if length == 0 {
            return;
        }
        let is_small = is_flush && length < SMALL;
        let keeps_history = self.rules.flushes_keep_history;
        if is_small && (!keeps_history || is_last && self.history.is_empty()) {
            if length <= MAX_FLUSH_STORED {
                self.blocks.write_stored(&self.block, out);
            } else {
                self.blocks.write_literals(&self.block, true, out);
            }
            self.block.clear();
            self.forget();
            return;
        }
        self.find_tokens();
        let is_unmatched = self.tokens.is_empty();
        if length < MIN_SEARCHED || is_unmatched && !is_small {
            self.blocks.write_stored(&self.block, out);
        } else if is_unmatched || self.tokens.len() > length - (length >> 4) {
            self.blocks.write_literals(&self.block, is_flush, out);
        } else {
            self.blocks
                .write_tokens(&self.tokens, Some(&self.block), is_flush, out);
        }
        self.block.clear();
    }
}

impl Encoder for FastEncoder {
    fn write(&mut self, mut plain: &[u8], out: &mut BitWriter) {
        while !plain.is_empty() {
            if self.block.len() == BLOCK {
                self.write_block(false, false, out);
            }
            let (now, later) = plain.split_at(plain.len().min(BLOCK - self.block.len()));
            self.block.extend_from_slice(now);
            plain = later;
        }
    }

    fn flush(&mut self, out: &mut BitWriter) {
        self.write_block(true, false, out);
        self.blocks.write_stored(&[], out);
    }

    fn finish(&mut self, out: &mut BitWriter) {
        self.write_block(true, true, out);
        self.blocks.finish(out);
    }
}

impl RestartEncoder for FastEncoder {
    fn restart(&mut self, dictionary: &[u8]) {
        self.blocks.reset();
        self.block.clear();
        self.forget();
        let reached = dictionary.len().saturating_sub(MAX_DISTANCE);
        self.block.extend_from_slice(&dictionary[reached..]);
        self.find_tokens();
        self.block.clear();
    }
}
