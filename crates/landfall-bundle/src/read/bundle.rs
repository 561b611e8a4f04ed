//! Reading a bundle by offset. Nothing is ever extracted to a path that the bundle names.
//!
//! A bundle comes from the other side of a gap, so whoever made or carried it may be hostile. The
//! attacks, and the defence against each:
//!
//! - **Changed, swapped or truncated bytes.** Every frame's hash is checked before the frame is
//!   decoded, and so before a byte of it is handed out. The hash is of the frame as it lies in the
//!   file: not one bit of it is free. The hashes stand in the frame table, those of the table's
//!   frames in the index, and the index's own in the footer: it is the bundle digest.
//! - **An index that lies.** Then every frame may fit it. A blob that is read from its beginning is
//!   hashed on the way, and its last piece is not handed out if its digest is wrong. The index does
//!   not show who packed the bundle; that needs the digest, the lock's fingerprint or a signature.
//! - **Volumes** that are missing, or of another bundle. Whatever the files, they are read as one
//!   run of bytes under the same checks. The checksums beside them are not trusted: they only help
//!   to name the bad one.
//! - **Names**: absolute, `..`, links, devices, duplicates, names that other tools trip over. Only
//!   the names of the layout, `blobs/ALGORITHM/HEX`, and plain names that begin with `landfall` may
//!   stand in the index, once each. The tar headers are never used here; `verify` compares each
//!   with the one that must be there.
//! - **Offsets and lengths** that overlap, leave gaps for smuggled bytes, overflow, or reach behind
//!   the end. Entries must lie one after the other from byte 0 to the index, stored frames have the
//!   one length that follows from the size, and the file must end where the index says.
//! - **Bombs.** A frame declares at most 1 MiB of content, and the decoder stops there. Nothing is
//!   allocated by a declared length before the file has shown as many bytes; the index has a bound
//!   ([`Limits`]).
//! - **The frames' own sizes.** Readers trust the index and the frame table; `verify` compares
//!   them.
//! - **A lock that is not the one the blobs were packed for.** Its fingerprint is in the index;
//!   `verify` plans the bundle again from the lock and compares, and compares the lock with what
//!   the manifests say.
//! - **Signatures** that are missing, swapped, of another key, or for another purpose. Each is over
//!   the whole index, and says nothing until [`Bundle::signed_by`] has compared it with the keys
//!   that are allowed.
//! - **An older bundle** that was good once. Its serial is in the index, under the signatures.
//! - **Newer formats** that would be misread. Their version or `requires` names what this release
//!   lacks.

use super::entry_reader::BundleEntryReader;
use super::index::{BundleIndex, read_footer};
use super::open_bundle::OpenBundle;
use super::verified_blob_reader::VerifiedBlobReader;
use super::volume_reader::VolumeReader;
use super::whole_blob_reader::WholeBlobReader;
use crate::error::BundleError;
use crate::format::base_name::BaseName;
use crate::format::content_form::ContentForm;
use crate::format::contents::{ContentsIndex, Serial};
use crate::format::damage::Damage;
use crate::format::names::{CONTENTS, ItemName};
use crate::plan::delta_base::DeltaBase;
use landfall_content::{
    BlobRead, ContentError, FileRunRead, FileRuns, FileStamp, LockEntry, RangeRead, VerifiedRead,
    has_digest,
};
use landfall_item::lockfile::{Lock, UnresolvedItem};
use landfall_model::{Descriptor, Digest, Limits};
use std::collections::BTreeSet;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An open bundle. Clones share its files, and any number of threads may read.
#[derive(Debug, Clone)]
pub struct Bundle(pub Arc<OpenBundle>);

impl Bundle {
    /// Opens the bundle at `path`: reads only its footer, contents index and signatures, and does
    /// not verify the signatures. `path` is the file or, if the bundle is split, its name without a
    /// number, or any of its volumes.
    ///
    /// # Errors
    /// When the file cannot be read, is not a bundle, or is damaged in these parts; when volumes
    /// are missing; and when the bundle needs a newer landfall.
    pub fn open(path: &Path) -> Result<Bundle, BundleError> {
        Bundle::open_at(&[path.into()])
    }

    /// Like [`Bundle::open`], for a bundle whose volumes may be in several folders. Each of
    /// `places` is a volume or a folder; the bundle has the name of the first.
    ///
    /// # Errors
    /// As [`Bundle::open`].
    pub fn open_at(places: &[PathBuf]) -> Result<Bundle, BundleError> {
        Bundle::of(places, VolumeReader::open(places)?)
    }

    /// Opens a bundle in an object store: with one request for its end, and another one if the
    /// index is large.
    ///
    /// # Errors
    /// As [`Bundle::open`].
    pub fn open_object(object: Arc<dyn RangeRead>) -> Result<Bundle, BundleError> {
        Bundle::of(&[object.url().into()], VolumeReader::of_object(object)?)
    }

    fn of(places: &[PathBuf], volumes: VolumeReader) -> Result<Bundle, BundleError> {
        let path = places.first().map_or(Path::new(""), PathBuf::as_path);
        let damaged = |damage: Damage| {
            // until the index is known, a truncated volume looks like damage in the volumes after
            // it
            let hint = match volumes.volume(0) {
                Some(_) => {
                    "; if a volume was cut short or is another bundle's, `landfall verify` tells which"
                }
                None => "",
            };
            let damage = Damage {
                why: format!("{}{hint}", damage.why),
                ..volumes.place(damage)
            };
            BundleError::Damaged {
                path: path.into(),
                damage: vec![damage],
                loss: None,
            }
        };
        let footer = read_footer(&volumes).map_err(damaged)?;
        let index = BundleIndex::read(path, &volumes, footer, damaged)?;
        Ok(Bundle(Arc::new(OpenBundle::new(places, volumes, index))))
    }

    /// The path at which the bundle was opened.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// The bundle digest: SHA-256 of the contents index.
    pub fn digest(&self) -> &Digest {
        &self.0.index.footer.sha256
    }

    /// The fingerprint of the lock according to the index. [`Bundle::lock`] verifies it.
    pub fn fingerprint(&self) -> &Digest {
        &self.contents().locks[0].fingerprint
    }

    /// The contents index of the bundle.
    pub fn contents(&self) -> &ContentsIndex {
        &self.0.index.contents
    }

    /// The items of the lock that the bundle lacks. Empty if it is complete.
    pub fn partial(&self) -> &[ItemName] {
        &self.0.partial
    }

    /// The bases of a delta, each of which contains all omitted blobs. Empty if the bundle is not a
    /// delta.
    pub fn bases(&self) -> &[BaseName] {
        &self.contents().bases
    }

    /// The blobs that a delta omits although its items need them. Empty if the bundle is not a
    /// delta.
    pub fn omitted(&self) -> &[Descriptor] {
        &self.contents().omitted
    }

    /// Whether the bundle is split into volumes.
    pub fn is_split(&self) -> bool {
        self.0.volumes.volume_number(0).is_some()
    }

    /// The size in bytes, of all volumes together.
    pub fn bytes(&self) -> u64 {
        self.0.volumes.length()
    }

    /// The signatures in the format of `ssh-keygen -Y sign`, unverified.
    pub fn signatures(&self) -> &[String] {
        &self.0.index.signatures
    }

    /// The series and the number of the bundle, if it belongs to a series.
    pub fn serial(&self) -> Option<Serial> {
        let ContentsIndex { series, serial, .. } = self.contents();
        let (series, number) = series.clone().zip(*serial)?;
        Some(Serial { series, number })
    }

    /// Whether the bundle is this base, or was packed from the lock that the base names.
    pub fn matches_base(&self, base: &BaseName) -> bool {
        match base {
            BaseName::Bundle { digest, .. } => digest == self.digest(),
            BaseName::Lock { lock } | BaseName::Receipt { lock, .. } => lock == self.fingerprint(),
        }
    }

    /// The bundle as a base for a delta.
    pub fn as_base(&self) -> DeltaBase {
        DeltaBase::bundle(self.digest().clone(), self.contents())
    }

    /// The lock in the bundle, without the items that the bundle lacks, which are listed as
    /// unresolved.
    ///
    /// # Errors
    /// As [`Bundle::lock`].
    pub fn available_lock(&self) -> Result<Lock, BundleError> {
        let mut lock = self.lock()?;
        let lacks = |kind, name: &str| {
            self.partial()
                .iter()
                .any(|item| item.kind == kind && item.name == name)
        };
        lock.retain(|item| !lacks(item.kind(), &item.name()));
        for ItemName { kind, name } in self.partial() {
            let told = lock.unresolved.iter().map(|lost| (lost.kind, &lost.name));
            let mut told = told.chain(lock.missing.iter().map(|lost| (lost.kind, &lost.name)));
            if !told.any(|lost| lost == (*kind, name)) {
                let cause = "the bundle lacks it".into();
                lock.unresolved.push(UnresolvedItem {
                    kind: *kind,
                    name: name.clone(),
                    cause,
                });
            }
        }
        Ok(lock)
    }

    /// The lock inside.
    ///
    /// # Errors
    /// When the lock cannot be read, or does not have the fingerprint in the index.
    pub fn lock(&self) -> Result<Lock, BundleError> {
        let OpenBundle {
            index: BundleIndex {
                contents, footer, ..
            },
            path,
            volumes,
            ..
        } = &*self.0;
        let none = || Damage::new(CONTENTS, footer.offset, "it has no lock");
        let error = |damage| BundleError::Damaged {
            path: path.clone(),
            damage: vec![volumes.place(damage)],
            loss: None,
        };
        let place = contents.lock_place().ok_or_else(|| error(none()))?;
        let entry = &contents.entries[place];
        let damaged = |why: String| error(Damage::new(&entry.name, entry.offset, why));
        let limit = Limits::default().contents_bytes as u64;
        let mut text = String::new();
        BundleEntryReader::new(Arc::clone(&self.0), place, 0)
            .take(limit)
            .read_to_string(&mut text)
            .map_err(|error| damaged(error.to_string()))?;
        // compared before parsing, and on the bytes as carried: a later release may serialize the
        // same lock differently
        if Digest::sha256(text.as_bytes()) != *self.fingerprint() {
            return Err(damaged(
                "it is not the lock that the contents index names".into(),
            ));
        }
        Lock::parse(&format!("{}:{}", path.display(), entry.name), &text)
            .map_err(|error| damaged(error.to_string()))
    }

    /// The items that the bundle contains, each with its parts, sorted by kind and name.
    ///
    /// # Errors
    /// As [`Bundle::lock`].
    pub fn entries(&self) -> Result<Vec<LockEntry>, BundleError> {
        let lost: BTreeSet<_> = self
            .partial()
            .iter()
            .map(|item| (item.kind, &item.name))
            .collect();
        let mut entries = self.lock()?.entries();
        entries.retain(|entry| !lost.contains(&(entry.kind, &entry.name)));
        Ok(entries)
    }
}

impl Bundle {
    /// The index of a blob's entry, if the blob is stored in local files.
    fn stored_in_file(&self, digest: &Digest) -> Option<usize> {
        let place = self
            .0
            .place(digest)
            .filter(|_| !self.0.volumes.is_remote())?;
        (self.0.entry(place).form == ContentForm::Stored).then_some(place)
    }
}

impl BlobRead for Bundle {
    fn stat(&self, digest: &Digest) -> Result<Option<u64>, ContentError> {
        Ok(self
            .0
            .place(digest)
            .map(|place| self.contents().entries[place].size))
    }

    fn open(&self, digest: &Digest, offset: u64) -> Result<Box<dyn Read + Send>, ContentError> {
        let missing = || ContentError::Missing {
            digest: digest.clone(),
        };
        let place = self.0.place(digest).ok_or_else(missing)?;
        Ok(Box::new(BundleEntryReader::new(
            Arc::clone(&self.0),
            place,
            offset,
        )))
    }

    fn open_whole(&self, digest: &Digest) -> Result<Box<dyn Read + Send>, ContentError> {
        match self.0.place(digest) {
            Some(place) if self.contents().entries[place].form == ContentForm::Stored => {
                Ok(Box::new(WholeBlobReader::new(Arc::clone(&self.0), place)))
            }
            _ => self.open(digest, 0),
        }
    }
}

impl VerifiedRead for Bundle {
    fn file_stamps(&self, digest: &Digest) -> Result<Vec<FileStamp>, ContentError> {
        let missing = || ContentError::Missing {
            digest: digest.clone(),
        };
        let entry = self.0.entry(self.0.place(digest).ok_or_else(missing)?);
        let file_stamps = self.0.volumes.file_stamps(entry.offset, entry.length);
        file_stamps.map_err(|source| ContentError::Read {
            digest: digest.clone(),
            source,
        })
    }

    fn verify(&self, digest: &Digest) -> io::Result<bool> {
        if let Some(place) = self.stored_in_file(digest) {
            return VerifiedBlobReader::new(Arc::clone(&self.0), place, 0).is_sound();
        }
        let mut reader = self.open_verified(digest, 0).map_err(io::Error::other)?;
        has_digest(&mut reader, digest)
    }

    fn open_verified(
        &self,
        digest: &Digest,
        offset: u64,
    ) -> Result<Box<dyn Read + Send>, ContentError> {
        let missing = || ContentError::Missing {
            digest: digest.clone(),
        };
        let place = self.0.place(digest).ok_or_else(missing)?;
        Ok(match self.0.entry(place).form {
            ContentForm::Stored if !self.0.volumes.is_remote() => {
                Box::new(VerifiedBlobReader::new(Arc::clone(&self.0), place, offset))
            }
            // frames of a remote object are not read twice
            ContentForm::Stored | ContentForm::Compressed => Box::new(BundleEntryReader::of_known(
                Arc::clone(&self.0),
                place,
                offset,
            )),
        })
    }

    fn is_remote(&self) -> bool {
        self.0.volumes.is_remote()
    }

    fn as_file_runs(&self) -> Option<&dyn FileRunRead> {
        Some(self)
    }
}

impl FileRunRead for Bundle {
    fn file_runs(&self, digest: &Digest, offset: u64) -> Result<Option<FileRuns>, ContentError> {
        Ok(self
            .stored_in_file(digest)
            .map(|place| VerifiedBlobReader::new(Arc::clone(&self.0), place, offset).runs()))
    }
}
