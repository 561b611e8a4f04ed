//! A store in an object store: several commands at once, and missing, damaged and foreign objects.

use crate::object_store::{Case, STORE};
use crate::support::images::sha256;
use crate::support::object_store::{Fault, ObjectStore, RecordedRequest};
use crate::support::wait_for;
use std::fs;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

/// Makes all objects this many days older.
fn age(store: &ObjectStore, days: u64) {
    for key in store.keys("air/gap/") {
        let path = store.file(&key);
        let file = fs::File::options().write(true).open(&path).unwrap();
        let modified = file.metadata().unwrap().modified().unwrap();
        file.set_modified(modified - Duration::from_hours(24 * days))
            .unwrap();
        // the name of a claim contains its hour
        if let Some((name, hour)) = key.rsplit_once('-').filter(|_| key.contains("/claims/")) {
            let hour = hour.parse::<u64>().unwrap() - 24 * days;
            fs::rename(&path, store.file(&format!("{name}-{hour}"))).unwrap();
        }
    }
}

fn waits_for(store: &ObjectStore, is_meant: impl Fn(&RecordedRequest) -> bool, times: usize) {
    wait_for("the request to the object store", || {
        store.count(&is_meant) >= times
    });
}

fn assert_sound(store: &ObjectStore) {
    for key in store.keys("air/gap/blobs") {
        let hex = key.rsplit('/').next().unwrap();
        assert_eq!(
            sha256(&fs::read(store.file(&key)).unwrap()),
            format!("sha256:{hex}")
        );
    }
}

#[test]
fn a_pull_during_a_gc_waits_and_leaves_a_complete_store() {
    let case = Case::new(1);
    let rig = &case.rig;
    let store = &case.store;
    case.pull(0);
    let all = store.keys("air/gap/blobs");
    rig.place.write("empty.lock", "version: 1\n...\n");
    let gc = [
        "gc",
        "--store",
        STORE,
        "--lock",
        "empty.lock",
        "--output",
        "json",
    ];
    age(store, 10);
    assert_eq!(
        rig.place.json(0, &gc[..5])["condemned"]
            .as_array()
            .unwrap()
            .len(),
        all.len()
    );
    age(store, 10);
    // after `gc` has written its marker, its first deletion is delayed until `release`
    let is_marked = Arc::new(AtomicBool::new(false));
    let marked = is_marked.clone();
    store.reset();
    store.judge(move |request| {
        if request.method == "PUT" && request.key.contains("/deleting/") {
            marked.store(true, Ordering::SeqCst);
        }
        let is_deletion = request.method == "POST" && request.query.contains("delete");
        (is_deletion && is_marked.swap(false, Ordering::SeqCst)).then_some(Fault::Held)
    });
    let spawn = |args: &[&str]| {
        let mut command = rig.place.command();
        command
            .args(args)
            .args(["--progress", "none"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let sweeping = spawn(&gc);
    waits_for(
        store,
        |request| request.method == "POST" && request.query.contains("delete"),
        1,
    );
    // a command with `--max-wait 0s` fails, and gives the reason
    let refused = rig
        .place
        .json(1, &["pull", "--store", STORE, "--max-wait", "0s"]);
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap()
            .contains("`landfall gc` is deleting"),
        "{refused}"
    );
    let looks =
        |request: &RecordedRequest| request.method == "GET" && request.query.contains("deleting");
    let before = store.count(looks);
    let pulling = spawn(&["pull", "--store", STORE]);
    waits_for(store, looks, before + 3);
    assert_eq!(
        store.keys("air/gap/blobs"),
        all,
        "the deletion is not carried out yet"
    );
    store.release();
    for ended in [sweeping, pulling].map(|child| child.wait_with_output().unwrap()) {
        assert!(
            ended.status.success(),
            "{}",
            String::from_utf8_lossy(&ended.stderr)
        );
    }
    assert_eq!(store.keys("air/gap/blobs"), all);
    assert_eq!(store.keys("air/gap/deleting"), Vec::<String>::new());
    assert_sound(store);
    store.reset();
    rig.place.ok(&["publish", "--store", STORE]);
    case.assert_packs();
}

#[test]
fn publish_and_pack_detect_a_missing_object_and_pull_restores_it() {
    let case = Case::new(1);
    let rig = &case.rig;
    let store = &case.store;
    case.pull(0);
    let verbs = [
        &["publish", "--store", STORE][..],
        &["pack", "--store", STORE, "-o", "bad.tar.zst"],
    ];
    for verb in verbs {
        // lists are compared by the times of their objects, which may have a resolution of a second
        std::thread::sleep(Duration::from_millis(1100));
        // the largest blob is downloaded content; computed content, such as the manifest of a file,
        // would be written again by `publish`
        let size = |key: &String| fs::metadata(store.file(key)).unwrap().len();
        let key = store
            .keys("air/gap/blobs")
            .into_iter()
            .max_by_key(size)
            .unwrap();
        fs::remove_file(store.file(&key)).unwrap();
        let refused = rig.place.json(1, verb);
        assert!(
            refused["error"]["message"]
                .as_str()
                .unwrap()
                .contains("landfall pull"),
            "{refused}"
        );
        std::thread::sleep(Duration::from_millis(1100));
        case.pull(0);
        assert!(
            store.file(&key).exists(),
            "the pull after {verb:?} did not restore {key}"
        );
    }
    case.assert_packs();
    rig.place.ok(&["publish", "--store", STORE]);
}

#[test]
fn an_object_of_the_wrong_size_is_replaced() {
    let case = Case::new(250);
    let rig = &case.rig;
    let store = &case.store;
    case.pull(0);
    let size = |key: &String| fs::metadata(store.file(key)).unwrap().len();
    let mut keys = store.keys("air/gap/blobs");
    keys.sort_by_key(size);
    for key in [keys.first().unwrap(), keys.last().unwrap()] {
        for (pull, has_lists) in [(&["pull"][..], false), (&["pull", "--rehash"], true)] {
            fs::write(store.file(key), "short").unwrap();
            if !has_lists {
                store
                    .keys("air/gap/index")
                    .iter()
                    .for_each(|key| fs::remove_file(store.file(key)).unwrap());
            }
            let pull = [pull, &["--store", STORE]].concat();
            rig.place.json(0, &pull);
            assert_sound(store);
            // a further pull finds the object in the lists
            let again = case.pull(0);
            assert_eq!(
                (&again["totals"]["done"], &again["totals"]["present"]),
                (&0.into(), &3.into())
            );
        }
    }
    case.assert_packs();
}

#[test]
fn keys_of_other_programs_in_the_bucket_are_ignored() {
    let case = Case::new(1);
    let rig = &case.rig;
    let store = &case.store;
    let folders = [
        "index",
        "blobs",
        "claims",
        "condemned",
        "deleting",
        "uploads",
    ];
    let strange: Vec<String> = folders
        .iter()
        .flat_map(|folder| {
            ["/x", "../x", "x/../y", ""].map(|name| format!("air/gap/{folder}/{name}"))
        })
        .collect();
    store.show_keys(&strange.iter().map(String::as_str).collect::<Vec<_>>());
    for folder in ["index", "blobs", "condemned", "deleting", "uploads"] {
        let path = store.file(&format!("air/gap/{folder}/notes.txt"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "mine").unwrap();
        let old = SystemTime::now() - Duration::from_hours(24 * 99);
        fs::File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_modified(old)
            .unwrap();
    }
    assert_eq!(case.pull(0)["totals"]["done"], 3);
    assert_eq!(case.pull(0)["totals"]["present"], 3);
    let swept = rig.place.json(0, &["gc", "--store", STORE]);
    assert_eq!(
        (&swept["uploads"], swept["claims"].as_u64()),
        (&0.into(), Some(1)),
        "{swept}"
    );
    rig.place.ok(&["publish", "--store", STORE]);
    case.assert_packs();
    assert_eq!(
        store
            .keys("")
            .iter()
            .filter(|key| key.ends_with("notes.txt"))
            .count(),
        5
    );
}

#[test]
fn an_upload_whose_parts_are_refused_is_started_again() {
    let case = Case::new(250);
    let mut refusals = 2;
    case.store.judge(move |request| {
        let is_completion = request.method == "POST" && request.query.contains("uploadId");
        refusals -= i32::from(is_completion);
        (is_completion && refusals >= 0).then_some(Fault::InvalidPart)
    });
    assert_eq!(case.pull(0)["totals"]["done"], 3);
    assert_eq!(case.store.keys("air/gap/uploads"), Vec::<String>::new());
    case.store.reset();
    case.assert_packs();
}
