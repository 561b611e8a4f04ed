//! The `flate` package of `github.com/klauspost/compress`, and `pgzip`, which podman, buildah, skopeo
//! and others use. Go's standard library has had the same encoder since 1.27.

mod blocks;
mod estimate;
mod fast;
mod lazy;
mod parallel;
mod plain;
pub(crate) mod rules;

use super::Encoder;
use fast::FastEncoder;
use lazy::LazyEncoder;
use parallel::ParallelEncoder;
use plain::PlainEncoder;
use rules::Generation;

/// An encoder that can begin another stream.
trait Restart: Encoder + std::fmt::Debug {
    /// Begins a stream whose matches may refer to `dictionary`.
    fn restart(&mut self, dictionary: &[u8]);
}

fn start_piece(generation: Generation, level: i8) -> Box<dyn Restart> {
    let rules = generation.rules();
    match level {
        ..=-1 => Box::new(PlainEncoder::literals(rules)),
        0 => Box::new(PlainEncoder::stored(rules)),
        1..=6 => Box::new(FastEncoder::new(level, rules)),
        7.. => Box::new(LazyEncoder::new(level, rules)),
    }
}

/// Starts a stream at a level of −2 or 0 to 9.
pub(crate) fn start(generation: Generation, level: i8) -> Box<dyn Encoder> {
    start_piece(generation, level)
}

/// Starts a stream of pieces of `piece_size` bytes.
pub(crate) fn start_parallel(
    generation: Generation,
    level: i8,
    piece_size: usize,
) -> Box<dyn Encoder> {
    Box::new(ParallelEncoder::new(start_piece(generation, level), piece_size))
}
