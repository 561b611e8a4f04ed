//! Gzip with reproducible output and bounded input.

use flate2::read::MultiGzDecoder;
use flate2::{Compression, GzBuilder};
use std::io::{self, Read, Write};

/// `bytes` gzipped: the same result whenever and wherever it is done.
pub(crate) fn compress(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut writer = GzBuilder::new().mtime(0).operating_system(255).write(Vec::new(), Compression::best());
    writer.write_all(bytes)?;
    writer.finish()
}

/// What `bytes` unpack to; `None` where that is more than `most` bytes.
pub(crate) fn decompress(bytes: &[u8], most: u64) -> io::Result<Option<Vec<u8>>> {
    let mut content = Vec::new();
    MultiGzDecoder::new(bytes).take(most + 1).read_to_end(&mut content)?;
    Ok((content.len() as u64 <= most).then_some(content))
}
