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
mod error;
mod framing;
mod inflate;
mod plain;
mod prediction;
mod rebuild;
mod recipe_format;
mod symbols;
#[cfg(test)]
mod tests;

pub use analyze::{analyze, assume, estimate_recipe_size};
pub use error::{AnalysisLimits, DeflateError};
pub use framing::StreamFormat;
pub use plain::PlainReader;
pub use rebuild::Rebuilder;
pub use recipe_format::{EncoderShare, Recipe};
