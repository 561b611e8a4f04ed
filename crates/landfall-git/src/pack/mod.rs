//! Reads packs of any origin, and writes landfall's own packs.

mod resolve;
mod write;

use self::resolve::{EntryHeader, damaged, inflate};
use crate::object::{CommitLinks, GitObjectKind, ObjectId, TagTarget};
use crate::{GitError, delta};
use landfall_model::{Limits, locked};
use landfall_os::FileExt;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

pub(crate) use self::resolve::EntryForm;
pub(crate) use self::write::PackWriter;
pub use self::write::{PackSending, send_pack, write_pack};

// The objects of one or more packs, found by id.

/// The objects of one or more packs, found by id.
pub struct ObjectDatabase {
    pub(crate) limits: Limits,
    pub(super) packs: Vec<Arc<dyn PackBytes>>,
    pub(super) objects: Vec<PackedObject>,
    pub(super) by_id: HashMap<ObjectId, u32>,
    /// The total unpacked size of all objects of all packs, deltas included, in bytes.
    pub(super) unpacked: u64,
    /// The commits whose parents are not part of the repository.
    shallow: HashSet<ObjectId>,
    /// The number of this database in `cache`.
    number: u64,
    cache: GitContentCache,
    /// For each annotated tag that was followed, the object at the end of its chain of tags.
    ends: Mutex<HashMap<ObjectIndex, ObjectIndex>>,
    /// The total size of the contents that were read, by which tests measure work.
    #[cfg(test)]
    pub(crate) content_bytes: std::sync::atomic::AtomicU64,
}

/// The number of an object in its [`ObjectDatabase`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectIndex(pub(crate) u32);

/// An object in a pack.
pub(super) struct PackedObject {
    pub(super) id: ObjectId,
    pub(super) kind: GitObjectKind,
    /// The number of the pack.
    pub(super) pack: u16,
    /// The number of deltas that must be applied to get its content.
    pub(super) depth: u16,
    /// The base, if it is a delta.
    pub(super) base: Option<u32>,
    /// The offset of its entry in the pack.
    pub(super) offset: u64,
    /// The offset after its entry.
    pub(super) end: u64,
    /// The size of its content in bytes.
    pub(super) size: u64,
}

impl ObjectDatabase {
    /// A database without packs.
    pub fn new(limits: Limits) -> ObjectDatabase {
        ObjectDatabase::with_cache(limits, GitContentCache::default())
    }

    /// A database without packs, whose contents share `cache` with other databases.
    pub fn with_cache(limits: Limits, cache: GitContentCache) -> ObjectDatabase {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        ObjectDatabase {
            limits,
            packs: Vec::new(),
            objects: Vec::new(),
            by_id: HashMap::new(),
            unpacked: 0,
            shallow: HashSet::new(),
            number: NUMBER.fetch_add(1, Ordering::Relaxed),
            cache,
            ends: Mutex::default(),
            #[cfg(test)]
            content_bytes: std::sync::atomic::AtomicU64::new(0),
        }
    }

    /// Ends the history at these commits: from now on, they have no parents.
    pub fn set_shallow(&mut self, commits: &[ObjectId]) {
        self.shallow = commits.iter().copied().collect();
    }

    /// Whether the history ends at a commit although it has parents.
    pub(crate) fn is_shallow(&self, commit: ObjectIndex) -> bool {
        self.shallow.contains(&self.id(commit))
    }

    /// The number of objects. An object that has several entries in the packs counts once for each.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether there is no object.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// All objects. An object that has several entries in the packs is returned once for each.
    pub fn objects(&self) -> impl Iterator<Item = ObjectIndex> {
        (0..self.objects.len() as u32).map(ObjectIndex)
    }

    /// The object with this id.
    ///
    /// # Errors
    /// If no pack has it.
    pub fn find(&self, id: ObjectId) -> Result<ObjectIndex, GitError> {
        let kind = "object";
        let found = self.by_id.get(&id);
        let found = found.ok_or(GitError::MissingObject { kind, id })?;
        Ok(ObjectIndex(*found))
    }

    /// Like [`find`](Self::find), for the target of a link in another object. Fails if the target
    /// does not have the type `kind` that the link declares.
    pub(crate) fn linked(
        &self,
        id: ObjectId,
        kind: GitObjectKind,
    ) -> Result<ObjectIndex, GitError> {
        let kind_word = kind.word();
        let found = self.find(id).map_err(|_| GitError::MissingObject {
            kind: kind_word,
            id,
        })?;
        self.expect(found, kind)?;
        Ok(found)
    }

    /// Whether a pack has the object with this id.
    pub fn contains(&self, id: ObjectId) -> bool {
        self.by_id.contains_key(&id)
    }

    /// The type of an object.
    pub fn kind(&self, object: ObjectIndex) -> GitObjectKind {
        self.object(object).kind
    }

    /// The id of an object.
    pub fn id(&self, object: ObjectIndex) -> ObjectId {
        self.object(object).id
    }

    /// The size of an object's content in bytes.
    pub fn size(&self, object: ObjectIndex) -> u64 {
        self.object(object).size
    }

    /// Whether an object is stored as a delta to another object.
    pub fn is_delta(&self, object: ObjectIndex) -> bool {
        self.object(object).base.is_some()
    }

    pub(super) fn object(&self, object: ObjectIndex) -> &PackedObject {
        &self.objects[object.0 as usize]
    }

    /// The content of an object.
    ///
    /// # Errors
    /// If it cannot be read, or a pack changed since it was added.
    pub fn content(&self, object: ObjectIndex) -> Result<Arc<[u8]>, GitError> {
        #[cfg(test)]
        self.content_bytes
            .fetch_add(self.size(object), std::sync::atomic::Ordering::Relaxed);
        let mut chain = Vec::new();
        let mut next = object.0;
        let mut content: Arc<[u8]> = loop {
            if let Some(known) = self.cache.get((self.number, next)) {
                break known;
            }
            let found = &self.objects[next as usize];
            match found.base {
                Some(base) => {
                    chain.push(next);
                    next = base;
                }
                None => {
                    let content: Arc<[u8]> = self.packed_content(found)?.into();
                    self.keep(next, &content);
                    break content;
                }
            }
        };
        for object in chain.into_iter().rev() {
            let found = &self.objects[object as usize];
            let delta = self.packed_content(found)?;
            // `apply` reserves the size that the delta declares
            if delta::result_size(&delta) != Some(found.size) {
                return Err(changed());
            }
            let applied = delta::apply(&content, &delta).ok_or_else(bad_delta)?;
            content = applied.into();
            self.keep(object, &content);
        }
        Ok(content)
    }

    /// Keeps `content`, the content of the object with this number, as the base of the next delta.
    pub(super) fn keep(&self, object: u32, content: &Arc<[u8]>) {
        self.cache.put((self.number, object), content.clone());
    }

    /// The content or the delta in the entry of an object.
    fn packed_content(&self, object: &PackedObject) -> Result<Vec<u8>, GitError> {
        let mut reader = BufReader::new(Cursor::new(self.raw_entry(object)?));
        let header = EntryHeader::read(&mut reader.by_ref()).map_err(damaged)?;
        // the size was checked when the pack was added, so the pack must have changed since
        if header.size > self.limits.git_object_bytes {
            return Err(changed());
        }
        inflate(&mut reader, header.size)
    }

    /// The pack and the offset of an object.
    pub(crate) fn pack_position(&self, object: ObjectIndex) -> (u16, u64) {
        let object = self.object(object);
        (object.pack, object.offset)
    }

    /// Reads the raw bytes of an object's entry in its pack.
    pub(super) fn entry_reader(&self, object: &PackedObject) -> SequentialBytes<'_> {
        let pack = &*self.packs[usize::from(object.pack)];
        SequentialBytes::new(pack, object.offset..object.end)
    }

    /// The raw bytes of an object's entry in its pack.
    pub(super) fn raw_entry(&self, object: &PackedObject) -> Result<Vec<u8>, GitError> {
        let mut entry = vec![0; (object.end - object.offset) as usize];
        self.packs[usize::from(object.pack)]
            .read_exact_at(&mut entry, object.offset)
            .map_err(GitError::ReadPack)?;
        Ok(entry)
    }

    /// The objects that a commit names. The parents of a commit at which the history ends are left
    /// out.
    pub(crate) fn commit(&self, object: ObjectIndex) -> Result<CommitLinks, GitError> {
        self.expect(object, GitObjectKind::Commit)?;
        let mut links = CommitLinks::parse(&self.content(object)?)
            .ok_or_else(|| self.invalid(object, "its first lines are not those of a commit"))?;
        if self.is_shallow(object) {
            links.parents.clear();
        }
        Ok(links)
    }

    /// The object that an annotated tag names.
    pub(crate) fn tag_target(&self, object: ObjectIndex) -> Result<TagTarget, GitError> {
        self.expect(object, GitObjectKind::Tag)?;
        TagTarget::parse(&self.content(object)?)
            .ok_or_else(|| self.invalid(object, "its first lines are not those of a tag"))
    }

    /// The object at the end of a chain of annotated tags, or the object itself if it is not a tag.
    /// Reads each tag once, however many chains it is in: a server may list every tag of a long
    /// chain as a ref.
    ///
    /// # Errors
    /// If an object of the chain is missing or not valid.
    pub fn peeled(&self, object: ObjectIndex) -> Result<ObjectIndex, GitError> {
        let ends = || locked(&self.ends);
        let mut chain = Vec::new();
        let mut end = object;
        while self.kind(end) == GitObjectKind::Tag {
            if let Some(known) = ends().get(&end) {
                end = *known;
                break;
            }
            chain.push(end);
            end = self.find(self.tag_target(end)?.id)?;
        }
        ends().extend(chain.into_iter().map(|tag| (tag, end)));
        Ok(end)
    }

    /// The commit to which `id` leads, itself or through annotated tags. `None` if it is or leads
    /// to a folder or file, as some tags do.
    ///
    /// # Errors
    /// If an object of the chain is missing or not valid.
    pub fn commit_of(&self, id: ObjectId) -> Result<Option<ObjectId>, GitError> {
        let end = self.peeled(self.find(id)?)?;
        let is_commit = self.kind(end) == GitObjectKind::Commit;
        Ok(is_commit.then(|| self.id(end)))
    }

    /// Checks the type of an object.
    ///
    /// # Errors
    /// If the object has another type.
    pub fn expect(&self, object: ObjectIndex, kind: GitObjectKind) -> Result<(), GitError> {
        if self.kind(object) == kind {
            return Ok(());
        }
        Err(self.invalid(object, format!("it is not a {}", kind.word())))
    }

    /// The error for an object that is not valid.
    pub(crate) fn invalid(&self, object: ObjectIndex, why: impl Into<String>) -> GitError {
        GitError::InvalidObject {
            kind: self.kind(object).word(),
            id: self.id(object),
            why: why.into(),
        }
    }
}

pub(super) fn changed() -> GitError {
    GitError::DamagedPack("it changed while it was read".into())
}

pub(super) fn bad_delta() -> GitError {
    GitError::DamagedPack("a delta does not match its base".into())
}

// The contents of recently used objects, which are often the bases of the next deltas.

/// The maximum total size of the contents in `ContentCache::contents`, in bytes.
const MAX_BYTES: usize = 96 << 20;

/// The contents of recently used objects, of one or more databases.
#[derive(Debug, Clone, Default)]
pub struct GitContentCache(Arc<Mutex<ContentCache>>);

/// The number of a database and the number of an object in it.
pub(super) type ContentKey = (u64, u32);

impl GitContentCache {
    pub(super) fn get(&self, key: ContentKey) -> Option<Arc<[u8]>> {
        self.contents().get(key)
    }

    pub(super) fn put(&self, key: ContentKey, content: Arc<[u8]>) {
        self.contents().put(key, content);
    }

    fn contents(&self) -> MutexGuard<'_, ContentCache> {
        locked(&self.0)
    }
}

#[derive(Debug, Default)]
struct ContentCache {
    /// The cached contents, each with the time of its last use.
    contents: HashMap<ContentKey, (Arc<[u8]>, u64)>,
    /// The object that was read last among those that are too large for `contents`. Without it,
    /// reading each object in a chain of deltas between large objects would apply all deltas below
    /// it again.
    large: Option<(ContentKey, Arc<[u8]>)>,
    /// The objects by the time of their last use.
    by_use: BTreeMap<u64, ContentKey>,
    bytes: usize,
    uses: u64,
}

impl ContentCache {
    fn get(&mut self, object: ContentKey) -> Option<Arc<[u8]>> {
        self.uses += 1;
        if let Some((large, content)) = &self.large
            && *large == object
        {
            return Some(content.clone());
        }
        let (content, used) = self.contents.get_mut(&object)?;
        self.by_use.remove(used);
        self.by_use.insert(self.uses, object);
        *used = self.uses;
        Some(content.clone())
    }

    fn put(&mut self, object: ContentKey, content: Arc<[u8]>) {
        // a content of this size would displace too many other contents
        if content.len() > MAX_BYTES / 4 {
            self.large = Some((object, content));
            return;
        }
        if self.contents.contains_key(&object) {
            return;
        }
        self.uses += 1;
        self.bytes += content.len();
        self.by_use.insert(self.uses, object);
        self.contents.insert(object, (content, self.uses));
        while self.bytes > MAX_BYTES {
            let Some((_, oldest)) = self.by_use.pop_first() else {
                return;
            };
            if let Some((removed, _)) = self.contents.remove(&oldest) {
                self.bytes -= removed.len();
            }
        }
    }
}

/// The bytes of a pack, read at any offset.
pub trait PackBytes: Send + Sync {
    /// Fills `buffer` with the bytes at `offset`.
    ///
    /// # Errors
    /// If the bytes cannot be read, or the pack ends before the buffer is full.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;

    /// The length of the pack in bytes.
    ///
    /// # Errors
    /// If it cannot be determined.
    fn length(&self) -> io::Result<u64>;
}

impl PackBytes for File {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        FileExt::read_exact_at(self, buffer, offset)
    }

    fn length(&self) -> io::Result<u64> {
        self.metadata().map(|metadata| metadata.len())
    }
}

impl PackBytes for Vec<u8> {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let rest = self.get(offset as usize..).unwrap_or_default();
        let found = rest
            .get(..buffer.len())
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(found);
        Ok(())
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }
}

/// Reads the bytes of a pack one after another.
pub(super) struct SequentialBytes<'a> {
    bytes: &'a dyn PackBytes,
    range: Range<u64>,
}

impl<'a> SequentialBytes<'a> {
    /// Reads the bytes in `range`.
    pub(super) fn new(bytes: &'a dyn PackBytes, range: Range<u64>) -> SequentialBytes<'a> {
        SequentialBytes { bytes, range }
    }
}

impl Read for SequentialBytes<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = self.range.end - self.range.start;
        let count = rest.min(buffer.len() as u64) as usize;
        self.bytes
            .read_exact_at(&mut buffer[..count], self.range.start)?;
        self.range.start += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestPack;

    #[test]
    fn a_delta_that_changed_is_rejected_before_it_is_applied() {
        let with_delta = |delta: &[u8]| {
            let mut pack = TestPack::default();
            let base = pack.add(GitObjectKind::Blob, b"abcde");
            pack.add_delta_to(base, delta);
            pack.bytes()
        };
        let text: Vec<u8> = (0..30_u8).map(|number| number.wrapping_mul(97)).collect();
        let pack = with_delta(&[&[5, 30, 30][..], &text].concat());
        let length = pack.len();
        let mut database = ObjectDatabase::new(Limits::DEFAULT);
        database.add_pack(Arc::new(pack)).unwrap();
        let id = ObjectId::of_object(GitObjectKind::Blob, &text).unwrap();
        let found = database.find(id).unwrap();
        // now the result would have 2^62 bytes
        let huge = [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x40];
        let mut changed = with_delta(&[&[5][..], &huge, &[1, b'x']].concat());
        assert!(changed.len() <= length);
        changed.resize(length, 0);
        database.packs[0] = Arc::new(changed);
        database.cache = GitContentCache::default();
        let error = database.content(found).unwrap_err();
        assert!(error.to_string().contains("changed"), "{error}");
    }

    #[test]
    fn the_last_large_content_is_kept_besides_small_ones() {
        let mut cache = ContentCache::default();
        let large: Arc<[u8]> = vec![0; MAX_BYTES / 4 + 1].into();
        cache.put((0, 1), Arc::from(*b"small"));
        cache.put((0, 2), large.clone());
        assert!(cache.get((0, 1)).is_some() && cache.get((0, 2)).is_some());
        cache.put((0, 3), large);
        assert!(cache.get((0, 2)).is_none() && cache.get((0, 3)).is_some());
        assert_eq!(cache.bytes, 5);
    }

    #[test]
    fn the_least_recently_used_content_is_evicted() {
        let mut cache = ContentCache::default();
        let quarter: Arc<[u8]> = vec![0; MAX_BYTES / 4].into();
        for object in 0..4 {
            cache.put((0, object), quarter.clone());
        }
        assert!(cache.get((0, 0)).is_some());
        cache.put((0, 4), Arc::from(*b"small"));
        let is_cached = [0, 1, 2, 3, 4].map(|object| cache.contents.contains_key(&(0, object)));
        assert_eq!(is_cached, [true, false, true, true, true]);
        assert_eq!(cache.bytes, 3 * quarter.len() + 5);
        assert_eq!(cache.by_use.len(), 4);
    }
}
