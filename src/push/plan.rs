//! What goes where, and what stands there already: one HEAD a destination tag, cosign's included.

use super::attach::all_attached;
use super::names;
use crate::content::{Entry, Origin, Part};
use crate::http::Error;
use crate::item::entry;
use crate::lockfile::Lock;
use crate::model::Digest;
use crate::model::{Destination, Mapping, file_tag};
use crate::registry::Session;
use futures_util::StreamExt;

/// One entry to one destination tag.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// Which entry of the lock, by its place in [`crate::item::entries`].
    pub entry: usize,
    /// Repository.
    pub place: Destination,
    /// Tag.
    pub tag: String,
}

/// What stands at a destination tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
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
    let images = lock.images.iter().enumerate().flat_map(|(at, image)| {
        let tag = image.destination_tag();
        mapping.image(&image.name).into_iter().map(move |place| Delivery {
            entry: at,
            place,
            tag: tag.clone(),
        })
    });
    let files = lock.files.iter().enumerate().map(|(at, file)| {
        let entry = lock.images.len() + at;
        Delivery { entry, place: mapping.file(&file.name), tag: file_tag(&file.digest) }
    });
    images.chain(files).collect()
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
        let entry = &entry(lock, delivery.entry);
        if names::fault(&delivery.place).is_some() {
            return Ok(Standing::Nothing);
        }
        let found = session.head_manifest(&delivery.place.repository, &delivery.tag, true).await?;
        let standing = match found {
            None => Standing::Nothing,
            Some(digest) if digest == entry.top.digest => Standing::Whole,
            Some(digest) if trimmed(entry).is_some_and(|part| part.descriptor.digest == digest) => {
                Standing::Trimmed
            }
            Some(digest) => Standing::Other(digest),
        };
        let is_there = matches!(standing, Standing::Whole | Standing::Trimmed);
        Ok(match is_there && !all_attached(session, entry, &delivery.place.repository).await? {
            true => Standing::Bare,
            false => standing,
        })
    });
    asking.buffered(jobs).collect().await
}

/// The trimmed index of an entry, where it has one.
pub(super) fn trimmed(entry: &Entry) -> Option<&Part> {
    entry.parts.iter().find(|part| matches!(part.origin, Origin::Trimmed { .. }))
}
