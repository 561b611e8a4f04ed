//! Describes the tokens of a stream relative to a prediction, for encoders that are not replayed.
//!
//! For each token, the window offers a match at its position and one at the next position. A model
//! learns how the encoder decides between a literal, the longest match and other matches, and an
//! arithmetic coder writes the encoder's actual decisions. The decisions of an encoder with simple
//! rules take up almost no space. Block boundaries and the headers of dynamic blocks are coded in
//! the same way. The code lengths in a header are coded relative to those that are computed from
//! the tokens.
//!
//! [`TokenWriter`] and [`TokenReader`] run the same model with a coder for each direction. All
//! predictions depend only on the plain bytes before a position and on the
//! [`LOOKAHEAD`](matcher::LOOKAHEAD) bytes after it, so both directions stream.
//!
//! 1. `coder`: the arithmetic coder;
//! 2. `matcher`: the matches that the window offers; `spec`: the parameters of the search;
//! 3. `model`: tokens; `blocks`: blocks; `lengths`: headers of dynamic blocks; `state`: all three;
//! 4. `writer` and `reader`: the two directions; `output`: writes blocks.

mod blocks;
mod coder;
mod lengths;
mod matcher;
mod model;
mod output;
mod reader;
mod spec;
mod state;
mod writer;

pub(crate) use reader::TokenReader;
pub(crate) use spec::PredictionSpec;
pub(crate) use writer::TokenWriter;
