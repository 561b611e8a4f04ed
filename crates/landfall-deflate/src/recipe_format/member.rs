//! The description of one member of a stream, and its encoding.

use super::{RecipeCursor, put_bytes, put_number};
use crate::DeflateError;
use crate::encoder::EncoderSpec;
use crate::framing::{LONGEST_HEADER, StreamFormat};
use crate::prediction::PredictionSpec;

/// The flags of a member. Each says that a field follows the flags.
const HEADER: u8 = 0x01;
const METHOD: u8 = 0x02;
const FLUSHES: u8 = 0x04;
const TRAILER: u8 = 0x08;
const PADDING: u8 = 0x10;
const REPEATED: u8 = 0x20;
const RESERVED: u8 = 0xc0;

/// The longest description of a method, in bytes.
const LONGEST_METHOD: usize = 32;
/// The first byte of a method that predicts tokens. Other values are families of encoders.
const PREDICTION: u8 = 0;
/// The minimum number of bytes that a flush writes.
const FLUSH_BYTES: u64 = 4;

/// The method by which a deflate stream is rebuilt from its plain bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum RebuildMethod {
    /// An encoder that writes exactly the same stream.
    Replay(EncoderSpec),
    /// Tokens relative to a prediction.
    Predict(PredictionSpec),
}

impl RebuildMethod {
    fn to_bytes(self) -> Vec<u8> {
        match self {
            Self::Replay(spec) => spec.to_bytes(),
            Self::Predict(spec) => [&[PREDICTION][..], &spec.to_bytes()].concat(),
        }
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        match bytes.split_first()? {
            (&PREDICTION, rest) => PredictionSpec::from_bytes(rest).map(Self::Predict),
            _ => EncoderSpec::from_bytes(bytes).map(Self::Replay),
        }
    }
}

/// A run of flushes at equal distances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FlushRun {
    /// The number of plain bytes between each flush and the previous flush or the beginning of the
    /// member.
    pub(crate) distance: u64,
    pub(crate) count: u64,
}

/// Collects the flushes of a deflate stream.
#[derive(Debug, Default)]
pub(crate) struct FlushList {
    pub(crate) runs: Vec<FlushRun>,
    last: u64,
}

impl FlushList {
    /// Adds a flush after `position` plain bytes.
    pub(crate) fn add(&mut self, position: u64) {
        let distance = position - self.last;
        self.last = position;
        match self.runs.last_mut() {
            Some(run) if run.distance == distance => run.count += 1,
            _ => self.runs.push(FlushRun { distance, count: 1 }),
        }
    }
}

/// The description of one member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StreamMember {
    /// The header before the deflate stream.
    pub(crate) header: Vec<u8>,
    /// The method by which the deflate stream is rebuilt.
    pub(crate) method: RebuildMethod,
    /// The number of plain bytes.
    pub(crate) plain_size: u64,
    /// The flushes of a replayed encoder.
    pub(crate) flushes: Vec<FlushRun>,
    /// The trailer, if it differs from the one that is computed from the plain bytes.
    pub(crate) trailer: Option<[u8; 8]>,
    /// The value of the padding bits after a predicted deflate stream.
    pub(crate) padding: u8,
}

impl StreamMember {
    /// The smallest number of compressed bytes that the member can have.
    fn smallest_size(&self, format: StreamFormat) -> Option<u64> {
        let flushes = self
            .flushes
            .iter()
            .try_fold(0_u64, |sum, run| sum.checked_add(run.count))?;
        let fixed = self.header.len() + 2 + format.trailer_bytes();
        flushes.checked_mul(FLUSH_BYTES)?.checked_add(fixed as u64)
    }

    /// Whether all flushes are inside of the member.
    fn flushes_are_inside(&self) -> bool {
        let end = self.flushes.iter().try_fold(0_u64, |end, run| {
            end.checked_add(run.distance.checked_mul(run.count)?)
        });
        end.is_some_and(|end| end <= self.plain_size)
    }

    /// Appends the encoding of `1 + repeats` members like this one. `before` is the previous
    /// member.
    pub(super) fn write(
        &self,
        before: Option<&Self>,
        repeats: u64,
        format: StreamFormat,
        to: &mut Vec<u8>,
    ) {
        let header_before = before.map_or(&[][..], |before| &before.header);
        let has_header = self.header != header_before;
        let has_method = before.is_none_or(|before| before.method != self.method);
        let mut flags = 0;
        for (has, flag) in [
            (has_header, HEADER),
            (has_method, METHOD),
            (!self.flushes.is_empty(), FLUSHES),
            (self.trailer.is_some(), TRAILER),
            (self.padding != 0, PADDING),
            (repeats > 0, REPEATED),
        ] {
            flags |= if has { flag } else { 0 };
        }
        to.push(flags);
        if has_header {
            let pairs = self.header.iter().zip(header_before);
            let shared = pairs.take_while(|(new, old)| new == old).count();
            put_number(shared as u64, to);
            put_bytes(&self.header[shared..], to);
        }
        if has_method {
            put_bytes(&self.method.to_bytes(), to);
        }
        put_number(self.plain_size, to);
        if !self.flushes.is_empty() {
            put_number(self.flushes.len() as u64, to);
            for run in &self.flushes {
                put_number(run.distance, to);
                put_number(run.count, to);
            }
        }
        if let Some(trailer) = &self.trailer {
            to.extend_from_slice(&trailer[..format.trailer_bytes()]);
        }
        if self.padding != 0 {
            to.push(self.padding);
        }
        if repeats > 0 {
            put_number(repeats, to);
        }
    }
}

/// Reads the members of a recipe, one after the other.
#[derive(Debug)]
pub(crate) struct MemberReader {
    cursor: RecipeCursor,
    format: StreamFormat,
    /// The last member that was read.
    member: Option<StreamMember>,
    repeats: u64,
}

impl MemberReader {
    pub(super) fn new(cursor: RecipeCursor, format: StreamFormat) -> Self {
        Self {
            cursor,
            format,
            member: None,
            repeats: 0,
        }
    }

    /// Reads the next member from the bytes of the recipe, and how many equal ones follow.
    pub(super) fn next_run(
        &mut self,
        bytes: &[u8],
    ) -> Result<Option<(&StreamMember, u64)>, DeflateError> {
        if self.cursor.is_at_end() {
            return Ok(None);
        }
        let flags = self.cursor.byte(bytes)?;
        if flags & RESERVED != 0 {
            return Err(DeflateError::Recipe("a member has unknown flags"));
        }
        let before = self.member.take();
        let (mut header, mut method) = before.map_or((Vec::new(), None), |before| {
            (before.header, Some(before.method))
        });
        if flags & HEADER != 0 {
            let shared = self.cursor.number(bytes)?;
            if shared > header.len() as u64 {
                return Err(DeflateError::Recipe(
                    "a header shares more bytes than the previous header has",
                ));
            }
            header.truncate(shared as usize);
            let rest = self.cursor.bytes(bytes, LONGEST_HEADER - header.len())?;
            header.extend_from_slice(rest);
        }
        if flags & METHOD != 0 {
            method = RebuildMethod::from_bytes(self.cursor.bytes(bytes, LONGEST_METHOD)?);
        }
        let mut member = StreamMember {
            header,
            method: method.ok_or(DeflateError::Recipe("an encoder is unknown"))?,
            plain_size: self.cursor.number(bytes)?,
            flushes: Vec::new(),
            trailer: None,
            padding: 0,
        };
        if flags & FLUSHES != 0 {
            // more runs than remaining bytes are an error: each run takes at least two bytes
            let runs = self.cursor.length(bytes, usize::MAX)?;
            for _ in 0..runs {
                let distance = self.cursor.number(bytes)?;
                let count = self.cursor.number(bytes)?;
                if count == 0 {
                    return Err(DeflateError::Recipe("a run of flushes is empty"));
                }
                member.flushes.push(FlushRun { distance, count });
            }
            if !member.flushes_are_inside() {
                return Err(DeflateError::Recipe("a flush is outside of its member"));
            }
        }
        if flags & TRAILER != 0 {
            let count = self.format.trailer_bytes();
            let mut trailer = [0; 8];
            trailer[..count].copy_from_slice(self.cursor.take(bytes, count)?);
            member.trailer = Some(trailer);
        }
        if flags & PADDING != 0 {
            member.padding = self.cursor.byte(bytes)?;
        }
        if matches!(member.method, RebuildMethod::Replay(_)) && member.padding != 0
            || matches!(member.method, RebuildMethod::Predict(_)) && !member.flushes.is_empty()
        {
            return Err(DeflateError::Recipe(
                "a member has a field of another method",
            ));
        }
        self.repeats = 0;
        if flags & REPEATED != 0 {
            self.repeats = self.cursor.number(bytes)?;
        }
        Ok(Some((self.member.insert(member), self.repeats)))
    }

    /// The next member. Equal members are returned one by one.
    pub(crate) fn next_member(
        &mut self,
        bytes: &[u8],
    ) -> Result<Option<&StreamMember>, DeflateError> {
        if self.repeats > 0 {
            self.repeats -= 1;
            return Ok(self.member.as_ref());
        }
        Ok(self.next_run(bytes)?.map(|(member, _)| member))
    }
}

/// The sizes of all members that were read so far.
#[derive(Debug, Default)]
pub(super) struct MemberTotals {
    pub(super) members: u64,
    pub(super) plain: u64,
    /// The smallest number of compressed bytes that they can have.
    pub(super) smallest: u64,
}

impl MemberTotals {
    /// Adds `1 + repeats` members; `None` if a sum is too large for any recipe.
    pub(super) fn add(
        &mut self,
        member: &StreamMember,
        repeats: u64,
        format: StreamFormat,
    ) -> Option<()> {
        let members = repeats.checked_add(1)?;
        let plain = member.plain_size.checked_mul(members)?;
        let smallest = member.smallest_size(format)?.checked_mul(members)?;
        self.members = self.members.checked_add(members)?;
        self.plain = self.plain.checked_add(plain)?;
        self.smallest = self.smallest.checked_add(smallest)?;
        Some(())
    }
}
