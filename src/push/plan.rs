//! What goes where, and what stands there already: one HEAD a destination tag, cosign's included.

use super::names;
use super::referrers::all_attached;
use crate::http::Error;
use crate::lockfile::Lock;
use crate::model::Digest;
use crate::model::{Destination, Mapping};
use crate::registry::Session;
use futures_util::StreamExt;

/// One entry to one destination tag.
#[derive(Debug, Clone)]
pub(crate) struct Delivery {
    /// Which entry of the lock, by its position in [`Lock::items`].
    pub entry: usize,
    /// Its registry and repository.
    pub destination: Destination,
    /// Tag.
    pub tag: String,
}

/// What stands at a destination tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Nothing.
    Nothing,
    /// The digest of the lock.
    Whole,
    /// The trimmed index of the lock.
    Trimmed,
    /// The digest of the lock or its trimmed index, but not all that refers to it.
    Bare,
    /// Another digest.
    Other(Digest),
}

/// Every delivery of `lock`, in the lock's order.
pub(super) fn deliveries(lock: &Lock, mapping: &Mapping) -> Vec<Delivery> {
    let deliveries = lock.items().enumerate().flat_map(|(entry, item)| {
        let tag = item.tag();
        let delivery = move |destination| Delivery { entry, destination, tag: tag.clone() };
        item.destinations(mapping).into_iter().map(delivery)
    });
    deliveries.collect()
}

/// Asks the registry what stands at each destination tag. Nothing can stand under a name that no
/// registry holds.
pub(super) async fn standings(
    session: &Session,
    lock: &Lock,
    deliveries: &[Delivery],
    jobs: usize,
) -> Vec<Result<Standing, Error>> {
    // made one by one, as they are large; by number, as a stream over closures that take references is not Send
    let asking = futures_util::stream::iter(0..deliveries.len()).map(async |at: usize| {
        let delivery = &deliveries[at];
        let entry = &lock.entry(delivery.entry);
        if names::fault(&delivery.destination).is_some() {
            return Ok(Standing::Nothing);
        }
        let found = session.head_manifest(&delivery.destination.repository, &delivery.tag, true).await?;
        let standing = match found {
            None => Standing::Nothing,
            Some(digest) if digest == entry.top.digest => Standing::Whole,
            Some(digest) if entry.trimmed().is_some_and(|part| part.descriptor.digest == digest) => {
                Standing::Trimmed
            }
            Some(digest) => Standing::Other(digest),
        };
        let is_there = matches!(standing, Standing::Whole | Standing::Trimmed);
        Ok(match is_there && !all_attached(session, entry, &delivery.destination.repository).await? {
            true => Standing::Bare,
            false => standing,
        })
    });
    asking.buffered(jobs).collect().await
}
