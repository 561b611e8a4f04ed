//! The parameters of a prediction.

use crate::inflate::Token;
use crate::symbols::WINDOW;

/// How an encoder seems to search matches. What is not here, such as whether it is lazy, the model
/// learns from the tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PredictionSpec {
    /// The binary logarithm of the number of positions that a search compares.
    pub(super) chain_log: u8,
    /// A match of this length ends the search.
    pub(super) nice_length: u16,
    /// After a match of this length, the search one byte later compares only a quarter.
    pub(super) good_length: u16,
    /// The longest match all of whose positions can be found later; 0 if there is no such limit.
    pub(super) longest_inserted: u8,
    /// Whether the last 262 distances of the window are used.
    pub(super) uses_whole_window: bool,
}

/// The longest distance of encoders that keep the longest match and a few bytes ahead in their
/// window.
const USUAL_DISTANCE: usize = WINDOW - 262;

impl PredictionSpec {
    const fn new(chain_log: u8, nice_length: u16, good_length: u16, longest_inserted: u8) -> Self {
        Self {
            chain_log,
            nice_length,
            good_length,
            longest_inserted,
            uses_whole_window: false,
        }
    }

    /// The parameters that are tried: a long search first, then those of the levels of zlib.
    pub(super) const CANDIDATES: [Self; 10] = [
        Self::new(12, 258, 258, 0),
        Self::new(2, 8, 258, 4),
        Self::new(3, 16, 258, 5),
        Self::new(5, 32, 258, 6),
        Self::new(4, 16, 4, 0),
        Self::new(5, 32, 8, 0),
        Self::new(7, 128, 8, 0),
        Self::new(8, 128, 8, 0),
        Self::new(10, 258, 32, 0),
        Self::new(0, 258, 258, 0),
    ];

    /// These parameters with the window that the tokens need.
    pub(super) fn for_tokens(mut self, tokens: &[Token]) -> Self {
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

    /// What a recipe records.
    pub(crate) fn to_bytes(self) -> [u8; 7] {
        let [nice_low, nice_high] = self.nice_length.to_le_bytes();
        let [good_low, good_high] = self.good_length.to_le_bytes();
        [
            self.chain_log,
            nice_low,
            nice_high,
            good_low,
            good_high,
            self.longest_inserted,
            u8::from(self.uses_whole_window),
        ]
    }

    /// The parameters that `to_bytes` recorded.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let &[
            chain_log,
            nice_low,
            nice_high,
            good_low,
            good_high,
            longest_inserted,
            window,
        ] = bytes
        else {
            return None;
        };
        let spec = Self {
            chain_log,
            nice_length: u16::from_le_bytes([nice_low, nice_high]),
            good_length: u16::from_le_bytes([good_low, good_high]),
            longest_inserted,
            uses_whole_window: window == 1,
        };
        let is_valid = chain_log <= 12
            && (3..=258).contains(&spec.nice_length)
            && (3..=258).contains(&spec.good_length)
            && window <= 1;
        is_valid.then_some(spec)
    }
}
