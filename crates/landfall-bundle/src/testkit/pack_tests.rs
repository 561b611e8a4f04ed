//! Packing: refusals, accepted losses, and a pipe as the destination.

use super::sample::{packed, sample, today, write};
use crate::write::entry_writer::IndexBuilder;
use crate::*;
use landfall_model::Limits;
use landfall_model::report::SilentProgress;
use std::fs;
use std::io::Read;
use std::sync::Arc;

#[test]
fn too_little_disk_space_is_reported_before_anything_is_written() {
    let (mut memory, mut lock) = sample();
    memory.sizes.insert(lock.files[0].digest.clone(), 1 << 50);
    lock.files[0].size = 1 << 50;
    let dir = tempfile::tempdir().unwrap();
    let plan = PackPlan::new(&lock, &memory, today()).unwrap();
    let error = write(&plan, &memory, &dir.path().join("B")).unwrap_err();
    let message = error.to_string();
    let (_, needed) = message.split_once(", the bundle may need ").unwrap();
    let (_, needed) = needed.split_once('(').unwrap();
    let (needed, _) = needed.split_once(" bytes);").unwrap();
    assert!(needed.parse::<u64>().unwrap() > 1 << 50, "{message}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn two_processes_cannot_write_one_bundle_at_the_same_time() {
    let (memory, lock) = sample();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("B");
    let other = fs::File::create(dir.path().join("B.partial")).unwrap();
    other.lock().unwrap();
    let plan = PackPlan::new(&lock, &memory, today()).unwrap();
    let pack = || write(&plan, &memory, &path);
    let error = pack().unwrap_err().to_string();
    assert!(
        error.contains(" is being written by another process"),
        "{error}"
    );
    drop(other);
    pack().unwrap();
}

#[test]
fn an_accepted_loss_leaves_the_bundle_complete_until_its_date() {
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

const TOO_LARGE: &str = ", but readers accept at most ";

#[test]
fn an_index_that_exceeds_the_limit_of_readers_is_refused() {
    let (memory, lock) = sample();
    let plan = PackPlan::new(&lock, &memory, today()).unwrap();
    let index = IndexBuilder::new(&plan, PackOptions::default());
    let path = std::path::Path::new("B");
    index.check_size(path, &Limits::default()).unwrap();
    let limits = Limits {
        contents_bytes: 500,
        ..Limits::default()
    };
    let error = index.check_size(path, &limits).unwrap_err().to_string();
    assert!(
        error.contains(TOO_LARGE) && error.contains(" at most 500;"),
        "{error}"
    );
    // an index of one byte more than a reader accepts is refused
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
fn an_index_that_is_too_large_is_refused_before_an_unfinished_bundle_is_discarded() {
    let (mut memory, mut lock) = sample();
    // the hashes of the pieces of the frame table alone exceed the limit
    memory.sizes.insert(lock.files[0].digest.clone(), 1 << 58);
    lock.files[0].size = 1 << 58;
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("B");
    let plan = Arc::new(PackPlan::new(&lock, &memory, today()).unwrap());
    let options = PackOptions::default();
    let progress = &SilentProgress;
    let refuse = || {
        let error = write(&plan, &memory, &out).unwrap_err();
        assert!(error.to_string().contains(TOO_LARGE), "{error}");
        let begun = DirectBundle::begin(plan.clone(), None, &out, options, None, progress);
        let error = begun.unwrap_err();
        assert!(error.to_string().contains(TOO_LARGE), "{error}");
    };
    refuse();
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    fs::write(dir.path().join("B.partial"), "unfinished").unwrap();
    fs::create_dir(dir.path().join("B.partial.work")).unwrap();
    refuse();
    assert_eq!(
        fs::read(dir.path().join("B.partial")).unwrap(),
        b"unfinished"
    );
    assert!(dir.path().join("B.partial.work").is_dir());
}

#[test]
fn a_pipe_receives_the_same_bytes_as_a_file() {
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
