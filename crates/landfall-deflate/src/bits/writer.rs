//! The writer of bits.

/// Collects bits and appends whole bytes to `bytes`. The owner of the writer may remove finished
/// bytes at any time; an encoder only appends.
#[derive(Debug, Default)]
pub(crate) struct BitWriter {
    /// The complete bytes that were not removed yet.
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

    /// Starts to append many short groups of bits, at most `bits` in total.
    pub(crate) fn bulk(&mut self, bits: usize) -> BulkWriter<'_> {
        let mut at = self.bytes.len();
        // each `put` stores eight bytes, however few bits it adds
        self.bytes.resize(at + bits / 8 + 16, 0);
        while self.pending_bits >= 8 {
            self.bytes[at] = self.pending as u8;
            at += 1;
            self.pending >>= 8;
            self.pending_bits -= 8;
        }
        BulkWriter {
            at,
            pending: self.pending,
            pending_bits: self.pending_bits,
            writer: self,
        }
    }

    /// The number of bits after the last byte boundary, 0 to 7.
    pub(crate) fn bits_past_byte(&self) -> u32 {
        self.pending_bits % 8
    }
}

/// Appends groups of bits to a [`BitWriter`] whose space was reserved in advance, without a check
/// for growth at each group.
#[derive(Debug)]
pub(crate) struct BulkWriter<'a> {
    writer: &'a mut BitWriter,
    at: usize,
    pending: u64,
    /// At most 7 between calls.
    pending_bits: u32,
}

impl BulkWriter<'_> {
    /// Appends the low `count` bits of `bits`. `count` is at most 56, and the bits above `count`
    /// are zero.
    #[inline]
    pub(crate) fn put(&mut self, bits: u64, count: u32) {
        debug_assert!(count <= 56 && bits >> count == 0);
        self.pending |= bits << self.pending_bits;
        self.pending_bits += count;
        self.writer.bytes[self.at..self.at + 8].copy_from_slice(&self.pending.to_le_bytes());
        self.at += (self.pending_bits / 8) as usize;
        self.pending >>= self.pending_bits & !7;
        self.pending_bits &= 7;
    }

    /// Releases the reserved space that was not needed.
    pub(crate) fn finish(self) {
        self.writer.bytes.truncate(self.at);
        self.writer.pending = self.pending;
        self.writer.pending_bits = self.pending_bits;
    }
}
