//! Rebuilds streams from their plain bytes and the coded deviations.

use super::blocks::{BlockStart, PART_BYTES, PART_TOKENS, PartEnd};
use super::coder::DecoderState;
use super::lengths::TokenCounts;
use super::matcher::{LOOKAHEAD, MatchSearch};
use super::output::{OutputCodes, write_dynamic, write_padding, write_stored};
use super::spec::PredictionSpec;
use super::state::PredictionModel;
use crate::bits::BitWriter;
use crate::error::DeflateError;
use crate::inflate::DecodedToken;

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
    codes: Option<OutputCodes>,
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
                out.write(u32::from(self.is_final) | 1 << 1, 3);
                self.codes = Some(OutputCodes::fixed());
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
                let counts = TokenCounts::of_block(&self.tokens);
                let header = self.model.headers.code(&mut coder, &counts, None)?;
                coder.check()?;
                write_dynamic(&header, out);
                self.codes.insert(OutputCodes::dynamic(&header))
            }
        };
        codes.write_tokens(&self.tokens, out);
        self.tokens.clear();
        self.stage = ReaderStage::PartStart;
        if is_end {
            codes.write_end(out);
            self.end_block()?;
        }
        Ok(true)
    }
}
