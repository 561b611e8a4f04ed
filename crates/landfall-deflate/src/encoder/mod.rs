//! The encoders that are replayed exactly. Each family has a folder; [`EncoderSpec`] names an
//! encoder with all of its parameters, and is what a recipe records.
//!
//! An encoder is written from the behaviour of the program whose streams it reproduces: the module
//! documentation of each family states the rules. Tests compare with the real programs' output.

pub(crate) mod block;
pub(crate) mod bytes;
pub(crate) mod go;
pub(crate) mod huffman;
pub(crate) mod symbols;
#[cfg(test)]
pub(crate) mod vectors;

use crate::bits::BitWriter;
use go::GoFlate;

/// An encoder at work on one raw deflate stream.
pub(crate) trait Encoder {
    /// Compresses `plain`, the next bytes of the stream. How the stream is cut into calls does not
    /// change the output.
    fn write(&mut self, plain: &[u8], out: &mut BitWriter);

    /// Ends the current block and appends an empty stored block, as a flush of the original
    /// program does.
    fn flush(&mut self, out: &mut BitWriter);

    /// Ends the stream with its final block, and pads to a byte boundary.
    fn finish(&mut self, out: &mut BitWriter);
}

/// What is known of a stream before an encoder is chosen: candidates that it rules out need not be
/// tried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct StreamHints {
    /// The extra flags of a gzip header: 2 for the best compression, 4 for the fastest.
    pub(crate) gzip_extra_flags: Option<u8>,
    /// The operating system of a gzip header: 255 is written by Go, 3 by programs on Unix.
    pub(crate) gzip_os: Option<u8>,
    /// The two bytes of a zlib header: window size and level.
    pub(crate) zlib_header: Option<[u8; 2]>,
    /// The longest distance of a match in the beginning of the stream.
    pub(crate) longest_distance: u32,
}

/// An encoder and all parameters that its output depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum EncoderSpec {
    /// Go's standard library.
    Go(GoFlate),
}
