//! Rebuilds streams from their plain bytes and the coded deviations.

use super::coder::DecoderState;
use super::model::{BlockStart, PART_BYTES, PART_TOKENS, PartEnd, block_counts};
use super::{LOOKAHEAD, MatchSearch, PredictionModel, PredictionSpec};
use crate::DeflateError;
use crate::bits::BitWriter;
use crate::encoder::block::{BlockCodes, write_fixed_header};
use crate::encoder::huffman::Code;
use crate::inflate::{DecodedToken, DynamicBlockHeader, run_shape};
use crate::symbols::{
    DISTANCES, FIRST_LENGTH_SYMBOL, LENGTH_CODE_ORDER, LENGTH_CODE_SYMBOLS, LENGTHS, MAX_LENGTH,
    distance_symbol, length_index,
};

/// The state of the reader within its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReaderStage {
    /// Before the header of a block.
    Header,
    /// In a stored block with `left` more bytes.
    Stored { left: usize },
    /// Before a part of a block.
    PartStart,
    /// In a part that ends at `end`; in the final block, it may also end with the stream.
    Part { end: PartEnd },
    /// After the final block.
    End,
}

/// Rebuilds the streams of a file.
#[derive(Debug)]
pub(crate) struct TokenReader {
    coder: DecoderState,
    model: PredictionModel,
    matcher: Option<MatchSearch>,
    stage: ReaderStage,
    /// The number of plain bytes from the current position to the end of the stream.
    left: u64,
    start: BlockStart,
    is_final: bool,
    /// The codes of the block, once they are known.
    codes: Option<BlockCodes>,
    /// The tokens of the current part, and the number of their plain bytes.
    tokens: Vec<DecodedToken>,
    part_bytes: usize,
}

impl TokenReader {
    pub(crate) fn new() -> Self {
        Self {
            coder: DecoderState::new(),
            model: PredictionModel::new(),
            matcher: None,
            stage: ReaderStage::End,
            left: 0,
            start: BlockStart::Fixed,
            is_final: false,
            codes: None,
            tokens: Vec::new(),
            part_bytes: 0,
        }
    }

    /// Whether exactly these deviations were decoded.
    pub(crate) fn is_at_end(&self, deviations: &[u8]) -> bool {
        self.coder.is_at_end(deviations)
    }

    /// Begins a stream of `plain_size` plain bytes.
    pub(crate) fn begin(&mut self, spec: PredictionSpec, plain_size: u64) {
        match &mut self.matcher {
            Some(matcher) => matcher.restart(spec),
            None => self.matcher = Some(MatchSearch::new(spec)),
        }
        self.model.tokens.interrupt();
        self.stage = ReaderStage::Header;
        self.left = plain_size;
    }

    /// Reads the next plain bytes and writes the resulting compressed bytes to `out`. After each
    /// step except the last, the content of `out` is moved to `sink`. `deviations` must be the same
    /// in each call.
    pub(crate) fn write(
        &mut self,
        plain: &[u8],
        deviations: &[u8],
        out: &mut BitWriter,
        sink: &mut dyn FnMut(&[u8]) -> Result<(), DeflateError>,
    ) -> Result<(), DeflateError> {
        let Some(mut matcher) = self.matcher.take() else {
            return Ok(());
        };
        matcher.extend(plain);
        while self.advance(&mut matcher, deviations, out)? {
            sink(&out.bytes)?;
            out.bytes.clear();
        }
        self.matcher = Some(matcher);
        Ok(())
    }

    /// Ends the stream with these padding bits, after all plain bytes were read.
    pub(crate) fn finish(&mut self, padding: u8, out: &mut BitWriter) -> Result<(), DeflateError> {
        if self.stage != ReaderStage::End {
            return Err(DeflateError::Recipe("its deviations end early"));
        }
        write_padding(padding, out);
        Ok(())
    }

    /// Takes one step. Returns whether another step is possible without more plain bytes.
    fn advance(
        &mut self,
        matcher: &mut MatchSearch,
        deviations: &[u8],
        out: &mut BitWriter,
    ) -> Result<bool, DeflateError> {
        match self.stage {
            ReaderStage::Header => {
                let mut coder = self.coder.decoder(deviations);
                let blocks = &mut self.model.blocks;
                (self.start, self.is_final) = blocks.code_start(&mut coder, self.start, false);
                coder.check()?;
                self.begin_block(out)?;
                Ok(true)
            }
            ReaderStage::Stored { left } => {
                let count = left.min(matcher.ahead().len());
                out.write_bytes(&matcher.ahead()[..count]);
                matcher.skip(count);
                self.left -= count as u64;
                self.model.tokens.interrupt();
                self.stage = ReaderStage::Stored { left: left - count };
                if left == count {
                    self.end_block()?;
                }
                Ok(left == count)
            }
            ReaderStage::PartStart => {
                let mut end = PartEnd::Limit;
                if !self.is_final {
                    let mut coder = self.coder.decoder(deviations);
                    end = self.model.blocks.code_end(&mut coder, end);
                    coder.check()?;
                }
                self.part_bytes = 0;
                self.stage = ReaderStage::Part { end };
                Ok(true)
            }
            ReaderStage::Part { end } => self.decode_tokens(end, matcher, deviations, out),
            ReaderStage::End if matcher.ahead().is_empty() => Ok(false),
            ReaderStage::End => Err(DeflateError::Recipe("its deviations end early")),
        }
    }

    fn begin_block(&mut self, out: &mut BitWriter) -> Result<(), DeflateError> {
        self.stage = ReaderStage::PartStart;
        self.codes = None;
        match self.start {
            BlockStart::Stored { length, padding } => {
                if u64::from(length) > self.left {
                    return Err(DeflateError::Recipe("a stored block is too long"));
                }
                write_stored(self.is_final, length, padding, out);
                self.stage = ReaderStage::Stored {
                    left: usize::from(length),
                };
            }
            BlockStart::Fixed => {
                write_fixed_header(self.is_final, out);
                self.codes = Some(BlockCodes::fixed());
            }
            BlockStart::Dynamic => out.write(u32::from(self.is_final) | 2 << 1, 3),
        }
        Ok(())
    }

    fn end_block(&mut self) -> Result<(), DeflateError> {
        self.stage = ReaderStage::Header;
        if self.is_final {
            self.stage = ReaderStage::End;
            if self.left > 0 {
                return Err(DeflateError::Recipe("the final block is too short"));
            }
        }
        Ok(())
    }

    /// Decodes tokens of the current part as long as enough plain bytes follow. Returns whether the
    /// part has ended.
    fn decode_tokens(
        &mut self,
        end: PartEnd,
        matcher: &mut MatchSearch,
        deviations: &[u8],
        out: &mut BitWriter,
    ) -> Result<bool, DeflateError> {
        let mut coder = self.coder.decoder(deviations);
        let is_end = loop {
            match end {
                PartEnd::Tokens(count) if self.tokens.len() == count => break true,
                PartEnd::Tokens(_) => {}
                PartEnd::Limit
                    if self.tokens.len() == PART_TOKENS || self.part_bytes >= PART_BYTES =>
                {
                    break false;
                }
                PartEnd::Limit if self.is_final && self.left == 0 => break true,
                PartEnd::Limit => {}
            }
            if self.left == 0 {
                return Err(DeflateError::Recipe("a block has too many tokens"));
            }
            let ahead = matcher.ahead().len();
            if ahead < LOOKAHEAD && ahead as u64 != self.left {
                return Ok(false);
            }
            // a decoder ignores the token
            let token = self
                .model
                .tokens
                .code(&mut coder, matcher, DecodedToken::literal(0))?;
            coder.check()?;
            matcher.advance(token.length());
            self.left -= token.length() as u64;
            self.part_bytes += token.length();
            self.tokens.push(token);
        };
        let codes = match &mut self.codes {
            Some(codes) => codes,
            None => {
                let counts = block_counts(&self.tokens);
                let header = self.model.headers.code(&mut coder, &counts, None)?;
                coder.check()?;
                write_dynamic(&header, out);
                self.codes.insert(dynamic_codes(&header))
            }
        };
        write_tokens(codes, &self.tokens, out);
        self.tokens.clear();
        self.stage = ReaderStage::PartStart;
        if is_end {
            codes.write_end(out);
            self.end_block()?;
        }
        Ok(true)
    }
}

// Writes blocks from tokens and headers.

/// The codes of a dynamic block.
fn dynamic_codes(header: &DynamicBlockHeader) -> BlockCodes {
    let mut codes = BlockCodes::EMPTY;
    codes.literals.set_lengths(&header.literals);
    codes.distances.set_lengths(&header.distances);
    codes
}

/// Writes tokens one by one. No encoder writes the long form of the longest match.
fn write_tokens(codes: &BlockCodes, tokens: &[DecodedToken], out: &mut BitWriter) {
    for token in tokens {
        let Some((length, distance)) = token.as_match() else {
            codes.literals.write(usize::from(token.byte()), out);
            continue;
        };
        let mut index = length_index(length);
        if token.is_long_form() {
            index = length_index(MAX_LENGTH - 1);
        }
        codes.literals.write(FIRST_LENGTH_SYMBOL + index, out);
        let range = LENGTHS[index];
        let extra = length - usize::from(range.base);
        out.write(extra as u32, u32::from(range.extra));
        let symbol = distance_symbol(distance);
        codes.distances.write(symbol, out);
        let range = DISTANCES[symbol];
        let extra = distance - usize::from(range.base);
        out.write(extra as u32, u32::from(range.extra));
    }
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
    let mut code: Code<LENGTH_CODE_SYMBOLS> = Code::EMPTY;
    code.set_lengths(&header.run_lengths);
    for &(symbol, extra) in &header.runs {
        code.write(usize::from(symbol), out);
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
fn write_padding(padding: u8, out: &mut BitWriter) {
    let used = out.bits_past_byte();
    if used > 0 {
        let free = 8 - used;
        out.write(u32::from(padding) & ((1 << free) - 1), free);
    }
    out.align();
}
