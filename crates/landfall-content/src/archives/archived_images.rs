//! Images of archives next to the lock, whose parts are read for a destination that is not a store
//! on disk: an object store or a registry.

use super::ImageInArchive;
use crate::{OpenedPart, path_below, read_failure};
use bytes::Bytes;
use landfall_http::{Activity, ByteStream, ErrorKind, HttpError, OnceMap, Transport};
use landfall_model::{Descriptor, ImageRef};
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

/// The size of the pieces in which blobs are read, in bytes.
const PIECE: u64 = 256 << 10;

/// The images of archives that a run reads, by archive and name: finding one may hash all layers of
/// its archive.
///
/// Each blob is read by a walk through the archive from its beginning, which skips other members of
/// an uncompressed archive by seeking. [`ImageInArchive::import`] reads all blobs in one walk, for
/// destinations that take them in any order.
#[derive(Default)]
pub(crate) struct ArchivedImages(OnceMap<(String, ImageRef), Arc<ImageInArchive>>);

impl ArchivedImages {
    /// Opens a part of the image `name` in the archive at `path`, which is relative to `folder`,
    /// the folder of the lock. Work on the archive counts for the activity of `transport`.
    pub(crate) async fn open(
        &self,
        transport: &Transport,
        folder: &Path,
        path: &str,
        name: &ImageRef,
        blob: &Descriptor,
    ) -> Result<OpenedPart, HttpError> {
        let unreadable = |why: String| HttpError::new(ErrorKind::Local, read_failure(path, &why));
        let find = || async {
            let busy = transport.activity().busy();
            let (folder, below, name, limits) = (
                folder.to_owned(),
                path.to_owned(),
                name.clone(),
                *transport.limits(),
            );
            let finding = spawn_blocking(move || {
                let archive = path_below(&folder, &below).map_err(|error| error.to_string())?;
                ImageInArchive::open(&archive, &name, &limits)
            });
            let found = finding
                .await
                .map_err(|error| unreadable(error.to_string()))?;
            drop(busy);
            found.map(Arc::new).map_err(unreadable)
        };
        let key = (path.to_owned(), name.clone());
        let image = self.0.get_or_try_init(key, find).await?;
        if let Some(manifest) = image.generated_manifest(blob) {
            return Ok(OpenedPart::whole(manifest.to_vec().into()));
        }
        let member = image.member_of(blob).ok_or_else(|| {
            let why = format!(
                "{path} changed after it was locked: it lacks {}; restore the archive, or run \
                 `landfall lock` to accept the change",
                blob.digest
            );
            HttpError::new(ErrorKind::Local, why)
        })?;
        let stream = stream(image.clone(), member.to_owned(), transport.activity());
        Ok(OpenedPart::unchecked(0, stream))
    }
}

/// Reads a member of the archive of `image`.
fn stream(image: Arc<ImageInArchive>, member: String, activity: &Activity) -> ByteStream {
    let (sender, receiver) = mpsc::channel::<Result<Bytes, HttpError>>(2);
    let busy = activity.busy();
    spawn_blocking(move || {
        let mut is_over = false;
        let read = image.archive.members(&mut |found| {
            if found.path != member {
                return Ok(());
            }
            loop {
                let mut piece = Vec::new();
                (&mut *found.reader).take(PIECE).read_to_end(&mut piece)?;
                if piece.is_empty() || sender.blocking_send(Ok(piece.into())).is_err() {
                    is_over = true;
                    // ends the walk
                    return Err(io::Error::other("the member was read"));
                }
            }
        });
        if let Err(error) = read
            && !is_over
        {
            let error = HttpError::new(ErrorKind::Local, format!("cannot read it: {error}"));
            // nobody waits for it any more if this fails
            let _ = sender.blocking_send(Err(error));
        }
        drop(busy);
    });
    Box::pin(futures_util::stream::unfold(
        receiver,
        async |mut pieces| {
            let piece = pieces.recv().await?;
            Some((piece, pieces))
        },
    ))
}
