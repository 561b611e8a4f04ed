//! Journals of a bundle in progress, as earlier releases wrote them. Each is resumed at the byte
//! that it names. The journals of stores are in the module of the same name in `landfall-content`.

use super::sample::{packed, sample, today};
use crate::format::entry::TarEntry;
use crate::format::header;
use crate::format::stored::{ContentForm, stored_len};
use crate::{Bundle, DirectBundle, DirectStart, PackOptions, PackPlan};
use landfall_content::{BlobRead, BlobStore, LocalStore};
use landfall_model::report::SilentProgress;
use landfall_model::{Descriptor, Digest};
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// The digest of the layer of the sample.
const LAYER: &str = "sha256:5bfc54cb2bee23906dcd6d8db9b5fad622cee0b2f744933fda9364a2303cf0e1";
/// The digest of the file of the sample.
const FILE: &str = "sha256:e3d7e1ede6a9dbfb26e0b797a815e74d353ac96d410ffb67da457d9b8555fbaa";

/// Begins a bundle in `dir` whose partial file has the bytes of the complete bundle at `path`, and
/// whose journal has these lines.
fn resume(dir: &Path, path: &Path, journal: &str) -> DirectBundle {
    let (memory, lock) = sample();
    let plan = Arc::new(PackPlan::new(&lock, &memory, today()).unwrap());
    let partial = dir.join("B.partial");
    fs::copy(path, &partial).unwrap();
    let work = dir.join("B.partial.work");
    fs::create_dir(&work).unwrap();
    let release = env!("CARGO_PKG_VERSION");
    let lock = plan.fingerprint.to_string();
    let journal = journal.replace("LOCK", &lock).replace("RELEASE", release);
    fs::write(work.join("journal"), journal).unwrap();
    let options = PackOptions { level: 3 };
    let begun = DirectBundle::begin(plan, None, &dir.join("B"), options, None, &SilentProgress);
    match begun.unwrap() {
        DirectStart::Incomplete(bundle) => bundle,
        DirectStart::Complete(..) => panic!("it is not complete"),
    }
}

/// The entry of a blob in the bundle at `path`, and its descriptor.
fn entry(path: &Path, digest: &str) -> (TarEntry, Descriptor) {
    let digest: Digest = digest.parse().unwrap();
    let bundle = Bundle::open(path).unwrap();
    let mut entries = bundle.contents().entries.iter();
    let entry = entries.find(|entry| entry.digest == digest).unwrap();
    let descriptor = Descriptor::new(digest, entry.size, "x/y");
    (entry.clone(), descriptor)
}

#[test]
fn a_bundle_in_progress_is_resumed_at_the_bytes_of_its_journal() {
    let complete = packed();
    let (_, layer) = entry(&complete.path, LAYER);
    let (packed_file, file) = entry(&complete.path, FILE);
    assert_eq!(packed_file.form, ContentForm::Compressed);
    let from = packed_file.offset;
    let to = from + packed_file.length;
    let first = "landfall RELEASE level 3 lock LOCK\n";
    for (journal, offset, ranges) in [
        ("", 0, vec![]),
        (
            "LAYER has 0 700\nLAYER has 700 1000\nLAYER has 1200 1300\n",
            1000,
            vec![(1200, 1300)],
        ),
        (
            "LAYER has 0 1500\nLAYER lost\nLAYER has 0 900\n",
            900,
            vec![],
        ),
        // the last line was cut off
        ("LAYER has 0 900\nLAYER has 0 1", 900, vec![]),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let journal = format!("{first}{journal}").replace("LAYER", LAYER);
        let bundle = resume(dir.path(), &complete.path, &journal);
        let (writer, found) = bundle.begin(&layer, true).unwrap().unwrap();
        assert_eq!((writer.offset(), found), (offset, ranges), "{journal}");
        assert!(!bundle.has_blob(&file, false).unwrap());
    }

    // a compressed entry counts if it begins at the end of the entries before it
    let dir = tempfile::tempdir().unwrap();
    let entries = Bundle::open(&complete.path)
        .unwrap()
        .contents()
        .entries
        .clone();
    let compressed = entries
        .iter()
        .filter(|entry| entry.form == ContentForm::Compressed);
    let lines: String = compressed
        .map(|entry| {
            let end = entry.offset + entry.length;
            format!("{} packed {} {end}\n", entry.digest, entry.offset)
        })
        .collect();
    assert!(lines.contains(&format!("{FILE} packed {from} {to}\n")));
    let bundle = resume(dir.path(), &complete.path, &format!("{first}{lines}"));
    assert!(bundle.has_blob(&file, false).unwrap());
}

#[test]
fn the_blobs_of_an_unfinished_bundle_for_another_lock_are_reused() {
    let complete = packed();
    let (entry, layer) = entry(&complete.path, LAYER);
    let start = entry.offset + stored_len(header::encoded_len(&entry.name) as u64);
    let dir = tempfile::tempdir().unwrap();
    let journal = format!(
        "landfall 0.0.9 level 3 lock sha256:00\n{LAYER} has 0 1500\n{LAYER} whole {start} 1500\n"
    );
    let bundle = resume(dir.path(), &complete.path, &journal);
    assert_eq!(bundle.stat(&layer.digest).unwrap(), Some(1500));
    assert_eq!(bundle.read(&layer).unwrap(), b"layer".repeat(300));
    let (writer, _) = bundle.begin(&layer, true).unwrap().unwrap();
    assert_eq!(writer.offset(), 0, "its bytes are not in the new file");
}
