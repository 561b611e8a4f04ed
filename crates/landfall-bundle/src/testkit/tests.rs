//! Bundles made in memory: damaged at random, and made by somebody who lies.

use super::sample::{Memory, Packed, Rows, blob, packed, sample, today, write};
use crate::format::content_form::ContentForm;
use crate::format::contents::ContentsIndex;
use crate::format::entry::TarEntry;
use crate::format::frame;
use crate::format::hash::FrameHash;
use crate::format::names::ItemName;
use crate::plan::planned_entry::ContentSource;
use crate::write::index_builder::IndexBuilder;
use crate::*;
use landfall_content::BlobRead;
use landfall_content::store::LayoutIndex;
use landfall_model::report::SilentProgress;
use landfall_model::{Descriptor, Digest, Limits, media_type};
use std::fs;
use std::io::Read;
use std::os::unix::fs::FileExt;

#[test]
fn what_is_packed_is_sound_and_reads_back() {
    let (memory, lock) = sample();
    let packed = packed();
    assert_eq!(packed.problems(), "");
    let bundle = Bundle::open(&packed.path).unwrap();
    assert_eq!(bundle.lock().unwrap(), lock);
    assert_eq!(bundle.entries().unwrap(), lock.entries());
    for (digest, bytes) in &memory.blobs {
        let descriptor = Descriptor {
            digest: digest.clone(),
            size: bytes.len() as u64,
            media_type: media_type::OCTETS.into(),
        };
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
fn every_flipped_bit_is_found() {
    let packed = packed();
    let good = fs::read(&packed.path).unwrap();
    let file = fs::File::options().write(true).open(&packed.path).unwrap();
    let mut state = 7u64;
    for _ in 0..1000 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let place = (state >> 33) as usize % (good.len() * 8);
        let (at, byte) = (place / 8, good[place / 8]);
        file.write_all_at(&[byte ^ 1 << (place % 8)], at as u64)
            .unwrap();
        assert_ne!(packed.problems(), "", "bit {place}");
        file.write_all_at(&[byte], at as u64).unwrap();
    }
    assert_eq!(packed.problems(), "");
}

#[test]
fn an_index_that_lies_is_refused() {
    type Lie = fn(&mut ContentsIndex, &mut Rows);
    let lies: [(&str, Lie); 24] = [
        ("newer landfall", |c, _| c.version = 2),
        ("newer landfall", |c, _| {
            c.requires = vec!["delta".into(), "recipe".into()]
        }),
        ("does not fit together", |c, _| {
            c.requires = vec!["delta".into()]
        }),
        ("newer landfall", |c, _| c.locks.push(c.locks[0].clone())),
        ("every bundle has", |c, _| {
            c.locks[0].name = "../../etc/passwd".into()
        }),
        ("every bundle has", |c, _| {
            c.entries[1].name = "landfall-other".into()
        }),
        ("not an entry of a bundle", |c, _| {
            c.entries[3].name = "blobs/sha256/../../../etc/passwd".into()
        }),
        ("not an entry of a bundle", |c, _| {
            c.entries[3].name = "/etc/passwd".into()
        }),
        ("not an entry of a bundle", |c, _| {
            c.entries[3].name = "landfall-contents.json".into()
        }),
        ("not an entry of a bundle", |c, _| {
            c.entries[3].name = "landfall-../x".into()
        }),
        ("must begin at", |c, _| c.entries[4].offset += 1),
        ("must begin at", |c, _| c.entries[4].offset = u64::MAX),
        ("must begin at", |c, _| c.entries[4].frame += 1),
        ("must begin at", |c, _| drop(c.entries.remove(4))),
        ("impossible length", |c, _| c.entries[4].size = u64::MAX),
        ("impossible length", |c, _| c.entries[3].length = u64::MAX),
        ("impossible length", |c, _| {
            c.entries.last_mut().unwrap().length += 1 << 30
        }),
        ("frame table does not have its place", |c, _| {
            c.frames.offset += 1
        }),
        ("frame table does not have its place", |c, _| {
            c.frames.size = u64::MAX
        }),
        ("hashes of the frame table", |c, _| {
            c.frames.hashes.truncate(1)
        }),
        ("do not have the hash", |c, _| {
            c.frames.hashes[1] = FrameHash::of(b"x")
        }),
        ("an impossible place", |c, rows| {
            rows[c.entries[4].frame as usize].0 += 1
        }),
        ("an impossible place", |c, rows| {
            rows[c.entries.last().unwrap().frame as usize + 1].0 -= 1
        }),
        ("do not have the hash", |c, rows| {
            rows[c.entries[4].frame as usize].1 = FrameHash::of(b"x")
        }),
    ];
    for (why, lie) in lies {
        let packed = packed();
        packed.reseal(lie);
        let problems = packed.problems();
        assert!(problems.contains(why), "{why}: {problems}");
    }
}

#[test]
fn an_entry_that_is_there_twice_is_refused() {
    let packed = packed();
    let (mut contents, mut rows) = packed.opened();
    let last: TarEntry = contents.entries.last().unwrap().clone();
    let (end, bytes) = (last.end(), fs::read(&packed.path).unwrap());
    let copy = &bytes[last.offset as usize..end as usize];
    fs::write(&packed.path, [&bytes[..end as usize], copy].concat()).unwrap();
    let again = rows[last.frame as usize..].to_vec();
    contents.entries.push(TarEntry {
        offset: end,
        frame: rows.len() as u64,
        ..last
    });
    rows.extend(
        again
            .iter()
            .map(|(at, hash)| (at + copy.len() as u64, *hash)),
    );
    packed.seal(contents, &rows, end + copy.len() as u64, false, &[]);
    assert!(packed.problems().contains("twice"), "{}", packed.problems());
}

#[test]
fn content_with_another_digest_is_not_handed_out_to_its_end() {
    let packed = packed();
    let place = blob(
        Bundle::open(&packed.path).unwrap().contents(),
        ContentForm::Stored,
    );
    packed.replace(place, |content| content[0] ^= 1);
    let problems = packed.problems();
    assert!(problems.contains("does not have the digest"), "{problems}");
    let bundle = Bundle::open(&packed.path).unwrap();
    let digest = &bundle.contents().entries[place].digest;
    for mut reader in [
        bundle.open(digest, 0).unwrap(),
        bundle.open_whole(digest).unwrap(),
    ] {
        let mut handed = Vec::new();
        let error = reader.read_to_end(&mut handed).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidData);
        assert!((handed.len() as u64) < bundle.contents().entries[place].size);
    }
}

#[test]
fn a_lock_and_an_index_json_that_do_not_fit_the_blobs_are_refused() {
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
    // with digest and fingerprint made to fit as well, the items do not
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
        problems.contains("index.json") && problems.contains("the lock does not ask for it"),
        "{problems}"
    );
}

#[test]
fn bundles_that_hide_what_they_lack_are_refused() {
    let (memory, lock) = sample();
    let packed = packed();
    packed.reseal(|contents, _| {
        let item = ItemName {
            kind: landfall_model::report::EntryKind::File,
            name: lock.files[0].name.clone(),
        };
        contents.partial = vec![item];
    });
    let problems = packed.problems();
    assert!(
        problems.contains("the lock does not ask for it"),
        "{problems}"
    );

    let mut less = Memory {
        blobs: memory.blobs.clone(),
        ..Memory::default()
    };
    less.blobs.remove(&lock.files[0].digest);
    let plan = PackPlan::new(&lock, &less, today()).unwrap();
    assert!(
        matches!(plan.check_complete(), Err(BundleError::Incomplete { missing }) if missing.len() == 1)
    );
    write(
        &plan,
        &less,
        &packed.path,
        PackOptions { level: 3 },
        &SilentProgress,
    )
    .unwrap();
    assert_eq!(packed.problems(), "");
    packed.reseal(|contents, _| contents.partial.clear());
    assert!(
        packed.problems().contains("is not there"),
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
fn too_little_room_is_told_before_anything_is_read() {
    let (mut memory, mut lock) = sample();
    memory.sizes.insert(lock.files[0].digest.clone(), 1 << 50);
    lock.files[0].size = 1 << 50;
    let dir = tempfile::tempdir().unwrap();
    let plan = PackPlan::new(&lock, &memory, today()).unwrap();
    let error = write(
        &plan,
        &memory,
        &dir.path().join("B"),
        PackOptions { level: 3 },
        &SilentProgress,
    )
    .unwrap_err();
    assert!(
        matches!(error, BundleError::Space { needed, .. } if needed > 1 << 50),
        "{error}"
    );
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn two_cannot_write_one_bundle_at_once() {
    let (memory, lock) = sample();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("B");
    let other = fs::File::create(dir.path().join("B.partial")).unwrap();
    other.lock().unwrap();
    let plan = PackPlan::new(&lock, &memory, today()).unwrap();
    let pack = || {
        write(
            &plan,
            &memory,
            &path,
            PackOptions { level: 3 },
            &SilentProgress,
        )
    };
    assert!(matches!(pack(), Err(BundleError::Busy { .. })));
    drop(other);
    pack().unwrap();
}

#[test]
fn accepted_losses_count_until_their_date() {
    let (memory, mut lock) = sample();
    lock.missing = vec![landfall_item::lockfile::AcceptedLoss {
        kind: landfall_model::report::EntryKind::Image,
        name: "h.example/gone:1".into(),
        reason: "gone".into(),
        until: "2027-01-31".into(),
    }];
    let lost = |day| PackPlan::new(&lock, &memory, day).unwrap().missing.len();
    assert_eq!(lost(jiff::civil::date(2027, 1, 31)), 0);
    assert_eq!(lost(jiff::civil::date(2027, 2, 1)), 1);
}

/// A delta of the sample that leaves out its layer and its file, as two bases have them.
fn packed_delta() -> Packed {
    let (mut memory, lock) = sample();
    let repositories: std::collections::BTreeMap<Digest, String> = memory
        .blobs
        .keys()
        .map(|digest| (digest.clone(), "some/app".into()))
        .collect();
    let receipt = DeltaBase::receipt(lock.fingerprint(), "r.test:5000".into(), repositories);
    let (layer, file) = (
        lock.images[0].blobs[1].digest.clone(),
        lock.files[0].digest.clone(),
    );
    // what is left out need not be there
    memory
        .blobs
        .retain(|digest, _| *digest != layer && *digest != file);
    let plan =
        PackPlan::delta(&lock, &memory, &[receipt, DeltaBase::lock(&lock)], today()).unwrap();
    let mut expected = [layer, file];
    expected.sort();
    assert_eq!(
        plan.omitted
            .iter()
            .map(|blob| blob.digest.clone())
            .collect::<Vec<_>>(),
        expected
    );
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("B");
    write(
        &plan,
        &memory,
        &path,
        PackOptions { level: 3 },
        &SilentProgress,
    )
    .unwrap();
    Packed { _dir: dir, path }
}

#[test]
fn a_delta_is_sound_and_names_its_bases() {
    let (_, lock) = sample();
    let packed = packed_delta();
    assert_eq!(packed.problems(), "");
    let bundle = Bundle::open(&packed.path).unwrap();
    assert_eq!(
        bundle.bases()[0],
        BaseName::Lock {
            lock: lock.fingerprint()
        }
    );
    let BaseName::Receipt { repositories, .. } = &bundle.bases()[1] else {
        panic!("{:?}", bundle.bases())
    };
    assert!(
        repositories
            .keys()
            .eq(bundle.omitted().iter().map(|blob| &blob.digest)),
        "{repositories:?}"
    );
    let top = &lock.images[0];
    for inside in [&top.digest, &top.blobs[0].digest] {
        assert!(
            bundle.stat(inside).unwrap().is_some(),
            "manifests and configs are in every delta"
        );
    }
    // as a base it counts as what its receiver has
    let (memory, _) = sample();
    let second = PackPlan::delta(&lock, &memory, &[bundle.as_base()], today()).unwrap();
    assert_eq!(second.omitted, bundle.omitted());
}

#[test]
fn a_delta_that_lies_is_refused() {
    type Lie = fn(&mut ContentsIndex);
    let config = |c: &ContentsIndex| {
        let config = c
            .entries
            .iter()
            .find(|entry| entry.media_type == media_type::OCI_CONFIG)
            .unwrap();
        Descriptor {
            digest: config.digest.clone(),
            size: config.size,
            media_type: config.media_type.clone(),
        }
    };
    let lies: [(&str, Lie); 7] = [
        ("does not fit together", |c| c.requires.clear()),
        ("does not fit together", |c| c.bases.clear()),
        ("does not fit together", |c| c.omitted.clear()),
        ("sorted", |c| c.omitted.reverse()),
        ("is not there", |c| drop(c.omitted.remove(0))),
        ("does not ask for this", |c| c.omitted[0].size += 1),
        ("no repository", |c| {
            let Some(BaseName::Receipt { repositories, .. }) = c.bases.last_mut() else {
                return;
            };
            repositories
                .values_mut()
                .for_each(|name| *name = "../../v2/x".into());
        }),
    ];
    for (why, lie) in lies {
        let packed = packed_delta();
        packed.reseal(|contents, _| lie(contents));
        let problems = packed.problems();
        assert!(problems.contains(why), "{why}: {problems}");
    }
    let packed = packed_delta();
    packed.reseal(|contents, _| {
        contents.omitted.push(config(contents));
        contents.omitted.sort();
    });
    assert!(
        packed.problems().contains("leaves out") && packed.problems().contains("has it"),
        "{}",
        packed.problems()
    );
    // the last entry cut out of the file is one that must be there
    let packed = packed_delta();
    let (mut contents, mut rows) = packed.opened();
    let last = contents.entries.pop().unwrap();
    rows.truncate(last.frame as usize);
    contents.omitted.push(Descriptor {
        digest: last.digest,
        size: last.size,
        media_type: last.media_type,
    });
    contents.omitted.sort();
    packed.seal(contents, &rows, last.offset, false, &[]);
    assert!(
        packed.problems().contains("only layers and files"),
        "{}",
        packed.problems()
    );
}

#[test]
fn a_lock_that_leaves_out_or_adds_a_layer_is_refused() {
    let (mut memory, lock) = sample();
    let extra = memory.put(b"smuggled", media_type::OCTETS);
    for (why, adds) in [
        ("the lock lacks its blob", false),
        ("no manifest of it names the blob", true),
    ] {
        let (packed, mut lock) = (packed(), lock.clone());
        let blobs = &mut lock.images[0].blobs;
        if adds {
            blobs.push(extra.clone());
        } else {
            blobs.pop();
        }
        let plan = PackPlan::new(&lock, &memory, today()).unwrap();
        write(
            &plan,
            &memory,
            &packed.path,
            PackOptions { level: 3 },
            &SilentProgress,
        )
        .unwrap();
        let problems = packed.problems();
        assert!(
            problems.contains("h.example/app:1") && problems.contains(why),
            "{problems}"
        );
    }
}

#[test]
fn a_media_type_that_the_lock_does_not_give_is_refused() {
    let packed = packed();
    packed.reseal(|contents, _| {
        let place = blob(contents, ContentForm::Stored);
        contents.entries[place].media_type = "text/html".into();
    });
    assert!(
        packed.problems().contains("its media type"),
        "{}",
        packed.problems()
    );
}

#[test]
fn a_list_of_signatures_reads_back_or_is_refused() {
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
        (vec!["x\n".to_owned()], "no list"),
    ] {
        packed.seal(contents.clone(), &rows, end, false, &list);
        assert!(packed.problems().contains(why), "{}", packed.problems());
    }
}

#[test]
fn what_another_release_writes_otherwise_is_sound_too() {
    // another head of the lock, forms that this release would not choose, members and entries that
    // it does not know
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
    let mut put = |place: usize, bytes: Vec<u8>| {
        let entry = &mut plan.entries[place];
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
    write(
        &plan,
        &memory,
        &packed.path,
        PackOptions { level: 3 },
        &SilentProgress,
    )
    .unwrap();
    assert_eq!(packed.problems(), "");
    let bundle = Bundle::open(&packed.path).unwrap();
    assert_eq!(bundle.lock().unwrap(), lock);
    assert_eq!(bundle.fingerprint(), &plan.fingerprint);
}

#[test]
fn a_bundle_that_no_reader_would_open_is_not_begun() {
    let (memory, lock) = sample();
    let plan = PackPlan::new(&lock, &memory, today()).unwrap();
    let index = IndexBuilder::new(&plan, PackOptions::default());
    let path = std::path::Path::new("B");
    index.check_size(path, &Limits::default()).unwrap();
    let limits = Limits {
        contents_bytes: 500,
        ..Limits::default()
    };
    assert!(matches!(
        index.check_size(path, &limits),
        Err(BundleError::TooLarge { most: 500, .. })
    ));
    // what is allowed is as much as the reader takes
    let written = Bundle::open(&packed().path)
        .unwrap()
        .contents()
        .to_bytes()
        .unwrap()
        .len();
    let limits = Limits {
        contents_bytes: written - 1,
        ..Limits::default()
    };
    assert!(index.check_size(path, &limits).is_err());
}

#[test]
fn a_pipe_gets_the_same_bytes() {
    let (memory, lock) = sample();
    let plan = PackPlan::new(&lock, &memory, today()).unwrap();
    let (mut out, into) = std::io::pipe().unwrap();
    let into = fs::File::from(std::os::fd::OwnedFd::from(into));
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        out.read_to_end(&mut bytes).map(|_| bytes)
    });
    let written = write_to(
        &plan,
        &memory,
        into,
        PackOptions { level: 3 },
        None,
        &SilentProgress,
    )
    .unwrap();
    let bytes = reader.join().unwrap().unwrap();
    assert_eq!(written.bytes, bytes.len() as u64);
    assert!(bytes == fs::read(&packed().path).unwrap());
}
