//! Bundles that lack a volume: the items that need it, and rebuilding it.

use super::sample::{Memory, Packed, packed_from, sample};
use crate::format::names::{ItemName, volume_path};
use crate::format::stored::{ReadAt, stored_len};
use crate::read::volume_reader::VolumeReader;
use crate::*;
use landfall_content::{BlobRead, ContentError};
use landfall_item::LockedFile;
use landfall_item::lockfile::Lock;
use landfall_model::report::SilentProgress;
use landfall_model::{Digest, media_type};
use std::collections::HashSet;
use std::fs;
use std::ops::Range;
use std::path::PathBuf;

/// Splits the bundle, and removes the volume with the bytes `lost`. Returns the path of the bundle.
fn without(packed: &Packed, lost: Range<u64>) -> PathBuf {
    let base = packed.split(lost);
    fs::remove_file(volume_path(&base, 2)).unwrap();
    base
}

fn rebuild(base: &PathBuf, blobs: &Memory) -> Result<Vec<u8>, BundleError> {
    let like = std::slice::from_ref(base);
    let no_lock = || unreachable!("the lock is in the first volume");
    let (path, _) = write_volume(like, 2, None, no_lock, blobs, &SilentProgress)?;
    Ok(fs::read(path).unwrap())
}

#[test]
fn a_volume_of_a_partial_bundle_is_rebuilt() {
    let (memory, mut lock) = sample();
    let gone = LockedFile::new("https://h.example/gone", Digest::sha256(b"gone"), 4);
    lock.files.insert(0, gone);
    let packed = packed_from(&memory, &lock);
    let bundle = Bundle::open(&packed.path).unwrap();
    assert_eq!(bundle.partial().len(), 1);
    let last = bundle.contents().entries.last().unwrap();
    let lost = last.offset..last.end();
    let base = without(&packed, lost.clone());
    let whole = fs::read(&packed.path).unwrap();
    let volume = rebuild(&base, &memory).unwrap();
    assert!(volume == whole[lost.start as usize..lost.end as usize]);
}

#[test]
fn errors_name_the_missing_volume() {
    let (memory, lock) = sample();
    let packed = packed_from(&memory, &lock);
    let bundle = Bundle::open(&packed.path).unwrap();
    let last = bundle.contents().entries.last().unwrap();
    let locations = [without(&packed, last.offset..last.end())];
    let error = Bundle::open_at(&locations).unwrap_err();
    let rest = name_bad_volumes(error, &locations, &SilentProgress).rest;
    let mut reader = rest.unwrap().open(&last.digest, 0).unwrap();
    let error = std::io::copy(&mut reader, &mut std::io::sink()).unwrap_err();
    assert!(error.to_string().contains("(in V.0002)"), "{error}");
}

/// A bundle whose frame table has two pieces, and the items whose rows are in the second piece.
fn bundle_of_many_files() -> (Memory, Packed, Vec<ItemName>) {
    let mut memory = Memory::default();
    let file = |number: u32| {
        let content = format!("the content of file {number}");
        let blob = memory.put(content.as_bytes(), media_type::OCTETS);
        let name = format!("https://h.example/{number:06}");
        LockedFile::new(&name, blob.digest, blob.size)
    };
    // a file and its manifest have three frames each: tar header, content and padding
    let lock = Lock {
        version: 1,
        files: (0..4380).map(file).collect(),
        ..Lock::default()
    };
    let packed = packed_from(&memory, &lock);
    let bundle = Bundle::open(&packed.path).unwrap();
    let contents = bundle.contents();
    let second = contents.frames.frame(2).unwrap();
    let entries = contents.entries.iter().filter(|entry| {
        let mut frames = contents.frames.frames_with_rows(entry.rows());
        frames.any(|frame| frame == second)
    });
    let digests: HashSet<&Digest> = entries.map(|entry| &entry.digest).collect();
    let affected = bundle.entries().unwrap().into_iter().filter(|item| {
        let mut parts = item.parts.iter();
        parts.any(|part| digests.contains(&part.descriptor.digest))
    });
    let affected: Vec<ItemName> = affected
        .map(|item| ItemName::new(item.kind, item.name))
        .collect();
    assert!((5..100).contains(&affected.len()), "{}", affected.len());
    (memory, packed, affected)
}

#[test]
fn a_bad_piece_of_the_frame_table_affects_the_items_with_rows_in_it() {
    let (memory, packed, affected) = bundle_of_many_files();
    let bundle = Bundle::open(&packed.path).unwrap();
    let second = bundle.contents().frames.frame(2).unwrap();

    // the volume with the second piece of the table is missing
    let lost = second.offset..second.offset + stored_len(second.content as u64);
    let base = without(&packed, lost.clone());
    let locations = [base.clone()];
    let error = Bundle::open_at(&locations).unwrap_err();
    let rest = name_bad_volumes(error, &locations, &SilentProgress)
        .rest
        .unwrap();
    assert_eq!(rest.partial(), affected);
    for part in rest.entries().unwrap().iter().flat_map(|item| &item.parts) {
        let mut reader = rest.open(&part.descriptor.digest, 0).unwrap();
        std::io::copy(&mut reader, &mut std::io::sink()).unwrap();
    }
    // rebuilding the volume needs the content of the affected items
    let error = rebuild(&base, &Memory::default()).unwrap_err();
    assert!(
        matches!(
            &error,
            BundleError::Content {
                source: ContentError::Missing { .. },
                ..
            }
        ),
        "{error}"
    );
    let whole = fs::read(&packed.path).unwrap();
    let volume = rebuild(&base, &memory).unwrap();
    assert!(volume == whole[lost.start as usize..lost.end as usize]);

    // the piece is damaged
    let mut bytes = whole;
    bytes[second.offset as usize + 20] ^= 1;
    fs::write(&packed.path, bytes).unwrap();
    let Err(BundleError::Damaged { loss, .. }) = verify(&bundle, &SilentProgress) else {
        panic!("the damage was not found")
    };
    assert_eq!(loss.unwrap().items, Some(affected));
}

#[test]
fn a_volume_that_was_replaced_is_not_opened_again() {
    let dir = tempfile::tempdir().unwrap();
    let paths: Vec<PathBuf> = (0..18)
        .map(|number| dir.path().join(number.to_string()))
        .collect();
    paths
        .iter()
        .for_each(|path| fs::write(path, "old").unwrap());
    let [.., closed, last] = &paths[..] else {
        panic!("there are too few files")
    };
    let volumes = VolumeReader::over(paths.clone(), true).unwrap();
    let start = |index| volumes.start(index);
    for path in [&paths[0], closed] {
        let new = dir.path().join("new");
        // longer, because inode numbers do not count
        fs::write(&new, "other").unwrap();
        fs::rename(new, path).unwrap();
    }
    fs::write(last, "old, signed").unwrap();
    // the first 16 files stay open, and a signature changes only the end of the last file
    for index in [0, 17] {
        assert_eq!(volumes.bytes_at(start(index), 3).unwrap(), b"old");
    }
    let changed = volumes.bytes_at(start(16), 3).unwrap_err();
    assert!(changed.to_string().contains("has changed"), "{changed}");
}
