//! What differs between the generations of the encoder.

use crate::encoder::huffman::Ties;

/// The releases that write the same streams at all levels, from the newest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Generation {
    /// Go's standard library from 1.27. Its default level is 6, not 5.
    Go1_27,
    /// 1.20.4.
    V1_20_4,
    /// 1.20.0 to 1.20.3.
    V1_20_0,
    /// 1.18.1 to 1.19.2, which differs from 1.20.0 if there is a dictionary.
    V1_18_1,
    /// 1.18.0.
    V1_18_0,
    /// 1.15.14 to 1.17.11.
    V1_15_14,
    /// 1.15.10 to 1.15.13.
    V1_15_10,
    /// 1.15.0 to 1.15.9.
    V1_15_0,
    /// 1.14.
    V1_14,
}

impl Generation {
    /// All generations, the most likely first.
    pub(crate) const ALL: [Self; 9] = [
        Self::V1_15_14,
        Self::V1_18_1,
        Self::Go1_27,
        Self::V1_20_4,
        Self::V1_20_0,
        Self::V1_15_10,
        Self::V1_15_0,
        Self::V1_14,
        Self::V1_18_0,
    ];

    /// The rules of the generation.
    pub(crate) fn rules(self) -> Rules {
        let is_before = |generation| self > generation;
        Rules {
            ties: if self == Self::V1_20_4 {
                Ties::SymbolFirst
            } else {
                Ties::SubtreeFirst
            },
            flushes_keep_history: self == Self::V1_20_4,
            ends_dictionary: matches!(self, Self::V1_20_4 | Self::V1_20_0),
            trims_headers: !is_before(Self::V1_18_1),
            mixes_up_distance: !is_before(Self::V1_18_0),
            splits_evenly: !is_before(Self::V1_15_0),
            wide_hashes: !is_before(Self::V1_15_10),
            skips_at_match_end: !is_before(Self::V1_15_10),
            lazy_match_end: if is_before(Self::V1_15_14) {
                LazyMatchEnd::Whole
            } else {
                LazyMatchEnd::Skipping
            },
            literal_sample: if is_before(Self::V1_18_1) {
                usize::MAX
            } else {
                1 << 15
            },
            rare_literal_bits: u32::from(self == Self::Go1_27),
        }
    }
}

/// What differs between the generations.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    /// The shape of Huffman codes.
    pub(crate) ties: Ties,
    /// Whether a flush of few bytes still leaves them as history, and whether fewer than 128 bytes
    /// are searched for matches.
    pub(crate) flushes_keep_history: bool,
    /// Levels 7 to 9: whether the first block begins behind the dictionary.
    pub(crate) ends_dictionary: bool,
    /// Whether the header of a block ends with the last symbol that is used; else a block that
    /// a flush does not end lists all symbols. The same releases count the end of such a block.
    pub(crate) trims_headers: bool,
    /// Level 4: whether the length of the alternative match is measured at a wrong place.
    pub(crate) mixes_up_distance: bool,
    /// Whether a match of more than 258 bytes is cut into pieces of 258 bytes, else of 255.
    pub(crate) splits_evenly: bool,
    /// Levels 1 to 3: whether hashes are of five bytes, else of four.
    pub(crate) wide_hashes: bool,
    /// Levels 5 and 6: whether a better match that is looked for at the end of a match may differ
    /// in its first two bytes.
    pub(crate) skips_at_match_end: bool,
    /// Levels 7 to 9: which better match is looked for at the end of a match.
    pub(crate) lazy_match_end: LazyMatchEnd,
    /// Level 9: the number of bytes that the estimate of literals is made from.
    pub(crate) literal_sample: usize,
    /// Level 9: the bits of a literal that does not occur in the sample.
    pub(crate) rare_literal_bits: u32,
}

/// Which better match is looked for at the end of a match, at levels 7 to 9.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LazyMatchEnd {
    /// One that has the whole of the match.
    Whole,
    /// One that may differ in the first two bytes.
    Skipping,
}
