//! Levels 0 and −2: blocks of 65,535 bytes without matches.

use super::blocks::GoBlockWriter;
use crate::bits::BitWriter;
use crate::encoder::Encoder;
use crate::encoder::block::{MAX_STORED, write_stored};

/// The encoder of levels 0 and −2.
#[derive(Debug)]
pub(super) struct GoPlainEncoder {
    block: Vec<u8>,
    /// Writes Huffman-coded literals; without it, all blocks are stored.
    blocks: Option<GoBlockWriter>,
}

impl GoPlainEncoder {
    /// Level 0: stores all bytes.
    pub(super) fn stored() -> Self {
        Self {
            block: Vec::with_capacity(MAX_STORED),
            blocks: None,
        }
    }

    /// Level −2: codes the literals of a block unless a stored block is about as small.
    pub(super) fn literals() -> Self {
        Self {
            block: Vec::with_capacity(MAX_STORED),
            blocks: Some(GoBlockWriter::new()),
        }
    }

    fn write_block(&mut self, out: &mut BitWriter) {
        if self.block.is_empty() {
            return;
        }
        match &mut self.blocks {
            Some(blocks) => blocks.write_literals(&self.block, out),
            None => write_stored(&self.block, false, out),
        }
        self.block.clear();
    }
}

impl Encoder for GoPlainEncoder {
    fn write(&mut self, mut plain: &[u8], out: &mut BitWriter) {
        while !plain.is_empty() {
            if self.block.len() == MAX_STORED {
                self.write_block(out);
            }
            let (now, later) = plain.split_at(plain.len().min(MAX_STORED - self.block.len()));
            self.block.extend_from_slice(now);
            plain = later;
        }
    }

    fn flush(&mut self, out: &mut BitWriter) {
        self.write_block(out);
        write_stored(&[], false, out);
    }

    fn finish(&mut self, out: &mut BitWriter) {
        self.write_block(out);
        write_stored(&[], true, out);
    }
}
