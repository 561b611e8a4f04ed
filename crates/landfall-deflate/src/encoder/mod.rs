//! The encoders that are replayed exactly. Each family has a folder; [`EncoderSpec`] names an
//! encoder with all of its parameters, and is recorded in recipes.
//!
//! An encoder is written from the behaviour of the program whose streams it reproduces: the module
//! documentation of each family states the rules. Tests compare with the real programs' output.

pub(crate) mod block;
pub(crate) mod chains;
pub(crate) mod go;
pub(crate) mod huffman;
pub(crate) mod klauspost;
#[cfg(test)]
mod properties;
mod spec;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
pub(crate) mod vectors;
pub(crate) mod zlib;

use crate::bits::BitWriter;

pub(crate) use self::spec::EncoderSpec;

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

    /// Whether `write` appends empty stored blocks by itself, like the encoders that compress
    /// pieces of a stream in parallel. All empty stored blocks of other encoders come from `flush`.
    fn writes_empty_blocks(&self) -> bool {
        false
    }
}

/// An encoder that can begin another stream.
pub(crate) trait RestartEncoder: Encoder + std::fmt::Debug {
    /// Begins a stream whose matches may refer to `dictionary`.
    fn restart(&mut self, dictionary: &[u8]);
}

/// Properties of a stream that depend on its encoder, so that impossible candidates need not be
/// tried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct StreamHints {
    /// The extra flags of a gzip header: 2 for the best compression, 4 for the fastest.
    pub(crate) gzip_extra_flags: Option<u8>,
    /// The two bytes of a zlib header: window size and level.
    pub(crate) zlib_header: Option<[u8; 2]>,
    /// The longest distance of a match in the beginning of the stream.
    pub(crate) longest_distance: u32,
    /// The number of tokens of the first block, unless it is stored, the last, or cut by a flush.
    pub(crate) first_block_tokens: Option<u64>,
    /// The size of the first block, if it ended because it was full: it is not stored and not cut
    /// by a flush, and further plain bytes follow it.
    pub(crate) full_block: Option<BlockSize>,
    /// Whether the beginning of the stream has flushes.
    pub(crate) has_flushes: bool,
}

/// The size of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockSize {
    pub(crate) tokens: u64,
    pub(crate) plain_bytes: u64,
}
