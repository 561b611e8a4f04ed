//! The framing of deflate streams: gzip members (RFC 1952) and zlib streams (RFC 1950).

mod checksum;
mod format;
mod reader;

pub(crate) use checksum::PlainChecksum;
pub use format::StreamFormat;
pub(crate) use reader::{
    FramingReader, LONGEST_HEADER, LONGEST_TRAILING, TrailingBytes, gzip_extra_flags, read_trailing,
};
