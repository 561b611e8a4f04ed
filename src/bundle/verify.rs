//! Checking a bundle: everything in it is read and compared with what the index and the lock say.

use super::contents::{ItemName, Record};
use super::plan::Plan;
use super::{Bundle, CONTENTS, Error, Fault, LOCK, delta, frame, header, locator, pipeline, tail};
use crate::item;
use crate::lock::disagreements;
use crate::lockfile::Lock;
use crate::model::{Digest, Hasher};
use crate::report::{Kind, Progress};
use std::collections::{BTreeMap, BTreeSet};

/// Most faults that are listed.
const MAX_FAULTS: usize = 100;

/// A bundle that is consistent in itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// The bundle digest.
    pub digest: Digest,
    /// SHA-256 of the lock.
    pub fingerprint: Digest,
    /// Items of the lock that are not inside.
    pub partial: Vec<ItemName>,
}

/// Re-hashes everything in an opened bundle: every frame, every blob, every tar header; and what stands
/// between and after them; and compares blobs and `index.json` with what the lock asks for, and the lock
/// with what the manifests say. This shows that the bundle is as it was packed, not who packed it.
///
/// # Errors
/// [`Error::Unsound`] with every damaged entry.
pub fn verify(bundle: &Bundle, progress: &dyn Progress) -> Result<Verified, Error> {
    let contents = bundle.contents();
    let bytes = contents.entries.iter().map(|entry| entry.size).sum();
    progress.begin("verify", contents.entries.len() as u64, bytes);
    let mut faults = entries(bundle, progress);
    progress.end();
    faults.extend(rest(bundle));
    if faults.is_empty() {
        faults = against_lock(bundle)?;
    }
    if !faults.is_empty() {
        let mut volumes = BTreeSet::new();
        let mut count = 0;
        let faults = faults.into_iter().map(|fault| bundle.0.medium.place(fault)).filter(|fault| {
            count += 1;
            // all damaged volumes are named
            fault.volume.as_ref().is_some_and(|volume| volumes.insert(volume.clone())) || count <= MAX_FAULTS
        });
        let faults = faults.collect();
        return Err(Error::Unsound { path: bundle.0.path.clone(), faults });
    }
    Ok(Verified {
        digest: bundle.digest().clone(),
        fingerprint: bundle.fingerprint().clone(),
        partial: bundle.partial().to_vec(),
    })
}

/// One frame on its way: entry, frame number, offset, bytes or content.
struct Piece(usize, usize, u64, Result<Vec<u8>, String>);

/// Every frame and every digest of the entries; the first fault of each, and the first of each volume.
fn entries(bundle: &Bundle, progress: &dyn Progress) -> Vec<Fault> {
    let entries = &bundle.contents().entries;
    let mut faults: Vec<Fault> = Vec::new();
    let mut volumes = BTreeSet::new();
    let mut state: Option<(usize, Option<Hasher>)> = None;
    let never = pipeline::ordered::<_, _, std::convert::Infallible>(
        |hand| {
            for (place, entry) in entries.iter().enumerate() {
                let mut at = entry.offset;
                for (index, frame) in entry.frames.iter().enumerate() {
                    let bytes = bundle.0.bytes_at(at, frame.0 as usize);
                    if !hand(Piece(
                        place,
                        index,
                        at,
                        bytes.map_err(|error| format!("cannot be read: {error}")),
                    )) {
                        return Ok(());
                    }
                    at += u64::from(frame.0);
                }
            }
            Ok(())
        },
        |Piece(place, index, at, bytes)| {
            let entry = &entries[place];
            let content = bytes.and_then(|bytes| entry.content(index, &bytes));
            Piece(place, index, at, content.and_then(|content| check_frame(entry, index, content)))
        },
        |Piece(place, index, at, content)| {
            let entry = &entries[place];
            if state.as_ref().is_none_or(|(current, _)| *current != place) {
                state = Some((place, Some(Hasher::new(entry.digest.algorithm()))));
            }
            let Some((_, hasher)) = &mut state else { return Ok(()) };
            let mut fail = |at, why| {
                // once an entry is known to be damaged, its other frames are not news, but other volumes are
                let volume = bundle.0.medium.volume(at);
                if hasher.take().is_some() | volume.is_some_and(|volume| volumes.insert(volume)) {
                    faults.push(Fault::new(&entry.name, at, why));
                }
            };
            match content {
                Err(why) => fail(at, why),
                Ok(content) if entry.is_content(index) => {
                    progress.bytes(content.len() as u64);
                    if let Some(hasher) = hasher {
                        hasher.update(&content);
                    }
                }
                Ok(_) => {}
            }
            if index + 1 == entry.frames.len() {
                let digest = hasher.take().map(Hasher::finish);
                if digest.is_some_and(|digest| digest != entry.digest) {
                    let why = format!("its content does not have the digest {}", entry.digest);
                    faults.push(Fault::new(&entry.name, entry.offset, why));
                }
                progress.item(&entry.name);
            }
            Ok(())
        },
    );
    let Ok(()) = never;
    faults
}

/// Whether a frame that holds no content holds what must be there.
pub(super) fn check_frame(entry: &Record, index: usize, content: Vec<u8>) -> Result<Vec<u8>, String> {
    if index == 0 && content != header::encode(&entry.name, entry.size) {
        return Err("its tar header is not what the contents index says".into());
    }
    if index > 0 && !entry.is_content(index) && content.iter().any(|&byte| byte != 0) {
        return Err("its padding is not empty".into());
    }
    Ok(content)
}

/// What no record of the index covers: the locator, the index's tar header, and the tail.
fn rest(bundle: &Bundle) -> Vec<Fault> {
    let inner = &*bundle.0;
    let locator = &inner.locator;
    let header = frame::stored(&header::encode(CONTENTS, locator.size));
    let expected = [
        (super::LOCATOR, inner.contents.locator, locator.frames().concat()),
        (CONTENTS, locator.offset - header.len() as u64, header),
        (
            "signature, end of the tar or seek table",
            locator.offset + locator.length,
            tail::tail(&inner.contents, &inner.index_frames, locator.size, bundle.signature()),
        ),
    ];
    debug_assert_eq!(expected[0].2.len(), locator::SPAN);
    let fault = |(name, at, expected): (&str, u64, Vec<u8>)| match inner.bytes_at(at, expected.len()) {
        Err(error) => Some(Fault::new(name, at, format!("cannot be read: {error}"))),
        Ok(found) => {
            let differs = found.iter().zip(&expected).position(|(found, expected)| found != expected)?;
            Some(Fault::new(name, at + differs as u64, "it is not what the contents index says"))
        }
    };
    expected.into_iter().filter_map(fault).collect()
}

/// Whether the bundle has all that its lock asks for, and nothing else.
fn against_lock(bundle: &Bundle) -> Result<Vec<Fault>, Error> {
    let lock = bundle.lock()?;
    let without: BTreeSet<ItemName> = bundle.partial().iter().cloned().collect();
    let plan = Plan::without(&lock, &without);
    let at_index = |why: String| Fault::new(CONTENTS, bundle.0.locator.offset, why);
    let mut faults: Vec<Fault> = delta::faults(bundle, &lock, &plan).into_iter().map(at_index).collect();
    let expected: BTreeMap<_, _> = plan.pieces.iter().map(|piece| (&piece.name, piece)).collect();
    let mut found: BTreeSet<String> = bundle.omitted().iter().map(|blob| blob.digest.layout_path()).collect();
    for entry in &bundle.contents().entries {
        found.insert(entry.name.clone());
        let mut fault = |why: &str| faults.push(Fault::new(&entry.name, entry.offset, why));
        match expected.get(&entry.name) {
            None => fault("the lock does not ask for it"),
            Some(piece) => {
                let wanted = &piece.descriptor;
                if (&wanted.digest, wanted.size) != (&entry.digest, entry.size) {
                    fault("it is not what the lock asks for");
                } else if (&wanted.media_type, piece.form) != (&entry.media_type, entry.form) {
                    fault("its media type or form is not what follows from the lock");
                }
            }
        }
    }
    let absent = expected.iter().filter(|(name, _)| !found.contains(name.as_str()));
    faults.extend(absent.map(|(name, piece)| {
        let why = format!("{name} is not there, which {} needs", piece.item);
        Fault::new(CONTENTS, bundle.0.locator.offset, why)
    }));
    drop(plan);
    if faults.is_empty() {
        faults = lock_against_manifests(bundle, &lock, &without);
    }
    let named = |kind, name: String| ItemName { kind, name };
    let unresolved: BTreeSet<ItemName> =
        lock.unresolved.iter().map(|item| named(item.kind, item.name.clone())).collect();
    let known: BTreeSet<ItemName> = item::each(&lock)
        .map(|entry| named(entry.kind, entry.name))
        .chain(lock.missing.iter().map(|item| named(item.kind, item.name.clone())))
        .chain(unresolved.iter().cloned())
        .collect();
    let mut partial = |items: &mut dyn Iterator<Item = &ItemName>, why: &str| {
        faults.extend(items.map(|item| {
            let why = format!("{} {} {why}", item.kind, item.name);
            Fault::new(CONTENTS, bundle.0.locator.offset, why)
        }));
    };
    partial(&mut without.difference(&known), "is named as left out, and is not in the lock");
    partial(&mut unresolved.difference(&without), "is not resolved in the lock, and not named as left out");
    Ok(faults)
}

/// Whether what the lock says of each image is what the image's manifests say.
fn lock_against_manifests(bundle: &Bundle, lock: &Lock, without: &BTreeSet<ItemName>) -> Vec<Fault> {
    let contents = bundle.contents();
    let at = contents.entries[contents.front_len() - contents.locks.len()].offset;
    let held = lock
        .images
        .iter()
        .filter(|image| !without.contains(&ItemName { kind: Kind::Image, name: image.name.to_string() }));
    let faults = held.flat_map(|image| {
        let told = disagreements(image, bundle).into_iter();
        told.map(move |why| Fault::new(LOCK, at, format!("{}: {why}", image.name)))
    });
    faults.collect()
}
