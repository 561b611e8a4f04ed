//! Codes the tokens of streams.

use super::coder::BitEncoder;
use super::model::{BlockStart, PART_BYTES, PART_TOKENS, PartEnd, block_counts};
use super::{LOOKAHEAD, MatchSearch, PredictionModel, PredictionSpec};
use crate::DeflateError;
use crate::inflate::{BlockKind, DecodedToken, DeflateBlock, InflatedPiece};
use std::collections::VecDeque;

/// The smallest stream for which parameters are chosen again.
const CHOSEN_BYTES: usize = 32 << 10;
/// The approximate number of plain bytes that are coded with each set of parameters to compare
/// them.
const COMPARED_BYTES: u64 = 96 << 10;
/// The maximum number of blocks that wait for plain bytes. It bounds the memory for blocks without
/// plain bytes: no known encoder writes that many of them.
const MAX_WAITING_BLOCKS: usize = 32 << 10;

/// The state of the writer within its stream.
#[derive(Debug)]
enum WriterStage {
    /// Before the header of a block.
    Header,
    /// In a stored block with `left` more bytes.
    Stored { left: usize },
    /// Before a part of a block. `tokens` and `plain` are the numbers of tokens and plain bytes of
    /// the part that were received.
    PartStart { tokens: usize, plain: usize },
    /// In a part of `count` tokens, of which `coded` are coded. `is_end` says whether the part is
    /// the last of its block.
    Part {
        coded: usize,
        count: usize,
        is_end: bool,
    },
}

/// Codes the tokens of the streams of a file.
#[derive(Debug)]
pub(crate) struct TokenWriter {
    coder: BitEncoder,
    model: PredictionModel,
    spec: Option<PredictionSpec>,
    matcher: Option<MatchSearch>,
    stage: WriterStage,
    /// The block that the stage is in.
    block: Option<DeflateBlock>,
    /// Whether the current part is the first of its block.
    is_first_part: bool,
    /// The blocks that have not begun yet.
    blocks: VecDeque<DeflateBlock>,
    /// The tokens of the current part and those after it.
    tokens: Vec<DecodedToken>,
    /// The number of tokens of the stream before `tokens`.
    tokens_before: u64,
    /// Whether the stream has no tokens after `tokens`.
    is_last: bool,
}

impl TokenWriter {
    pub(crate) fn new() -> Self {
        Self {
            coder: BitEncoder::new(),
            model: PredictionModel::new(),
            spec: None,
            matcher: None,
            stage: WriterStage::Header,
            block: None,
            is_first_part: true,
            blocks: VecDeque::new(),
            tokens: Vec::new(),
            tokens_before: 0,
            is_last: false,
        }
    }

    /// The number of bytes of coded deviations so far.
    pub(crate) fn size(&self) -> u64 {
        self.coder.size() as u64
    }

    /// Ends the code and returns its bytes.
    pub(crate) fn finish(self) -> Vec<u8> {
        self.coder.finish()
    }

    /// Begins a stream and returns the parameters that suit its beginning, `prefix`. The caller
    /// passes `prefix` to `write` afterwards.
    pub(crate) fn begin(
        &mut self,
        prefix: &InflatedPiece<'_>,
    ) -> Result<PredictionSpec, DeflateError> {
        let spec = match self.spec {
            Some(spec) if prefix.plain.len() < CHOSEN_BYTES => spec,
            _ => choose(prefix)?,
        };
        self.begin_with(spec);
        Ok(spec)
    }

    fn begin_with(&mut self, spec: PredictionSpec) {
        self.spec = Some(spec);
        match &mut self.matcher {
            Some(matcher) => matcher.restart(spec),
            None => self.matcher = Some(MatchSearch::new(spec)),
        }
        self.model.tokens.interrupt();
        self.stage = WriterStage::Header;
        self.blocks.clear();
        self.tokens.clear();
        self.tokens_before = 0;
        self.is_last = false;
    }

    /// Codes the next piece of the stream. Fails with [`DeflateError::RecipeTooLarge`] if too many
    /// blocks follow a token that cannot be predicted yet.
    pub(crate) fn write(&mut self, piece: &InflatedPiece<'_>) -> Result<(), DeflateError> {
        if let Some(matcher) = &mut self.matcher {
            matcher.extend(piece.plain);
        }
        self.blocks.extend(piece.blocks.iter().cloned());
        self.tokens.extend_from_slice(piece.tokens);
        self.is_last |= piece.is_last;
        while self.advance()? {}
        if self.blocks.len() > MAX_WAITING_BLOCKS {
            return Err(DeflateError::RecipeTooLarge);
        }
        Ok(())
    }

    /// Takes one step. Returns whether another step is possible without more plain bytes.
    fn advance(&mut self) -> Result<bool, DeflateError> {
        match self.stage {
            WriterStage::Header => Ok(self.begin_block()),
            WriterStage::Stored { left } => Ok(self.skip_stored(left)),
            WriterStage::PartStart { tokens, plain } => Ok(self.begin_part(tokens, plain)),
            WriterStage::Part {
                coded,
                count,
                is_end,
            } => {
                let coded = self.code_tokens(coded, count)?;
                self.stage = WriterStage::Part {
                    coded,
                    count,
                    is_end,
                };
                if coded == count {
                    self.end_part(count, is_end)?;
                }
                Ok(coded == count)
            }
        }
    }

    fn begin_block(&mut self) -> bool {
        let Some(block) = self.blocks.pop_front() else {
            return false;
        };
        let start = BlockStart::of(&block.kind);
        let blocks = &mut self.model.blocks;
        blocks.code_start(&mut self.coder, start, block.is_final);
        self.stage = match start {
            BlockStart::Stored { length, .. } => WriterStage::Stored {
                left: usize::from(length),
            },
            BlockStart::Fixed | BlockStart::Dynamic => WriterStage::PartStart {
                tokens: 0,
                plain: 0,
            },
        };
        self.block = Some(block);
        self.is_first_part = true;
        true
    }

    fn skip_stored(&mut self, left: usize) -> bool {
        let Some(matcher) = &mut self.matcher else {
            return false;
        };
        let count = left.min(matcher.ahead().len());
        matcher.skip(count);
        self.model.tokens.interrupt();
        self.stage = WriterStage::Stored { left: left - count };
        if left == count {
            self.stage = WriterStage::Header;
        }
        left == count
    }

    fn begin_part(&mut self, mut tokens: usize, mut plain: usize) -> bool {
        // the number of tokens up to the end of the block, if it is known
        let end = match self.blocks.front() {
            Some(next) => Some((next.token_offset - self.tokens_before) as usize),
            None => self.is_last.then_some(self.tokens.len()),
        };
        let seen = end.unwrap_or(self.tokens.len());
        while tokens < seen && tokens < PART_TOKENS && plain < PART_BYTES {
            plain += self.tokens[tokens].length();
            tokens += 1;
        }
        let part_end = if tokens == PART_TOKENS || plain >= PART_BYTES {
            PartEnd::Limit
        } else if end == Some(tokens) {
            PartEnd::Tokens(tokens)
        } else {
            self.stage = WriterStage::PartStart { tokens, plain };
            return false;
        };
        if self.block.as_ref().is_some_and(|block| !block.is_final) {
            self.model.blocks.code_end(&mut self.coder, part_end);
        }
        self.stage = WriterStage::Part {
            coded: 0,
            count: tokens,
            is_end: part_end != PartEnd::Limit,
        };
        true
    }

    /// Codes tokens of the current part as long as enough plain bytes follow. The first `coded` are
    /// coded already. Returns the number of coded tokens of the part.
    fn code_tokens(&mut self, coded: usize, count: usize) -> Result<usize, DeflateError> {
        let Some(matcher) = &mut self.matcher else {
            return Ok(coded);
        };
        for at in coded..count {
            if !self.is_last && matcher.ahead().len() < LOOKAHEAD {
                return Ok(at);
            }
            let token = self.tokens[at];
            self.model.tokens.code(&mut self.coder, matcher, token)?;
            matcher.advance(token.length());
        }
        Ok(count)
    }

    fn end_part(&mut self, count: usize, is_end: bool) -> Result<(), DeflateError> {
        if let Some(DeflateBlock {
            kind: BlockKind::Dynamic(header),
            ..
        }) = &self.block
            && self.is_first_part
        {
            let counts = block_counts(&self.tokens[..count]);
            let headers = &mut self.model.headers;
            headers.code(&mut self.coder, &counts, Some(header))?;
        }
        self.is_first_part = false;
        self.tokens.drain(..count);
        self.tokens_before += count as u64;
        self.stage = if is_end {
            WriterStage::Header
        } else {
            WriterStage::PartStart {
                tokens: 0,
                plain: 0,
            }
        };
        Ok(())
    }
}

/// Chooses the parameters that code the beginning of a stream in the fewest bytes. Faster ones win
/// if they are nearly as good.
fn choose(prefix: &InflatedPiece<'_>) -> Result<PredictionSpec, DeflateError> {
    let beginning = cut(prefix);
    let mut best: Option<(u64, PredictionSpec)> = None;
    for candidate in PredictionSpec::CANDIDATES {
        let spec = candidate.for_tokens(prefix.tokens);
        let mut writer = TokenWriter::new();
        writer.begin_with(spec);
        writer.write(&beginning)?;
        let size = writer.size();
        // slower parameters have to be better by a twentieth
        if best.is_none_or(|(smallest, _)| size + size / 20 < smallest) {
            best = Some((size, spec));
        }
    }
    Ok(best.map_or(PredictionSpec::CANDIDATES[0], |(_, spec)| spec))
}

/// The first blocks of a piece, on which parameters are compared.
fn cut<'a>(piece: &InflatedPiece<'a>) -> InflatedPiece<'a> {
    let is_after = |block: &DeflateBlock| block.plain_offset >= COMPARED_BYTES;
    let Some(count) = piece.blocks.iter().position(is_after) else {
        return *piece;
    };
    let end = &piece.blocks[count];
    InflatedPiece {
        plain_offset: piece.plain_offset,
        plain: &piece.plain[..end.plain_offset as usize],
        blocks: &piece.blocks[..count],
        tokens: &piece.tokens[..end.token_offset as usize],
        is_last: true,
    }
}
