//! Reads gzip as `gzip -d` does.

use flate2::bufread::GzDecoder;
use std::io::{self, BufRead, Read};

/// The first byte of a member (RFC 1952, 2.3.1).
const MAGIC: u8 = 0x1f;

/// The unpacked content of a gzip file. Members that follow each other are one text, as parallel
/// compressors write them. What follows the last one is ignored, such as zeros that fill a block.
pub struct GzipReader<R>(Option<GzDecoder<R>>);

impl<R: BufRead> GzipReader<R> {
    /// Returns a reader of what `compressed` unpacks to.
    pub fn new(compressed: R) -> GzipReader<R> {
        GzipReader(Some(GzDecoder::new(compressed)))
    }
}

impl<R: BufRead> Read for GzipReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.0 {
            let read = member.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            let is_followed = member.get_mut().fill_buf()?.first() == Some(&MAGIC);
            let ended = self.0.take().filter(|_| is_followed);
            self.0 = ended.map(|ended| GzDecoder::new(ended.into_inner()));
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use std::io::{BufReader, Write};

    #[test]
    fn members_are_joined_and_what_follows_them_is_ignored() {
        let member = |text: &str| {
            let mut writer = GzEncoder::new(Vec::new(), Compression::fast());
            writer.write_all(text.as_bytes()).unwrap();
            writer.finish().unwrap()
        };
        let unpacked = |bytes: &[u8], piece: usize| {
            let mut text = String::new();
            GzipReader::new(BufReader::with_capacity(piece, bytes)).read_to_string(&mut text)?;
            io::Result::Ok(text)
        };
        let both = [member("one "), member("two")].concat();
        for piece in [1, 2, 7, 1 << 10] {
            for end in [&b""[..], &[0; 700], b"\n", b"signature"] {
                let bytes = [&both, end].concat();
                assert_eq!(unpacked(&bytes, piece).unwrap(), "one two");
            }
            for wrong in [
                &both[..both.len() - 1],
                &both[..9],
                &[&both[..], b"\x1f\x8b"].concat(),
                b"one",
            ] {
                unpacked(wrong, piece).unwrap_err();
            }
        }
    }
}
