//! The decoder: steps through a stream and returns pieces of it.

use super::block::{BlockKind, DecodedToken, DeflateBlock, read_dynamic};
use super::table::{DecodeTable, InvalidCode};
use crate::bits::BitReader;
use crate::error::DeflateError;
use crate::symbols::{FIXED_DISTANCE_LENGTHS, FIXED_LITERAL_LENGTHS, LONGEST_MATCH, WINDOW};
use std::io::Read;

/// The approximate number of plain bytes that one call of [`Inflater::step`] decodes.
pub(crate) const STEP_BYTES: usize = 64 << 10;
/// The maximum number of blocks that one step begins. It bounds a step over blocks without plain
/// bytes.
const STEP_BLOCKS: usize = 1024;
/// The number of bits that the tables of literals and of distances decode in one step.
const LITERAL_BITS: u32 = 10;
const DISTANCE_BITS: u32 = 9;

/// The number of bytes of a match that are copied at once, unless the match overlaps with them.
pub(super) const COPIED_BYTES: usize = 16;

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
    pub(super) buffer: Vec<u8>,
    /// The index in `buffer` of the first plain byte of the last step.
    from: usize,
    /// The number of plain bytes before the last step.
    plain_before: u64,
    /// The number of tokens before and in the last step.
    pub(super) token_count: u64,
    position: InflatePosition,
    is_final: bool,
    pub(super) literals: DecodeTable,
    pub(super) distances: DecodeTable,
    /// The blocks that began in the last step.
    blocks: Vec<DeflateBlock>,
    /// The tokens of the last step, if they are recorded.
    pub(super) tokens: Vec<DecodedToken>,
    records_tokens: bool,
    /// The bits after the final block, up to a byte boundary.
    padding: u8,
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

impl Inflater {
    /// A decoder at the beginning of a stream.
    pub(crate) fn new() -> Self {
        Self {
            buffer: Vec::with_capacity(WINDOW + STEP_BYTES + LONGEST_MATCH + COPIED_BYTES),
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

    /// The value of the padding bits after the final block.
    pub(crate) fn padding(&self) -> u8 {
        self.padding
    }

    /// Decodes the next piece of the stream.
    pub(crate) fn step<R: Read>(&mut self, input: &mut BitReader<R>) -> Result<(), DeflateError> {
        self.plain_before += (self.buffer.len() - self.from) as u64;
        let unused = self.buffer.len().saturating_sub(WINDOW);
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

    pub(super) fn end_block<R: Read>(&mut self, input: &mut BitReader<R>) {
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
