//! Describes the tokens of a stream relative to a prediction, for encoders that are not replayed.
//!
//! For each token, the window offers a match at its position and one at the next position. A model
//! learns how the encoder decides between a literal, the longest match and other matches, and an
//! arithmetic coder writes the encoder's actual decisions. The decisions of an encoder with simple
//! rules take up almost no space. Block boundaries and the headers of dynamic blocks are coded in
//! the same way. The code lengths in a header are coded relative to those that are computed from
//! the tokens.
//!
//! [`TokenWriter`] and [`TokenReader`] run the same model with a coder for each direction. All
//! predictions depend only on the plain bytes before a position and on the
//! [`LOOKAHEAD`](matcher::LOOKAHEAD) bytes after it, so both directions stream.
//!
//! 1. `coder`: the arithmetic coder;
//! 2. `matcher`: the matches that the window offers;
//! 3. `model`: tokens; `blocks`: blocks and the headers of dynamic blocks;
//! 4. `writer` and `reader`: the two directions.

mod blocks;
mod coder;
mod matcher;
mod model;
mod reader;
mod writer;

use crate::inflate::DecodedToken;
use crate::symbols::WINDOW;
use blocks::{BlockModel, HeaderModel};
use model::TokenModel;
pub(crate) use reader::TokenReader;
pub(crate) use writer::TokenWriter;

/// The search for matches that an encoder seems to use. The model learns other properties, such as
/// lazy matching, from the tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PredictionSpec {
    /// The number of bytes that the positions of a chain share, 3 or 4: the shortest match.
    hashed_bytes: u8,
    /// The binary logarithm of the number of positions that a search compares.
    chain_log: u8,
    /// A match of at least this length ends the search.
    nice_length: u16,
    /// After a match of at least this length, the search one byte later compares only a quarter of
    /// the positions.
    good_length: u16,
    /// After a match that is shorter than this, a match one byte later is searched.
    lazy_length: u16,
    /// If a match is longer than this, the positions inside of it cannot be found later; 0 if there
    /// is no such limit.
    longest_inserted: u8,
    /// Whether the longest 262 distances of the window are used.
    uses_whole_window: bool,
}

/// The longest distance of encoders whose window also contains the next 262 bytes: the longest
/// match and a few more.
const USUAL_DISTANCE: usize = WINDOW - 262;

impl PredictionSpec {
    /// An encoder that uses each match at once, without a search one byte later.
    const fn greedy(chain_log: u8, nice_length: u16, longest_inserted: u8) -> Self {
        Self {
            hashed_bytes: 3,
            chain_log,
            nice_length,
            good_length: 258,
            lazy_length: 0,
            longest_inserted,
            uses_whole_window: false,
        }
    }

    /// An encoder that searches for a longer match one byte later.
    const fn lazy(chain_log: u8, nice_length: u16, good_length: u16, lazy_length: u16) -> Self {
        Self {
            hashed_bytes: 3,
            chain_log,
            nice_length,
            good_length,
            lazy_length,
            longest_inserted: 0,
            uses_whole_window: false,
        }
    }

    /// The same encoder with chains of positions that share four bytes.
    const fn with_four_bytes(mut self) -> Self {
        self.hashed_bytes = 4;
        self
    }

    /// The parameters that are tried, from fast to slow, including those of zlib's levels.
    const CANDIDATES: [Self; 15] = [
        Self::greedy(0, 258, 0).with_four_bytes(),
        Self::greedy(0, 258, 0),
        Self::lazy(0, 258, 258, 258),
        Self::greedy(1, 258, 0).with_four_bytes(),
        Self::lazy(1, 258, 258, 258).with_four_bytes(),
        Self::greedy(2, 8, 4),
        Self::greedy(3, 16, 5),
        Self::lazy(4, 16, 4, 4),
        Self::greedy(5, 32, 6),
        Self::lazy(5, 32, 8, 16),
        Self::lazy(5, 258, 258, 258).with_four_bytes(),
        Self::lazy(7, 128, 8, 16),
        Self::lazy(8, 128, 8, 32),
        Self::lazy(10, 258, 32, 128),
        Self::lazy(12, 258, 32, 258),
    ];

    /// These parameters with the window that the tokens need.
    fn for_tokens(mut self, tokens: &[DecodedToken]) -> Self {
        let mut matches = tokens.iter().filter_map(|token| token.as_match());
        self.uses_whole_window = matches.any(|(_, distance)| distance > USUAL_DISTANCE);
        self
    }

    /// The longest distance that is searched.
    fn longest_distance(self) -> usize {
        if self.uses_whole_window {
            WINDOW
        } else {
            USUAL_DISTANCE
        }
    }

    /// The encoding of the parameters in recipes.
    pub(crate) fn to_bytes(self) -> [u8; 10] {
        let mut bytes = [0; 10];
        bytes[0] = self.hashed_bytes;
        bytes[1] = self.chain_log;
        bytes[2..4].copy_from_slice(&self.nice_length.to_le_bytes());
        bytes[4..6].copy_from_slice(&self.good_length.to_le_bytes());
        bytes[6..8].copy_from_slice(&self.lazy_length.to_le_bytes());
        bytes[8] = self.longest_inserted;
        bytes[9] = u8::from(self.uses_whole_window);
        bytes
    }

    /// The parameters that `to_bytes` recorded.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let &[
            hashed_bytes,
            chain_log,
            n0,
            n1,
            g0,
            g1,
            l0,
            l1,
            longest_inserted,
            window,
        ] = bytes
        else {
            return None;
        };
        let spec = Self {
            hashed_bytes,
            chain_log,
            nice_length: u16::from_le_bytes([n0, n1]),
            good_length: u16::from_le_bytes([g0, g1]),
            lazy_length: u16::from_le_bytes([l0, l1]),
            longest_inserted,
            uses_whole_window: window == 1,
        };
        let is_valid = matches!(hashed_bytes, 3 | 4)
            && chain_log <= 12
            && (3..=258).contains(&spec.nice_length)
            && spec.good_length <= 258
            && spec.lazy_length <= 258
            && window <= 1;
        is_valid.then_some(spec)
    }
}

// The state that all models have learned.

/// Everything that is learned from the streams of a file.
#[derive(Debug, Clone)]
struct PredictionModel {
    tokens: TokenModel,
    blocks: BlockModel,
    headers: HeaderModel,
}

impl PredictionModel {
    fn new() -> Self {
        Self {
            tokens: TokenModel::new(),
            blocks: BlockModel::new(),
            headers: HeaderModel::new(),
        }
    }
}
