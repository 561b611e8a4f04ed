//! Writes a bundle to an object store while it is packed.

use super::ClientError;
use landfall_bundle::{PackOptions, PackPlan, PackedBundle, StreamTarget, write_stream};
use landfall_content::bucket::{Bucket, ObjectWriter, UploadGuard};
use landfall_content::{BlobRead, unique_blobs};
use landfall_item::lockfile::Lock;
use landfall_model::report::Progress;
use landfall_model::sign::Signer;
use landfall_model::sum_sizes;
use std::path::Path;

/// The upload of a bundle to an object store.
pub(crate) struct BundleUpload(ObjectWriter);

impl BundleUpload {
    /// Begins the upload of a bundle of `lock`. Dropping the guard aborts the upload, so keep the
    /// guard in the task that an interruption drops.
    pub(crate) fn begin(
        bucket: &Bucket,
        name: &str,
        lock: &Lock,
    ) -> Result<(BundleUpload, UploadGuard), ClientError> {
        let blobs = unique_blobs(lock.each_entry());
        let content = sum_sizes(blobs.iter().map(|blob| blob.size));
        // An upload has a limited number of parts, so their size depends on the expected total.
        // 1/64 is added for the lock, the index and the tar headers.
        let expected = content.saturating_add(content / 64);
        let (writer, guard) = ObjectWriter::begin(bucket, name, expected)?;
        Ok((BundleUpload(writer), guard))
    }

    /// Writes the bundle. Messages and the result name it `out`. The object appears only when all
    /// of it was uploaded.
    pub(crate) fn write(
        self,
        plan: &PackPlan,
        blobs: &dyn BlobRead,
        out: &Path,
        options: PackOptions,
        signer: Option<&Signer>,
        progress: &dyn Progress,
    ) -> Result<PackedBundle, ClientError> {
        let BundleUpload(mut writer) = self;
        let target = StreamTarget {
            name: out,
            out: &mut writer,
        };
        let written = write_stream(plan, blobs, target, options, signer, progress)?;
        writer.finish()?;
        Ok(PackedBundle {
            files: vec![out.into()],
            ..written
        })
    }
}
