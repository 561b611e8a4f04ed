//! Gzip: compression with reproducible output, and decompression with a limit for the result.

use flate2::read::MultiGzDecoder;
use flate2::{Compression, GzBuilder};
use std::io::{self, Read, Write};

/// Compresses `bytes`. The result does not depend on the time or the system.
pub(crate) fn compress(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut writer = GzBuilder::new()
        .mtime(0)
        .operating_system(255)
        .write(Vec::new(), Compression::best());
    writer.write_all(bytes)?;
    writer.finish()
}

/// Decompresses `bytes`. `None` if the result has more than `max_bytes` bytes.
pub(crate) fn decompress(bytes: &[u8], max_bytes: u64) -> io::Result<Option<Vec<u8>>> {
    let mut content = Vec::new();
    MultiGzDecoder::new(bytes)
        .take(max_bytes + 1)
        .read_to_end(&mut content)?;
    Ok((content.len() as u64 <= max_bytes).then_some(content))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decompression_stops_at_the_limit() {
        let bytes = compress(b"eight by").unwrap();
        assert_eq!(
            decompress(&bytes, 8).unwrap().as_deref(),
            Some(b"eight by".as_slice())
        );
        assert_eq!(decompress(&bytes, 7).unwrap(), None);
        // several members: the limit applies to the sum of their sizes
        let twice = bytes.repeat(2);
        assert_eq!(
            decompress(&twice, 16).unwrap().as_deref(),
            Some(b"eight byeight by".as_slice())
        );
        assert_eq!(decompress(&twice, 15).unwrap(), None);
        assert!(decompress(&bytes[..bytes.len() - 4], 8).is_err());
    }
}
