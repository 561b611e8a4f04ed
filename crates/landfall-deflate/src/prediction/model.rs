//! The models: which token follows, given the matches that the window offers; and where blocks end,
//! and their kinds.

use super::coder::{BitCoder, NumberModel, Probability, code_tree};
use super::{MatchSearch, WindowMatch};
use crate::DeflateError;
use crate::encoder::block::{count_header_symbols, listed_lengths};
use crate::encoder::huffman::{MAX_HEADER_BITS, SymbolCounts, TieOrder, code_lengths};
use crate::inflate::{BlockKind, DecodedToken, DynamicBlockHeader, run_shape};
use crate::symbols::{
    DISTANCE_SYMBOLS, END_OF_BLOCK, FIRST_LENGTH_SYMBOL, LENGTH_CODE_SYMBOLS, LITERAL_SYMBOLS,
    LONGEST_CODE, MAX_DISTANCE, MAX_LENGTH, MIN_LENGTH, distance_symbol, length_index,
};

/// The number of classes of match lengths. Class 0 means that there is no match.
const LENGTH_CLASSES: usize = 15;

const CLASS_OF_LENGTH: [u8; MAX_LENGTH + 1] = {
    let starts = [3, 4, 5, 6, 7, 8, 10, 13, 17, 25, 33, 65, 129, 258];
    let mut classes = [0; MAX_LENGTH + 1];
    let mut length = MIN_LENGTH;
    while length <= MAX_LENGTH {
        let mut class = 0;
        while class < starts.len() && starts[class] <= length {
            class += 1;
        }
        classes[length] = class as u8;
        length += 1;
    }
    classes
};

/// The number of classes of the match one byte later, compared with the match here: none or
/// shorter, equal, longer by 1, longer by more.
const COMPARISONS: usize = 4;

/// The number of kinds of the previous token.
const BEFORE_CLASSES: usize = 3;

/// The number of classes of distances: up to 256, 4096 and 16,384, and longer ones.
const DISTANCE_CLASSES: usize = 4;

/// The previous token, reduced to the properties that the model uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PreviousToken {
    Match,
    /// A literal although there was a match.
    SkippedMatch,
    Literal,
}

/// The adaptive model of tokens.
#[derive(Debug, Clone)]
pub(super) struct TokenModel {
    before: PreviousToken,
    /// The match at the current position, if it was searched already.
    found: Option<WindowMatch>,
    is_match: Vec<Probability>,
    is_longest: Vec<Probability>,
    lengths: Vec<[Probability; 256]>,
    is_long_form: Probability,
    is_nearest: [[Probability; LENGTH_CLASSES]; 2],
    is_ranked: Probability,
    ranks: NumberModel,
    distances: NumberModel,
}

impl TokenModel {
    pub(super) fn new() -> Self {
        Self {
            before: PreviousToken::Literal,
            found: None,
            is_match: vec![
                Probability::EVEN;
                LENGTH_CLASSES * COMPARISONS * BEFORE_CLASSES * DISTANCE_CLASSES
            ],
            is_longest: vec![Probability::EVEN; LENGTH_CLASSES * BEFORE_CLASSES * DISTANCE_CLASSES],
            lengths: vec![[Probability::EVEN; 256]; LENGTH_CLASSES],
            is_long_form: Probability::EVEN,
            is_nearest: [[Probability::EVEN; LENGTH_CLASSES]; 2],
            is_ranked: Probability::EVEN,
            ranks: NumberModel::new(),
            distances: NumberModel::new(),
        }
    }

    /// Resets the state that does not apply to the next token, because that token is in another
    /// stream or follows a stored block.
    pub(super) fn interrupt(&mut self) {
        self.before = PreviousToken::Literal;
        self.found = None;
    }

    /// Codes the token at the current position of `matcher`. From there, `matcher` must have
    /// `LOOKAHEAD` plain bytes or, if the stream ends earlier, all remaining bytes, at least one. A
    /// decoder ignores `actual`.
    pub(super) fn code<C: BitCoder>(
        &mut self,
        coder: &mut C,
        matcher: &mut MatchSearch,
        actual: DecodedToken,
    ) -> Result<DecodedToken, DeflateError> {
        let here = match self.found.take() {
            Some(found) => found,
            None => matcher.search(),
        };
        let mut next = WindowMatch::default();
        if here.length > 0 {
            next = matcher.search_next(here.length);
        }
        let class = class_of(here.length);
        let shared = (class * BEFORE_CLASSES + self.before as usize) * DISTANCE_CLASSES
            + distance_class(here.distance);
        let context = shared * COMPARISONS + comparison(here, next);
        let is_match = coder.code(actual.as_match().is_some(), &mut self.is_match[context]);
        if !is_match {
            self.found = (next.length > 0).then_some(next);
            self.before = if here.length > 0 {
                PreviousToken::SkippedMatch
            } else {
                PreviousToken::Literal
            };
            return Ok(DecodedToken::literal(matcher.ahead()[0]));
        }
        self.before = PreviousToken::Match;
        let (length, distance) = actual.as_match().unwrap_or((MIN_LENGTH, 1));
        let mut coded_length = here.length;
        if here.length == 0 || !coder.code(length == here.length, &mut self.is_longest[shared]) {
            let tree = &mut self.lengths[class];
            coded_length = MIN_LENGTH + code_tree(coder, length - MIN_LENGTH, 8, tree);
        }
        if coded_length > matcher.ahead().len() {
            return Err(DeflateError::Recipe("a match is longer than the stream"));
        }
        let is_long_form =
            coded_length == MAX_LENGTH && coder.code(actual.is_long_form(), &mut self.is_long_form);
        let distance = self.code_distance(coder, matcher, here, coded_length, distance)?;
        if distance > matcher.longest_distance() {
            return Err(DeflateError::Recipe("a match begins before the stream"));
        }
        Ok(if is_long_form {
            DecodedToken::matched_in_long_form(distance)
        } else {
            DecodedToken::matched(coded_length, distance)
        })
    }

    /// Codes the distance of a match: as the nearest match of this length, as the number of nearer
    /// matches, or as the distance itself.
    fn code_distance<C: BitCoder>(
        &mut self,
        coder: &mut C,
        matcher: &mut MatchSearch,
        here: WindowMatch,
        length: usize,
        distance: usize,
    ) -> Result<usize, DeflateError> {
        let is_longest = length == here.length;
        let nearest = if is_longest {
            Some(here.distance)
        } else {
            matcher.distances(length).next()
        };
        let Some(nearest) = nearest else {
            return Ok(self.distances.code(coder, distance - 1) % MAX_DISTANCE + 1);
        };
        let probability = &mut self.is_nearest[usize::from(is_longest)][class_of(length)];
        if coder.code(distance == nearest, probability) {
            return Ok(nearest);
        }
        let rank = matcher
            .distances(length)
            .position(|other| other == distance);
        if coder.code(rank.is_some(), &mut self.is_ranked) {
            let rank = self.ranks.code(coder, rank.unwrap_or(0));
            return matcher
                .distances(length)
                .nth(rank)
                .ok_or(DeflateError::Recipe("a match does not exist"));
        }
        Ok(self.distances.code(coder, distance - 1) % MAX_DISTANCE + 1)
    }
}

fn class_of(length: usize) -> usize {
    usize::from(CLASS_OF_LENGTH[length])
}

fn distance_class(distance: usize) -> usize {
    usize::from(distance > 256) + usize::from(distance > 4096) + usize::from(distance > 16384)
}

fn comparison(here: WindowMatch, next: WindowMatch) -> usize {
    match next.length {
        0 => 0,
        length => 1 + (length - here.length).min(2),
    }
}

// The model of blocks: their kinds, and where they end.

/// The maximum number of tokens of a part of a block.
pub(super) const PART_TOKENS: usize = 1 << 16;

/// A part ends with the token that reaches this number of plain bytes.
pub(super) const PART_BYTES: usize = 1 << 20;

/// The kinds of blocks, as the model numbers them.
const STORED: usize = 0;

const FIXED: usize = 1;

const DYNAMIC: usize = 2;

/// The beginning of a block. The header of a dynamic block is coded after the tokens of the block's
/// first part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BlockStart {
    /// The number of bytes and the padding bits.
    Stored {
        length: u16,
        padding: u8,
    },
    Fixed,
    Dynamic,
}

impl BlockStart {
    pub(super) fn of(kind: &BlockKind) -> Self {
        match *kind {
            BlockKind::Stored { length, padding } => Self::Stored { length, padding },
            BlockKind::Fixed => Self::Fixed,
            BlockKind::Dynamic(_) => Self::Dynamic,
        }
    }
}

/// The end of a part of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PartEnd {
    /// After this number of tokens, at the end of the block.
    Tokens(usize),
    /// At a limit; another part of the block follows.
    Limit,
}

/// The adaptive model of the kinds and lengths of blocks.
#[derive(Debug, Clone)]
pub(super) struct BlockModel {
    kind_before: usize,
    kinds: [[Probability; 4]; 3],
    is_final: [Probability; 3],
    length_before: u16,
    is_length_before: Probability,
    lengths: NumberModel,
    has_padding: Probability,
    paddings: [Probability; 128],
    count_before: usize,
    reaches_limit: Probability,
    is_count_before: Probability,
    counts: NumberModel,
}

impl BlockModel {
    pub(super) fn new() -> Self {
        let even = Probability::EVEN;
        Self {
            kind_before: DYNAMIC,
            kinds: [[even; 4]; 3],
            is_final: [even; 3],
            length_before: 0,
            is_length_before: even,
            lengths: NumberModel::new(),
            has_padding: even,
            paddings: [even; 128],
            count_before: 0,
            reaches_limit: even,
            is_count_before: even,
            counts: NumberModel::new(),
        }
    }

    /// Codes the beginning of a block and whether it is the last.
    pub(super) fn code_start<C: BitCoder>(
        &mut self,
        coder: &mut C,
        actual: BlockStart,
        is_final: bool,
    ) -> (BlockStart, bool) {
        let (kind, length, padding) = match actual {
            BlockStart::Stored { length, padding } => (STORED, length, padding),
            BlockStart::Fixed => (FIXED, 0, 0),
            BlockStart::Dynamic => (DYNAMIC, 0, 0),
        };
        let kind = code_tree(coder, kind, 2, &mut self.kinds[self.kind_before]).min(DYNAMIC);
        self.kind_before = kind;
        let is_final = coder.code(is_final, &mut self.is_final[kind]);
        let start = match kind {
            STORED => self.code_stored(coder, length, padding),
            FIXED => BlockStart::Fixed,
            _ => BlockStart::Dynamic,
        };
        (start, is_final)
    }

    fn code_stored<C: BitCoder>(&mut self, coder: &mut C, length: u16, padding: u8) -> BlockStart {
        let is_before = length == self.length_before;
        if !coder.code(is_before, &mut self.is_length_before) {
            self.length_before = self.lengths.code(coder, usize::from(length)) as u16;
        }
        let mut coded_padding = 0;
        if coder.code(padding > 0, &mut self.has_padding) {
            coded_padding = code_tree(coder, usize::from(padding), 7, &mut self.paddings) as u8;
        }
        BlockStart::Stored {
            length: self.length_before,
            padding: coded_padding,
        }
    }

    /// Codes the end of a part of a block. Callers skip this for the last block of a stream, which
    /// ends with the stream.
    pub(super) fn code_end<C: BitCoder>(&mut self, coder: &mut C, actual: PartEnd) -> PartEnd {
        if coder.code(actual == PartEnd::Limit, &mut self.reaches_limit) {
            return PartEnd::Limit;
        }
        let count = match actual {
            PartEnd::Tokens(count) => count,
            PartEnd::Limit => 0,
        };
        if !coder.code(count == self.count_before, &mut self.is_count_before) {
            self.count_before = self.counts.code(coder, count).min(PART_TOKENS);
        }
        PartEnd::Tokens(self.count_before)
    }
}

/// Counts the symbols of these tokens, and one symbol for the end of the block.
pub(super) fn block_counts(tokens: &[DecodedToken]) -> SymbolCounts {
    let mut counts = SymbolCounts::ZERO;
    counts.literals[END_OF_BLOCK] = 1;
    for token in tokens {
        match token.as_match() {
            None => counts.literals[usize::from(token.byte())] += 1,
            Some((length, distance)) => {
                counts.literals[FIRST_LENGTH_SYMBOL + length_index(length)] += 1;
                counts.distances[distance_symbol(distance)] += 1;
            }
        }
    }
    counts
}

/// The lengths of the usual Huffman code for these counts.
fn predicted_lengths(counts: &[u32], limit: usize) -> Vec<u8> {
    let mut lengths = vec![0; counts.len()];
    code_lengths(counts, limit, TieOrder::SubtreeFirst, &mut lengths);
    lengths
}

/// The adaptive model of block headers.
#[derive(Debug, Clone)]
pub(super) struct HeaderModel {
    has_usual_counts: [Probability; 2],
    counts: [[Probability; 32]; 2],
    lengths: [[[Probability; 16]; 16]; 2],
    is_usual_run: Probability,
    runs: [Probability; 32],
    run_extras: [Probability; 128],
    run_lengths: [[Probability; 8]; 8],
    is_listed_usually: Probability,
    listed: [Probability; 16],
}

impl HeaderModel {
    pub(super) fn new() -> Self {
        let even = Probability::EVEN;
        Self {
            has_usual_counts: [even; 2],
            counts: [[even; 32]; 2],
            lengths: [[[even; 16]; 16]; 2],
            is_usual_run: even,
            runs: [even; 32],
            run_extras: [even; 128],
            run_lengths: [[even; 8]; 8],
            is_listed_usually: even,
            listed: [even; 16],
        }
    }

    /// Codes the header of a block. The header is predicted from `counts`, the counts of the
    /// symbols in the block's first part. An encoder passes the `actual` header, a decoder `None`.
    pub(super) fn code<C: BitCoder>(
        &mut self,
        coder: &mut C,
        counts: &SymbolCounts,
        actual: Option<&DynamicBlockHeader>,
    ) -> Result<DynamicBlockHeader, DeflateError> {
        let literals = actual.map_or(&[][..], |header| &header.literals);
        let literals = self.code_lengths(coder, 0, &counts.literals, literals, END_OF_BLOCK + 1);
        let distances = actual.map_or(&[][..], |header| &header.distances);
        let distances = self.code_lengths(coder, 1, &counts.distances, distances, 1);
        if literals.len() > LITERAL_SYMBOLS || distances.len() > DISTANCE_SYMBOLS {
            return Err(DeflateError::Recipe("a code has too many symbols"));
        }
        let all = [&literals[..], &distances].concat();
        let runs = self.code_runs(coder, &all, actual)?;
        let predicted = predicted_lengths(&count_header_symbols(&runs), MAX_HEADER_BITS);
        let mut run_lengths = [0; LENGTH_CODE_SYMBOLS];
        for (symbol, length) in run_lengths.iter_mut().enumerate() {
            let coded = actual.map_or(0, |header| header.run_lengths[symbol]);
            let tree = &mut self.run_lengths[usize::from(predicted[symbol])];
            *length = code_tree(coder, usize::from(coded), 3, tree) as u8;
        }
        let usual = listed_lengths(&run_lengths);
        let listed = actual.map_or(0, |header| usize::from(header.run_lengths_listed));
        let mut run_lengths_listed = usual;
        if !coder.code(listed == usual, &mut self.is_listed_usually) {
            let number = listed.saturating_sub(4);
            run_lengths_listed = 4 + code_tree(coder, number, 4, &mut self.listed);
        }
        Ok(DynamicBlockHeader {
            literals,
            distances,
            runs,
            run_lengths,
            run_lengths_listed: run_lengths_listed as u8,
        })
    }

    /// Codes the code lengths of the literals (`which` is 0) or of the distances (1), for at least
    /// `fewest` symbols.
    fn code_lengths<C: BitCoder>(
        &mut self,
        coder: &mut C,
        which: usize,
        counts: &[u32],
        actual: &[u8],
        fewest: usize,
    ) -> Vec<u8> {
        let predicted = predicted_lengths(counts, LONGEST_CODE);
        let used = predicted.iter().rposition(|length| *length > 0);
        let usual = used.map_or(0, |last| last + 1).max(fewest);
        let mut count = usual;
        if !coder.code(actual.len() == usual, &mut self.has_usual_counts[which]) {
            let number = actual.len().saturating_sub(fewest);
            count = fewest + code_tree(coder, number, 5, &mut self.counts[which]);
        }
        let mut lengths = Vec::with_capacity(count);
        for symbol in 0..count {
            let predicted = predicted.get(symbol).copied().unwrap_or(0);
            let actual = actual.get(symbol).copied().unwrap_or(0);
            let tree = &mut self.lengths[which][usize::from(predicted)];
            lengths.push(code_tree(coder, usize::from(actual), 4, tree) as u8);
        }
        lengths
    }

    /// Codes the way in which the lengths are cut into runs.
    fn code_runs<C: BitCoder>(
        &mut self,
        coder: &mut C,
        lengths: &[u8],
        actual: Option<&DynamicBlockHeader>,
    ) -> Result<Vec<(u8, u8)>, DeflateError> {
        let mut runs = Vec::with_capacity(lengths.len());
        let mut at = 0;
        while at < lengths.len() {
            let usual = usual_run(lengths, at);
            let coded = actual.map_or((0, 0), |header| header.runs[runs.len()]);
            let mut run = usual;
            if !coder.code(coded == usual, &mut self.is_usual_run) {
                let symbol = code_tree(coder, usize::from(coded.0), 5, &mut self.runs) as u8;
                if usize::from(symbol) >= LENGTH_CODE_SYMBOLS {
                    return Err(DeflateError::Recipe("a code length is invalid"));
                }
                let bits = run_shape(symbol).0;
                let extra = code_tree(coder, usize::from(coded.1), bits, &mut self.run_extras);
                run = (symbol, extra as u8);
            }
            at += run_shape(run.0).1 + usize::from(run.1);
            runs.push(run);
        }
        if at > lengths.len() {
            return Err(DeflateError::Recipe("there are too many code lengths"));
        }
        Ok(runs)
    }
}

/// The longest run that begins at the index `at`: zeros, repetitions of the length before it, or a
/// single length.
fn usual_run(lengths: &[u8], at: usize) -> (u8, u8) {
    let length = lengths[at];
    let count = lengths[at..]
        .iter()
        .take_while(|other| **other == length)
        .count();
    match (length, count) {
        (0, 11..) => (18, (count.min(138) - 11) as u8),
        (0, 3..) => (17, (count - 3) as u8),
        (1.., 3..) if at > 0 && lengths[at - 1] == length => (16, (count.min(6) - 3) as u8),
        _ => (length, 0),
    }
}
