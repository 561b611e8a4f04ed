//! Adds a pack to a database: finds its entries, applies its deltas and hashes every object.

use super::database::{ObjectDatabase, ObjectIndex, PackBytes, PackedObject};
use super::scan::{EntryForm, ScannedEntry, collision, scan};
use crate::error::GitError;
use crate::object::{GitObjectKind, ObjectId};
use flate2::Crc;
use std::collections::HashMap;
use std::sync::Arc;

/// The maximum length of a chain of deltas. git itself writes at most 4,095.
const MAX_DEPTH: u16 = 4096;

impl ObjectDatabase {
    /// Adds the objects of a pack. A delta may have its base in a pack that was added before.
    ///
    /// # Errors
    /// If the pack cannot be read, is damaged, exceeds a limit, or has a delta without its base.
    pub fn add_pack(&mut self, bytes: Arc<dyn PackBytes>) -> Result<(), GitError> {
        let limits = self.limits;
        let mut unpacked = self.unpacked;
        let entries = scan(&*bytes, &limits, &mut |size| {
            unpacked += size;
            if unpacked <= limits.git_unpacked_bytes {
                return Ok(());
            }
            Err(GitError::TooLarge {
                what: "all objects together are larger",
                limit: limits.git_unpacked_bytes,
            })
        })?;
        if (self.objects.len() + entries.len()) as u64 > limits.git_objects {
            return Err(GitError::TooLarge {
                what: "the repository has more objects",
                limit: limits.git_objects,
            });
        }
        self.unpacked = unpacked;
        let end = bytes.length().map_err(GitError::ReadPack)? - ObjectId::BYTES as u64;
        let pack = u16::try_from(self.packs.len()).map_err(|_| GitError::TooLarge {
            what: "the repository has more packs",
            limit: u64::from(u16::MAX),
        })?;
        self.packs.push(bytes);
        let mut resolver = DeltaResolver::new(&entries, pack, end)?;
        resolver.run(self)
    }
}

/// The entries of one pack while their deltas are applied.
struct DeltaResolver<'a> {
    entries: &'a [ScannedEntry],
    pack: u16,
    /// The offset after the last entry.
    end: u64,
    /// The deltas that name their base by an offset: sorted pairs of base entry and delta entry.
    by_base: Vec<(u32, u32)>,
    /// The deltas that name their base by its id, which is the key.
    by_id: HashMap<ObjectId, Vec<u32>>,
    /// The number of deltas that are not applied yet.
    open: usize,
}

/// A resolved object to which deltas can be applied.
#[derive(Clone, Copy)]
struct ResolvedBase {
    object: u32,
    /// The entry of the object in this pack, unless the object is in a pack that was added before.
    entry: Option<u32>,
}

impl<'a> DeltaResolver<'a> {
    fn new(entries: &'a [ScannedEntry], pack: u16, end: u64) -> Result<Self, GitError> {
        let mut resolver = DeltaResolver {
            entries,
            pack,
            end,
            by_base: Vec::new(),
            by_id: HashMap::new(),
            open: 0,
        };
        for (at, entry) in entries.iter().enumerate() {
            match entry.form {
                EntryForm::Whole(_) => continue,
                EntryForm::DeltaToOffset(distance) => {
                    // the base must come before its delta, so that these deltas cannot form a loop
                    let base = entry
                        .offset
                        .checked_sub(distance)
                        .and_then(|base| {
                            entries[..at].binary_search_by_key(&base, |e| e.offset).ok()
                        })
                        .ok_or_else(|| {
                            GitError::DamagedPack("the base of a delta is not an entry".into())
                        })?;
                    resolver.by_base.push((base as u32, at as u32));
                }
                EntryForm::DeltaToId(id) => {
                    resolver.by_id.entry(id).or_default().push(at as u32);
                }
            }
            resolver.open += 1;
        }
        resolver.by_base.sort_unstable();
        Ok(resolver)
    }

    /// Adds the objects of all entries to `database`.
    fn run(&mut self, database: &mut ObjectDatabase) -> Result<(), GitError> {
        let mut ready: Vec<ResolvedBase> = Vec::new();
        for id in self.by_id.keys() {
            if let Some(&object) = database.by_id.get(id) {
                let entry = None;
                ready.push(ResolvedBase { object, entry });
            }
        }
        for (at, entry) in self.entries.iter().enumerate() {
            if let (EntryForm::Whole(kind), Some(id)) = (entry.form, entry.id) {
                let object = self.packed(at, id, kind);
                ready.push(add(database, object, at));
                // depth first, so that a base is still in the cache when its deltas are applied
                self.apply_all(database, &mut ready)?;
            }
        }
        self.apply_all(database, &mut ready)?;
        if self.open > 0 {
            // either a base is missing, or deltas by id form a loop, so that no id can be computed
            let why = format!("{} deltas have no base", self.open);
            return Err(GitError::DamagedPack(why));
        }
        Ok(())
    }

    /// Applies the deltas whose base is in `ready`, and then the deltas whose base is a result of
    /// another delta.
    fn apply_all(
        &mut self,
        database: &mut ObjectDatabase,
        ready: &mut Vec<ResolvedBase>,
    ) -> Result<(), GitError> {
        while let Some(base) = ready.pop() {
            let id = database.objects[base.object as usize].id;
            let mut deltas = self.by_id.remove(&id).unwrap_or_default();
            if let Some(entry) = base.entry {
                let from = self.by_base.partition_point(|(one, _)| *one < entry);
                let of_base = self.by_base[from..].iter();
                deltas.extend(
                    of_base
                        .take_while(|(one, _)| *one == entry)
                        .map(|(_, at)| *at),
                );
            }
            if deltas.is_empty() {
                continue;
            }
            // the cache has room for one large content, and each large result replaces it
            let content = database.content(ObjectIndex(base.object))?;
            for at in deltas {
                database.keep(base.object, &content);
                ready.push(self.apply_one(database, base.object, at as usize)?);
                self.open -= 1;
            }
        }
        Ok(())
    }

    fn apply_one(
        &self,
        database: &mut ObjectDatabase,
        base: u32,
        at: usize,
    ) -> Result<ResolvedBase, GitError> {
        let (kind, depth) = {
            let base = &database.objects[base as usize];
            (base.kind, base.depth + 1)
        };
        if depth > MAX_DEPTH {
            return Err(GitError::TooLarge {
                what: "a chain of deltas is longer",
                limit: u64::from(MAX_DEPTH),
            });
        }
        let object = PackedObject {
            base: Some(base),
            depth,
            ..self.packed(at, ObjectId::ZERO, kind)
        };
        // the object is added before its id is known, because `content` needs it in the database
        let added = ObjectIndex(database.objects.len() as u32);
        database.objects.push(object);
        let content = database.content(added)?;
        if content.len() as u64 != self.entries[at].size {
            return Err(GitError::DamagedPack(
                "the result of a delta has another size than the delta says".into(),
            ));
        }
        let id = ObjectId::of_object(kind, &content).ok_or_else(collision)?;
        database.objects[added.0 as usize].id = id;
        database.by_id.entry(id).or_insert(added.0);
        Ok(ResolvedBase {
            object: added.0,
            entry: Some(at as u32),
        })
    }

    fn packed(&self, at: usize, id: ObjectId, kind: GitObjectKind) -> PackedObject {
        let entry = &self.entries[at];
        let next = self.entries.get(at + 1);
        PackedObject {
            id,
            kind,
            pack: self.pack,
            depth: 0,
            base: None,
            offset: entry.offset,
            end: next.map_or(self.end, |next| next.offset),
            size: entry.size,
        }
    }
}

fn add(database: &mut ObjectDatabase, object: PackedObject, entry: usize) -> ResolvedBase {
    let added = database.objects.len() as u32;
    database.by_id.entry(object.id).or_insert(added);
    database.objects.push(object);
    ResolvedBase {
        object: added,
        entry: Some(entry as u32),
    }
}

// The index of a pack as git stores it next to the pack (gitformat-pack, "Version 2 pack-*.idx").

/// The index file of a pack, and the name that git gives to the pack and to the index.
pub struct PackIndexFile {
    /// `pack-` and the checksum at the end of the pack.
    pub name: String,
    /// The content of the file with the ending `.idx`.
    pub content: Vec<u8>,
}

impl ObjectDatabase {
    /// The index of the only pack of this database.
    ///
    /// # Errors
    /// If there is no pack, or it cannot be read.
    pub fn index_file(&self) -> Result<PackIndexFile, GitError> {
        let pack = self.packs.first();
        let pack = pack.ok_or_else(|| GitError::DamagedPack("there is no pack".into()))?;
        let length = pack.length().map_err(GitError::ReadPack)?;
        let mut checksum = [0; ObjectId::BYTES];
        pack.read_exact_at(&mut checksum, length - ObjectId::BYTES as u64)
            .map_err(GitError::ReadPack)?;
        // an object that the pack has twice is listed once
        let mut sorted: Vec<u32> = self.by_id.values().copied().collect();
        sorted.sort_by_key(|object| self.objects[*object as usize].id);
        let mut content = b"\xfftOc\0\0\0\x02".to_vec();
        for first in 0..=u8::MAX {
            let is_below = |object: &u32| self.objects[*object as usize].id.as_bytes()[0] <= first;
            let count = sorted.partition_point(is_below) as u32;
            content.extend(count.to_be_bytes());
        }
        for object in &sorted {
            content.extend(self.objects[*object as usize].id.as_bytes());
        }
        for object in &sorted {
            let mut crc = Crc::new();
            crc.update(&self.raw_entry(&self.objects[*object as usize])?);
            content.extend(crc.sum().to_be_bytes());
        }
        let mut large = Vec::new();
        for object in &sorted {
            let offset = self.objects[*object as usize].offset;
            let short = u32::try_from(offset).ok().filter(|short| short >> 31 == 0);
            let word = short.unwrap_or_else(|| {
                // the next table contains the long offsets; this word is an index into it
                large.push(offset);
                1 << 31 | (large.len() as u32 - 1)
            });
            content.extend(word.to_be_bytes());
        }
        content.extend(large.iter().flat_map(|offset| offset.to_be_bytes()));
        content.extend(checksum);
        let sum = {
            use sha1_checked::Digest;
            sha1_checked::Sha1::digest(&content)
        };
        content.extend(sum);
        let hex: String = checksum.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(PackIndexFile {
            name: format!("pack-{hex}"),
            content,
        })
    }
}
