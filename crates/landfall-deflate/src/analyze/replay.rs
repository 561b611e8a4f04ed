//! Compares the output of a known encoder with the stream.

use crate::bits::BitWriter;
use crate::encoder::{Encoder, EncoderSpec};

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
