//! Resolves an image that a manifest takes from an archive, without the network.

use super::locked::LockedImage;
use super::request::ImageRequest;
use super::resolve;
use crate::{LocalPlace, ResolveError, Resolver};
use landfall_content::archives::ImageInArchive;
use std::sync::Arc;

/// Resolves `request` for the archive at `place`: reads the image with all its manifests and blobs
/// into the store.
pub(super) async fn resolve(
    resolver: &Resolver,
    request: &ImageRequest,
    place: &LocalPlace,
) -> Result<LockedImage, ResolveError> {
    if resolver.signatures.applies_to(&request.name) {
        return Err(
            "a rule of `verify` requires a signature, and an image of an archive has none; add a \
             rule with `none` and the reason"
                .into(),
        );
    }
    let path = place.path.clone();
    let name = request.name.clone();
    let limits = *resolver.limits();
    let opening = tokio::task::spawn_blocking(move || ImageInArchive::open(&path, &name, &limits));
    // the message names a path of this machine
    let fault = |why: String| ResolveError::local(format!("{}: {why}", place.path.display()));
    let archive = Arc::new(opening.await?.map_err(fault)?);
    let request = ImageRequest {
        referrers: false,
        ..request.clone()
    };
    let offline = resolver.with_archived_image(archive.clone());
    let top = archive.top.digest.to_string();
    let mut image = resolve::resolve(&offline, &request, &top).await?;
    image.archive = Some(
        place
            .path_in_lock(&resolver.lock_folder)
            .unwrap_or_default(),
    );
    let blobs = image.blobs.clone();
    let disk = resolver.disk.clone();
    let progress = resolver.progress.clone();
    let storing = tokio::task::spawn_blocking(move || {
        let lacking = blobs.into_iter();
        let lacking = lacking.filter(|blob| !disk.has(&blob.digest, blob.size).unwrap_or(false));
        archive.import(&lacking.collect::<Vec<_>>(), &disk, &*progress)
    });
    storing.await?.map_err(fault)?;
    Ok(image)
}
