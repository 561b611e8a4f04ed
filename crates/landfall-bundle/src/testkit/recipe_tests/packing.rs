//! Packing bundles with recipes.

use super::super::sample::{Memory, noise, sample, today, write};
use super::{Versions, image, image_of, layer, lock, pack, read, rebuilt, versions};
use crate::*;
use landfall_content::{BlobRead, ContentError};
use landfall_item::lockfile::Lock;
use landfall_item::{LockedFile, LockedImage};
use landfall_model::report::SilentProgress;
use landfall_model::{Descriptor, media_type};
use std::collections::BTreeSet;
use std::io::Read;
use std::sync::Arc;

#[test]
fn a_changed_layer_is_packed_as_a_recipe_and_rebuilt_from_the_old_one() {
    let Versions {
        memory,
        old,
        new,
        old_layer,
        new_layer,
    } = versions();
    let (packed, summary) = pack(&memory, &new, &[&old]);
    assert_eq!(summary.patched.len(), 1, "{summary:?}");
    let patched = &summary.patched[0];
    assert!(patched.recipe_bytes * 10 < patched.blob.size, "{summary:?}");
    assert_eq!(packed.problems(), "");
    let bundle = Bundle::open(&packed.path).unwrap();
    assert_eq!(bundle.contents().requires, ["delta", "recipe"]);
    assert_eq!(bundle.references()[0].blob, old_layer);
    assert_eq!(bundle.stat(&new_layer.digest).unwrap(), None);
    let (base, _) = pack(&memory, &old, &[]);
    let base = Bundle::open(&base.path).unwrap();
    let blobs = rebuilt(
        vec![Arc::new(bundle.clone()), Arc::new(base)],
        std::slice::from_ref(&bundle),
    );
    assert_eq!(blobs.stat(&new_layer.digest).unwrap(), Some(new_layer.size));
    assert_eq!(
        read(&blobs, &new_layer).unwrap(),
        memory.blobs[&new_layer.digest]
    );
    let mut end = Vec::new();
    blobs
        .open(&new_layer.digest, new_layer.size - 5)
        .unwrap()
        .read_to_end(&mut end)
        .unwrap();
    assert_eq!(
        end,
        memory.blobs[&new_layer.digest][new_layer.size as usize - 5..]
    );
    assert_eq!(
        blobs
            .missing_bases(&new_layer.digest, &BTreeSet::new())
            .unwrap(),
        Some(Vec::new())
    );
    // `RecipeBlobs` hides the base, which a server lists as another source
    assert_eq!(blobs.stat(&old_layer.digest).unwrap(), Some(old_layer.size));
    let blobs = RecipeBlobs(blobs);
    assert_eq!(blobs.stat(&old_layer.digest).unwrap(), None);
    assert!(read(&blobs, &old_layer).is_err());
    assert_eq!(
        read(&blobs, &new_layer).unwrap(),
        memory.blobs[&new_layer.digest]
    );
}

#[test]
fn a_recipe_of_two_files_is_packed_once_and_rebuilds_both() {
    let mut memory = Memory::default();
    // the same bytes are added to two files of the same size
    let noise = noise(40_000);
    let mut old = Lock {
        version: 1,
        ..Lock::default()
    };
    let mut new = old.clone();
    let mut blobs = Vec::new();
    for (name, content) in [("a", &noise[..20_000]), ("b", &noise[20_000..])] {
        for (lock, version, end) in [(&mut old, 1, ""), (&mut new, 2, "added")] {
            let blob = memory.put(&[content, end.as_bytes()].concat(), media_type::OCTETS);
            let url = format!("https://h.example/{name}-{version}");
            let file = LockedFile::new(url, blob.digest.clone(), blob.size);
            lock.files.push(file);
            blobs.push(blob);
        }
    }
    let memory = Arc::new(memory);
    let (packed, summary) = pack(&memory, &new, &[&old]);
    assert_eq!(summary.patched.len(), 2, "{summary:?}");
    let bundle = Bundle::open(&packed.path).unwrap();
    assert_eq!(packed.problems(), "");
    let recipes = &bundle.contents().recipes;
    assert_eq!(recipes.len(), 2);
    assert_eq!(recipes[0].entry, recipes[1].entry);
    let (base, _) = pack(&memory, &old, &[]);
    let base = Bundle::open(&base.path).unwrap();
    let sources: Vec<Arc<dyn BlobRead>> = vec![Arc::new(bundle.clone()), Arc::new(base)];
    let all = rebuilt(sources, std::slice::from_ref(&bundle));
    for blob in &blobs {
        assert_eq!(read(&all, blob).unwrap(), memory.blobs[&blob.digest]);
    }
}

#[test]
fn versions_within_one_bundle_are_patched_too() {
    let (mut memory, _) = sample();
    let made: Vec<(LockedImage, Descriptor)> = (0..3)
        .map(|number| image(&mut memory, &number.to_string(), 8 * number))
        .collect();
    let lock = lock(made.iter().map(|(image, _)| image.clone()).collect());
    let (packed, summary) = pack(&memory, &lock, &[]);
    assert_eq!(summary.patched.len(), 2, "{summary:?}");
    assert_eq!(packed.problems(), "");
    let bundle = Bundle::open(&packed.path).unwrap();
    assert_eq!(bundle.contents().requires, ["recipe"]);
    assert_eq!(bundle.bases(), []);
    let blobs = rebuilt(
        vec![Arc::new(bundle.clone())],
        std::slice::from_ref(&bundle),
    );
    for (_, layer) in &made {
        assert_eq!(read(&blobs, layer).unwrap(), memory.blobs[&layer.digest]);
    }
}

#[test]
fn a_blob_that_only_begins_like_gzip_is_patched_as_it_is() {
    let (mut memory, _) = sample();
    let [old, new] = [1_u8, 2].map(|version| {
        let bytes = [&[0x1f, 0x8b, 8, 0xe0, version], &noise(20_000)[..]].concat();
        image_of(&mut memory, &version.to_string(), &bytes)
    });
    let memory = Arc::new(memory);
    let (packed, summary) = pack(&memory, &lock(vec![new.0]), &[&lock(vec![old.0])]);
    assert_eq!(summary.patched.len(), 1, "{summary:?}");
    let bundle = Bundle::open(&packed.path).unwrap();
    let blobs = rebuilt(vec![Arc::new(bundle.clone()), memory], &[bundle]);
    assert_eq!(read(&blobs, &new.1).unwrap().len() as u64, new.1.size);
}

/// A gzip member of stored blocks. Go's fastest level writes blocks of 65,535 bytes for content
/// that does not compress; from `odd` on, the blocks are shorter.
fn stored_member(plain: &[u8], odd: usize) -> Vec<u8> {
    let mut member = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255];
    let (regular, irregular) = plain.split_at(odd);
    for block in regular.chunks(65_535).chain(irregular.chunks(50_000)) {
        let length = block.len() as u16;
        member.push(0);
        member.extend(length.to_le_bytes());
        member.extend((!length).to_le_bytes());
        member.extend(block);
    }
    member.extend([1, 0, 0, 0xff, 0xff]);
    let mut crc = flate2::Crc::new();
    crc.update(plain);
    member.extend(crc.sum().to_le_bytes());
    member.extend(crc.amount().to_le_bytes());
    member
}

#[test]
fn a_stream_whose_encoder_changes_late_is_patched_too() {
    let old = noise(4_000_000);
    let mut new = old.clone();
    new[3_000_000..3_000_100].fill(0);
    let (mut memory, _) = sample();
    let (old_image, old_layer) = image_of(&mut memory, "1", &stored_member(&old, 40 * 65_535));
    let changed = stored_member(&new, 40 * 65_535);
    let (new_image, layer) = image_of(&mut memory, "2", &changed);
    let (packed, summary) = pack(&memory, &lock(vec![new_image]), &[&lock(vec![old_image])]);
    assert_eq!(summary.patched.len(), 1, "{summary:?}");
    assert_eq!(summary.patched[0].from, [old_layer.digest]);
    let blobs = rebuilt(
        vec![Arc::new(memory)],
        &[Bundle::open(&packed.path).unwrap()],
    );
    assert!(read(&blobs, &layer).is_ok_and(|bytes| bytes == changed));
}

#[test]
fn no_chain_of_recipes_is_longer_than_readers_accept() {
    let (mut memory, _) = sample();
    let versions: Vec<(LockedImage, Descriptor)> = (10..40)
        .map(|version| {
            // each version is closest in size to the versions before and after it
            let content = noise(10_000 + version * 500);
            let bytes = layer(&[("app", &content), ("version", &[version as u8])]);
            image_of(&mut memory, &version.to_string(), &bytes)
        })
        .collect();
    let (images, layers): (Vec<_>, Vec<_>) = versions.into_iter().unzip();
    let memory = Arc::new(memory);
    let (packed, summary) = pack(&memory, &lock(images), &[]);
    assert!(summary.patched.len() > 20, "{summary:?}");
    let bundle = Bundle::open(&packed.path).unwrap();
    let blobs = rebuilt(vec![Arc::new(bundle.clone())], &[bundle]);
    for layer in &layers {
        assert_eq!(read(&blobs, layer).unwrap().len() as u64, layer.size);
    }
}

#[test]
fn packing_again_gives_the_same_bytes() {
    let Versions {
        memory, old, new, ..
    } = versions();
    let pack = || std::fs::read(&pack(&memory, &new, &[&old]).0.path).unwrap();
    assert!(pack() == pack());
}

#[test]
fn the_estimate_of_recipes_equals_the_result_of_packing() {
    let Versions {
        memory, old, new, ..
    } = versions();
    let estimate = |locks: &[Lock], old_blobs: &dyn BlobRead| {
        let bases = [DeltaBase::lock(&old)];
        let plan = PackPlan::delta(&new, &*memory, &bases, today()).unwrap();
        let content = OldContent {
            locks,
            bases: &bases,
            blobs: old_blobs,
        };
        let folder = std::env::temp_dir();
        estimate_recipes(&plan, &new, &*memory, &content, &folder, &SilentProgress).unwrap()
    };
    let (_, packed) = pack(&memory, &new, &[&old]);
    assert_eq!(estimate(std::slice::from_ref(&old), &*memory), packed);
    let reason = |summary: RecipeSummary| summary.unpatched[0].reason;
    assert_eq!(
        reason(estimate(&[], &*memory)),
        UnpatchedReason::NoOlderVersion
    );
    assert_eq!(
        reason(estimate(std::slice::from_ref(&old), &Memory::default())),
        UnpatchedReason::OlderVersionElsewhere
    );
}

#[test]
fn a_recipe_that_does_not_rebuild_its_blob_is_left_out() {
    let Versions {
        memory,
        old,
        new,
        new_layer,
        ..
    } = versions();
    // the time in the header of the stream is changed, so that no recipe rebuilds the right bytes
    let mut blobs = memory.blobs.clone();
    blobs.get_mut(&new_layer.digest).unwrap()[4] ^= 1;
    let damaged = Memory {
        blobs,
        ..Memory::default()
    };
    let bases = [DeltaBase::lock(&old)];
    let mut plan = PackPlan::delta(&new, &damaged, &bases, today()).unwrap();
    let content = OldContent {
        locks: std::slice::from_ref(&old),
        bases: &bases,
        blobs: &damaged,
    };
    let dir = tempfile::tempdir().unwrap();
    let progress = &SilentProgress;
    let made = plan_recipes(&mut plan, &new, &damaged, &content, dir.path(), progress);
    let UnpatchedBlob { blob, reason } = &made.unwrap().unpatched[0];
    assert_eq!((blob, *reason), (&new_layer, UnpatchedReason::Unproven));
    assert_eq!(plan.recipes, []);
    let path = dir.path().join("B");
    let error = write(&plan, &damaged, &path).unwrap_err();
    assert!(
        matches!(
            &error,
            BundleError::Content { source: ContentError::Damaged { digest }, .. }
                if *digest == new_layer.digest
        ),
        "{error}"
    );
    // an intact blob is packed whole by the same plan
    write(&plan, &*memory, &path).unwrap();
}

#[test]
fn a_layer_with_many_plain_bytes_for_its_size_is_carried_whole() {
    let (mut memory, _) = sample();
    let zeros = vec![0; 10 << 20];
    let [old, new] = ["1", "2"].map(|tag| {
        let files = [
            ("noise", &noise(9000)[..]),
            ("version", tag.as_bytes()),
            ("zeros", &zeros[..]),
        ];
        image_of(&mut memory, tag, &layer(&files))
    });
    let (packed, summary) = pack(&memory, &lock(vec![new.0]), &[&lock(vec![old.0])]);
    assert_eq!(packed.problems(), "");
    assert_eq!(summary.patched.len(), 0, "{summary:?}");
    assert_eq!(summary.unpatched[0].blob, new.1);
    assert_eq!(summary.unpatched[0].reason, UnpatchedReason::Compression);
}
