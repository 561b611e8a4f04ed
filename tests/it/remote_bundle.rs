//! Bundles in an object store: packed into it, and read from it by ranges.

use crate::support::faults::Rig;
use crate::support::http::{get, request};
use crate::support::images::sha256;
use crate::support::object_store::{Fault, ObjectStore, RecordedRequest};
use crate::support::{landfall_serve, need, run};
use serde_json::json;
use std::fs;

const BUNDLE: &str = "s3://mirror/out/b.tar.zst";
/// The maximum number of bytes that reading the index may take.
const LITTLE: u64 = 3 << 20;

/// The number of bytes that GET requests asked for, and the number of these requests.
fn read_of(store: &ObjectStore) -> (u64, usize) {
    let requests: Vec<RecordedRequest> = store
        .requests()
        .into_iter()
        .filter(|request| request.method == "GET")
        .collect();
    let bytes = requests.iter().map(|request| {
        let range = request
            .range
            .as_deref()
            .expect("the whole object was requested");
        let (from, to) = range.trim_start_matches("bytes=").split_once('-').unwrap();
        to.parse::<u64>().unwrap() + 1 - from.parse::<u64>().unwrap()
    });
    (bytes.sum(), requests.len())
}

#[test]
fn a_bundle_is_packed_into_an_object_and_read_from_it_by_ranges() {
    let rig = Rig::of(100);
    let store = ObjectStore::start();
    let place = &rig.place;
    store.introduce_to(place);
    let packed = place.json(0, &["pack", "--store", "stores/first", "-o", BUNDLE]);
    let on_disk = place.json(0, &["pack", "--store", "stores/first", "-o", "b.tar.zst"]);
    assert!(
        fs::read(store.file("out/b.tar.zst")).unwrap() == place.read_bytes("b.tar.zst"),
        "the bytes differ"
    );
    assert_eq!(packed["bundle"]["digest"], on_disk["bundle"]["digest"]);
    assert_eq!(
        (&packed["bundle"]["path"], &packed["bundle"]["files"][0]),
        (&BUNDLE.into(), &BUNDLE.into())
    );
    let size = fs::metadata(store.file("out/b.tar.zst")).unwrap().len();
    assert!(
        size > 2 * LITTLE,
        "a bundle of {size} bytes is too small for this test"
    );
    // if a verb needs only the index, it reads the end of the bundle and a little before it
    let least = |args: &[&str]| {
        store.reset();
        let report = place.json(0, args);
        let (bytes, requests) = read_of(&store);
        assert!(
            bytes <= LITTLE && requests <= 4,
            "{args:?}: {bytes} bytes by {requests} requests"
        );
        report
    };
    assert_eq!(
        least(&["ls", BUNDLE])["bundle"]["digest"],
        packed["bundle"]["digest"]
    );
    assert_eq!(
        least(&["diff", "b.tar.zst", BUNDLE])["changes"]
            .as_array()
            .unwrap()
            .len(),
        0
    );
    place.write(
        "deploy.yaml",
        format!("image: {}/team/app:v1\n", rig.up.address),
    );
    least(&[
        "rewrite",
        "deploy.yaml",
        "--bundle",
        BUNDLE,
        "--to",
        "r.example",
    ]);
    // `verify` reads everything once
    store.reset();
    let verified = place.ok(&["verify", BUNDLE]);
    assert!(
        verified.contains("s3://mirror/out/b.tar.zst: consistent"),
        "{verified}"
    );
    let (bytes, requests) = read_of(&store);
    assert!(
        bytes <= size + LITTLE && requests <= 6,
        "{bytes} of {size} bytes by {requests} requests"
    );
    // a push reads each large blob once per repository that needs it
    store.reset();
    let down = &rig.down.address;
    let pushed = place.json(0, &["push", BUNDLE, "--to", down, "--plain-http", down]);
    assert_eq!(pushed["totals"]["done"], 3, "{pushed}");
    let (bytes, requests) = read_of(&store);
    assert!(
        bytes <= 2 * size + LITTLE && requests <= 24,
        "{bytes} of {size} bytes by {requests} requests"
    );
    // `serve` reads and hashes a blob once when it first sends all of it; afterwards, it begins to
    // read at the frame of the requested range
    let server = landfall_serve(place, &[BUNDLE]);
    let file = rig
        .up
        .content(|content| content.files["/files/tool.bin"].clone());
    let digest = sha256(&file);
    let blob = format!("/v2/files/x/blobs/{digest}");
    store.reset();
    assert!(get(&server.address, &blob).body == *file);
    let (bytes, requests) = read_of(&store);
    assert!(
        bytes <= file.len() as u64 + (64 << 10) && requests <= 4,
        "{bytes} of {} bytes by {requests} requests",
        file.len()
    );
    store.reset();
    let part = request(
        "GET",
        &server.address,
        &blob,
        &[("Range", "bytes=1100000-1100099")],
        b"",
    );
    assert_eq!(
        (part.status, &part.body[..]),
        (206, &file[1_100_000..1_100_100])
    );
    let after_first = file.len() as u64 - (1 << 20);
    let (bytes, requests) = read_of(&store);
    assert!(
        bytes <= after_first + (64 << 10) && requests <= 1,
        "{bytes} bytes by {requests} requests"
    );
}

#[test]
fn a_failed_pack_keeps_the_old_object_and_leaves_no_parts() {
    let rig = Rig::new();
    let store = ObjectStore::start();
    let place = &rig.place;
    store.introduce_to(place);
    fs::create_dir_all(store.file("out")).unwrap();
    fs::write(store.file("out/b.tar.zst"), "the one before").unwrap();
    store.judge(|request| {
        request
            .query
            .contains("partNumber=1")
            .then_some(Fault::Skewed)
    });
    let refused = place.json(1, &["pack", "--store", "stores/first", "-o", BUNDLE]);
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(
        message.contains(BUNDLE) && message.contains("clock"),
        "{message}"
    );
    assert_eq!(
        fs::read(store.file("out/b.tar.zst")).unwrap(),
        b"the one before"
    );
    assert_eq!(
        store.count(|request| request.method == "DELETE" && request.query.contains("uploadId")),
        1
    );
    // a lost response to the completion of the upload is not an error: the object exists
    store.reset();
    let mut is_first = true;
    store.judge(move |request| {
        let completes = request.method == "POST" && request.query.contains("uploadId");
        (completes && std::mem::take(&mut is_first)).then_some(Fault::LostAnswer)
    });
    place.ok(&["pack", "--store", "stores/first", "-o", BUNDLE]);
    place.ok(&["verify", BUNDLE]);
    // missing objects, and objects that are not bundles, are reported
    let none = place.json(1, &["ls", "s3://mirror/out/none.tar.zst"]);
    let message = none["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("s3://mirror/out/none.tar.zst")
            && message.contains("the object or its bucket does not exist"),
        "{message}"
    );
    fs::write(store.file("out/other"), "no bundle").unwrap();
    let other = place.json(4, &["verify", "s3://mirror/out/other"]);
    assert!(
        other["error"]["message"]
            .as_str()
            .unwrap()
            .contains("not a landfall bundle"),
        "{other}"
    );
    for (args, why) in [
        (
            &["pack", "-o", BUNDLE, "--volume-size", "1GB"][..],
            "one object",
        ),
        (&["verify", "s3://mirror"], "name a bundle in it"),
    ] {
        let refused = place.json(2, args);
        assert!(
            refused["error"]["message"].as_str().unwrap().contains(why),
            "{args:?}: {refused}"
        );
    }
}

#[test]
fn a_signed_remote_bundle_behaves_like_a_file() {
    if !need(&["ssh-keygen"]) {
        return;
    }
    let rig = Rig::new();
    let store = ObjectStore::start();
    let place = &rig.place;
    let down = &rig.down.address;
    store.introduce_to(place);
    run(place
        .clean("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-C", "", "-f", "key"]));
    place.write(
        "allowed",
        format!("board@example.com {}", place.read("key.pub")),
    );
    for out in [BUNDLE, "b.tar.zst"] {
        place.ok(&[
            "pack",
            "--store",
            "stores/first",
            "--sign",
            "key",
            "-o",
            out,
        ]);
        let verified = place.json(0, &["verify", out, "--allowed-signers", "allowed"]);
        assert_eq!(
            verified["bundle"]["signer"]["principals"], "board@example.com",
            "{verified}"
        );
    }
    assert!(
        fs::read(store.file("out/b.tar.zst")).unwrap() == place.read_bytes("b.tar.zst"),
        "the bytes differ"
    );
    place.write(
        "deploy.yaml",
        format!("image: {}/team/app:v1\n", rig.up.address),
    );
    rig.place
        .ok(&["push", "b.tar.zst", "--to", down, "--plain-http", down]);
    for args in [
        &["ls", "BUNDLE"][..],
        &["sbom", "BUNDLE"],
        &["status", "BUNDLE", "--to", down, "--plain-http", down],
        &["audit", "deploy.yaml", "--bundle", "BUNDLE"],
        &["export", "images", "BUNDLE", "-o", "out/images.tar"],
        &["export", "files", "BUNDLE", "-o", "out/files"],
    ] {
        let exports = ["b.tar.zst", BUNDLE].map(|bundle| {
            let args: Vec<&str> = args
                .iter()
                .map(|arg| if *arg == "BUNDLE" { bundle } else { arg })
                .collect();
            let out = place.path("out");
            let _ = fs::remove_dir_all(&out);
            fs::create_dir(&out).unwrap();
            let printed = place.ok(&args).replace(bundle, "BUNDLE");
            let mut list = place.clean("find");
            list.args(["out", "-type", "f", "-exec", "sha256sum", "{}", "+"]);
            let mut written: Vec<String> = String::from_utf8(run(&mut list))
                .unwrap()
                .lines()
                .map(str::to_owned)
                .collect();
            written.sort();
            assert_eq!(written.is_empty(), args[0] != "export", "{args:?}");
            (printed, written)
        });
        assert_eq!(exports[0], exports[1], "{args:?}");
    }
}

#[test]
fn gc_keeps_the_content_of_a_bundle_in_an_object_store() {
    let rig = Rig::of(4);
    let store = ObjectStore::start();
    let place = &rig.place;
    store.introduce_to(place);
    place.ok(&["pack", "--store", "stores/first", "-o", BUNDLE]);
    fs::rename(place.path("landfall.lock"), place.path("packed.lock")).unwrap();
    let gc = [
        "gc",
        "--store",
        "stores/first",
        "--bundle",
        BUNDLE,
        "--keep-last",
        "1",
    ];
    let report = place.json(0, &gc);
    assert_eq!(
        (&report["bundles"], &report["removed"]),
        (&json!({"kept": [BUNDLE], "older": []}), &json!([])),
        "{report:#}"
    );
}
