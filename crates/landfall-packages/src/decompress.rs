//! Decompresses the indexes of repositories and the members of package files, up to a limit.
//!
//! The content may be a decompression bomb. The caller limits the unpacked size, because it may
//! know the size from signed metadata; this module limits the memory of the decoders.

use bzip2::bufread::MultiBzDecoder;
use landfall_model::Failure;
use landfall_model::document::GzipReader;
use lzma_rust2::{LzmaReader, XzReader};
use std::io::{self, BufRead, Read};

/// How an index or a member of a package file is compressed.
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
    /// bzip2; its file names end in `.bz2`.
    Bzip2,
    /// The format of LZMA Utils, which preceded xz; its file names end in `.lzma`.
    Lzma,
}

/// The file name endings of the supported compressions, the preferred one first.
pub const COMPRESSIONS: [(&str, Compression); 6] = [
    (".xz", Compression::Xz),
    (".zst", Compression::Zstd),
    (".gz", Compression::Gzip),
    (".bz2", Compression::Bzip2),
    (".lzma", Compression::Lzma),
    ("", Compression::None),
];

/// The memory limit of the xz and LZMA decoders in KiB: enough for files of `xz -9`.
const XZ_MEMORY: u32 = 66 << 10;
/// The memory limit of the Zstandard decoder, as the base-2 logarithm of its window (128 MiB).
const ZSTD_WINDOW_LOG: u32 = 27;

impl Compression {
    /// Returns the compression of the file at `path` by the ending of its name, or `None` if
    /// landfall cannot read it.
    pub fn of(path: &str) -> Option<Compression> {
        // only the last component counts: folders may contain dots, such as `dists/a.gz/Packages`
        let name = path.rsplit('/').next().unwrap_or(path);
        if let Some((_, "lz4" | "zck" | "lz" | "br")) = name.rsplit_once('.') {
            return None;
        }
        // other endings are part of the name of an uncompressed file, such as `primary.xml`
        let mut all = COMPRESSIONS.into_iter();
        all.find_map(|(ending, compression)| name.ends_with(ending).then_some(compression))
    }
}

/// Returns a reader of the unpacked content of `compressed`. It fails after `limit` bytes, and if
/// the decoder finds that the compressed bytes are damaged or truncated.
///
/// # Errors
/// If no decoder can be created.
pub fn decompressed<'a>(
    compressed: impl BufRead + 'a,
    by: Compression,
    limit: u64,
) -> io::Result<Box<dyn Read + 'a>> {
    // a file may consist of several streams, which together are one text (not in LZMA)
    Ok(match by {
        Compression::None => bounded(compressed, limit),
        Compression::Gzip => bounded(GzipReader::new(compressed), limit),
        Compression::Xz => bounded(XzReader::new_mem_limit(compressed, true, XZ_MEMORY), limit),
        Compression::Zstd => {
            let mut decoder = zstd::Decoder::with_buffer(compressed)?;
            decoder.window_log_max(ZSTD_WINDOW_LOG)?;
            bounded(decoder, limit)
        }
        Compression::Bzip2 => bounded(MultiBzDecoder::new(compressed), limit),
        Compression::Lzma => {
            let mut decoder = LzmaReader::new_mem_limit(compressed, XZ_MEMORY, None)?;
            decoder.set_relaxed_end_condition(false);
            bounded(decoder, limit)
        }
    })
}

/// Returns the unpacked content of `bytes`, at most `limit` bytes. `name` is for messages.
///
/// # Errors
/// If the decoder finds that the bytes are damaged or truncated, or if they unpack to more than
/// `limit` bytes.
pub fn decompress(
    name: &str,
    bytes: &[u8],
    compression: Compression,
    limit: u64,
) -> Result<Vec<u8>, Failure> {
    let mut content = Vec::new();
    let read = decompressed(bytes, compression, limit)
        .and_then(|mut reader| reader.read_to_end(&mut content));
    match read {
        Ok(_) => Ok(content),
        // `Bounded` reports the limit with this kind
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => Err(Failure::failed(format!(
            "{name} unpacks to more than {limit} bytes"
        ))),
        Err(error) => Err(Failure::failed(format!(
            "{name} cannot be decompressed: {error}"
        ))),
    }
}

fn bounded<'a>(reader: impl Read + 'a, limit: u64) -> Box<dyn Read + 'a> {
    Box::new(Bounded {
        reader,
        left: limit,
        limit,
    })
}

/// A reader that fails after `limit` bytes. `io::Take` would report the end of the file instead, so
/// a truncated index would look complete.
struct Bounded<R> {
    reader: R,
    left: u64,
    limit: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.left = self.left.checked_sub(read as u64).ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!("it unpacks to more than {} bytes", self.limit),
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

    fn lzma(text: &[u8], dict_size: u32) -> Vec<u8> {
        let mut options = lzma_rust2::LzmaOptions::with_preset(6);
        options.dict_size = dict_size;
        let mut writer =
            lzma_rust2::LzmaWriter::new_use_header(Vec::new(), &options, None).unwrap();
        writer.write_all(text).unwrap();
        writer.finish().unwrap()
    }

    fn bzip2(text: &[u8]) -> Vec<u8> {
        let mut writer = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::new(9));
        writer.write_all(text).unwrap();
        writer.finish().unwrap()
    }

    fn compress_all(text: &[u8]) -> Vec<(Compression, Vec<u8>)> {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(text).unwrap();
        vec![
            (Compression::None, text.to_vec()),
            (Compression::Gzip, gzip.finish().unwrap()),
            (Compression::Xz, xz(text)),
            (Compression::Zstd, zstd::encode_all(text, 3).unwrap()),
            (Compression::Bzip2, bzip2(text)),
            (Compression::Lzma, lzma(text, 1 << 20)),
        ]
    }

    #[test]
    fn each_compression_is_read_and_recognized_by_its_name() {
        for (by, bytes) in compress_all(TEXT) {
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
        assert_eq!(Compression::of("Packages.bz2"), Some(Compression::Bzip2));
        assert_eq!(Compression::of("Packages.lzma"), Some(Compression::Lzma));
        assert_eq!(Compression::of("Packages.lz4"), None);
    }

    #[test]
    fn concatenated_streams_are_one_text() {
        let mut files = compress_all(TEXT);
        files.retain(|(by, _)| *by != Compression::Lzma);
        for (by, bytes) in files {
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
        for (by, bytes) in compress_all(&vec![0; 4 << 20]) {
            let error = decompress("x", &bytes, by, 1 << 20).unwrap_err();
            assert_eq!(
                error.message, "x unpacks to more than 1048576 bytes",
                "{by:?}"
            );
        }
    }

    #[test]
    fn truncated_and_damaged_bytes_are_errors() {
        let text: Vec<u8> = (0..100_000_u32)
            .flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes())
            .collect();
        for (by, bytes) in compress_all(&text).into_iter().skip(1) {
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
            // LZMA and these Zstandard frames have no checksum, so damage may give other content
            let is_unchecked = [Compression::Zstd, Compression::Lzma].contains(&by);
            assert!(
                read.is_err() || is_unchecked && read.unwrap() != text,
                "{by:?}"
            );
        }
        assert!(decompress("x", b"plain text", Compression::Xz, 100).is_err());
    }

    #[test]
    fn a_file_that_needs_too_much_memory_is_rejected() {
        let text = vec![7; 3 << 20];
        let mut options = lzma_rust2::XzOptions::with_preset(6);
        options.lzma_options.dict_size = 1 << 27;
        let mut writer = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
        writer.write_all(&text).unwrap();
        assert!(decompress("x", &writer.finish().unwrap(), Compression::Xz, 8 << 20).is_err());
        assert!(decompress("x", &lzma(&text, 1 << 27), Compression::Lzma, 8 << 20).is_err());
        let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
        encoder.window_log(28).unwrap();
        encoder.write_all(&text).unwrap();
        assert!(decompress("x", &encoder.finish().unwrap(), Compression::Zstd, 8 << 20).is_err());
    }
}
