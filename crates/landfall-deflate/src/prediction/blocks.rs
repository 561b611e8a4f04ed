//! The model of blocks: their kinds, and where they end.

use super::coder::{BitCoder, NumberModel, Probability, code_tree};
use crate::inflate::BlockKind;

/// The maximum number of tokens of a part of a block.
pub(super) const PART_TOKENS: usize = 1 << 16;
/// A part ends with the token that reaches this number of plain bytes.
pub(super) const PART_BYTES: usize = 1 << 20;

/// The kinds of blocks, as the model numbers them.
const STORED: usize = 0;
const FIXED: usize = 1;
const DYNAMIC: usize = 2;

/// The beginning of a block. The header of a dynamic block is coded after the tokens of the block's
/// first part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BlockStart {
    /// The number of bytes and the padding bits.
    Stored {
        length: u16,
        padding: u8,
    },
    Fixed,
    Dynamic,
}

impl BlockStart {
    pub(super) fn of(kind: &BlockKind) -> Self {
        match *kind {
            BlockKind::Stored { length, padding } => Self::Stored { length, padding },
            BlockKind::Fixed => Self::Fixed,
            BlockKind::Dynamic(_) => Self::Dynamic,
        }
    }
}

/// The end of a part of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PartEnd {
    /// After this number of tokens, at the end of the block.
    Tokens(usize),
    /// At a limit; another part of the block follows.
    Limit,
}

/// The adaptive model of the kinds and lengths of blocks.
#[derive(Debug, Clone)]
pub(super) struct BlockModel {
    kind_before: usize,
    kinds: [[Probability; 4]; 3],
    is_final: [Probability; 3],
    length_before: u16,
    is_length_before: Probability,
    lengths: NumberModel,
    has_padding: Probability,
    paddings: [Probability; 128],
    count_before: usize,
    reaches_limit: Probability,
    is_count_before: Probability,
    counts: NumberModel,
}

impl BlockModel {
    pub(super) fn new() -> Self {
        let even = Probability::EVEN;
        Self {
            kind_before: DYNAMIC,
            kinds: [[even; 4]; 3],
            is_final: [even; 3],
            length_before: 0,
            is_length_before: even,
            lengths: NumberModel::new(),
            has_padding: even,
            paddings: [even; 128],
            count_before: 0,
            reaches_limit: even,
            is_count_before: even,
            counts: NumberModel::new(),
        }
    }

    /// Codes the beginning of a block and whether it is the last.
    pub(super) fn code_start<C: BitCoder>(
        &mut self,
        coder: &mut C,
        actual: BlockStart,
        is_final: bool,
    ) -> (BlockStart, bool) {
        let (kind, length, padding) = match actual {
            BlockStart::Stored { length, padding } => (STORED, length, padding),
            BlockStart::Fixed => (FIXED, 0, 0),
            BlockStart::Dynamic => (DYNAMIC, 0, 0),
        };
        let kind = code_tree(coder, kind, 2, &mut self.kinds[self.kind_before]).min(DYNAMIC);
        self.kind_before = kind;
        let is_final = coder.code(is_final, &mut self.is_final[kind]);
        let start = match kind {
            STORED => self.code_stored(coder, length, padding),
            FIXED => BlockStart::Fixed,
            _ => BlockStart::Dynamic,
        };
        (start, is_final)
    }

    fn code_stored<C: BitCoder>(&mut self, coder: &mut C, length: u16, padding: u8) -> BlockStart {
        let is_before = length == self.length_before;
        if !coder.code(is_before, &mut self.is_length_before) {
            self.length_before = self.lengths.code(coder, usize::from(length)) as u16;
        }
        let mut coded_padding = 0;
        if coder.code(padding > 0, &mut self.has_padding) {
            coded_padding = code_tree(coder, usize::from(padding), 7, &mut self.paddings) as u8;
        }
        BlockStart::Stored {
            length: self.length_before,
            padding: coded_padding,
        }
    }

    /// Codes the end of a part of a block. Callers skip this for the last block of a stream, which
    /// ends with the stream.
    pub(super) fn code_end<C: BitCoder>(&mut self, coder: &mut C, actual: PartEnd) -> PartEnd {
        if coder.code(actual == PartEnd::Limit, &mut self.reaches_limit) {
            return PartEnd::Limit;
        }
        let count = match actual {
            PartEnd::Tokens(count) => count,
            PartEnd::Limit => 0,
        };
        if !coder.code(count == self.count_before, &mut self.is_count_before) {
            self.count_before = self.counts.code(coder, count).min(PART_TOKENS);
        }
        PartEnd::Tokens(self.count_before)
    }
}
