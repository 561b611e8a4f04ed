//! Content with all blobs that recipes rebuild from it.

use super::make::{HashedWriter, rebuild};
use super::plain_file::{
    PlainFile, ScratchError, TemporaryFile, TemporaryFileWriter, too_long, write_plain,
};
use crate::format::blob_recipe::{BlobCoding, BlobRecipe, RecipeHeader};
use crate::read::Bundle;
use landfall_content::{BlobRead, ContentError, FileStamp, VerifiedRead};
use landfall_model::{Descriptor, Digest, locked, unpoisoned};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex};

/// The maximum number of blobs that are rebuilt at the same time.
const AT_ONCE: usize = 4;

/// How often a file is written again after other files were removed, because the folder was full.
/// Other blobs may need the room at the same time.
const MAX_RETRIES: usize = 3;

/// Content, and the blobs that recipes of bundles rebuild from it. A blob is rebuilt when it is
/// first opened, into a temporary file that later readers share.
///
/// The bytes that a recipe rebuilds are compared with the digest of the blob before anyone reads
/// them. So a wrong base, or a hostile recipe, leads to an error and never to wrong bytes.
pub struct RebuiltBlobs {
    /// The content that needs no recipe.
    content: Arc<dyn BlobRead>,
    pub(super) recipes: HashMap<Digest, Vec<KnownRecipe>>,
    /// Blobs that were added after the bundles were opened.
    added: Mutex<HashMap<Digest, Arc<TemporaryFile>>>,
    folder: PathBuf,
    /// The maximum number of bytes of rebuilt blobs that are kept. A blob that is being read stays
    /// readable.
    limit: u64,
    choice: Mutex<RecipeChoice>,
    cache: Mutex<RebuiltCache>,
    turns: RebuildTurns,
}

/// A recipe and the bundle that it is in.
pub(super) struct KnownRecipe {
    pub(super) bundle: Bundle,
    /// The index of the entry with the recipe.
    entry_index: usize,
    pub(super) recipe: BlobRecipe,
}

/// The chosen recipes.
#[derive(Default)]
struct RecipeChoice {
    /// For each blob, the index of its recipe among the recipes for that blob.
    indexes: HashMap<Digest, usize>,
    /// Whether nothing was added since the recipes were chosen.
    is_complete: bool,
}

/// The rebuilt blobs, and the plain bytes of bases. Without those, many small recipes with the same
/// base would write its plain bytes many times.
#[derive(Default)]
struct RebuiltCache {
    slots: HashMap<CacheKey, CacheSlot>,
    /// The files that are kept, the oldest first, with their sizes.
    kept: VecDeque<(CacheKey, u64)>,
    /// The total size of the files that are kept.
    bytes: u64,
}

/// A blob, or its plain bytes according to this coding.
type CacheKey = (Digest, Option<BlobCoding>);

/// A file, once it is complete. Others who need it wait for the lock.
type CacheSlot = Arc<Mutex<Option<Arc<TemporaryFile>>>>;

/// A base that was opened.
type OpenedBase = io::Result<Box<dyn Read + Send>>;

/// Opens a base that is not rebuilt itself.
type OpenBase<'b> = &'b dyn Fn(&Digest) -> OpenedBase;

/// The size of a base, and its bytes, which can be opened again.
type BaseSource<'b> = (u64, Box<dyn Fn() -> OpenedBase + 'b>);

impl RebuiltBlobs {
    /// `content`, with the recipes of `bundles`. Temporary files are written to `folder`: the plain
    /// bytes of bases, and rebuilt blobs, of which at most `limit` bytes are kept.
    pub fn new(
        content: Arc<dyn BlobRead>,
        bundles: &[Bundle],
        folder: PathBuf,
        limit: u64,
    ) -> RebuiltBlobs {
        let mut recipes: HashMap<Digest, Vec<KnownRecipe>> = HashMap::new();
        for bundle in bundles {
            for (entry_index, recipe) in bundle.recipes() {
                let known = KnownRecipe {
                    bundle: bundle.clone(),
                    entry_index,
                    recipe: recipe.clone(),
                };
                recipes
                    .entry(recipe.blob.digest.clone())
                    .or_default()
                    .push(known);
            }
        }
        RebuiltBlobs {
            content,
            recipes,
            added: Mutex::default(),
            folder,
            limit,
            choice: Mutex::default(),
            cache: Mutex::default(),
            turns: RebuildTurns::new(AT_ONCE),
        }
    }

    /// Begins to add a blob that recipes use.
    ///
    /// # Errors
    /// If the temporary folder cannot be written.
    pub fn base_writer(&self, blob: &Descriptor) -> io::Result<BaseWriter<'_>> {
        Ok(BaseWriter {
            blobs: self,
            blob: blob.clone(),
            out: HashedWriter::of_blob(TemporaryFile::writer(&self.folder)?, blob),
        })
    }

    /// Returns the file of a blob that was added.
    fn added(&self, digest: &Digest) -> Option<Arc<TemporaryFile>> {
        locked(&self.added).get(digest).cloned()
    }

    /// The size of a blob that needs no recipe.
    pub(super) fn stat_plain(&self, digest: &Digest) -> Result<Option<u64>, ContentError> {
        match self.added(digest) {
            Some(file) => Ok(Some(file.size())),
            None => self.content.stat(digest),
        }
    }

    /// Returns the recipe that rebuilds a blob; `None` if no recipe for it has all bases available.
    fn chosen(&self, digest: &Digest) -> Result<Option<&KnownRecipe>, ContentError> {
        let Some(recipes) = self.recipes.get(digest) else {
            return Ok(None);
        };
        let mut choice = locked(&self.choice);
        if !choice.is_complete {
            self.choose(&mut choice.indexes)?;
            choice.is_complete = true;
        }
        Ok(choice.indexes.get(digest).map(|index| &recipes[*index]))
    }

    /// Chooses for each blob a recipe whose bases are available: as content, or from a recipe that
    /// was chosen before. So a rebuild never waits for itself, even if recipes of different bundles
    /// need each other, and earlier choices stay valid when bases are added.
    fn choose(&self, chosen: &mut HashMap<Digest, usize>) -> Result<(), ContentError> {
        let mut present: HashMap<&Digest, bool> = HashMap::new();
        let all = self.recipes.values().flatten();
        for base in all.flat_map(|known| &known.recipe.from) {
            if !present.contains_key(base) {
                present.insert(base, self.stat_plain(base)?.is_some());
            }
        }
        // chains of recipes within a bundle are short, so there are few rounds
        loop {
            let before = chosen.len();
            for (digest, recipes) in &self.recipes {
                if chosen.contains_key(digest) {
                    continue;
                }
                let is_available = |base: &Digest| present[base] || chosen.contains_key(base);
                let usable = recipes
                    .iter()
                    .position(|known| known.recipe.from.iter().all(is_available));
                if let Some(number) = usable {
                    chosen.insert(digest.clone(), number);
                }
            }
            if chosen.len() == before {
                return Ok(());
            }
        }
    }

    fn rebuilt(&self, digest: &Digest) -> Result<Arc<TemporaryFile>, ContentError> {
        let key = (digest.clone(), None);
        let slot = self.slot(&key);
        // other readers of the same blob wait here
        let mut slot = locked(&slot);
        if let Some(file) = &*slot {
            return Ok(Arc::clone(file));
        }
        let known = self
            .chosen(digest)?
            .ok_or_else(|| ContentError::missing(digest))?;
        let file = self.rebuild(known);
        let file = Arc::new(file.map_err(|error| ContentError::read(digest, error))?);
        *slot = Some(Arc::clone(&file));
        drop(slot);
        self.keep(key, file.size());
        Ok(file)
    }

    fn slot(&self, key: &CacheKey) -> CacheSlot {
        let mut cache = locked(&self.cache);
        Arc::clone(cache.slots.entry(key.clone()).or_default())
    }

    fn rebuild(&self, known: &KnownRecipe) -> io::Result<TemporaryFile> {
        let open = |base: &Digest| self.open(base, 0).map_err(io::Error::other);
        let first = self.rebuild_from(known, &open, true);
        // A source may have wrong bytes under the digest of a base, and another source the right
        // ones. Reading detects wrong bytes only after they were used.
        let has_copies = |base: &Digest| !matches!(self.content.open_copy(base, 1), Ok(None));
        let is_final = match &first {
            Ok(_) => true,
            Err(error) => ScratchError::cause(error).is_some(),
        };
        if is_final || !known.recipe.from.iter().any(has_copies) {
            return first;
        }
        // the plain bytes that are kept may be those of a wrong copy
        self.rebuild_from(known, &|base| self.open_intact(base), false)
            .or(first)
    }

    /// Opens the first copy of a blob that has the right bytes. Each copy is read completely to
    /// verify it.
    fn open_intact(&self, digest: &Digest) -> io::Result<Box<dyn Read + Send>> {
        let size = match self.content.stat(digest).map_err(io::Error::other)? {
            Some(size) if self.added(digest).is_none() => size,
            // the bytes of a blob that was added or rebuilt were verified
            _ => return self.open(digest, 0).map_err(io::Error::other),
        };
        let blob = Descriptor::new(digest.clone(), size, String::new());
        for number in 0.. {
            let mut reader = match self.content.open_copy(digest, number) {
                Ok(Some(reader)) => reader,
                Ok(None) => break,
                Err(_) => continue,
            };
            let mut out = HashedWriter::of_blob(TemporaryFile::writer(&self.folder)?, &blob);
            let copied = io::copy(&mut reader, &mut out).and_then(|_| out.finish_blob(&blob));
            if let Ok(copy) = copied {
                return Ok(Box::new(copy.finish()?.reader(0)));
            }
        }
        Err(io::Error::other(ContentError::damaged(digest)))
    }

    fn rebuild_from(
        &self,
        known: &KnownRecipe,
        open_base: OpenBase<'_>,
        uses_cache: bool,
    ) -> io::Result<TemporaryFile> {
        let KnownRecipe {
            bundle,
            entry_index,
            recipe,
        } = known;
        let size = bundle.contents().entries[*entry_index].size;
        let open = |offset| Ok(bundle.open_entry(*entry_index, offset));
        let header = RecipeHeader::read(&mut open(0)?, size, recipe.from.len())?;
        if header.plain > header.coding.max_plain(recipe.blob.size) {
            return Err(too_long(header.coding, recipe.blob.size));
        }
        // a base that must be rebuilt itself is complete before this blob takes a turn
        let mut sources = Vec::new();
        for (base, coding) in recipe.from.iter().zip(&header.bases) {
            let slot = if uses_cache {
                self.slot(&(base.clone(), Some(*coding)))
            } else {
                CacheSlot::default()
            };
            let is_kept = locked(&slot).is_some();
            let source = (!is_kept).then(|| self.base_source(base, open_base));
            sources.push((source.transpose()?, slot));
        }
        let _turn = self.turns.take();
        let mut bases: Vec<Arc<PlainFile>> = Vec::new();
        for ((source, slot), (base, coding)) in sources
            .into_iter()
            .zip(recipe.from.iter().zip(&header.bases))
        {
            let mut slot = locked(&slot);
            let plain = match (slot.clone(), source) {
                (Some(plain), _) => plain,
                (None, Some((size, open))) => {
                    let plain =
                        self.with_room(|| write_plain(open()?, size, *coding, &self.folder))?;
                    let plain = Arc::new(plain.ok_or_else(|| too_long(*coding, size))?);
                    *slot = Some(Arc::clone(&plain));
                    drop(slot);
                    if uses_cache {
                        self.keep((base.clone(), Some(*coding)), plain.size());
                    }
                    plain
                }
                (None, None) => return Err(io::ErrorKind::NotFound.into()),
            };
            bases.push(plain);
        }
        self.with_room(|| {
            let file = TemporaryFile::writer(&self.folder)?;
            rebuild(&recipe.blob, &header, &open, bases.clone(), file)?.finish()
        })
    }

    /// Finds the bytes of a base, which is rebuilt first if it has a recipe itself.
    fn base_source<'b>(
        &self,
        base: &'b Digest,
        open_base: OpenBase<'b>,
    ) -> io::Result<BaseSource<'b>> {
        let size = self.stat_plain(base).map_err(io::Error::other)?;
        if let Some(size) = size {
            return Ok((size, Box::new(move || open_base(base))));
        }
        let file = self.rebuilt(base).map_err(io::Error::other)?;
        let size = file.size();
        let open = move || -> OpenedBase { Ok(Box::new(file.reader(0))) };
        Ok((size, Box::new(open)))
    }

    /// Writes temporary files. If the folder is full, the files that are kept make room for them.
    fn with_room<T>(&self, write: impl Fn() -> io::Result<T>) -> io::Result<T> {
        let mut written = write();
        for _ in 0..MAX_RETRIES {
            if !written.as_ref().is_err_and(is_full) || !self.evict_all() {
                break;
            }
            written = write();
        }
        written
    }

    /// Removes all files from the cache. Returns `false` if there are none. A file that is being
    /// read stays readable.
    fn evict_all(&self) -> bool {
        let mut cache = locked(&self.cache);
        let mut is_changed = false;
        while cache.evict_oldest() {
            is_changed = true;
        }
        is_changed
    }

    /// Adds a file to the cache, and removes the oldest ones while the cache exceeds its limit. The
    /// new file always stays.
    fn keep(&self, key: CacheKey, size: u64) {
        let mut cache = locked(&self.cache);
        cache.kept.push_back((key, size));
        cache.bytes += size;
        while cache.bytes > self.limit && cache.kept.len() > 1 {
            cache.evict_oldest();
        }
    }
}

impl RebuiltCache {
    /// Returns `false` if there is no file.
    fn evict_oldest(&mut self) -> bool {
        let Some((oldest, size)) = self.kept.pop_front() else {
            return false;
        };
        self.slots.remove(&oldest);
        self.bytes -= size;
        true
    }
}

/// Whether there is no room for temporary files.
fn is_full(error: &io::Error) -> bool {
    ScratchError::cause(error).is_some_and(ScratchError::is_full)
}

impl BlobRead for RebuiltBlobs {
    fn stat(&self, digest: &Digest) -> Result<Option<u64>, ContentError> {
        if let Some(size) = self.stat_plain(digest)? {
            return Ok(Some(size));
        }
        let known = self.chosen(digest)?;
        Ok(known.map(|known| known.recipe.blob.size))
    }

    fn holds(&self, blob: &Descriptor) -> Result<bool, ContentError> {
        Ok(self.content.holds(blob)? || self.stat(&blob.digest)? == Some(blob.size))
    }

    fn open(&self, digest: &Digest, offset: u64) -> Result<Box<dyn Read + Send>, ContentError> {
        if let Some(file) = self.added(digest) {
            return Ok(Box::new(file.reader(offset)));
        }
        if self.content.stat(digest)?.is_some() {
            return self.content.open(digest, offset);
        }
        Ok(Box::new(self.rebuilt(digest)?.reader(offset)))
    }

    fn open_whole(&self, digest: &Digest) -> Result<Box<dyn Read + Send>, ContentError> {
        if self.content.stat(digest)?.is_some() {
            return self.content.open_whole(digest);
        }
        self.open(digest, 0)
    }
}

/// Adds a blob to [`RebuiltBlobs`].
pub struct BaseWriter<'a> {
    blobs: &'a RebuiltBlobs,
    blob: Descriptor,
    out: HashedWriter<TemporaryFileWriter>,
}

impl BaseWriter<'_> {
    /// Appends bytes of the blob.
    ///
    /// # Errors
    /// If the temporary file cannot be written, or the blob becomes too long.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)
    }

    /// Adds the blob.
    ///
    /// # Errors
    /// If the bytes do not have the digest, or cannot be written.
    pub fn finish(self) -> io::Result<()> {
        let file = Arc::new(self.out.finish_blob(&self.blob)?.finish()?);
        locked(&self.blobs.added).insert(self.blob.digest, file);
        locked(&self.blobs.choice).is_complete = false;
        Ok(())
    }
}

/// For each blob that can be rebuilt after references were added: the round in which its recipe was
/// found, and the recipe. Each base of the recipe is present, is a reference, or was found in an
/// earlier round.
type RecipeRounds<'a> = HashMap<&'a Digest, (usize, &'a KnownRecipe)>;

impl RebuiltBlobs {
    /// Returns the blobs that must be added before the blob `digest` can be rebuilt. Blobs in
    /// `unavailable` are not among them: if there are several recipes, one that does not need
    /// unavailable blobs is used. Returns `None` if there is no such recipe.
    ///
    /// # Errors
    /// If content cannot be examined.
    pub fn missing_bases(
        &self,
        digest: &Digest,
        unavailable: &BTreeSet<Digest>,
    ) -> Result<Option<Vec<Descriptor>>, ContentError> {
        // the blob and all blobs from which it may be rebuilt, and whether they are present
        let mut present: BTreeMap<&Digest, bool> = BTreeMap::new();
        let mut pending = vec![digest];
        while let Some(blob) = pending.pop() {
            if present.contains_key(blob) {
                continue;
            }
            let is_present = self.stat(blob)?.is_some();
            present.insert(blob, is_present);
            if !is_present {
                let recipes = self.recipes.get(blob).into_iter().flatten();
                pending.extend(recipes.flat_map(|known| &known.recipe.from));
            }
        }
        let found = self.recipe_rounds(&present, unavailable);
        let mut missing = Vec::new();
        let mut added = BTreeSet::new();
        let mut seen = BTreeSet::from([digest]);
        let mut pending = vec![digest];
        while let Some(blob) = pending.pop() {
            if present[blob] {
                continue;
            }
            let Some((round, known)) = found.get(blob) else {
                return Ok(None);
            };
            for base in &known.recipe.from {
                let is_rebuilt = found.get(base).is_some_and(|(earlier, _)| earlier < round);
                match reference(known, base) {
                    Some(base) if !is_rebuilt && !present[&base.digest] => {
                        if added.insert(&base.digest) {
                            missing.push(base.clone());
                        }
                    }
                    _ => {
                        if seen.insert(base) {
                            pending.push(base);
                        }
                    }
                }
            }
        }
        Ok(Some(missing))
    }

    /// Finds a recipe for each blob in `present` that is not present. A base that is a reference is
    /// rebuilt instead of added if possible.
    fn recipe_rounds<'a>(
        &'a self,
        present: &BTreeMap<&'a Digest, bool>,
        unavailable: &BTreeSet<Digest>,
    ) -> RecipeRounds<'a> {
        let mut found = RecipeRounds::new();
        for round in 0.. {
            let usable = |add_all: bool| -> RecipeRounds<'a> {
                let is_available = |known: &KnownRecipe, base: &Digest| {
                    present[base]
                        || found.contains_key(base)
                        || (add_all || !self.recipes.contains_key(base))
                            && !unavailable.contains(base)
                            && reference(known, base).is_some()
                };
                let blobs = present
                    .iter()
                    .filter(|(blob, is_present)| !**is_present && !found.contains_key(**blob));
                blobs
                    .filter_map(|(blob, _)| {
                        let mut recipes = self.recipes.get(*blob)?.iter();
                        let known = recipes.find(|known| {
                            let mut bases = known.recipe.from.iter();
                            bases.all(|base| is_available(known, base))
                        })?;
                        Some((*blob, (round, known)))
                    })
                    .collect()
            };
            let mut more = usable(false);
            if more.is_empty() {
                more = usable(true);
            }
            if more.is_empty() {
                break;
            }
            found.extend(more);
        }
        found
    }
}

/// Returns the descriptor of `base` if the bundle of the recipe lists `base` as a reference.
fn reference<'a>(known: &'a KnownRecipe, base: &Digest) -> Option<&'a Descriptor> {
    let mut references = known.bundle.references().iter().map(|one| &one.blob);
    references.find(|blob| blob.digest == *base)
}

/// The blobs that recipes rebuild, without the content that they are rebuilt from. A server lists
/// that content as separate sources, and watches their files for changes.
pub struct RecipeBlobs(pub RebuiltBlobs);

impl BlobRead for RecipeBlobs {
    fn stat(&self, digest: &Digest) -> Result<Option<u64>, ContentError> {
        match self.0.stat_plain(digest)? {
            Some(_) => Ok(None),
            None => self.0.stat(digest),
        }
    }

    fn open(&self, digest: &Digest, offset: u64) -> Result<Box<dyn Read + Send>, ContentError> {
        match self.stat(digest)? {
            Some(_) => self.0.open(digest, offset),
            None => Err(ContentError::missing(digest)),
        }
    }
}

impl VerifiedRead for RecipeBlobs {
    fn file_stamps(&self, _: &Digest) -> Result<Vec<FileStamp>, ContentError> {
        // a rebuilt blob is in an unnamed temporary file, which no other process can change
        Ok(Vec::new())
    }
}

/// Limits how many threads have a turn at the same time.
pub(super) struct RebuildTurns {
    free: Mutex<usize>,
    freed: Condvar,
}

/// A turn, which ends when it is dropped.
pub(super) struct RebuildTurn<'a>(&'a RebuildTurns);

impl RebuildTurns {
    pub(super) fn new(count: usize) -> RebuildTurns {
        RebuildTurns {
            free: Mutex::new(count),
            freed: Condvar::new(),
        }
    }

    pub(super) fn take(&self) -> RebuildTurn<'_> {
        let free = locked(&self.free);
        let mut free = unpoisoned(self.freed.wait_while(free, |free| *free == 0));
        *free -= 1;
        RebuildTurn(self)
    }
}

impl Drop for RebuildTurn<'_> {
    fn drop(&mut self) {
        *locked(&self.0.free) += 1;
        self.0.freed.notify_one();
    }
}
