//! The parameters of a prediction.

use crate::inflate::DecodedToken;
use crate::symbols::WINDOW;

/// The search for matches that an encoder seems to use. The model learns other properties, such as
/// lazy matching, from the tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PredictionSpec {
    /// The number of bytes that the positions of a chain share, 3 or 4: the shortest match.
    pub(super) hashed_bytes: u8,
    /// The binary logarithm of the number of positions that a search compares.
    pub(super) chain_log: u8,
    /// A match of at least this length ends the search.
    pub(super) nice_length: u16,
    /// After a match of at least this length, the search one byte later compares only a quarter of
    /// the positions.
    pub(super) good_length: u16,
    /// After a match that is shorter than this, a match one byte later is searched.
    pub(super) lazy_length: u16,
    /// If a match is longer than this, the positions inside of it cannot be found later; 0 if there
    /// is no such limit.
    pub(super) longest_inserted: u8,
    /// Whether the longest 262 distances of the window are used.
    pub(super) uses_whole_window: bool,
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
    pub(super) const CANDIDATES: [Self; 15] = [
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
    pub(super) fn for_tokens(mut self, tokens: &[DecodedToken]) -> Self {
        let mut matches = tokens.iter().filter_map(|token| token.as_match());
        self.uses_whole_window = matches.any(|(_, distance)| distance > USUAL_DISTANCE);
        self
    }

    /// The longest distance that is searched.
    pub(super) fn longest_distance(self) -> usize {
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
