//! Checking a bundle: everything in it is read and compared with what the index and the lock say.

use super::against_lock::against_lock;
use super::bundle::Bundle;
use super::index::Index;
use super::lost_items::lost_items;
use super::mend::{Bad, COPY};
use super::open_bundle::OpenBundle;
use super::stretch::Stretch;
use super::volume_set::VolumeSet;
use crate::error::BundleError;
use crate::format::damage::Damage;
use crate::format::entry::TarEntry;
use crate::format::loss::Loss;
use crate::format::names::{CONTENTS, FRAMES, ItemName};
use crate::format::{frame, header};
use crate::pipeline;
use landfall_content::ShardEntry;
use landfall_model::report::Progress;
use landfall_model::{Digest, Hasher, Shard, transfer_cost};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Most damaged places that are listed.
const MAX_LISTED: usize = 100;

/// A bundle that is consistent in itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedBundle {
    /// The bundle digest.
    pub digest: Digest,
    /// SHA-256 of the lock.
    pub fingerprint: Digest,
    /// Items of the lock that are not inside.
    pub partial: Vec<ItemName>,
}

/// Hashes everything in an opened bundle again: every frame, every blob, every tar header, and what
/// stands between and after them. Then compares blobs and `index.json` with what the lock asks for,
/// and the lock with what the manifests say. This shows that the bundle is as it was packed, not
/// who packed it.
///
/// # Errors
/// [`BundleError::Damaged`] with every damaged entry.
pub fn verify(bundle: &Bundle, progress: &dyn Progress) -> Result<VerifiedBundle, BundleError> {
    verify_shard(bundle, Shard::default(), progress)
}

/// As [`verify`], of the entries that are this shard's. The first one also checks what stands
/// between and after them, and compares with the lock.
///
/// # Errors
/// As [`verify`].
pub fn verify_shard(
    bundle: &Bundle,
    shard: Shard,
    progress: &dyn Progress,
) -> Result<VerifiedBundle, BundleError> {
    let own = own_places(bundle, shard);
    let bytes = own
        .iter()
        .map(|&place| bundle.contents().entries[place].size)
        .sum();
    progress.begin("verify", own.len() as u64, bytes);
    let mut damage = entries(bundle, &own, progress);
    progress.end();
    if shard.is_first() {
        for found in rest(bundle) {
            if !damage.contains(&found) {
                damage.push(found);
            }
        }
    }
    let loss = (!damage.is_empty()).then(|| loss(bundle, &damage));
    if damage.is_empty() && shard.is_first() {
        damage = against_lock(bundle)?;
    }
    if !damage.is_empty() {
        let mut volumes = BTreeSet::new();
        let mut count = 0;
        let damage = damage
            .into_iter()
            .map(|damage| bundle.0.volumes.place(damage))
            .filter(|damage| {
                count += 1;
                // all damaged volumes are named
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

/// The places of the entries that are this shard's, in the bundle's order.
fn own_places(bundle: &Bundle, shard: Shard) -> Vec<usize> {
    let entries = bundle.contents().entries.iter().enumerate();
    shard
        .own(entries.map(|(place, entry)| (place, transfer_cost(entry.size))))
        .into_iter()
        .collect()
}

/// What of the lock's entries is this shard's to check, as far as the bundle has it.
///
/// # Errors
/// When the contents of the bundle cannot be read.
pub fn shard_parts(bundle: &Bundle, shard: Shard) -> Result<Vec<ShardEntry>, BundleError> {
    let entries = bundle.entries()?.into_iter();
    if shard.is_only() {
        return Ok(entries.map(ShardEntry::whole).collect());
    }
    let all = &bundle.contents().entries;
    let own: BTreeSet<&Digest> = own_places(bundle, shard)
        .into_iter()
        .map(|place| &all[place].digest)
        .collect();
    Ok(entries
        .filter_map(|entry| ShardEntry::filter(entry, |part| own.contains(&part.descriptor.digest)))
        .collect())
}

/// What the damage means.
fn loss(bundle: &Bundle, damage: &[Damage]) -> Loss {
    let OpenBundle {
        volumes,
        index,
        places,
        ..
    } = &*bundle.0;
    let names: BTreeSet<&str> = damage.iter().map(|damage| &*damage.entry).collect();
    let items = lost_items(bundle, |entry| names.contains(&*entry.name));
    let numbers: BTreeSet<usize> = damage
        .iter()
        .filter_map(|damage| volumes.volume_number(damage.offset))
        .collect();
    let mend = match VolumeSet::of(places) {
        Ok(Some(set)) if !numbers.is_empty() => {
            let has_index = volumes.volume_number(index.footer.offset) > numbers.last().copied();
            let has_lock = items.is_some();
            Bad {
                set: &set,
                places,
                numbers: &numbers,
                has_index,
                has_lock,
            }
            .mend()
        }
        _ => COPY.into(),
    };
    Loss {
        has_rest: items.is_some(),
        items,
        mend,
    }
}

/// One frame under check: the place of its entry, its number there, its offset, and its content.
struct FrameCheck(usize, usize, u64, Result<Vec<u8>, Damage>);

/// Checks every frame and every digest of the entries at `places`. Returns the first damage of each
/// entry and of each volume.
fn entries(bundle: &Bundle, places: &[usize], progress: &dyn Progress) -> Vec<Damage> {
    let entries = &bundle.contents().entries;
    let mut damage: Vec<Damage> = Vec::new();
    let mut volumes = BTreeSet::new();
    let mut state: Option<(usize, Option<Hasher>)> = None;
    let end = bundle.contents().frames.offset;
    let stretch = Stretch::new(Arc::clone(&bundle.0), end);
    let never = pipeline::ordered::<_, _, std::convert::Infallible>(
        pipeline::DEPTH,
        |hand| {
            for (place, entry) in places.iter().map(|&place| (place, &entries[place])) {
                for index in 0..TarEntry::frame_count(entry.size) as usize {
                    let frame = bundle.0.frame(place, index);
                    let bytes = frame.map(|frame| {
                        let bytes = stretch.bytes_at(frame.offset, frame.length);
                        (
                            frame,
                            bytes.map_err(|error| format!("cannot be read: {error}")),
                        )
                    });
                    let no_row = bytes.is_err();
                    if !hand((place, index, bytes)) {
                        return Ok(());
                    }
                    // without rows no frame of the entry can be found
                    if no_row {
                        break;
                    }
                }
            }
            Ok(())
        },
        |(place, index, bytes)| {
            let entry = &entries[place];
            let content = bytes.map(|(frame, bytes)| {
                let content = bytes.and_then(|bytes| entry.content(&frame, &bytes));
                let content = content.and_then(|content| entry.check_content(index, content));
                (
                    frame.offset,
                    content.map_err(|why| Damage::new(&entry.name, frame.offset, why)),
                )
            });
            let (at, content) = content.unwrap_or_else(|damage| (damage.offset, Err(damage)));
            FrameCheck(place, index, at, content)
        },
        |FrameCheck(place, index, at, content)| {
            let entry = &entries[place];
            if state.as_ref().is_none_or(|(current, _)| *current != place) {
                state = Some((place, Some(Hasher::new(entry.digest.algorithm()))));
            }
            let Some((_, hasher)) = &mut state else {
                return Ok(());
            };
            match content {
                Err(found) => {
                    // once an entry is known to be damaged, its other frames are not news, but
                    // other volumes are
                    let volume = bundle.0.volumes.volume(at);
                    if hasher.take().is_some() | volume.is_some_and(|volume| volumes.insert(volume))
                        && !damage.contains(&found)
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
    let Ok(()) = never;
    damage
}

/// Checks what no entry of the index covers: the frame table's entry, the index's tar header and
/// padding, and the end of the tar. Signatures and footer were checked when the bundle was opened.
fn rest(bundle: &Bundle) -> Vec<Damage> {
    let Index {
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
                let why = "its tar header or padding is not what the contents index says";
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
    let differs = |(name, at, expected): (&str, u64, Vec<u8>)| match bundle
        .0
        .volumes
        .bytes_at(at, expected.len())
    {
        Err(error) => Some(Damage::unread(name, at, &error)),
        Ok(found) => {
            let differs = found
                .iter()
                .zip(&expected)
                .position(|(found, expected)| found != expected)?;
            Some(Damage::new(
                name,
                at + differs as u64,
                "it is not what the contents index says",
            ))
        }
    };
    damage.extend(expected.into_iter().filter_map(differs));
    damage
}
