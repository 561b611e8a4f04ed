//! Compares a registry with a lock: one HEAD for each destination tag, the look-ups of referrers,
//! and further look-ups if they are requested.

use super::plan::{Delivery, LookupScope, TagState, deliveries, look_up_tags};
use super::preflight::Presence;
use super::state::unreachable;
use landfall_content::registry::{RegistrySession, RegistrySessions};
use landfall_content::{LockEntry, run_concurrently};
use landfall_http::HttpError;
use landfall_item::lockfile::Lock;
use landfall_model::report::EntryKind;
use landfall_model::{DestinationMap, Digest, Failure, Limits, tagged_subject};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The result of comparing a tag at the registry with the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TagStatus {
    /// The tag points to the digest in the lock, or to the trimmed index.
    There,
    /// The tag does not exist.
    Missing,
    /// The tag points to another digest.
    Different,
    /// The tag points to the right digest, but a manifest, blob or referrer of it is missing.
    Incomplete,
    /// The tag is not in the lock, but its repository is.
    Foreign,
    /// The look-up failed, or the registry does not list the tags of the repository.
    Unknown,
}

/// One tag at the registry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct RegistryTag {
    /// The result of the comparison.
    pub(crate) state: TagStatus,
    /// `repository:tag`, or `repository` if its tags cannot be listed.
    pub(crate) at: String,
    /// The kind of the locked item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) kind: Option<EntryKind>,
    /// The name of the item in the lock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    /// The digest in the lock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) wanted: Option<Digest>,
    /// The digest that the tag points to, if it differs from the lock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stands: Option<Digest>,
    /// The reason why the state is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) why: Option<String>,
}

/// Compares each destination of `lock` with the registry of `mapping`; with `parts`, also every
/// manifest and blob of the items, and with `foreign` the tags of its repositories that are not in
/// the lock. Fails if the registry cannot be reached, or if every look-up fails.
pub(crate) async fn status(
    lock: &Lock,
    mapping: &DestinationMap,
    sessions: &RegistrySessions,
    parts: bool,
    foreign: bool,
) -> Result<Vec<RegistryTag>, Failure> {
    let session = sessions
        .destination(&mapping.target().registry)
        .await
        .map_err(|error| unreachable(&error))?;
    let deliveries = deliveries(lock, mapping, &BTreeSet::new());
    let limits = sessions.transport().limits();
    let found = look_up_tags(
        &session,
        lock,
        &deliveries,
        limits.jobs,
        LookupScope {
            parts,
            writes: false,
        },
    )
    .await;
    if let (Some(Err(error)), true) = (found.first(), found.iter().all(Result::is_err)) {
        return Err(unreachable(error));
    }
    let mut tags: Vec<RegistryTag> = deliveries
        .iter()
        .zip(found)
        .map(|(delivery, found)| registry_tag(lock, delivery, found))
        .collect();
    if foreign {
        tags.extend(foreign_tags(&session, lock, &deliveries, limits).await);
    }
    Ok(tags)
}

fn registry_tag(
    lock: &Lock,
    delivery: &Delivery,
    found: Result<TagState, HttpError>,
) -> RegistryTag {
    let item = lock.item(delivery.entry);
    let (state, stands, why) = match found {
        Ok(TagState::Whole | TagState::Trimmed) => (TagStatus::There, None, None),
        Ok(TagState::Nothing) => (TagStatus::Missing, None, None),
        Ok(TagState::Bare | TagState::Unattached(_)) => (TagStatus::Incomplete, None, None),
        Ok(TagState::Other(digest)) => (TagStatus::Different, Some(digest), None),
        Err(error) => (TagStatus::Unknown, None, Some(error.to_string())),
    };
    RegistryTag {
        state,
        at: format!("{}:{}", delivery.destination.repository, delivery.tag),
        kind: item.map(landfall_item::LockedItem::kind),
        name: item.map(|item| item.name().into_owned()),
        wanted: item.map(|item| item.digest().clone()),
        stands,
        why,
    }
}

/// The tags that are not in the lock, in the repositories of the lock. Each repository is listed
/// once.
async fn foreign_tags(
    session: &RegistrySession,
    lock: &Lock,
    deliveries: &[Delivery],
    limits: &Limits,
) -> Vec<RegistryTag> {
    // the tags of the lock, including those of cosign, by repository
    let mut own: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for delivery in deliveries {
        let tags = own.entry(&delivery.destination.repository).or_default();
        tags.insert(delivery.tag.clone());
        let referrer_tags = lock
            .item(delivery.entry)
            .map(landfall_item::LockedItem::referrer_tags)
            .unwrap_or_default();
        tags.extend(referrer_tags.into_iter().map(|(tag, _)| tag.to_owned()));
    }
    let repositories: Vec<&str> = own.keys().copied().collect();
    let lookups = run_concurrently(repositories.len(), limits.jobs, |at| {
        session.tags(repositories[at], limits.pages)
    });
    let answers = lookups.await;
    let mut found = Vec::new();
    for (repository, answer) in repositories.into_iter().zip(answers) {
        let why = match answer {
            Ok(Some(tags)) => {
                let tags = tags.into_iter().filter(|tag| {
                    // lists of referrers are written by pushes and are not in locks
                    !own[repository].contains(tag)
                        && !tagged_subject(tag).is_some_and(|subject| subject.is_list)
                });
                found.extend(tags.map(|tag| {
                    unlocked_tag(TagStatus::Foreign, format!("{repository}:{tag}"), None)
                }));
                continue;
            }
            Ok(None) => "the registry does not list its tags".to_owned(),
            Err(error) => error.to_string(),
        };
        let unknown = unlocked_tag(TagStatus::Unknown, repository.to_owned(), Some(why));
        found.push(unknown);
    }
    found
}

fn unlocked_tag(state: TagStatus, at: String, why: Option<String>) -> RegistryTag {
    RegistryTag {
        state,
        at,
        why,
        kind: None,
        name: None,
        wanted: None,
        stands: None,
    }
}

// Lists the locked content that a registry lacks, with one HEAD request for each manifest and
// tag at each destination, and for each blob if requested.

/// A manifest or blob of a locked item that is missing at one of its destinations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
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
) -> Result<MissingParts, Failure> {
    let session = sessions
        .destination(&mapping.target().registry)
        .await
        .map_err(|error| unreachable(&error))?;
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
        .map_err(|error| unreachable(&error))?;
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
