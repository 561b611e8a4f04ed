//! Takes a stream apart: finds its encoders, and writes the recipe.
//!
//! The beginning of each deflate stream is kept until its encoder is chosen: candidate encoders
//! compress its plain bytes, and an encoder is dropped as soon as its output differs. If no encoder
//! writes the beginning, the tokens are predicted; if the last encoder is dropped later in the
//! stream, the file is read again. In a file with several members, the encoders of earlier members
//! are tried first.

mod pass;
mod prefix;
mod replay;
mod sample;

#[cfg(test)]
pub(crate) use pass::predict;
pub use pass::{analyze, assume};
pub use sample::estimate_recipe_size;
