//! The lock that a store publishes to its servers. The pointer `current` in the store names this
//! lock and the previous one. Servers read the pointer before they look up a name, so all of them
//! switch to a new lock at once.

use super::disk_content::io;
use super::disk_store::DiskStore;
use crate::bucket::{Bucket, BucketObject, ConditionalGet, PutMode, PutOutcome};
use crate::if_exists;
use bytes::Bytes;
use landfall_model::{Digest, Failure, Limits};
use serde::{Deserialize, Serialize};

/// The key of the pointer in an object store.
const POINTER: &str = "current";
/// The folder of published locks.
const LOCKS: &str = "locks";
/// Landfall's own folder in a store on disk, with the pointer and the folder of locks.
const OWN: &str = ".landfall";
/// The number of attempts to publish while other processes publish at the same time.
const ATTEMPTS: usize = 8;

/// The pointer to the lock that servers of a store serve.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockPointer {
    version: u32,
    /// The fingerprint of the lock that is served.
    pub lock: Digest,
    /// The fingerprint of the previous lock. Its blobs are still served by digest, for clients that
    /// have resolved a tag already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Digest>,
}

/// A pointer that was read, with the version of its object.
#[derive(Debug, Clone)]
pub struct ReadPointer {
    pub pointer: LockPointer,
    /// `None` in a store on disk.
    object: Option<BucketObject>,
}

/// A store with a pointer to the lock that its servers serve.
#[derive(Clone)]
pub enum ServedStore {
    /// A store in a folder on disk.
    Disk(DiskStore),
    /// A store in a folder of an object store.
    Bucket(Bucket),
}

impl ServedStore {
    /// Returns the path or URL of the store, for messages.
    pub fn place(&self) -> String {
        match self {
            ServedStore::Disk(disk) => disk.dir().display().to_string(),
            ServedStore::Bucket(bucket) => bucket.location().to_string(),
        }
    }

    /// Reads the pointer. Returns `None` if no lock was ever published.
    ///
    /// # Errors
    /// If it cannot be read, or has a version that this release does not know.
    pub async fn current(&self) -> Result<Option<ReadPointer>, Failure> {
        let limit = Limits::default().document_bytes;
        let Some((bytes, object)) = self.read(POINTER, limit).await? else {
            return Ok(None);
        };
        Ok(Some(ReadPointer {
            pointer: self.parse(&bytes)?,
            object,
        }))
    }

    /// Whether the pointer has changed since it was read. An object store sends the pointer only if
    /// its etag differs.
    ///
    /// # Errors
    /// Like [`ServedStore::current`], or if the pointer was removed.
    pub async fn has_changed(&self, current: &ReadPointer) -> Result<bool, Failure> {
        let found = match self {
            ServedStore::Disk(disk) => {
                let bytes =
                    read_own_file(disk, POINTER)?.ok_or_else(|| self.nothing_published())?;
                self.parse(&bytes)?
            }
            ServedStore::Bucket(bucket) => {
                let limit = Limits::default().document_bytes as u64;
                let etag = current
                    .object
                    .as_ref()
                    .and_then(|object| object.etag.as_deref());
                match bucket.get_changed(POINTER, etag, limit).await? {
                    ConditionalGet::Unchanged => return Ok(false),
                    ConditionalGet::Missing => return Err(self.nothing_published()),
                    ConditionalGet::Changed(bytes, _) => self.parse(&bytes)?,
                }
            }
        };
        Ok(found != current.pointer)
    }

    /// Returns the text of a published lock.
    ///
    /// # Errors
    /// If it cannot be read, or has another fingerprint.
    pub async fn lock(&self, fingerprint: &Digest) -> Result<String, Failure> {
        self.read_lock(fingerprint).await?
    }

    /// Like [`ServedStore::lock`]. The inner result is an error if the lock is missing or damaged.
    async fn read_lock(&self, fingerprint: &Digest) -> Result<Result<String, Failure>, Failure> {
        let key = format!("{LOCKS}/{}", fingerprint.hex());
        let limit = Limits::default().contents_bytes;
        let Some((bytes, _)) = self.read(&key, limit).await? else {
            let why = "it is missing; run `landfall publish` again";
            return Ok(Err(self.damaged(&key, why)));
        };
        // the name is the fingerprint, so other bytes mean a damaged or incomplete write
        if !fingerprint.matches(&bytes) {
            let why = "its fingerprint differs from its name; run `landfall publish` again";
            return Ok(Err(self.damaged(&key, why)));
        }
        Ok(Ok(String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// Reads the pointer or a lock; in an object store, one of at most `limit` bytes. Returns
    /// `None` if it is missing.
    async fn read(
        &self,
        key: &str,
        limit: usize,
    ) -> Result<Option<(Bytes, Option<BucketObject>)>, Failure> {
        Ok(match self {
            ServedStore::Disk(disk) => read_own_file(disk, key)?.map(|bytes| (bytes.into(), None)),
            ServedStore::Bucket(bucket) => bucket
                .get(key, limit as u64)
                .await?
                .map(|(bytes, object)| (bytes, Some(object))),
        })
    }

    /// Returns the pointer, the text of its lock, and the text of the previous lock if it still
    /// exists; or `None` if no lock was ever published.
    ///
    /// # Errors
    /// Like [`ServedStore::current`] and [`ServedStore::lock`].
    pub async fn served(&self) -> Result<Option<(ReadPointer, String, Option<String>)>, Failure> {
        let Some(current) = self.current().await? else {
            return Ok(None);
        };
        let lock = self.lock(&current.pointer.lock).await?;
        let before = match &current.pointer.previous {
            None => None,
            // the previous lock may have been removed by now
            Some(previous) => self.read_lock(previous).await?.ok(),
        };
        Ok(Some((current, lock, before)))
    }

    /// Publishes the lock with this text: servers serve it from their next look-up on. Returns the
    /// previous pointer, if there was one.
    ///
    /// # Errors
    /// If the lock or the pointer cannot be written, or the current pointer is damaged.
    pub async fn publish(&self, text: String) -> Result<Option<LockPointer>, Failure> {
        let fingerprint = Digest::sha256(text.as_bytes());
        let key = format!("{LOCKS}/{}", fingerprint.hex());
        match self {
            ServedStore::Disk(disk) => {
                let folder = disk.dir().join(OWN).join(LOCKS);
                std::fs::create_dir_all(&folder).map_err(io("create", &folder))?;
                // the lock before the pointer, so that servers never find a pointer without its
                // lock
                disk.write(&format!("{OWN}/{key}"), text.as_bytes())?;
                let mut before = Ok(None);
                disk.edit(&format!("{OWN}/{POINTER}"), |old| {
                    if !old.is_empty() {
                        before = self.parse(old).map(Some);
                    }
                    match &before {
                        Ok(before) => next_pointer(&fingerprint, before.as_ref()).to_bytes(),
                        // a damaged pointer is kept until someone deletes it
                        Err(_) => old.to_vec(),
                    }
                })?;
                before
            }
            ServedStore::Bucket(bucket) => {
                // the lock before the pointer, as on disk; equal keys have equal content
                bucket.put(&key, text.into(), &PutMode::Overwrite).await?;
                for _ in 0..ATTEMPTS {
                    let before = self.current().await?;
                    let condition = match &before {
                        None => PutMode::Create,
                        Some(ReadPointer {
                            object: Some(object),
                            ..
                        }) => PutMode::Update(object.version()),
                        Some(_) => PutMode::Overwrite,
                    };
                    let before = before.map(|current| current.pointer);
                    let pointer = next_pointer(&fingerprint, before.as_ref());
                    if let PutOutcome::Written(_) = bucket
                        .put(POINTER, pointer.to_bytes().into(), &condition)
                        .await?
                    {
                        return Ok(before);
                    }
                }
                Err(Failure::failed(format!(
                    "{ATTEMPTS} attempts to publish in {} failed, because other processes \
                     published at the same time; run the command again",
                    self.place()
                )))
            }
        }
    }

    fn parse(&self, bytes: &[u8]) -> Result<LockPointer, Failure> {
        // `publish` reads the pointer too, so it fails until a damaged one is deleted
        let pointer: LockPointer = serde_json::from_slice(bytes).map_err(|error| {
            let why = format!("{error}; delete it, and run `landfall publish` again");
            self.damaged(POINTER, &why)
        })?;
        match pointer.version {
            1 => Ok(pointer),
            version => {
                let why = format!(
                    "it has version {version}, this landfall reads version 1; update landfall"
                );
                Err(self.damaged(POINTER, &why))
            }
        }
    }

    /// Returns the failure of a command that needs a published lock, when there is none.
    pub fn nothing_published(&self) -> Failure {
        let place = self.place();
        Failure::usage(format!(
            "no lock was published in the store {place}; publish one with `landfall publish`"
        ))
    }

    /// The pointer or a lock is damaged, or has a newer format.
    fn damaged(&self, key: &str, why: &str) -> Failure {
        let place = match self {
            ServedStore::Disk(disk) => disk.dir().join(OWN).join(key).display().to_string(),
            ServedStore::Bucket(bucket) => bucket.url(key),
        };
        Failure::failed(format!("cannot use {place}: {why}"))
    }
}

impl LockPointer {
    fn to_bytes(&self) -> Vec<u8> {
        let mut text = serde_json::to_vec(self).unwrap_or_default();
        text.push(b'\n');
        text
    }
}

/// Returns the pointer to the lock with this fingerprint. If the same lock is published again, the
/// previous lock stays the same.
fn next_pointer(fingerprint: &Digest, before: Option<&LockPointer>) -> LockPointer {
    let previous = match before {
        Some(before) if before.lock == *fingerprint => before.previous.clone(),
        before => before.map(|before| before.lock.clone()),
    };
    LockPointer {
        version: 1,
        lock: fingerprint.clone(),
        previous,
    }
}

/// Reads one of landfall's own files in a store on disk. Returns `None` if it is missing.
fn read_own_file(disk: &DiskStore, name: &str) -> Result<Option<Vec<u8>>, Failure> {
    let path = disk.dir().join(OWN).join(name);
    if_exists(std::fs::read(&path)).map_err(|error| {
        let path = path.display();
        Failure::failed(format!("cannot read {path}: {error}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_pointer_names_the_last_two_locks_in_a_folder_and_in_a_bucket() {
        let dir = tempfile::tempdir().unwrap();
        for store in [
            ServedStore::Disk(DiskStore::open(dir.path()).unwrap()),
            ServedStore::Bucket(Bucket::in_memory()),
        ] {
            assert!(store.current().await.unwrap().is_none());
            let [one, two] = ["one", "two"].map(|text| Digest::sha256(text.as_bytes()));
            assert_eq!(store.publish("one".into()).await.unwrap(), None);
            let first = store.current().await.unwrap().unwrap();
            assert_eq!(
                (&first.pointer.lock, &first.pointer.previous),
                (&one, &None)
            );
            assert!(!store.has_changed(&first).await.unwrap());
            assert_eq!(
                store.publish("two".into()).await.unwrap(),
                Some(first.pointer.clone())
            );
            assert!(store.has_changed(&first).await.unwrap());
            // publishing the same lock again changes nothing
            store.publish("two".into()).await.unwrap();
            let (second, lock, before) = store.served().await.unwrap().unwrap();
            assert_eq!(
                second.pointer,
                LockPointer {
                    version: 1,
                    lock: two,
                    previous: Some(one)
                }
            );
            assert_eq!((&*lock, before.as_deref()), ("two", Some("one")));
            let unknown = store
                .lock(&Digest::sha256(b"other"))
                .await
                .unwrap_err()
                .to_string();
            assert!(
                unknown.contains("locks/") && unknown.contains("it is missing"),
                "{unknown}"
            );
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn simultaneous_publishers_never_replace_the_same_lock() {
        let dir = tempfile::tempdir().unwrap();
        let store = ServedStore::Disk(DiskStore::open(dir.path()).unwrap());
        let publishers = (0..32).map(|number| {
            let store = store.clone();
            tokio::spawn(async move { store.publish(number.to_string()).await.unwrap() })
        });
        let mut replaced = Vec::new();
        for publisher in publishers.collect::<Vec<_>>() {
            replaced.extend(publisher.await.unwrap().map(|before| before.lock));
        }
        let current = store.current().await.unwrap().unwrap().pointer;
        replaced.push(current.lock);
        replaced.sort_unstable();
        replaced.dedup();
        assert_eq!(replaced.len(), 32, "two publishers replaced the same lock");
    }

    #[tokio::test]
    async fn a_damaged_pointer_is_reported_with_its_path_and_the_fix() {
        let dir = tempfile::tempdir().unwrap();
        let store = ServedStore::Disk(DiskStore::open(dir.path()).unwrap());
        store.publish("one".into()).await.unwrap();
        let path = dir.path().join(OWN).join(POINTER);
        std::fs::write(&path, "{").unwrap();
        let message = store.publish("two".into()).await.unwrap_err().to_string();
        assert!(
            message.contains(".landfall/current: ") && message.contains("delete it"),
            "{message}"
        );
        std::fs::remove_file(&path).unwrap();
        assert_eq!(store.publish("two".into()).await.unwrap(), None);
    }
}
