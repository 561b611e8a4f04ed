//! The list of locks that were delivered to a registry, stored there as an artifact with one layer
//! for each lock, the oldest first. Not every account may list the content of a registry, so
//! `serve --from` finds the content by this list.
//!
//! A registry with immutable tags does not replace the list. Each further list then gets a tag of
//! its own, `latest-2`, `latest-3` and so on, and the one with the highest number counts.

use super::Lock;
use crate::artifact::{self, TITLE};
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use landfall_content::LockEntry;
use landfall_content::registry::RegistrySession;
use landfall_http::{ErrorKind, HttpError};
use landfall_model::report::EntryKind;
use landfall_model::{Descriptor, Digest};
use serde::Deserialize;
use serde_json::{Value, json};

/// The repository of the list, below the prefix of the destination.
pub const REPOSITORY: &str = "landfall/locks";
/// The tag under which the list of delivered locks is pushed.
pub const TAG: &str = "latest";
/// The `artifactType` of the list of delivered locks.
const LIST: &str = "application/vnd.landfall.locks.v1";
/// Media type of a lock.
const LOCK: &str = "application/vnd.landfall.lock.v1+yaml";
/// The maximum number of locks in the list; the oldest are dropped. The limit keeps the manifest of
/// the list far below the size limits of registries.
const MAX_LOCKS: usize = 1000;
/// The maximum number of pages that are read of the tags of [`REPOSITORY`].
const LIST_PAGES: usize = 16;
/// How many numbers after the newest list are requested if the registry does not list its tags:
/// clean-up jobs make gaps, behind which the newest list may be.
const LONGEST_GAP: u32 = 32;
/// How many of these are requested at the same time.
const LOOKUPS_AT_ONCE: usize = 8;
/// The maximum number of lists at a registry.
const MAX_LISTS: u32 = 1 << 20;

/// The locks that were delivered, the oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeliveredLocks(Vec<DeliveredLock>);

/// The tag of the list with this number, counted from 1.
pub fn tag(number: u32) -> String {
    match number {
        0 | 1 => TAG.to_owned(),
        _ => format!("{TAG}-{number}"),
    }
}

/// Fetches the list with the highest number, with that number, or `None` if there is none. A
/// registry whose list can be replaced gets two requests more than for the list alone. A registry
/// that does not list its tags gets one more for each number of the longest gap.
///
/// # Errors
/// If a list cannot be read.
pub async fn fetch_newest(
    session: &RegistrySession,
    repository: &str,
) -> Result<Option<(u32, Bytes)>, HttpError> {
    let fetch = async |number| match session.manifest(repository, &tag(number)).await {
        Ok(manifest) => Ok(Some((number, manifest.bytes))),
        Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
        // some registries answer 403 for a missing tag
        Err(error) if number > 1 && error.may_be_missing() => Ok(None),
        Err(error) => Err(error),
    };
    // The list of tags also shows numbers behind a gap, which clean-up jobs make. It may be old, so
    // the next numbers are requested in any case.
    let listed = session.tags(repository, LIST_PAGES).await.ok().flatten();
    let last = listed
        .iter()
        .flatten()
        .filter_map(|tag| number_of(tag))
        .max();
    let mut newest = match fetch(last.unwrap_or(1)).await? {
        Some(found) => Some(found),
        None => fetch(1).await?,
    };
    loop {
        if let Some(found) = newest {
            newest = Some(last_without_gap(found, &fetch).await?);
        }
        let after = newest.as_ref().map_or(1, |(number, _)| *number);
        if listed.is_some() || after >= MAX_LISTS {
            return Ok(newest);
        }
        let behind = futures_util::stream::iter(after + 1..=after + LONGEST_GAP)
            .map(&fetch)
            .buffered(LOOKUPS_AT_ONCE);
        let behind: Vec<Option<(u32, Bytes)>> = behind.try_collect().await?;
        match behind.into_iter().flatten().next_back() {
            Some(found) => newest = Some(found),
            None => return Ok(newest),
        }
    }
}

/// The last list of those with consecutive numbers that begin with `newest`.
async fn last_without_gap(
    mut newest: (u32, Bytes),
    fetch: impl AsyncFn(u32) -> Result<Option<(u32, Bytes)>, HttpError>,
) -> Result<(u32, Bytes), HttpError> {
    // first doubled while there is a list, then narrowed down
    let mut step = 1;
    let mut missing = loop {
        let number = newest.0.saturating_add(step);
        match fetch(number).await? {
            Some(found) if number < MAX_LISTS => newest = found,
            _ => break number,
        }
        step *= 2;
    };
    while missing - newest.0 > 1 {
        let number = newest.0.midpoint(missing);
        match fetch(number).await? {
            Some(found) => newest = found,
            None => missing = number,
        }
    }
    Ok(newest)
}

/// The number of the list with this tag.
fn number_of(tag_name: &str) -> Option<u32> {
    if tag_name == TAG {
        return Some(1);
    }
    let number = tag_name.strip_prefix(TAG)?.strip_prefix('-')?;
    let number = number.parse().ok().filter(|number| *number < MAX_LISTS)?;
    // not `latest-02`
    (tag(number) == tag_name).then_some(number)
}

/// A lock that was delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveredLock {
    /// The descriptor of the lock's text.
    pub descriptor: Descriptor,
    /// The lock's `name`, or an empty string if it has none.
    pub name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DeliveredManifest {
    artifact_type: String,
    layers: Vec<DeliveredLayer>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DeliveredLayer {
    media_type: String,
    digest: Digest,
    size: u64,
    #[serde(default)]
    annotations: std::collections::BTreeMap<String, String>,
}

impl DeliveredLocks {
    /// Parses the manifest of the list.
    ///
    /// # Errors
    /// If the manifest is not a list of locks.
    pub fn parse(bytes: &[u8]) -> Result<DeliveredLocks, String> {
        let raw: DeliveredManifest =
            serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if raw.artifact_type != LIST {
            return Err(format!("it is {}, not {LIST}", raw.artifact_type));
        }
        let locks = raw
            .layers
            .into_iter()
            .filter(|layer| layer.media_type == LOCK)
            .map(|layer| DeliveredLock {
                name: layer.annotations.get(TITLE).cloned().unwrap_or_default(),
                descriptor: Descriptor::new(layer.digest, layer.size, layer.media_type),
            });
        Ok(DeliveredLocks(locks.collect()))
    }

    /// The locks, the oldest first.
    pub fn locks(&self) -> &[DeliveredLock] {
        &self.0
    }

    /// Whether `lock` was delivered last.
    pub fn is_newest(&self, lock: &Lock) -> bool {
        self.0
            .last()
            .is_some_and(|last| last.descriptor.digest == digest_of(lock))
    }

    /// Whether the list contains `lock`.
    pub fn contains(&self, lock: &Lock) -> bool {
        let digest = digest_of(lock);
        self.0.iter().any(|one| one.descriptor.digest == digest)
    }

    /// The list with `lock` as the newest, as an entry to push.
    pub fn with(mut self, lock: &Lock) -> LockEntry {
        let part = artifact::computed(lock.to_text().into_bytes(), LOCK);
        let descriptor = part.descriptor.clone();
        let digest = descriptor.digest.clone();
        // a lock that is delivered again becomes the newest
        self.0.retain(|known| known.descriptor.digest != digest);
        let name = lock.name.clone().unwrap_or_default();
        self.0.push(DeliveredLock { descriptor, name });
        let excess = self.0.len().saturating_sub(MAX_LOCKS);
        self.0.drain(..excess);
        let config = artifact::empty_config();
        let layers = self.0.iter().map(|lock| {
            let title = (!lock.name.is_empty()).then(|| json!({TITLE: lock.name}));
            artifact::layer(&lock.descriptor, title.unwrap_or_default())
        });
        let layers = layers.collect();
        let manifest = artifact::manifest(LIST, &config.descriptor, layers, Value::Null);
        let name = format!("{REPOSITORY}:{TAG}");
        // of the locks, only the new one is a part: the registry has the others
        let parts = vec![config, part];
        artifact::entry(
            EntryKind::File,
            name.clone(),
            &digest,
            name,
            LIST,
            parts,
            manifest,
        )
    }
}

/// The digest under which `lock` is listed.
fn digest_of(lock: &Lock) -> Digest {
    Digest::sha256(lock.to_text().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_content::PartOrigin;

    fn named(name: &str) -> Lock {
        Lock {
            version: 1,
            name: Some(name.into()),
            ..Lock::default()
        }
    }

    fn list(entry: &LockEntry) -> DeliveredLocks {
        let PartOrigin::Computed(bytes) = &entry.parts.last().unwrap().origin else {
            panic!("not computed")
        };
        DeliveredLocks::parse(bytes).unwrap()
    }

    fn names(list: &DeliveredLocks) -> Vec<&str> {
        list.locks().iter().map(|lock| lock.name.as_str()).collect()
    }

    #[test]
    fn the_lock_that_was_delivered_last_is_listed_last_and_once() {
        let a = list(&DeliveredLocks::default().with(&named("a")));
        assert!(a.is_newest(&named("a")) && !a.is_newest(&named("b")));
        let b = list(&a.with(&named("b")));
        assert_eq!(names(&b), ["a", "b"]);
        assert!(b.contains(&named("a")) && !b.contains(&named("c")));
        let again = list(&b.with(&named("a")));
        assert_eq!(names(&again), ["b", "a"]);
    }

    #[test]
    fn the_list_is_bounded_and_other_documents_are_rejected() {
        let known = |at: usize| DeliveredLock {
            descriptor: Descriptor::new(Digest::sha256(&at.to_be_bytes()), 1, LOCK),
            name: at.to_string(),
        };
        let full = DeliveredLocks((0..MAX_LOCKS).map(known).collect());
        let all = list(&list(&full.with(&named("last but one"))).with(&named("last")));
        assert_eq!(
            (
                names(&all).len(),
                names(&all)[0],
                names(&all)[MAX_LOCKS - 1]
            ),
            (MAX_LOCKS, "2", "last")
        );
        for other in ["{}", "[]", r#"{"artifactType":"x","layers":[]}"#] {
            assert!(DeliveredLocks::parse(other.as_bytes()).is_err(), "{other}");
        }
    }
}
