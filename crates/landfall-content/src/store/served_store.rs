//! What a store offers to servers: its pointer `current` names a lock, and the one before it.
//! Servers look at the pointer before they look up a name, so all of them switch when it does.

use super::disk_store::DiskStore;
use crate::WriteError;
use crate::bucket::{Bucket, BucketObject, ConditionalGet, PutCondition, PutOutcome};
use landfall_http::HttpError;
use landfall_model::{Digest, Limits};
use serde::{Deserialize, Serialize};
use std::io;

/// Where the pointer stands in an object store.
const POINTER: &str = "current";
/// Where the locks stand that it may name.
const LOCKS: &str = "locks";
/// Landfall's own folder in a store on disk, where both stand.
const OWN: &str = ".landfall";
/// How often a pointer is written again that somebody else wrote meanwhile.
const ATTEMPTS: usize = 8;

/// What servers of a store offer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pointer {
    version: u32,
    /// Fingerprint of the lock that is served.
    pub lock: Digest,
    /// That of the lock before it. What it names is still read by digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Digest>,
}

/// A pointer as it was read, and what tells whether it is still the same.
#[derive(Debug, Clone)]
pub struct Current {
    pub pointer: Pointer,
    /// The object that it is, in an object store.
    object: Option<BucketObject>,
}

/// A store, as far as it says what is served.
#[derive(Clone)]
pub enum ServedStore {
    /// On disk.
    Disk(DiskStore),
    /// In an object store.
    Bucket(Bucket),
}

/// Why a store does not say what is served, or does not take it.
#[derive(Debug, thiserror::Error)]
pub enum ServedStoreError {
    /// Nothing was ever published there.
    #[error("there is nothing to serve: `landfall publish` names a lock in the store {place}")]
    Nothing {
        /// The store.
        place: String,
    },
    /// The object store does not answer, or refuses.
    #[error(transparent)]
    Bucket(#[from] HttpError),
    /// The disk refuses.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// The system's answer.
        source: io::Error,
    },
    /// The disk does not take it.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// Something else stands there.
    #[error("{place} is not what landfall wrote: {why}; run `landfall publish` again")]
    Damaged {
        /// What was read.
        place: String,
        /// What is wrong with it.
        why: String,
    },
    /// Others write the pointer again and again.
    #[error("{place} was published by others meanwhile, {ATTEMPTS} times; run it again")]
    Busy {
        /// The store.
        place: String,
    },
}

impl ServedStore {
    /// Where it is, for people.
    pub fn place(&self) -> String {
        match self {
            ServedStore::Disk(disk) => disk.dir().display().to_string(),
            ServedStore::Bucket(bucket) => bucket.location().to_string(),
        }
    }

    /// What is served; `None` where nothing was ever published.
    ///
    /// # Errors
    /// When it cannot be read, or is no pointer that this release knows.
    pub async fn current(&self) -> Result<Option<Current>, ServedStoreError> {
        let found = match self {
            ServedStore::Disk(disk) => read(disk, POINTER)?.map(|bytes| (bytes.into(), None)),
            ServedStore::Bucket(bucket) => bucket
                .get(POINTER, Limits::default().document_bytes as u64)
                .await?
                .map(|(bytes, object)| (bytes, Some(object))),
        };
        found
            .map(|(bytes, object)| {
                Ok(Current {
                    pointer: self.parse(&bytes)?,
                    object,
                })
            })
            .transpose()
    }

    /// Whether the pointer is another one by now.
    ///
    /// # Errors
    /// As [`ServedStore::current`]; and when it is gone.
    pub async fn has_changed(&self, current: &Current) -> Result<bool, ServedStoreError> {
        let nothing = || ServedStoreError::Nothing {
            place: self.place(),
        };
        let found = match self {
            ServedStore::Disk(disk) => self.parse(&read(disk, POINTER)?.ok_or_else(nothing)?)?,
            ServedStore::Bucket(bucket) => {
                let most = Limits::default().document_bytes as u64;
                let etag = current
                    .object
                    .as_ref()
                    .and_then(|object| object.etag.as_deref());
                match bucket.get_changed(POINTER, etag, most).await? {
                    ConditionalGet::No => return Ok(false),
                    ConditionalGet::Gone => return Err(nothing()),
                    ConditionalGet::Yes(bytes, _) => self.parse(&bytes)?,
                }
            }
        };
        Ok(found != current.pointer)
    }

    /// The text of the lock with this fingerprint, which was published once.
    ///
    /// # Errors
    /// When it cannot be read, or is another one.
    pub async fn lock(&self, fingerprint: &Digest) -> Result<String, ServedStoreError> {
        let key = format!("{LOCKS}/{}", fingerprint.hex());
        let damaged = |why: &str| ServedStoreError::Damaged {
            place: format!("{}/{key}", self.place()),
            why: why.into(),
        };
        let bytes = match self {
            ServedStore::Disk(disk) => read(disk, &key)?.map(Into::into),
            ServedStore::Bucket(bucket) => bucket
                .get(&key, Limits::default().contents_bytes as u64)
                .await?
                .map(|(bytes, _)| bytes),
        };
        let bytes: bytes::Bytes = bytes.ok_or_else(|| damaged("it is not there"))?;
        if !fingerprint.matches(&bytes) {
            return Err(damaged("it has not the fingerprint that it is called by"));
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The pointer, the text of its lock, and that of the one before where it is still there.
    /// `None` where nothing was ever published.
    ///
    /// # Errors
    /// As [`ServedStore::current`] and [`ServedStore::lock`].
    pub async fn served(
        &self,
    ) -> Result<Option<(Current, String, Option<String>)>, ServedStoreError> {
        let Some(current) = self.current().await? else {
            return Ok(None);
        };
        let lock = self.lock(&current.pointer.lock).await?;
        let before = match &current.pointer.previous {
            None => None,
            Some(previous) => match self.lock(previous).await {
                // it may be removed by now
                Err(ServedStoreError::Damaged { .. }) => None,
                before => Some(before?),
            },
        };
        Ok(Some((current, lock, before)))
    }

    /// Has servers serve the lock with this text from their next look-up on. Returns the pointer
    /// before, where there was one.
    ///
    /// # Errors
    /// When it cannot be written.
    pub async fn publish(&self, text: String) -> Result<Option<Pointer>, ServedStoreError> {
        let fingerprint = Digest::sha256(text.as_bytes());
        let key = format!("{LOCKS}/{}", fingerprint.hex());
        match self {
            ServedStore::Disk(disk) => {
                let folder = disk.dir().join(OWN).join(LOCKS);
                let failed = |source| ServedStoreError::Read {
                    path: folder.display().to_string(),
                    source,
                };
                std::fs::create_dir_all(&folder).map_err(failed)?;
                disk.write(&format!("{OWN}/{key}"), text.as_bytes())?;
                let before = self.current().await?.map(|current| current.pointer);
                let pointer = next(&fingerprint, before.as_ref());
                disk.edit(&format!("{OWN}/{POINTER}"), |_| pointer.to_bytes())?;
                Ok(before)
            }
            ServedStore::Bucket(bucket) => {
                bucket.put(&key, text.into(), &PutCondition::Always).await?;
                for _ in 0..ATTEMPTS {
                    let before = self.current().await?;
                    let condition = match &before {
                        None => PutCondition::IfAbsent,
                        Some(Current {
                            object: Some(object),
                            ..
                        }) => PutCondition::IfSame(object.version()),
                        Some(_) => PutCondition::Always,
                    };
                    let before = before.map(|current| current.pointer);
                    let pointer = next(&fingerprint, before.as_ref());
                    if let PutOutcome::Written(_) = bucket
                        .put(POINTER, pointer.to_bytes().into(), &condition)
                        .await?
                    {
                        return Ok(before);
                    }
                }
                Err(ServedStoreError::Busy {
                    place: self.place(),
                })
            }
        }
    }

    fn parse(&self, bytes: &[u8]) -> Result<Pointer, ServedStoreError> {
        let damaged = |why: String| ServedStoreError::Damaged {
            place: format!("{}/{POINTER}", self.place()),
            why,
        };
        let pointer: Pointer =
            serde_json::from_slice(bytes).map_err(|error| damaged(error.to_string()))?;
        match pointer.version {
            1 => Ok(pointer),
            version => Err(damaged(format!(
                "it has version {version}, this landfall reads version 1"
            ))),
        }
    }
}

impl Pointer {
    fn to_bytes(&self) -> Vec<u8> {
        let mut text = serde_json::to_vec(self).unwrap_or_default();
        text.push(b'\n');
        text
    }
}

/// The pointer to the lock with this fingerprint. What is published again keeps what was before it.
fn next(fingerprint: &Digest, before: Option<&Pointer>) -> Pointer {
    let previous = match before {
        Some(before) if before.lock == *fingerprint => before.previous.clone(),
        before => before.map(|before| before.lock.clone()),
    };
    Pointer {
        version: 1,
        lock: fingerprint.clone(),
        previous,
    }
}

/// One of landfall's own files in a store on disk; `None` where it is not there.
fn read(disk: &DiskStore, name: &str) -> Result<Option<Vec<u8>>, ServedStoreError> {
    let path = disk.dir().join(OWN).join(name);
    match std::fs::read(&path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(ServedStoreError::Read {
            path: path.display().to_string(),
            source,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_pointer_names_the_last_two_locks_in_a_folder_and_in_a_bucket() {
        let dir = tempfile::tempdir().unwrap();
        for shelf in [
            ServedStore::Disk(DiskStore::open(dir.path()).unwrap()),
            ServedStore::Bucket(Bucket::in_memory()),
        ] {
            assert!(shelf.current().await.unwrap().is_none());
            let [one, two] = ["one", "two"].map(|text| Digest::sha256(text.as_bytes()));
            assert_eq!(shelf.publish("one".into()).await.unwrap(), None);
            let first = shelf.current().await.unwrap().unwrap();
            assert_eq!(
                (&first.pointer.lock, &first.pointer.previous),
                (&one, &None)
            );
            assert!(!shelf.has_changed(&first).await.unwrap());
            assert_eq!(
                shelf.publish("two".into()).await.unwrap(),
                Some(first.pointer.clone())
            );
            assert!(shelf.has_changed(&first).await.unwrap());
            // publishing again changes nothing
            shelf.publish("two".into()).await.unwrap();
            let (second, lock, before) = shelf.served().await.unwrap().unwrap();
            assert_eq!(
                second.pointer,
                Pointer {
                    version: 1,
                    lock: two,
                    previous: Some(one)
                }
            );
            assert_eq!((&*lock, before.as_deref()), ("two", Some("one")));
            let unknown = shelf
                .lock(&Digest::sha256(b"other"))
                .await
                .unwrap_err()
                .to_string();
            assert!(
                unknown.contains("locks/") && unknown.contains("it is not there"),
                "{unknown}"
            );
        }
    }
}
