//! `pgzip`: pieces of a stream that are compressed in parallel.
//!
//! The stream is cut into pieces of equal size. The dictionary of a piece is the last 16 KiB of the
//! previous piece; there is none if that piece had at most 16 KiB. Each piece ends with an empty
//! stored block. The last piece, which may be empty, is followed by the end of the stream. A flush
//! ends a piece early.

use super::restart::RestartEncoder;
use crate::bits::BitWriter;
use crate::encoder::Encoder;

/// The number of bytes of a dictionary. The size of the pieces must be larger.
pub(super) const DICTIONARY: usize = 16_384;

/// Compresses the pieces of a stream one after the other.
#[derive(Debug)]
pub(super) struct ParallelEncoder {
    piece: Box<dyn RestartEncoder>,
    piece_size: usize,
    /// The number of bytes in the piece.
    written: usize,
    /// The last bytes of the piece.
    tail: Vec<u8>,
}

impl ParallelEncoder {
    pub(super) fn new(piece: Box<dyn RestartEncoder>, piece_size: usize) -> Self {
        Self {
            piece,
            piece_size,
            written: 0,
            tail: Vec::with_capacity(2 * DICTIONARY),
        }
    }

    fn end_piece(&mut self, out: &mut BitWriter) {
        self.piece.flush(out);
        if self.written <= DICTIONARY {
            self.tail.clear();
        }
        self.piece.restart(&self.tail);
        self.tail.clear();
        self.written = 0;
    }

    /// Keeps the last bytes of `plain`, from which the next piece gets its dictionary.
    fn remember(&mut self, plain: &[u8]) {
        let last = &plain[plain.len().saturating_sub(DICTIONARY)..];
        let kept = self.tail.len().min(DICTIONARY - last.len());
        self.tail.drain(..self.tail.len() - kept);
        self.tail.extend_from_slice(last);
    }
}

impl Encoder for ParallelEncoder {
    fn write(&mut self, mut plain: &[u8], out: &mut BitWriter) {
        while !plain.is_empty() {
            let room = self.piece_size - self.written;
            let (now, later) = plain.split_at(plain.len().min(room));
            self.piece.write(now, out);
            self.written += now.len();
            self.remember(now);
            if self.written == self.piece_size {
                self.end_piece(out);
            }
            plain = later;
        }
    }

    fn flush(&mut self, out: &mut BitWriter) {
        self.end_piece(out);
    }

    fn finish(&mut self, out: &mut BitWriter) {
        self.end_piece(out);
        self.piece.finish(out);
    }

    fn writes_empty_blocks(&self) -> bool {
        true
    }
}
