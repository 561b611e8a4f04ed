//! Turns a stream of content into stored frames. The content itself is written elsewhere;
//! [`FrameStream`] computes the bytes around it, and the hash of each frame.

use super::hash::{FrameHash, FrameRecord};
use super::stored::{
    BLOCK, CHECKSUM, CHUNK, block_header, checksum, head, stored_len, stored_position,
};
use sha2::{Digest as _, Sha256};
use xxhash_rust::xxh64::Xxh64;

/// Computes the hash of each stored frame, and the bytes around its content. The content arrives in
/// pieces of any length.
pub(crate) struct FrameStream {
    size: u64,
    at: u64,
    checksum: Xxh64,
    hash: Sha256,
}

/// A frame whose content is complete.
pub(crate) struct ClosedFrame {
    pub frame: FrameRecord,
    /// The headers and the checksum around its content, each with its offset from the beginning of
    /// the first frame.
    pub around: Vec<(u64, Vec<u8>)>,
}

impl FrameStream {
    /// Starts a stream of `size` bytes.
    pub(crate) fn new(size: u64) -> FrameStream {
        FrameStream {
            size,
            at: 0,
            checksum: Xxh64::new(0),
            hash: Sha256::new(),
        }
    }

    /// The number of bytes received.
    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    /// Processes the next bytes and returns the frames that end in them.
    pub(crate) fn push(&mut self, mut bytes: &[u8]) -> Vec<ClosedFrame> {
        let mut closed = Vec::new();
        while !bytes.is_empty() && self.at < self.size {
            let inside = (self.at % CHUNK as u64) as usize;
            let begin = self.at - inside as u64;
            let content = (self.size - begin).min(CHUNK as u64) as usize;
            if inside == 0 {
                self.hash.update(head(content));
            }
            // the hash covers the frame as it is in the file, with the headers of its blocks
            if inside.is_multiple_of(BLOCK) {
                self.hash.update(block_header(content, inside));
            }
            // at most to the end of the block, because the header of the next block follows it
            let run = bytes
                .len()
                .min(BLOCK - inside % BLOCK)
                .min(content - inside);
            let (piece, rest) = bytes.split_at(run);
            self.hash.update(piece);
            self.checksum.update(piece);
            self.at += run as u64;
            bytes = rest;
            if inside + run == content {
                closed.push(self.end(begin, content));
            }
        }
        closed
    }

    fn end(&mut self, begin: u64, content: usize) -> ClosedFrame {
        let checksum = checksum(&self.checksum);
        self.checksum.reset(0);
        self.hash.update(checksum);
        let at = stored_len(begin);
        let blocks = (0..content).step_by(BLOCK).map(|from| {
            let mut before = Vec::new();
            if from == 0 {
                before.extend(head(content));
            }
            before.extend(block_header(content, from));
            (
                stored_position(begin + from as u64).0 - before.len() as u64,
                before,
            )
        });
        let length = stored_len(content as u64);
        let around = blocks
            .chain([(at + length - CHECKSUM as u64, checksum.to_vec())])
            .collect();
        ClosedFrame {
            frame: FrameRecord(length as u32, FrameHash(self.hash.finalize_reset().into())),
            around,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::frame::stored;
    use super::super::stored::runs;
    use super::*;

    fn noise(len: usize) -> Vec<u8> {
        (0..len as u64)
            .map(|n| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8)
            .collect()
    }

    #[test]
    fn content_in_pieces_makes_the_same_frames() {
        for len in [
            0,
            1,
            BLOCK,
            BLOCK + 1,
            CHUNK,
            CHUNK + 1,
            2 * CHUNK + BLOCK + 5,
        ] {
            let content = noise(len);
            let wanted: Vec<u8> = content.chunks(CHUNK).flat_map(stored).collect();
            let hashes: Vec<FrameRecord> = content
                .chunks(CHUNK)
                .map(|chunk| (stored(chunk).len() as u32, FrameHash::of(&stored(chunk))))
                .map(|(length, hash)| FrameRecord(length, hash))
                .collect();
            for step in [len.max(1), 7919, 300_000] {
                let mut file = vec![0; wanted.len()];
                let mut stream = FrameStream::new(len as u64);
                let mut closed = Vec::new();
                for piece in content.chunks(step) {
                    for (at, run) in runs(stream.at(), piece.len()) {
                        file[at as usize..][..run.len()].copy_from_slice(&piece[run]);
                    }
                    closed.extend(stream.push(piece));
                }
                for (at, bytes) in closed.iter().flat_map(|closed| &closed.around) {
                    file[*at as usize..*at as usize + bytes.len()].copy_from_slice(bytes);
                }
                assert!(file == wanted, "{len} in {step}");
                assert_eq!(
                    closed.iter().map(|closed| closed.frame).collect::<Vec<_>>(),
                    hashes
                );
            }
        }
    }
}
