//! Indexes as repositories compress them, read up to a bound.
//!
//! An index may be a bomb. What it unpacks to is bounded by the caller, who knows the size that
//! signed metadata give, and the memory of a decoder here.

use super::error::PackagesError;
use flate2::bufread::MultiGzDecoder;
use lzma_rust2::XzReader;
use std::io::{self, BufRead, Read};

/// How an index is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Stored without compression.
    None,
    /// gzip (RFC 1952); its file names end in `.gz`.
    Gzip,
    /// xz; its file names end in `.xz`.
    Xz,
    /// Zstandard (RFC 8878); its file names end in `.zst`.
    Zstd,
}

/// The file name endings of the supported compressions, the preferred one first.
pub const COMPRESSIONS: [(&str, Compression); 4] = [
    (".xz", Compression::Xz),
    (".zst", Compression::Zstd),
    (".gz", Compression::Gzip),
    ("", Compression::None),
];

/// The most memory that an xz decoder may use, in KiB: what `xz -9` needs.
const XZ_MEMORY: u32 = 66 << 10;
/// The same for Zstandard, as the exponent of its window.
const ZSTD_WINDOW_LOG: u32 = 27;

impl Compression {
    /// That of the file at `path`, by the end of its name; `None` for one that landfall does not
    /// read.
    pub fn of(path: &str) -> Option<Compression> {
        let name = path.rsplit('/').next().unwrap_or(path);
        match name.rsplit_once('.').map(|(_, end)| end) {
            Some("gz") => Some(Compression::Gzip),
            Some("xz") => Some(Compression::Xz),
            Some("zst") => Some(Compression::Zstd),
            Some("bz2" | "lzma" | "lz4" | "zck" | "lz" | "br") => None,
            _ => Some(Compression::None),
        }
    }
}

/// What `compressed` unpacks to, while it is read: at most `most` bytes, and an error where there
/// are more.
///
/// # Errors
/// When no decoder can be made. Reading fails where the bytes are damaged or cut short.
pub fn decompressed<'a>(
    compressed: impl BufRead + 'a,
    by: Compression,
    most: u64,
) -> io::Result<Box<dyn Read + 'a>> {
    Ok(match by {
        Compression::None => bounded(compressed, most),
        Compression::Gzip => bounded(MultiGzDecoder::new(compressed), most),
        Compression::Xz => bounded(XzReader::new_mem_limit(compressed, true, XZ_MEMORY), most),
        Compression::Zstd => {
            let mut decoder = zstd::Decoder::with_buffer(compressed)?;
            decoder.window_log_max(ZSTD_WINDOW_LOG)?;
            bounded(decoder, most)
        }
    })
}

/// What `bytes` unpack to, at most `most` bytes. `name` is for messages.
///
/// # Errors
/// When they are damaged, cut short, or unpack to more.
pub fn decompress(
    name: &str,
    bytes: &[u8],
    compression: Compression,
    most: u64,
) -> Result<Vec<u8>, PackagesError> {
    let mut content = Vec::new();
    let read = decompressed(bytes, compression, most)
        .and_then(|mut reader| reader.read_to_end(&mut content));
    match read {
        Ok(_) => Ok(content),
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => Err(PackagesError::TooLarge {
            name: name.into(),
            most,
        }),
        Err(error) => Err(PackagesError::Damaged {
            name: name.into(),
            why: error.to_string(),
        }),
    }
}

fn bounded<'a>(reader: impl Read + 'a, most: u64) -> Box<dyn Read + 'a> {
    Box::new(Bounded {
        reader,
        left: most,
        most,
    })
}

/// Fails after `most` bytes. `io::Take` would report the end there, as if the file were complete.
struct Bounded<R> {
    reader: R,
    left: u64,
    most: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.left = self.left.checked_sub(read as u64).ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!("it unpacks to more than {} bytes", self.most),
            )
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
            (Compression::None, text.to_vec()),
            (Compression::Gzip, gzip.finish().unwrap()),
            (Compression::Xz, xz(text)),
            (Compression::Zstd, zstd::encode_all(text, 3).unwrap()),
        ]
    }

    #[test]
    fn each_form_is_read_and_told_by_its_name() {
        for (by, bytes) in all(TEXT) {
            assert_eq!(
                decompress("x", &bytes, by, TEXT.len() as u64).unwrap(),
                TEXT,
                "{by:?}"
            );
        }
        let named = [
            ("a/Packages.gz", Some(Compression::Gzip)),
            ("p.xml.zst", Some(Compression::Zstd)),
        ];
        for (name, expected) in named {
            assert_eq!(Compression::of(name), expected);
        }
        assert_eq!(
            Compression::of("dists/a.gz/Packages"),
            Some(Compression::None)
        );
        assert_eq!(Compression::of("Packages.xz"), Some(Compression::Xz));
        assert_eq!(Compression::of("Packages.bz2"), None);
    }

    #[test]
    fn several_streams_one_after_the_other_are_one_text() {
        for (by, bytes) in all(TEXT) {
            let twice = [bytes.clone(), bytes].concat();
            assert_eq!(
                decompress("x", &twice, by, 1 << 20).unwrap(),
                [TEXT, TEXT].concat(),
                "{by:?}"
            );
        }
    }

    #[test]
    fn a_bomb_stops_at_the_bound() {
        for (by, bytes) in all(&vec![0; 4 << 20]) {
            let error = decompress("x", &bytes, by, 1 << 20).unwrap_err();
            assert_eq!(
                error,
                PackagesError::TooLarge {
                    name: "x".into(),
                    most: 1 << 20
                },
                "{by:?}"
            );
        }
    }

    #[test]
    fn what_is_cut_short_or_damaged_is_an_error() {
        let text: Vec<u8> = (0..100_000_u32)
            .flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes())
            .collect();
        for (by, bytes) in all(&text).into_iter().skip(1) {
            for length in [0, 1, 5, bytes.len() / 2, bytes.len() - 1] {
                let read = decompress("x", &bytes[..length], by, 1 << 20);
                assert!(
                    read.is_err() || (length == 0 && read.unwrap().is_empty()),
                    "{by:?} {length}"
                );
            }
            let mut damaged = bytes.clone();
            damaged[bytes.len() / 2] ^= 0x10;
            let read = decompress("x", &damaged, by, 1 << 20);
            assert!(
                read.is_err() || by == Compression::Zstd && read.unwrap() != text,
                "{by:?}"
            );
        }
        assert!(decompress("x", b"plain text", Compression::Xz, 100).is_err());
    }

    #[test]
    fn a_decoder_that_wants_much_memory_is_refused() {
        let text = vec![7; 3 << 20];
        let mut options = lzma_rust2::XzOptions::with_preset(6);
        options.lzma_options.dict_size = 1 << 27;
        let mut writer = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
        writer.write_all(&text).unwrap();
        assert!(decompress("x", &writer.finish().unwrap(), Compression::Xz, 8 << 20).is_err());
        let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
        encoder.window_log(28).unwrap();
        encoder.write_all(&text).unwrap();
        assert!(decompress("x", &encoder.finish().unwrap(), Compression::Zstd, 8 << 20).is_err());
    }
}
