//! Repositories that were pushed: their tags, manifests and referrers.

use super::blobs::{IncomingBlob, WritableBlobs};
use super::disk::{list, optional, sync, write};
use super::error::KeepError;
use super::room::Room;
use crate::ServeError;
use landfall_content::BlobRead;
use landfall_model::{Algorithm, Descriptor, Digest, ReferrerManifest};
use serde_json::value::RawValue;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The folder of `--writable`.
pub(in super::super) struct WritableStore {
    dir: PathBuf,
    /// The content, manifests too.
    pub(in super::super) blobs: Arc<WritableBlobs>,
    /// Held while a manifest and its tags are written; held alone while blobs are removed that
    /// nothing names.
    gate: RwLock<()>,
    /// Held by a removal while it finds out what nothing names, before it holds the blobs alone.
    removal: Mutex<()>,
    /// Locked as long as this process serves the folder.
    _lock: File,
}

/// The file that marks a folder as one of landfall's.
const MARKER: &str = ".landfall-serve";

impl WritableStore {
    /// Opens the folder, creates it where it does not exist, and locks it for this process. It may
    /// have `most` bytes.
    ///
    /// # Errors
    /// When it cannot be written, or another process serves it.
    pub(in super::super) fn open(
        dir: &Path,
        most: Option<u64>,
    ) -> Result<WritableStore, ServeError> {
        let wrong = |source| ServeError::Writable {
            dir: dir.into(),
            source,
        };
        // a folder that landfall did not make is left alone
        let marker = dir.join(MARKER);
        let empty = list(dir).map_err(wrong)?.is_empty();
        if !empty && !marker.is_file() {
            let why =
                "it is not empty, and landfall did not make it; name a new folder or an empty one";
            return Err(wrong(io::Error::other(why)));
        }
        fs::create_dir_all(dir)
            .and_then(|()| fs::write(&marker, "content that was pushed to landfall serve\n"))
            .map_err(wrong)?;
        for folder in ["blobs", "frames", "repositories"] {
            fs::create_dir_all(dir.join(folder)).map_err(wrong)?;
        }
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(dir.join("lock"))
            .map_err(wrong)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Err(ServeError::Busy { dir: dir.into() }),
            Err(fs::TryLockError::Error(source)) => return Err(wrong(source)),
        }
        let incoming = dir.join("incoming");
        match fs::remove_dir_all(&incoming) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(wrong(error)),
            _ => fs::create_dir(&incoming).map_err(wrong)?,
        }
        let blobs = Arc::new(WritableBlobs::open(dir, most).map_err(wrong)?);
        Ok(WritableStore {
            dir: dir.into(),
            blobs,
            gate: RwLock::default(),
            removal: Mutex::default(),
            _lock: lock,
        })
    }

    /// The folder.
    pub(in super::super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// How many bytes the folder has, and may have.
    pub(in super::super) fn room(&self) -> &Room {
        self.blobs.room()
    }

    /// As long as this is held, no blob is removed: what a manifest needs stays until the manifest
    /// names it.
    pub(in super::super) fn hold_blobs(&self) -> RwLockReadGuard<'_, ()> {
        self.gate.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until nobody holds the blobs, and lets nobody do so.
    pub(super) fn hold_alone(&self) -> RwLockWriteGuard<'_, ()> {
        self.gate.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// One removal at a time: until this is dropped, others wait. Pushes do not.
    pub(super) fn begin_removal(&self) -> MutexGuard<'_, ()> {
        self.removal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn repository(&self, name: &str) -> PathBuf {
        self.dir.join("repositories").join(name)
    }

    pub(super) fn manifest_path(&self, name: &str, digest: &Digest) -> PathBuf {
        self.repository(name)
            .join("_manifests")
            .join(digest.algorithm().as_str())
            .join(digest.hex())
    }

    /// The digest of `tag` in the repository.
    ///
    /// # Errors
    /// When the disk cannot be read.
    pub(in super::super) fn tag(&self, name: &str, tag: &str) -> io::Result<Option<Digest>> {
        let text = optional(fs::read_to_string(
            self.repository(name).join("_tags").join(tag),
        ))?;
        text.map(|text| text.trim().parse().map_err(io::Error::other))
            .transpose()
    }

    /// The manifest with this digest, where it was pushed to this repository.
    ///
    /// # Errors
    /// When the disk cannot be read.
    pub(in super::super) fn manifest(
        &self,
        name: &str,
        digest: &Digest,
    ) -> io::Result<Option<Descriptor>> {
        let Some(media_type) = optional(fs::read_to_string(self.manifest_path(name, digest)))?
        else {
            return Ok(None);
        };
        let size = self.blobs.stat(digest).map_err(io::Error::other)?;
        Ok(size.map(|size| Descriptor {
            digest: digest.clone(),
            size,
            media_type: media_type.into(),
        }))
    }

    /// The tags of a repository, sorted; `None` where nothing was pushed to it.
    ///
    /// # Errors
    /// When the disk cannot be read.
    pub(in super::super) fn tags(&self, name: &str) -> io::Result<Option<Vec<String>>> {
        if !self.repository(name).join("_manifests").is_dir() {
            return Ok(None);
        }
        list(&self.repository(name).join("_tags")).map(Some)
    }

    /// The names of all repositories, sorted.
    ///
    /// # Errors
    /// When the disk cannot be read.
    pub(in super::super) fn repositories(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        let mut open = vec![String::new()];
        while let Some(above) = open.pop() {
            for entry in list(&self.repository(&above))? {
                if entry == "_manifests" {
                    names.push(above.trim_end_matches('/').to_owned());
                } else if !entry.starts_with('_') {
                    open.push(format!("{above}{entry}/"));
                }
            }
        }
        names.sort();
        Ok(names)
    }

    /// The digests of the manifests that were pushed to the repository.
    ///
    /// # Errors
    /// When the disk cannot be read.
    pub(super) fn manifests(&self, name: &str) -> io::Result<Vec<Digest>> {
        let mut digests = Vec::new();
        for algorithm in [Algorithm::Sha256, Algorithm::Sha512] {
            let folder = self
                .repository(name)
                .join("_manifests")
                .join(algorithm.as_str());
            let names = list(&folder)?.into_iter();
            digests.extend(
                names.filter_map(|hex| format!("{}:{hex}", algorithm.as_str()).parse().ok()),
            );
        }
        Ok(digests)
    }

    /// The folder of the manifests with this subject: a file for each.
    pub(super) fn referrers_of(&self, name: &str, subject: &Digest) -> PathBuf {
        self.repository(name).join("_referrers").join(subject.hex())
    }

    /// The manifests with this subject that were pushed to the repository: the hex digits of their
    /// digests, sorted.
    ///
    /// # Errors
    /// When the disk cannot be read.
    pub(in super::super) fn referrers(
        &self,
        name: &str,
        subject: &Digest,
    ) -> io::Result<Vec<String>> {
        list(&self.referrers_of(name, subject))
    }

    /// One of [`WritableStore::referrers`] as an entry of a referrers index; `None` where it is
    /// gone by now.
    ///
    /// # Errors
    /// When the disk cannot be read.
    pub(in super::super) fn referrer(
        &self,
        name: &str,
        subject: &Digest,
        hex: &str,
    ) -> io::Result<Option<Box<RawValue>>> {
        let text = optional(fs::read_to_string(
            self.referrers_of(name, subject).join(hex),
        ))?;
        text.map(|text| Ok(RawValue::from_string(text)?))
            .transpose()
    }

    /// Adds the manifest that came in to the repository, its tags last.
    ///
    /// # Errors
    /// When its digest is not the descriptor's, or the disk does not take it.
    pub(in super::super) fn put_manifest(
        &self,
        name: &str,
        tags: &[String],
        descriptor: &Descriptor,
        referrer: Option<&ReferrerManifest>,
        incoming: IncomingBlob,
    ) -> Result<(), KeepError> {
        let digest = &descriptor.digest;
        self.blobs.keep(incoming, digest)?;
        // the names of the blobs must be on disk before the first name that leads to them
        for algorithm in [Algorithm::Sha256, Algorithm::Sha512] {
            sync(&self.dir.join("frames").join(algorithm.as_str()))?;
            sync(&self.dir.join("blobs").join(algorithm.as_str()))?;
        }
        let (repository, incoming) = (self.repository(name), self.blobs.incoming());
        if let Some(referrer) = referrer {
            let folder = self.referrers_of(name, &referrer.subject);
            write(
                &incoming,
                &folder.join(digest.hex()),
                referrer.entry.to_string().as_bytes(),
            )?;
            sync(&folder)?;
        }
        let manifest = self.manifest_path(name, digest);
        write(&incoming, &manifest, descriptor.media_type.as_bytes())?;
        sync(manifest.parent().unwrap_or(&repository))?;
        for tag in tags {
            write(
                &incoming,
                &repository.join("_tags").join(tag),
                digest.to_string().as_bytes(),
            )?;
        }
        sync(&repository.join("_tags"))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repositories_tags_and_manifests_are_found_again_by_the_next_process() {
        let dir = tempfile::tempdir().unwrap();
        let descriptor = Descriptor {
            digest: Digest::sha256(b"{}"),
            size: 2,
            media_type: "application/x".into(),
        };
        {
            let store = WritableStore::open(dir.path(), None).unwrap();
            let tags = ["v1".to_owned(), "a".to_owned()];
            let incoming = || {
                let mut incoming = store.blobs.begin(Algorithm::Sha256).unwrap();
                incoming.write(b"{}").unwrap();
                incoming
            };
            store
                .put_manifest("x/y/z", &tags, &descriptor, None, incoming())
                .unwrap();
            store
                .put_manifest("x/y", &[], &descriptor, None, incoming())
                .unwrap();
            assert!(
                matches!(
                    WritableStore::open(dir.path(), None),
                    Err(ServeError::Busy { .. })
                ),
                "one process only"
            );
        }
        let store = WritableStore::open(dir.path(), None).unwrap();
        assert_eq!(store.repositories().unwrap(), ["x/y", "x/y/z"]);
        assert_eq!(store.tags("x/y/z").unwrap().unwrap(), ["a", "v1"]);
        assert_eq!(store.tags("x").unwrap(), None);
        assert_eq!(
            store.tag("x/y/z", "v1").unwrap(),
            Some(descriptor.digest.clone())
        );
        assert_eq!(store.tag("x/y", "v1").unwrap(), None);
        assert_eq!(
            store.manifest("x/y", &descriptor.digest).unwrap(),
            Some(descriptor.clone())
        );
        assert_eq!(store.manifest("x", &descriptor.digest).unwrap(), None);
    }
}
