//! Writes the parts of blocks: headers (RFC 1951, sections 3.2.3 to 3.2.7) and tokens.

use super::huffman::{
    Code, MAX_HEADER_BITS, SymbolCounts, TieOrder, Token, code_lengths, distance_extra_bits,
    length_extra_bits,
};
use crate::bits::BitWriter;
use crate::symbols::{
    DISTANCE_SYMBOLS, END_OF_BLOCK, FIRST_LENGTH_SYMBOL, FIXED_DISTANCE_LENGTHS,
    FIXED_LITERAL_LENGTHS, LENGTH_CODE_ORDER, LENGTH_CODE_SYMBOLS, LENGTHS, LITERAL_SYMBOLS,
    MIN_LENGTH, distance_symbol, length_index,
};

/// The maximum number of bytes in a stored block.
pub(crate) const MAX_STORED: usize = 65_535;

/// The maximum number of bits of a token: code words of 15 bits each for a length and a distance,
/// with 5 and 13 extra bits.
const MAX_TOKEN_BITS: usize = 48;
/// The number of tokens that are written at once, so that little space is reserved for them.
const BULK_TOKENS: usize = 1024;

const STORED: u32 = 0;
const FIXED: u32 = 1;
const DYNAMIC: u32 = 2;

/// The code for literals, the end of a block, and lengths.
pub(crate) type LiteralCode = Code<288>;
/// The code for distances.
pub(crate) type DistanceCode = Code<32>;

/// The two codes of a block.
#[derive(Debug, Clone)]
pub(crate) struct BlockCodes {
    /// The code for literals, the end of the block, and lengths.
    pub(crate) literals: LiteralCode,
    /// The code for distances.
    pub(crate) distances: DistanceCode,
}

impl BlockCodes {
    /// Codes without symbols.
    pub(crate) const EMPTY: Self = Self {
        literals: Code::EMPTY,
        distances: Code::EMPTY,
    };

    /// The codes of fixed blocks.
    pub(crate) fn fixed() -> Self {
        let mut codes = Self::EMPTY;
        codes.literals.set_lengths(&FIXED_LITERAL_LENGTHS);
        codes.distances.set_lengths(&FIXED_DISTANCE_LENGTHS);
        codes
    }

    /// The size of these symbols in bits, without extra bits.
    pub(crate) fn size(&self, counts: &SymbolCounts) -> u64 {
        self.literals.size(&counts.literals) + self.distances.size(&counts.distances)
    }

    /// Writes `tokens` without an end of block.
    pub(crate) fn write_tokens(&self, tokens: &[Token], out: &mut BitWriter) {
        // a length's code word together with its extra bits takes up to 20 bits
        let mut lengths = [(0_u32, 0_u32); 256];
        for (short_length, entry) in lengths.iter_mut().enumerate() {
            let index = length_index(short_length + MIN_LENGTH);
            let (word, bits) = self.literals.word(FIRST_LENGTH_SYMBOL + index);
            let extra = (short_length + MIN_LENGTH) as u32 - u32::from(LENGTHS[index].base);
            *entry = (word | extra << bits, bits + length_extra_bits(index));
        }
        for part in tokens.chunks(BULK_TOKENS) {
            let mut bulk = out.bulk(part.len() * MAX_TOKEN_BITS);
            for token in part {
                if let Some(byte) = token.as_literal() {
                    let (word, bits) = self.literals.word(usize::from(byte));
                    bulk.put(u64::from(word), bits);
                } else {
                    let (length, length_bits) = lengths[usize::from(token.short_length())];
                    let code = distance_symbol(token.distance());
                    let (word, bits) = self.distances.word(code);
                    let extra_bits = distance_extra_bits(code);
                    let extra = u32::from(token.short_distance()) & ((1 << extra_bits) - 1);
                    let distance = u64::from(word | extra << bits);
                    bulk.put(
                        u64::from(length) | distance << length_bits,
                        length_bits + bits + extra_bits,
                    );
                }
            }
            bulk.finish();
        }
    }

    /// Writes `plain` as literals, without an end of block.
    pub(crate) fn write_literals(&self, plain: &[u8], out: &mut BitWriter) {
        for byte in plain {
            self.literals.write(usize::from(*byte), out);
        }
    }

    /// Writes the symbol that ends the block.
    pub(crate) fn write_end(&self, out: &mut BitWriter) {
        self.literals.write(END_OF_BLOCK, out);
    }
}

/// Begins a block with the fixed codes.
pub(crate) fn write_fixed_header(last: bool, out: &mut BitWriter) {
    out.write(u32::from(last) | FIXED << 1, 3);
}

/// Writes a stored block of up to [`MAX_STORED`] bytes.
pub(crate) fn write_stored(plain: &[u8], last: bool, out: &mut BitWriter) {
    out.write(u32::from(last) | STORED << 1, 3);
    out.align();
    let length = plain.len() as u16;
    out.write_bytes(&length.to_le_bytes());
    out.write_bytes(&(!length).to_le_bytes());
    out.write_bytes(plain);
}

/// The size of a stored block in bits, as encoders estimate it: the three bits that begin the block
/// and the bits up to the next byte boundary count as one byte.
pub(crate) fn stored_size(length: usize) -> u64 {
    (length as u64 + 5) * 8
}

/// The header of a block with dynamic codes: the lengths of both codes, run-length coded.
///
/// A run of zeros is cut into pieces of 138; a remainder of at least 3 is one more piece. A run of
/// a nonzero code length begins with this length; pieces of 6 repetitions follow, then the
/// remainder if it is at least 3. Shorter remainders are transmitted one by one. Runs extend over
/// both codes.
#[derive(Debug)]
pub(crate) struct DynamicHeader {
    literals: usize,
    distances: usize,
    /// Symbols and their extra bits.
    symbols: Vec<(u8, u8)>,
    code: Code<LENGTH_CODE_SYMBOLS>,
    code_lengths: usize,
    /// The size of the header in bits, with the three bits that begin the block.
    pub(crate) size: u64,
}

impl DynamicHeader {
    /// The header for the first `literals` symbols of the literal code, at least 257, and the first
    /// `distances` symbols of the distance code, at least 1.
    pub(crate) fn new(
        literal_code: &LiteralCode,
        literals: usize,
        distance_code: &DistanceCode,
        distances: usize,
        ties: TieOrder,
    ) -> Self {
        let mut lengths = [0_u8; LITERAL_SYMBOLS + DISTANCE_SYMBOLS];
        let all = literal_code
            .lengths(literals)
            .chain(distance_code.lengths(distances));
        for (slot, length) in lengths.iter_mut().zip(all) {
            *slot = length;
        }
        let mut symbols = Vec::with_capacity(lengths.len());
        for run in lengths[..literals + distances].chunk_by(|a, b| a == b) {
            push_run(run[0], run.len(), &mut symbols);
        }
        let mut lengths_of_code = [0; LENGTH_CODE_SYMBOLS];
        code_lengths(
            &count_header_symbols(&symbols),
            MAX_HEADER_BITS,
            ties,
            &mut lengths_of_code,
        );
        Self::with_symbols(literals, distances, symbols, &lengths_of_code)
    }

    /// The header that transmits the code lengths by `symbols`. `lengths` are the lengths of these
    /// symbols' own code words.
    pub(crate) fn with_symbols(
        literals: usize,
        distances: usize,
        symbols: Vec<(u8, u8)>,
        lengths: &[u8; LENGTH_CODE_SYMBOLS],
    ) -> Self {
        let counts = count_header_symbols(&symbols);
        let mut code = Code::EMPTY;
        code.set_lengths(lengths);
        let code_lengths = listed_lengths(lengths);
        let extra = 2 * counts[16] + 3 * counts[17] + 7 * counts[18];
        let size = 3 + 14 + 3 * code_lengths as u64 + code.size(&counts) + u64::from(extra);
        Self {
            literals,
            distances,
            symbols,
            code,
            code_lengths,
            size,
        }
    }

    /// Begins a block with this header.
    pub(crate) fn write(&self, last: bool, out: &mut BitWriter) {
        out.write(u32::from(last) | DYNAMIC << 1, 3);
        out.write((self.literals - 257) as u32, 5);
        out.write((self.distances - 1) as u32, 5);
        out.write((self.code_lengths - 4) as u32, 4);
        for symbol in &LENGTH_CODE_ORDER[..self.code_lengths] {
            out.write(self.code.length(usize::from(*symbol)), 3);
        }
        for (symbol, extra) in &self.symbols {
            self.code.write(usize::from(*symbol), out);
            let extra_bits = match symbol {
                16 => 2,
                17 => 3,
                18 => 7,
                _ => continue,
            };
            out.write(u32::from(*extra), extra_bits);
        }
    }
}

/// The number of these lengths of code length symbols that a header lists: at least 4, in the order
/// of the standard.
pub(crate) fn listed_lengths(lengths: &[u8; LENGTH_CODE_SYMBOLS]) -> usize {
    LENGTH_CODE_ORDER
        .iter()
        .rposition(|symbol| lengths[usize::from(*symbol)] != 0)
        .map_or(4, |last| (last + 1).max(4))
}

/// The number of occurrences of each code length symbol.
pub(crate) fn count_header_symbols(symbols: &[(u8, u8)]) -> [u32; LENGTH_CODE_SYMBOLS] {
    let mut counts = [0; LENGTH_CODE_SYMBOLS];
    for (symbol, _) in symbols {
        counts[usize::from(*symbol)] += 1;
    }
    counts
}

/// Appends the code length symbols of a run, with their extra bits.
pub(crate) fn push_run(length: u8, mut count: usize, symbols: &mut Vec<(u8, u8)>) {
    if length == 0 {
        while count >= 11 {
            let piece = count.min(138);
            symbols.push((18, (piece - 11) as u8));
            count -= piece;
        }
        if count >= 3 {
            symbols.push((17, (count - 3) as u8));
            count = 0;
        }
    } else {
        symbols.push((length, 0));
        count -= 1;
        while count >= 3 {
            let piece = count.min(6);
            symbols.push((16, (piece - 3) as u8));
            count -= piece;
        }
    }
    symbols.extend(std::iter::repeat_n((length, 0), count));
}
