//! The plain bytes of a compressed stream.

use crate::bits::BitReader;
use crate::error::DeflateError;
use crate::framing::{FramingReader, StreamFormat, read_trailing};
use crate::inflate::Inflater;
use std::io::{self, Read};

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
    framing: Option<FramingReader>,
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
            framing: None,
            in_member: false,
            at_end: false,
            returned: 0,
        }
    }

    /// The framing of the stream.
    ///
    /// # Errors
    /// If the beginning of the stream cannot be read.
    pub fn format(&mut self) -> io::Result<StreamFormat> {
        let framing = self.framing().map_err(to_io)?;
        Ok(framing.format())
    }

    fn framing(&mut self) -> Result<FramingReader, DeflateError> {
        if let Some(framing) = self.framing {
            return Ok(framing);
        }
        Ok(*self.framing.insert(FramingReader::detect(&mut self.input)?))
    }

    /// Decodes the next piece; it may be empty.
    fn step(&mut self) -> Result<(), DeflateError> {
        let framing = self.framing()?;
        self.input.set_mark();
        if !self.in_member {
            framing.read_header(&mut self.input, &mut Vec::new())?;
            self.inflater.restart();
            self.in_member = true;
        }
        self.inflater.step(&mut self.input)?;
        self.returned = 0;
        if self.inflater.is_at_end() {
            framing.read_trailer(&mut self.input)?;
            self.in_member = false;
            if !framing.has_next_member(&mut self.input)? {
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
