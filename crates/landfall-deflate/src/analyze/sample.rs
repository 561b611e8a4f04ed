//! Estimates the size of a recipe from the beginning of the stream.

use super::pass::{AnalysisPass, MemberPlans, analyze};
use crate::error::{AnalysisLimits, DeflateError};
use std::io::{self, Read};

/// The number of bytes of a stream that are read.
const SAMPLE_BYTES: u64 = 1 << 20;
/// The size in bytes of the recipe of one member that a known encoder wrote.
const SMALL_RECIPE: u64 = 40;

/// Estimates the size in bytes of the recipe that [`analyze`] returns for a stream of
/// `stream_bytes` bytes, in much less time: only the first MiB is analyzed. The estimate is too low
/// if an encoder wrote the first MiB exactly, but not the rest.
///
/// # Errors
/// Like [`analyze`], if the first MiB shows the error.
pub fn estimate_recipe_size<R: Read>(
    mut open: impl FnMut() -> io::Result<R>,
    stream_bytes: u64,
    limits: &AnalysisLimits,
) -> Result<u64, DeflateError> {
    if stream_bytes <= SAMPLE_BYTES {
        return Ok(analyze(open, limits)?.as_bytes().len() as u64);
    }
    let mut sample = open()?.take(SAMPLE_BYTES);
    let mut plans = MemberPlans::new();
    let mut pass = AnalysisPass::new(&mut sample, *limits, &mut plans)?;
    let result = pass.read_members();
    let sampled_recipe = pass.recipe_bytes();
    match result {
        // caused by the end of the sample, not by the stream
        Err(DeflateError::Stream { .. }) if sample.limit() == 0 => {}
        result => result?,
    }
    let scaled = u128::from(sampled_recipe) * u128::from(stream_bytes) / u128::from(SAMPLE_BYTES);
    let size = SMALL_RECIPE + u64::try_from(scaled).unwrap_or(u64::MAX);
    if limits.is_recipe_too_large(size, stream_bytes) {
        return Err(DeflateError::RecipeTooLarge);
    }
    Ok(size)
}
