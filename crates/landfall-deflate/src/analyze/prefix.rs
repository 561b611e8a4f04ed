//! The beginning of a deflate stream, from which its encoder is recognized.

use super::replay::{EncoderReplay, ExpectedBytes, PlainPiece};
use crate::encoder::{EncoderSpec, StreamHints};
use crate::framing::gzip_flags;
use crate::inflate::{DecodedToken, DeflateBlock, InflatedPiece};

/// The number of plain bytes that are kept to choose the encoder.
pub(super) const PREFIX_BYTES: usize = 512 << 10;
/// The number of consecutive streams without a known encoder after which only the encoders of
/// earlier streams of the file are tried.
const MAX_MISSES: u32 = 16;
/// The number of blocks that are kept to choose the encoder. It bounds the memory for blocks
/// without plain bytes, of which a dynamic one takes more than 1 KiB.
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

    fn hints(&self, header: &[u8]) -> StreamHints {
        let flags = gzip_flags(header);
        let distances = self.tokens.iter().filter_map(|token| token.as_match());
        StreamHints {
            gzip_extra_flags: flags.map(|(extra_flags, _)| extra_flags),
            gzip_os: flags.map(|(_, os)| os),
            zlib_header: header.try_into().ok(),
            longest_distance: distances.map(|(_, distance)| distance).max().unwrap_or(0) as u32,
            first_block_tokens: match self.blocks.as_slice() {
                [first, second, ..] if !second.is_flush() => {
                    Some(second.token_offset - first.token_offset)
                }
                _ => None,
            }
            .filter(|tokens| *tokens > 0),
            has_flushes: !self.flushes.is_empty(),
        }
    }
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
    /// The encoders that write the prefix; at most one if the prefix is the whole stream. If an
    /// encoder of an earlier stream writes it, others are tried only if `tries_all` is set and the
    /// prefix is not the whole stream.
    pub(super) fn matching(
        &mut self,
        prefix: &StreamPrefix,
        header: &[u8],
        tries_all: bool,
    ) -> CandidateMatches {
        let mut replays = Vec::new();
        // one program usually writes all streams of a file, and each further encoder costs time
        add_matching(prefix, &self.known, &mut replays);
        let is_enough = !replays.is_empty() && (prefix.is_last || !tries_all);
        if !is_enough && self.misses < MAX_MISSES {
            let mut others = EncoderSpec::candidates(&prefix.hints(header));
            others.retain(|spec| !self.known.contains(spec));
            add_matching(prefix, &others, &mut replays);
        }
        CandidateMatches {
            replays,
            were_all_tried: !is_enough,
        }
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

/// The encoders that write a prefix.
pub(super) struct CandidateMatches {
    pub(super) replays: Vec<EncoderReplay>,
    /// Whether no other encoders remain to be tried for the stream.
    pub(super) were_all_tried: bool,
}

/// Adds those of `specs` that write the prefix; at most one if the prefix is the whole stream.
fn add_matching(prefix: &StreamPrefix, specs: &[EncoderSpec], replays: &mut Vec<EncoderReplay>) {
    let piece = prefix.plain_piece();
    for spec in specs {
        let mut replay = EncoderReplay::new(*spec);
        if replay.matches(&piece, &prefix.expected) {
            replays.push(replay);
            if prefix.is_last {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::{BitReader, BitWriter};
    use crate::inflate::Inflater;

    #[test]
    fn blocks_without_plain_bytes_complete_a_prefix() {
        let mut out = BitWriter::default();
        for _ in 0..3 * PREFIX_BLOCKS {
            // a fixed block that has only the symbol for its end
            out.write(1 << 1, 10);
        }
        let mut input = BitReader::new(out.bytes.as_slice());
        let mut inflater = Inflater::new();
        inflater.record_tokens(true);
        let mut prefix = StreamPrefix::default();
        while !prefix.is_complete() {
            input.set_mark();
            inflater.step(&mut input).unwrap();
            prefix.extend(&inflater.piece(), input.since_mark(), &[]);
        }
        assert!(prefix.plain.is_empty() && !prefix.is_last);
        assert!(prefix.blocks.len() < 2 * PREFIX_BLOCKS);
    }
}
