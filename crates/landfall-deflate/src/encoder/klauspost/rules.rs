//! The differences between the generations of the encoder.

use crate::encoder::block::MAX_STORED;
use crate::encoder::huffman::TieOrder;

/// Releases that write the same streams at all levels, the newest first. The numbers are part of
/// recipes. The versions are those of `klauspost/compress`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum KlauspostGeneration {
    /// 1.20.4.
    V1_20_4 = 0,
    /// 1.20.0 to 1.20.3.
    V1_20_0 = 1,
    /// Go's standard library from 1.27.
    Go1_27 = 2,
    /// 1.18.2 to 1.19.2.
    V1_18_2 = 3,
    /// 1.18.1.
    V1_18_1 = 4,
    /// 1.18.0.
    V1_18_0 = 5,
    /// 1.15.15 to 1.17.11.
    V1_15_15 = 6,
    /// 1.15.11 to 1.15.14.
    V1_15_11 = 7,
    /// 1.15.10.
    V1_15_10 = 8,
    /// 1.15.0 to 1.15.9.
    V1_15_0 = 9,
    /// 1.14.
    V1_14 = 10,
    /// 1.12 and 1.13, at levels up to 6.
    V1_12 = 11,
    /// 1.11, at levels up to 6.
    V1_11 = 12,
    /// 1.10, at levels up to 6.
    V1_10 = 13,
}

impl KlauspostGeneration {
    /// The generations of `klauspost/compress`, the most widely used first.
    pub(crate) const ALL: [Self; 13] = [
        Self::V1_15_15,
        Self::V1_18_2,
        Self::V1_20_4,
        Self::V1_20_0,
        Self::V1_15_11,
        Self::V1_15_0,
        Self::V1_14,
        Self::V1_12,
        Self::V1_11,
        Self::V1_10,
        Self::V1_18_0,
        Self::V1_18_1,
        Self::V1_15_10,
    ];

    /// Whether levels 7 to 9 are known.
    pub(crate) fn has_lazy_levels(self) -> bool {
        self <= Self::V1_14
    }

    /// The rules of the generation.
    pub(crate) fn rules(self) -> KlauspostRules {
        let is_before = |generation| self > generation;
        KlauspostRules {
            ties: if self == Self::V1_20_4 {
                TieOrder::SymbolFirst
            } else {
                TieOrder::SubtreeFirst
            },
            flushes_keep_history: self == Self::V1_20_4,
            ends_dictionary: !is_before(Self::V1_20_0),
            trims_headers: !is_before(Self::V1_18_1),
            fills_codes: is_before(Self::V1_14),
            guesses_literals: is_before(Self::V1_12),
            guesses_filled_literals: is_before(Self::V1_11),
            penalty_shift: if is_before(Self::V1_11) {
                6
            } else if is_before(Self::V1_14) {
                8
            } else {
                7
            },
            literal_penalty_shift: if is_before(Self::V1_11) {
                4
            } else if is_before(Self::V1_12) {
                8
            } else {
                10
            },
            literal_block: if is_before(Self::V1_11) {
                MAX_STORED
            } else {
                32 << 10
            },
            history_blocks: if is_before(Self::V1_12) { 10 } else { 5 },
            mixes_up_distance: !is_before(Self::V1_18_0),
            splits_evenly: !is_before(Self::V1_15_0),
            hashes: if is_before(Self::V1_14) {
                HashWidth::First
            } else if is_before(Self::V1_15_11) {
                HashWidth::FourBytes
            } else {
                HashWidth::FiveBytes
            },
            match_end: if is_before(Self::V1_12) {
                MatchEndRule::Unused
            } else if is_before(Self::V1_15_10) {
                MatchEndRule::Whole
            } else {
                MatchEndRule::Skipping
            },
            lazy_match_end: if is_before(Self::V1_15_15) {
                MatchEndRule::Whole
            } else {
                MatchEndRule::Skipping
            },
            literal_sample: if is_before(Self::V1_18_2) {
                usize::MAX
            } else {
                1 << 15
            },
            rare_literal_bits: u32::from(self == Self::Go1_27),
        }
    }

    /// The generation that represents all generations with the same streams at one level, with or
    /// without dictionaries.
    pub(crate) fn representative(self, level: i8, has_dictionaries: bool) -> Self {
        let rules = self.rules().at_level(level, has_dictionaries);
        let mut all = Self::ALL.into_iter();
        all.find(|other| other.rules().at_level(level, has_dictionaries) == rules)
            .unwrap_or(self)
    }
}

/// The properties in which the generations differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KlauspostRules {
    /// Which of two subtrees of the same weight is joined first when a Huffman code is built.
    pub(crate) ties: TieOrder,
    /// Levels 1 to 6: whether a flush of fewer than 128 bytes searches them for matches and keeps
    /// them as history.
    pub(crate) flushes_keep_history: bool,
    /// Levels 7 to 9: whether the first block begins after the dictionary.
    pub(crate) ends_dictionary: bool,
    /// Whether every header ends with the last used symbol. Otherwise, the header of a block lists
    /// all symbols, unless a flush ends the block. The releases that trim every header also count
    /// the end of the block in every comparison of sizes.
    pub(crate) trims_headers: bool,
    /// Whether a block has codes for all symbols unless a flush ends it, so that the codes suit the
    /// next block. Releases that do this compare sizes in another way, and never look for noise.
    pub(crate) fills_codes: bool,
    /// Whether the size of literals is estimated without building their code.
    pub(crate) guesses_literals: bool,
    /// Whether the first estimate of `guesses_literals` omits the symbols that do not occur. The
    /// code for literals has these symbols, too.
    pub(crate) guesses_filled_literals: bool,
    /// Levels 1 to 6: the estimated size of a new block is increased by a penalty. The penalty is
    /// the estimated size, shifted right by `penalty_shift` bits.
    pub(crate) penalty_shift: u32,
    /// Level −2: like `penalty_shift`.
    pub(crate) literal_penalty_shift: u32,
    /// Level −2: the number of bytes of a block.
    pub(crate) literal_block: usize,
    /// Levels 1 to 6: the history has this many times 65,535 bytes before it is moved.
    pub(crate) history_blocks: usize,
    /// Level 4: whether the length of the alternative match is measured at a wrong index. This is a
    /// bug of the releases.
    pub(crate) mixes_up_distance: bool,
    /// Levels 1 to 6: whether a match of more than 258 bytes is cut into pieces of 258 bytes while
    /// enough bytes remain. If not, the pieces have 255 bytes.
    pub(crate) splits_evenly: bool,
    /// Levels 1 to 3: the hash of the bytes at a position.
    pub(crate) hashes: HashWidth,
    /// Levels 5 and 6: the rule for a better match at the end of a match.
    pub(crate) match_end: MatchEndRule,
    /// Levels 7 to 9: the rule for a better match at the end of a match. Under
    /// [`MatchEndRule::Whole`], level 9 accepts a smaller saving.
    pub(crate) lazy_match_end: MatchEndRule,
    /// Level 9: the maximum size in bytes of the sample by which the cost of literals is estimated.
    pub(crate) literal_sample: usize,
    /// Level 9: the bits of a literal that does not occur in the sample.
    pub(crate) rare_literal_bits: u32,
}

impl KlauspostRules {
    /// Replaces the rules that do not matter at `level` by those of the newest generation.
    fn at_level(mut self, level: i8, has_dictionaries: bool) -> Self {
        let newest = KlauspostGeneration::V1_20_4.rules();
        if !(1..=6).contains(&level) {
            self.flushes_keep_history = newest.flushes_keep_history;
            self.splits_evenly = newest.splits_evenly;
            self.history_blocks = newest.history_blocks;
            self.penalty_shift = newest.penalty_shift;
        }
        if level != -2 {
            self.literal_penalty_shift = newest.literal_penalty_shift;
            self.literal_block = newest.literal_block;
        }
        if level < 1 {
            self.trims_headers = newest.trims_headers;
        }
        if level == 0 {
            self.ties = newest.ties;
            self.fills_codes = newest.fills_codes;
            self.guesses_literals = newest.guesses_literals;
            self.guesses_filled_literals = newest.guesses_filled_literals;
        }
        if !(1..=3).contains(&level) {
            self.hashes = newest.hashes;
        }
        if level != 4 {
            self.mixes_up_distance = newest.mixes_up_distance;
        }
        if !(5..=6).contains(&level) {
            self.match_end = newest.match_end;
        }
        if level < 7 {
            self.lazy_match_end = newest.lazy_match_end;
        }
        if level < 7 || !has_dictionaries {
            self.ends_dictionary = newest.ends_dictionary;
        }
        if level != 9 {
            self.literal_sample = newest.literal_sample;
            self.rare_literal_bits = newest.rare_literal_bits;
        }
        self
    }
}

/// The hash of levels 1 to 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HashWidth {
    /// The hash of four bytes. Level 3 has a smaller table than with `FourBytes`, and enters other
    /// positions.
    First,
    /// The hash of four bytes.
    FourBytes,
    /// The hash of five bytes.
    FiveBytes,
}

/// The better match that the encoder searches for at the end of a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MatchEndRule {
    /// No search at the end.
    Unused,
    /// A match that contains the whole first match.
    Whole,
    /// A match that may differ from the first match in its first two bytes.
    Skipping,
}
