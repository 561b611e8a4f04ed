//! The effort of the search at each level.

use crate::encoder::chain_search::ChainMatch;

/// The shortest match that is looked for.
pub(super) const MIN_MATCH: usize = 4;

/// The parameters of the search for matches at one level.
#[derive(Debug, Clone, Copy)]
pub(super) struct LazySearchRules {
    /// The maximum number of positions of a chain that are tried.
    pub(super) tries: usize,
    /// A match of this length ends the search.
    pub(super) nice: usize,
    /// A match shorter than this is dropped if the next position has a longer one.
    pub(super) lazy: usize,
    /// Whether matches are compared by the bits that they save, instead of only by their lengths.
    pub(super) estimates: bool,
}

impl LazySearchRules {
    pub(super) fn of_level(level: i8) -> Self {
        let (lazy, nice, tries) = match level {
            ..=7 => (12, 16, 24),
            8 => (30, 40, 64),
            9.. => (258, 258, 1024),
        };
        Self {
            tries,
            nice,
            lazy,
            estimates: level >= 9,
        }
    }
}

/// The value that means that there is no match.
pub(super) const NO_MATCH: ChainMatch = ChainMatch {
    length: MIN_MATCH - 1,
    distance: 0,
};
