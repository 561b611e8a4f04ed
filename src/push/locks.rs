//! The list of locks at the registry, by which `serve --from` finds files and charts there.

use super::options::PushOptions;
use super::uploader::Uploader;
use landfall_content::TransferError;
use landfall_http::ErrorKind;
use landfall_item::lockfile::Lock;
use landfall_item::lockfile::delivered::{self, DeliveredLocks};
use landfall_model::DestinationMap;
use landfall_model::report::TransferSide;
use std::sync::Arc;

/// Makes `lock` the newest of the list, where it has something that only the list tells of: images
/// are found by their names. Returns why that failed.
pub(super) async fn list(
    uploader: &Uploader,
    lock: &Lock,
    mapping: &DestinationMap,
    options: PushOptions,
) -> Option<String> {
    if !lock
        .items()
        .any(landfall_item::ServedItem::is_served_from_registry)
    {
        return None;
    }
    let place = mapping.own_destination(delivered::REPOSITORY);
    let why = add(uploader, lock, &place.repository, options)
        .await
        .err()?;
    Some(format!(
        "{place}:{}, the list of what was delivered, cannot be written: {why}; until it is, `landfall serve --from` does \
         not find what is new",
        delivered::TAG
    ))
}

async fn add(
    uploader: &Uploader,
    lock: &Lock,
    repository: &str,
    options: PushOptions,
) -> Result<(), TransferError> {
    let known = match uploader.session.manifest(repository, delivered::TAG).await {
        Ok(manifest) => DeliveredLocks::parse(&manifest.bytes).map_err(|why| {
            TransferError::new(
                TransferSide::Destination,
                ErrorKind::Invalid,
                format!("something else stands there: {why}"),
            )
        })?,
        // some registries say 403 for what is not there; the upload will tell
        Err(error) if matches!(error.kind, ErrorKind::NotFound | ErrorKind::Denied) => {
            DeliveredLocks::default()
        }
        Err(error) => return Err(TransferError::destination(error)),
    };
    if known.is_newest(lock) && !options.recheck {
        return Ok(());
    }
    let entry = known.with(lock);
    // one of its own: a receipt tells of what the lock names, not of the list
    let Uploader {
        session,
        source,
        progress,
        limits,
        ..
    } = uploader;
    let own = Uploader::new(
        session.clone(),
        source.clone(),
        progress.clone(),
        *limits,
        options,
    );
    Arc::new(own)
        .deliver(&entry, repository, delivered::TAG)
        .await
        .map(drop)
}
