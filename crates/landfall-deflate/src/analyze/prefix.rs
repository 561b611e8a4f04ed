//! The beginning of a deflate stream, from which its encoder is recognized.

use super::{EncoderReplay, ExpectedBytes, PlainPiece};
use crate::encoder::{BlockSize, EncoderSpec, StreamHints};
use crate::framing::gzip_extra_flags;
use crate::inflate::{DecodedToken, DeflateBlock, InflatedPiece};

/// The number of plain bytes that are kept to choose the encoder.
const PREFIX_BYTES: usize = 512 << 10;
/// After this number of consecutive streams that no encoder wrote, only the encoders of earlier
/// streams of the file are tried.
const MAX_MISSES: u32 = 16;
/// The number of blocks that are kept to choose the encoder. It bounds the memory for blocks
/// without plain bytes; a dynamic block takes more than 1 KiB.
const PREFIX_BLOCKS: usize = 8 << 10;

/// The beginning of a deflate stream.
#[derive(Debug, Default)]
pub(super) struct StreamPrefix {
    pub(super) plain: Vec<u8>,
    pub(super) blocks: Vec<DeflateBlock>,
    pub(super) tokens: Vec<DecodedToken>,
    pub(super) flushes: Vec<u64>,
    pub(super) expected: ExpectedBytes,
    pub(super) is_last: bool,
}

impl StreamPrefix {
    /// Adds the next piece and its compressed bytes.
    pub(super) fn extend(&mut self, piece: &InflatedPiece<'_>, compressed: &[u8], flushes: &[u64]) {
        self.plain.extend_from_slice(piece.plain);
        self.blocks.extend_from_slice(piece.blocks);
        self.tokens.extend_from_slice(piece.tokens);
        self.flushes.extend_from_slice(flushes);
        self.expected.extend(compressed);
        self.is_last = piece.is_last;
    }

    /// Whether there is enough to choose an encoder.
    pub(super) fn is_complete(&self) -> bool {
        self.is_last || self.plain.len() >= PREFIX_BYTES || self.blocks.len() >= PREFIX_BLOCKS
    }

    /// The plain bytes and flushes.
    fn plain_piece(&self) -> PlainPiece<'_> {
        PlainPiece {
            offset: 0,
            bytes: &self.plain,
            flushes: &self.flushes,
            is_last: self.is_last,
        }
    }

    /// The whole prefix as a piece.
    pub(super) fn piece(&self) -> InflatedPiece<'_> {
        InflatedPiece {
            plain_offset: 0,
            plain: &self.plain,
            blocks: &self.blocks,
            tokens: &self.tokens,
            is_last: self.is_last,
        }
    }

    /// The size of the first block, if it ended because it was full.
    fn full_block(&self) -> Option<BlockSize> {
        let [first, second, ..] = self.blocks.as_slice() else {
            return None;
        };
        let size = BlockSize {
            tokens: second.token_offset - first.token_offset,
            plain_bytes: second.plain_offset - first.plain_offset,
        };
        let is_followed = second.plain_offset < self.plain.len() as u64;
        (size.tokens > 0 && is_followed && !second.is_flush()).then_some(size)
    }

    fn hints(&self, header: &[u8]) -> StreamHints {
        let distances = self.tokens.iter().filter_map(|token| token.as_match());
        StreamHints {
            gzip_extra_flags: gzip_extra_flags(header),
            zlib_header: header.try_into().ok(),
            longest_distance: distances.map(|(_, distance)| distance).max().unwrap_or(0) as u32,
            first_block_tokens: match self.blocks.as_slice() {
                [first, second, ..] if !second.is_flush() => {
                    Some(second.token_offset - first.token_offset)
                }
                _ => None,
            }
            .filter(|tokens| *tokens > 0),
            full_block: self.full_block(),
            has_flushes: !self.flushes.is_empty(),
        }
    }
}

/// Selects encoders among those that write a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MatchesWanted {
    /// The first one.
    First,
    /// Those that wrote earlier streams of the file. If none of these writes the prefix, all other
    /// encoders that write it.
    OfKnownEncoders,
    /// All.
    All,
}

/// The encoders that are tried for the next deflate stream of a file.
#[derive(Debug, Default)]
pub(super) struct EncoderCandidates {
    /// The encoders that wrote earlier streams, the latest first.
    known: Vec<EncoderSpec>,
    /// The number of streams in a row that no encoder wrote.
    misses: u32,
}

impl EncoderCandidates {
    /// The encoders that write the prefix: at most one if `wanted` is [`MatchesWanted::First`] or
    /// the prefix is the whole stream. Also returns whether no other encoders remain to be tried
    /// for the stream.
    pub(super) fn matching(
        &mut self,
        prefix: &StreamPrefix,
        header: &[u8],
        wanted: MatchesWanted,
    ) -> (Vec<EncoderReplay>, bool) {
        let mut replays = Vec::new();
        let most = if prefix.is_last || wanted == MatchesWanted::First {
            1
        } else {
            usize::MAX
        };
        // one program usually writes all streams of a file, and each further encoder costs time
        add_matching(prefix, &self.known, &mut replays, most);
        let is_enough = replays.len() >= most
            || !replays.is_empty() && wanted == MatchesWanted::OfKnownEncoders;
        if !is_enough && self.misses < MAX_MISSES {
            let mut others = EncoderSpec::candidates(&prefix.hints(header));
            others.retain(|spec| !self.known.contains(spec));
            add_matching(prefix, &others, &mut replays, most);
        }
        (replays, !is_enough)
    }

    /// Notes which encoder wrote a stream, if any.
    pub(super) fn note(&mut self, found: Option<EncoderSpec>) {
        let Some(spec) = found else {
            self.misses += 1;
            return;
        };
        self.misses = 0;
        self.known.retain(|known| *known != spec);
        self.known.insert(0, spec);
    }
}

/// Adds those of `specs` that write the prefix, until there are `most`.
fn add_matching(
    prefix: &StreamPrefix,
    specs: &[EncoderSpec],
    replays: &mut Vec<EncoderReplay>,
    most: usize,
) {
    let piece = prefix.plain_piece();
    for spec in specs {
        if replays.len() >= most {
            return;
        }
        let mut replay = EncoderReplay::new(*spec);
        if replay.matches(&piece, &prefix.expected) {
            replays.push(replay);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::{BitReader, BitWriter};
    use crate::encoder::vectors;
    use crate::encoder::zlib::GnuGzip;
    use crate::inflate::Inflater;

    /// The beginning of a raw stream.
    fn prefix_of(stream: &[u8]) -> StreamPrefix {
        let mut input = BitReader::new(stream);
        let mut inflater = Inflater::new();
        inflater.record_tokens(true);
        let mut prefix = StreamPrefix::default();
        while !prefix.is_complete() {
            input.set_mark();
            inflater.step(&mut input).unwrap();
            prefix.extend(&inflater.piece(), input.since_mark(), &[]);
        }
        prefix
    }

    #[test]
    fn blocks_without_plain_bytes_complete_a_prefix() {
        let mut out = BitWriter::default();
        for _ in 0..3 * PREFIX_BLOCKS {
            // a fixed block that has only the symbol for its end
            out.write(1 << 1, 10);
        }
        let prefix = prefix_of(&out.bytes);
        assert!(prefix.plain.is_empty() && !prefix.is_last);
        assert!(prefix.blocks.len() < 2 * PREFIX_BLOCKS);
    }

    #[test]
    fn the_encoder_of_a_stream_is_among_its_candidates() {
        // every third encoder, to save time
        let specs = EncoderSpec::candidates(&StreamHints::default());
        let mut missing = Vec::new();
        for input in vectors::inputs() {
            let plain = &input.plain[..input.plain.len().min(600_000)];
            for spec in specs.iter().step_by(3) {
                let mut out = BitWriter::default();
                let mut encoder = spec.start();
                encoder.write(plain, &mut out);
                encoder.finish(&mut out);
                let hints = prefix_of(&out.bytes).hints(&[]);
                if !EncoderSpec::candidates(&hints).contains(spec) {
                    missing.push(format!("{spec:?}: {}: {hints:?}", input.name));
                }
            }
        }
        assert!(missing.is_empty(), "{missing:#?}");
    }

    #[test]
    fn a_full_block_excludes_the_encoders_with_blocks_of_another_size() {
        let plain: Vec<u8> = vectors::inputs()
            .into_iter()
            .filter(|input| input.name == "text-400000")
            .flat_map(|input| input.plain)
            .collect();
        let gnu = StreamHints {
            gzip_extra_flags: Some(0),
            ..StreamHints::default()
        };
        let wanted = EncoderSpec::GnuGzip(GnuGzip::new(6).unwrap());
        assert!(EncoderSpec::candidates(&gnu).contains(&wanted));
        let mut encoder = wanted.start();
        let mut out = BitWriter::default();
        encoder.write(&plain, &mut out);
        encoder.finish(&mut out);
        // flags 0 and the system Unix at their offsets in a gzip header
        let header = [0, 0, 0, 0, 0, 0, 0, 0, 0, 3];
        let candidates = EncoderSpec::candidates(&prefix_of(&out.bytes).hints(&header));
        assert!(candidates.contains(&wanted), "{candidates:?}");
        // Go and klauspost/compress, as recipes record them
        let is_flate_6 = |spec: &EncoderSpec| matches!(spec.to_bytes()[..], [1 | 2, _, 6, ..]);
        assert!(!candidates.iter().any(is_flate_6), "{candidates:?}");
    }
}
