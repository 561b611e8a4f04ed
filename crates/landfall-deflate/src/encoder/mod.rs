//! The encoders that are replayed exactly. Each family has a folder; [`EncoderSpec`] names an
//! encoder with all of its parameters, and is recorded in recipes.
//!
//! An encoder is written from the behaviour of the program whose streams it reproduces: the module
//! documentation of each family states the rules. Tests compare with the real programs' output.

pub(crate) mod block;
pub(crate) mod bytes;
pub(crate) mod chains;
pub(crate) mod go;
pub(crate) mod huffman;
pub(crate) mod klauspost;
#[cfg(test)]
mod properties;
mod replay;
mod spec;
pub(crate) mod symbols;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
pub(crate) mod vectors;
pub(crate) mod zlib;

pub(crate) use replay::{BlockSize, Encoder, StreamHints};
pub(crate) use spec::EncoderSpec;
