//! Valid bundles, and bundles whose content was damaged or replaced.

use super::sample::{Memory, blob, packed, sample, today, write};
use crate::format::entry::TarEntry;
use crate::format::frame::{self, FrameHash};
use crate::format::names::ItemName;
use crate::format::stored::ContentForm;
use crate::plan::ContentSource;
use crate::*;
use landfall_content::BlobRead;
use landfall_content::store::LayoutIndex;
use landfall_model::report::EntryKind;
use landfall_model::{Descriptor, Digest, media_type};
use landfall_os::FileExt;
use std::fs;
use std::io::Read;

#[test]
fn a_packed_bundle_is_valid_and_has_the_content_of_the_store() {
    let (memory, lock) = sample();
    let packed = packed();
    assert_eq!(packed.problems(), "");
    let bundle = Bundle::open(&packed.path).unwrap();
    assert_eq!(bundle.lock().unwrap(), lock);
    assert_eq!(bundle.entries().unwrap(), lock.entries());
    for (digest, bytes) in &memory.blobs {
        let descriptor = Descriptor::new(digest.clone(), bytes.len() as u64, media_type::OCTETS);
        assert_eq!(&bundle.read(&descriptor).unwrap(), bytes);
        let mut whole = Vec::new();
        bundle
            .open_whole(digest)
            .unwrap()
            .read_to_end(&mut whole)
            .unwrap();
        assert_eq!(&whole, bytes);
    }
    assert_eq!(bundle.bytes(), fs::metadata(&packed.path).unwrap().len());
    packed.reseal(|_, _| {});
    assert_eq!(packed.problems(), "");
}

#[test]
fn flipped_bits_are_found() {
    let packed = packed();
    let good = fs::read(&packed.path).unwrap();
    let file = fs::File::options().write(true).open(&packed.path).unwrap();
    let mut state = 7u64;
    for _ in 0..1000 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let bit = (state >> 33) as usize % (good.len() * 8);
        let at = bit / 8;
        let byte = good[bit / 8];
        file.write_all_at(&[byte ^ 1 << (bit % 8)], at as u64)
            .unwrap();
        assert_ne!(packed.problems(), "", "bit {bit}");
        file.write_all_at(&[byte], at as u64).unwrap();
    }
    assert_eq!(packed.problems(), "");
}

#[test]
fn the_last_bytes_of_content_with_a_wrong_digest_are_not_returned() {
    let packed = packed();
    let entry_index = blob(
        Bundle::open(&packed.path).unwrap().contents(),
        ContentForm::Stored,
    );
    packed.replace(entry_index, |content| content[0] ^= 1);
    let problems = packed.problems();
    assert!(problems.contains("does not have the digest"), "{problems}");
    let bundle = Bundle::open(&packed.path).unwrap();
    let digest = &bundle.contents().entries[entry_index].digest;
    for mut reader in [
        bundle.open(digest, 0).unwrap(),
        bundle.open_whole(digest).unwrap(),
    ] {
        let mut returned = Vec::new();
        let error = reader.read_to_end(&mut returned).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidData);
        assert!((returned.len() as u64) < bundle.contents().entries[entry_index].size);
    }
}

#[test]
fn a_lock_or_index_json_that_does_not_match_the_blobs_is_refused() {
    let packed = packed();
    packed.replace(2, |lock| {
        let at = lock.windows(4).position(|word| word == b"tool").unwrap();
        lock[at] = b'p';
    });
    assert!(
        packed.problems().contains("landfall.lock"),
        "{}",
        packed.problems()
    );
    // even if the digest and the fingerprint match, the items do not
    let bundle = Bundle::open(&packed.path).unwrap();
    let at = bundle.contents().entries[2].content_offset();
    let size = bundle.contents().entries[2].size as usize;
    let bytes = fs::read(&packed.path).unwrap();
    let text = frame::decode(
        ContentForm::Stored,
        &bytes[at as usize..][..size + 17],
        size,
    )
    .unwrap();
    packed.reseal(|contents, _| {
        contents.entries[2].digest = Digest::sha256(&text);
        contents.locks[0].fingerprint = Digest::sha256(&text);
    });
    let problems = packed.problems();
    assert!(
        problems.contains("index.json") && problems.contains("the lock does not list it"),
        "{problems}"
    );
}

#[test]
fn a_wrong_list_of_missing_items_is_refused() {
    let (memory, lock) = sample();
    let packed = packed();
    packed.reseal(|contents, _| {
        let item = ItemName::new(EntryKind::File, &lock.files[0].name);
        contents.partial = vec![item];
    });
    let problems = packed.problems();
    assert!(problems.contains("the lock does not list it"), "{problems}");

    let mut less = Memory {
        blobs: memory.blobs.clone(),
        ..Memory::default()
    };
    less.blobs.remove(&lock.files[0].digest);
    let plan = PackPlan::new(&lock, &less, today()).unwrap();
    let error = plan.check_complete().unwrap_err().to_string();
    assert!(
        error.starts_with("1 item would be missing from the bundle"),
        "{error}"
    );
    write(&plan, &less, &packed.path).unwrap();
    assert_eq!(packed.problems(), "");
    packed.reseal(|contents, _| contents.partial.clear());
    assert!(
        packed.problems().contains("is missing"),
        "{}",
        packed.problems()
    );
}

#[test]
fn a_header_or_padding_that_differs_from_the_index_is_refused() {
    for (frame_from_end, why) in [(false, "tar header"), (true, "padding is not empty")] {
        let packed = packed();
        packed.reseal(|contents, rows| {
            let entry = &contents.entries[blob(contents, ContentForm::Stored)];
            let index = if frame_from_end {
                TarEntry::frame_count(entry.size) as usize - 1
            } else {
                0
            };
            let row = &mut rows[entry.frame as usize + index];
            let mut content = vec![0; entry.content_len(index)];
            content[0] = b'x';
            let new = frame::stored(&content);
            row.1 = FrameHash::of(&new);
            let file = fs::File::options().write(true).open(&packed.path).unwrap();
            file.write_all_at(&new, row.0).unwrap();
        });
        assert!(packed.problems().contains(why), "{}", packed.problems());
    }
}

#[test]
fn a_lock_that_omits_or_adds_a_layer_is_refused() {
    let (mut memory, lock) = sample();
    let extra = memory.put(b"smuggled", media_type::OCTETS);
    for (why, adds) in [
        ("the lock lacks its blob", false),
        ("which no manifest names", true),
    ] {
        let packed = packed();
        let mut lock = lock.clone();
        let blobs = &mut lock.images[0].blobs;
        if adds {
            blobs.push(extra.clone());
        } else {
            blobs.pop();
        }
        let plan = PackPlan::new(&lock, &memory, today()).unwrap();
        write(&plan, &memory, &packed.path).unwrap();
        let problems = packed.problems();
        assert!(
            problems.contains("h.example/app:1") && problems.contains(why),
            "{problems}"
        );
    }
}

#[test]
fn a_media_type_other_than_that_of_the_lock_is_refused() {
    let packed = packed();
    packed.reseal(|contents, _| {
        let entry_index = blob(contents, ContentForm::Stored);
        contents.entries[entry_index].media_type = "text/html".into();
    });
    assert!(
        packed.problems().contains("its media type"),
        "{}",
        packed.problems()
    );
}

#[test]
fn a_list_of_signatures_is_read_as_it_was_written_or_refused() {
    let packed = packed();
    let (contents, rows) = packed.opened();
    let text = |size: usize| format!("-----BEGIN X-----\n{}\n-----END X-----\n", "x".repeat(size));
    let end = contents.frames.offset;
    for list in [
        vec![],
        vec![text(1)],
        vec![text(300), text(1), text(300)],
        vec![text(60 << 10)],
    ] {
        packed.seal(contents.clone(), &rows, end, false, &list);
        assert_eq!(packed.problems(), "");
        let bundle = Bundle::open(&packed.path).unwrap();
        assert_eq!(bundle.signatures(), list);
        assert_eq!(bundle.bytes(), fs::metadata(&packed.path).unwrap().len());
    }
    for (list, why) in [
        (vec![text(64 << 10)], "longer than"),
        (vec!["x\n".to_owned()], "not a list"),
    ] {
        packed.seal(contents.clone(), &rows, end, false, &list);
        assert!(packed.problems().contains(why), "{}", packed.problems());
    }
}

#[test]
fn a_bundle_that_another_release_serialized_differently_is_valid() {
    // another version and level, another first line of the lock, an unknown annotation in
    // `index.json`, and other forms than this release would choose
    let (memory, lock) = sample();
    let packed = packed();
    packed.reseal(|contents, _| {
        contents.landfall = "99.0.0".into();
        contents.options.level = 7;
    });
    assert_eq!(packed.problems(), "");
    let mut plan = PackPlan::new(&lock, &memory, today()).unwrap();
    let text = lock
        .to_text()
        .replacen("# landfall.lock", "# A newer release's lock", 1);
    assert_ne!(Digest::sha256(text.as_bytes()), lock.fingerprint());
    plan.fingerprint = Digest::sha256(text.as_bytes());
    let mut put = |entry_index: usize, bytes: Vec<u8>| {
        let entry = &mut plan.entries[entry_index];
        (entry.descriptor.digest, entry.descriptor.size) =
            (Digest::sha256(&bytes), bytes.len() as u64);
        entry.content = ContentSource::Bytes(bytes);
    };
    put(2, text.into_bytes());
    let mut index = LayoutIndex::default();
    index.add(lock.entries());
    let index = String::from_utf8(index.to_bytes()).unwrap();
    put(
        1,
        index
            .replacen(
                "\"annotations\":{",
                "\"annotations\":{\"later\":\"yes\",",
                1,
            )
            .into_bytes(),
    );
    for entry in &mut plan.entries[3..] {
        entry.form = if entry.form == ContentForm::Stored {
            ContentForm::Compressed
        } else {
            ContentForm::Stored
        };
    }
    write(&plan, &memory, &packed.path).unwrap();
    assert_eq!(packed.problems(), "");
    let bundle = Bundle::open(&packed.path).unwrap();
    assert_eq!(bundle.lock().unwrap(), lock);
    assert_eq!(bundle.fingerprint(), &plan.fingerprint);
}
