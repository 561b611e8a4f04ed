//! Decodes a raw deflate stream strictly, into plain bytes, blocks and tokens.
//!
//! The decoder accepts what zlib accepts. It keeps everything that a stream can express beyond its
//! plain bytes: blocks and their headers, tokens, padding.

mod table;

use self::table::{DecodeTable, InvalidCode};
use crate::DeflateError;
use crate::bits::BitReader;
use crate::symbols::{
    DISTANCE_SYMBOLS, DISTANCES, END_OF_BLOCK, FIRST_LENGTH_SYMBOL, FIXED_DISTANCE_LENGTHS,
    FIXED_LITERAL_LENGTHS, LENGTH_CODE_ORDER, LENGTH_CODE_SYMBOLS, LENGTHS, LITERAL_SYMBOLS,
    MAX_DISTANCE, MAX_LENGTH,
};
use std::io::Read;

/// The approximate number of plain bytes that one call of [`Inflater::step`] decodes.
const STEP_BYTES: usize = 64 << 10;

/// The maximum number of blocks that one step begins. It bounds a step over blocks without plain
/// bytes.
const STEP_BLOCKS: usize = 1024;

/// The number of bits that the tables of literals and of distances decode in one step.
const LITERAL_BITS: u32 = 10;

const DISTANCE_BITS: u32 = 9;

/// The number of bytes of a match that are copied at once, unless the match overlaps with them.
const COPIED_BYTES: usize = 16;

/// The state of the decoder between two steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InflatePosition {
    /// Before the header of a block.
    Header,
    /// In a stored block with `left` more bytes.
    Stored { left: usize },
    /// Between two tokens.
    Tokens,
    /// After the final block.
    End,
}

/// A decoder for one raw deflate stream.
#[derive(Debug)]
pub(crate) struct Inflater {
    /// The window, then the plain bytes of the last step.
    buffer: Vec<u8>,
    /// The index in `buffer` of the first plain byte of the last step.
    from: usize,
    /// The number of plain bytes before the last step.
    plain_before: u64,
    /// The number of tokens before and in the last step.
    token_count: u64,
    position: InflatePosition,
    is_final: bool,
    literals: DecodeTable,
    distances: DecodeTable,
    /// The blocks that began in the last step.
    blocks: Vec<DeflateBlock>,
    /// The tokens of the last step, if they are recorded.
    tokens: Vec<DecodedToken>,
    records_tokens: bool,
    /// The bits after the final block, up to a byte boundary.
    pub(crate) padding: u8,
}

/// The output of one step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InflatedPiece<'a> {
    /// The number of plain bytes before the piece, in its stream.
    pub(crate) plain_offset: u64,
    pub(crate) plain: &'a [u8],
    /// The blocks that begin in it.
    pub(crate) blocks: &'a [DeflateBlock],
    /// Its tokens, if they are recorded.
    pub(crate) tokens: &'a [DecodedToken],
    /// Whether the stream ends after it.
    pub(crate) is_last: bool,
}

// Decodes the tokens of a block.

impl Inflater {
    /// A decoder at the beginning of a stream.
    pub(crate) fn new() -> Self {
        Self {
            buffer: Vec::with_capacity(MAX_DISTANCE + STEP_BYTES + MAX_LENGTH + COPIED_BYTES),
            from: 0,
            plain_before: 0,
            token_count: 0,
            position: InflatePosition::Header,
            is_final: false,
            literals: DecodeTable::default(),
            distances: DecodeTable::default(),
            blocks: Vec::new(),
            tokens: Vec::new(),
            records_tokens: false,
            padding: 0,
        }
    }

    /// Resets the decoder to the beginning of another stream.
    pub(crate) fn restart(&mut self) {
        self.buffer.clear();
        self.from = 0;
        self.plain_before = 0;
        self.token_count = 0;
        self.position = InflatePosition::Header;
        self.blocks.clear();
        self.tokens.clear();
    }

    /// Sets whether the following steps record tokens.
    pub(crate) fn record_tokens(&mut self, records: bool) {
        self.records_tokens = records;
    }

    /// The output of the last step.
    pub(crate) fn piece(&self) -> InflatedPiece<'_> {
        InflatedPiece {
            plain_offset: self.plain_before,
            plain: &self.buffer[self.from..],
            blocks: &self.blocks,
            tokens: &self.tokens,
            is_last: self.is_at_end(),
        }
    }

    /// Whether the stream has ended.
    pub(crate) fn is_at_end(&self) -> bool {
        self.position == InflatePosition::End
    }

    /// Decodes the next piece of the stream.
    pub(crate) fn step<R: Read>(&mut self, input: &mut BitReader<R>) -> Result<(), DeflateError> {
        self.plain_before += (self.buffer.len() - self.from) as u64;
        let unused = self.buffer.len().saturating_sub(MAX_DISTANCE);
        self.buffer.drain(..unused);
        self.from = self.buffer.len();
        self.blocks.clear();
        self.tokens.clear();
        let end = self.from + STEP_BYTES;
        while self.buffer.len() < end && self.blocks.len() < STEP_BLOCKS {
            match self.position {
                InflatePosition::Header => self.read_header(input)?,
                InflatePosition::Stored { left: 0 } => self.end_block(input),
                InflatePosition::Stored { left } => {
                    let room = end - self.buffer.len();
                    let bytes = input.bytes(left.min(room))?;
                    self.buffer.extend_from_slice(bytes);
                    self.position = InflatePosition::Stored {
                        left: left - bytes.len(),
                    };
                }
                InflatePosition::Tokens if self.records_tokens => {
                    self.read_tokens::<R, true>(input, end)?
                }
                InflatePosition::Tokens => self.read_tokens::<R, false>(input, end)?,
                InflatePosition::End => break,
            }
        }
        Ok(())
    }

    fn end_block<R: Read>(&mut self, input: &mut BitReader<R>) {
        self.position = InflatePosition::Header;
        if self.is_final {
            self.padding = input.align();
            self.position = InflatePosition::End;
        }
    }

    fn read_header<R: Read>(&mut self, input: &mut BitReader<R>) -> Result<(), DeflateError> {
        self.is_final = input.read(1)? == 1;
        let (kind, position) = match input.read(2)? {
            0 => {
                let padding = input.align();
                let length = u16::from_le_bytes([input.byte()?, input.byte()?]);
                let check = u16::from_le_bytes([input.byte()?, input.byte()?]);
                if length != !check {
                    return Err(input.error("the length of a stored block is invalid"));
                }
                let left = usize::from(length);
                (
                    BlockKind::Stored { length, padding },
                    InflatePosition::Stored { left },
                )
            }
            1 => {
                let built = self
                    .literals
                    .build(&FIXED_LITERAL_LENGTHS, LITERAL_BITS)
                    .and_then(|()| self.distances.build(&FIXED_DISTANCE_LENGTHS, DISTANCE_BITS));
                debug_assert!(built.is_ok(), "the fixed codes are complete");
                (BlockKind::Fixed, InflatePosition::Tokens)
            }
            2 => {
                let header = read_dynamic(input, &mut self.literals)?;
                self.literals
                    .build(&header.literals, LITERAL_BITS)
                    .and_then(|()| self.distances.build(&header.distances, DISTANCE_BITS))
                    .map_err(|InvalidCode| input.error("a code is invalid"))?;
                (
                    BlockKind::Dynamic(Box::new(header)),
                    InflatePosition::Tokens,
                )
            }
            _ => return Err(input.error("the type of a block is invalid")),
        };
        self.position = position;
        self.blocks.push(DeflateBlock {
            is_final: self.is_final,
            kind,
            plain_offset: self.plain_before + (self.buffer.len() - self.from) as u64,
            token_offset: self.token_count,
        });
        Ok(())
    }
}

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
fn read_dynamic<R: Read>(
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

impl Inflater {
    /// Reads the tokens whose bits are in memory. Stops when `buffer` has `end` bytes, or before
    /// the end of the block or an invalid token.
    fn read_buffered_tokens<R: Read, const RECORD: bool>(
        &mut self,
        input: &mut BitReader<R>,
        end: usize,
    ) {
        let mut bulk = input.bulk();
        if !bulk.refill() {
            return;
        }
        let mut at = self.buffer.len();
        self.buffer.resize(end + MAX_LENGTH + COPIED_BYTES, 0);
        let buffer = &mut self.buffer[..];
        let mut count = 0;
        while at < end && bulk.refill() {
            // a token takes at most 48 bits
            let bits = bulk.peek();
            let entry = self.literals.decode(bits);
            let symbol = usize::from(entry.value);
            let mut taken = u32::from(entry.bits);
            if taken == 0 {
                break;
            }
            if symbol < END_OF_BLOCK {
                bulk.consume(taken);
                buffer[at] = symbol as u8;
                at += 1;
                count += 1;
                if RECORD {
                    self.tokens.push(DecodedToken::literal(symbol as u8));
                }
                continue;
            }
            let index = symbol.wrapping_sub(FIRST_LENGTH_SYMBOL);
            let Some(range) = LENGTHS.get(index) else {
                break;
            };
            let extra = bits >> taken & ((1 << range.extra) - 1);
            let length = usize::from(range.base) + extra as usize;
            taken += u32::from(range.extra);
            let entry = self.distances.decode(bits >> taken);
            taken += u32::from(entry.bits);
            let Some(range) = DISTANCES.get(usize::from(entry.value)) else {
                break;
            };
            let extra = bits >> taken & ((1 << range.extra) - 1);
            let distance = usize::from(range.base) + extra as usize;
            taken += u32::from(range.extra);
            if entry.bits == 0 || distance > at {
                break;
            }
            bulk.consume(taken);
            copy_match(buffer, at, length, distance);
            at += length;
            count += 1;
            if RECORD {
                self.tokens.push(decoded_match(symbol, length, distance));
            }
        }
        bulk.finish();
        self.buffer.truncate(at);
        self.token_count += count;
    }

    /// Reads tokens up to the end of the block, or until `buffer` has `end` bytes.
    fn read_tokens<R: Read, const RECORD: bool>(
        &mut self,
        input: &mut BitReader<R>,
        end: usize,
    ) -> Result<(), DeflateError> {
        while self.buffer.len() < end {
            self.read_buffered_tokens::<R, RECORD>(input, end);
            if self.buffer.len() >= end {
                break;
            }
            // the next token is at the end of the bytes in memory, ends the block, or is invalid
            input.refill()?;
            let entry = self.literals.decode(input.peek());
            if entry.bits == 0 {
                return Err(input.error("a code of a literal or length is invalid"));
            }
            input.consume(u32::from(entry.bits))?;
            let symbol = usize::from(entry.value);
            if symbol < END_OF_BLOCK {
                self.buffer.push(symbol as u8);
                if RECORD {
                    self.tokens.push(DecodedToken::literal(symbol as u8));
                }
                self.token_count += 1;
                continue;
            }
            if symbol == END_OF_BLOCK {
                self.end_block(input);
                return Ok(());
            }
            let Some(range) = LENGTHS.get(symbol - FIRST_LENGTH_SYMBOL) else {
                return Err(input.error("a length symbol is invalid"));
            };
            let extra = input.take(u32::from(range.extra))?;
            let length = usize::from(range.base) + extra as usize;
            let entry = self.distances.decode(input.peek());
            if entry.bits == 0 {
                return Err(input.error("a code of a distance is invalid"));
            }
            input.consume(u32::from(entry.bits))?;
            let Some(range) = DISTANCES.get(usize::from(entry.value)) else {
                return Err(input.error("a distance symbol is invalid"));
            };
            let extra = input.take(u32::from(range.extra))?;
            let distance = usize::from(range.base) + extra as usize;
            if distance > self.buffer.len() {
                return Err(input.error("a distance points before the beginning of the stream"));
            }
            let at = self.buffer.len();
            self.buffer.resize(at + length + COPIED_BYTES, 0);
            copy_match(&mut self.buffer, at, length, distance);
            self.buffer.truncate(at + length);
            if RECORD {
                self.tokens.push(decoded_match(symbol, length, distance));
            }
            self.token_count += 1;
        }
        Ok(())
    }
}

/// The token of a match whose length has this symbol.
fn decoded_match(symbol: usize, length: usize, distance: usize) -> DecodedToken {
    if length == MAX_LENGTH && symbol != FIRST_LENGTH_SYMBOL + 28 {
        DecodedToken::matched_in_long_form(distance)
    } else {
        DecodedToken::matched(length, distance)
    }
}

/// Writes a match at `at`: a copy of the `length` bytes that begin `distance` bytes earlier and may
/// overlap with the copy. Fewer than [`COPIED_BYTES`] bytes after the copy are overwritten.
#[inline]
fn copy_match(buffer: &mut [u8], at: usize, length: usize, distance: usize) {
    let from = at - distance;
    if distance >= COPIED_BYTES {
        for step in (0..length).step_by(COPIED_BYTES) {
            let mut bytes = [0; COPIED_BYTES];
            bytes.copy_from_slice(&buffer[from + step..from + step + COPIED_BYTES]);
            buffer[at + step..at + step + COPIED_BYTES].copy_from_slice(&bytes);
        }
    } else if distance == 1 {
        let byte = buffer[from];
        buffer[at..at + length].fill(byte);
    } else {
        for step in 0..length {
            buffer[at + step] = buffer[from + step];
        }
    }
}
