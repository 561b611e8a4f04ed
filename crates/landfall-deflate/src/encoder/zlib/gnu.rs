//! GNU gzip since 1.2.4, and programs that descend from it.
//!
//! It differs from zlib in two points:
//!
//! - A block has up to 32,767 tokens. From level 3, it also ends at a multiple of 4,096 tokens if
//!   this looks profitable: if less than half of the tokens are matches, and the estimated size is
//!   less than half of the plain size. The estimate is 8 bits for each token, and 5 bits plus the
//!   extra bits for each distance. The plain size is counted up to the position of the search,
//!   which is one byte after the start of a lazy match.
//! - Near the end of the input, the search also compares the bytes that follow the input in the
//!   window: two zeros, then remains of earlier input. A match that exceeds the input is cut; among
//!   several such matches, the one that was the longest before the cut is used.

use super::blocks::Tokens;
use super::engine::{Dialect, Effort, Engine};
use crate::encoder::symbols::{Token, distance_extra_bits};
use crate::encoder::{Encoder, StreamHints};
use crate::symbols::distance_symbol;
use std::fmt;

/// The maximum number of tokens in a block.
const BLOCK_TOKENS: usize = (1 << 15) - 1;
/// A block may end each time this number of tokens was written.
const JUDGED_TOKENS: usize = 1 << 12;

/// The program `gzip`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct GnuGzip {
    /// The level, 1 to 9.
    level: u8,
}

impl GnuGzip {
    /// Returns `None` if there is no such level.
    pub(crate) fn new(level: u8) -> Option<Self> {
        (1..=9).contains(&level).then_some(Self { level })
    }

    /// The encoders of this family that may have written a stream, the likeliest first.
    pub(crate) fn candidates(hints: &StreamHints) -> Vec<Self> {
        let may_end = |tokens: u64| {
            tokens.is_multiple_of(JUDGED_TOKENS as u64) || tokens == BLOCK_TOKENS as u64
        };
        if !hints.first_block_tokens.is_none_or(may_end) {
            return Vec::new();
        }
        let levels: &[u8] = match hints.gzip_extra_flags {
            Some(2) => &[9],
            Some(4) => &[1],
            Some(0) => &[6, 5, 4, 7, 8, 3, 2],
            _ => &[],
        };
        levels
            .iter()
            .filter_map(|level| Self::new(*level))
            .collect()
    }

    /// The parameters in a recipe.
    pub(crate) fn to_bytes(self) -> [u8; 1] {
        [self.level]
    }

    /// Reads the parameters from a recipe, or returns `None` if they are unknown.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        match bytes {
            &[level] => Self::new(level),
            _ => None,
        }
    }

    /// Returns an encoder at the beginning of a stream.
    pub(crate) fn start(self) -> Box<dyn Encoder> {
        let dialect = GnuDialect {
            ends_early: self.level > 2,
            matches: 0,
            distance_bits: 0,
        };
        Box::new(Engine::new(dialect, Effort::of_level(self.level), 15, 15))
    }
}

impl fmt::Display for GnuGzip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GNU gzip, level {}", self.level)
    }
}

/// The rules of GNU gzip.
#[derive(Debug)]
struct GnuDialect {
    ends_early: bool,
    /// The number of matches of the block up to the last multiple of 4,096 tokens.
    matches: usize,
    /// The estimated size of the distances of these matches, in bits.
    distance_bits: usize,
}

impl GnuDialect {
    /// Whether it is profitable to end the block, which has a multiple of 4,096 tokens. Not
    /// inlined, so that `ends_block`, which is called for every token, can be inlined.
    #[inline(never)]
    fn is_profitable(&mut self, tokens: &[Token], plain_size: usize) -> bool {
        if tokens.len() == JUDGED_TOKENS {
            self.matches = 0;
            self.distance_bits = 0;
        }
        for token in &tokens[tokens.len() - JUDGED_TOKENS..] {
            if token.as_literal().is_none() {
                self.matches += 1;
                let code = distance_symbol(token.distance());
                self.distance_bits += 5 + distance_extra_bits(code) as usize;
            }
        }
        let size = (8 * tokens.len() + self.distance_bits) / 8;
        self.matches < tokens.len() / 2 && size < plain_size / 2
    }
}

impl Dialect for GnuDialect {
    const READS_PAST_END: bool = true;

    #[inline]
    fn ends_block(&mut self, tokens: &Tokens, plain_size: usize) -> bool {
        let count = tokens.len();
        if self.ends_early && count.is_multiple_of(JUDGED_TOKENS) {
            return self.is_profitable(tokens.as_slice(), plain_size);
        }
        count == BLOCK_TOKENS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoder::vectors;

    #[test]
    fn streams_are_those_of_gzip() {
        let table = include_str!("../../../tests/vectors/gzip.txt");
        vectors::check(table, |level| {
            GnuGzip::new(level.parse().unwrap()).unwrap().start()
        });
    }

    #[test]
    fn parameters_are_read_back_from_a_recipe() {
        for spec in (1..=9).filter_map(GnuGzip::new) {
            assert_eq!(GnuGzip::from_bytes(&spec.to_bytes()), Some(spec));
        }
        assert_eq!(GnuGzip::from_bytes(&[0]), None);
        assert_eq!(GnuGzip::from_bytes(&[10]), None);
    }
}
