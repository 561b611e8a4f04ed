//! Unpacks indexes. Their size is bounded while they are read: a small file may unpack to more than fits.

use super::error::PackagesError;
use flate2::read::MultiGzDecoder;
use lzma_rust2::XzReader;
use std::io::Read;

/// How an index is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compression {
    /// It is not.
    None,
    /// gzip
    Gzip,
    /// xz
    Xz,
    /// Zstandard
    Zstd,
}

/// Those that are read, the best first.
pub(crate) const COMPRESSIONS: [(&str, Compression); 4] = [
    (".xz", Compression::Xz),
    (".zst", Compression::Zstd),
    (".gz", Compression::Gzip),
    ("", Compression::None),
];

/// Memory that an index may ask for to be unpacked, in KiB: what `xz -9` takes.
const XZ_MEMORY: u32 = 66 << 10;
/// The same for Zstandard, as the exponent of its window.
const ZSTD_WINDOW_LOG: u32 = 27;

/// What `bytes` unpack to, which may be `most` bytes. `name` is for messages.
///
/// # Errors
/// When they are damaged, or unpack to more.
pub(crate) fn decompress(
    name: &str,
    bytes: &[u8],
    compression: Compression,
    most: u64,
) -> Result<Vec<u8>, PackagesError> {
    let damaged =
        |error: std::io::Error| PackagesError::Damaged { name: name.into(), why: error.to_string() };
    let mut reader: Box<dyn Read + '_> = match compression {
        Compression::None => Box::new(bytes),
        Compression::Gzip => Box::new(MultiGzDecoder::new(bytes)),
        Compression::Xz => Box::new(XzReader::new_mem_limit(bytes, true, XZ_MEMORY)),
        Compression::Zstd => {
            let mut decoder = zstd::stream::read::Decoder::new(bytes).map_err(damaged)?;
            decoder.window_log_max(ZSTD_WINDOW_LOG).map_err(damaged)?;
            Box::new(decoder)
        }
    };
    let mut content = Vec::new();
    reader.by_ref().take(most + 1).read_to_end(&mut content).map_err(damaged)?;
    if content.len() as u64 > most {
        return Err(PackagesError::TooLarge { name: name.into(), most });
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        out.write_all(bytes).unwrap();
        out.finish().unwrap()
    }

    #[test]
    fn what_unpacks_to_more_than_it_may_is_refused() {
        let zeros = vec![0; 1 << 20];
        let zstd = zstd::encode_all(&zeros[..], 1).unwrap();
        for (bytes, compression) in [(gzip(&zeros), Compression::Gzip), (zstd, Compression::Zstd)] {
            let most = zeros.len() as u64;
            assert_eq!(decompress("x", &bytes, compression, most).unwrap(), zeros);
            let error = decompress("x", &bytes, compression, most - 1).unwrap_err();
            assert_eq!(error, PackagesError::TooLarge { name: "x".into(), most: most - 1 });
            let cut = decompress("x", &bytes[..bytes.len() / 2], compression, most).unwrap_err();
            assert!(matches!(cut, PackagesError::Damaged { .. }), "{cut}");
        }
    }
}
