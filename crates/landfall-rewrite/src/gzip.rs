//! Gzip: compression with reproducible output, and decompression with a limit for the result.

use base64::Engine as _;
use base64::alphabet::{Alphabet, STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
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

// Decodes base64, and encodes changed content in the style of the original.

/// The style of a base64 text.
pub(super) struct Base64Style {
    alphabet: &'static Alphabet,
    padded: bool,
    /// The length of all lines except the last; `None` if there is only one line.
    width: Option<usize>,
}

impl Base64Style {
    /// The style of `written`. `None` if its lines have different lengths, so that they could not
    /// be restored.
    pub(super) fn read(written: &str) -> Option<Base64Style> {
        let mut lines = written.split('\n').map(|line| line.trim_end_matches('\r'));
        let first = lines.next().filter(|line| !line.is_empty())?.len();
        let rest: Vec<usize> = lines.map(str::len).collect();
        let even = rest.iter().rev().skip(1).all(|len| *len == first);
        let fits = rest.last().is_none_or(|last| *last <= first && *last > 0);
        (even && fits).then_some(())?;
        // the two alphabets differ in these characters only (RFC 4648, 5)
        let alphabet = if written.contains(['-', '_']) {
            &URL_SAFE
        } else {
            &STANDARD
        };
        let chars = written
            .bytes()
            .filter(|byte| !byte.is_ascii_whitespace())
            .count();
        Some(Base64Style {
            alphabet,
            // a text whose length is a multiple of 4 is padded or needs no padding
            padded: chars % 4 == 0,
            width: (!rest.is_empty()).then_some(first),
        })
    }

    fn engine(&self) -> GeneralPurpose {
        let config = GeneralPurposeConfig::new()
            .with_encode_padding(self.padded)
            .with_decode_padding_mode(DecodePaddingMode::Indifferent);
        GeneralPurpose::new(self.alphabet, config)
    }

    pub(super) fn decode(&self, written: &str) -> Option<Vec<u8>> {
        let packed: String = written
            .chars()
            .filter(|c| !matches!(c, '\n' | '\r'))
            .collect();
        self.engine().decode(packed).ok()
    }

    pub(super) fn encode(&self, bytes: &[u8]) -> String {
        let text = self.engine().encode(bytes);
        let Some(width) = self.width else { return text };
        let lines = text
            .as_bytes()
            .chunks(width)
            .map(|line| String::from_utf8_lossy(line).into_owned());
        lines.collect::<Vec<_>>().join("\n")
    }
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
