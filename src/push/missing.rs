//! Lists the locked content that a registry lacks, with one HEAD request for each manifest and
//! tag at each destination, and for each blob if requested.

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
use std::collections::BTreeSet;

/// A manifest or blob of a locked item that is missing at one of its destinations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct MissingPart {
    /// The name of the item in the lock.
    pub item: String,
    /// The destination with its tag.
    pub at: String,
    /// The digest that is missing.
    pub digest: Digest,
    /// Whether the part or its tag is missing, or what the tag points to.
    pub why: String,
}

/// The parts that [`missing`] found to be missing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct MissingParts {
    /// The number of destinations that were looked up.
    pub destinations: usize,
    /// The missing parts, in the lock's order.
    pub parts: Vec<MissingPart>,
}

/// Looks up every manifest of `lock` at its destinations, including signatures and other referrers,
/// and the tags. With `blobs`, all blobs are looked up too: registries accept a manifest only with
/// its blobs, but may lose the blobs later.
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
    let deliveries = deliveries(lock, mapping, &BTreeSet::new());
    let presence = Presence::new(&session, blobs);
    let jobs = sessions.transport().limits().jobs;
    let lookups = run_concurrently(deliveries.len(), jobs, |at| {
        missing_at(
            &session,
            &presence,
            lock.entry(deliveries[at].entry),
            &deliveries[at],
        )
    });
    let results = lookups
        .await
        .into_iter()
        .collect::<Result<Vec<_>, _>>()
        .map_err(PushError::Unreachable)?;
    Ok(MissingParts {
        destinations: deliveries.len(),
        parts: results.into_iter().flatten().collect(),
    })
}

/// The parts of an entry that are missing at one destination.
async fn missing_at(
    session: &RegistrySession,
    presence: &Presence<'_>,
    entry: LockEntry,
    delivery: &Delivery,
) -> Result<Vec<MissingPart>, HttpError> {
    let missing_part = |digest: &Digest, why: String| MissingPart {
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
        .map(|digest| missing_part(digest, "it is missing".into()))
        .collect();
    match session
        .head_manifest(&delivery.destination.repository, &delivery.tag, false)
        .await?
    {
        Some(found) if found == *top || Some(&found) == trimmed => {}
        Some(found) => missing.push(missing_part(top, format!("the tag points to {found}"))),
        // the tag of a missing manifest is missing too, which need not be reported twice
        None if missing.iter().any(|one| one.digest == *top) => {}
        None => missing.push(missing_part(top, "the tag is missing".into())),
    }
    Ok(missing)
}
