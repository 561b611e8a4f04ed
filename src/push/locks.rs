//! Updates the list of locks at the registry. With this list, `serve --from` finds the items that
//! are not images.

use super::state::PushOptions;
use super::uploader::{Uploader, not_delivered};
use landfall_content::registry::{RegistrySession, is_immutable_tag_error};
use landfall_content::{LockEntry, TransferError};
use landfall_item::lockfile::Lock;
use landfall_item::lockfile::delivered::{self, DeliveredLocks};
use landfall_model::DestinationMap;
use landfall_model::report::TransferSide;
use landfall_signature::SignaturePolicy;
use std::sync::Arc;

/// The maximum number of times that the list is written if other pushes replace it at the same
/// time.
const ATTEMPTS: usize = 4;

/// Adds `lock` to the list as its newest lock, if `lock` has items other than images: clients find
/// images by their names. If the list changes, notes that servers must read it again. Returns a
/// message if that fails.
pub(super) async fn record_lock(
    uploader: &Uploader,
    lock: &Lock,
    mapping: &DestinationMap,
    options: &PushOptions,
) -> Option<String> {
    if !lock
        .items()
        .any(landfall_item::LockedItem::is_served_from_registry)
    {
        return None;
    }
    let list = mapping.own_destination(delivered::REPOSITORY);
    let why = match add_to_list(uploader, lock, &list.repository, options).await {
        Ok(is_new) => {
            if is_new {
                uploader.progress.note(&format!(
                    "{list}:{} lists new content: a server that runs `landfall serve --from` \
                     reads it on SIGHUP",
                    delivered::TAG
                ));
            }
            return None;
        }
        Err(why) => why,
    };
    Some(format!(
        "{list}:{}, the list of delivered locks, cannot be written: {why}; until it is written, \
         `landfall serve --from` does not find the new items",
        delivered::TAG
    ))
}

/// Adds `lock` to the list. Returns whether the list changed.
async fn add_to_list(
    uploader: &Uploader,
    lock: &Lock,
    repository: &str,
    options: &PushOptions,
) -> Result<bool, TransferError> {
    // The blobs of the list must not get into the receipt, which covers the items of the lock. So
    // a second uploader, with its own blob locations, uploads them.
    let Uploader {
        session,
        source,
        progress,
        limits,
        ..
    } = uploader;
    let (mut number, mut known) = listed_locks(session, repository).await?;
    if known.is_newest(lock) && !options.recheck {
        return Ok(false);
    }
    let is_new = !known.is_newest(lock);
    let uploader = Arc::new(Uploader::new(
        session.clone(),
        source.clone(),
        progress.clone(),
        *limits,
        options,
        SignaturePolicy::default(),
    ));
    for _ in 0..ATTEMPTS {
        let list = known.with(lock);
        if !put_list(&uploader, &list, repository, number).await? {
            // the tags are immutable, so the list gets a tag of its own
            put_list(&uploader, &list, repository, number + 1).await?;
        }
        // A registry replaces a tag without a condition, so another push that read the list at the
        // same time may have dropped this lock from the list.
        (number, known) = listed_locks(session, repository).await?;
        if known.contains(lock) {
            return Ok(is_new);
        }
    }
    Err(not_delivered(format!(
        "{ATTEMPTS} times, the list lacked this lock after it was written"
    )))
}

/// Puts the list at the tag with this number. Returns `false` if the tag has another list that the
/// registry does not replace.
async fn put_list(
    uploader: &Arc<Uploader>,
    list: &LockEntry,
    repository: &str,
    number: u32,
) -> Result<bool, TransferError> {
    let tag = delivered::tag(number);
    match uploader.deliver_parts(list, repository, &tag).await {
        Ok(_) => Ok(true),
        Err(error)
            if error.side == TransferSide::Destination
                && is_immutable_tag_error(error.why.kind, &error.why.codes) =>
        {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// The locks in the newest list at the registry, and its number; none if there is no list.
async fn listed_locks(
    session: &RegistrySession,
    repository: &str,
) -> Result<(u32, DeliveredLocks), TransferError> {
    let (number, list) = match delivered::fetch_newest(session, repository).await {
        Ok(Some(list)) => list,
        Ok(None) => return Ok((1, DeliveredLocks::default())),
        // Some registries answer 403 for a repository that does not exist. If this account really
        // may not access it, the upload fails.
        Err(error) if error.may_be_missing() => return Ok((1, DeliveredLocks::default())),
        Err(error) => return Err(TransferError::destination(error)),
    };
    let locks = DeliveredLocks::parse(&list)
        .map_err(|why| not_delivered(format!("the tag does not contain a list of locks: {why}")))?;
    Ok((number, locks))
}
