//! Bundles in an object store, which are named in place of a file, `s3://bucket/bundle.tar.zst`:
//! read, and written.

use crate::cli::shared::{Context, Failure};
use crate::client::ClientError;
use landfall_bundle::{Bundle, PackOptions, PackPlan, PackedBundle, write_stream};
use landfall_content::bucket::{Bucket, Location, ObjectWriter, OpenObject, UploadGuard};
use landfall_content::{BlobRead, stored_once};
use landfall_item::lockfile::Lock;
use landfall_model::Limits;
use landfall_model::report::{Progress, TransferSide};
use landfall_model::sign::Signer;
use std::path::Path;
use std::sync::Arc;

/// Whether this names an object, not a file.
pub(crate) fn is_remote(path: &Path) -> bool {
    path.to_str().is_some_and(Location::is_meant)
}

/// The bundle at `path`, opened by its end; `None` where that is a file.
///
/// # Errors
/// When it is not there, the object store refuses, or it is no bundle.
pub(crate) fn remote(context: &Context, path: &Path) -> Result<Option<Bundle>, Failure> {
    let Some((bucket, name)) = object(context, path)? else {
        return Ok(None);
    };
    let opened = OpenObject::open(&bucket, &name);
    let object =
        opened.map_err(|error| Failure::from(ClientError::from(error)).on(TransferSide::Source))?;
    Ok(Some(Bundle::open_object(Arc::new(object))?))
}

/// The folder and the name of the object at `path`; `None` where that is a file.
///
/// # Errors
/// When it names no object, or the object store cannot be used (exit 2).
pub(crate) fn object(context: &Context, path: &Path) -> Result<Option<(Bucket, String)>, Failure> {
    let Some(text) = path.to_str().filter(|text| Location::is_meant(text)) else {
        return Ok(None);
    };
    let location: Location = text
        .parse()
        .map_err(|error| Failure::usage(format!("{error}")))?;
    let (folder, name) = location.split();
    if name.is_empty() {
        return Err(Failure::usage(format!(
            "{text} is a bucket; name a bundle in it"
        )));
    }
    // one connection for each answer under way: whoever reads says how many these are
    let limits = Limits {
        per_host: context.limits.requests.max(context.limits.per_host),
        ..context.limits
    };
    Ok(Some((
        context.client_beside(limits)?.bucket(&folder)?,
        name.to_owned(),
    )))
}

/// A bundle that is written to an object.
pub(crate) struct Upload(ObjectWriter);

impl Upload {
    /// Begins the upload of a bundle of `lock`. Whoever may be interrupted holds the guard.
    ///
    /// # Errors
    /// When the object store does not answer, or refuses.
    pub(crate) fn begin(
        bucket: &Bucket,
        name: &str,
        lock: &Lock,
    ) -> Result<(Upload, UploadGuard), ClientError> {
        let content: u64 = stored_once(lock.each_entry())
            .iter()
            .map(|blob| blob.size)
            .sum();
        // what a bundle has beside content is small
        let (writer, guard) = ObjectWriter::begin(bucket, name, content + content / 64)?;
        Ok((Upload(writer), guard))
    }

    /// Writes the bundle, called `out`; it is there when all of it is.
    ///
    /// # Errors
    /// When content cannot be read, or the object store does not take the bundle.
    pub(crate) fn write(
        self,
        plan: &PackPlan,
        blobs: &dyn BlobRead,
        out: &Path,
        options: PackOptions,
        signer: Option<&Signer>,
        progress: &dyn Progress,
    ) -> Result<PackedBundle, Failure> {
        let Upload(mut writer) = self;
        let written = write_stream(plan, blobs, (out, &mut writer), options, signer, progress)?;
        writer.finish().map_err(ClientError::from)?;
        Ok(PackedBundle {
            files: vec![out.into()],
            ..written
        })
    }
}
