//! Patches: changed layers and files are carried as differences to older versions, and rebuilt byte
//! for byte on the far side. The older versions are read from bundles, the store or the registry.

use crate::support::images::{noise, sha256};
use crate::support::peers::{Server, docker_registry, file_server, landfall_serve, own_registry};
use crate::support::{Images, Place, http, need};
use serde_json::Value;
use std::fs;
use std::time::Duration;

const RELEASES: [&str; 3] = ["1", "2", "3"];

/// Three releases of an image and of a file, each locked as `N.lock`. The store `store` has all of
/// them.
struct Releases {
    place: Place,
    upstream: Server,
    files: Server,
}

/// The bytes of a program. About half of them do not compress. Each version has higher addresses
/// than the previous version, and a different inserted function.
fn program(version: u32) -> Vec<u8> {
    let mut program = noise(7, 150_000);
    program.extend(b"the text of a message, ".repeat(5000));
    for at in (0..program.len() - 4).step_by(119) {
        let address = u32::from_le_bytes(program[at..at + 4].try_into().unwrap());
        program[at..at + 4].copy_from_slice(&address.wrapping_add(48 * version).to_le_bytes());
    }
    program.splice(70_000..70_000, noise(u64::from(version), 100));
    program
}

fn tool(version: u32) -> Vec<u8> {
    let mut tool = noise(8, 90_000);
    tool[1000..1004].copy_from_slice(&version.to_le_bytes());
    tool
}

impl Releases {
    fn new() -> Releases {
        let place = Place::new();
        let upstream = own_registry();
        let files = file_server(&place.path("www"));
        let images = Images::new(place.path("layout"));
        let base = images.layer(&[("etc/base", &noise(1, 40_000))]);
        for (version, release) in (0..).zip(RELEASES) {
            let layer = images.layer(&[
                ("bin/app", &program(version)),
                ("share/data", &noise(2, 30_000)),
                ("share/version", release.as_bytes()),
            ]);
            let image = images.image("linux/amd64", &[base.clone(), layer]);
            images.push(&upstream.address, "one/app", release, &image);
            let path = format!("v{release}/tool");
            place.write(&format!("www/{path}"), tool(version));
            let manifest = format!(
                "apiVersion: landfall/v1\nkind: Manifest\nmetadata: {{name: t}}\nimages:\n- {}/one/app:{release}\nfiles:\n- {{url: \"{}/{path}\", checksum: \"{}\"}}\n",
                upstream.address,
                files.url(),
                sha256(&tool(version))
            );
            place.write(&format!("{release}.yaml"), manifest);
            let manifest = format!("{release}.yaml");
            let lock = format!("{release}.lock");
            place.ok(&["lock", "-f", &manifest, "--lock", &lock, "--store", "store"]);
            place.ok(&["pull", "--lock", &lock, "--store", "store"]);
        }
        Releases {
            place,
            upstream,
            files,
        }
    }

    fn pack(&self, release: &str, out: &str, more: &[&str]) -> Value {
        let lock = format!("{release}.lock");
        let args = ["pack", "--lock", &lock, "-o", out, "--store", "store"];
        self.place.json(0, &[&args[..], more].concat())["bundle"].clone()
    }

    /// Packs a full bundle of release 1, and bundles of releases 2 and 3. Their patches need the
    /// bundle of the previous release.
    fn chain(&self) -> [Value; 3] {
        [
            self.pack("1", "b1", &[]),
            self.pack("2", "p2", &["--since", "b1", "--patches"]),
            self.pack("3", "p3", &["--since", "p2", "--patches"]),
        ]
    }

    fn push(&self, exit: i32, files: &[&str], to: &Server, more: &[&str]) -> Value {
        let address = to.address.as_str();
        let flags = ["--to", address, "--plain-http", address];
        self.place
            .json(exit, &[&["push"], files, &flags, more].concat())
    }

    fn layer(&self, release: &str) -> String {
        let manifest = http::manifest(&self.upstream.address, "one/app", release).json();
        manifest["layers"][1]["digest"].as_str().unwrap().to_owned()
    }

    /// Asserts that the manifest at `to` is that of upstream, and that each of its layers has the
    /// right digest.
    #[track_caller]
    fn assert_delivered(&self, to: &Server, release: &str) {
        let upstream = http::manifest(&self.upstream.address, "one/app", release);
        let found = http::manifest(&to.address, "one/app", release);
        assert_eq!(
            (found.status, &found.body),
            (200, &upstream.body),
            "{release}"
        );
        for blob in upstream.json()["layers"].as_array().unwrap() {
            let digest = blob["digest"].as_str().unwrap();
            let target = format!("/v2/one/app/blobs/{digest}");
            let answer = http::request("GET", &to.address, &target, &[], b"");
            assert_eq!(
                (answer.status, sha256(&answer.body)),
                (200, digest.to_owned())
            );
        }
    }
}

fn message(report: &Value) -> &str {
    report["error"]["message"].as_str().unwrap_or_default()
}

/// The entry of a blob in an item of the report's `patches`: how the bundle carries the blob.
fn carried_blob<'a>(item: &'a Value, digest: &str) -> &'a Value {
    let blobs = item["blobs"].as_array().unwrap();
    blobs.iter().find(|blob| blob["digest"] == digest).unwrap()
}

#[test]
fn patches_are_small_and_rebuilt_blobs_are_delivered_with_their_digests() {
    if !need(&["gzip"]) {
        return;
    }
    let releases = Releases::new();
    let place = &releases.place;
    let [full, second, third] = releases.chain();
    for patched in [&second, &third] {
        assert_eq!(patched["recipes"].as_array().unwrap().len(), 2, "{patched}");
        let bytes = |bundle: &Value| bundle["bytes"].as_u64().unwrap();
        assert!(bytes(patched) * 6 < bytes(&full), "{patched}");
    }
    // a delta without patches has the whole layer and the whole file
    let delta = releases.pack("2", "d2", &["--since", "b1"]);
    assert!(delta["bytes"].as_u64().unwrap() > 5 * second["bytes"].as_u64().unwrap());
    assert_eq!(delta["recipes"].as_array().map_or(0, Vec::len), 0);

    let alone = place.ok(&["verify", "p2"]);
    assert!(
        alone.contains("patched           2 blobs") && alone.contains("not rebuilt"),
        "{alone}"
    );
    assert!(
        alone.contains("needs base        bundle sha256:"),
        "{alone}"
    );
    let proven = place.ok(&["verify", "p3", "p2", "b1"]);
    assert!(proven.contains("all rebuilt"), "{proven}");
    let second = place.ok(&["verify", "p3", "p2", "b1", "--shard", "2/2"]);
    assert!(
        second.contains("rebuilt by the first shard only") && !second.contains("all rebuilt"),
        "{second}"
    );
    let listed = place.ok(&["ls", "p2"]);
    for part in [
        "patches of 2 blobs (",
        "/one/app:2: ",
        &format!("{} of ", &releases.layer("1")[7..19]),
        "/one/app:1\n",
        "  needs base        bundle sha256:",
    ] {
        assert!(listed.contains(part), "{part}: {listed}");
    }
    let empty = own_registry();
    let status = place
        .landfall()
        .args(["status", "p2", &empty.address])
        .assert()
        .code(4);
    let told = String::from_utf8_lossy(&status.get_output().stdout).into_owned();
    assert!(told.contains("needs base        bundle sha256:"), "{told}");

    for to in [own_registry(), docker_registry()] {
        releases.push(0, &["p3", "p2", "b1"], &to, &[]);
        releases.assert_delivered(&to, "3");
    }
}

#[test]
fn diff_estimates_what_a_bundle_with_patches_carries() {
    if !need(&["gzip"]) {
        return;
    }
    let releases = Releases::new();
    let place = &releases.place;
    releases.chain();
    let pack = [
        "pack",
        "--lock",
        "2.lock",
        "-o",
        "p",
        "--since",
        "b1",
        "--patches",
        "--store",
        "store",
    ];
    let packed = place.json(0, &pack);
    let real = &packed["patches"];
    assert_eq!(
        (&real["estimated"], real["items"].as_array().unwrap().len()),
        (&false.into(), 2)
    );
    let sums = |patches: &Value| {
        ["whole", "omitted", "patched", "patch"]
            .map(|what| patches[format!("{what}_bytes")].as_u64().unwrap())
    };
    let [whole, omitted, patched, patches] = sums(real);
    assert!(omitted > 40_000 && patched > 200_000 && patches * 6 < patched);
    assert_eq!(packed["bundle"]["content_bytes"], whole + patches);
    let image = &real["items"][0];
    let layer = carried_blob(image, &releases.layer("2"));
    assert_eq!(
        (&layer["carried"], &layer["from"]),
        (&"patched".into(), &serde_json::json!([releases.layer("1")]))
    );
    let blobs = image["blobs"].as_array().unwrap();
    for (carried, count) in [("whole", 2), ("omitted", 1), ("patched", 1)] {
        let found = blobs.iter().filter(|blob| blob["carried"] == carried);
        assert_eq!(found.count(), count, "{carried}: {image:#}");
    }
    // the content of both versions is in bundles (the second with patches to the first), in the
    // store, or in a bundle and the store
    let nothing = ["--store", "empty"];
    for (args, store) in [
        (["b1", "p2"], &nothing[..]),
        (["1.lock", "2.lock"], &["--store", "store"]),
        (["b1", "2.lock"], &["--store", "store"]),
    ] {
        let report = place.json(0, &[&["diff", "--patches"], &args[..], store].concat());
        let estimate = &report["patches"];
        assert_eq!(estimate["estimated"], true, "{estimate:#}");
        assert_eq!(sums(estimate), sums(real), "{args:?}");
        assert_eq!(estimate["items"], real["items"], "{args:?}");
    }
    let told = place.ok(&["diff", "-v", "--patches", "b1", "p2"]);
    for part in [
        "with patches: about ",
        "  patched           2 blobs of ",
        "estimated from    the patches of the changed layers",
        "/one/app:2: ",
        " left out\n",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let markdown = place.ok(&["diff", "--patches", "b1", "p2", "--output", "markdown"]);
    assert!(
        markdown.contains("<summary>With patches: 2</summary>"),
        "{markdown}"
    );
    // without the content of both versions, there is no estimate
    let report = place.json(
        0,
        &["diff", "--patches", "b1", "2.lock", "--store", "empty"],
    );
    let why = report["patches"]["reason"].as_str().unwrap();
    assert!(
        why.contains("is neither in a bundle nor in the store"),
        "{why}"
    );
    let report = place.json(
        0,
        &["diff", "--patches", "1.lock", "p2", "--store", "empty"],
    );
    assert!(report["patches"]["reason"].is_string(), "{report:#}");
    let to = own_registry();
    place.ok(&["push", "b1", "--to", &to.address, "--receipt", "r.json"]);
    let told = place.ok(&["diff", "--patches", "r.json", "p2"]);
    assert!(
        told.contains("no estimate: a receipt lists blobs without"),
        "{told}"
    );
}

#[test]
fn a_blob_that_is_not_patched_is_reported_with_the_reason() {
    if !need(&["gzip"]) {
        return;
    }
    let releases = Releases::new();
    let place = &releases.place;
    releases.chain();
    // a store that has only the new version
    place.ok(&["pull", "--lock", "2.lock", "--store", "new"]);
    let pack = [
        "pack",
        "--lock",
        "2.lock",
        "-o",
        "p",
        "--patches",
        "--store",
        "new",
    ];
    let report = place.json(0, &[&pack[..], &["--since", "1.lock"]].concat());
    let items = &report["patches"]["items"];
    for blob in [
        carried_blob(&items[0], &releases.layer("2")),
        carried_blob(&items[1], &sha256(&tool(1))),
    ] {
        let why = "its older version is neither in a bundle of --since nor in the store";
        assert_eq!(
            (&blob["carried"], &blob["reason"]),
            (&"whole".into(), &why.into())
        );
    }
    let told = place.ok(&pack);
    assert!(told.contains("not patched       3 blobs ("), "{told}");
    assert!(told.contains("there is no older version of it"), "{told}");
}

#[test]
fn a_registry_with_the_older_version_suffices_as_the_base() {
    if !need(&["gzip"]) {
        return;
    }
    let releases = Releases::new();
    releases.chain();
    let to = own_registry();
    releases.push(0, &["b1"], &to, &[]);
    // a dry run downloads nothing
    let read_back = || {
        let log = to.log();
        log.lines()
            .filter(|line| line.contains("\"GET ") && line.contains("/blobs/"))
            .count()
    };
    let before = read_back();
    releases.push(0, &["p2"], &to, &["--dry-run"]);
    assert_eq!(read_back(), before);
    // the patch of the file needs the older file, which the registry has as an artifact
    releases.push(0, &["p2"], &to, &[]);
    releases.assert_delivered(&to, "2");
    releases.push(0, &["p3"], &to, &[]);
    releases.assert_delivered(&to, "3");
    // a second push transfers nothing
    let again = releases.push(0, &["p3"], &to, &[]);
    assert_eq!(again["totals"]["present"], 2, "{again}");
}

#[test]
fn a_lost_volume_of_a_bundle_with_patches_is_not_packed_again() {
    if !need(&["gzip"]) {
        return;
    }
    let releases = Releases::new();
    let place = &releases.place;
    releases.chain();
    let split = ["--since", "b1", "--patches", "--volume-size", "8k"];
    releases.pack("2", "split", &split);
    let report = place.json(
        4,
        &[
            "pack",
            "--like",
            "split.0001",
            "--only-volume",
            "1",
            "-o",
            "again",
            "--store",
            "store",
        ],
    );
    assert!(
        message(&report).contains("the bundle has patches"),
        "{report:#}"
    );
}

#[test]
fn the_store_of_the_far_side_suffices_as_the_base() {
    if !need(&["gzip"]) {
        return;
    }
    let releases = Releases::new();
    let place = &releases.place;
    releases.chain();
    let to = own_registry();
    // the far side has the content of the older version in a store of its own
    place.ok(&["pull", "--lock", "1.lock", "--store", "far"]);
    releases.push(0, &["p2", "--with-store"], &to, &["--store", "far"]);
    releases.assert_delivered(&to, "2");
}

#[test]
fn a_bundle_with_patches_is_refused_without_its_base() {
    if !need(&["gzip"]) {
        return;
    }
    let releases = Releases::new();
    let place = &releases.place;
    let [full, ..] = releases.chain();
    let to = own_registry();
    let report = releases.push(4, &["p2"], &to, &[]);
    let digest = full["digest"].as_str().unwrap();
    for part in [&*releases.layer("2"), &releases.layer("1"), digest] {
        assert!(report.to_string().contains(part), "{part}: {report:#}");
    }
    assert_eq!(to.requests("\"PUT "), 0, "{}", to.log());
    let report = place.json(4, &["export", "images", "--bundle", "p2", "-o", "images"]);
    assert!(
        message(&report).contains(&*releases.layer("2")),
        "{report:#}"
    );
    let report = place.json(4, &["verify", "p3", "b1"]);
    assert!(
        message(&report).contains(&*releases.layer("3")),
        "{report:#}"
    );
    let report = place.json(4, &["serve", "p2", "--listen", "127.0.0.1:0"]);
    assert!(
        message(&report).contains(&*releases.layer("2")),
        "{report:#}"
    );
}

#[test]
fn a_damaged_base_never_delivers_wrong_bytes() {
    if !need(&["gzip"]) {
        return;
    }
    let releases = Releases::new();
    let place = &releases.place;
    releases.chain();
    let mut damaged = fs::read(place.path("b1")).unwrap();
    let layer = fs::read(place.path(format!("layout/blobs/sha256/{}", &releases.layer("1")[7..])));
    let content = &layer.unwrap()[20_000..20_064];
    let at = damaged
        .windows(64)
        .position(|piece| piece == content)
        .unwrap();
    damaged[at] ^= 1;
    place.write("damaged", damaged);
    let to = own_registry();
    let report = releases.push(3, &["p2", "damaged"], &to, &["--allow-partial"]);
    assert!(report.to_string().contains("frame table"), "{report:#}");
    assert_eq!(http::manifest(&to.address, "one/app", "2").status, 404);
    place.json(4, &["verify", "p2", "damaged"]);
    // if an intact copy of the base is named as well, the push succeeds
    releases.push(0, &["p2", "damaged", "b1"], &to, &[]);
    releases.assert_delivered(&to, "2");
}

#[test]
fn patched_content_is_served_and_exported() {
    if !need(&["gzip"]) {
        return;
    }
    let releases = Releases::new();
    let place = &releases.place;
    releases.chain();
    let server = landfall_serve(place, &["p3", "--base", "p2", "--base", "b1"]);
    let digest = releases.layer("3");
    let host = &releases.upstream.address;
    let target = format!("/v2/one/app/blobs/{digest}?ns={host}");
    for _ in 0..2 {
        let answer = http::request("GET", &server.address, &target, &[], b"");
        assert_eq!((answer.status, sha256(&answer.body)), (200, digest.clone()));
    }
    let ranged = http::request(
        "GET",
        &server.address,
        &target,
        &[("Range", "bytes=1000-1999")],
        b"",
    );
    assert_eq!((ranged.status, ranged.body.len()), (206, 1000));
    let path = format!("/files/{}/v3/tool", releases.files.address);
    assert!(http::get(&server.address, &path).body == tool(2));
    place.ok(&[
        "export", "files", "--bundle", "p3", "--base", "p2", "--base", "b1", "-o", "out",
    ]);
    let exported = place.path(format!("out/{}/v3/tool", releases.files.address));
    assert!(fs::read(exported).unwrap() == tool(2));
}

#[test]
fn patches_between_three_versions_in_one_bundle_halve_its_size() {
    if !need(&["gzip"]) {
        return;
    }
    let releases = Releases::new();
    let place = &releases.place;
    place.ok(&[
        "lock", "-f", "1.yaml", "-f", "2.yaml", "-f", "3.yaml", "--lock", "all.lock", "--store",
        "store",
    ]);
    let args = ["pack", "--lock", "all.lock", "--store", "store", "-o"];
    let plain = place.json(0, &[&args[..], &["plain"]].concat());
    let patched = place.json(0, &[&args[..], &["patched", "--patches"]].concat());
    let bytes = |report: &Value| report["bundle"]["bytes"].as_u64().unwrap();
    assert!(bytes(&patched) * 2 < bytes(&plain), "{patched:#}");
    assert!(place.ok(&["verify", "patched"]).contains("all rebuilt"));
    let to = own_registry();
    releases.push(0, &["patched"], &to, &[]);
    for release in RELEASES {
        releases.assert_delivered(&to, release);
    }
}

#[test]
fn the_same_inputs_give_the_same_bytes_and_a_kill_leaves_no_partial_bundle() {
    if !need(&["gzip"]) {
        return;
    }
    let releases = Releases::new();
    let place = &releases.place;
    releases.chain();
    let expected = fs::read(place.path("p2")).unwrap();
    for delay in [0, 20, 50, 90, 150, 250, 400] {
        let mut child = place
            .command()
            .args([
                "pack", "--lock", "2.lock", "-o", "again", "--store", "store",
            ])
            .args(["--since", "b1", "--patches", "--progress", "none"])
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(delay));
        // the command may have ended already
        let _ = child.kill();
        child.wait().unwrap();
        if let Ok(written) = fs::read(place.path("again")) {
            assert!(written == expected, "after {delay} ms");
        }
    }
    releases.pack("2", "again", &["--since", "b1", "--patches"]);
    assert!(fs::read(place.path("again")).unwrap() == expected);
    let to = own_registry();
    for delay in [0, 30, 80, 150, 300] {
        let mut child = place
            .command()
            .args([
                "push",
                "p2",
                "b1",
                "--to",
                &to.address,
                "--plain-http",
                &to.address,
            ])
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(delay));
        let _ = child.kill();
        child.wait().unwrap();
    }
    releases.push(0, &["p2", "b1"], &to, &[]);
    releases.assert_delivered(&to, "2");
}

#[test]
fn a_reader_written_from_the_documentation_applies_patches() {
    if !need(&["gzip", "python3", "zstd"]) {
        return;
    }
    let releases = Releases::new();
    releases.chain();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/read-bundle.py");
    let read = |args: &[&str]| {
        let output = releases
            .place
            .clean("python3")
            .arg(script)
            .args(args)
            .output()
            .unwrap();
        (
            output.stdout,
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let (listed, _) = read(&["p3"]);
    let listed = String::from_utf8(listed).unwrap();
    assert!(
        listed.contains(&format!("patched    {}", releases.layer("3"))),
        "{listed}"
    );
    assert!(
        String::from_utf8(read(&["p3", "check"]).0)
            .unwrap()
            .contains("are good")
    );
    // the file is rebuilt from the first version with both patches
    let (bytes, error) = read(&["p3", &sha256(&tool(2)), "p2", "b1"]);
    assert!(bytes == tool(2), "{error}");
    let (_, error) = read(&["p3", &sha256(&tool(2)), "p2"]);
    assert!(error.contains("name a bundle that has it"), "{error}");
}

/// Runs landfall with these arguments while `TMPDIR` is a file system of `kib` KiB. Returns the
/// exit code and the output, or `None` if this machine allows no such mount.
fn with_scratch_space(place: &Place, kib: usize, args: &str) -> Option<(i32, String)> {
    fs::create_dir_all(place.path("tmp")).unwrap();
    let landfall = env!("CARGO_BIN_EXE_landfall");
    let script = format!("mount -t tmpfs -o size={kib}k none tmp || exit 99; {landfall} {args}");
    let mut command = place.clean("unshare");
    let output = command.args(["-m", "sh", "-c", &script]).output().unwrap();
    let code = output.status.code().filter(|code| *code != 99);
    if code.is_none_or(|_| output.stderr.starts_with(b"unshare")) {
        crate::support::skip(&crate::support::test_name(), "this machine allows no mount");
        return None;
    }
    let text = [output.stdout, output.stderr].concat();
    Some((code?, String::from_utf8_lossy(&text).into_owned()))
}

/// docs/how-to/deltas.md says how much space is needed: the uncompressed bytes of the older
/// version, and the layer.
#[test]
fn a_full_temporary_folder_is_no_damage_and_the_documented_space_suffices() {
    if !need(&["gzip", "unshare", "mount"]) {
        return;
    }
    let releases = Releases::new();
    let place = &releases.place;
    releases.chain();
    // 300 KiB of plain bytes, the layer and its older version: not enough for all rebuilt blobs
    let verify = "verify p3 p2 b1 --progress none";
    let Some((code, text)) = with_scratch_space(place, 760, verify) else {
        return;
    };
    assert_eq!(code, 0, "{text}");
    let (code, text) = with_scratch_space(place, 100, verify).unwrap();
    assert_eq!(code, 1, "{text}");
    for part in [
        "cannot write a temporary file in ",
        "No space left",
        "help: ",
        "TMPDIR",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // nor is it a reason to deliver less
    let pack = "pack --lock 3.lock -o full --since p2 --patches --store store --progress none";
    let (code, text) = with_scratch_space(place, 100, pack).unwrap();
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("No space left"), "{text}");
    assert!(!place.path("full").exists());
}
