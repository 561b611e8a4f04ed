//! Takes a stream apart: finds its encoders, and writes the recipe.
//!
//! The beginning of each deflate stream is kept until its encoder is chosen: all known encoders
//! compress its plain bytes, and those whose output differs are dropped. The others go on until the
//! end, or until they differ too. If none is left, the tokens are predicted; if that is noticed
//! late, the file is read again. Of a file with several members, encoders of earlier members are
//! tried first.

mod pass;
mod prefix;
mod replay;

pub use pass::analyze;
#[cfg(test)]
pub(crate) use pass::predict;
