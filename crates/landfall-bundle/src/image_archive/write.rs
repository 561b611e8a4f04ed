//! Writes an archive: a tar whose bytes do not depend on the machine or the time.

use super::{ImageArchive, ImageArchiveError};
use crate::tar_header::{END, encode, encoded_len, padding};
use landfall_content::{BlobRead, CopyError, copy_checked};
use landfall_model::report::Progress;
use landfall_model::sum_sizes;
use std::io::Write;

impl ImageArchive {
    /// Size of the archive in bytes.
    pub fn size(&self) -> u64 {
        let computed = self
            .computed
            .iter()
            .map(|(name, bytes)| member(name, bytes.len() as u64));
        let blobs = self
            .blobs
            .iter()
            .map(|(digest, size)| member(&digest.layout_path(), *size));
        sum_sizes(computed.chain(blobs).chain([END.len() as u64]))
    }

    /// The size of all blobs in bytes, which is the total of the progress.
    pub fn blob_bytes(&self) -> u64 {
        sum_sizes(self.blobs.values().copied())
    }

    /// Writes the archive to `out`, from the same content that it was planned from. Each blob is
    /// verified while it is copied; a damaged one leaves the archive without its end.
    ///
    /// # Errors
    /// If content cannot be read or is damaged, and if `out` fails.
    pub fn write(
        &self,
        blobs: &dyn BlobRead,
        out: &mut dyn Write,
        progress: &dyn Progress,
    ) -> Result<(), ImageArchiveError> {
        for (name, bytes) in &self.computed {
            let parts = [
                &encode(name, bytes.len() as u64),
                &bytes[..],
                zero_padding(bytes.len() as u64),
            ];
            parts
                .into_iter()
                .try_for_each(|part| out.write_all(part))
                .map_err(ImageArchiveError::Write)?;
        }
        for (digest, size) in &self.blobs {
            out.write_all(&encode(&digest.layout_path(), *size))
                .map_err(ImageArchiveError::Write)?;
            let copied = copy_checked(blobs, digest, *size, |piece| {
                progress.bytes(piece.len() as u64);
                out.write_all(piece)
            });
            copied.map_err(|error| match error {
                CopyError::Content(error) => ImageArchiveError::Content(error),
                CopyError::Write(error) => ImageArchiveError::Write(error),
            })?;
            out.write_all(zero_padding(*size))
                .map_err(ImageArchiveError::Write)?;
        }
        // written last, so that an archive that was cut off is not a complete tar
        out.write_all(&END)
            .and_then(|()| out.flush())
            .map_err(ImageArchiveError::Write)
    }
}

fn zero_padding(size: u64) -> &'static [u8] {
    &END[..padding(size)]
}

/// The size of a member in the tar, with header and padding.
fn member(name: &str, size: u64) -> u64 {
    encoded_len(name) as u64 + size + padding(size) as u64
}
