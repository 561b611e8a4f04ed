//! Blocks and tokens: the content of a deflate stream beyond its plain bytes.

use crate::bits::BitReader;
use crate::error::DeflateError;
use crate::inflate::table::{DecodeTable, InvalidCode};
use crate::symbols::{
    DISTANCE_SYMBOLS, END_OF_BLOCK, LENGTH_CODE_ORDER, LENGTH_CODE_SYMBOLS, LITERAL_SYMBOLS,
};
use std::io::Read;

/// A literal or a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DecodedToken(u32);

impl DecodedToken {
    const MATCH: u32 = 1 << 31;
    const LONG_FORM: u32 = 1 << 30;

    pub(crate) fn literal(byte: u8) -> Self {
        Self(u32::from(byte))
    }

    /// A match of `length` bytes, 3 to 258, at a distance of 1 to 32768.
    pub(crate) fn matched(length: usize, distance: usize) -> Self {
        Self(Self::MATCH | (length as u32) << 16 | distance as u32)
    }

    /// A match of 258 bytes that is written as symbol 284 with extra bits instead of symbol 285. No
    /// known encoder does this.
    pub(crate) fn matched_in_long_form(distance: usize) -> Self {
        Self(Self::matched(258, distance).0 | Self::LONG_FORM)
    }

    /// The length and distance of a match, or `None` for a literal.
    #[inline]
    pub(crate) fn as_match(self) -> Option<(usize, usize)> {
        (self.0 & Self::MATCH != 0).then_some((
            ((self.0 >> 16) & 0x1ff) as usize,
            (self.0 & 0xffff) as usize,
        ))
    }

    /// Whether the match was made by `matched_in_long_form`.
    pub(crate) fn is_long_form(self) -> bool {
        self.0 & Self::LONG_FORM != 0
    }

    /// The byte of a literal.
    pub(crate) fn byte(self) -> u8 {
        self.0 as u8
    }

    /// The number of plain bytes.
    #[inline]
    pub(crate) fn length(self) -> usize {
        self.as_match().map_or(1, |(length, _)| length)
    }
}

/// The header of a dynamic block, without the values that can be computed from other fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DynamicBlockHeader {
    /// The 257 to 286 code lengths of literals, match lengths and the end of the block.
    pub(crate) literals: Vec<u8>,
    /// The 1 to 30 code lengths of distances.
    pub(crate) distances: Vec<u8>,
    /// The symbols that describe `literals` and `distances`, in order, each with the value of its
    /// extra bits.
    pub(crate) runs: Vec<(u8, u8)>,
    /// The code lengths of the symbols in `runs`, by symbol.
    pub(crate) run_lengths: [u8; LENGTH_CODE_SYMBOLS],
    /// The number of `run_lengths` that are in the header, in the order of the standard: 4 to 19.
    pub(crate) run_lengths_listed: u8,
}

/// The form of the content of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BlockKind {
    /// Plain bytes. `padding` is the value of the padding bits before the length; all known
    /// encoders write 0.
    Stored { length: u16, padding: u8 },
    /// Tokens in the fixed code.
    Fixed,
    /// Tokens in the codes that the header describes.
    Dynamic(Box<DynamicBlockHeader>),
}

/// The beginning of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeflateBlock {
    /// Whether it is the last of the stream.
    pub(crate) is_final: bool,
    pub(crate) kind: BlockKind,
    /// The number of plain bytes before it, in its stream.
    pub(crate) plain_offset: u64,
    /// The number of tokens before it, in its stream.
    pub(crate) token_offset: u64,
}

impl DeflateBlock {
    /// Whether this is the block that a flush writes: an empty stored block that is not the last of
    /// its stream.
    pub(crate) fn is_flush(&self) -> bool {
        !self.is_final && matches!(self.kind, BlockKind::Stored { length: 0, .. })
    }
}

/// Reads the header of a dynamic block, after the three bits that begin the block.
pub(crate) fn read_dynamic<R: Read>(
    input: &mut BitReader<R>,
    table: &mut DecodeTable,
) -> Result<DynamicBlockHeader, DeflateError> {
    let literal_count = 257 + input.read(5)? as usize;
    let distance_count = 1 + input.read(5)? as usize;
    let listed = 4 + input.read(4)? as u8;
    if literal_count > LITERAL_SYMBOLS || distance_count > DISTANCE_SYMBOLS {
        return Err(input.error("a code has too many symbols"));
    }
    let mut run_lengths = [0; LENGTH_CODE_SYMBOLS];
    for &symbol in &LENGTH_CODE_ORDER[..usize::from(listed)] {
        run_lengths[usize::from(symbol)] = input.read(3)? as u8;
    }
    table
        .build(&run_lengths, 7)
        .map_err(|InvalidCode| input.error("the code of code lengths is invalid"))?;
    let total = literal_count + distance_count;
    let mut lengths = Vec::with_capacity(total);
    let mut runs = Vec::with_capacity(total);
    while lengths.len() < total {
        input.refill()?;
        let entry = table.decode(input.peek());
        if entry.bits == 0 {
            return Err(input.error("a code length is invalid"));
        }
        input.consume(u32::from(entry.bits))?;
        let symbol = entry.value as u8;
        let (extra_bits, base) = run_shape(symbol);
        let extra = input.take(extra_bits)? as u8;
        let value = match symbol {
            16 => *lengths
                .last()
                .ok_or_else(|| input.error("there is no code length to repeat"))?,
            17 | 18 => 0,
            length => length,
        };
        runs.push((symbol, extra));
        lengths.extend(std::iter::repeat_n(value, base + usize::from(extra)));
    }
    if lengths.len() > total {
        return Err(input.error("there are too many code lengths"));
    }
    let distances = lengths.split_off(literal_count);
    if lengths[END_OF_BLOCK] == 0 {
        return Err(input.error("the code has no symbol for the end of the block"));
    }
    Ok(DynamicBlockHeader {
        literals: lengths,
        distances,
        runs,
        run_lengths,
        run_lengths_listed: listed,
    })
}

/// For a symbol that describes code lengths: the number of its extra bits, and how many lengths it
/// describes if these bits are zero.
pub(crate) fn run_shape(symbol: u8) -> (u32, usize) {
    match symbol {
        16 => (2, 3),
        17 => (3, 3),
        18 => (7, 11),
        _ => (0, 1),
    }
}
