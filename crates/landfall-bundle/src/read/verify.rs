//! Verifies a bundle: reads everything in it and compares it with the index and the lock; names the
//! items that need what is damaged, and how to repair it.

use super::compare_lock::against_lock;
use super::entry_reader::SequentialReader;
use super::index::BundleIndex;
use super::volume_set::VolumeSet;
use super::{Bundle, OpenBundle};
use crate::error::BundleError;
use crate::format::damage::{Damage, Loss};
use crate::format::entry::TarEntry;
use crate::format::frame::{self, TableFrame};
use crate::format::header;
use crate::format::names::{CONTENTS, FRAMES, ItemName};
use crate::format::stored::{ReadAt, stored_len};
use crate::pipeline;
use landfall_content::{ShardEntry, parent_folder};
use landfall_model::report::{Progress, shell_word};
use landfall_model::{Digest, Hasher, Shard, sum_sizes, transfer_cost};
use std::collections::{BTreeSet, HashSet};
use std::fmt::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The maximum number of damaged offsets that are listed. The first damage of each volume is listed
/// even beyond it.
const MAX_LISTED: usize = 100;

/// The result of verifying a bundle that is intact and consistent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedBundle {
    /// The digest of the bundle.
    pub digest: Digest,
    /// The fingerprint of the lock: SHA-256 of its text.
    pub fingerprint: Digest,
    /// The items of the lock that the bundle lacks.
    pub partial: Vec<ItemName>,
}

/// Hashes everything in an open bundle: every frame, every blob, every tar header, and the bytes
/// between and after them. Then compares blobs and `index.json` with the lock, and the lock with
/// the manifests. This proves that the bundle is as it was packed, but not who packed it.
///
/// # Errors
/// [`BundleError::Damaged`] with the damaged entries, at most 100 and the first of each volume.
pub fn verify(bundle: &Bundle, progress: &dyn Progress) -> Result<VerifiedBundle, BundleError> {
    verify_shard(bundle, Shard::default(), progress)
}

/// Like [`verify`], for the entries of this shard. The first shard also checks the bytes that
/// belong to no entry, and compares the bundle with the lock.
///
/// # Errors
/// Like [`verify`].
pub fn verify_shard(
    bundle: &Bundle,
    shard: Shard,
    progress: &dyn Progress,
) -> Result<VerifiedBundle, BundleError> {
    let own = own_entries(bundle, shard);
    let sizes = own
        .iter()
        .map(|&entry_index| bundle.contents().entries[entry_index].size);
    let bytes = sum_sizes(sizes);
    progress.begin("verify", own.len() as u64, bytes);
    // everything is read even after damage was found, so that the report lists further damage
    let mut damage = entries(bundle, &own, progress);
    progress.end();
    if shard.is_first() {
        // damage of the frame table may have been found with the first entry that needed its rows
        let known: HashSet<Damage> = damage.iter().cloned().collect();
        damage.extend(
            rest(bundle)
                .into_iter()
                .filter(|found| !known.contains(found)),
        );
    }
    // the loss is determined only for damaged content, not for differences from the lock
    let loss = (!damage.is_empty()).then(|| loss(bundle, &damage));
    if damage.is_empty() && shard.is_first() {
        damage = against_lock(bundle)?;
    }
    if !damage.is_empty() {
        let mut volumes = BTreeSet::new();
        let mut count = 0;
        let damage = damage
            .into_iter()
            .map(|damage| bundle.0.volumes.locate(damage))
            .filter(|damage| {
                count += 1;
                // the list names every damaged volume, even beyond the limit
                damage
                    .volume
                    .as_ref()
                    .is_some_and(|volume| volumes.insert(volume.clone()))
                    || count <= MAX_LISTED
            });
        let damage = damage.collect();
        return Err(BundleError::Damaged {
            path: bundle.0.path.clone(),
            damage,
            loss,
        });
    }
    Ok(VerifiedBundle {
        digest: bundle.digest().clone(),
        fingerprint: bundle.fingerprint().clone(),
        partial: bundle.partial().to_vec(),
    })
}

/// The indexes of the entries that belong to this shard, in the order of the bundle.
fn own_entries(bundle: &Bundle, shard: Shard) -> Vec<usize> {
    let entries = bundle.contents().entries.iter().enumerate();
    shard
        // by cost, so that all shards end at about the same time
        .own(entries.map(|(entry_index, entry)| (entry_index, transfer_cost(entry.size))))
        .into_iter()
        .collect()
}

/// The parts of the bundle's items that belong to this shard.
///
/// # Errors
/// If the lock of the bundle cannot be read.
pub fn shard_parts(bundle: &Bundle, shard: Shard) -> Result<Vec<ShardEntry>, BundleError> {
    let entries = bundle.entries()?.into_iter();
    if shard.is_only() {
        return Ok(entries.map(ShardEntry::whole).collect());
    }
    let all = &bundle.contents().entries;
    let own: BTreeSet<&Digest> = own_entries(bundle, shard)
        .into_iter()
        .map(|entry_index| &all[entry_index].digest)
        .collect();
    Ok(entries
        .filter_map(|entry| ShardEntry::filter(entry, |part| own.contains(&part.descriptor.digest)))
        .collect())
}

/// Determines the consequences of the damage.
fn loss(bundle: &Bundle, damage: &[Damage]) -> Loss {
    let OpenBundle {
        volumes,
        index,
        locations,
        ..
    } = &*bundle.0;
    let names: BTreeSet<&str> = damage.iter().map(|damage| &*damage.entry).collect();
    let in_table = damage.iter().filter(|damage| damage.entry == FRAMES);
    let table_offsets: BTreeSet<u64> = in_table.map(|damage| damage.offset).collect();
    let items = lost_items(bundle, |entry| {
        let mut frames = bundle.table_frames(entry);
        names.contains(&*entry.name) || frames.any(|frame| table_offsets.contains(&frame.offset))
    });
    let numbers: BTreeSet<usize> = damage
        .iter()
        .filter_map(|damage| volumes.volume_number(damage.offset))
        .collect();
    let repair = match VolumeSet::of(locations) {
        Ok(Some(set)) if !numbers.is_empty() => {
            // the index is at the end, so it is intact if all damaged volumes are before it
            let has_index = volumes.volume_number(index.footer.offset) > numbers.last().copied();
            let is_rebuildable = has_index && !bundle.has_recipes();
            let has_lock = items.is_some();
            BadVolumes {
                set: &set,
                locations,
                numbers: &numbers,
                is_rebuildable,
                has_lock,
            }
            .repair_advice()
        }
        _ => COPY.into(),
    };
    Loss {
        has_rest: items.is_some(),
        items,
        repair,
    }
}

/// A frame that was read: the index of its entry, its number in the entry, its offset, and its
/// content.
struct ReadFrame {
    entry_index: usize,
    index: usize,
    at: u64,
    content: Result<Vec<u8>, Damage>,
}

/// Verifies all frames and digests of the entries with these indexes. Returns the first damage of
/// each entry and of each volume.
fn entries(bundle: &Bundle, entry_indexes: &[usize], progress: &dyn Progress) -> Vec<Damage> {
    let entries = &bundle.contents().entries;
    let mut damage: Vec<Damage> = Vec::new();
    // damage of the frame table is found again for each entry
    let mut known: HashSet<Damage> = HashSet::new();
    let mut volumes = BTreeSet::new();
    let mut state: Option<(usize, Option<Hasher>)> = None;
    let end = bundle.contents().frames.offset;
    let source = SequentialReader::new(Arc::clone(&bundle.0), end);
    let never = pipeline::ordered::<_, _, std::convert::Infallible>(
        pipeline::DEPTH,
        |send| {
            for (entry_index, entry) in entry_indexes
                .iter()
                .map(|&entry_index| (entry_index, &entries[entry_index]))
            {
                for index in 0..TarEntry::frame_count(entry.size) as usize {
                    let frame = bundle.0.frame(entry_index, index);
                    let bytes = frame.map(|frame| {
                        let bytes = source.bytes_at(frame.offset, frame.length);
                        (
                            frame,
                            bytes.map_err(|error| format!("cannot be read: {error}")),
                        )
                    });
                    let no_row = bytes.is_err();
                    if !send((entry_index, index, bytes)) {
                        return Ok(());
                    }
                    // without its rows, the other frames of the entry cannot be located either
                    if no_row {
                        break;
                    }
                }
            }
            Ok(())
        },
        |(entry_index, index, bytes)| {
            let entry = &entries[entry_index];
            let content = bytes.map(|(frame, bytes)| {
                let content = bytes.and_then(|bytes| entry.content(&frame, &bytes));
                let content = content.and_then(|content| entry.check_content(index, content));
                (
                    frame.offset,
                    content.map_err(|why| Damage::new(&entry.name, frame.offset, why)),
                )
            });
            let (at, content) = content.unwrap_or_else(|damage| (damage.offset, Err(damage)));
            ReadFrame {
                entry_index,
                index,
                at,
                content,
            }
        },
        |ReadFrame {
             entry_index,
             index,
             at,
             content,
         }| {
            let entry = &entries[entry_index];
            if state
                .as_ref()
                .is_none_or(|(current, _)| *current != entry_index)
            {
                state = Some((entry_index, Some(Hasher::new(entry.digest.algorithm()))));
            }
            let Some((_, hasher)) = &mut state else {
                return Ok(());
            };
            match content {
                Err(found) => {
                    // further damage of an entry is reported only if it is the first in its volume
                    let volume = bundle.0.volumes.volume(at);
                    // not `||`: both sides must run, because the left one drops the hasher and the
                    // right one records the volume
                    if hasher.take().is_some() | volume.is_some_and(|volume| volumes.insert(volume))
                        && known.insert(found.clone())
                    {
                        damage.push(found);
                    }
                }
                Ok(content) if entry.is_content(index) => {
                    progress.bytes(content.len() as u64);
                    if let Some(hasher) = hasher {
                        hasher.update(&content);
                    }
                }
                Ok(_) => {}
            }
            if index as u64 + 1 == TarEntry::frame_count(entry.size) {
                let digest = hasher.take().map(Hasher::finish);
                if digest.is_some_and(|digest| digest != entry.digest) {
                    let why = format!("its content does not have the digest {}", entry.digest);
                    damage.push(Damage::new(&entry.name, entry.offset, why));
                }
                progress.item(&entry.name);
            }
            Ok(())
        },
    );
    // `Infallible`: damage is collected, and nothing else can fail
    let Ok(()) = never;
    damage
}

/// Verifies the bytes that no entry of the index covers: the entry of the frame table, the tar
/// header and padding of the index, and the end of the tar. The bytes of the signatures and the
/// footer were checked when the bundle was opened.
fn rest(bundle: &Bundle) -> Vec<Damage> {
    let BundleIndex {
        contents, footer, ..
    } = &bundle.0.index;
    let table = &contents.frames;
    let mut damage = Vec::new();
    for index in 0..table.hashes.len() {
        let expected = match (index, index + 1 == table.hashes.len()) {
            (0, _) => Some(header::encode(FRAMES, table.size)),
            (_, true) if header::padding(table.size) > 0 => {
                Some(vec![0; header::padding(table.size)])
            }
            _ => None,
        };
        match bundle.0.rows.frame(&bundle.0.volumes, index) {
            Ok(content) if expected.is_none_or(|expected| expected == content) => {}
            Ok(_) => {
                let why = "its tar header or padding does not match the contents index";
                damage.push(Damage::new(FRAMES, table.offset, why));
            }
            Err(found) => damage.push(found),
        }
    }
    let header = frame::stored(&header::encode(CONTENTS, footer.size));
    let pieces = [vec![0; header::padding(footer.size)], header::END.to_vec()];
    let end = pieces
        .iter()
        .filter(|piece| !piece.is_empty())
        .flat_map(|piece| frame::stored(piece))
        .collect();
    let expected = [
        (CONTENTS, footer.offset - header.len() as u64, header),
        ("end of the tar", footer.offset + footer.length, end),
    ];
    for (name, at, expected) in expected {
        damage.extend(first_difference(bundle, name, at, &expected));
    }
    damage
}

/// Compares the bytes at offset `at` with `expected`. Returns the damage at the first difference.
fn first_difference(bundle: &Bundle, name: &str, at: u64, expected: &[u8]) -> Option<Damage> {
    let found = match bundle.0.volumes.bytes_at(at, expected.len()) {
        Ok(found) => found,
        Err(error) => return Some(Damage::unread(name, at, &error)),
    };
    let differs = found
        .iter()
        .zip(expected)
        .position(|(found, expected)| found != expected)?;
    let why = "it does not match the contents index";
    Some(Damage::new(name, at + differs as u64, why))
}

// Determines the items that need damaged or lost content.

/// The items in the bundle that need an entry for which `is_lost` is true. `None` if the lock
/// cannot be read.
pub(super) fn lost_items(
    bundle: &Bundle,
    is_lost: impl Fn(&TarEntry) -> bool,
) -> Option<Vec<ItemName>> {
    let items = bundle.entries().ok()?;
    let entries = &bundle.contents().entries;
    let lost = entries
        .iter()
        .filter(|entry| entry.is_blob() && is_lost(entry));
    let mut lost: HashSet<&Digest> = lost.map(|entry| &entry.digest).collect();
    let mut recipes: Vec<_> = bundle.recipes().collect();
    // in this order, a recipe comes after the recipes that rebuild its bases
    recipes.sort_unstable_by_key(|(entry_index, _)| *entry_index);
    for (entry_index, recipe) in recipes {
        if is_lost(&entries[entry_index]) || recipe.from.iter().any(|base| lost.contains(base)) {
            lost.insert(&recipe.blob.digest);
        }
    }
    let affected = items.into_iter().filter(|item| {
        item.parts
            .iter()
            .any(|part| lost.contains(&part.descriptor.digest))
    });
    Some(
        affected
            .map(|item| ItemName::new(item.kind, item.name))
            .collect(),
    )
}

impl Bundle {
    /// The frames of the frame table that are needed to read an entry.
    pub(super) fn table_frames(&self, entry: &TarEntry) -> impl Iterator<Item = TableFrame> {
        self.contents().frames.frames_with_rows(entry.rows())
    }

    /// Whether the content of an entry can be read without these bytes of the bundle.
    pub(crate) fn is_readable_without(&self, lost: &Range<u64>, entry: &TarEntry) -> bool {
        let is_apart = |start: u64, end: u64| end <= lost.start || start >= lost.end;
        // reading content needs no tar headers, so losing only those does not affect it
        is_apart(entry.content_offset(), entry.end())
            && self.table_frames(entry).all(|frame| {
                let length = stored_len(frame.content as u64);
                is_apart(frame.offset, frame.offset + length)
            })
    }
}

// How to repair a damaged bundle: the advice, with the command.

/// The advice for a bundle in one file.
pub(super) const COPY: &str = "copy it again from the machine that packed it";

/// The bad volumes of a bundle, and the conditions for rebuilding one of them.
pub(super) struct BadVolumes<'a> {
    pub(super) set: &'a VolumeSet,
    /// The files and folders that the user named.
    pub(super) locations: &'a [PathBuf],
    pub(super) numbers: &'a BTreeSet<usize>,
    /// Whether one bad volume can be rebuilt: the good ones contain the contents index, and the
    /// bundle has no recipes.
    pub(super) is_rebuildable: bool,
    /// Whether the good volumes contain the lock.
    pub(super) has_lock: bool,
}

impl BadVolumes<'_> {
    /// The advice for these volumes.
    pub(super) fn repair_advice(&self) -> String {
        let names: Vec<String> = self
            .numbers
            .iter()
            .map(|number| self.set.name(*number))
            .collect();
        let names = names.join(" and ");
        let only_number = self.numbers.first().filter(|_| self.numbers.len() == 1);
        match only_number {
            // a volume can be rebuilt only if all other volumes are good
            Some(number) if self.is_rebuildable => format!(
                "copy {names} again; or rebuild it where the bundle was packed, from its store and \
                 the other volumes:\n  {}",
                self.command(*number)
            ),
            _ => format!(
                "copy {names} again; or pack the bundle again where it was packed, with the same \
                 lock, --level and --volume-size, which gives the same bytes"
            ),
        }
    }

    fn command(&self, number: usize) -> String {
        let mut command = "landfall pack".to_owned();
        for location in self.locations {
            let _ = write!(command, " --like {}", word(location));
        }
        let _ = write!(command, " --only-volume {number}");
        if !self.has_lock {
            command += " --lock landfall.lock";
        }
        // without -o, the volume is written to the folder of the first location
        let folder = self.set.found.get(&number).map(|path| parent_folder(path));
        if let Some(folder) = folder.filter(|folder| *folder != parent_folder(&self.set.base)) {
            let _ = write!(
                command,
                " -o {}",
                word(&folder.join(self.set.base.file_name().unwrap_or_default()))
            );
        }
        command
    }
}

/// Quotes a path for a shell.
fn word(path: &Path) -> String {
    shell_word(&path.to_string_lossy())
}
