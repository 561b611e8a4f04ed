//! Finds what a registry holds: by the list of locks that deliveries leave there, and one HEAD for
//! each item.

use super::content::{Held, RegistryContent};
use super::error::RegistrySourceError;
use crate::ServedBundle;
use futures_util::{StreamExt, TryStreamExt};
use landfall_content::registry::{RegistrySession, RegistrySessions};
use landfall_content::{LockEntry, VerifiedRead};
use landfall_http::{ErrorKind, HttpError};
use landfall_item::lockfile::{Lock, delivered as delivered_locks};
use landfall_model::{Descriptor, DestinationMap, Digest};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// What a registry holds of earlier deliveries.
pub struct DeliveredContent {
    /// The delivered locks, the oldest first.
    pub bundles: Vec<ServedBundle>,
    /// The content of all of them.
    pub content: Arc<dyn VerifiedRead>,
}

/// What was delivered to the target of `mapping` and is there now, the oldest lock first. What only
/// images are made of is listed and not looked for: they are pulled from the registry itself.
///
/// # Errors
/// When there is no list of what was delivered, or the registry cannot be read.
pub async fn find_delivered(
    sessions: &RegistrySessions,
    mapping: &DestinationMap,
) -> Result<DeliveredContent, RegistrySourceError> {
    let place = mapping.own_destination(delivered_locks::REPOSITORY);
    let (repository, place) = (
        place.repository.clone(),
        format!("{place}:{}", delivered_locks::TAG),
    );
    let unread = |source| RegistrySourceError::Registry {
        place: place.clone(),
        source,
    };
    let session = sessions
        .destination(&mapping.target().registry)
        .await
        .map_err(unread)?;
    let list = match session.manifest(&repository, delivered_locks::TAG).await {
        Err(error) if error.kind == ErrorKind::NotFound => {
            return Err(RegistrySourceError::Nothing { place });
        }
        list => list.map_err(unread)?,
    };
    let list = delivered_locks::DeliveredLocks::parse(&list.bytes);
    let list = list.map_err(|why| RegistrySourceError::List {
        place: place.clone(),
        why,
    })?;
    let limits = *sessions.transport().limits();
    let mut locks = Vec::new();
    for known in list.locks() {
        let text = small(
            &session,
            &repository,
            &known.descriptor,
            limits.contents_bytes as u64,
        )
        .await;
        let text = text
            .map_err(unread)?
            .ok_or_else(|| RegistrySourceError::Damaged {
                place: place.clone(),
            })?;
        let lock = Lock::parse(&place, &String::from_utf8_lossy(&text));
        let wrong = |source| RegistrySourceError::Lock {
            place: place.clone(),
            source: Box::new(source),
        };
        locks.push((known, lock.map_err(wrong)?));
    }
    let held = held(&session, &locks, mapping, limits.jobs)
        .await
        .map_err(unread)?;
    let content = Arc::new(RegistryContent::new(session, held));
    let target = mapping.target();
    let served = locks.into_iter().map(|(known, lock)| ServedBundle {
        name: match known.name.as_str() {
            "" => target.to_string(),
            name => format!("{name} at {target}"),
        },
        digest: Some(known.descriptor.digest.clone()),
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

/// A blob of at most so many bytes; `None` where its bytes are others.
async fn small(
    session: &RegistrySession,
    repository: &str,
    blob: &Descriptor,
    most: u64,
) -> Result<Option<Vec<u8>>, HttpError> {
    if blob.size > most {
        return Ok(None);
    }
    let (_, mut stream) = session.blob(repository, blob, 0).await?;
    let mut bytes = Vec::new();
    while let Some(piece) = stream.next().await {
        bytes.extend_from_slice(&piece?);
    }
    Ok(Some(bytes).filter(|bytes| blob.digest.matches(bytes)))
}

/// The parts of the items that stand at the registry, each with its repository.
async fn held(
    session: &RegistrySession,
    locks: &[(&delivered_locks::DeliveredLock, Lock)],
    mapping: &DestinationMap,
    jobs: usize,
) -> Result<HashMap<Digest, Held>, HttpError> {
    let items = locks.iter().flat_map(|(_, lock)| lock.items());
    let wanted: BTreeMap<(String, Digest), LockEntry> = items
        .filter(|item| item.is_served_from_registry())
        .filter_map(|item| {
            let (entry, to) = (item.entry(), item.destinations(mapping).into_iter().next()?);
            Some(((to.repository, entry.top.digest.clone()), entry))
        })
        .collect();
    let asking = futures_util::stream::iter(wanted).map(async |((repository, digest), entry)| {
        let found = session
            .head_manifest(&repository, &digest.to_string(), false)
            .await;
        match found {
            Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
            found => Ok::<_, HttpError>(found?.map(|_| (repository, entry))),
        }
    });
    let found: Vec<Option<(String, LockEntry)>> =
        asking.buffer_unordered(jobs).try_collect().await?;
    let parts = found.into_iter().flatten().flat_map(|(repository, entry)| {
        let repository: Arc<str> = repository.into();
        entry.parts.into_iter().map(move |part| {
            let is_manifest = part.is_manifest();
            let held = Held {
                repository: repository.clone(),
                descriptor: part.descriptor,
                is_manifest,
            };
            (held.descriptor.digest.clone(), held)
        })
    });
    Ok(parts.collect())
}
