//! The encoder of Go's `compress/flate` up to 1.26.
//!
//! At all levels, the last block of the stream is an empty stored block, and a flush writes an
//! empty stored block. Each block has codes of its own; see [`blocks`] for the choice between
//! stored, fixed and dynamic blocks.
//!
//! Level 1 cuts the stream into blocks of 65,535 bytes, and searches each from left to right. A
//! table of 2^14 entries holds, for each hash of four bytes, the last position and the bytes there.
//! If the bytes are the same and the distance is at most 32 KiB, this is a match, and it is used.
//! If a block has more tokens than 15/16 of its bytes, it is written as literals. A block of fewer
//! than 128 bytes, which only a flush or the end of the stream makes, is written without a search:
//! up to 16 bytes are stored, more are written as literals. The next block does not refer to
//! earlier bytes.
//!
//! Levels 2 to 9 have hash chains of four bytes over a window of 64 KiB. When the encoder has come
//! so close to the window's end that at most 262 bytes follow, the window moves by 32 KiB. A
//! match does not refer to bytes before the window. The level limits how many positions of a chain
//! are tried, and sets the length of a match that ends the search. Levels 2 and 3 use the longest
//! match at once; levels 4 to 9 use it if the next position does not have a longer one. A block
//! ends when it has 2^14 tokens.
//!
//! The way in which the input is split between calls matters in one case only. Go moves the window
//! when it gets more bytes. If a call ends less than 262 bytes before the window's end, the
//! window can therefore move one position earlier, which puts a match of the greatest distance out
//! of reach. The encoder here moves the window as Go does if it gets all input at once, or in
//! pieces that divide 32 KiB.
//!
//! Level 0 stores blocks of 65,535 bytes; level −2 writes such blocks as literals.

mod blocks;
mod chain;
mod plain;
mod speed;

use super::level::GoLevel;
use crate::encoder::block::MAX_STORED;
use crate::encoder::{BlockSize, Encoder};
use chain::{ChainEncoder, ChainRules};
use plain::GoPlainEncoder;
use speed::SpeedEncoder;

/// Whether the first block of a stream at a level can be full at this size.
pub(super) fn can_be_full(level: GoLevel, size: BlockSize) -> bool {
    match level.resolved() {
        ..=1 => size.plain_bytes == MAX_STORED as u64,
        2.. => size.tokens == chain::BLOCK_TOKENS as u64,
    }
}

/// Starts the encoder of a level.
pub(super) fn start(level: GoLevel) -> Box<dyn Encoder> {
    match level.resolved() {
        GoLevel::HUFFMAN_ONLY => Box::new(GoPlainEncoder::literals()),
        0 => Box::new(GoPlainEncoder::stored()),
        1 => Box::new(SpeedEncoder::new()),
        level => Box::new(ChainEncoder::new(ChainRules::of_level(level))),
    }
}
