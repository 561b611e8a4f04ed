//! Rebuilds a stream from its plain bytes and its recipe.

use crate::DeflateError;
use crate::bits::{BitReader, BitWriter};
use crate::encoder::Encoder;
use crate::framing::{PlainChecksum, StreamFormat, read_trailing};
use crate::inflate::Inflater;
use crate::prediction::TokenReader;
use crate::recipe_format::{FlushRun, MemberReader, RebuildMethod, Recipe, StreamMember};
use std::io::{self, Read, Write};

/// The maximum number of plain bytes that are encoded before the output is written to the sink.
const PART_BYTES: usize = 64 << 10;

/// Rebuilds a compressed stream: takes the plain bytes that [`PlainReader`](crate::PlainReader)
/// returned, in calls of any length, and writes the stream to `W`.
///
/// Never writes more bytes than [`Recipe::compressed_size`]. A recipe that does not belong to the
/// plain bytes leads to an error or to other bytes: compare the digest of the output.
pub struct Rebuilder<W> {
    recipe: Recipe,
    members: MemberReader,
    member: Option<MemberWriter>,
    tokens: TokenReader,
    output: BoundedSink<W>,
}

/// The sink, and the number of bytes written to it.
struct BoundedSink<W> {
    sink: W,
    written: u64,
    limit: u64,
}

impl<W: Write> BoundedSink<W> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), DeflateError> {
        if bytes.len() as u64 > self.limit - self.written {
            return Err(DeflateError::Plain("the stream becomes too long"));
        }
        self.sink.write_all(bytes)?;
        self.written += bytes.len() as u64;
        Ok(())
    }
}

impl<W: Write> Rebuilder<W> {
    /// Begins to rebuild a stream.
    pub fn new(recipe: Recipe, sink: W) -> Self {
        Self {
            members: recipe.member_reader(),
            member: None,
            tokens: TokenReader::new(),
            output: BoundedSink {
                sink,
                written: 0,
                limit: recipe.compressed_size(),
            },
            recipe,
        }
    }

    /// Processes the next plain bytes.
    ///
    /// # Errors
    /// If the sink fails, and [`DeflateError::Plain`] or [`DeflateError::Recipe`] if plain bytes
    /// and recipe do not belong together.
    pub fn write(&mut self, mut plain: &[u8]) -> Result<(), DeflateError> {
        while !plain.is_empty() {
            let Some(member) = self.open_member()? else {
                return Err(DeflateError::Plain("there are too many"));
            };
            let count = member.next_part().min(PART_BYTES as u64) as usize;
            let (part, rest) = plain.split_at(plain.len().min(count));
            plain = rest;
            self.write_part(part)?;
        }
        Ok(())
    }

    /// Ends the stream and returns the sink.
    ///
    /// # Errors
    /// Like [`write`](Self::write), and if plain bytes are missing.
    pub fn finish(mut self) -> Result<W, DeflateError> {
        if self.open_member()?.is_some() {
            return Err(DeflateError::Plain("some are missing"));
        }
        if !self.tokens.is_at_end(self.recipe.deviations()) {
            return Err(DeflateError::Recipe(
                "it has more deviations than the stream",
            ));
        }
        let trailing = self.recipe.trailing();
        let zeros = [0; 4096];
        let mut left = trailing.zeros;
        while left > 0 {
            let count = left.min(zeros.len() as u64);
            self.output.write(&zeros[..count as usize])?;
            left -= count;
        }
        self.output.write(&trailing.bytes)?;
        if self.output.written < self.output.limit {
            return Err(DeflateError::Plain("the stream became too short"));
        }
        Ok(self.output.sink)
    }

    /// Returns the member that needs the next plain byte, or `None` after the last member. First
    /// writes the members before it that have no plain bytes.
    fn open_member(&mut self) -> Result<Option<&mut MemberWriter>, DeflateError> {
        while self.member.is_none() {
            let Some(member) = self.members.next_member(self.recipe.as_bytes())? else {
                return Ok(None);
            };
            self.output.write(&member.header)?;
            let format = self.recipe.format();
            self.member = Some(MemberWriter::new(member, format, &mut self.tokens));
            self.write_part(&[])?;
        }
        Ok(self.member.as_mut())
    }

    /// Passes plain bytes to the current member, and ends it if they are its last.
    fn write_part(&mut self, plain: &[u8]) -> Result<(), DeflateError> {
        let Some(member) = &mut self.member else {
            return Ok(());
        };
        let deviations = self.recipe.deviations();
        member.write(plain, &mut self.tokens, deviations, &mut |bytes| {
            self.output.write(bytes)
        })?;
        if member.is_complete() {
            self.output.write(member.trailer())?;
            self.member = None;
        }
        Ok(())
    }
}

/// The receiver of the compressed bytes.
type Sink<'a> = dyn FnMut(&[u8]) -> Result<(), DeflateError> + 'a;

/// The writer of one member.
struct MemberWriter {
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
    fn new(member: &StreamMember, format: StreamFormat, tokens: &mut TokenReader) -> Self {
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
    fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// The trailer after the deflate stream.
    fn trailer(&mut self) -> &[u8] {
        let trailer = self.trailer.get_or_insert(self.checksum.trailer());
        &trailer[..self.format.trailer_bytes()]
    }

    /// The maximum number of plain bytes for one call of `write`: those up to the next flush or, if
    /// there is none, all remaining ones.
    fn next_part(&self) -> u64 {
        let flush = self.flushes.last();
        flush.map_or(self.left, |run| run.distance - self.since_flush)
    }

    /// Reads plain bytes, at most `next_part`, and writes compressed bytes to `sink`.
    fn write(
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

// The plain bytes of a compressed stream.

/// Reads the plain bytes of all members of a gzip, zlib or raw deflate stream, one after the other,
/// as [`analyze`](crate::analyze()) counts them. Checksums are not compared: a stream with a wrong
/// checksum can be rebuilt too.
///
/// A stream that is not valid ends in an error of kind [`InvalidData`](io::ErrorKind::InvalidData)
/// that contains a [`DeflateError`].
#[derive(Debug)]
pub struct PlainReader<R> {
    input: BitReader<R>,
    inflater: Inflater,
    /// `None` before the first byte was read.
    format: Option<StreamFormat>,
    in_member: bool,
    at_end: bool,
    /// The number of bytes of the current piece that were returned.
    returned: usize,
}

impl<R: Read> PlainReader<R> {
    /// Reads from the beginning of `source`.
    pub fn new(source: R) -> Self {
        Self {
            input: BitReader::new(source),
            inflater: Inflater::new(),
            format: None,
            in_member: false,
            at_end: false,
            returned: 0,
        }
    }

    /// Decodes the next piece; it may be empty.
    fn step(&mut self) -> Result<(), DeflateError> {
        let format = match self.format {
            Some(format) => format,
            None => *self.format.insert(StreamFormat::detect(&mut self.input)?),
        };
        self.input.set_mark();
        if !self.in_member {
            format.read_header(&mut self.input, &mut Vec::new())?;
            self.inflater.restart();
            self.in_member = true;
        }
        self.inflater.step(&mut self.input)?;
        self.returned = 0;
        if self.inflater.is_at_end() {
            format.read_trailer(&mut self.input)?;
            self.in_member = false;
            if !format.has_next_member(&mut self.input)? {
                read_trailing(&mut self.input)?;
                self.at_end = true;
            }
        }
        Ok(())
    }
}

impl<R: Read> Read for PlainReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let plain = &self.inflater.piece().plain[self.returned..];
            if !plain.is_empty() || buffer.is_empty() {
                let count = plain.len().min(buffer.len());
                buffer[..count].copy_from_slice(&plain[..count]);
                self.returned += count;
                return Ok(count);
            }
            if self.at_end {
                return Ok(0);
            }
            self.step().map_err(to_io)?;
        }
    }
}

fn to_io(error: DeflateError) -> io::Error {
    match error {
        DeflateError::Io(error) => error,
        other => io::Error::new(io::ErrorKind::InvalidData, other),
    }
}
