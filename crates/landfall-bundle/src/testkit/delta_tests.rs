//! Deltas, valid and forged.

use super::sample::{Memory, Packed, sample, today, write};
use crate::format::contents::ContentsIndex;
use crate::*;
use landfall_content::BlobRead;
use landfall_item::LockedImage;
use landfall_item::lockfile::Lock;
use landfall_model::{Descriptor, Digest, media_type};

/// Packs the sample as a delta. The delta omits the layer and the file, which two bases have.
fn packed_delta() -> Packed {
    let (mut memory, lock) = sample();
    let repositories: std::collections::BTreeMap<Digest, String> = memory
        .blobs
        .keys()
        .map(|digest| (digest.clone(), "some/app".into()))
        .collect();
    let receipt = DeltaBase::receipt(lock.fingerprint(), "r.test:5000".into(), repositories);
    let layer = lock.images[0].blobs[1].digest.clone();
    let file = lock.files[0].digest.clone();
    // omitted blobs need not be in the store
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
    write(&plan, &memory, &path).unwrap();
    Packed { _dir: dir, path }
}

#[test]
fn a_delta_is_valid_and_names_its_bases() {
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
    // as a base, the delta also has the content that it omits
    let (memory, _) = sample();
    let second = PackPlan::delta(&lock, &memory, &[bundle.as_base()], today()).unwrap();
    assert_eq!(second.omitted, bundle.omitted());
}

#[test]
fn a_delta_that_omits_many_blobs_is_read() {
    let mut memory = Memory::default();
    let config = memory.put(br#"{"os":"linux"}"#, media_type::OCI_CONFIG);
    let layers: Vec<Descriptor> = (0..4_000)
        .map(|number| {
            Descriptor::new(
                Digest::sha256(format!("layer {number}").as_bytes()),
                1000,
                "application/vnd.oci.image.layer.v1.tar+gzip",
            )
        })
        .collect();
    let manifest =
        serde_json::json!({"schemaVersion": 2, "config": config, "layers": layers}).to_string();
    let top = memory.put(manifest.as_bytes(), media_type::OCI_MANIFEST);
    let image = LockedImage {
        blobs: [vec![config], layers.clone()].concat(),
        ..LockedImage::new("h.example/app:1".parse().unwrap(), top)
    };
    let lock = Lock {
        version: 1,
        images: vec![image],
        ..Lock::default()
    };
    let layers = layers.into_iter().map(|layer| layer.digest);
    let repositories: std::collections::BTreeMap<Digest, String> = layers
        .map(|digest| (digest, "landfall/some/team/app".into()))
        .collect();
    let receipts: Vec<DeltaBase> = (0..20)
        .map(|number| {
            let registry = format!("r{number}.test:5000");
            DeltaBase::receipt(lock.fingerprint(), registry, repositories.clone())
        })
        .collect();
    let plan = PackPlan::delta(&lock, &memory, &receipts, today()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("B");
    write(&plan, &memory, &path).unwrap();
    let bundle = Bundle::open(&path).unwrap();
    assert_eq!(bundle.omitted().len(), 4_000);
    let index = bundle.contents().to_bytes().unwrap().len() as u64;
    // much longer than everything that the bundle contains
    assert!(
        index > (4 << 20) + bundle.bytes(),
        "the index has {index} bytes, the bundle {}",
        bundle.bytes()
    );
}

#[test]
fn a_forged_delta_is_refused() {
    type Forgery = fn(&mut ContentsIndex);
    let config = |c: &ContentsIndex| {
        let config = c
            .entries
            .iter()
            .find(|entry| entry.media_type == media_type::OCI_CONFIG)
            .unwrap();
        Descriptor::new(
            config.digest.clone(),
            config.size,
            config.media_type.clone(),
        )
    };
    let forgeries: [(&str, Forgery); 7] = [
        ("contradict each other", |c| c.requires.clear()),
        ("contradict each other", |c| c.bases.clear()),
        ("contradict each other", |c| c.omitted.clear()),
        ("sorted", |c| c.omitted.reverse()),
        ("is missing", |c| drop(c.omitted.remove(0))),
        ("which the lock does not list", |c| c.omitted[0].size += 1),
        ("not a valid repository name", |c| {
            let Some(BaseName::Receipt { repositories, .. }) = c.bases.last_mut() else {
                return;
            };
            repositories
                .values_mut()
                .for_each(|name| *name = "../../v2/x".into());
        }),
    ];
    for (why, forge) in forgeries {
        let packed = packed_delta();
        packed.reseal(|contents, _| forge(contents));
        let problems = packed.problems();
        assert!(problems.contains(why), "{why}: {problems}");
    }
    let packed = packed_delta();
    packed.reseal(|contents, _| {
        contents.omitted.push(config(contents));
        contents.omitted.sort();
    });
    assert!(
        packed.problems().contains("as omitted but contains it"),
        "{}",
        packed.problems()
    );
    // the last entry must not be omitted, because it is neither a layer nor a file
    let packed = packed_delta();
    let (mut contents, mut rows) = packed.opened();
    let last = contents.entries.pop().unwrap();
    rows.truncate(last.frame as usize);
    contents
        .omitted
        .push(Descriptor::new(last.digest, last.size, last.media_type));
    contents.omitted.sort();
    packed.seal(contents, &rows, last.offset, false, &[]);
    assert!(
        packed.problems().contains("which every delta must contain"),
        "{}",
        packed.problems()
    );
}
