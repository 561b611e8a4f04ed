//! Writes blocks from tokens and headers.

use crate::bits::BitWriter;
use crate::inflate::{DecodedToken, DynamicBlockHeader, run_shape};
use crate::symbols::{
    DISTANCES, END_OF_BLOCK, FIRST_LENGTH_SYMBOL, FIXED_DISTANCE_LENGTHS, FIXED_LITERAL_LENGTHS,
    LENGTH_CODE_ORDER, LENGTH_CODE_SYMBOLS, LENGTHS, LONGEST_MATCH, canonical_codes,
    distance_symbol, length_index,
};

/// The code of one symbol.
#[derive(Debug, Clone, Copy, Default)]
struct SymbolCode {
    bits: u16,
    length: u8,
}

/// The codes of a block.
#[derive(Debug)]
pub(super) struct OutputCodes {
    literals: [SymbolCode; 288],
    distances: [SymbolCode; 32],
}

fn assign<const N: usize>(lengths: &[u8]) -> [SymbolCode; N] {
    let mut bits = [0; N];
    canonical_codes(lengths, &mut bits);
    let mut codes = [SymbolCode::default(); N];
    for (code, (&bits, &length)) in codes.iter_mut().zip(bits.iter().zip(lengths)) {
        *code = SymbolCode { bits, length };
    }
    codes
}

impl OutputCodes {
    /// The codes of fixed blocks.
    pub(super) fn fixed() -> Self {
        Self {
            literals: assign(&FIXED_LITERAL_LENGTHS),
            distances: assign(&FIXED_DISTANCE_LENGTHS),
        }
    }

    /// The codes of a dynamic block.
    pub(super) fn dynamic(header: &DynamicBlockHeader) -> Self {
        Self {
            literals: assign(&header.literals),
            distances: assign(&header.distances),
        }
    }

    pub(super) fn write_tokens(&self, tokens: &[DecodedToken], out: &mut BitWriter) {
        for token in tokens {
            let Some((length, distance)) = token.as_match() else {
                put(self.literals[usize::from(token.byte())], out);
                continue;
            };
            let mut index = length_index(length);
            if token.is_long_form() {
                index = length_index(LONGEST_MATCH - 1);
            }
            put(self.literals[FIRST_LENGTH_SYMBOL + index], out);
            let range = LENGTHS[index];
            let extra = length - usize::from(range.base);
            out.write(extra as u32, u32::from(range.extra));
            let symbol = distance_symbol(distance);
            put(self.distances[symbol], out);
            let range = DISTANCES[symbol];
            let extra = distance - usize::from(range.base);
            out.write(extra as u32, u32::from(range.extra));
        }
    }

    /// Writes the end of the block.
    pub(super) fn write_end(&self, out: &mut BitWriter) {
        put(self.literals[END_OF_BLOCK], out);
    }
}

fn put(code: SymbolCode, out: &mut BitWriter) {
    out.write(u32::from(code.bits), u32::from(code.length));
}

/// Writes the header of a dynamic block, after its type.
pub(super) fn write_dynamic(header: &DynamicBlockHeader, out: &mut BitWriter) {
    out.write(header.literals.len() as u32 - 257, 5);
    out.write(header.distances.len() as u32 - 1, 5);
    out.write(u32::from(header.run_lengths_listed) - 4, 4);
    let listed = usize::from(header.run_lengths_listed);
    for &symbol in &LENGTH_CODE_ORDER[..listed.min(LENGTH_CODE_SYMBOLS)] {
        out.write(u32::from(header.run_lengths[usize::from(symbol)]), 3);
    }
    let codes: [SymbolCode; LENGTH_CODE_SYMBOLS] = assign(&header.run_lengths);
    for &(symbol, extra) in &header.runs {
        put(codes[usize::from(symbol)], out);
        out.write(u32::from(extra), run_shape(symbol).0);
    }
}

/// Writes the beginning of a stored block, up to its content. Only as many padding bits are written
/// as fit into the last byte.
pub(super) fn write_stored(is_final: bool, length: u16, padding: u8, out: &mut BitWriter) {
    out.write(u32::from(is_final), 3);
    write_padding(padding, out);
    out.write_bytes(&length.to_le_bytes());
    out.write_bytes(&(!length).to_le_bytes());
}

/// Writes padding bits up to the next byte boundary.
pub(super) fn write_padding(padding: u8, out: &mut BitWriter) {
    let used = out.bits_past_byte();
    if used > 0 {
        let free = 8 - used;
        out.write(u32::from(padding) & ((1 << free) - 1), free);
    }
    out.align();
}
