//! The checksums of gzip (CRC-32) and zlib (Adler-32).

use super::format::StreamFormat;

/// Tables for 16 bytes at a time: `TABLES[n][b]` is the CRC of byte `b` and `n` zero bytes.
static TABLES: [[u32; 256]; 16] = {
    let mut tables = [[0; 256]; 16];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = (crc >> 1) ^ (0xedb8_8320 * (crc & 1));
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut table = 1;
    while table < 16 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[table - 1][byte];
            tables[table][byte] = (before >> 8) ^ tables[0][(before & 0xff) as usize];
            byte += 1;
        }
        table += 1;
    }
    tables
};

/// Continues the CRC-32 `crc` of earlier bytes with `bytes`.
fn crc32(crc: u32, bytes: &[u8]) -> u32 {
    let (chunks, rest) = bytes.as_chunks::<16>();
    let mut crc = !crc;
    for chunk in chunks {
        let [a, b, c, d, rest @ ..] = *chunk;
        let low = crc ^ u32::from_le_bytes([a, b, c, d]);
        let mixed = low
            .to_le_bytes()
            .into_iter()
            .chain(rest)
            .zip(TABLES.iter().rev());
        crc = mixed.fold(0, |sum, (byte, table)| sum ^ table[usize::from(byte)]);
    }
    for byte in rest {
        crc = (crc >> 8) ^ TABLES[0][usize::from(crc as u8 ^ byte)];
    }
    !crc
}

/// Continues the Adler-32 `adler` of earlier bytes with `bytes`.
fn adler32(adler: u32, bytes: &[u8]) -> u32 {
    const MODULUS: u32 = 65521;
    // the most bytes after which the sums still fit into 32 bits (RFC 1950, section 9)
    const CHUNK: usize = 5552;
    let mut low = adler & 0xffff;
    let mut high = adler >> 16;
    for chunk in bytes.chunks(CHUNK) {
        for &byte in chunk {
            low += u32::from(byte);
            high += low;
        }
        low %= MODULUS;
        high %= MODULUS;
    }
    high << 16 | low
}

/// The checksum and length of the plain bytes of one member.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlainChecksum {
    format: StreamFormat,
    sum: u32,
    length: u32,
}

impl PlainChecksum {
    /// The checksum of no bytes.
    pub(crate) fn new(format: StreamFormat) -> Self {
        let sum = u32::from(format == StreamFormat::Zlib);
        Self {
            format,
            sum,
            length: 0,
        }
    }

    /// Adds the next plain bytes.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        match self.format {
            StreamFormat::Gzip => self.sum = crc32(self.sum, bytes),
            StreamFormat::Zlib => self.sum = adler32(self.sum, bytes),
            StreamFormat::Raw => {}
        }
        self.length = self.length.wrapping_add(bytes.len() as u32);
    }

    /// The trailer of a correct member, in the first [`StreamFormat::trailer_bytes`] bytes.
    pub(crate) fn trailer(&self) -> [u8; 8] {
        let mut trailer = [0; 8];
        if self.format == StreamFormat::Zlib {
            trailer[..4].copy_from_slice(&self.sum.to_be_bytes());
        } else {
            trailer[..4].copy_from_slice(&self.sum.to_le_bytes());
            trailer[4..].copy_from_slice(&self.length.to_le_bytes());
        }
        trailer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_the_standards() {
        assert_eq!(crc32(0, b"123456789"), 0xcbf4_3926);
        assert_eq!(adler32(1, b"Wikipedia"), 0x11e6_0398);
        let bytes: Vec<u8> = (0..20_000_u32).map(|at| ((at * at) >> 5) as u8).collect();
        for split in [0, 1, 7, 9, 5553, 19_999] {
            let (first, second) = bytes.split_at(split);
            assert_eq!(crc32(crc32(0, first), second), crc32(0, &bytes));
            assert_eq!(adler32(adler32(1, first), second), adler32(1, &bytes));
        }
    }
}
