//! Errors from analyzing and rebuilding streams, and the limits of an analysis.

use std::io;

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

/// The limits within which [`analyze`](crate::analyze()) accepts a stream.
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
