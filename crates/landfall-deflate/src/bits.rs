//! Reads and writes bits, least significant first (RFC 1951, section 3.1.1).

mod reader;

pub(crate) use reader::BitReader;

/// Collects bits and appends whole bytes to `bytes`. The owner of the writer takes finished bytes
/// away as often as it likes; an encoder only appends.
#[derive(Debug, Default)]
pub(crate) struct BitWriter {
    /// The finished bytes that nobody has taken yet.
    pub(crate) bytes: Vec<u8>,
    pending: u64,
    pending_bits: u32,
}

impl BitWriter {
    /// Appends the low `count` bits of `bits`. `count` is at most 32, and the bits above `count`
    /// are zero.
    #[inline]
    pub(crate) fn write(&mut self, bits: u32, count: u32) {
        debug_assert!(count <= 32 && u64::from(bits) >> count == 0);
        self.pending |= u64::from(bits) << self.pending_bits;
        self.pending_bits += count;
        if self.pending_bits >= 32 {
            self.bytes
                .extend_from_slice(&(self.pending as u32).to_le_bytes());
            self.pending >>= 32;
            self.pending_bits -= 32;
        }
    }

    /// Pads with zero bits up to the next byte boundary.
    pub(crate) fn align(&mut self) {
        self.pending_bits = self.pending_bits.next_multiple_of(8);
        while self.pending_bits > 0 {
            self.bytes.push(self.pending as u8);
            self.pending >>= 8;
            self.pending_bits -= 8;
        }
    }

    /// Appends whole bytes. The writer must be aligned.
    pub(crate) fn write_bytes(&mut self, bytes: &[u8]) {
        debug_assert!(self.pending_bits == 0);
        self.bytes.extend_from_slice(bytes);
    }

    /// The number of bits after the last byte boundary, 0 to 7.
    pub(crate) fn bits_past_byte(&self) -> u32 {
        self.pending_bits % 8
    }
}
