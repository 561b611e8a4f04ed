//! Finds the content that was delivered to a registry: reads the list of locks that deliveries
//! write there, and sends one HEAD request for each item that is not an image.

use super::registry_blobs::{RegistryBlob, RegistryBlobs};
use crate::ServedBundle;
use futures_util::{StreamExt, TryStreamExt};
use landfall_content::registry::{RegistrySession, RegistrySessions};
use landfall_content::{LockEntry, VerifiedRead};
use landfall_http::{ErrorKind, HttpError};
use landfall_item::lockfile::{Lock, delivered as delivered_locks};
use landfall_model::{Descriptor, DestinationMap, Digest, Failure, TransferSide};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The content that earlier deliveries put into a registry.
pub struct DeliveredContent {
    /// The delivered locks, the oldest first.
    pub bundles: Vec<ServedBundle>,
    /// The content of all delivered locks.
    pub content: Arc<dyn VerifiedRead>,
}

/// The locks that were delivered to the target of `mapping`, the oldest first, and the content of
/// their items, as far as the registry has it now. Images are listed but not looked up: clients
/// pull them from the registry itself.
///
/// # Errors
/// When the list of deliveries is missing or damaged, or the registry cannot be read.
pub async fn find_delivered(
    sessions: &RegistrySessions,
    mapping: &DestinationMap,
) -> Result<DeliveredContent, Failure> {
    let destination = mapping.own_destination(delivered_locks::REPOSITORY);
    let list = format!("{destination}:{}", delivered_locks::TAG);
    let repository = destination.repository;
    let failed = |message: String| Failure::failed(message).on(TransferSide::Source);
    let unreadable = |error: HttpError| failed(format!("cannot read {list}: {error}"));
    let target = mapping.target();
    let session = sessions
        .destination(&target.registry)
        .await
        .map_err(unreadable)?;
    let newest = delivered_locks::fetch_newest(&session, &repository).await;
    let Some(newest) = newest.map_err(unreadable)? else {
        return Err(failed(format!(
            "nothing to serve: the registry has no list of deliveries at {list}; deliver files or \
             charts to it with `landfall push`"
        )));
    };
    let deliveries = delivered_locks::DeliveredLocks::parse(&newest.bytes);
    let deliveries =
        deliveries.map_err(|why| failed(format!("{list} is not a list of deliveries: {why}")))?;
    let limits = *sessions.transport().limits();
    let max_lock = limits.contents_bytes as u64;
    let mut locks = Vec::new();
    for delivery in deliveries.locks() {
        // the list is untrusted, so each lock is limited in size and compared with its digest
        let text = read_small_blob(&session, &repository, &delivery.descriptor, max_lock)
            .await
            .map_err(unreadable)?
            .ok_or_else(|| {
                failed(format!(
                    "a lock in {list} is damaged at the registry; deliver it again with \
                     `landfall push --recheck`"
                ))
            })?;
        let lock = Lock::parse(&list, &String::from_utf8_lossy(&text));
        let lock = lock.map_err(|error| failed(format!("cannot use a lock in {list}: {error}")))?;
        locks.push((delivery, lock));
    }
    let blobs = find_blobs(&session, &locks, mapping, limits.jobs)
        .await
        .map_err(unreadable)?;
    let content = Arc::new(RegistryBlobs::new(session, blobs));
    let served = locks.into_iter().map(|(delivery, lock)| ServedBundle {
        name: match delivery.name.as_str() {
            "" => target.to_string(),
            name => format!("{name} at {target}"),
        },
        digest: Some(delivery.descriptor.digest.clone()),
        missing: Vec::new(),
        signatures: Vec::new(),
        lock,
        changes: None,
        blobs: content.clone(),
        registry: Some(mapping.clone()),
    });
    Ok(DeliveredContent {
        bundles: served.collect(),
        content,
    })
}

/// Reads a blob of at most `max` bytes; `None` if it is larger or does not have its digest.
async fn read_small_blob(
    session: &RegistrySession,
    repository: &str,
    blob: &Descriptor,
    max: u64,
) -> Result<Option<Vec<u8>>, HttpError> {
    if blob.size > max {
        return Ok(None);
    }
    let (_, mut stream) = session.blob(repository, blob, 0).await?;
    let mut bytes = Vec::new();
    while let Some(piece) = stream.next().await {
        bytes.extend_from_slice(&piece?);
    }
    if !blob.digest.matches(&bytes) {
        return Ok(None);
    }
    Ok(Some(bytes))
}

/// The blobs of the items that the registry has, except images. Each blob has its repository.
async fn find_blobs(
    session: &RegistrySession,
    locks: &[(&delivered_locks::DeliveredLock, Lock)],
    mapping: &DestinationMap,
    jobs: usize,
) -> Result<HashMap<Digest, RegistryBlob>, HttpError> {
    // several locks may contain an item: it is looked up once
    let mut wanted: BTreeMap<(String, Digest), LockEntry> = BTreeMap::new();
    for item in locks.iter().flat_map(|(_, lock)| lock.items()) {
        // images are pulled from the registry itself
        if !item.is_served_from_registry() {
            continue;
        }
        let entry = item.entry();
        if let Some(destination) = item.destinations(mapping).into_iter().next() {
            let key = (destination.repository, entry.top.digest.clone());
            wanted.insert(key, entry);
        }
    }
    let lookups = futures_util::stream::iter(wanted).map(async |((repository, digest), entry)| {
        let head = session
            .head_manifest(&repository, &digest.to_string(), false)
            .await;
        match head {
            Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
            head => Ok::<_, HttpError>(head?.map(|_| (repository, entry))),
        }
    });
    let found: Vec<Option<(String, LockEntry)>> =
        lookups.buffer_unordered(jobs).try_collect().await?;
    let mut blobs = HashMap::new();
    for (repository, entry) in found.into_iter().flatten() {
        let repository: Arc<str> = repository.into();
        for part in entry.parts {
            let blob = RegistryBlob {
                repository: repository.clone(),
                is_manifest: part.is_manifest(),
                descriptor: part.descriptor,
            };
            blobs.insert(blob.descriptor.digest.clone(), blob);
        }
    }
    Ok(blobs)
}
