//! Packs as a whole: written ones are read again, and hostile ones are refused.

use crate::testing::{TestPack, sample};
use crate::{
    FetchRequest, GitError, GitObjectKind, GitPackPlan, ObjectDatabase, ObjectId, PackBytes,
    PackSending, SelectedObjects, large_files, pinned_submodules, reaches, send_pack,
    shallow_boundary, write_pack,
};
use landfall_model::Limits;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn small_limits() -> Limits {
    Limits {
        git_objects: 1000,
        git_object_bytes: 100_000,
        git_unpacked_bytes: 1_000_000,
        ..Limits::DEFAULT
    }
}

fn database(packs: &[Vec<u8>]) -> Result<ObjectDatabase, GitError> {
    let mut database = ObjectDatabase::new(small_limits());
    for pack in packs {
        database.add_pack(Arc::new(pack.clone()))?;
    }
    Ok(database)
}

fn written(database: &ObjectDatabase, tips: &[ObjectId], before: &[ObjectId]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let plan = GitPackPlan::new(database, tips, before).unwrap();
    let size = write_pack(database, &plan, &mut bytes).unwrap();
    assert_eq!(size, bytes.len() as u64);
    bytes
}

fn sending(offset_deltas: bool, is_compact: bool) -> PackSending {
    PackSending {
        offset_deltas,
        is_compact,
    }
}

/// The error for a pack with one commit whose tree has these entries; empty if it is valid.
fn refusal(entries: &[(&str, &str)]) -> String {
    let mut pack = TestPack::default();
    let blob = pack.add(GitObjectKind::Blob, b"x");
    let entries: Vec<_> = entries
        .iter()
        .map(|(mode, name)| (*mode, *name, blob))
        .collect();
    let tree = pack.add_tree(&entries);
    let tip = pack.add_commit(tree, &[]);
    let database = database(&[pack.bytes()]).unwrap();
    let plan = GitPackPlan::new(&database, &[tip], &[]);
    plan.err()
        .map(|error| error.to_string())
        .unwrap_or_default()
}

#[test]
fn a_written_pack_has_all_objects_and_is_written_again_with_the_same_bytes() {
    let (pack, tip) = sample();
    let first = written(&database(&[pack.bytes()]).unwrap(), &[tip], &[]);
    let again = database(std::slice::from_ref(&first)).unwrap();
    assert_eq!(again.len(), 13);
    assert_eq!(written(&again, &[tip], &[]), first);
    assert!(first.len() < pack.bytes().len() * 2);
}

/// The digest of a pack is in locks: it must not change with any release.
#[test]
fn the_bytes_of_a_pack_never_change() {
    let (pack, tip) = sample();
    let bytes = written(&database(&[pack.bytes()]).unwrap(), &[tip], &[]);
    let digest = landfall_model::Digest::sha256(&bytes).to_string();
    assert_eq!(
        digest, EXPECTED,
        "the format has changed: give it a new media type"
    );
}

const EXPECTED: &str = "sha256:57d045c44170b15ee2ff48522652bfc4e835c13cb540c345088c95731f3a417b";

#[test]
fn a_second_pack_has_only_new_objects() {
    let (pack, tip) = sample();
    let whole = database(&[pack.bytes()]).unwrap();
    let last = whole.tag_target(whole.find(tip).unwrap()).unwrap().id;
    let first = whole.commit(whole.find(last).unwrap()).unwrap().parents[0];
    let packs = [
        written(&whole, &[first], &[]),
        written(&whole, &[tip], &[first]),
    ];
    let both = database(&packs).unwrap();
    assert_eq!(both.len(), whole.len());
    assert!(packs[1].len() < packs[0].len());
    assert_eq!(written(&both, &[tip], &[]), written(&whole, &[tip], &[]));
    assert!(reaches(&both, &[tip], &[first]).unwrap());
    assert!(!reaches(&both, &[first], &[tip]).unwrap());
    assert!(GitPackPlan::new(&both, &[tip], &[tip]).unwrap().is_empty());
}

#[test]
fn a_selection_has_the_objects_that_the_client_lacks_within_the_depth() {
    let (pack, tip) = sample();
    let database = database(&[written(&database(&[pack.bytes()]).unwrap(), &[tip], &[])]).unwrap();
    let target = database.tag_target(database.find(tip).unwrap()).unwrap().id;
    let parent = database
        .commit(database.find(target).unwrap())
        .unwrap()
        .parents[0];
    let request = |haves: &[ObjectId], depth, without_blobs| FetchRequest {
        wants: vec![tip],
        haves: haves.to_vec(),
        depth,
        without_blobs,
        ..FetchRequest::default()
    };
    let select = |request| SelectedObjects::new(&database, &request, &[]).unwrap();
    let all = select(request(&[], None, false));
    assert_eq!((all.objects.len(), all.shallow.len()), (13, 0));
    // the tag, the commit, two trees and the file
    let shallow = select(request(&[], Some(1), false));
    assert_eq!((shallow.objects.len(), shallow.shallow), (5, vec![target]));
    assert_eq!(select(request(&[parent], None, false)).objects.len(), 5);
    assert_eq!(select(request(&[], None, true)).objects.len(), 10);
    for offset_deltas in [true, false] {
        // a delta whose base is not sent is replaced by the whole object
        let mut sent = Vec::new();
        let form = sending(offset_deltas, false);
        send_pack(&database, &shallow.objects, form, &mut sent).unwrap();
        let mut received = ObjectDatabase::new(small_limits());
        received.add_pack(Arc::new(sent)).unwrap();
        assert_eq!(received.len(), 5);
    }
    let unknown = FetchRequest {
        wants: vec![ObjectId::ZERO],
        ..FetchRequest::default()
    };
    assert!(SelectedObjects::new(&database, &unknown, &[]).is_err());
}

#[test]
fn large_contents_are_sent_compressed() {
    let mut pack = TestPack::default();
    let text: String = (0..2000).map(|n| format!("line {n}\n")).collect();
    let noise: Vec<u8> = (0..2000_u32).map(|n| (n * n / 7 % 251) as u8).collect();
    let short = "short".repeat(60);
    let blobs = [text.as_bytes(), &noise, short.as_bytes()];
    let ids = blobs.map(|content| pack.add(GitObjectKind::Blob, content));
    let stored = pack.bytes();
    let database = database(std::slice::from_ref(&stored)).unwrap();
    let objects: Vec<_> = database.objects().collect();
    let sizes = [false, true].map(|is_compact| {
        let mut sent = Vec::new();
        send_pack(&database, &objects, sending(true, is_compact), &mut sent).unwrap();
        let size = sent.len();
        let mut received = ObjectDatabase::new(small_limits());
        received.add_pack(Arc::new(sent)).unwrap();
        for (id, content) in ids.iter().zip(blobs) {
            assert_eq!(
                *received.content(received.find(*id).unwrap()).unwrap(),
                *content
            );
        }
        size
    });
    assert!(sizes[0] < stored.len() / 2, "{sizes:?} {}", stored.len());
    assert!(sizes[1] < sizes[0] - 200, "{sizes:?}");
}

#[test]
fn a_shallow_history_ends_at_its_boundary() {
    let (pack, tip) = sample();
    let whole = database(&[pack.bytes()]).unwrap();
    let target = whole.tag_target(whole.find(tip).unwrap()).unwrap().id;
    let boundary = |depth| shallow_boundary(&whole, &[tip], depth).unwrap();
    assert_eq!(boundary(1), [target]);
    assert_eq!(boundary(2).len(), 1);
    assert!(
        boundary(3).is_empty() && boundary(u32::MAX).is_empty(),
        "it has three commits"
    );
    let mut cut = database(&[pack.bytes()]).unwrap();
    cut.set_shallow(&[target]);
    // the tag, the commit, two trees and the file
    let mut shallow = database(&[written(&cut, &[tip], &[])]).unwrap();
    assert_eq!(shallow.len(), 5);
    assert!(
        GitPackPlan::new(&shallow, &[tip], &[]).is_err(),
        "the parents are missing"
    );
    shallow.set_shallow(&[target]);
    let request = FetchRequest {
        wants: vec![tip],
        ..FetchRequest::default()
    };
    let selected = SelectedObjects::new(&shallow, &request, &[]).unwrap();
    assert_eq!(
        (selected.objects.len(), selected.shallow),
        (5, vec![target])
    );
}

#[test]
fn names_that_a_checkout_must_not_write_are_refused() {
    assert_eq!(refusal(&[("100644", "fine")]), "");
    for name in [".git", "..", ".GIT", "a/b", "git~1"] {
        assert!(
            refusal(&[("100644", name)]).contains("is not valid"),
            "{name}"
        );
    }
    // a hook could be written only below a folder `.git`
    let mut pack = TestPack::default();
    let hook = pack.add(GitObjectKind::Blob, b"#!/bin/sh\n");
    let hooks = pack.add_tree(&[("100755", "post-checkout", hook)]);
    let git = pack.add_tree(&[("40000", "hooks", hooks)]);
    let tree = pack.add_tree(&[("40000", ".git", git)]);
    let tip = pack.add_commit(tree, &[]);
    let found = database(&[pack.bytes()]).unwrap();
    let error = GitPackPlan::new(&found, &[tip], &[])
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("git's own folder"), "{error}");
}

#[test]
fn deltas_that_loop_or_have_no_base_are_refused() {
    let other = ObjectId::of_object(GitObjectKind::Blob, b"other").unwrap();
    let mut looping = TestPack::default();
    looping.add(GitObjectKind::Blob, b"x");
    // two deltas whose bases are not in the pack: as in a loop, their ids cannot be computed
    looping.add_delta_to(other, &[5, 1, 1, b'a']);
    looping.add_delta_to(ObjectId::ZERO, &[5, 1, 1, b'b']);
    let mut itself = TestPack::default();
    itself.add_delta_at(0, &[1, 1, 1, b'a']);
    let mut between = TestPack::default();
    between.add(GitObjectKind::Blob, b"x");
    between.add_delta_at(3, &[1, 1, 1, b'a']);
    let mut wrong = TestPack::default();
    let base = wrong.add(GitObjectKind::Blob, b"x");
    wrong.add_delta_to(base, &[9, 1, 1, b'a']);
    for pack in [looping, itself, between, wrong] {
        assert!(matches!(
            database(&[pack.bytes()]),
            Err(GitError::DamagedPack(_))
        ));
    }
}

#[test]
fn absurd_sizes_are_refused() {
    // a delta of about 1,200 bytes whose result is said to have 16 MiB
    let mut bomb = TestPack::default();
    let base = bomb.add(GitObjectKind::Blob, &vec![0; 60_000]);
    let mut delta = vec![0xe0, 0xd4, 3, 0x80, 0x80, 0x80, 8];
    delta.extend([0xf0, 0x60, 0xea, 0].repeat(300));
    bomb.add_delta_to(base, &delta);
    // many deltas whose results have 60,001 bytes each
    let mut many = TestPack::default();
    let base = many.add(GitObjectKind::Blob, &vec![0; 60_000]);
    for byte in 0..40 {
        let mut delta = vec![0xe0, 0xd4, 3, 0xe1, 0xd4, 3, 0xb0, 0x60, 0xea];
        delta.extend([1, byte]);
        many.add_delta_to(base, &delta);
    }
    let large = {
        let mut large = TestPack::default();
        large.add(GitObjectKind::Blob, &vec![0; 100_001]);
        large
    };
    for pack in [bomb, many, large] {
        let error = database(&[pack.bytes()]).err().unwrap();
        assert!(matches!(error, GitError::TooLarge { .. }), "{error}");
    }
    let mut lying = sample().0.bytes();
    lying[8..12].copy_from_slice(&u32::MAX.to_be_bytes());
    assert!(database(&[lying]).is_err());
}

#[test]
fn missing_objects_and_truncated_packs_are_errors() {
    let mut pack = TestPack::default();
    let absent = ObjectId::of_object(GitObjectKind::Blob, b"absent").unwrap();
    let tree = pack.add_tree(&[("100644", "a", absent)]);
    let tip = pack.add_commit(tree, &[]);
    let found = database(&[pack.bytes()]).unwrap();
    let plan = GitPackPlan::new(&found, &[tip], &[]);
    assert!(matches!(plan, Err(GitError::MissingObject { id, .. }) if id == absent));
    let submodule = pack.add_tree(&[("160000", "a", absent)]);
    let tip = pack.add_commit(submodule, &[]);
    let found = database(&[pack.bytes()]).unwrap();
    assert!(GitPackPlan::new(&found, &[tip], &[]).is_ok());
    let whole = sample().0.bytes();
    for end in [0, 11, 12, 40, whole.len() - 21, whole.len() - 1] {
        assert!(database(&[whole[..end].to_vec()]).is_err(), "{end}");
    }
}

#[test]
fn nested_folders_that_are_too_large_together_are_refused() {
    // each folder has 60 KB, and all of them are open while the last one is read
    let nested = |depth: usize| {
        let mut pack = TestPack::default();
        let blob = pack.add(GitObjectKind::Blob, b"x");
        let names: Vec<String> = (0..60)
            .map(|number| format!("b{number:02}{}", "x".repeat(1000)))
            .collect();
        let files: Vec<_> = names.iter().map(|name| ("100644", &**name, blob)).collect();
        let mut tree = pack.add_tree(&files);
        for _ in 1..depth {
            let folder = [("40000", "a", tree)];
            tree = pack.add_tree(&[&folder[..], &files].concat());
        }
        let tip = pack.add_commit(tree, &[]);
        let database = database(&[pack.bytes()]).unwrap();
        GitPackPlan::new(&database, &[tip], &[]).map(drop)
    };
    assert!(nested(6).is_ok());
    let error = nested(7).unwrap_err();
    assert!(
        error.to_string().contains("nested folders together"),
        "{error}"
    );
}

#[test]
fn a_gitmodules_with_too_many_entries_is_refused() {
    let submodules = |count: usize| {
        let entry = |number| format!("[submodule \"{number}\"]\npath = m\nurl = ../m\n");
        let text: String = (0..count).map(entry).collect();
        let mut pack = TestPack::default();
        let file = pack.add(GitObjectKind::Blob, text.as_bytes());
        let tree = pack.add_tree(&[("100644", ".gitmodules", file)]);
        let tip = pack.add_commit(tree, &[]);
        pinned_submodules(&database(&[pack.bytes()]).unwrap(), &[tip])
    };
    let limit = small_limits().git_submodules;
    assert!(submodules(limit).unwrap().is_empty());
    let error = submodules(limit + 1).unwrap_err();
    assert!(matches!(error, GitError::TooLarge { .. }), "{error}");
}

/// A pack that counts how many of its bytes are read.
struct CountedPack {
    bytes: Vec<u8>,
    count: AtomicUsize,
}

impl PackBytes for CountedPack {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.count.fetch_add(buffer.len(), Ordering::Relaxed);
        self.bytes.read_exact_at(buffer, offset)
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.bytes.len() as u64)
    }
}

#[test]
fn each_entry_of_a_chain_of_large_objects_is_read_at_most_twice() {
    // too large for the cache of small objects
    const SIZE: usize = 25 << 20;
    // the size in the head of a delta: 7 bits in each byte, the lowest first
    let size = [
        0x80,
        0x80,
        0x80 | (SIZE >> 14 & 0x7f) as u8,
        (SIZE >> 21) as u8,
    ];
    let mut pack = TestPack::default();
    let mut last = pack.add(GitObjectKind::Blob, &vec![0; SIZE]);
    for number in 1..4 {
        // one new byte, and then the base without its last byte
        let mut delta = [&size[..], &size, &[1, number]].concat();
        for start in (0..SIZE).step_by(0x10000) {
            let length = (SIZE - 1 - start).min(0x10000);
            delta.push(0xbf);
            delta.extend((start as u32).to_le_bytes());
            // 0 means 0x10000
            delta.extend((length as u16).to_le_bytes());
        }
        pack.add_delta_to(last, &delta);
        let mut content: Vec<u8> = (1..=number).rev().collect();
        content.resize(SIZE, 0);
        last = ObjectId::of_object(GitObjectKind::Blob, &content).unwrap();
    }
    let pack = Arc::new(CountedPack {
        bytes: pack.bytes(),
        count: AtomicUsize::new(0),
    });
    let mut database = ObjectDatabase::new(Limits::DEFAULT);
    database.add_pack(pack.clone()).unwrap();
    assert!(database.contains(last));
    // once to find the entries, and once to read them
    let count = pack.count.load(Ordering::Relaxed);
    assert!(count <= pack.bytes.len() * 2, "{count}");
}

/// A database with the objects of `pack`, and its unpacked size.
fn measured(pack: &TestPack) -> (ObjectDatabase, u64) {
    let mut database = ObjectDatabase::new(Limits::DEFAULT);
    database.add_pack(Arc::new(pack.bytes())).unwrap();
    let size = database.objects().map(|object| database.size(object));
    let size = size.sum();
    (database, size)
}

/// The number of bytes of objects that `work` reads, divided by `size`.
fn reads_per_byte(database: &ObjectDatabase, size: u64, work: impl FnOnce()) -> u64 {
    let before = database.content_bytes.load(Ordering::Relaxed);
    work();
    (database.content_bytes.load(Ordering::Relaxed) - before).div_ceil(size)
}

#[test]
fn each_tag_of_a_long_chain_is_read_a_few_times_although_all_are_refs() {
    let mut pack = TestPack::default();
    let tree = pack.add_tree(&[]);
    let mut tips = vec![pack.add_commit(tree, &[])];
    for number in 0..3000 {
        let kind = if number == 0 { "commit" } else { "tag" };
        let text = format!("object {}\ntype {kind}\ntag t{number}\n\n", tips[number]);
        tips.push(pack.add(GitObjectKind::Tag, text.as_bytes()));
    }
    // the longest chain first, and then each of its parts again
    tips.reverse();
    let (database, size) = measured(&pack);
    let request = FetchRequest {
        wants: tips.clone(),
        include_tags: true,
        ..FetchRequest::default()
    };
    type Work<'a> = &'a dyn Fn() -> usize;
    let works: [(&str, usize, Work<'_>); 5] = [
        ("plan", 3002, &|| {
            let plan = GitPackPlan::new(&database, &tips, &[]).unwrap();
            plan.objects().count()
        }),
        ("selection", 3002, &|| {
            SelectedObjects::new(&database, &request, &tips)
                .unwrap()
                .objects
                .len()
        }),
        ("boundary", 0, &|| {
            shallow_boundary(&database, &tips, 1).unwrap().len()
        }),
        ("large files", 0, &|| {
            large_files(&database, &tips, 9).unwrap().len()
        }),
        ("submodules", 0, &|| {
            pinned_submodules(&database, &tips).unwrap().len()
        }),
    ];
    for (name, count, work) in works {
        let reads = reads_per_byte(&database, size, || assert_eq!(work(), count, "{name}"));
        assert!(reads <= 4, "{name}: {reads}");
    }
}

/// A repository with `refs` commits that share a folder with `entries` entries. The paths of 300
/// submodules lead through that folder: from the root, or from 300 folders at different depths.
fn many_submodules(refs: usize, entries: usize, is_deep: bool) -> (TestPack, Vec<ObjectId>) {
    let mut pack = TestPack::default();
    let blob = pack.add(GitObjectKind::Blob, b"x");
    let commit = ObjectId::of_object(GitObjectKind::Commit, b"of a submodule").unwrap();
    let names: Vec<String> = (0..entries).map(|number| format!("e{number:06}")).collect();
    let mut shared: Vec<_> = names.iter().map(|name| ("100644", &**name, blob)).collect();
    shared.push(("160000", "module", commit));
    let shared = pack.add_tree(&shared);
    let mut inner = shared;
    let mut modules = String::new();
    for number in 0..300 {
        let folder = if is_deep {
            inner = pack.add_tree(&[("40000", "d", inner), ("40000", "s", shared)]);
            format!("{}s", "d/".repeat(number))
        } else {
            format!("f{number:03}")
        };
        modules += &format!("[submodule \"{number}\"]\npath = {folder}/module\nurl = ../m\n");
    }
    let folders: Vec<String> = (0..300).map(|number| format!("f{number:03}")).collect();
    let tips = (0..refs).map(|number| {
        // the files of the refs differ too
        let text = format!("# {number}\n{modules}");
        let file = pack.add(GitObjectKind::Blob, text.as_bytes());
        let mut root = vec![("100644", ".gitmodules", file)];
        if is_deep {
            root.extend([("40000", "d", inner), ("40000", "s", shared)]);
        } else {
            root.extend(folders.iter().map(|name| ("40000", &**name, shared)));
        }
        let tree = pack.add_tree(&root);
        pack.add_commit(tree, &[])
    });
    let tips = tips.collect();
    (pack, tips)
}

#[test]
fn the_folders_of_submodules_are_read_a_few_times_however_many_refs_and_paths_there_are() {
    let (pack, tips) = many_submodules(40, 5000, false);
    let (database, size) = measured(&pack);
    let reads = reads_per_byte(&database, size, || {
        let found = pinned_submodules(&database, &tips).unwrap();
        assert_eq!((found.len(), &*found[0].path), (1, "f000/module"));
    });
    assert!(reads <= 3, "{reads}");
    // the same folder at many depths: each depth reads it once, for all refs together
    let (pack, tips) = many_submodules(10, 2000, true);
    let (database, _) = measured(&pack);
    let before = database.content_bytes.load(Ordering::Relaxed);
    assert_eq!(pinned_submodules(&database, &tips).unwrap().len(), 1);
    let read = database.content_bytes.load(Ordering::Relaxed) - before;
    assert!(read <= 300 * 2001 * 34 + (4 << 20), "{read}");
}

#[test]
fn folders_of_submodules_that_must_be_read_too_often_are_refused() {
    let (pack, tips) = many_submodules(1, 40_000, true);
    let error = pinned_submodules(&measured(&pack).0, &tips).unwrap_err();
    assert!(
        error.to_string().contains("need the same folders"),
        "{error}"
    );
}

#[test]
fn the_files_of_submodules_of_all_refs_together_are_limited() {
    let mut pack = TestPack::default();
    let tips: Vec<ObjectId> = (0..3)
        .map(|number| {
            let text = format!("# {number}{}", " ".repeat(400));
            let file = pack.add(GitObjectKind::Blob, text.as_bytes());
            let tree = pack.add_tree(&[("100644", ".gitmodules", file)]);
            pack.add_commit(tree, &[])
        })
        .collect();
    let mut database = ObjectDatabase::new(Limits {
        git_config_bytes: 1000,
        ..Limits::DEFAULT
    });
    database.add_pack(Arc::new(pack.bytes())).unwrap();
    // the same file in several refs counts once
    let tips_with_two = [tips[0], tips[1], tips[0], tips[1]];
    assert!(
        pinned_submodules(&database, &tips_with_two)
            .unwrap()
            .is_empty()
    );
    let error = pinned_submodules(&database, &tips).unwrap_err();
    assert!(error.to_string().contains("limit of 1000"), "{error}");
}
