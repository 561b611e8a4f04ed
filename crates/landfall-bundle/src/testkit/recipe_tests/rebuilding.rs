//! Rebuilding blobs from recipes and their bases.

use super::super::sample::{Memory, noise, sample};
use super::{Versions, image, layer, lock, memory_without, pack, program, read, rebuilt, versions};
use crate::*;
use landfall_content::{BlobRead, ContentError};
use landfall_item::LockedImage;
use landfall_item::lockfile::Lock;
use landfall_model::{Descriptor, Digest};
use std::collections::BTreeSet;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

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
        blobs
            .missing_bases(&new_layer.digest, &BTreeSet::new())
            .unwrap(),
        Some(vec![old_layer])
    );
    assert!(matches!(
        blobs.open(&new_layer.digest, 0),
        Err(ContentError::Missing { .. })
    ));
}

#[test]
fn recipes_that_need_unavailable_bases_are_not_used_for_missing_bases() {
    let (mut memory, _) = sample();
    let made: Vec<(LockedImage, Descriptor)> = (0..3)
        .map(|number| image(&mut memory, &number.to_string(), 8 * number))
        .collect();
    let memory = Arc::new(memory);
    let locks: Vec<Lock> = made
        .iter()
        .map(|(image, _)| lock(vec![image.clone()]))
        .collect();
    let bundle = |new: usize, old: usize| {
        Bundle::open(&pack(&memory, &locks[new], &[&locks[old]]).0.path).unwrap()
    };
    let layers: Vec<&Descriptor> = made.iter().map(|(_, layer)| layer).collect();
    let missing = |bundles: &[Bundle], unavailable: &[usize]| {
        let sources = bundles
            .iter()
            .map(|bundle| Arc::new(bundle.clone()) as Arc<dyn BlobRead>)
            .collect();
        let unavailable = unavailable.iter().map(|at| layers[*at].digest.clone());
        rebuilt(sources, bundles)
            .missing_bases(&layers[2].digest, &unavailable.collect())
            .unwrap()
    };
    let only = |at: usize| Some(vec![layers[at].clone()]);
    let deltas = [bundle(2, 0), bundle(2, 1)];
    assert_eq!(missing(&deltas, &[]), only(0));
    assert_eq!(missing(&deltas, &[0]), only(1));
    assert_eq!(missing(&deltas, &[0, 1]), None);
    // in a chain, layer 1 is the missing base if layer 0, from which it would be rebuilt, is
    // unavailable
    let chain = [bundle(1, 0), bundle(2, 1)];
    assert_eq!(missing(&chain, &[]), only(0));
    assert_eq!(missing(&chain, &[0]), only(1));
    assert_eq!(missing(&chain, &[0, 1]), None);
    // two recipes that need each other: the layer itself must be added
    let cycle = [bundle(1, 2), bundle(2, 1)];
    assert_eq!(missing(&cycle, &[]), only(1));
    assert_eq!(missing(&cycle, &[1]), only(2));
    assert_eq!(missing(&cycle, &[1, 2]), None);
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
        // an intact copy is used, whatever its position among the sources
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

/// A source whose first `failures` readers fail after 1,000 bytes.
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
    Arc::new(FailingSource {
        memory: memory_without(memory, new_layer),
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
