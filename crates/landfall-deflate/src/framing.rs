//! The framing of deflate streams: gzip members (RFC 1952) and zlib streams (RFC 1950).

use crate::DeflateError;
use crate::bits::BitReader;
use std::io::Read;
use zlib_rs::adler32::adler32;
use zlib_rs::crc32::crc32;

/// The framing of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum StreamFormat {
    /// A deflate stream without framing.
    Raw = 0,
    /// A zlib stream (RFC 1950).
    Zlib = 1,
    /// One or more gzip members.
    Gzip = 2,
}

impl StreamFormat {
    /// Detects the framing at the beginning of a file. A raw stream has no signature: a stream that
    /// is neither gzip nor zlib is read as raw deflate.
    pub(crate) fn detect<R: Read>(input: &mut BitReader<R>) -> Result<Self, DeflateError> {
        Ok(match *input.peek_bytes(3)? {
            [0x1f, 0x8b, 8, ..] => Self::Gzip,
            // the method is 8, the window at most 32 KiB, and there is no preset dictionary
            [first, second, ..]
                if first & 0x0f == 8
                    && first >> 4 <= 7
                    && second & 0x20 == 0
                    && u16::from_be_bytes([first, second]) % 31 == 0 =>
            {
                Self::Zlib
            }
            _ => Self::Raw,
        })
    }

    /// The number of bytes after the deflate stream of a member.
    pub(crate) fn trailer_bytes(self) -> usize {
        match self {
            Self::Raw => 0,
            Self::Zlib => 4,
            Self::Gzip => 8,
        }
    }

    /// The number that a recipe records.
    pub(crate) fn to_byte(self) -> u8 {
        self as u8
    }

    /// The framing that a recipe records as this number.
    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        [Self::Raw, Self::Zlib, Self::Gzip]
            .into_iter()
            .find(|format| format.to_byte() == byte)
    }
}

/// The checksum and length of the plain bytes of one member.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlainChecksum {
    format: StreamFormat,
    sum: u32,
    length: u32,
}

impl PlainChecksum {
    /// The checksum of no bytes.
    pub(crate) fn new(format: StreamFormat) -> Self {
        let sum = u32::from(format == StreamFormat::Zlib);
        Self {
            format,
            sum,
            length: 0,
        }
    }

    /// Adds the next plain bytes.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        match self.format {
            StreamFormat::Gzip => self.sum = crc32(self.sum, bytes),
            StreamFormat::Zlib => self.sum = adler32(self.sum, bytes),
            StreamFormat::Raw => {}
        }
        self.length = self.length.wrapping_add(bytes.len() as u32);
    }

    /// The trailer of a correct member, in the first [`StreamFormat::trailer_bytes`] bytes.
    pub(crate) fn trailer(&self) -> [u8; 8] {
        let mut trailer = [0; 8];
        if self.format == StreamFormat::Zlib {
            trailer[..4].copy_from_slice(&self.sum.to_be_bytes());
        } else {
            trailer[..4].copy_from_slice(&self.sum.to_le_bytes());
            trailer[4..].copy_from_slice(&self.length.to_le_bytes());
        }
        trailer
    }
}

// Reads the headers and trailers around the deflate streams of a file.

/// The maximum length in bytes of the header of a gzip member: enough for an extra field of
/// 64 KiB, a name and a comment.
pub(crate) const LONGEST_HEADER: usize = 128 << 10;
/// The maximum number of bytes after the last member, without the zero bytes directly after it.
pub(crate) const LONGEST_TRAILING: usize = 64 << 10;

/// The flags of a gzip header.
const HAS_CHECKSUM: u8 = 0x02;
const HAS_EXTRA: u8 = 0x04;
const HAS_NAME: u8 = 0x08;
const HAS_COMMENT: u8 = 0x10;
const RESERVED: u8 = 0xe0;

/// The bytes after the last member.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TrailingBytes {
    /// The number of zero bytes directly after the last member.
    pub(crate) zeros: u64,
    /// The bytes after the zeros.
    pub(crate) bytes: Vec<u8>,
}

impl StreamFormat {
    /// Whether another member follows. Other bytes after a member are trailing bytes.
    pub(crate) fn has_next_member<R: Read>(
        self,
        input: &mut BitReader<R>,
    ) -> Result<bool, DeflateError> {
        Ok(self == Self::Gzip
            && matches!(*input.peek_bytes(4)?, [0x1f, 0x8b, 8, flags] if flags & RESERVED == 0))
    }

    /// Reads the header of a member.
    pub(crate) fn read_header<R: Read>(
        self,
        input: &mut BitReader<R>,
        header: &mut Vec<u8>,
    ) -> Result<(), DeflateError> {
        header.clear();
        match self {
            Self::Raw => Ok(()),
            Self::Zlib => copy(input, 2, header),
            Self::Gzip => read_gzip_header(input, header),
        }
    }

    /// Reads the trailer of a member. Returns it in the first [`StreamFormat::trailer_bytes`]
    /// bytes.
    pub(crate) fn read_trailer<R: Read>(
        self,
        input: &mut BitReader<R>,
    ) -> Result<[u8; 8], DeflateError> {
        let mut trailer = [0; 8];
        for byte in &mut trailer[..self.trailer_bytes()] {
            *byte = input.byte()?;
        }
        Ok(trailer)
    }
}

/// Reads everything up to the end of a file.
pub(crate) fn read_trailing<R: Read>(
    input: &mut BitReader<R>,
) -> Result<TrailingBytes, DeflateError> {
    let mut trailing = TrailingBytes::default();
    while !input.peek_bytes(1)?.is_empty() {
        input.set_mark();
        let mut bytes = input.bytes(4096)?;
        if trailing.bytes.is_empty() {
            let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
            trailing.zeros += zeros as u64;
            bytes = &bytes[zeros..];
        }
        trailing.bytes.extend_from_slice(bytes);
        if trailing.bytes.len() > LONGEST_TRAILING {
            return Err(input.error("too many bytes follow the compressed stream"));
        }
    }
    Ok(trailing)
}

/// The extra flags of a gzip header; `None` if the header is too short to be one of gzip.
pub(crate) fn gzip_extra_flags(header: &[u8]) -> Option<u8> {
    header.get(8).copied()
}

/// Appends the next `count` bytes to `to`.
fn copy<R: Read>(
    input: &mut BitReader<R>,
    mut count: usize,
    to: &mut Vec<u8>,
) -> Result<(), DeflateError> {
    while count > 0 {
        let bytes = input.bytes(count)?;
        to.extend_from_slice(bytes);
        count -= bytes.len();
    }
    Ok(())
}

fn read_gzip_header<R: Read>(
    input: &mut BitReader<R>,
    header: &mut Vec<u8>,
) -> Result<(), DeflateError> {
    copy(input, 10, header)?;
    let flags = header[3];
    if header[..3] != [0x1f, 0x8b, 8] || flags & RESERVED != 0 {
        return Err(input.error("the header of a gzip member is invalid"));
    }
    if flags & HAS_EXTRA != 0 {
        copy(input, 2, header)?;
        let length = u16::from_le_bytes([header[10], header[11]]);
        copy(input, usize::from(length), header)?;
    }
    for flag in [HAS_NAME, HAS_COMMENT] {
        if flags & flag != 0 {
            copy_text(input, header)?;
        }
    }
    if flags & HAS_CHECKSUM != 0 {
        copy(input, 2, header)?;
        check_length(input, header)?;
    }
    Ok(())
}

/// Fails if the header is longer than a recipe can record.
fn check_length<R: Read>(input: &BitReader<R>, header: &[u8]) -> Result<(), DeflateError> {
    if header.len() > LONGEST_HEADER {
        return Err(input.error("the header of a gzip member is too long"));
    }
    Ok(())
}

/// Appends bytes up to and including a zero byte.
fn copy_text<R: Read>(input: &mut BitReader<R>, header: &mut Vec<u8>) -> Result<(), DeflateError> {
    loop {
        let byte = input.byte()?;
        header.push(byte);
        check_length(input, header)?;
        if byte == 0 {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_the_standards() {
        assert_eq!(crc32(0, b"123456789"), 0xcbf4_3926);
        assert_eq!(adler32(1, b"Wikipedia"), 0x11e6_0398);
        let bytes: Vec<u8> = (0..20_000_u32).map(|at| ((at * at) >> 5) as u8).collect();
        for split in [0, 1, 7, 9, 5553, 19_999] {
            let (first, second) = bytes.split_at(split);
            assert_eq!(crc32(crc32(0, first), second), crc32(0, &bytes));
            assert_eq!(adler32(adler32(1, first), second), adler32(1, &bytes));
        }
    }

    fn framing_of(bytes: &[u8]) -> (StreamFormat, Vec<u8>, Result<Vec<u8>, DeflateError>) {
        let mut input = BitReader::new(bytes);
        let format = StreamFormat::detect(&mut input).unwrap();
        let mut header = Vec::new();
        let read = format.read_header(&mut input, &mut header);
        let rest = read.and_then(|()| Ok(input.peek_bytes(100)?.to_vec()));
        (format, header, rest)
    }

    #[test]
    fn headers_are_kept_as_they_are() {
        let mut gzip = vec![0x1f, 0x8b, 8, 0x1e, 1, 2, 3, 4, 2, 255];
        gzip.extend(b"\x03\x00abcname\0comment\0hc");
        let length = gzip.len();
        gzip.extend(b"rest");
        let (format, header, rest) = framing_of(&gzip);
        assert_eq!(format, StreamFormat::Gzip);
        assert_eq!(header, gzip[..length]);
        assert_eq!(rest.unwrap(), b"rest");
        assert!(framing_of(&gzip[..length - 1]).2.is_err());
        let (format, header, rest) = framing_of(b"\x78\x9crest");
        assert_eq!(
            (format, header.as_slice()),
            (StreamFormat::Zlib, &b"\x78\x9c"[..])
        );
        assert_eq!(rest.unwrap(), b"rest");
        assert_eq!(framing_of(b"\x4b\x04\x00").0, StreamFormat::Raw);
    }

    #[test]
    fn no_header_is_longer_than_a_recipe_can_record() {
        // a name, and perhaps the checksum of the header
        let header = |flags: u8, length: usize| {
            let mut bytes = vec![0x1f, 0x8b, 8, flags, 0, 0, 0, 0, 0, 255];
            bytes.resize(length, b'n');
            let end = if flags & HAS_CHECKSUM == 0 { 1 } else { 3 };
            bytes[length - end] = 0;
            bytes
        };
        for flags in [HAS_NAME, HAS_NAME | HAS_CHECKSUM] {
            assert!(framing_of(&header(flags, LONGEST_HEADER)).2.is_ok());
            for more in 1..3 {
                let error = framing_of(&header(flags, LONGEST_HEADER + more))
                    .2
                    .unwrap_err();
                assert!(error.to_string().contains("is too long"), "{error}");
            }
        }
    }

    #[test]
    fn zeros_and_other_bytes_after_the_last_member_are_kept() {
        let bytes = [&[0; 9000][..], b"tail\0"].concat();
        let mut input = BitReader::new(bytes.as_slice());
        assert!(!StreamFormat::Gzip.has_next_member(&mut input).unwrap());
        let trailing = read_trailing(&mut input).unwrap();
        assert_eq!(
            (trailing.zeros, trailing.bytes.as_slice()),
            (9000, &b"tail\0"[..])
        );
    }
}
