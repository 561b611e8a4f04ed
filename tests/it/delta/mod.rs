//! Deltas: packed since bundles, locks and receipts; pushed with their bases, a store, or the
//! content of the registry; refused if content is missing.

mod line;
mod verbs;

use crate::support::images::noise;
use crate::support::images::sha256;
use crate::support::peers::{landfall_serve, own_registry};
use crate::support::reverse_proxy::{ProxyAction, ReverseProxy};
use crate::support::run;
use crate::support::{Images, Place, http, need};
use line::DeltaReleases;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;

const NEEDS: [&str; 1] = ["gzip"];
const STORE: [&str; 2] = ["--store", "store"];

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn message(report: &Value) -> &str {
    report["error"]["message"].as_str().unwrap()
}

#[test]
fn a_delta_is_pushed_with_all_bundles_of_its_chain() {
    if !need(&NEEDS) {
        return;
    }
    let line = DeltaReleases::new();
    let place = &line.place;
    let [full, second, third] = line.chain();
    assert_eq!(line.omitted(&full), set(&[]));
    assert_eq!(
        line.omitted(&second),
        set(&["base", "a1", "tool", "the file"])
    );
    // content that `d2` omits counts as present at the receiver of `d2`; release 3 does not need
    // layer a1
    assert_eq!(
        line.omitted(&third),
        set(&["base", "a2", "new", "the file"])
    );
    assert!(
        second["bytes"].as_u64().unwrap() < full["bytes"].as_u64().unwrap() / 10,
        "{second}"
    );
    assert_eq!(second["bases"][0]["digest"], full["digest"]);

    // without its base, the delta is valid, and names the base
    let printed = place.ok(&["verify", "d2"]);
    let base = full["digest"].as_str().unwrap();
    assert!(
        printed.contains(&format!("needs base        bundle {base}")),
        "{printed}"
    );
    assert!(printed.contains("left out          4 blobs"), "{printed}");
    let printed = place.ok(&["verify", "d3", "d2", "b1"]);
    assert!(
        printed.contains("all in its bases") && !printed.contains("needs base"),
        "{printed}"
    );
    let report = place.json(4, &["verify", "d3", "d2"]);
    for part in [&line.digest("base"), "one/app:3", base] {
        assert!(
            message(&report).contains(part),
            "{part}: {}",
            message(&report)
        );
    }
    // the message does not request bases that were named
    assert!(
        !message(&report).contains(second["digest"].as_str().unwrap()),
        "{}",
        message(&report)
    );
    // a base is verified too
    let mut damaged = fs::read(place.path("b1")).unwrap();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    place.write("damaged", damaged);
    assert!(message(&place.json(4, &["verify", "d2", "damaged"])).contains("damaged"));

    let listed = place.ok(&["ls", "d2"]);
    for part in [
        "one/app:2",
        "a delta, which omits 4 blobs",
        &line.digest("a1")[7..19],
        "needs base",
    ] {
        assert!(listed.contains(part), "{part}: {listed}");
    }

    let registry = own_registry();
    line.push(0, &["d3", "d2", "b1"], &registry.address, &[]);
    let read_back = |line: &&str| line.contains("\"GET ") && line.contains("/blobs/");
    assert_eq!(
        registry.log().lines().filter(read_back).count(),
        0,
        "{}",
        registry.log()
    );
    line.assert_delivered(&registry, "3");
}

#[test]
fn damaged_content_is_read_from_another_bundle() {
    if !need(&NEEDS) {
        return;
    }
    let line = DeltaReleases::new();
    let place = &line.place;
    line.pack("1", "b1", &[]);
    let bytes = fs::read(place.path("b1")).unwrap();
    let layer =
        place.read_bytes(format!("layout/blobs/sha256/{}", &line.digest("base")[7..]).as_str());
    // damage in a layer, and damage in the file
    for content in [&layer[100_000..100_064], &line.tool[70_000..70_064]] {
        let mut damaged = bytes.clone();
        let at = damaged
            .windows(64)
            .position(|piece| piece == content)
            .expect("the content is stored byte for byte");
        damaged[at] ^= 1;
        place.write("damaged", &damaged);
        let registry = own_registry();
        let report = line.push(3, &["damaged"], &registry.address, &["--allow-partial"]);
        assert!(report.to_string().contains("damaged"), "{report}");
        line.push(0, &["damaged", "b1"], &registry.address, &[]);
        line.assert_delivered(&registry, "1");
    }
    place.json(1, &["export", "files", "--bundle", "damaged", "-o", "out"]);
    place.json(
        0,
        &[
            "export", "files", "--bundle", "damaged", "--base", "b1", "-o", "out",
        ],
    );
    let server = landfall_serve(place, &["damaged", "b1"]);
    let host = &line.servers[1].address;
    let path = "tool";
    assert!(http::get(&server.address, &format!("/files/{host}/{path}")).body == line.tool);
}

#[test]
fn the_same_lock_and_bases_give_the_same_bytes() {
    if !need(&NEEDS) {
        return;
    }
    let line = DeltaReleases::new();
    let place = &line.place;
    line.chain();
    let first = line.pack("3", "x1", &["d2", "2.lock", "1.lock"]);
    // content is omitted only if every base has it
    assert_eq!(line.omitted(&first), set(&["base", "the file"]));
    assert_eq!(first["bases"].as_array().unwrap().len(), 3);
    line.pack("3", "x2", &["1.lock", "2.lock", "d2", "1.lock"]);
    assert!(
        place.read_bytes("x1") == place.read_bytes("x2"),
        "the order of bases does not matter"
    );
    // the store may lack omitted content
    fs::remove_file(
        place
            .path("store/blobs/sha256")
            .join(&line.digest("base")[7..]),
    )
    .unwrap();
    line.pack("3", "x3", &["1.lock", "2.lock", "d2"]);
    assert!(place.read_bytes("x1") == place.read_bytes("x3"));
    let report = place.json(
        3,
        &["pack", "--lock", "3.lock", "-o", "x4", "--store", "store"],
    );
    assert!(message(&report).contains("would be missing"), "{report:#}");
    // if one base has no content in common with the lock, the bundle is complete
    place.write("empty.lock", "version: 1\n");
    place.ok(&["pull", "--lock", "3.lock", "--store", "store"]);
    line.pack("3", "whole", &["empty.lock", "b1"]);
    line.pack("3", "plain", &[]);
    assert!(place.read_bytes("whole") == place.read_bytes("plain"));
    // a base that is split into volumes gives the same delta
    place.ok(&[
        "pack",
        "--lock",
        "1.lock",
        "-o",
        "split",
        "--volume-size",
        "2M",
        "--store",
        "store",
    ]);
    assert!(place.path("split.0001").exists() && !place.path("split").exists());
    line.pack("2", "x5", &["split"]);
    assert!(place.read_bytes("x5") == place.read_bytes("d2"));
    place.ok(&["verify", "d2", "split.0001"]);
    // files that are not bases
    place.write("other.json", "{\"version\": 1}");
    for (exit, since, why) in [
        (4, "www/tool", "damaged"),
        (2, "1.yaml", "1.yaml"),
        (2, "other.json", "receipt"),
    ] {
        let report = place.json(
            exit,
            &["pack", "-o", "x", "--lock", "3.lock", "--since", since],
        );
        assert!(message(&report).contains(why), "{report:#}");
    }
}

/// Every volume can be packed again, except a volume with the contents index, which the other
/// volumes do not contain.
#[test]
fn a_lost_volume_of_a_delta_is_packed_again() {
    if !need(&NEEDS) {
        return;
    }
    let line = DeltaReleases::new();
    line.pack("1", "b1", &[]);
    let to_2 = [
        "pack",
        "--lock",
        "2.lock",
        "--since",
        "b1",
        "-o",
        "d2",
        "--volume-size",
        "8k",
    ];
    line.place.json(0, &[&to_2, &STORE[..]].concat());
    let mut rebuilt = 0;
    for number in (1..=999).take_while(|number| line.place.path(format!("d2.{number:04}")).exists())
    {
        let path = line.place.path(format!("d2.{number:04}"));
        let number = number.to_string();
        let good = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let mut run = line.place.command();
        run.args([
            "pack",
            "--like",
            "d2",
            "--only-volume",
            &number,
            "--lock",
            "2.lock",
        ])
        .args(STORE);
        let output = run.output().unwrap();
        if output.status.success() {
            assert!(fs::read(&path).unwrap() == good, "{number}");
            rebuilt += 1;
        } else {
            let printed = String::from_utf8_lossy(&output.stderr);
            assert!(
                output.status.code() == Some(4) && printed.contains("contents index"),
                "{number}: {printed}"
            );
            fs::write(&path, good).unwrap();
        }
    }
    assert!(rebuilt > 2, "{rebuilt}");
    line.place.json(0, &["verify", "d2"]);
}

#[test]
fn blobs_are_mounted_from_the_repository_that_the_receipt_names() {
    if !need(&NEEDS) {
        return;
    }
    let line = DeltaReleases::new();
    line.pack("1", "b1", &[]);
    let registry = own_registry();
    line.push(0, &["b1"], &registry.address, &["--receipt", "r1"]);
    let second = line.pack("2", "d2", &["r1"]);
    assert_eq!(
        line.omitted(&second),
        set(&["base", "a1", "tool", "the file"])
    );
    let base = &second["bases"][0];
    assert_eq!(
        (&base["kind"], &base["registry"]),
        (&"receipt".into(), &registry.address.clone().into())
    );
    let at = base["repositories"][line.digest("base")].as_str().unwrap();
    assert!(["one/app", "two/tool"].contains(&at), "{base}");
    assert_eq!(base["repositories"].as_object().unwrap().len(), 4);

    let middle = ReverseProxy::new(&registry.address, |_| ProxyAction::Pass);
    let report = line.push(0, &["d2"], &middle.address, &["--receipt", "r2"]);
    line.assert_delivered(&registry, "2");
    let log = middle.requests();
    let base = line.digest("base");
    assert!(
        log.iter()
            .any(|request| request.is("POST", &format!("mount={}", base.replace(':', "%3A"))))
    );
    assert_eq!(middle.count("GET", "/blobs/"), 0);
    let sent: usize = log
        .iter()
        .filter(|request| request.method == "PUT")
        .map(|request| request.length)
        .sum();
    assert!(sent < 40_000, "{sent}: {report:#}");

    // the receipt of a delta can be the base of the next delta
    let third = line.pack("3", "d3", &["r2"]);
    assert_eq!(
        line.omitted(&third),
        set(&["base", "a2", "new", "the file"])
    );
    line.push(0, &["d3"], &registry.address, &[]);
    line.assert_delivered(&registry, "3");
    // if the registry has everything, only tags, the list of delivered locks, the tags of its
    // repository and the next list, which a registry with immutable tags would have, are requested
    let again = line.push(0, &["d3"], &registry.address, &[]);
    assert_eq!(again["totals"]["requests"], 6, "{again:#}");
}

#[test]
fn if_mounts_are_refused_blobs_are_downloaded_and_uploaded_again() {
    if !need(&NEEDS) {
        return;
    }
    for (status, code) in [(202, ""), (401, "UNAUTHORIZED"), (405, "UNSUPPORTED")] {
        let line = DeltaReleases::new();
        line.pack("1", "b1", &[]);
        let registry = own_registry();
        line.push(0, &["b1"], &registry.address, &["--receipt", "r1"]);
        line.pack("2", "d2", &["r1"]);
        let middle = ReverseProxy::new(&registry.address, move |request| {
            match request.is("POST", "mount=") {
                true if status == 202 => {
                    ProxyAction::As(request.target.split('?').next().unwrap().to_owned())
                }
                true => ProxyAction::refuse(status, code, "no mounts here"),
                false => ProxyAction::Pass,
            }
        });
        line.push(0, &["d2"], &middle.address, &[]);
        line.assert_delivered(&registry, "2");
        let base = line.digest("base");
        // only the new repository needs the base layer; the others have it
        assert_eq!(
            middle.count("GET", &format!("/blobs/{base}")),
            1,
            "{status}"
        );
    }
}

#[test]
fn downloading_a_blob_back_does_not_wait_for_its_own_upload_slot() {
    if !need(&["gzip"]) {
        return;
    }
    let place = Place::new();
    let upstream = own_registry();
    let images = Images::new(place.path("layout"));
    let layers: Vec<Value> = (0..6)
        .map(|n| images.layer(&[("x", &noise(n + 1, 900_000))]))
        .collect();
    let image = images.image("linux/amd64", &layers);
    for (release, repository) in [("1", "old/app"), ("2", "new/app")] {
        images.push(&upstream.address, repository, "v", &image);
        let name = format!("{}/{repository}:v", upstream.address);
        place.write(
            "m.yaml",
            format!("apiVersion: landfall/v1\nkind: Manifest\nmetadata: {{name: t}}\nimages: [\"{name}\"]\n"),
        );
        let lock = format!("{release}.lock");
        place.ok(&["lock", "-f", "m.yaml", "--lock", &lock, "--store", "store"]);
        place.ok(&["pull", "--lock", &lock, "--store", "store"]);
    }
    let registry = own_registry();
    let to = registry.address.as_str();
    place.ok(&[
        "push",
        "--lock",
        "1.lock",
        "--store",
        "store",
        "--to",
        to,
        "--receipt",
        "r",
    ]);
    place.ok(&[
        "pack", "--lock", "2.lock", "-o", "d", "--since", "r", "--store", "store",
    ]);
    let middle = ReverseProxy::new(to, |request| match request.is("POST", "mount=") {
        true => ProxyAction::refuse(405, "UNSUPPORTED", "no mounts here"),
        false => ProxyAction::Pass,
    });
    let site = format!(
        "apiVersion: landfall/v1\nkind: Site\nregistry: {{address: \"{0}\", plainHTTP: true}}\nupstreams: {{\"{0}\": {{maxConcurrent: 1}}}}\n",
        middle.address
    );
    place.write("site.yaml", site);
    place.json(0, &["push", "d", "--site", "site.yaml"]);
    let target = format!(
        "/v2/new/app/blobs/{}",
        layers[5]["digest"].as_str().unwrap()
    );
    assert_eq!(http::request("HEAD", to, &target, &[], b"").status, 200);
    assert_eq!(middle.count("GET", "/v2/old/app/blobs/"), 6);
}

#[test]
fn missing_content_is_reported_before_anything_is_uploaded() {
    if !need(&NEEDS) {
        return;
    }
    let line = DeltaReleases::new();
    let place = &line.place;
    let [full, ..] = line.chain();
    let registry = own_registry();
    let middle = ReverseProxy::new(&registry.address, |_| ProxyAction::Pass);
    let report = line.push(4, &["d2"], &middle.address, &[]);
    let problems = report["problems"].as_array().unwrap();
    assert_eq!(
        (problems.len(), &problems[0]["kind"]),
        (1, &"content".into()),
        "{report:#}"
    );
    let text = message(&report);
    let bundle = full["digest"].as_str().unwrap();
    for part in [
        "4 blobs",
        &line.digest("base"),
        "one/app:2",
        &line.tool_digest(),
        "name one of its bases too, after it or with --base",
        bundle,
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(
        report["items"]
            .as_array()
            .unwrap()
            .iter()
            .all(|item| item["status"] == "failed"),
        "{report:#}"
    );
    // one upload is started and cancelled, to check whether this account may push
    assert_eq!((middle.count("PUT", ""), middle.count("PATCH", "")), (0, 0));
    let dry = line.push(4, &["d2"], &registry.address, &["--dry-run"]);
    assert!(
        message(&dry).contains("neither in another bundle or store nor at"),
        "{dry:#}"
    );

    // the store has the content that the delta omits
    let with_store = ["--with-store", "--store", "store"];
    line.push(0, &["d2"], &registry.address, &with_store);
    line.assert_delivered(&registry, "2");

    // a registry that reports another size is not trusted
    let other = own_registry();
    line.push(0, &["b1"], &other.address, &["--receipt", "r1"]);
    let base = format!("/blobs/{}", line.digest("base"));
    let wrong_server = ReverseProxy::new(&other.address, move |request| {
        match request.is("HEAD", &base) {
            true => ProxyAction::Change(Box::new(|response| {
                response
                    .headers
                    .retain(|(name, _)| name != "content-length");
                response.headers.push(("Content-Length".into(), "5".into()));
            })),
            false => ProxyAction::Pass,
        }
    });
    let report = line.push(4, &["d2"], &wrong_server.address, &[]);
    assert!(
        message(&report).contains("1 blob ("),
        "{}",
        message(&report)
    );
    // blobs in destination repositories are found without a receipt
    line.push(0, &["d2"], &other.address, &[]);
    line.assert_delivered(&other, "2");

    let locks = line.push(2, &["d2", "1.lock"], &registry.address, &[]);
    assert!(message(&locks).contains("is a lock"), "{locks:#}");
    assert!(message(&place.json(2, &["verify", "d2", "r1"])).contains("only a push can use"));
}

#[test]
fn a_receipt_names_the_repositories_for_the_content_of_a_delta() {
    if !need(&NEEDS) {
        return;
    }
    let line = DeltaReleases::new();
    line.pack("1", "b1", &[]);
    line.pack("3", "d3", &["1.lock"]);
    let registry = own_registry();
    let to = format!("{}/old", registry.address);
    line.place
        .ok(&["push", "b1", "--to", &to, "--receipt", "r1"]);
    line.push(4, &["d3"], &registry.address, &[]);
    // if a look-up fails, the repositories of the other receipt are tried
    let other = format!("{}/other", registry.address);
    line.place
        .ok(&["push", "b1", "--to", &other, "--receipt", "r2"]);
    let receipts = ["r1", "r2"].map(|name| line.place.read(name));
    for (broken, exit) in [("/v2/old/", 0), ("/v2/", 4)] {
        let middle = ReverseProxy::new(&registry.address, move |request| {
            match request.is("HEAD", broken) && request.target.contains("/blobs/") {
                true => ProxyAction::status(501),
                false => ProxyAction::Pass,
            }
        });
        let to = &middle.address;
        for (name, receipt) in ["at1", "at2"].into_iter().zip(&receipts) {
            line.place
                .write(name, receipt.replace(&registry.address, to));
        }
        let report = line.push(exit, &["d3", "at1", "at2"], to, &["--dry-run"]);
        assert!(middle.count("HEAD", broken) > 0);
        assert!(exit == 0 || message(&report).contains("501"), "{report:#}");
    }
    line.push(0, &["d3", "r1"], &registry.address, &[]);
    line.assert_delivered(&registry, "3");
}

#[test]
fn deltas_can_be_served_exported_and_used_for_rewriting() {
    if !need(&NEEDS) {
        return;
    }
    let line = DeltaReleases::new();
    let place = &line.place;
    line.chain();
    let report = place.json(4, &["serve", "d2", "--listen", "127.0.0.1:0"]);
    assert!(message(&report).contains(&line.digest("a1")), "{report:#}");
    // the names in the delta and in its bases are served
    let server = landfall_serve(place, &["d3", "d2", "b1"]);
    line.assert_delivered(&server, "3");
    line.assert_delivered(&server, "1");
    let with_store = landfall_serve(place, &["d2", "--with-store", "--store", "store"]);
    line.assert_delivered(&with_store, "2");
    // with `--base`, only the content of b1 is used: its names are not served
    let with_base = landfall_serve(place, &["d2", "--base", "b1", "--lock", "2.lock"]);
    line.assert_delivered(&with_base, "2");
    assert_eq!(
        http::manifest(&with_base.address, "one/app", "1").status,
        404
    );

    let export = |exit, more: &[&str]| {
        place.json(
            exit,
            &[&["export", "files", "--bundle", "d2", "-o", "out"], more].concat(),
        )
    };
    assert!(message(&export(4, &[])).contains(&line.tool_digest()));
    export(0, &["--base", "b1"]);
    let exported = walk(&place.path("out"));
    assert!(
        exported
            .iter()
            .any(|path| fs::read(path).unwrap() == line.tool),
        "{exported:?}"
    );

    // a rewrite needs only the lock of the delta
    let name = place.read("2.lock");
    let name = name
        .lines()
        .find_map(|line| {
            line.strip_prefix("- name: ")
                .filter(|n| n.contains("one/app"))
        })
        .unwrap();
    place.write("pod.yaml", format!("image: {name}\n"));
    let rewritten = place.ok(&[
        "rewrite",
        "pod.yaml",
        "--bundle",
        "d2",
        "--to",
        "r.test:5000",
    ]);
    assert_eq!(rewritten, "image: \"r.test:5000/one/app:2\"\n");

    // if a tag moved, the delta takes precedence over its bases, in any order of the files
    let moved = line.images.image(
        "linux/amd64",
        &[line.layers[0].1.clone(), line.layers[3].1.clone()],
    );
    line.images
        .push(&line.servers[0].address, "three/new", "1", &moved);
    place.ok(&[
        "lock", "-f", "3.yaml", "--lock", "4.lock", "--store", "store",
    ]);
    place.ok(&["pull", "--lock", "4.lock", "--store", "store"]);
    line.pack("4", "d4", &["d3"]);
    line.assert_delivered(&landfall_serve(place, &["d4", "d3", "b1", "d2"]), "4");
}

#[test]
fn the_delta_must_be_signed_but_not_its_bases() {
    if !need(&[&NEEDS[..], &["ssh-keygen"]].concat()) {
        return;
    }
    let line = DeltaReleases::new();
    let place = &line.place;
    run(place
        .clean("ssh-keygen")
        .args(["-q", "-N", "", "-t", "ed25519", "-f", "key"]));
    place.write("allowed", format!("board {}", place.read("key.pub")));
    line.pack("1", "b1", &[]);
    let pack = [
        "pack", "--lock", "2.lock", "-o", "d2", "--since", "b1", "--sign", "key", "--store",
        "store",
    ];
    place.ok(&pack);
    let printed = place.ok(&["verify", "d2", "b1", "--allowed-signers", "allowed"]);
    assert!(
        printed.contains("signed by board") && printed.contains("all in its bases"),
        "{printed}"
    );
    let registry = own_registry();
    place.write(
        "site.yaml",
        "apiVersion: landfall/v1\nkind: Site\nsigners: allowed\n",
    );
    line.push(4, &["b1"], &registry.address, &["--site", "site.yaml"]);
    line.push(
        0,
        &["d2", "b1"],
        &registry.address,
        &["--site", "site.yaml"],
    );
    line.assert_delivered(&registry, "2");
}

#[test]
fn diff_shows_the_content_of_a_delta() {
    if !need(&NEEDS) {
        return;
    }
    let line = DeltaReleases::new();
    let place = &line.place;
    line.chain();
    let printed = place.ok(&["diff", "1.lock", "d2"]);
    for part in [
        "up  ",
        "one/app:1 -> ",
        "one/app:2  ",
        "added",
        "three/new:1",
        "2 changes: 1 up, 1 added; ",
    ] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    let report = place.json(0, &["diff", "b1", "2.lock"]);
    let changes = report["changes"].as_array().unwrap();
    let new = changes
        .iter()
        .find(|change| change["name"].as_str().unwrap().contains("three/new"))
        .unwrap();
    // the base layer is present, so only the other layer, the config and the manifest are new
    let bytes = new["newBytes"].as_u64().unwrap();
    assert!((7000..12_000).contains(&bytes), "{new}");
    assert_eq!(
        report["new"]["blobs"], 6,
        "a layer, a config and a manifest of each changed image: {report:#}"
    );
    let same = place.json(0, &["diff", "2.lock", "d2"]);
    assert_eq!(
        (&same["changes"], &same["new"]["bytes"]),
        (&serde_json::json!([]), &0.into())
    );
}

#[test]
fn a_reader_written_from_the_documentation_reads_deltas() {
    if !need(&[&NEEDS[..], &["python3", "zstd"]].concat()) {
        return;
    }
    let line = DeltaReleases::new();
    let [full, ..] = line.chain();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/read-bundle.py");
    let read = |args: &[&str]| {
        line.place
            .clean("python3")
            .arg(script)
            .args(args)
            .output()
            .unwrap()
    };
    let listed = String::from_utf8(read(&["d2"]).stdout).unwrap();
    for part in [
        &format!("left out   {}", line.digest("base")),
        &format!("needs bundle {}", full["digest"].as_str().unwrap()),
    ] {
        assert!(listed.contains(part.as_str()), "{part}: {listed}");
    }
    let absent = read(&["d2", &line.digest("base")]);
    assert!(
        !absent.status.success() && String::from_utf8_lossy(&absent.stderr).contains("is left out")
    );
    assert_eq!(
        sha256(&read(&["d2", &line.digest("a2")]).stdout),
        line.digest("a2")
    );
}

fn walk(dir: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(dir)
        .unwrap()
        .flatten()
        .map(|entry| entry.path());
    entries
        .flat_map(|path| {
            if path.is_dir() {
                walk(&path)
            } else {
                vec![path]
            }
        })
        .collect()
}
