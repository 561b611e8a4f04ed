//! Reads and writes bits, least significant first (RFC 1951, section 3.1.1).

use crate::DeflateError;
use std::io::{ErrorKind, Read};

/// The number of bytes that are read from the source at a time.
const READ_BYTES: usize = 64 << 10;

/// Reads bits and bytes from a source, and keeps the bytes since a mark, so that they can be
/// compared with those that an encoder writes.
#[derive(Debug)]
pub(crate) struct BitReader<R> {
    source: R,
    /// The bytes since the mark, or since an earlier position.
    buffer: Vec<u8>,
    /// The index of the first byte that is not in `bits` yet.
    next: usize,
    /// The index of the first byte that `since_mark` returns.
    mark: usize,
    /// The next `count` bits. Above them there may be the bits of the byte at `next`.
    bits: u64,
    count: u32,
    /// The number of bytes of the stream before `buffer`.
    dropped: u64,
    ended: bool,
}

impl<R: Read> BitReader<R> {
    /// Reads from the beginning of `source`.
    pub(crate) fn new(source: R) -> Self {
        Self {
            source,
            buffer: Vec::new(),
            next: 0,
            mark: 0,
            bits: 0,
            count: 0,
            dropped: 0,
            ended: false,
        }
    }

    /// The number of bytes that were consumed completely.
    pub(crate) fn offset(&self) -> u64 {
        self.dropped + self.whole_bytes() as u64
    }

    /// An error at the current position.
    #[cold]
    pub(crate) fn error(&self, reason: &'static str) -> DeflateError {
        DeflateError::Stream {
            offset: self.offset(),
            reason,
        }
    }

    /// The error of a stream that ends before it is complete.
    #[cold]
    fn ends_early(&self) -> DeflateError {
        self.error("the stream ends early")
    }

    /// The index in `buffer` of the first byte that was not consumed completely.
    fn whole_bytes(&self) -> usize {
        self.next - self.count.div_ceil(8) as usize
    }

    /// Sets the mark to the first byte that was not consumed completely.
    pub(crate) fn set_mark(&mut self) {
        self.mark = self.whole_bytes();
    }

    /// The bytes that were consumed completely since the mark.
    pub(crate) fn since_mark(&self) -> &[u8] {
        &self.buffer[self.mark..self.whole_bytes()]
    }

    /// Reads more bytes into `buffer`, unless the source has ended.
    fn read_more(&mut self) -> Result<(), DeflateError> {
        if self.ended {
            return Ok(());
        }
        self.buffer.drain(..self.mark);
        self.next -= self.mark;
        self.dropped += self.mark as u64;
        self.mark = 0;
        let length = self.buffer.len();
        self.buffer.resize(length + READ_BYTES, 0);
        let read = loop {
            match self.source.read(&mut self.buffer[length..]) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                result => break result,
            }
        };
        self.buffer.truncate(length + *read.as_ref().unwrap_or(&0));
        self.ended = read? == 0;
        Ok(())
    }

    /// Loads at least 56 bits, or all bits up to the end of the stream.
    #[inline]
    pub(crate) fn refill(&mut self) -> Result<(), DeflateError> {
        let Some(bytes) = self.buffer[self.next..].first_chunk() else {
            return self.refill_near_end();
        };
        self.bits |= u64::from_le_bytes(*bytes) << self.count;
        let loaded = (63 - self.count) / 8;
        self.next += loaded as usize;
        self.count += 8 * loaded;
        Ok(())
    }

    #[cold]
    fn refill_near_end(&mut self) -> Result<(), DeflateError> {
        // loads fewer than 64 bits, because `refill` shifts by the number of loaded bits
        while self.count < 56 {
            if self.next == self.buffer.len() {
                if self.ended {
                    break;
                }
                self.read_more()?;
                continue;
            }
            self.bits |= u64::from(self.buffer[self.next]) << self.count;
            self.next += 1;
            self.count += 8;
        }
        Ok(())
    }

    /// The loaded bits. Those after the end of the stream are zero.
    #[inline]
    pub(crate) fn peek(&self) -> u64 {
        self.bits
    }

    /// Consumes `count` of the loaded bits.
    #[inline]
    pub(crate) fn consume(&mut self, count: u32) -> Result<(), DeflateError> {
        if count > self.count {
            return Err(self.ends_early());
        }
        self.bits >>= count;
        self.count -= count;
        Ok(())
    }

    /// Consumes `count` of the loaded bits, at most 32, and returns them.
    #[inline]
    pub(crate) fn take(&mut self, count: u32) -> Result<u32, DeflateError> {
        let bits = self.bits & ((1 << count) - 1);
        self.consume(count)?;
        Ok(bits as u32)
    }

    /// Reads `count` bits, at most 32.
    pub(crate) fn read(&mut self, count: u32) -> Result<u32, DeflateError> {
        self.refill()?;
        self.take(count)
    }

    /// Starts to read many short groups of bits from the bytes that are in memory.
    pub(crate) fn bulk(&mut self) -> BulkReader<'_, R> {
        BulkReader {
            next: self.next,
            bits: self.bits,
            count: self.count,
            reader: self,
        }
    }

    /// Skips to the next byte boundary and returns the skipped bits.
    pub(crate) fn align(&mut self) -> u8 {
        let count = self.count % 8;
        let skipped = self.bits & ((1 << count) - 1);
        // the bytes that were loaded ahead are read again
        self.next -= (self.count / 8) as usize;
        self.bits = 0;
        self.count = 0;
        skipped as u8
    }

    /// The next bytes, at least one and at most `limit`. The reader must be aligned.
    pub(crate) fn bytes(&mut self, limit: usize) -> Result<&[u8], DeflateError> {
        if self.next == self.buffer.len() {
            self.read_more()?;
        }
        if self.next == self.buffer.len() {
            return Err(self.ends_early());
        }
        let from = self.next;
        self.next = self.buffer.len().min(from + limit);
        Ok(&self.buffer[from..self.next])
    }

    /// Reads one byte. The reader must be aligned.
    pub(crate) fn byte(&mut self) -> Result<u8, DeflateError> {
        Ok(self.bytes(1)?[0])
    }

    /// The next `count` bytes without consuming them, or fewer at the end of the stream. The reader
    /// must be aligned.
    pub(crate) fn peek_bytes(&mut self, count: usize) -> Result<&[u8], DeflateError> {
        while self.buffer.len() < self.next + count && !self.ended {
            self.read_more()?;
        }
        let end = self.buffer.len().min(self.next + count);
        Ok(&self.buffer[self.next..end])
    }
}

/// Reads groups of bits from the bytes that a [`BitReader`] has in memory. Its position is in
/// variables of its own, which a loop keeps in registers.
#[derive(Debug)]
pub(crate) struct BulkReader<'a, R> {
    reader: &'a mut BitReader<R>,
    next: usize,
    bits: u64,
    count: u32,
}

impl<R> BulkReader<'_, R> {
    /// Loads at least 56 bits. Returns false, and loads nothing, if fewer than eight bytes are left
    /// in memory.
    #[inline]
    pub(crate) fn refill(&mut self) -> bool {
        let Some(bytes) = self.reader.buffer[self.next..].first_chunk() else {
            return false;
        };
        self.bits |= u64::from_le_bytes(*bytes) << self.count;
        let loaded = (63 - self.count) / 8;
        self.next += loaded as usize;
        self.count += 8 * loaded;
        true
    }

    /// The loaded bits.
    #[inline]
    pub(crate) fn peek(&self) -> u64 {
        self.bits
    }

    /// Consumes `count` of the loaded bits.
    #[inline]
    pub(crate) fn consume(&mut self, count: u32) {
        debug_assert!(count <= self.count);
        self.bits >>= count;
        self.count -= count;
    }

    /// Moves the reader to the position that was reached.
    pub(crate) fn finish(self) {
        self.reader.next = self.next;
        self.reader.bits = self.bits;
        self.reader.count = self.count;
    }
}

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

#[cfg(test)]
mod tests {
    use super::{BitWriter, *};

    #[test]
    fn a_refill_may_follow_another_one() {
        let bytes: Vec<u8> = (1..=40).collect();
        // the first refill of a stream, and one near the end of the bytes in memory
        for (before, bits) in [(0, 0), (24, 7)] {
            let mut reader = BitReader::new(bytes[..20].chain(&bytes[20..]));
            (0..before).for_each(|_| assert!(reader.read(bits).is_ok()));
            for _ in 0..3 {
                reader.refill().unwrap();
            }
            reader.align();
            let rest = &bytes[before * bits as usize / 8..];
            assert_eq!(reader.peek_bytes(50).unwrap(), rest);
        }
    }

    #[test]
    fn bits_and_bytes_are_read_as_they_were_written() {
        let mut writer = BitWriter::default();
        for round in 0..10_000_u32 {
            writer.write(round & 0x1f, 5);
            writer.write(round.wrapping_mul(0x9e37_79b9), 32);
        }
        writer.write(1, 3);
        writer.align();
        writer.write_bytes(b"bytes");
        let mut reader = BitReader::new(writer.bytes.as_slice());
        for round in 0..10_000_u32 {
            assert_eq!(reader.read(5).unwrap(), round & 0x1f);
            assert_eq!(reader.read(32).unwrap(), round.wrapping_mul(0x9e37_79b9));
            if round % 100 == 0 {
                reader.set_mark();
            }
        }
        assert_eq!(reader.read(3).unwrap(), 1);
        assert_eq!(reader.align(), 0);
        assert_eq!(reader.peek_bytes(9).unwrap(), b"bytes");
        reader.set_mark();
        assert_eq!(reader.bytes(2).unwrap(), b"by");
        assert_eq!(reader.since_mark(), b"by");
        assert_eq!(reader.bytes(9).unwrap(), b"tes");
        assert!(reader.byte().is_err());
        assert!(reader.read(1).is_err());
        assert_eq!(reader.offset(), writer.bytes.len() as u64);
    }
}
