//! What goes where, and what stands there already: one HEAD a destination tag, cosign's included.

use super::names;
use super::presence::Presence;
use super::referrers::all_attached;
use crate::content::Entry;
use crate::http::{Error, ErrorKind};
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
    /// The digest of the lock or its trimmed index, but not all that belongs to it, as far as it was asked for.
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

/// Asks the registry what stands at each destination tag, and with `recheck` for every manifest and blob that belongs to
/// it. Nothing can stand under a name that no registry holds.
pub(super) async fn standings(
    session: &Session,
    lock: &Lock,
    deliveries: &[Delivery],
    jobs: usize,
    recheck: bool,
) -> Vec<Result<Standing, Error>> {
    let presence = Presence::new(session, true);
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
        if is_there {
            let whole = all_attached(session, entry, &delivery.destination.repository).await?
                && (!recheck || is_whole(&presence, entry, delivery).await?);
            return Ok(if whole { standing } else { Standing::Bare });
        }
        Ok(standing)
    });
    asking.buffered(jobs).collect().await
}

/// Whether all of the entry is there. What the registry refuses to say is brought again.
async fn is_whole(presence: &Presence<'_>, entry: &Entry, delivery: &Delivery) -> Result<bool, Error> {
    match presence.missing(entry, &delivery.destination.repository).await {
        Err(error) if matches!(error.kind, ErrorKind::Status(400..500)) => Ok(false),
        missing => Ok(missing?.is_empty()),
    }
}
