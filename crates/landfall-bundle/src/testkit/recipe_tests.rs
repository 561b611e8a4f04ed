//! Bundles with recipes: packed, rebuilt, damaged and forged.

use super::sample::{Memory, Packed, noise, sample, today, write};
use crate::format::blob_recipe::BlobRecipe;
use crate::format::contents::ContentsIndex;
use crate::*;
use flate2::{Compression, write::GzEncoder};
use landfall_content::{BlobChain, BlobRead, ContentError};
use landfall_item::LockedImage;
use landfall_item::lockfile::Lock;
use landfall_model::report::SilentProgress;
use landfall_model::{Descriptor, Digest, media_type};
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A layer with these files, compressed.
fn layer(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    for (path, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        archive.append_data(&mut header, path, *content).unwrap();
    }
    archive.into_inner().unwrap().finish().unwrap()
}

/// A program whose addresses are `shift` higher.
fn program(shift: u32) -> Vec<u8> {
    let mut program = noise(200_000);
    for at in (0..program.len() - 4).step_by(101) {
        let address = u32::from_le_bytes(program[at..at + 4].try_into().unwrap());
        program[at..at + 4].copy_from_slice(&(address.wrapping_add(shift)).to_le_bytes());
    }
    program
}

/// The version `tag` of an image whose layer has a program.
fn image(memory: &mut Memory, tag: &str, shift: u32) -> (LockedImage, Descriptor) {
    let bytes = layer(&[
        ("bin/app", &program(shift)),
        ("etc/version", tag.as_bytes()),
    ]);
    image_of(memory, tag, &bytes)
}

/// The version `tag` of an image with this layer.
fn image_of(memory: &mut Memory, tag: &str, layer: &[u8]) -> (LockedImage, Descriptor) {
    let layer = memory.put(layer, "application/vnd.oci.image.layer.v1.tar+gzip");
    let config = memory.put(
        format!("{{\"tag\":\"{tag}\"}}").as_bytes(),
        media_type::OCI_CONFIG,
    );
    let manifest =
        serde_json::json!({"schemaVersion": 2, "config": config, "layers": [layer]}).to_string();
    let top = memory.put(manifest.as_bytes(), media_type::OCI_MANIFEST);
    let name = format!("h.example/app:{tag}");
    let image = LockedImage {
        blobs: vec![config, layer.clone()],
        ..LockedImage::new(name.parse().unwrap(), top)
    };
    (image, layer)
}

fn lock(images: Vec<LockedImage>) -> Lock {
    Lock {
        images,
        ..sample().1
    }
}

/// A version that was delivered, and the next one.
struct Versions {
    memory: Arc<Memory>,
    old: Lock,
    new: Lock,
    old_layer: Descriptor,
    new_layer: Descriptor,
}

fn versions() -> Versions {
    let (mut memory, _) = sample();
    let (old, old_layer) = image(&mut memory, "1", 0);
    let (new, new_layer) = image(&mut memory, "2", 64);
    let memory = Arc::new(memory);
    Versions {
        memory,
        old: lock(vec![old]),
        new: lock(vec![new]),
        old_layer,
        new_layer,
    }
}

fn pack(memory: &Memory, lock: &Lock, since: &[&Lock]) -> (Packed, RecipeSummary) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("B");
    let bases: Vec<DeltaBase> = since.iter().map(|lock| DeltaBase::lock(lock)).collect();
    let mut plan = PackPlan::delta(lock, memory, &bases, today()).unwrap();
    let locks: Vec<Lock> = since.iter().map(|lock| (*lock).clone()).collect();
    let old = OldContent {
        locks: &locks,
        bases: &bases,
        blobs: memory,
    };
    let summary = plan_recipes(&mut plan, lock, memory, &old, dir.path(), &SilentProgress).unwrap();
    write(
        &plan,
        memory,
        &path,
        PackOptions { level: 3 },
        &SilentProgress,
    )
    .unwrap();
    (Packed { _dir: dir, path }, summary)
}

/// The content of these sources, and the blobs that the recipes of `bundles` rebuild from it.
fn rebuilt(sources: Vec<Arc<dyn BlobRead>>, bundles: &[Bundle]) -> RebuiltBlobs {
    RebuiltBlobs::new(
        Arc::new(BlobChain(sources)),
        bundles,
        std::env::temp_dir(),
        1 << 20,
    )
}

fn read(blobs: &dyn BlobRead, blob: &Descriptor) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let mut reader = blobs
        .open(&blob.digest, 0)
        .map_err(|error| error.to_string())?;
    reader
        .read_to_end(&mut bytes)
        .map_err(|error| error.to_string())?;
    Ok(bytes)
}

#[test]
fn no_chain_of_recipes_is_longer_than_readers_accept() {
    let (mut memory, _) = sample();
    let versions: Vec<(LockedImage, Descriptor)> = (10..40)
        .map(|version| {
            // each version is most similar in size to its predecessor
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
    assert!(
        summary.recipe_bytes() * 10 < summary.patched_bytes(),
        "{summary:?}"
    );
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
        blobs.missing_bases(&new_layer.digest).unwrap(),
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
    let mut image = |tag: &str, bytes: &[u8]| {
        let layer = memory.put(bytes, "application/vnd.oci.image.layer.v1.tar+gzip");
        let config = memory.put(tag.as_bytes(), media_type::OCI_CONFIG);
        let manifest = serde_json::json!({"schemaVersion": 2, "config": config, "layers": [layer]});
        let top = memory.put(manifest.to_string().as_bytes(), media_type::OCI_MANIFEST);
        let name = format!("h.example/app:{tag}");
        let image = LockedImage {
            blobs: vec![config, layer.clone()],
            ..LockedImage::new(name.parse().unwrap(), top)
        };
        (lock(vec![image]), layer)
    };
    let (old_lock, old_layer) = image("1", &stored_member(&old, 40 * 65_535));
    let changed = stored_member(&new, 40 * 65_535);
    let (new_lock, layer) = image("2", &changed);
    let (packed, summary) = pack(&memory, &new_lock, &[&old_lock]);
    assert_eq!(summary.patched.len(), 1, "{summary:?}");
    assert_eq!(summary.patched[0].from, [old_layer.digest]);
    let blobs = rebuilt(
        vec![Arc::new(memory)],
        &[Bundle::open(&packed.path).unwrap()],
    );
    assert!(read(&blobs, &layer).is_ok_and(|bytes| bytes == changed));
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
fn missing_bases_are_named_before_any_read() {
    let Versions {
        memory,
        old,
        new,
        old_layer,
        new_layer,
    } = versions();
    let bundle = Bundle::open(&pack(&memory, &new, &[&old]).0.path).unwrap();
    let blobs = rebuilt(
        vec![Arc::new(bundle.clone())],
        std::slice::from_ref(&bundle),
    );
    assert_eq!(blobs.stat(&new_layer.digest).unwrap(), None);
    assert_eq!(bundle.contents().recipes.len(), 1);
    assert_eq!(
        blobs.missing_bases(&new_layer.digest).unwrap(),
        Some(vec![old_layer])
    );
    assert!(matches!(
        blobs.open(&new_layer.digest, 0),
        Err(ContentError::Missing { .. })
    ));
}

#[test]
fn a_damaged_base_never_results_in_wrong_bytes() {
    let Versions {
        memory,
        old,
        new,
        old_layer,
        new_layer,
    } = versions();
    let bundle = Bundle::open(&pack(&memory, &new, &[&old]).0.path).unwrap();
    // another layer of the same size, one of another size, and bytes that are not a layer
    let mut wrong = layer(&[("bin/app", &program(7)), ("etc/version", b"1")]);
    wrong.resize(old_layer.size as usize, 0);
    for bytes in [wrong, layer(&[("a", b"b")]), noise(old_layer.size as usize)] {
        let mut damaged = Memory::default();
        damaged.blobs.insert(old_layer.digest.clone(), bytes);
        damaged
            .sizes
            .insert(old_layer.digest.clone(), old_layer.size);
        let damaged: Arc<dyn BlobRead> = Arc::new(damaged);
        let packed: Arc<dyn BlobRead> = Arc::new(bundle.clone());
        let sources = vec![packed, Arc::clone(&damaged), damaged];
        let blobs = rebuilt(sources.clone(), std::slice::from_ref(&bundle));
        assert!(read(&blobs, &new_layer).is_err());
        // an intact copy helps, wherever it is
        for at in 0..=sources.len() {
            let mut sources = sources.clone();
            sources.insert(at, memory_without(&memory, &new_layer));
            let blobs = rebuilt(sources, std::slice::from_ref(&bundle));
            assert!(read(&blobs, &new_layer).unwrap() == memory.blobs[&new_layer.digest]);
        }
    }
}

#[test]
fn blobs_are_rebuilt_through_a_chain_of_deltas() {
    let (mut memory, _) = sample();
    let made: Vec<(LockedImage, Descriptor)> = (0..4)
        .map(|number| image(&mut memory, &number.to_string(), 8 * number))
        .collect();
    let memory = Arc::new(memory);
    let locks: Vec<Lock> = made
        .iter()
        .map(|(image, _)| lock(vec![image.clone()]))
        .collect();
    let bundles: Vec<Bundle> = (0..4)
        .map(|number| {
            let since: Vec<&Lock> = locks[..number].last().into_iter().collect();
            Bundle::open(&pack(&memory, &locks[number], &since).0.path).unwrap()
        })
        .collect();
    let sources = bundles
        .iter()
        .map(|bundle| Arc::new(bundle.clone()) as Arc<dyn BlobRead>)
        .collect();
    let blobs = rebuilt(sources, &bundles);
    for (_, layer) in &made {
        assert_eq!(read(&blobs, layer).unwrap(), memory.blobs[&layer.digest]);
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
fn simultaneous_readers_get_the_right_bytes_of_a_rebuilt_blob() {
    let Versions {
        memory,
        old,
        new,
        new_layer,
        ..
    } = versions();
    let bundle = Bundle::open(&pack(&memory, &new, &[&old]).0.path).unwrap();
    let blobs = rebuilt(
        vec![memory_without(&memory, &new_layer)],
        std::slice::from_ref(&bundle),
    );
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                assert_eq!(
                    read(&blobs, &new_layer).unwrap(),
                    memory.blobs[&new_layer.digest]
                );
            });
        }
    });
}

/// A source whose readers fail in the middle, a given number of times.
struct FailingSource {
    memory: Arc<Memory>,
    failures: AtomicUsize,
}

impl BlobRead for FailingSource {
    fn stat(&self, digest: &Digest) -> Result<Option<u64>, ContentError> {
        self.memory.stat(digest)
    }

    fn open(&self, digest: &Digest, offset: u64) -> Result<Box<dyn Read + Send>, ContentError> {
        let reader = self.memory.open(digest, offset)?;
        let left = self
            .failures
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(1)
            });
        if left.is_err() {
            return Ok(reader);
        }
        Ok(Box::new(reader.take(1000).chain(BrokenReader)))
    }
}

struct BrokenReader;

impl Read for BrokenReader {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        Err(std::io::Error::other("the disk was removed"))
    }
}

/// A source of the content without the new layer. Its first `failures` readers fail.
fn failing(memory: &Memory, new_layer: &Descriptor, failures: usize) -> Arc<dyn BlobRead> {
    let mut blobs = memory.blobs.clone();
    blobs.remove(&new_layer.digest);
    let memory = Arc::new(Memory {
        blobs,
        ..Memory::default()
    });
    Arc::new(FailingSource {
        memory,
        failures: AtomicUsize::new(failures),
    })
}

#[test]
fn rebuilding_is_tried_again_after_a_base_could_not_be_read() {
    let Versions {
        memory,
        old,
        new,
        new_layer,
        ..
    } = versions();
    let bundle = Bundle::open(&pack(&memory, &new, &[&old]).0.path).unwrap();
    let blobs = rebuilt(
        vec![failing(&memory, &new_layer, 2)],
        std::slice::from_ref(&bundle),
    );
    for _ in 0..2 {
        let error = read(&blobs, &new_layer).unwrap_err();
        assert!(error.contains("the disk was removed"), "{error}");
    }
    assert!(read(&blobs, &new_layer).unwrap() == memory.blobs[&new_layer.digest]);
}

#[test]
fn reading_a_base_continues_in_the_next_source() {
    let Versions {
        memory,
        old,
        new,
        new_layer,
        ..
    } = versions();
    let bundle = Bundle::open(&pack(&memory, &new, &[&old]).0.path).unwrap();
    let sources = vec![
        failing(&memory, &new_layer, usize::MAX),
        memory_without(&memory, &new_layer),
    ];
    let blobs = rebuilt(sources, std::slice::from_ref(&bundle));
    assert!(read(&blobs, &new_layer).unwrap() == memory.blobs[&new_layer.digest]);
}

fn memory_without(memory: &Memory, blob: &Descriptor) -> Arc<dyn BlobRead> {
    let mut blobs = memory.blobs.clone();
    blobs.remove(&blob.digest);
    Arc::new(Memory {
        blobs,
        ..Memory::default()
    })
}

#[test]
fn forged_lists_of_recipes_are_refused() {
    let Versions {
        memory,
        old,
        new,
        old_layer,
        new_layer,
    } = versions();
    let other = Digest::sha256(b"another blob");
    type Forgery<'a> = &'a dyn Fn(&mut ContentsIndex);
    let recipe =
        |blob: Descriptor, from: Vec<Digest>, entry: String| BlobRecipe { blob, entry, from };
    let forgeries: [(&str, Forgery<'_>); 8] = [
        ("a base that is not listed", &|index| {
            index.recipes[0].from = vec![other.clone()]
        }),
        ("its own base", &|index| {
            index.recipes[0].from = vec![new_layer.digest.clone()]
        }),
        ("no entry", &|index| {
            index.recipes[0].entry = "landfall-recipe-0".into()
        }),
        ("a required feature that is not listed", &|index| {
            index.requires = vec!["delta".into()]
        }),
        ("a reference that nothing uses", &|index| {
            index.recipes[0].from.clear()
        }),
        ("too many bases", &|index| {
            index.recipes[0].from = vec![old_layer.digest.clone(); 9];
        }),
        ("omitted as well", &|index| {
            index.omitted = vec![new_layer.clone()]
        }),
        ("twice", &|index| {
            let first = index.recipes[0].clone();
            index
                .recipes
                .push(recipe(first.blob, first.from, first.entry));
        }),
    ];
    for (what, forge) in forgeries {
        let (packed, _) = pack(&memory, &new, &[&old]);
        packed.reseal(|index, _| forge(index));
        assert_ne!(packed.problems(), "", "{what}");
        assert!(Bundle::open(&packed.path).is_err(), "{what}");
    }
    // a recipe for a blob that the lock does not list is found by verification
    let (packed, _) = pack(&memory, &new, &[&old]);
    packed.reseal(|index, _| index.recipes[0].blob.digest = other.clone());
    assert_ne!(packed.problems(), "");
}

#[test]
fn a_recipe_with_a_changed_byte_is_an_error() {
    let Versions {
        memory,
        old,
        new,
        new_layer,
        ..
    } = versions();
    let (packed, _) = pack(&memory, &new, &[&old]);
    let bundle = Bundle::open(&packed.path).unwrap();
    let contents = bundle.contents();
    let name = &contents.recipes[0].entry;
    let place = contents
        .entries
        .iter()
        .position(|entry| entry.name == *name)
        .unwrap();
    let size = contents.entries[place].size as usize;
    let old_blobs = memory_without(&memory, &new_layer);
    for at in (0..size).step_by(size / 150 + 1).chain(0..60) {
        packed.replace(place, |content| content[at] ^= 0x41);
        let bundle = Bundle::open(&packed.path).unwrap();
        let blobs = rebuilt(vec![Arc::clone(&old_blobs)], std::slice::from_ref(&bundle));
        assert!(read(&blobs, &new_layer).is_err(), "byte {at}");
        packed.replace(place, |content| content[at] ^= 0x41);
    }
}

#[test]
fn recipes_that_share_bases_are_chosen_in_polynomial_time() {
    let Versions {
        memory, old, new, ..
    } = versions();
    let (packed, _) = pack(&memory, &new, &[&old]);
    let digest = |level: u64, number: u64| -> Digest {
        format!("sha256:{:064x}", level * 8 + number)
            .parse()
            .unwrap()
    };
    packed.reseal(|index, _| {
        let first = index.recipes.remove(0);
        for level in 0..15 {
            for number in 0..8 {
                let from = match level {
                    0 => first.from.clone(),
                    _ => (0..8).map(|below| digest(level - 1, below)).collect(),
                };
                let blob = Descriptor {
                    digest: digest(level, number),
                    ..first.blob.clone()
                };
                index.recipes.push(BlobRecipe {
                    blob,
                    from,
                    ..first.clone()
                });
            }
        }
    });
    let bundle = Bundle::open(&packed.path).unwrap();
    let alone = rebuilt(
        vec![Arc::new(bundle.clone())],
        std::slice::from_ref(&bundle),
    );
    assert_eq!(alone.stat(&digest(14, 7)).unwrap(), None);
    let recipes = &bundle.contents().recipes;
    let missing = recipes
        .iter()
        .filter(|recipe| alone.stat(&recipe.blob.digest).unwrap().is_none());
    assert_eq!(missing.count(), 120);
    let memory: Arc<dyn BlobRead> = memory;
    let blobs = rebuilt(vec![memory], std::slice::from_ref(&bundle));
    assert!(blobs.stat(&digest(14, 7)).unwrap().is_some());
}

#[test]
fn recipes_of_two_bundles_that_need_each_other_do_not_deadlock() {
    let Versions {
        memory,
        old,
        new,
        old_layer,
        new_layer,
    } = versions();
    let forward = Bundle::open(&pack(&memory, &new, &[&old]).0.path).unwrap();
    let backward = Bundle::open(&pack(&memory, &old, &[&new]).0.path).unwrap();
    let both = [forward.clone(), backward.clone()];
    let neither = rebuilt(vec![Arc::new(forward), Arc::new(backward)], &both);
    assert_eq!(neither.stat(&new_layer.digest).unwrap(), None);
    assert_eq!(neither.stat(&old_layer.digest).unwrap(), None);
    for (known, other) in [(&old_layer, &new_layer), (&new_layer, &old_layer)] {
        let blobs = rebuilt(vec![memory_without(&memory, other)], &both);
        assert_eq!(read(&blobs, other).unwrap(), memory.blobs[&other.digest]);
        assert!(blobs.stat(&known.digest).unwrap().is_some());
    }
}
