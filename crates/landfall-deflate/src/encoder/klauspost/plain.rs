//! Levels 0 and −2: blocks without matches.

use super::blocks::KlauspostBlockWriter;
use super::restart::RestartEncoder;
use super::rules::KlauspostRules;
use crate::bits::BitWriter;
use crate::encoder::Encoder;
use crate::encoder::block::MAX_STORED;

/// The encoder of levels 0 and −2.
#[derive(Debug)]
pub(super) struct KlauspostPlainEncoder {
    block: Vec<u8>,
    block_size: usize,
    is_stored: bool,
    blocks: KlauspostBlockWriter,
}

impl KlauspostPlainEncoder {
    /// Level 0: stores all bytes.
    pub(super) fn stored(rules: KlauspostRules) -> Self {
        Self::new(rules, MAX_STORED, true)
    }

    /// Level −2: codes the literals of a block unless a stored block is about as small.
    pub(super) fn literals(rules: KlauspostRules) -> Self {
        Self::new(rules, rules.literal_block, false)
    }

    fn new(rules: KlauspostRules, block_size: usize, is_stored: bool) -> Self {
        Self {
            block: Vec::with_capacity(block_size),
            block_size,
            is_stored,
            blocks: KlauspostBlockWriter::new(rules, rules.literal_penalty_shift),
        }
    }

    fn write_block(&mut self, is_flush: bool, out: &mut BitWriter) {
        if self.block.is_empty() {
            return;
        }
        if self.is_stored {
            self.blocks.write_stored(&self.block, out);
        } else {
            self.blocks.write_literals(&self.block, is_flush, out);
        }
        self.block.clear();
    }
}

impl Encoder for KlauspostPlainEncoder {
    fn write(&mut self, mut plain: &[u8], out: &mut BitWriter) {
        while !plain.is_empty() {
            if self.block.len() == self.block_size {
                self.write_block(false, out);
            }
            let room = self.block_size - self.block.len();
            let (now, later) = plain.split_at(plain.len().min(room));
            self.block.extend_from_slice(now);
            plain = later;
        }
    }

    fn flush(&mut self, out: &mut BitWriter) {
        self.write_block(true, out);
        self.blocks.write_stored(&[], out);
    }

    fn finish(&mut self, out: &mut BitWriter) {
        self.write_block(true, out);
        self.blocks.finish(out);
    }
}

impl RestartEncoder for KlauspostPlainEncoder {
    fn restart(&mut self, _dictionary: &[u8]) {
        self.block.clear();
        self.blocks.reset();
    }
}
