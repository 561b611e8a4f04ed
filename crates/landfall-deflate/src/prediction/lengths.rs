//! Codes the header of a dynamic block. The prediction is the Huffman code that is computed from
//! the counts of the symbols.

use super::coder::{BitCoder, Probability, code_tree};
use crate::encoder::huffman::{MAX_BITS, MAX_HEADER_BITS, TieOrder, code_lengths};
use crate::error::DeflateError;
use crate::inflate::{DecodedToken, DynamicBlockHeader, run_shape};
use crate::symbols::{
    DISTANCE_SYMBOLS, END_OF_BLOCK, FIRST_LENGTH_SYMBOL, LENGTH_CODE_ORDER, LENGTH_CODE_SYMBOLS,
    LITERAL_SYMBOLS, distance_symbol, length_index,
};

/// The number of occurrences of each symbol.
#[derive(Debug, Clone)]
pub(super) struct TokenCounts {
    literals: [u32; LITERAL_SYMBOLS],
    distances: [u32; DISTANCE_SYMBOLS],
}

impl TokenCounts {
    /// Counts the symbols of these tokens, and one symbol for the end of the block.
    pub(super) fn of_block(tokens: &[DecodedToken]) -> Self {
        let mut counts = Self {
            literals: [0; LITERAL_SYMBOLS],
            distances: [0; DISTANCE_SYMBOLS],
        };
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
        counts: &TokenCounts,
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
        let mut run_counts = [0; LENGTH_CODE_SYMBOLS];
        for (symbol, _) in &runs {
            run_counts[usize::from(*symbol)] += 1;
        }
        let predicted = predicted_lengths(&run_counts, MAX_HEADER_BITS);
        let mut run_lengths = [0; LENGTH_CODE_SYMBOLS];
        for (symbol, length) in run_lengths.iter_mut().enumerate() {
            let coded = actual.map_or(0, |header| header.run_lengths[symbol]);
            let tree = &mut self.run_lengths[usize::from(predicted[symbol])];
            *length = code_tree(coder, usize::from(coded), 3, tree) as u8;
        }
        let used = LENGTH_CODE_ORDER
            .iter()
            .rposition(|symbol| run_lengths[usize::from(*symbol)] > 0);
        let usual = used.map_or(4, |last| (last + 1).max(4));
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
        let predicted = predicted_lengths(counts, MAX_BITS);
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
