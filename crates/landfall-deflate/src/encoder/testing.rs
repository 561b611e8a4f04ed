//! A small encoder for tests: fixed blocks of a given number of plain bytes, in which only runs of
//! one byte are matches.

use super::{Encoder, StreamHints};
use crate::bits::BitWriter;
use crate::encoder::block::BlockCodes;
use crate::symbols::{LENGTHS, MAX_LENGTH, MIN_LENGTH, length_index};

/// The parameters of the encoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct RunEncoding {
    /// The number of plain bytes of a block, in units of 1000.
    pub(crate) thousands: u8,
}

impl RunEncoding {
    pub(crate) fn candidates(hints: &StreamHints) -> Vec<Self> {
        if hints.longest_distance > 1 {
            return Vec::new();
        }
        [1, 2, 50].map(|thousands| Self { thousands }).to_vec()
    }

    pub(crate) fn start(self) -> Box<dyn Encoder> {
        Box::new(RunEncoder {
            block_size: usize::from(self.thousands) * 1000,
            pending: Vec::new(),
            codes: BlockCodes::fixed(),
        })
    }

    pub(crate) fn to_bytes(self) -> [u8; 1] {
        [self.thousands]
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        match *bytes {
            [thousands] if thousands > 0 => Some(Self { thousands }),
            _ => None,
        }
    }
}

struct RunEncoder {
    block_size: usize,
    pending: Vec<u8>,
    codes: BlockCodes,
}

impl RunEncoder {
    fn symbol(&self, symbol: usize, out: &mut BitWriter) {
        self.codes.literals.write(symbol, out);
    }

    fn block(&self, plain: &[u8], is_final: bool, out: &mut BitWriter) {
        out.write(2 | u32::from(is_final), 3);
        for run in plain.chunk_by(|a, b| a == b) {
            self.symbol(usize::from(run[0]), out);
            for part in run[1..].chunks(MAX_LENGTH) {
                if part.len() < MIN_LENGTH {
                    part.iter()
                        .for_each(|byte| self.symbol(usize::from(*byte), out));
                    continue;
                }
                let index = length_index(part.len());
                self.symbol(257 + index, out);
                let extra = part.len() - usize::from(LENGTHS[index].base);
                out.write(extra as u32, u32::from(LENGTHS[index].extra));
                // distance 1
                out.write(0, 5);
            }
        }
        self.symbol(256, out);
    }
}

impl Encoder for RunEncoder {
    fn write(&mut self, plain: &[u8], out: &mut BitWriter) {
        self.pending.extend_from_slice(plain);
        while self.pending.len() >= self.block_size {
            let block: Vec<u8> = self.pending.drain(..self.block_size).collect();
            self.block(&block, false, out);
        }
    }

    fn flush(&mut self, out: &mut BitWriter) {
        if !self.pending.is_empty() {
            let block = std::mem::take(&mut self.pending);
            self.block(&block, false, out);
        }
        out.write(0, 3);
        out.align();
        out.write_bytes(&[0, 0, 0xff, 0xff]);
    }

    fn finish(&mut self, out: &mut BitWriter) {
        let block = std::mem::take(&mut self.pending);
        self.block(&block, true, out);
        out.align();
    }
}
