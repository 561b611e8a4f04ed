//! The search for the best match in hash chains of four bytes.
//!
//! A match can be longer than the best one so far only if it also agrees in the four bytes that end
//! one byte after the best match. This *gram* is often rarer than the gram at the beginning of the
//! match. If all positions are on chains, the search follows the chain of the rarer gram. A
//! position on this chain minus the offset of the gram in the match is a candidate.
//!
//! The original encoders try a limited number of positions in the chain of the first gram. The
//! number of steps to a candidate on that chain shows whether they would try it. Within this limit,
//! candidates are tried in the same order, nearest first, and the result is the same.

use super::bytes::{first_bytes_mask, load32, load64, match_length};
use super::chains::{ChainWindow, LINKS, WINDOW};
use super::symbols::{MAX_DISTANCE, MAX_LENGTH};

/// The parameters of a search at a position.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChainSearch {
    pub(crate) position: usize,
    /// The number of bytes from `position` to the end.
    pub(crate) lookahead: usize,
    /// A match must be longer than this, which is at least 3.
    pub(crate) longer_than: usize,
    /// The maximum number of positions of a chain that are tried.
    pub(crate) tries: usize,
    /// A match of this length ends the search.
    pub(crate) nice: usize,
}

/// The match that was found. If there is none, the distance is 0.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChainMatch {
    pub(crate) length: usize,
    pub(crate) distance: usize,
}

impl ChainMatch {
    /// The match, or `other` if there is none.
    #[inline]
    pub(crate) fn or(self, other: ChainMatch) -> ChainMatch {
        if self.distance == 0 { other } else { self }
    }
}

/// The first of the best matches: a longer match is better if `is_better` returns true for it. The
/// distance is 0 if there is no match.
///
/// `links` returns the four positions before a position on its chain, each plus 1, the nearest in
/// the lowest bits. `steps` returns the number of steps from a position to an earlier one on its
/// chain. If grams are followed, all positions must be on chains.
#[inline]
pub(crate) fn best_match<const FOLLOWS_GRAMS: bool>(
    window: &ChainWindow,
    search: ChainSearch,
    links: impl Fn(usize) -> u64,
    steps: impl Fn(usize, usize) -> usize,
    mut is_better: impl FnMut(ChainMatch) -> bool,
) -> ChainMatch {
    let ChainSearch {
        position, tries, ..
    } = search;
    let limit = search.lookahead.min(MAX_LENGTH);
    let nice = search.nice.min(limit);
    let first = position.saturating_sub(MAX_DISTANCE);
    let mut best = ChainMatch {
        length: search.longer_than,
        distance: 0,
    };
    // A longer match also agrees in the four bytes that end one byte after the best match.
    // Eight bits suffice for their offset, and make the checks of bounds below unnecessary.
    let mut offset = (best.length - 3) as u8;
    let mut last_bytes = load32(window, position + usize::from(offset));
    // Positions on the chain of a gram nearly always agree in the gram, but seldom in the bytes
    // before it. So the beginning is compared first: up to eight bytes that a longer match shares.
    let beginning = load64(window, position);
    let mut mask = first_bytes_mask(best.length + 1);
    // the offset of the gram whose chain is followed
    let mut via = if FOLLOWS_GRAMS { offset } else { 0 };
    let mut entries = links(position + usize::from(via));
    let mut tried = 0;
    'search: loop {
        if tried >= tries {
            if via == 0 {
                break;
            }
            // The chain of this gram is long, perhaps longer than the chain of the first gram. From
            // here on, the chain of the first gram is followed. Candidates that are tried again do
            // not replace the best match.
            via = 0;
            tried = 0;
            entries = links(position);
        }
        tried += LINKS;
        let mut linked = 0;
        for _ in 0..LINKS {
            let entry = usize::from(entries as u16);
            entries >>= 16;
            // no further position, or one that is out of reach
            if entry <= first + usize::from(via) {
                break 'search;
            }
            linked = entry - 1;
            let candidate = (linked - usize::from(via)) % WINDOW;
            if FOLLOWS_GRAMS && (load64(window, candidate) ^ beginning) & mask != 0 {
                continue;
            }
            if load32(window, candidate + usize::from(offset)) != last_bytes {
                continue;
            }
            let found = ChainMatch {
                length: match_length(window, candidate, position, limit),
                distance: position - candidate,
            };
            if found.length <= best.length || !is_better(found) {
                continue;
            }
            if FOLLOWS_GRAMS && steps(position, candidate) > tries {
                break 'search;
            }
            best = found;
            if found.length >= nice {
                break 'search;
            }
            offset = (found.length - 3) as u8;
            last_bytes = load32(window, position + usize::from(offset));
            mask = first_bytes_mask(found.length + 1);
            if FOLLOWS_GRAMS {
                let newer = links(position + usize::from(offset));
                if usize::from(newer as u16) <= candidate + usize::from(offset) {
                    // the new gram's chain begins with a candidate farther away than this one
                    via = offset;
                    entries = newer;
                    continue 'search;
                }
            }
        }
        entries = links(linked);
    }
    best
}
