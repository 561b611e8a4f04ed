//! Garbage collection of a store: it removes content that no lock needs, keeps the rest, and does
//! not disturb other commands.

use crate::support::faults::{Rig, Settings};
use crate::support::images::noise;
use crate::support::peers::{Server, own_registry};
use crate::support::{Images, Place, need};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

/// Creates a store with two images that share a base layer, and a lock for each image. Returns the
/// layers that the images do not share: one for each image.
fn two() -> (Place, Server, [Value; 2]) {
    let place = Place::new();
    let registry = own_registry();
    let images = Images::new(place.path("layout"));
    let base = images.layer(&[("base", &noise(1, 40_000))]);
    let layers = [10, 11].map(|seed| images.layer(&[("own", &noise(seed, 5000))]));
    for (name, own) in ["one", "two"].iter().zip(&layers) {
        let image = images.image("linux/amd64", &[base.clone(), own.clone()]);
        images.push(&registry.address, name, "v1", &image);
        let manifest = format!(
            "apiVersion: landfall/v1\nkind: Manifest\nmetadata: {{name: t}}\nimages: [\"{}/{name}:v1\"]\n",
            registry.address
        );
        place.write(&format!("{name}.yaml"), manifest);
        let lock = format!("{name}.lock");
        place.ok(&[
            "lock",
            "-f",
            &format!("{name}.yaml"),
            "--lock",
            &lock,
            "--store",
            "store",
        ]);
        place.ok(&["pull", "--lock", &lock, "--store", "store"]);
    }
    (place, registry, layers)
}

fn digests(report: &Value) -> BTreeSet<String> {
    let removed = report["removed"].as_array().unwrap();
    removed
        .iter()
        .map(|one| one["digest"].as_str().unwrap().to_owned())
        .collect()
}

/// The names of the blobs of a store.
fn blobs(place: &Place, store: &str) -> BTreeSet<String> {
    std::fs::read_dir(place.path(format!("{store}/blobs/sha256")))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

#[test]
fn gc_removes_content_that_no_lock_needs() {
    if !need(&["gzip"]) {
        return;
    }
    let (place, registry, [_, own]) = two();
    let gc = |exit, args: &[&str]| place.json(exit, &[&["gc", "--store", "store"], args].concat());
    // both locks need everything
    let both = gc(0, &["--lock", "one.lock", "--lock", "two.lock"]);
    assert!(both["removed"].as_array().unwrap().is_empty(), "{both:#}");

    let half = "1".repeat(64);
    place.write(
        &format!("store/.landfall/partial/sha256-{half}"),
        "half of something",
    );
    place.write(
        &format!("store/.landfall/partial/sha256-{half}.ranges"),
        "0 17\n",
    );
    place.write("store/blobs/sha256/notes.txt", "mine");
    let would = gc(0, &["--lock", "one.lock", "--dry-run"]);
    let wanted = [own["digest"].as_str().unwrap(), &format!("sha256:{half}")].map(str::to_owned);
    assert!(
        wanted.iter().all(|digest| digests(&would).contains(digest)),
        "{would:#}"
    );
    // the layer, config and manifest of `two`, the partial file and its journal
    assert_eq!(would["removed"].as_array().unwrap().len(), 5, "{would:#}");
    assert_eq!(would["kept"]["blobs"], 4);
    assert!(would["strange"][0].as_str().unwrap().ends_with("notes.txt"));
    assert_eq!(
        gc(0, &["--lock", "one.lock", "--dry-run"])["removed"],
        would["removed"]
    );

    let did = gc(0, &["--lock", "one.lock"]);
    assert_eq!(did["removed"], would["removed"]);
    assert!(!place.read("store/index.json").contains("/two:v1"));
    assert!(place.read("store/index.json").contains("/one:v1"));
    assert_eq!(
        std::fs::read_dir(place.path("store/.landfall/partial"))
            .unwrap()
            .count(),
        0
    );
    assert!(place.path("store/blobs/sha256/notes.txt").exists());
    let lines = place.read("store/.landfall/verified").lines().count();
    assert_eq!(lines, 4, "`verified` has a line for each remaining blob");

    // `one` is complete without a request, and `two` is downloaded again
    assert_eq!(
        place.json(0, &["pull", "--lock", "one.lock", "--store", "store"])["totals"]["requests"],
        0
    );
    let again = place.json(0, &["pull", "--lock", "two.lock", "--store", "store"]);
    assert!(
        again["totals"]["requests"].as_u64().unwrap() >= 3,
        "{}\n{again:#}",
        registry.log()
    );
}

#[test]
fn gc_and_other_commands_exclude_each_other() {
    if !need(&["gzip"]) {
        return;
    }
    let (place, _registry, _) = two();
    let user = File::open(place.path("store/.landfall/in-use")).unwrap();
    user.lock_shared().unwrap();
    let before = blobs(&place, "store");
    let refused = place.json(1, &["gc", "--store", "store", "--lock", "one.lock"]);
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap()
            .contains("another process uses the store")
    );
    assert_eq!(blobs(&place, "store"), before);
    // a pull and a dry run of `gc` are allowed while another process uses the store
    place.ok(&["pull", "--store", "store", "--lock", "one.lock"]);
    let removable = place.json(
        0,
        &["gc", "--store", "store", "--lock", "one.lock", "--dry-run"],
    );
    assert!(!digests(&removable).is_empty(), "{removable}");
    assert_eq!(blobs(&place, "store"), before);
    drop(user);
    let sweeping = File::open(place.path("store/.landfall/in-use")).unwrap();
    sweeping.lock().unwrap();
    place
        .landfall()
        .args(["pull", "--store", "store", "--lock", "one.lock"])
        .assert()
        .code(1);
    drop(sweeping);
    place.ok(&["pull", "--store", "store", "--lock", "one.lock"]);

    // `gc` creates no store, and fails if neither `--lock` nor `--bundle` is given
    let none = place.json(2, &["gc", "--store", "nowhere", "--lock", "one.lock"]);
    assert!(
        none["error"]["message"]
            .as_str()
            .unwrap()
            .contains("is not a store")
    );
    assert!(!place.path("nowhere").exists());
    place.json(2, &["gc", "--store", "store"]);
}

#[test]
fn gc_locks_the_store_before_it_reads_locks() {
    let place = Place::new();
    place.write("empty.lock", "version: 1\n...\n");
    place.ok(&["pull", "--store", "store", "--lock", "empty.lock"]);
    // a command that ended after gc had read this lock could have replaced it with a newer one,
    // whose content gc would remove
    let mut gc = place
        .command()
        .args(["gc", "--store", "store", "--lock", "/dev/stdin"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    // longer than a pipe holds, so that gc is reading the lock when the write has ended
    let mut lock = gc.stdin.take().unwrap();
    lock.write_all(&vec![b'\n'; 1 << 21]).unwrap();
    let user = File::open(place.path("store/.landfall/in-use")).unwrap();
    assert!(user.try_lock_shared().is_err());
    gc.kill().unwrap();
    gc.wait().unwrap();
}

#[test]
fn gc_keeps_the_content_of_the_last_bundles() {
    if !need(&["gzip"]) {
        return;
    }
    let (place, _registry, [one, two]) = two();
    let gc = |exit, args: &[&str]| {
        place.json(
            exit,
            &[&["gc", "--store", "store", "--dry-run"], args].concat(),
        )
    };
    // without serial numbers, the file that was modified last is the newest bundle
    for (at, name) in ["one", "two"].iter().enumerate() {
        let lock = format!("{name}.lock");
        place.ok(&["pack", "--lock", &lock, "-o", name, "--store", "store"]);
        let age = std::time::SystemTime::UNIX_EPOCH
            + std::time::Duration::from_secs(1000 * (at as u64 + 1));
        File::options()
            .write(true)
            .open(place.path(name))
            .unwrap()
            .set_modified(age)
            .unwrap();
    }
    let bundles = ["--bundle", "one", "two"];
    assert!(
        digests(&gc(0, &bundles)).is_empty(),
        "the content of all bundles is kept by default"
    );
    let last = gc(0, &[&bundles[..], &["--keep-last", "1"]].concat());
    let has =
        |report: &Value, layer: &Value| digests(report).contains(layer["digest"].as_str().unwrap());
    assert!(has(&last, &one) && !has(&last, &two), "{last:#}");
    assert_eq!(
        (&last["bundles"]["kept"][0], &last["bundles"]["older"][0]),
        (&"two".into(), &"one".into())
    );
    let named = gc(
        0,
        &[&bundles[..], &["--keep-last", "1", "--lock", "one.lock"]].concat(),
    );
    assert!(digests(&named).is_empty(), "{named:#}");
    // if the bundles have serial numbers, the bundle with the highest number is the newest
    for (name, number) in [("one", "9"), ("two", "8")] {
        let lock = format!("{name}.lock");
        let pack = [
            "pack", "--lock", &lock, "-o", name, "--store", "store", "--serial", number,
        ];
        place.ok(&pack);
    }
    let last = gc(0, &[&bundles[..], &["--keep-last", "1"]].concat());
    assert!(has(&last, &two) && !has(&last, &one), "{last:#}");
    let run = place
        .landfall()
        .args(["gc", "--keep-last", "1"])
        .assert()
        .code(2);
    let printed = String::from_utf8_lossy(&run.get_output().stderr);
    assert!(printed.contains("--bundle"), "{printed}");
    // the content of all bundles is never removed
    let none = [
        "gc",
        "--store",
        "store",
        "--bundle",
        "one",
        "--keep-last",
        "0",
    ];
    place.landfall().args(none).assert().code(2);
}

#[test]
fn gc_is_refused_while_a_pull_uses_the_store() {
    let rig = Rig::new();
    rig.set_faults([]);
    let place = &rig.place;
    place.write("empty.lock", "version: 1\n...\n");
    let lock = ["--lock", "l", "--plain-http", &rig.up.address];
    let store = ["--store", "s"];
    place.ok(&[&["lock", "-f", "m.yaml"], &lock[..], &store].concat());
    let pull = [&["pull", "--progress", "none"], &lock[..], &store].concat();
    // the blobs are sent slowly, so that the pull still runs when `gc` starts
    let pace = |pace| {
        rig.up.set(Settings {
            pace,
            ..Settings::default()
        })
    };
    pace(Some((1024, Duration::from_millis(200))));
    let moved = rig.up.moved();
    let mut pulling = place
        .command()
        .args(&pull)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    while rig.up.moved() == moved {
        assert!(
            pulling.try_wait().unwrap().is_none(),
            "the pull ended before it received a blob"
        );
        std::thread::sleep(Duration::from_millis(1));
    }
    let before = blobs(place, "s");
    assert!(
        !before.is_empty(),
        "`lock` stored no manifests that `gc` could remove"
    );
    let met = place.json(1, &[&["gc", "--lock", "empty.lock"], &store[..]].concat());
    let printed = met["error"]["message"].as_str().unwrap();
    assert!(
        printed.contains("another process uses the store"),
        "{met:#}"
    );
    let after = blobs(place, "s");
    assert!(before.is_subset(&after), "{before:?}, then {after:?}");
    pace(None);
    assert!(pulling.wait().unwrap().success());
}
