//! Decodes a raw deflate stream strictly, into plain bytes, blocks and tokens.
//!
//! The decoder accepts what zlib accepts. It keeps everything that a stream can express beyond its
//! plain bytes: blocks and their headers, tokens, padding.

mod block;
mod inflater;
mod table;
mod tokens;

pub(crate) use block::{BlockKind, DecodedToken, DeflateBlock, DynamicBlockHeader, run_shape};
pub(crate) use inflater::{InflatedPiece, Inflater};
