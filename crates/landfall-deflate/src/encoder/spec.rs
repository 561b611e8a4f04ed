//! The families of encoders.

use super::go::GoFlate;
use super::klauspost::KlauspostFlate;
#[cfg(test)]
use super::testing;
use super::zlib::ZlibDeflate;
use super::zlib::gnu::GnuGzip;
use super::zlib::pigz::Pigz;
use crate::bits::BitWriter;
use std::fmt;

/// Defines [`EncoderSpec`]. A family is a `Copy` type of parameters with a number that recipes
/// record and that never changes. It has the methods that are called below, and a `Display` that
/// names the encoder for reports: `Go from 1.27 flate, level 6`.
macro_rules! families {
    ($($(#[$attribute:meta])* $number:literal => $family:ident($parameters:ty)),* $(,)?) => {
        /// An encoder and all parameters that its output depends on.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub(crate) enum EncoderSpec {
            $($(#[$attribute])* $family($parameters)),*
        }

        impl EncoderSpec {
            /// All encoders that may have written a stream, the most likely first.
            pub(crate) fn candidates(hints: &StreamHints) -> Vec<Self> {
                let mut specs = Vec::new();
                $(
                    $(#[$attribute])*
                    specs.extend(<$parameters>::candidates(hints).into_iter().map(Self::$family));
                )*
                specs
            }

            /// Returns an encoder at the beginning of a stream.
            pub(crate) fn start(self) -> Box<dyn Encoder> {
                match self {
                    $($(#[$attribute])* Self::$family(parameters) => parameters.start()),*
                }
            }

            /// The encoding in recipes: the number of the family, then at most 31 bytes.
            pub(crate) fn to_bytes(self) -> Vec<u8> {
                let mut bytes = Vec::new();
                match self {
                    $(
                        $(#[$attribute])*
                        Self::$family(parameters) => {
                            bytes.push($number);
                            bytes.extend(parameters.to_bytes());
                        }
                    )*
                }
                bytes
            }

            /// The encoder that `to_bytes` recorded, or `None` if it is not known.
            pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
                match bytes.split_first()? {
                    $(
                        $(#[$attribute])*
                        (&$number, rest) => <$parameters>::from_bytes(rest).map(Self::$family),
                    )*
                    _ => None,
                }
            }
        }

        impl fmt::Display for EncoderSpec {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match *self {
                    $($(#[$attribute])* Self::$family(ref parameters) => parameters.fmt(f)),*
                }
            }
        }
    };
}

// the number 0 means that the tokens of a stream are predicted
families! {
    // Go's standard library
    1 => Go(GoFlate),
    // klauspost/compress and pgzip
    2 => Klauspost(KlauspostFlate),
    // zlib, with the default build options
    3 => Zlib(ZlibDeflate),
    // GNU gzip
    4 => GnuGzip(GnuGzip),
    // pigz
    5 => Pigz(Pigz),
    #[cfg(test)]
    255 => Runs(testing::RunEncoding),
}

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
