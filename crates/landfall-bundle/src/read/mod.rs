//! Reading: opens a bundle, reads it by offset and verifies it, without ever extracting it.

mod compare_lock;
mod entry_reader;
pub(crate) mod index;
mod signers;
mod verified_blob_reader;
pub mod verify;
pub(crate) mod volume_reader;
pub(crate) mod volume_set;

use self::entry_reader::BundleEntryReader;
use self::index::{BundleIndex, FrameRows, read_footer, read_index};
use self::verified_blob_reader::{VerifiedBlobReader, whole_blob};
use self::volume_reader::VolumeReader;
use crate::error::BundleError;
use crate::format::blob_recipe::{BlobRecipe, BlobReference};
use crate::format::contents::{ContentsIndex, Serial};
use crate::format::damage::Damage;
use crate::format::entry::{EntryFrame, TarEntry};
use crate::format::names::{BaseName, CONTENTS, ItemName};
use crate::format::stored::{ContentForm, ReadAt};
use crate::plan::delta_base::DeltaBase;
use crate::plan::without_lost_referrers;
use landfall_content::{
    BlobRead, ContentError, FileRunRead, FileRuns, FileStamp, LockEntry, RangeRead, RecentChecks,
    VerifiedRead,
};
use landfall_item::lockfile::{Lock, UnresolvedItem};
use landfall_model::report::EntryKind;
use landfall_model::{Descriptor, Digest, Limits, has_digest};
use std::collections::{BTreeSet, HashMap};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use self::signers::BundleSigner;
pub use self::verify::{VerifiedBundle, shard_parts, verify, verify_shard};
pub use self::volume_set::{UnopenedBundle, is_split, name_bad_volumes, volume_locations};

/// An open bundle. Clones share its files, and any number of threads may read.
#[derive(Debug, Clone)]
pub struct Bundle(pub Arc<OpenBundle>);

impl Bundle {
    /// Opens the bundle at `path`: reads only its footer, contents index and signatures, and does
    /// not verify the signatures. `path` is the file or, if the bundle is split, its name without a
    /// number, or any of its volumes.
    ///
    /// # Errors
    /// If the file cannot be read, is not a bundle, or is damaged in these parts; if volumes
    /// are missing; and if the bundle needs a newer landfall.
    pub fn open(path: &Path) -> Result<Bundle, BundleError> {
        Bundle::open_at(&[path.into()])
    }

    /// Like [`Bundle::open`], for a bundle whose volumes may be in several folders. The first of
    /// `locations` is a path as for [`Bundle::open`], or a folder; each further location is a
    /// volume or a folder. The path of the bundle is the first location.
    ///
    /// # Errors
    /// Like [`Bundle::open`].
    pub fn open_at(locations: &[PathBuf]) -> Result<Bundle, BundleError> {
        Bundle::of(locations, VolumeReader::open(locations)?)
    }

    /// Opens a bundle in an object store: with one request for its end, and another one if the
    /// index is large.
    ///
    /// # Errors
    /// Like [`Bundle::open`].
    pub fn open_object(object: Arc<dyn RangeRead>) -> Result<Bundle, BundleError> {
        Bundle::of(&[object.url().into()], VolumeReader::of_object(object)?)
    }

    fn of(locations: &[PathBuf], volumes: VolumeReader) -> Result<Bundle, BundleError> {
        let path = locations.first().map_or(Path::new(""), PathBuf::as_path);
        let damaged = |damage: Damage| {
            // until the index is known, a truncated volume looks like damage in the volumes after
            // it
            let hint = match volumes.volume(0) {
                Some(_) => {
                    "; if a volume is truncated or belongs to another bundle, `landfall verify` \
                     names it"
                }
                None => "",
            };
            let damage = Damage {
                why: format!("{}{hint}", damage.why),
                ..volumes.locate(damage)
            };
            BundleError::Damaged {
                path: path.into(),
                damage: vec![damage],
                loss: None,
            }
        };
        let footer = read_footer(&volumes).map_err(damaged)?;
        let index = BundleIndex::read(path, &volumes, footer, damaged)?;
        Ok(Bundle(Arc::new(OpenBundle::new(locations, volumes, index))))
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

    /// Whether the bundle has recipes in place of blobs.
    pub fn has_recipes(&self) -> bool {
        !self.contents().recipes.is_empty()
    }

    /// The blobs that the recipes of the bundle use, except those that the bundle contains or has
    /// recipes for.
    pub fn references(&self) -> &[BlobReference] {
        &self.contents().references
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

    /// The lock in the bundle. Items that the bundle lacks are removed from the lock and listed as
    /// unresolved.
    ///
    /// # Errors
    /// Like [`Bundle::lock`].
    pub fn available_lock(&self) -> Result<Lock, BundleError> {
        let partial: BTreeSet<ItemName> = self.partial().iter().cloned().collect();
        let mut lock = without_lost_referrers(&self.lock()?, &partial).into_owned();
        remove_items(&mut lock, self.partial());
        Ok(lock)
    }

    /// The lock of the bundle.
    ///
    /// # Errors
    /// If the lock cannot be read, or does not have the fingerprint in the index.
    pub fn lock(&self) -> Result<Lock, BundleError> {
        let entry_index = self.contents().lock_index().ok_or_else(|| {
            let offset = self.0.index.footer.offset;
            self.0
                .damaged(Damage::new(CONTENTS, offset, "it has no lock"))
        })?;
        let entry = self.0.entry(entry_index);
        let damaged = |why: String| self.0.damaged(Damage::new(&entry.name, entry.offset, why));
        let limit = Limits::default().contents_bytes as u64;
        let mut text = String::new();
        self.open_entry(entry_index, 0)
            // a forged index may give the lock any size
            .take(limit)
            .read_to_string(&mut text)
            .map_err(|error| damaged(error.to_string()))?;
        // the bytes in the bundle are compared, before parsing: a later release may serialize the
        // same lock differently
        if Digest::sha256(text.as_bytes()) != *self.fingerprint() {
            let why = "it is not the lock that the contents index names";
            return Err(damaged(why.into()));
        }
        Lock::parse(&format!("{}:{}", self.path().display(), entry.name), &text)
            .map_err(|error| damaged(error.to_string()))
    }

    /// The items that the bundle contains, each with its parts, sorted by kind and name.
    ///
    /// # Errors
    /// Like [`Bundle::lock`].
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
    /// The recipes, each with the index of its entry.
    pub(crate) fn recipes(&self) -> impl Iterator<Item = (usize, &BlobRecipe)> {
        let entries = self.contents().entries.iter().enumerate();
        let indexes: HashMap<&str, usize> = entries
            .map(|(index, entry)| (entry.name.as_str(), index))
            .collect();
        let recipes = self.contents().recipes.iter();
        // each recipe has an entry: this was checked when the bundle was opened
        recipes.filter_map(move |recipe| Some((*indexes.get(recipe.entry.as_str())?, recipe)))
    }

    /// Opens the content of an entry at `offset`.
    pub(crate) fn open_entry(&self, index: usize, offset: u64) -> Box<dyn Read + Send> {
        Box::new(BundleEntryReader::new(Arc::clone(&self.0), index, offset))
    }
}

impl Bundle {
    /// The index of a blob's entry, if the blob is stored uncompressed in local files.
    fn stored_in_file(&self, digest: &Digest) -> Option<usize> {
        let entry_index = self
            .0
            .entry_index(digest)
            .filter(|_| !self.0.volumes.is_remote())?;
        (self.0.entry(entry_index).form == ContentForm::Stored).then_some(entry_index)
    }

    /// The index of the entry of a blob; fails if the bundle does not contain the blob.
    fn blob_index(&self, digest: &Digest) -> Result<usize, ContentError> {
        let found = self.0.entry_index(digest);
        found.ok_or_else(|| ContentError::missing(digest))
    }
}

impl BlobRead for Bundle {
    fn stat(&self, digest: &Digest) -> Result<Option<u64>, ContentError> {
        Ok(self.0.blob_entry(digest).map(|entry| entry.size))
    }

    fn open(&self, digest: &Digest, offset: u64) -> Result<Box<dyn Read + Send>, ContentError> {
        Ok(self.open_entry(self.blob_index(digest)?, offset))
    }

    fn open_whole(&self, digest: &Digest) -> Result<Box<dyn Read + Send>, ContentError> {
        match self.0.entry_index(digest) {
            // only for stored blobs: a compressed one is decoded, and so verified, frame by frame
            Some(entry_index) if self.0.entry(entry_index).form == ContentForm::Stored => {
                Ok(Box::new(whole_blob(Arc::clone(&self.0), entry_index)))
            }
            _ => self.open(digest, 0),
        }
    }
}

impl VerifiedRead for Bundle {
    fn file_stamps(&self, digest: &Digest) -> Result<Vec<FileStamp>, ContentError> {
        let entry = self.0.entry(self.blob_index(digest)?);
        self.0
            .volumes
            .file_stamps(entry.offset, entry.length)
            .map_err(|source| ContentError::read(digest, source))
    }

    fn verify(&self, digest: &Digest) -> io::Result<bool> {
        if let Some(entry_index) = self.stored_in_file(digest) {
            return VerifiedBlobReader::new(Arc::clone(&self.0), entry_index, 0).is_intact();
        }
        let mut reader = self.open_verified(digest, 0).map_err(io::Error::other)?;
        has_digest(&mut reader, digest)
    }

    fn open_verified(
        &self,
        digest: &Digest,
        offset: u64,
    ) -> Result<Box<dyn Read + Send>, ContentError> {
        let entry_index = self.blob_index(digest)?;
        Ok(match self.0.entry(entry_index).form {
            ContentForm::Stored if !self.0.volumes.is_remote() => Box::new(
                VerifiedBlobReader::new(Arc::clone(&self.0), entry_index, offset),
            ),
            // `VerifiedBlobReader` would request each frame of a remote object twice
            ContentForm::Stored | ContentForm::Compressed => Box::new(BundleEntryReader::of_known(
                Arc::clone(&self.0),
                entry_index,
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
        Ok(self.stored_in_file(digest).map(|entry_index| {
            VerifiedBlobReader::new(Arc::clone(&self.0), entry_index, offset).runs()
        }))
    }
}

/// The state of an open bundle that all its readers share.
#[derive(Debug)]
pub struct OpenBundle {
    pub path: PathBuf,
    /// The paths that the user named: that of the bundle, then further volumes or folders.
    pub locations: Vec<PathBuf>,
    pub volumes: VolumeReader,
    pub index: BundleIndex,
    pub rows: FrameRows,
    /// Frames whose checksums were compared a moment ago, by the index of their entry.
    checks: RecentChecks<usize>,
    /// The items that the index lists as missing, and those whose content was in a lost volume.
    pub partial: Vec<ItemName>,
    /// The entry indexes of all blobs, sorted by digest for binary search.
    blobs: Vec<usize>,
}

/// A function that verifies and decodes a frame.
pub(crate) type FrameContent = fn(&TarEntry, &EntryFrame, &[u8]) -> Result<Vec<u8>, String>;

impl OpenBundle {
    /// An open bundle with this index.
    pub fn new(locations: &[PathBuf], volumes: VolumeReader, index: BundleIndex) -> OpenBundle {
        let entries = &index.contents.entries;
        // indexes in place of a map of digests, which would need several times the memory
        let mut blobs: Vec<usize> = (0..entries.len())
            .filter(|entry_index| entries[*entry_index].is_blob())
            .collect();
        blobs.sort_by(|a, b| entries[*a].digest.cmp(&entries[*b].digest));
        let rows = FrameRows::new(index.contents.frames.clone());
        let partial = index.contents.partial.clone();
        let path = locations.first().cloned().unwrap_or_default();
        let locations = locations.to_vec();
        OpenBundle {
            path,
            locations,
            volumes,
            index,
            rows,
            checks: RecentChecks::default(),
            partial,
            blobs,
        }
    }

    /// The failure because of `damage`, whose consequences are not determined.
    pub fn damaged(&self, damage: Damage) -> BundleError {
        BundleError::Damaged {
            path: self.path.clone(),
            damage: vec![self.volumes.locate(damage)],
            loss: None,
        }
    }

    /// Reads the bytes of the contents index again. Signatures are over these bytes, not over the
    /// parsed index.
    pub fn index_bytes(&self) -> Result<Vec<u8>, BundleError> {
        read_index(&self.volumes, &self.index.footer).map_err(|damage| self.damaged(damage))
    }

    /// The entry with this index.
    pub fn entry(&self, entry_index: usize) -> &TarEntry {
        &self.index.contents.entries[entry_index]
    }

    /// The frame at `index` of an entry. Fails if the frame table is damaged or inconsistent.
    pub fn frame(&self, entry_index: usize, index: usize) -> Result<EntryFrame, Damage> {
        let entry = self.entry(entry_index);
        let number = entry.frame + index as u64;
        let (from, hash) = self.rows.row(&self.volumes, number)?;
        let to = if index as u64 + 1 < TarEntry::frame_count(entry.size) {
            self.rows.row(&self.volumes, number + 1)?.0
        } else {
            // the last frame has no row after it
            entry.end()
        };
        entry
            .frame(index, from, to, hash)
            .map_err(|why| Damage::new(&entry.name, entry.offset, why))
    }

    /// Verifies and decodes a frame from the bytes that were read for it.
    fn content(
        &self,
        entry_index: usize,
        frame: &EntryFrame,
        bytes: io::Result<Vec<u8>>,
        content: FrameContent,
    ) -> Result<Vec<u8>, Damage> {
        let entry = self.entry(entry_index);
        let bytes = bytes.map_err(|error| Damage::unread(&entry.name, frame.offset, &error))?;
        content(entry, frame, &bytes).map_err(|why| Damage::new(&entry.name, frame.offset, why))
    }

    /// The index of a blob's entry.
    pub fn entry_index(&self, digest: &Digest) -> Option<usize> {
        let entries = &self.index.contents.entries;
        let found = self
            .blobs
            .binary_search_by(|entry_index| entries[*entry_index].digest.cmp(digest));
        found.ok().map(|at| self.blobs[at])
    }

    /// The entry of a blob.
    pub(crate) fn blob_entry(&self, digest: &Digest) -> Option<&TarEntry> {
        let entry_index = self.entry_index(digest)?;
        Some(self.entry(entry_index))
    }
}

/// Removes the items `partial` from `lock`, and lists them as unresolved.
fn remove_items(lock: &mut Lock, partial: &[ItemName]) {
    let lost: BTreeSet<&ItemName> = partial.iter().collect();
    lock.retain(|item| !lost.contains(&ItemName::new(item.kind(), item.name())));
    // an item that the lock lists as unresolved or missing keeps the cause that the lock gives
    let unresolved = lock.unresolved.iter();
    let unresolved = unresolved.map(|one| (one.kind, one.name.clone()));
    let accepted = lock.missing.iter().map(|one| (one.kind, one.name.clone()));
    let mut known: BTreeSet<(EntryKind, String)> = unresolved.chain(accepted).collect();
    for ItemName { kind, name } in partial {
        if known.insert((*kind, name.clone())) {
            lock.unresolved.push(UnresolvedItem {
                kind: *kind,
                name: name.clone(),
                cause: "the bundle lacks it".into(),
            });
        }
    }
}

impl ReadAt for OpenBundle {
    fn read_exact_at(&self, buffer: &mut [u8], at: u64) -> io::Result<()> {
        self.volumes.read_exact_at(buffer, at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_item::LockedFile;
    use landfall_model::document::growth::assert_linear;

    #[test]
    fn items_that_a_bundle_lacks_are_removed_in_linear_time() {
        assert_linear(2_000, |count| {
            let names = (0..count).map(|number| format!("https://h.test/{number}"));
            let partial: Vec<ItemName> = names
                .map(|name| ItemName::new(EntryKind::File, name))
                .collect();
            let digest = Digest::sha256(b"x");
            let files = partial.iter();
            let files = files.map(|one| LockedFile::new(one.name.clone(), digest.clone(), 1));
            let mut lock = Lock {
                version: 1,
                files: files.collect(),
                ..Lock::default()
            };
            remove_items(&mut lock, &partial);
            assert_eq!((lock.files.len(), lock.unresolved.len()), (0, count));
        });
    }
}
