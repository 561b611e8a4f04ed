//! How a registry stands beside a lock: one HEAD for each destination tag, and what was asked for
//! beyond that.

use super::error::PushError;
use super::plan::{Delivery, LookupScope, TagState, deliveries, standings};
use landfall_content::registry::{RegistrySession, RegistrySessions};
use landfall_content::run_concurrently;
use landfall_http::HttpError;
use landfall_item::lockfile::Lock;
use landfall_model::report::EntryKind;
use landfall_model::{DestinationMap, Digest, Limits, tagged_subject};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// How a tag at the registry stands beside the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TagStatus {
    /// It stands at the digest of the lock, or at its trimmed index.
    There,
    /// It is not there.
    Missing,
    /// It stands at another digest.
    Different,
    /// It stands at the right digest, and something that belongs to it is not there.
    Incomplete,
    /// The lock does not have it, but puts others into its repository.
    Foreign,
    /// The registry does not say.
    Unknown,
}

/// One tag at the registry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct RegistryTag {
    /// How it stands.
    pub(crate) state: TagStatus,
    /// `repository:tag`.
    pub(crate) at: String,
    /// The kind of the item that belongs there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) kind: Option<EntryKind>,
    /// Its name in the lock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    /// The digest of the lock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) wanted: Option<Digest>,
    /// The digest that the tag stands at, where it is another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stands: Option<Digest>,
    /// Why the registry does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) why: Option<String>,
}

/// Asks the registry of `mapping` how each destination of `lock` stands; with `parts` for every
/// manifest and blob of it too, and with `foreign` which other tags its repositories have.
///
/// # Errors
/// When the registry cannot be reached, or says nothing at all.
pub(crate) async fn status(
    lock: &Lock,
    mapping: &DestinationMap,
    sessions: &RegistrySessions,
    (parts, foreign): (bool, bool),
) -> Result<Vec<RegistryTag>, PushError> {
    let session = sessions
        .destination(&mapping.target().registry)
        .await
        .map_err(PushError::Unreachable)?;
    let (deliveries, limits) = (deliveries(lock, mapping), sessions.transport().limits());
    let found = standings(
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
        return Err(PushError::Unreachable(error.clone()));
    }
    let mut stands: Vec<RegistryTag> = deliveries
        .iter()
        .zip(found)
        .map(|(delivery, found)| told(lock, delivery, found))
        .collect();
    if foreign {
        stands.extend(others(&session, lock, &deliveries, limits).await);
    }
    Ok(stands)
}

fn told(lock: &Lock, delivery: &Delivery, found: Result<TagState, HttpError>) -> RegistryTag {
    let item = lock.item(delivery.entry);
    let (state, stands, why) = match found {
        Ok(TagState::Whole | TagState::Trimmed) => (TagStatus::There, None, None),
        Ok(TagState::Nothing) => (TagStatus::Missing, None, None),
        Ok(TagState::Bare) => (TagStatus::Incomplete, None, None),
        Ok(TagState::Other(digest)) => (TagStatus::Different, Some(digest), None),
        Err(error) => (TagStatus::Unknown, None, Some(error.to_string())),
    };
    RegistryTag {
        state,
        at: format!("{}:{}", delivery.destination.repository, delivery.tag),
        kind: item.map(|item| item.kind()),
        name: item.map(|item| item.name().into_owned()),
        wanted: item.map(|item| item.digest().clone()),
        stands,
        why,
    }
}

/// The tags of the lock's repositories that the lock puts nowhere: one list a repository.
async fn others(
    session: &RegistrySession,
    lock: &Lock,
    deliveries: &[Delivery],
    limits: &Limits,
) -> Vec<RegistryTag> {
    let mut own: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for delivery in deliveries {
        let tags = own.entry(&delivery.destination.repository).or_default();
        tags.insert(delivery.tag.clone());
        let referring = lock
            .item(delivery.entry)
            .map(|item| item.referrer_tags())
            .unwrap_or_default();
        tags.extend(referring.into_iter().map(|(tag, _)| tag.to_owned()));
    }
    let repositories: Vec<&str> = own.keys().copied().collect();
    let asking = run_concurrently(repositories.len(), limits.jobs, |at| {
        session.tags(repositories[at], limits.pages)
    });
    let answers = asking.await;
    let bare = |state, at: String, why| RegistryTag {
        state,
        at,
        why,
        kind: None,
        name: None,
        wanted: None,
        stands: None,
    };
    let mut found = Vec::new();
    for (repository, answer) in repositories.into_iter().zip(answers) {
        match answer {
            Ok(Some(tags)) => {
                let tags = tags.into_iter().filter(|tag| {
                    !own[repository].contains(tag)
                        && !tagged_subject(tag).is_some_and(|subject| subject.is_list)
                });
                found.extend(
                    tags.map(|tag| bare(TagStatus::Foreign, format!("{repository}:{tag}"), None)),
                );
            }
            Ok(None) => {
                let why = "the registry does not list its tags".to_owned();
                found.push(bare(TagStatus::Unknown, repository.to_owned(), Some(why)));
            }
            Err(error) => {
                found.push(bare(
                    TagStatus::Unknown,
                    repository.to_owned(),
                    Some(error.to_string()),
                ));
            }
        }
    }
    found
}
