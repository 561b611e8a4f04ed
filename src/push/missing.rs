//! What a registry is missing of a lock: one HEAD for each manifest at each destination, for each
//! blob where that is asked for, and one for the tag.

use super::error::PushError;
use super::plan::{Delivery, deliveries};
use super::presence::Presence;
use landfall_content::registry::{RegistrySession, RegistrySessions};
use landfall_content::{LockEntry, run_concurrently};
use landfall_http::HttpError;
use landfall_item::lockfile::Lock;
use landfall_model::DestinationMap;
use landfall_model::Digest;
use serde::Serialize;

/// A manifest or blob of a locked item that is missing at one of its destinations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct MissingPart {
    /// Its name in the lock.
    pub item: String,
    /// The destination, with its tag.
    pub at: String,
    /// The digest that is not there.
    pub digest: Digest,
    /// What is there in its place.
    pub why: String,
}

/// How much was asked for, and what is missing of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct MissingParts {
    /// How many destinations were asked about.
    pub destinations: usize,
    /// What is missing, in the lock's order.
    pub parts: Vec<MissingPart>,
}

/// Asks the registry of `mapping` for every manifest of `lock` at its destinations, signatures and
/// other referrers included, and for the tags. `blobs` are asked for where that is wanted:
/// registries take no manifest without them, but may lose them later.
pub(crate) async fn missing(
    lock: &Lock,
    mapping: &DestinationMap,
    sessions: &RegistrySessions,
    blobs: bool,
) -> Result<MissingParts, PushError> {
    let session = sessions
        .destination(&mapping.target().registry)
        .await
        .map_err(PushError::Unreachable)?;
    let deliveries = deliveries(lock, mapping);
    let presence = Presence::new(&session, blobs);
    let jobs = sessions.transport().limits().jobs;
    let asking = run_concurrently(deliveries.len(), jobs, |at| {
        one(
            &session,
            &presence,
            lock.entry(deliveries[at].entry),
            &deliveries[at],
        )
    });
    let answers = asking
        .await
        .into_iter()
        .collect::<Result<Vec<_>, _>>()
        .map_err(PushError::Unreachable)?;
    Ok(MissingParts {
        destinations: deliveries.len(),
        parts: answers.into_iter().flatten().collect(),
    })
}

async fn one(
    session: &RegistrySession,
    presence: &Presence<'_>,
    entry: LockEntry,
    delivery: &Delivery,
) -> Result<Vec<MissingPart>, HttpError> {
    let absent = |digest: &Digest, why: String| MissingPart {
        item: entry.name.clone(),
        at: format!("{}:{}", delivery.destination, delivery.tag),
        digest: digest.clone(),
        why,
    };
    let top = &entry.top.digest;
    let trimmed = entry.trimmed().map(|part| &part.descriptor.digest);
    let mut missing = presence
        .missing(&entry, &delivery.destination.repository)
        .await?;
    missing.dedup();
    let mut missing: Vec<_> = missing
        .into_iter()
        .map(|digest| absent(digest, "it is not there".into()))
        .collect();
    match session
        .head_manifest(&delivery.destination.repository, &delivery.tag, false)
        .await?
    {
        Some(found) if found == *top || Some(&found) == trimmed => {}
        Some(found) => missing.push(absent(top, format!("the tag stands at {found}"))),
        None if missing.iter().any(|one| one.digest == *top) => {}
        None => missing.push(absent(top, "the tag is not there".into())),
    }
    Ok(missing)
}
