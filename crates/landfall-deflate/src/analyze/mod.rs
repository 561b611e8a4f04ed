//! Takes a stream apart: finds its encoders, and writes the recipe.
//!
//! The beginning of each deflate stream is kept until its encoder is chosen: candidate encoders
//! compress its plain bytes, and an encoder is dropped as soon as its output differs. If no encoder
//! writes the beginning, the tokens are predicted; if the last encoder is dropped later in the
//! stream, the file is read again. In a file with several members, the encoders of earlier members
//! are tried first.

mod prefix;

use self::prefix::{EncoderCandidates, MatchesWanted, StreamPrefix};
use crate::bits::{BitReader, BitWriter};
use crate::encoder::{Encoder, EncoderSpec};
use crate::framing::{PlainChecksum, StreamFormat, read_trailing};
use crate::inflate::{InflatedPiece, Inflater};
use crate::prediction::{PredictionSpec, TokenWriter};
use crate::recipe_format::{FlushList, RebuildMethod, Recipe, RecipeBuilder, StreamMember};
use crate::{AnalysisLimits, DeflateError};
use std::collections::HashMap;
use std::io::{self, Read, Write};

/// The number of plain bytes after which only the most likely encoder continues.
const AMBIGUOUS_BYTES: u64 = 4 << 20;

/// Like [`AMBIGUOUS_BYTES`], for a member with the plan [`MemberPlan::TryAll`].
const MORE_AMBIGUOUS_BYTES: u64 = 16 << 20;

/// The number of encoders that continue after [`MORE_AMBIGUOUS_BYTES`].
const MAX_REPLAYS: usize = 2;

/// The maximum number of times that the file is read.
const MAX_PASSES: u32 = 4;

/// The maximum number of members that may have to be read again. It bounds the memory for their
/// plans.
const MAX_PLANS: usize = 256 << 10;

/// A recipe of up to this size is not compared with the size of the stream read so far.
const EXEMPT_BYTES: u64 = 64 << 10;

/// Takes a gzip, zlib or raw deflate stream apart and returns the recipe that rebuilds it from its
/// plain bytes, which [`PlainReader`](crate::PlainReader) reads.
///
/// `open` opens the stream at its beginning. It is called again, up to three times, if an encoder
/// reproduced the beginning of a member exactly, but not the rest.
///
/// # Errors
/// If the stream cannot be read or is not valid, or if the limits are exceeded. With
/// [`RecipeTooLarge`](DeflateError::RecipeTooLarge), the stream is valid as far as it was read, but
/// a recipe is not worth its size.
pub fn analyze<R: Read>(
    mut open: impl FnMut() -> io::Result<R>,
    limits: &AnalysisLimits,
) -> Result<Recipe, DeflateError> {
    let mut plans = MemberPlans::new();
    for number in 1..=MAX_PASSES {
        let mut pass = AnalysisPass::new(open()?, *limits, &mut plans)?;
        pass.is_last_pass = number == MAX_PASSES;
        pass.read_members()?;
        if !pass.is_repeated {
            return pass.finish();
        }
    }
    // unreachable, because the last pass never requests another one
    Err(DeflateError::RecipeTooLarge)
}

/// Returns a recipe of `stream` that predicts the tokens of each of its first 1,000 members.
#[cfg(test)]
pub(crate) fn predict(stream: &[u8], limits: &AnalysisLimits) -> Result<Recipe, DeflateError> {
    let mut plans = (0..1000)
        .map(|number| (number, MemberPlan::Predict))
        .collect();
    let mut pass = AnalysisPass::new(stream, *limits, &mut plans)?;
    pass.read_members()?;
    pass.finish()
}

/// Like [`analyze`], but assumes that an encoder wrote a whole deflate stream if it wrote the
/// beginning. This saves encoding the rest. If no encoder wrote the beginning, the tokens are
/// predicted. Returns `None` if an encoder wrote the beginning, but its output differs right after
/// the beginning. Writes the plain bytes to `plain`, so that the stream is decoded only once; after
/// an error, some of them are missing.
///
/// The caller must prove the recipe by rebuilding the stream, and call [`analyze`] if the result
/// differs.
///
/// # Errors
/// As [`analyze`].
pub fn assume<R: Read>(
    open: impl FnOnce() -> io::Result<R>,
    limits: &AnalysisLimits,
    plain: &mut dyn Write,
) -> Result<Option<Recipe>, DeflateError> {
    let mut plans = MemberPlans::new();
    let mut pass = AnalysisPass::new(open()?, *limits, &mut plans)?;
    pass.assumes_encoders = true;
    pass.plain = Some(plain);
    pass.read_members()?;
    if pass.is_repeated {
        return Ok(None);
    }
    pass.finish().map(Some)
}

/// The result of earlier passes for a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MemberPlan {
    /// The encoders that were tried did not write the whole member. All other encoders are tried,
    /// too.
    TryAll,
    /// No encoder wrote the whole member: its tokens are predicted.
    Predict,
}

/// The plans of members, by number. For a member without a plan, the encoders of earlier members
/// are tried first.
type MemberPlans = HashMap<u64, MemberPlan>;

/// The way in which the current deflate stream is described.
enum MemberStage {
    /// The beginning of the stream is being collected, to choose encoders by it.
    Prefix(Box<StreamPrefix>),
    /// The output of these encoders has equalled the stream so far.
    Replay(Vec<EncoderReplay>, ExpectedBytes),
    /// The encoder that wrote the beginning is assumed to have written the rest.
    Assumed(MemberEncoder),
    /// The tokens of the stream are predicted.
    Predict(PredictionSpec),
    /// No encoder is left, and this pass does not predict the tokens. The next pass tries all
    /// encoders or predicts the tokens.
    Lost,
}

/// An encoder that wrote the beginning of a stream exactly.
#[derive(Clone, Copy)]
struct MemberEncoder {
    spec: EncoderSpec,
    writes_empty_blocks: bool,
}

impl MemberEncoder {
    fn of(replay: &EncoderReplay) -> MemberEncoder {
        MemberEncoder {
            spec: replay.spec,
            writes_empty_blocks: replay.writes_empty_blocks(),
        }
    }
}

/// One pass over the file.
struct AnalysisPass<'a, R> {
    input: BitReader<R>,
    format: StreamFormat,
    limits: AnalysisLimits,
    plans: &'a mut MemberPlans,
    /// Whether the file will not be read again. If so, the last encoder must not be dropped late.
    is_last_pass: bool,
    /// Whether the encoder that wrote the beginning of a stream is assumed to have written all of
    /// it.
    assumes_encoders: bool,
    /// Gets all plain bytes.
    plain: Option<&'a mut dyn Write>,
    /// Whether all encoders were tried for the current member.
    were_all_tried: bool,
    inflater: Inflater,
    candidates: EncoderCandidates,
    tokens: TokenWriter,
    recipe: RecipeBuilder,
    plain_size: u64,
    /// Whether another pass is needed. If so, this pass only looks for other members that must be
    /// read again.
    is_repeated: bool,
}

impl<'a, R: Read> AnalysisPass<'a, R> {
    fn new(
        source: R,
        limits: AnalysisLimits,
        plans: &'a mut MemberPlans,
    ) -> Result<Self, DeflateError> {
        let mut input = BitReader::new(source);
        let format = StreamFormat::detect(&mut input)?;
        Ok(Self {
            input,
            format,
            limits,
            plans,
            is_last_pass: false,
            assumes_encoders: false,
            plain: None,
            were_all_tried: false,
            inflater: Inflater::new(),
            candidates: EncoderCandidates::default(),
            tokens: TokenWriter::new(),
            recipe: RecipeBuilder::new(format),
            plain_size: 0,
            is_repeated: false,
        })
    }

    fn read_members(&mut self) -> Result<(), DeflateError> {
        for number in 0.. {
            let plan = self.plans.get(&number).copied();
            if let Some(member) = self.read_member(plan)? {
                self.recipe.add(member);
            } else {
                let next = if self.were_all_tried {
                    MemberPlan::Predict
                } else {
                    MemberPlan::TryAll
                };
                self.plans.insert(number, next);
                if self.plans.len() > MAX_PLANS {
                    return Err(DeflateError::RecipeTooLarge);
                }
                self.is_repeated = true;
            }
            self.input.set_mark();
            if !self.format.has_next_member(&mut self.input)? {
                break;
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Recipe, DeflateError> {
        let trailing = read_trailing(&mut self.input)?;
        let compressed_size = self.input.offset();
        let deviations = self.tokens.finish();
        let recipe = self
            .recipe
            .finish(compressed_size, &trailing, &deviations)?;
        let size = recipe.as_bytes().len() as u64;
        if self.limits.is_recipe_too_large(size, compressed_size) {
            return Err(DeflateError::RecipeTooLarge);
        }
        Ok(recipe)
    }

    /// Reads one member. Returns `None` if the next pass has to read it again.
    fn read_member(
        &mut self,
        plan: Option<MemberPlan>,
    ) -> Result<Option<StreamMember>, DeflateError> {
        let mut header = Vec::new();
        self.format.read_header(&mut self.input, &mut header)?;
        self.inflater.restart();
        self.inflater.record_tokens(true);
        let mut checksum = PlainChecksum::new(self.format);
        let mut stage = MemberStage::Prefix(Box::default());
        let mut flushes = FlushList::default();
        let plain_before = self.plain_size;
        while !self.inflater.is_at_end() {
            self.input.set_mark();
            self.inflater.step(&mut self.input)?;
            let piece = self.inflater.piece();
            checksum.update(piece.plain);
            if let Some(plain) = &mut self.plain {
                plain.write_all(piece.plain)?;
            }
            self.plain_size += piece.plain.len() as u64;
            let positions = flush_positions(&piece);
            positions.iter().for_each(|position| flushes.add(*position));
            self.advance(&mut stage, &positions, &header, plan)?;
            self.check_sizes(&flushes)?;
        }
        let read = self.format.read_trailer(&mut self.input)?;
        let length = self.format.trailer_bytes();
        let is_wrong = read[..length] != checksum.trailer()[..length];
        let encoder = match &stage {
            MemberStage::Replay(replays, _) => Some(MemberEncoder::of(&replays[0])),
            MemberStage::Assumed(encoder) => Some(*encoder),
            MemberStage::Predict(_) | MemberStage::Prefix(_) | MemberStage::Lost => None,
        };
        let method = match (encoder, stage) {
            (Some(encoder), _) => RebuildMethod::Replay(encoder.spec),
            (None, MemberStage::Predict(spec)) => RebuildMethod::Predict(spec),
            (None, _) => return Ok(None),
        };
        self.candidates.note(encoder.map(|encoder| encoder.spec));
        let mut member = StreamMember {
            header,
            method,
            plain_size: self.plain_size - plain_before,
            flushes: Vec::new(),
            trailer: is_wrong.then_some(read),
            padding: 0,
        };
        match encoder {
            Some(encoder) if !encoder.writes_empty_blocks => member.flushes = flushes.runs,
            Some(_) => {}
            None => member.padding = self.inflater.padding,
        }
        Ok(Some(member))
    }

    /// Describes the last inflated piece of a deflate stream.
    fn advance(
        &mut self,
        stage: &mut MemberStage,
        flushes: &[u64],
        header: &[u8],
        plan: Option<MemberPlan>,
    ) -> Result<(), DeflateError> {
        let piece = self.inflater.piece();
        let compressed = self.input.since_mark();
        match stage {
            MemberStage::Prefix(prefix) => {
                prefix.extend(&piece, compressed, flushes);
                if prefix.is_complete() {
                    *stage = self.choose(std::mem::take(prefix), header, plan)?;
                    let records = matches!(stage, MemberStage::Predict(_));
                    self.inflater.record_tokens(records);
                }
            }
            MemberStage::Replay(replays, expected) => {
                expected.extend(compressed);
                let plain = PlainPiece {
                    offset: piece.plain_offset,
                    bytes: piece.plain,
                    flushes,
                    is_last: piece.is_last,
                };
                replays.retain_mut(|replay| replay.matches(&plain, expected));
                let (bytes, most) = match plan {
                    Some(MemberPlan::TryAll) => (MORE_AMBIGUOUS_BYTES, MAX_REPLAYS),
                    _ => (AMBIGUOUS_BYTES, 1),
                };
                if piece.plain_offset > bytes && replays.len() > most {
                    replays.truncate(most);
                    // One of the dropped encoders may write the whole stream. The next pass tries
                    // them all, unless this pass did.
                    self.were_all_tried = plan == Some(MemberPlan::TryAll);
                }
                expected.forget(replays);
                match replays.as_slice() {
                    [] => *stage = MemberStage::Lost,
                    [only] if self.assumes_encoders && !piece.is_last => {
                        *stage = MemberStage::Assumed(MemberEncoder::of(only));
                    }
                    _ => {}
                }
            }
            MemberStage::Predict(_) => self.tokens.write(&piece)?,
            MemberStage::Assumed(_) | MemberStage::Lost => {}
        }
        Ok(())
    }

    /// Chooses how a deflate stream is described.
    fn choose(
        &mut self,
        prefix: Box<StreamPrefix>,
        header: &[u8],
        plan: Option<MemberPlan>,
    ) -> Result<MemberStage, DeflateError> {
        // in the last pass, only an encoder whose output equals the whole stream is chosen
        let is_predicted =
            plan == Some(MemberPlan::Predict) || self.is_last_pass && !prefix.is_last;
        self.were_all_tried = true;
        if !is_predicted {
            let wanted = match plan {
                _ if self.assumes_encoders => MatchesWanted::First,
                Some(MemberPlan::TryAll) => MatchesWanted::All,
                _ => MatchesWanted::OfKnownEncoders,
            };
            let (replays, were_all_tried) = self.candidates.matching(&prefix, header, wanted);
            self.were_all_tried = were_all_tried;
            if !replays.is_empty() {
                let mut expected = prefix.expected;
                expected.forget(&replays);
                return Ok(MemberStage::Replay(replays, expected));
            }
        }
        if self.is_repeated {
            return Ok(MemberStage::Lost);
        }
        let piece = prefix.piece();
        let spec = self.tokens.begin(&piece)?;
        self.tokens.write(&piece)?;
        Ok(MemberStage::Predict(spec))
    }

    /// The size of the recipe so far, without the flushes of the current member.
    fn recipe_bytes(&self) -> u64 {
        self.recipe.size() + self.tokens.size()
    }

    fn check_sizes(&self, flushes: &FlushList) -> Result<(), DeflateError> {
        let limit = self.limits.plain_bytes;
        if self.plain_size > limit {
            return Err(DeflateError::PlainTooLarge { limit });
        }
        let flush_bytes = 2 * flushes.runs.len() as u64;
        let size = self.recipe_bytes() + flush_bytes;
        let read = self.input.offset();
        if size > EXEMPT_BYTES && self.limits.is_recipe_too_large(size, read) {
            return Err(DeflateError::RecipeTooLarge);
        }
        Ok(())
    }
}

/// The positions of flushes in a piece, in plain bytes from the beginning of its stream.
fn flush_positions(piece: &InflatedPiece<'_>) -> Vec<u64> {
    let flushes = piece.blocks.iter().filter(|block| block.is_flush());
    flushes.map(|block| block.plain_offset).collect()
}

/// The number of bytes of a stream that are read.
const SAMPLE_BYTES: u64 = 1 << 20;

/// The size in bytes of the recipe of one member that a known encoder wrote.
const SMALL_RECIPE: u64 = 40;

/// Estimates the size in bytes of the recipe that [`analyze`] returns for a stream of
/// `stream_bytes` bytes, in much less time: only the first MiB is analyzed. The estimate is too low
/// if an encoder wrote the first MiB exactly, but not the rest.
///
/// # Errors
/// Like [`analyze`], if the first MiB shows the error.
pub fn estimate_recipe_size<R: Read>(
    mut open: impl FnMut() -> io::Result<R>,
    stream_bytes: u64,
    limits: &AnalysisLimits,
) -> Result<u64, DeflateError> {
    if stream_bytes <= SAMPLE_BYTES {
        return Ok(analyze(open, limits)?.as_bytes().len() as u64);
    }
    let mut sample = open()?.take(SAMPLE_BYTES);
    let mut plans = MemberPlans::new();
    let mut pass = AnalysisPass::new(&mut sample, *limits, &mut plans)?;
    let result = pass.read_members();
    let sampled_recipe = pass.recipe_bytes();
    match result {
        // caused by the end of the sample, not by the stream
        Err(DeflateError::Stream { .. }) if sample.limit() == 0 => {}
        result => result?,
    }
    let scaled = u128::from(sampled_recipe) * u128::from(stream_bytes) / u128::from(SAMPLE_BYTES);
    let size = SMALL_RECIPE + u64::try_from(scaled).unwrap_or(u64::MAX);
    if limits.is_recipe_too_large(size, stream_bytes) {
        return Err(DeflateError::RecipeTooLarge);
    }
    Ok(size)
}

// Compares the output of a known encoder with the stream.

/// The maximum number of compressed bytes that an encoder may keep back. An encoder that holds back
/// more did not write this stream.
const LONGEST_DELAY: usize = 8 << 20;

/// The number of plain bytes that an encoder receives before its output is compared.
const COMPARED_BYTES: usize = 32 << 10;

/// The compressed bytes of a deflate stream that at least one encoder has not written yet.
#[derive(Debug, Default)]
pub(super) struct ExpectedBytes {
    bytes: Vec<u8>,
    /// The number of bytes of the deflate stream before `bytes`.
    before: u64,
}

impl ExpectedBytes {
    /// Adds the next bytes of the stream.
    pub(super) fn extend(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Removes the bytes that all of these encoders have written.
    pub(super) fn forget(&mut self, replays: &[EncoderReplay]) {
        let written = replays.iter().map(|replay| replay.written).min();
        let count = written.map_or(self.bytes.len(), |written| (written - self.before) as usize);
        self.bytes.drain(..count);
        self.before += count as u64;
    }

    /// The bytes after the first `written` of the stream.
    fn after(&self, written: u64) -> &[u8] {
        &self.bytes[(written - self.before) as usize..]
    }
}

/// The next plain bytes of a deflate stream.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlainPiece<'a> {
    /// The number of plain bytes before it.
    pub(super) offset: u64,
    pub(super) bytes: &'a [u8],
    /// The positions of flushes, in plain bytes from the beginning of the stream.
    pub(super) flushes: &'a [u64],
    /// Whether the stream ends after it.
    pub(super) is_last: bool,
}

/// An encoder that has written the beginning of a stream exactly.
pub(super) struct EncoderReplay {
    pub(super) spec: EncoderSpec,
    encoder: Box<dyn Encoder>,
    out: BitWriter,
    /// The number of compressed bytes that were equal.
    written: u64,
}

impl EncoderReplay {
    pub(super) fn new(spec: EncoderSpec) -> Self {
        Self {
            spec,
            encoder: spec.start(),
            out: BitWriter::default(),
            written: 0,
        }
    }

    /// Whether the encoder writes the flushes of a stream by itself.
    pub(super) fn writes_empty_blocks(&self) -> bool {
        self.encoder.writes_empty_blocks()
    }

    /// Encodes the next plain bytes. Returns whether the output is equal so far; after the last
    /// piece, whether it equals the whole stream.
    pub(super) fn matches(&mut self, piece: &PlainPiece<'_>, expected: &ExpectedBytes) -> bool {
        let mut from = 0;
        if !self.writes_empty_blocks() {
            for flush in piece.flushes {
                let to = (flush - piece.offset) as usize;
                if !self.write_matches(&piece.bytes[from..to], expected) {
                    return false;
                }
                from = to;
                self.encoder.flush(&mut self.out);
            }
        }
        if !self.write_matches(&piece.bytes[from..], expected) {
            return false;
        }
        if !piece.is_last {
            return expected.after(self.written).len() <= LONGEST_DELAY;
        }
        self.encoder.finish(&mut self.out);
        self.is_equal(expected)
            && self.out.bytes.is_empty()
            && expected.after(self.written).is_empty()
    }

    fn write_matches(&mut self, plain: &[u8], expected: &ExpectedBytes) -> bool {
        plain.chunks(COMPARED_BYTES).all(|chunk| {
            self.encoder.write(chunk, &mut self.out);
            self.is_equal(expected)
        }) && self.is_equal(expected)
    }

    /// Compares and removes the output of the encoder so far. The output may be a few bytes ahead
    /// of the stream, because the encoder ends a block together with the block's last plain byte.
    fn is_equal(&mut self, expected: &ExpectedBytes) -> bool {
        let after = expected.after(self.written);
        let count = after.len().min(self.out.bytes.len());
        if after[..count] != self.out.bytes[..count] {
            return false;
        }
        self.written += count as u64;
        self.out.bytes.drain(..count);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{GENEROUS, member, noise, runs};

    #[test]
    fn the_number_of_plans_is_limited() {
        let plain = noise(1_500_000, 4);
        let first = runs(&plain[..1_000_000], 50, &[1_000_000]);
        let head = &first[..first.len() - 2];
        // the blocks after `head` have another size, so the next pass has to predict the tokens
        let stream = member(&[head, &runs(&plain[1_000_000..], 1, &[])].concat(), &plain);
        for (others, is_accepted) in [(MAX_PLANS - 1, true), (MAX_PLANS, false)] {
            let mut plans = (1..=others as u64)
                .map(|number| (number, MemberPlan::TryAll))
                .collect();
            let mut pass = AnalysisPass::new(&stream[..], GENEROUS, &mut plans).unwrap();
            let read = pass.read_members();
            assert_eq!(read.is_ok(), is_accepted, "{read:?}");
        }
    }
}
