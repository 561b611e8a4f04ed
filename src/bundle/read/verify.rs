//! Checking a bundle: everything in it is read and compared with what the index and the lock say.

use super::against_lock::against_lock;
use super::bundle::Bundle;
use super::index::Index;
use crate::bundle::error::Error;
use crate::bundle::format::damage::Damage;
use crate::bundle::format::names::{CONTENTS, ItemName, LOCATOR};
use crate::bundle::format::trailer::trailer;
use crate::bundle::format::{frame, header, locator};
use crate::bundle::pipeline;
use crate::model::{Digest, Hasher};
use crate::report::Progress;
use std::collections::BTreeSet;

/// Most damaged places that are listed.
const MAX_LISTED: usize = 100;

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

/// Hashes everything in an opened bundle again: every frame, every blob, every tar header, and what stands
/// between and after them. Then compares blobs and `index.json` with what the lock asks for, and the lock
/// with what the manifests say. This shows that the bundle is as it was packed, not who packed it.
///
/// # Errors
/// [`Error::Damaged`] with every damaged entry.
pub fn verify(bundle: &Bundle, progress: &dyn Progress) -> Result<Verified, Error> {
    let contents = bundle.contents();
    let bytes = contents.entries.iter().map(|entry| entry.size).sum();
    progress.begin("verify", contents.entries.len() as u64, bytes);
    let mut damage = entries(bundle, progress);
    progress.end();
    damage.extend(rest(bundle));
    if damage.is_empty() {
        damage = against_lock(bundle)?;
    }
    if !damage.is_empty() {
        let mut volumes = BTreeSet::new();
        let mut count = 0;
        let damage = damage.into_iter().map(|damage| bundle.0.volumes.place(damage)).filter(|damage| {
            count += 1;
            // all damaged volumes are named
            damage.volume.as_ref().is_some_and(|volume| volumes.insert(volume.clone())) || count <= MAX_LISTED
        });
        let damage = damage.collect();
        return Err(Error::Damaged { path: bundle.0.path.clone(), damage });
    }
    Ok(Verified {
        digest: bundle.digest().clone(),
        fingerprint: bundle.fingerprint().clone(),
        partial: bundle.partial().to_vec(),
    })
}

/// One frame under check: entry, frame number, offset, bytes or content.
struct FrameCheck(usize, usize, u64, Result<Vec<u8>, String>);

/// Checks every frame and every digest of the entries. Returns the first damage of each entry and of each volume.
fn entries(bundle: &Bundle, progress: &dyn Progress) -> Vec<Damage> {
    let entries = &bundle.contents().entries;
    let mut damage: Vec<Damage> = Vec::new();
    let mut volumes = BTreeSet::new();
    let mut state: Option<(usize, Option<Hasher>)> = None;
    let never = pipeline::ordered::<_, _, std::convert::Infallible>(
        pipeline::DEPTH,
        |hand| {
            for (place, entry) in entries.iter().enumerate() {
                let mut at = entry.offset;
                for (index, frame) in entry.frames.iter().enumerate() {
                    let bytes = bundle.0.volumes.bytes_at(at, frame.0 as usize);
                    if !hand(FrameCheck(
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
        |FrameCheck(place, index, at, bytes)| {
            let entry = &entries[place];
            let content = bytes.and_then(|bytes| entry.content(index, &bytes));
            FrameCheck(place, index, at, content.and_then(|content| entry.check_content(index, content)))
        },
        |FrameCheck(place, index, at, content)| {
            let entry = &entries[place];
            if state.as_ref().is_none_or(|(current, _)| *current != place) {
                state = Some((place, Some(Hasher::new(entry.digest.algorithm()))));
            }
            let Some((_, hasher)) = &mut state else { return Ok(()) };
            let mut fail = |at, why| {
                // once an entry is known to be damaged, its other frames are not news, but other volumes are
                let volume = bundle.0.volumes.volume(at);
                if hasher.take().is_some() | volume.is_some_and(|volume| volumes.insert(volume)) {
                    damage.push(Damage::new(&entry.name, at, why));
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

/// Checks what no entry of the index covers: the locator, the index's tar header, and the trailer.
fn rest(bundle: &Bundle) -> Vec<Damage> {
    let Index { contents, locator, frames } = &bundle.0.index;
    let header = frame::stored(&header::encode(CONTENTS, locator.size));
    let expected = [
        (LOCATOR, contents.locator, locator.frames().concat()),
        (CONTENTS, locator.offset - header.len() as u64, header),
        (
            "signature, end of the tar or seek table",
            locator.offset + locator.length,
            trailer(contents, frames, locator.size, bundle.signature()),
        ),
    ];
    debug_assert_eq!(expected[0].2.len(), locator::SPAN);
    let damage =
        |(name, at, expected): (&str, u64, Vec<u8>)| match bundle.0.volumes.bytes_at(at, expected.len()) {
            Err(error) => Some(Damage::new(name, at, format!("cannot be read: {error}"))),
            Ok(found) => {
                let differs = found.iter().zip(&expected).position(|(found, expected)| found != expected)?;
                Some(Damage::new(name, at + differs as u64, "it is not what the contents index says"))
            }
        };
    expected.into_iter().filter_map(damage).collect()
}
