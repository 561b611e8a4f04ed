//! Splits a gzip, zlib or raw deflate stream into its plain bytes and a *recipe*, and rebuilds
//! exactly the same stream from them.
//!
//! A registry's digest covers the compressed bytes of a layer, so a patch of the plain bytes is
//! only useful if the receiver can rebuild the same compressed bytes. The recipe names the encoder
//! that wrote the stream, and [`Rebuilder`] runs the same encoder again. A stream of an unknown
//! encoder is described token by token, relative to a prediction.
//!
//! The crate does no I/O of its own, has no unsafe code, and needs bounded memory in both
//! directions, for streams of any length. It imports no other crate of the workspace.
//!
//! 1. `bits`: reads and writes bits, least significant first (RFC 1951, section 3.1.1);
//! 2. `inflate`: decodes a stream strictly, into blocks and tokens;
//! 3. `framing`: gzip (RFC 1952) and zlib (RFC 1950): members, headers, trailers;
//! 4. `encoder`: the encoders that are replayed exactly, a folder for each family;
//! 5. `prediction`: the coder of tokens for all other streams;
//! 6. `recipe_format`: the recipe and its encoding, which is part of the bundle format;
//! 7. `analyze` and `rebuild`: the two directions.
//!
//! Begin with `analyze/mod.rs`.

mod analyze;
mod bits;
mod encoder;
mod framing;
mod inflate;
mod prediction;
mod rebuild;
mod recipe_format;
mod symbols;
#[cfg(test)]
mod tests;

use std::io;

pub use crate::analyze::{analyze, assume, estimate_recipe_size};
pub use crate::rebuild::{PlainReader, Rebuilder};
pub use crate::recipe_format::Recipe;

/// An error from analyzing or rebuilding a stream.
#[derive(Debug, thiserror::Error)]
pub enum DeflateError {
    /// Reading the stream or writing the output failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The stream is not valid gzip, zlib or deflate. `offset` is in bytes from its beginning.
    #[error("not a valid compressed stream: {reason} at byte {offset}")]
    Stream {
        /// The position at which the error was noticed.
        offset: u64,
        /// The reason why the stream is invalid at `offset`.
        reason: &'static str,
    },
    /// The stream decompresses to more bytes than [`AnalysisLimits::plain_bytes`] allows.
    #[error("the stream decompresses to more than {limit} bytes")]
    PlainTooLarge {
        /// The limit that was exceeded.
        limit: u64,
    },
    /// The recipe would be larger than [`AnalysisLimits`] allows: the stream should be bundled as
    /// it is.
    #[error("the recipe for this stream would be too large")]
    RecipeTooLarge,
    /// The bytes are not a recipe of this version, or the recipe is inconsistent.
    #[error("invalid recipe: {0}")]
    Recipe(&'static str),
    /// The plain bytes are not those that the recipe was made for.
    #[error("the plain bytes do not match the recipe: {0}")]
    Plain(&'static str),
}

/// The limits within which [`analyze`](analyze()) accepts a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnalysisLimits {
    /// The largest size of all plain bytes together.
    pub plain_bytes: u64,
    /// The largest recipe, in bytes. The recipe is kept in memory.
    pub recipe_bytes: u64,
    /// The largest recipe relative to the compressed stream, in percent. The size of a
    /// recipe of up to 64 KiB is compared only at the end of the stream.
    pub recipe_percent: u64,
}

impl Default for AnalysisLimits {
    /// 64 GiB of plain bytes, 64 MiB for the recipe, and 25 percent of the stream.
    fn default() -> Self {
        Self {
            plain_bytes: 64 << 30,
            recipe_bytes: 64 << 20,
            recipe_percent: 25,
        }
    }
}

impl AnalysisLimits {
    /// Whether a recipe of `recipe` bytes is too large after `compressed` bytes of the stream.
    pub(crate) fn is_recipe_too_large(&self, recipe: u64, compressed: u64) -> bool {
        recipe > self.recipe_bytes
            || recipe.saturating_mul(100) > compressed.saturating_mul(self.recipe_percent)
    }
}
