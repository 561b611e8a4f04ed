//! Adds a pack to a database: finds its entries, applies its deltas and hashes every object.

use super::{ObjectDatabase, ObjectIndex, PackBytes, PackedObject, SequentialBytes};
use crate::object::{GitObjectKind, ObjectId};
use crate::{GitError, delta};
use flate2::Crc;
use flate2::bufread::ZlibDecoder;
use landfall_model::{Limits, hex};
use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;

// Reads a pack from its beginning to its end, once, and finds its entries.

/// An entry of a pack.
pub(super) struct ScannedEntry {
    /// The offset of its header.
    pub(super) offset: u64,
    pub(super) form: EntryForm,
    /// The size of the object in bytes.
    pub(super) size: u64,
    /// The id of the object, unless it is a delta.
    pub(super) id: Option<ObjectId>,
}

/// Finds the entries of a pack, in the order of their offsets. `counted` is called with the size of
/// each object and of each delta before memory is used for it.
///
/// The checksum at the end of the pack is not compared, since each object is hashed.
pub(super) fn scan(
    bytes: &dyn PackBytes,
    limits: &Limits,
    counted: &mut dyn FnMut(u64) -> Result<(), GitError>,
) -> Result<Vec<ScannedEntry>, GitError> {
    let length = bytes.length().map_err(GitError::ReadPack)?;
    let source = SequentialBytes::new(bytes, 0..length);
    let mut reader = CountedReader {
        inner: BufReader::with_capacity(256 << 10, source),
        at: 0,
    };
    let count = read_head(&mut reader)?;
    GitError::check_limit("the repository has more objects", count, limits.git_objects)?;
    // a false count must not reserve memory for entries that do not exist
    let mut entries = Vec::with_capacity(count.min(length / 8) as usize);
    for _ in 0..count {
        entries.push(scan_entry(&mut reader, limits, counted)?);
    }
    if reader.at + ObjectId::BYTES as u64 != length {
        return Err(GitError::DamagedPack(
            "it does not end after its last entry".into(),
        ));
    }
    Ok(entries)
}

/// Reads the head of a pack: magic, version and number of entries. Returns the number.
fn read_head(reader: &mut impl Read) -> Result<u64, GitError> {
    let mut head = [[0; 4]; 3];
    reader
        .read_exact(head.as_flattened_mut())
        .map_err(damaged)?;
    let [magic, version, count] = head;
    match (&magic, u32::from_be_bytes(version)) {
        (b"PACK", 2 | 3) => Ok(u32::from_be_bytes(count).into()),
        (b"PACK", version) => Err(GitError::DamagedPack(format!("its version is {version}"))),
        _ => Err(GitError::DamagedPack("it does not begin with PACK".into())),
    }
}

fn scan_entry(
    reader: &mut CountedReader<'_>,
    limits: &Limits,
    counted: &mut dyn FnMut(u64) -> Result<(), GitError>,
) -> Result<ScannedEntry, GitError> {
    let offset = reader.at;
    let EntryHeader { form, size } = EntryHeader::read(reader).map_err(damaged)?;
    check_size(size, limits)?;
    counted(size)?;
    let content = inflate(reader, size)?;
    let mut entry = ScannedEntry {
        offset,
        form,
        size,
        id: None,
    };
    match form {
        EntryForm::Whole(kind) => {
            let id = ObjectId::of_object(kind, &content).ok_or_else(collision)?;
            entry.id = Some(id);
        }
        EntryForm::DeltaToOffset(_) | EntryForm::DeltaToId(_) => {
            let size = delta::result_size(&content)
                .ok_or_else(|| GitError::DamagedPack("a delta is cut off".into()))?;
            check_size(size, limits)?;
            counted(size)?;
            entry.size = size;
        }
    }
    Ok(entry)
}

fn check_size(size: u64, limits: &Limits) -> Result<(), GitError> {
    GitError::check_limit("an object is larger", size, limits.git_object_bytes)
}

pub(super) fn collision() -> GitError {
    GitError::DamagedPack("an object was made for an attack on SHA-1".into())
}

/// Inflates a zlib stream, which must contain exactly `size` bytes.
pub(super) fn inflate(reader: &mut impl BufRead, size: u64) -> Result<Vec<u8>, GitError> {
    // limits the compressed bytes as well: a stream of any length may inflate to nothing
    let mut bounded = reader.take(2 * size + 4096);
    let mut decoder = ZlibDecoder::new(&mut bounded);
    let mut content = Vec::with_capacity(size.min(1 << 20) as usize);
    (&mut decoder)
        .take(size + 1)
        .read_to_end(&mut content)
        .map_err(damaged)?;
    if content.len() as u64 != size {
        return Err(GitError::DamagedPack(
            "an entry has another size than its header says".into(),
        ));
    }
    Ok(content)
}

/// The error for a pack that is damaged or cannot be read.
pub(super) fn damaged(error: io::Error) -> GitError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => GitError::DamagedPack("it is cut off".into()),
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => {
            GitError::DamagedPack(error.to_string())
        }
        _ => GitError::ReadPack(error),
    }
}

/// Counts the bytes that were read from a pack.
struct CountedReader<'a> {
    inner: BufReader<SequentialBytes<'a>>,
    at: u64,
}

impl Read for CountedReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.at += count as u64;
        Ok(count)
    }
}

impl BufRead for CountedReader<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        self.at += count as u64;
        self.inner.consume(count);
    }
}

/// The header of a pack entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EntryHeader {
    pub(super) form: EntryForm,
    /// The size of the content, or of the delta, in bytes.
    pub(super) size: u64,
}

/// The form in which an entry stores its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryForm {
    /// The content itself.
    Whole(GitObjectKind),
    /// A delta to the entry that begins this many bytes before this one.
    DeltaToOffset(u64),
    /// A delta to the object with this id.
    DeltaToId(ObjectId),
}

const DELTA_TO_OFFSET: u8 = 6;

const DELTA_TO_ID: u8 = 7;

impl EntryHeader {
    /// Reads a header. If the header is not valid, the error has the kind `InvalidData`.
    pub(super) fn read(from: &mut impl Read) -> io::Result<EntryHeader> {
        let first = byte(from)?;
        let mut size = u64::from(first & 0xf);
        let mut last = first;
        let mut shift = 4;
        while last & 0x80 != 0 {
            last = byte(from)?;
            // 4 + 8 * 7 bits are enough for the size of any object
            if shift > 53 {
                return Err(invalid("the size of an entry is too large"));
            }
            size |= u64::from(last & 0x7f) << shift;
            shift += 7;
        }
        let form = match first >> 4 & 7 {
            1 => EntryForm::Whole(GitObjectKind::Commit),
            2 => EntryForm::Whole(GitObjectKind::Tree),
            3 => EntryForm::Whole(GitObjectKind::Blob),
            4 => EntryForm::Whole(GitObjectKind::Tag),
            DELTA_TO_OFFSET => EntryForm::DeltaToOffset(read_distance(from)?),
            DELTA_TO_ID => {
                let mut id = [0; ObjectId::BYTES];
                from.read_exact(&mut id)?;
                let id = ObjectId::from_prefix(&id).ok_or(io::ErrorKind::InvalidData)?;
                EntryForm::DeltaToId(id)
            }
            _ => return Err(invalid("an entry has an unknown type")),
        };
        Ok(EntryHeader { form, size })
    }

    /// Appends the header to `out`.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let number = match self.form {
            EntryForm::Whole(kind) => kind as u8,
            EntryForm::DeltaToOffset(_) => DELTA_TO_OFFSET,
            EntryForm::DeltaToId(_) => DELTA_TO_ID,
        };
        let mut byte = number << 4 | (self.size & 0xf) as u8;
        let mut rest = self.size >> 4;
        while rest > 0 {
            out.push(byte | 0x80);
            byte = (rest & 0x7f) as u8;
            rest >>= 7;
        }
        out.push(byte);
        match self.form {
            EntryForm::Whole(_) => {}
            EntryForm::DeltaToOffset(distance) => push_distance(out, distance),
            EntryForm::DeltaToId(id) => out.extend_from_slice(id.as_bytes()),
        }
    }
}

/// Reads the distance to a base: seven bits in each byte, the highest bits first. Each further byte
/// adds 1 to the value of the bytes before it, so that no distance has two encodings.
fn read_distance(from: &mut impl Read) -> io::Result<u64> {
    let mut last = byte(from)?;
    let mut distance = u64::from(last & 0x7f);
    while last & 0x80 != 0 {
        last = byte(from)?;
        if distance >> 55 != 0 {
            return Err(invalid("the distance to the base of a delta is too large"));
        }
        distance = (distance + 1) << 7 | u64::from(last & 0x7f);
    }
    Ok(distance)
}

fn push_distance(out: &mut Vec<u8>, mut distance: u64) {
    let mut bytes = vec![(distance & 0x7f) as u8];
    distance >>= 7;
    while distance > 0 {
        distance -= 1;
        bytes.push(0x80 | (distance & 0x7f) as u8);
        distance >>= 7;
    }
    out.extend(bytes.iter().rev());
}

fn byte(from: &mut impl Read) -> io::Result<u8> {
    let mut byte = [0];
    from.read_exact(&mut byte)?;
    Ok(byte[0])
}

fn invalid(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

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
            let limit = limits.git_unpacked_bytes;
            GitError::check_limit("all objects together are larger", unpacked, limit)
        })?;
        let count = (self.objects.len() + entries.len()) as u64;
        GitError::check_limit("the repository has more objects", count, limits.git_objects)?;
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
        let what = "a chain of deltas is longer";
        GitError::check_limit(what, u64::from(depth), u64::from(MAX_DEPTH))?;
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

impl ObjectDatabase {
    /// The name that git gives to the only pack of this database and to its index, `pack-` and the
    /// checksum at the end of the pack; and the content of the index (`.idx`).
    ///
    /// # Errors
    /// If there is no pack, or it cannot be read.
    pub fn index_file(&self) -> Result<(String, Vec<u8>), GitError> {
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
        Ok((format!("pack-{}", hex(&checksum)), content))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_header_is_read_as_it_is_written(size in 0_u64..1 << 50, distance in 0_u64..1 << 50) {
            for form in [
                EntryForm::Whole(GitObjectKind::Tag),
                EntryForm::DeltaToOffset(distance),
                EntryForm::DeltaToId(ObjectId::ZERO),
            ] {
                let header = EntryHeader { form, size };
                let mut bytes = Vec::new();
                header.write(&mut bytes);
                prop_assert_eq!(EntryHeader::read(&mut &bytes[..]).unwrap(), header);
            }
        }

        #[test]
        fn any_bytes_are_a_header_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = EntryHeader::read(&mut &bytes[..]);
        }
    }
}
