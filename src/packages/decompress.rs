//! Indexes as repositories compress them, read up to a bound.
//!
//! An index may be a bomb. What it unpacks to is bounded by the caller, who knows the size that signed metadata give,
//! and the memory of a decoder by [`Limits`].

use crate::model::Limits;
use flate2::bufread::MultiGzDecoder;
use lzma_rust2::XzReader;
use std::io::{self, BufRead, Read};

/// How an index is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compression {
    /// Not at all.
    Plain,
    /// gzip, `.gz`.
    Gzip,
    /// xz, `.xz`.
    Xz,
    /// Zstandard, `.zst`.
    Zstd,
}

impl Compression {
    /// That of the file at `path`, by the end of its name; `None` for one that landfall does not read.
    pub(crate) fn of(path: &str) -> Option<Compression> {
        let name = path.rsplit('/').next().unwrap_or(path);
        match name.rsplit_once('.').map(|(_, end)| end) {
            Some("gz") => Some(Compression::Gzip),
            Some("xz") => Some(Compression::Xz),
            Some("zst") => Some(Compression::Zstd),
            Some("bz2" | "lzma" | "lz4" | "zck" | "lz" | "br") => None,
            _ => Some(Compression::Plain),
        }
    }
}

/// What `compressed` unpacks to, while it is read: at most `most` bytes, and an error where there are more.
///
/// # Errors
/// When no decoder can be made. Reading fails where the bytes are damaged or cut short.
pub(crate) fn decompressed<'a>(
    compressed: impl BufRead + 'a,
    by: Compression,
    most: u64,
    limits: &Limits,
) -> io::Result<Box<dyn Read + 'a>> {
    let window = limits.decoder_window;
    Ok(match by {
        Compression::Plain => bounded(compressed, most),
        Compression::Gzip => bounded(MultiGzDecoder::new(compressed), most),
        // the window, and what the decoder itself takes
        Compression::Xz => {
            bounded(XzReader::new_mem_limit(compressed, true, (window >> 10) as u32 + 1024), most)
        }
        Compression::Zstd => {
            let mut decoder = zstd::Decoder::with_buffer(compressed)?;
            decoder.window_log_max(window.ilog2())?;
            bounded(decoder, most)
        }
    })
}

/// What `compressed` unpacks to, at most `most` bytes.
///
/// # Errors
/// When it is damaged, cut short, or larger.
pub(crate) fn unpacked(
    compressed: &[u8],
    by: Compression,
    most: u64,
    limits: &Limits,
) -> io::Result<Vec<u8>> {
    let mut unpacked = Vec::new();
    decompressed(compressed, by, most, limits)?.read_to_end(&mut unpacked)?;
    Ok(unpacked)
}

fn bounded<'a>(reader: impl Read + 'a, most: u64) -> Box<dyn Read + 'a> {
    Box::new(Bounded { reader, left: most, most })
}

/// A reader that fails behind `most` bytes. `io::Take` would end there, as if that were the whole.
struct Bounded<R> {
    reader: R,
    left: u64,
    most: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.left = self.left.checked_sub(read as u64).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidData, format!("it unpacks to more than {} bytes", self.most))
        })?;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    const TEXT: &[u8] = b"Package: a\nVersion: 1\n\n";

    fn xz(text: &[u8]) -> Vec<u8> {
        let mut writer =
            lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::with_preset(6)).unwrap();
        writer.write_all(text).unwrap();
        writer.finish().unwrap()
    }

    fn all(text: &[u8]) -> Vec<(Compression, Vec<u8>)> {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(text).unwrap();
        vec![
            (Compression::Plain, text.to_vec()),
            (Compression::Gzip, gzip.finish().unwrap()),
            (Compression::Xz, xz(text)),
            (Compression::Zstd, zstd::encode_all(text, 3).unwrap()),
        ]
    }

    #[test]
    fn each_form_is_read_and_told_by_its_name() {
        let limits = Limits::default();
        for (by, bytes) in all(TEXT) {
            assert_eq!(unpacked(&bytes, by, TEXT.len() as u64, &limits).unwrap(), TEXT, "{by:?}");
        }
        let named = [("a/Packages.gz", Some(Compression::Gzip)), ("p.xml.zst", Some(Compression::Zstd))];
        for (name, expected) in named {
            assert_eq!(Compression::of(name), expected);
        }
        assert_eq!(Compression::of("dists/a.gz/Packages"), Some(Compression::Plain));
        assert_eq!(Compression::of("Packages.xz"), Some(Compression::Xz));
        assert_eq!(Compression::of("Packages.bz2"), None);
    }

    #[test]
    fn several_streams_one_after_the_other_are_one_text() {
        let limits = Limits::default();
        for (by, bytes) in all(TEXT) {
            let twice = [bytes.clone(), bytes].concat();
            assert_eq!(unpacked(&twice, by, 1 << 20, &limits).unwrap(), [TEXT, TEXT].concat(), "{by:?}");
        }
    }

    #[test]
    fn a_bomb_stops_at_the_bound() {
        let limits = Limits::default();
        for (by, bytes) in all(&vec![0; 4 << 20]) {
            let error = unpacked(&bytes, by, 1 << 20, &limits).unwrap_err();
            assert!(error.to_string().contains("more than 1048576 bytes"), "{by:?}: {error}");
        }
    }

    #[test]
    fn what_is_cut_short_or_damaged_is_an_error() {
        let limits = Limits::default();
        let text: Vec<u8> =
            (0..100_000_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
        for (by, bytes) in all(&text).into_iter().skip(1) {
            for length in [0, 1, 5, bytes.len() / 2, bytes.len() - 1] {
                let read = unpacked(&bytes[..length], by, 1 << 20, &limits);
                assert!(read.is_err() || (length == 0 && read.unwrap().is_empty()), "{by:?} {length}");
            }
            let mut damaged = bytes.clone();
            damaged[bytes.len() / 2] ^= 0x10;
            let read = unpacked(&damaged, by, 1 << 20, &limits);
            assert!(read.is_err() || by == Compression::Zstd && read.unwrap() != text, "{by:?}");
        }
        assert!(unpacked(b"plain text", Compression::Xz, 100, &limits).is_err());
    }

    #[test]
    fn a_decoder_that_wants_much_memory_is_refused() {
        let limits = Limits { decoder_window: 1 << 20, ..Limits::default() };
        let text = vec![7; 3 << 20];
        // preset 6 of xz has a dictionary of 8 MiB
        assert!(unpacked(&xz(&text), Compression::Xz, 8 << 20, &limits).is_err());
        let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
        encoder.window_log(22).unwrap();
        encoder.write_all(&text).unwrap();
        assert!(unpacked(&encoder.finish().unwrap(), Compression::Zstd, 8 << 20, &limits).is_err());
    }
}
