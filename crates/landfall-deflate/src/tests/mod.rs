//! Tests that analyze streams and rebuild them.

mod frozen;
mod hostile;
mod round_trips;

use crate::encoder::EncoderSpec;
use crate::encoder::testing::RunEncoding;
use crate::recipe_format::RebuildMethod;
use crate::{AnalysisLimits, DeflateError, PlainReader, Rebuilder, Recipe, analyze};
use flate2::Compression;
use std::io::{Read, Write};

/// Limits under which every valid stream has a recipe.
pub(crate) const GENEROUS: AnalysisLimits = AnalysisLimits {
    plain_bytes: 1 << 30,
    recipe_bytes: 1 << 30,
    recipe_percent: 1000,
};

/// Text-like bytes: words from a small vocabulary with numbers in between.
fn text(length: usize, seed: u32) -> Vec<u8> {
    let mut state = seed | 1;
    let mut bytes = Vec::with_capacity(length + 16);
    while bytes.len() < length {
        state = state.wrapping_mul(0x0019_660d).wrapping_add(0x3c6e_f35f);
        match state >> 29 {
            0 => bytes.extend((state >> 8 & 0xffff).to_string().bytes()),
            1 => bytes.extend_from_slice(b"\n    "),
            _ => {
                let word = state >> 20 & 0x1ff;
                bytes
                    .extend((0..2 + word % 7).map(|at| b'a' + (word * 7 + at * at * 3) as u8 % 26));
            }
        }
        bytes.push(b' ');
    }
    bytes.truncate(length);
    bytes
}

/// Random bytes.
pub(crate) fn noise(length: usize, seed: u32) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state >> 11) as u8
    };
    (0..length).map(|_| next()).collect()
}

/// A gzip member that flate2 writes. Its encoder is not replayed, but another encoder may write the
/// same bytes.
fn gzip(plain: &[u8], level: u32) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), Compression::new(level));
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

/// A raw stream of the test encoder, in blocks of `thousands` thousand bytes, with flushes at these
/// positions.
pub(crate) fn runs(plain: &[u8], thousands: u8, flushes: &[usize]) -> Vec<u8> {
    let mut out = crate::bits::BitWriter::default();
    let mut encoder = EncoderSpec::Runs(RunEncoding { thousands }).start();
    let mut from = 0;
    for &flush in flushes {
        encoder.write(&plain[from..flush], &mut out);
        encoder.flush(&mut out);
        from = flush;
    }
    encoder.write(&plain[from..], &mut out);
    encoder.finish(&mut out);
    out.bytes
}

/// Puts a raw deflate stream into a gzip member.
pub(crate) fn member(deflate: &[u8], plain: &[u8]) -> Vec<u8> {
    let mut member = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    member.extend_from_slice(deflate);
    let mut crc = flate2::Crc::new();
    crc.update(plain);
    member.extend_from_slice(&crc.sum().to_le_bytes());
    member.extend_from_slice(&crc.amount().to_le_bytes());
    member
}

/// The plain bytes of a stream.
fn plain_of(stream: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    PlainReader::new(stream).read_to_end(&mut plain).unwrap();
    plain
}

/// Rebuilds a stream, with its plain bytes in pieces of `piece` bytes.
fn rebuilt(recipe: &Recipe, plain: &[u8], piece: usize) -> Result<Vec<u8>, DeflateError> {
    let mut rebuilder = Rebuilder::new(recipe.clone(), Vec::new());
    for piece in plain.chunks(piece) {
        rebuilder.write(piece)?;
    }
    rebuilder.finish()
}

/// The encoder of each member of a recipe. `None` means that its tokens are predicted.
fn encoders(recipe: &Recipe) -> Vec<Option<EncoderSpec>> {
    let mut reader = recipe.member_reader();
    let mut encoders = Vec::new();
    while let Some(member) = reader.next_member(recipe.as_bytes()).unwrap() {
        encoders.push(match member.method {
            RebuildMethod::Replay(spec) => Some(spec),
            RebuildMethod::Predict(_) => None,
        });
    }
    encoders
}

/// Analyzes a stream, rebuilds it, compares the result, and returns the recipe.
fn round_trip(stream: &[u8]) -> Recipe {
    let recipe = analyze(|| Ok(stream), &GENEROUS).unwrap();
    let parsed = Recipe::parse(recipe.as_bytes().to_vec()).unwrap();
    assert_eq!(parsed, recipe);
    let plain = plain_of(stream);
    assert_eq!(recipe.plain_size(), plain.len() as u64);
    assert_eq!(recipe.compressed_size(), stream.len() as u64);
    let piece = plain.len() / 3 + 1;
    for piece in [1 << 20, piece, 1 + piece % 1000] {
        assert!(
            rebuilt(&recipe, &plain, piece).unwrap() == stream,
            "{piece}"
        );
    }
    recipe
}
