//! The parameters of the search, by level and strategy. zlib and GNU gzip have the same levels.

use super::block::BlockChoice;

/// The way in which plain bytes are cut into literals and matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Parsing {
    /// Each match is used at once.
    Greedy,
    /// A match is used unless the next position has a longer one.
    Lazy,
    /// Only runs of one byte are matches.
    Runs,
    /// All bytes are literals.
    Literals,
}

/// The effort of the search for matches.
#[derive(Debug, Clone, Copy)]
pub(super) struct Effort {
    pub(super) parsing: Parsing,
    /// After a match of at least this length, only a quarter of the chain is searched for a longer
    /// one.
    pub(super) good: usize,
    /// After a match of at least this length, the next position is not searched. Without lazy
    /// matching: the positions inside longer matches do not enter the dictionary.
    pub(super) lazy: usize,
    /// A match of this length ends the search.
    pub(super) nice: usize,
    /// The maximum number of positions that are compared.
    pub(super) chain: u32,
    /// Matches up to this length are dropped by the lazy search.
    pub(super) shortest_dropped: usize,
    pub(super) blocks: BlockChoice,
}

impl Effort {
    /// The search of a level from 1 to 9, with the default strategy.
    pub(super) fn of_level(level: u8) -> Self {
        let (good, lazy, nice, chain) = match level {
            0 | 1 => (4, 4, 8, 4),
            2 => (4, 5, 16, 8),
            3 => (4, 6, 32, 32),
            4 => (4, 4, 16, 16),
            5 => (8, 16, 32, 32),
            6 => (8, 16, 128, 128),
            7 => (8, 32, 128, 256),
            8 => (32, 128, 258, 1024),
            _ => (32, 258, 258, 4096),
        };
        Self {
            parsing: if level < 4 {
                Parsing::Greedy
            } else {
                Parsing::Lazy
            },
            good,
            lazy,
            nice,
            chain,
            shortest_dropped: 0,
            blocks: BlockChoice::Shortest,
        }
    }
}
