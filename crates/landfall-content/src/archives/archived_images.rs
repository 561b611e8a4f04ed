//! Images of archives next to the lock as a source of parts, for a destination that is not a store
//! on disk: an object store or a registry.

use super::ImageInArchive;
use crate::{
    EntryPart, LocalContent, LocalForm, OpenedPart, PartOrigin, PartSource, path_below,
    read_failure,
};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use landfall_http::{Activity, ByteStream, ErrorKind, HttpError, OnceMap};
use landfall_model::{Descriptor, ImageRef, Limits};
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

/// The size of the pieces in which blobs are read, in bytes.
const PIECE: u64 = 256 << 10;

/// A source that reads the parts of archived images from their archives, and all others from
/// another source.
///
/// Each blob is read by a walk through the archive from its beginning, which skips other members of
/// an uncompressed archive by seeking. [`ImageInArchive::import`] reads all blobs in one walk, for
/// destinations that take them in any order.
pub struct ArchivedImages {
    upstream: Arc<dyn PartSource>,
    /// The folder of the lock, to which the paths of archives are relative.
    folder: PathBuf,
    limits: Limits,
    activity: Activity,
    /// The images by archive and name: finding one may hash all layers of its archive.
    images: OnceMap<(String, ImageRef), Arc<ImageInArchive>>,
}

impl ArchivedImages {
    /// Puts the archives next to the lock in `folder` in front of `upstream`. Work on them counts
    /// for `activity`.
    pub fn new(
        upstream: Arc<dyn PartSource>,
        folder: PathBuf,
        limits: Limits,
        activity: Activity,
    ) -> ArchivedImages {
        ArchivedImages {
            upstream,
            folder,
            limits,
            activity,
            images: OnceMap::default(),
        }
    }

    async fn open_archived(
        &self,
        path: &str,
        name: &ImageRef,
        blob: &Descriptor,
    ) -> Result<OpenedPart, HttpError> {
        let unreadable = |why: String| HttpError::new(ErrorKind::Local, read_failure(path, &why));
        let find = || async {
            let busy = self.activity.busy();
            let (folder, below, name, limits) = (
                self.folder.clone(),
                path.to_owned(),
                name.clone(),
                self.limits,
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
        let image = self.images.get_or_try_init(key, find).await?;
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
        let member = member.to_owned();
        Ok(OpenedPart::unchecked(0, self.stream(image, member)))
    }

    /// Reads a member of the archive of `image`.
    fn stream(&self, image: Arc<ImageInArchive>, member: String) -> ByteStream {
        let (sender, receiver) = mpsc::channel::<Result<Bytes, HttpError>>(2);
        let busy = self.activity.busy();
        spawn_blocking(move || {
            let mut is_over = false;
            let read = image.members(&mut |found| {
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
}

impl PartSource for ArchivedImages {
    fn host<'a>(&self, part: &'a EntryPart) -> &'a str {
        self.upstream.host(part)
    }

    fn open<'a>(
        &'a self,
        part: &'a EntryPart,
        offset: u64,
    ) -> BoxFuture<'a, Result<OpenedPart, HttpError>> {
        match &part.origin {
            PartOrigin::Local(LocalContent {
                path: Some(path),
                form: LocalForm::Image(name),
            }) => Box::pin(self.open_archived(path, name, &part.descriptor)),
            _ => self.upstream.open(part, offset),
        }
    }
}
