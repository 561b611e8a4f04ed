//! Rebuilds one member of a stream.

use crate::bits::BitWriter;
use crate::encoder::Encoder;
use crate::error::DeflateError;
use crate::framing::{PlainChecksum, StreamFormat};
use crate::prediction::TokenReader;
use crate::recipe_format::{FlushRun, RebuildMethod, StreamMember};

/// The receiver of the compressed bytes.
pub(super) type Sink<'a> = dyn FnMut(&[u8]) -> Result<(), DeflateError> + 'a;

/// The writer of one member.
pub(super) struct MemberWriter {
    encoder: Option<Box<dyn Encoder>>,
    /// The remaining flushes. The next one is the last element.
    flushes: Vec<FlushRun>,
    /// The number of plain bytes since the last flush.
    since_flush: u64,
    /// The number of remaining plain bytes.
    left: u64,
    is_complete: bool,
    format: StreamFormat,
    checksum: PlainChecksum,
    trailer: Option<[u8; 8]>,
    padding: u8,
    out: BitWriter,
}

impl MemberWriter {
    /// Begins a member, whose header is already written.
    pub(super) fn new(
        member: &StreamMember,
        format: StreamFormat,
        tokens: &mut TokenReader,
    ) -> Self {
        let encoder = match member.method {
            RebuildMethod::Replay(spec) => Some(spec.start()),
            RebuildMethod::Predict(spec) => {
                tokens.begin(spec, member.plain_size);
                None
            }
        };
        Self {
            encoder,
            flushes: member.flushes.iter().rev().copied().collect(),
            since_flush: 0,
            left: member.plain_size,
            is_complete: false,
            format,
            checksum: PlainChecksum::new(format),
            trailer: member.trailer,
            padding: member.padding,
            out: BitWriter::default(),
        }
    }

    /// Whether all plain bytes were read and the deflate stream has ended.
    pub(super) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// The trailer after the deflate stream.
    pub(super) fn trailer(&mut self) -> &[u8] {
        let trailer = self.trailer.get_or_insert(self.checksum.trailer());
        &trailer[..self.format.trailer_bytes()]
    }

    /// The maximum number of plain bytes for one call of `write`: those up to the next flush or, if
    /// there is none, all remaining ones.
    pub(super) fn next_part(&self) -> u64 {
        let flush = self.flushes.last();
        flush.map_or(self.left, |run| run.distance - self.since_flush)
    }

    /// Reads plain bytes, at most `next_part`, and writes compressed bytes to `sink`.
    pub(super) fn write(
        &mut self,
        plain: &[u8],
        tokens: &mut TokenReader,
        deviations: &[u8],
        sink: &mut Sink<'_>,
    ) -> Result<(), DeflateError> {
        self.checksum.update(plain);
        self.left -= plain.len() as u64;
        self.since_flush += plain.len() as u64;
        let Some(encoder) = &mut self.encoder else {
            tokens.write(plain, deviations, &mut self.out, sink)?;
            if self.left == 0 {
                tokens.finish(self.padding, &mut self.out)?;
                self.is_complete = true;
            }
            return pass_on(&mut self.out, sink);
        };
        if !plain.is_empty() {
            encoder.write(plain, &mut self.out);
        }
        while let Some(run) = self.flushes.last_mut()
            && run.distance == self.since_flush
        {
            encoder.flush(&mut self.out);
            pass_on(&mut self.out, sink)?;
            self.since_flush = 0;
            run.count -= 1;
            if run.count == 0 {
                self.flushes.pop();
            }
        }
        if self.left == 0 {
            encoder.finish(&mut self.out);
            self.is_complete = true;
        }
        pass_on(&mut self.out, sink)
    }
}

/// Passes the finished bytes to `sink`.
fn pass_on(out: &mut BitWriter, sink: &mut Sink<'_>) -> Result<(), DeflateError> {
    sink(&out.bytes)?;
    out.bytes.clear();
    Ok(())
}
