//! Pulling: resumption at the last byte, one download for each blob, damage, and concurrent pulls.

use crate::support::images::OCI_ZSTD;
use crate::support::images::noise;
use crate::support::images::sha256;
use crate::support::images::tarball;
use crate::support::library::{Algorithm, Digest};
use crate::support::peers::{Server, landfall_serve, own_registry};
use crate::support::{Images, Place, http, need};
use serde_json::Value;
use std::path::PathBuf;

const NEEDS: [&str; 1] = ["gzip"];

/// Returns a folder with a lock of three images, their registry, and their layers. All images share
/// the first layer; each other layer belongs to one image.
fn locked() -> (Place, Server, Vec<Value>) {
    let place = Place::new();
    let registry = own_registry();
    let images = Images::new(place.path("layout"));
    let base = images.layer(&[("base", &noise(1, 400_000))]);
    let mut manifest =
        "apiVersion: landfall/v1\nkind: Manifest\nmetadata: {name: t}\nimages:\n".to_owned();
    let mut layers = vec![base.clone()];
    for n in 0..3 {
        let own = images.layer(&[("own", &noise(10 + n, 50_000))]);
        images.push(
            &registry.address,
            &format!("app{n}"),
            "v1",
            &images.image("linux/amd64", &[base.clone(), own.clone()]),
        );
        layers.push(own);
        manifest += &format!("- {}/app{n}:v1\n", registry.address);
    }
    place.write("m.yaml", manifest);
    place.ok(&["lock", "-f", "m.yaml", "--store", "lock-store"]);
    (place, registry, layers)
}

fn hex(blob: &Value) -> &str {
    blob["digest"]
        .as_str()
        .unwrap()
        .strip_prefix("sha256:")
        .unwrap()
}

fn in_store(place: &Place, blob: &Value) -> PathBuf {
    place.path("store/blobs/sha256").join(hex(blob))
}

#[test]
fn a_low_limit_of_open_files_is_raised_or_named() {
    let (place, _registry, _) = locked();
    let pull = |limit: &str, store: &str| {
        let script = format!(
            "ulimit {limit} && {} pull --store {store}",
            env!("CARGO_BIN_EXE_landfall")
        );
        place.clean("sh").args(["-c", &script]).output().unwrap()
    };
    let raised = pull("-Sn 16", "raised");
    assert!(raised.status.success(), "{raised:?}");
    let refused = pull("-n 16", "refused");
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    let words = String::from_utf8(refused.stderr).unwrap();
    assert!(words.contains("`ulimit -n`"), "{words}");
}

#[test]
fn a_partial_blob_is_resumed_at_its_last_byte() {
    if !need(&NEEDS) {
        return;
    }
    let (place, registry, layers) = locked();
    place.ok(&["pull", "--store", "whole"]);
    let base = std::fs::read(place.path("whole/blobs/sha256").join(hex(&layers[0]))).unwrap();
    // as left by a killed run
    place.write(
        &format!("store/.landfall/partial/sha256-{}", hex(&layers[0])),
        &base[..300_000],
    );
    let report = place.json(0, &["pull", "--store", "store"]);
    assert_eq!(std::fs::read(in_store(&place, &layers[0])).unwrap(), base);
    let line = format!(
        "blobs/sha256:{} HTTP/1.1\" 206 {}",
        hex(&layers[0]),
        base.len() - 300_000
    );
    assert_eq!(registry.requests(&line), 1, "{}", registry.log());
    assert!(
        report["totals"]["bytes_transferred"].as_u64().unwrap() < 300_000,
        "{report:#}"
    );

    // a partial file with wrong bytes is detected and deleted, and the blob is downloaded again
    std::fs::remove_dir_all(place.path("store")).unwrap();
    place.write(
        &format!("store/.landfall/partial/sha256-{}", hex(&layers[0])),
        noise(99, 200_000),
    );
    place.json(0, &["pull", "--store", "store"]);
    assert_eq!(std::fs::read(in_store(&place, &layers[0])).unwrap(), base);
}

#[test]
fn each_blob_is_downloaded_once_per_run() {
    if !need(&NEEDS) {
        return;
    }
    let (place, registry, layers) = locked();
    let report = place.json(0, &["pull", "--store", "store", "--jobs", "32"]);
    assert_eq!(report["totals"]["done"], 3);
    for layer in &layers {
        let count = registry
            .log()
            .lines()
            .filter(|line| line.contains("\"GET ") && line.contains(hex(layer)))
            .count();
        assert_eq!(count, 1, "{}", registry.log());
    }
    assert_eq!(
        place.json(0, &["pull", "--store", "store"])["totals"]["requests"],
        0
    );
}

#[test]
fn damaged_blobs_in_the_store_are_downloaded_again() {
    if !need(&NEEDS) {
        return;
    }
    let (place, _registry, layers) = locked();
    place.ok(&["pull", "--store", "store"]);
    let path = in_store(&place, &layers[1]);
    let good = std::fs::read(&path).unwrap();
    let mut bad = good.clone();
    bad[1000] ^= 1;
    std::fs::write(&path, &bad).unwrap();
    let report = place.json(0, &["pull", "--store", "store"]);
    assert_eq!(report["totals"]["done"], 1, "{report:#}");
    assert_eq!(std::fs::read(&path).unwrap(), good);
    // bytes that changed without changing the file time are found only with --rehash
    let metadata = std::fs::metadata(&path).unwrap();
    std::fs::write(&path, &bad).unwrap();
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.set_modified(metadata.modified().unwrap()).unwrap();
    let report = place.json(0, &["pull", "--store", "store"]);
    assert_eq!(report["totals"]["present"], 3, "{report:#}");
    place.json(0, &["pull", "--store", "store", "--rehash"]);
    assert_eq!(std::fs::read(&path).unwrap(), good);
}

#[test]
fn concurrent_pulls_share_one_store() {
    if !need(&NEEDS) {
        return;
    }
    let (place, registry, layers) = locked();
    let mut runs: Vec<_> = (0..3)
        .map(|_| {
            let mut command = place.command();
            command
                .args(["pull", "--store", "store", "--progress", "none"])
                .stdout(std::process::Stdio::null());
            command.spawn().unwrap()
        })
        .collect();
    for run in &mut runs {
        assert!(run.wait().unwrap().success());
    }
    for layer in &layers {
        let count = registry
            .log()
            .lines()
            .filter(|line| line.contains("\"GET ") && line.contains(hex(layer)))
            .count();
        assert_eq!(
            count,
            1,
            "one process downloads, and the others wait:\n{}",
            registry.log()
        );
        assert!(in_store(&place, layer).exists());
    }
    place.ok(&["pack", "--store", "store", "-o", "b"]);
    place.ok(&["verify", "b"]);
}

#[test]
fn sha512_blobs_are_stored_under_their_sha512_digest() {
    if !need(&["gzip"]) {
        return;
    }
    let place = Place::new();
    let upstream = landfall_serve(&place, &["--writable", "up"]);
    let private = landfall_serve(&place, &["--writable", "private"]);
    let layer = noise(5, 90_000);
    let digest = Digest::compute(Algorithm::Sha512, &layer);
    http::put_blob(&upstream.address, "odd", &digest.to_string(), &layer);
    let config =
        br#"{"os":"linux","architecture":"amd64","rootfs":{"type":"layers","diff_ids":[]}}"#;
    let config_digest = sha256(config);
    http::put_blob(&upstream.address, "odd", &config_digest, config);
    let kind = "application/vnd.oci.image.manifest.v1+json";
    let manifest = serde_json::json!({
        "schemaVersion": 2, "mediaType": kind,
        "config": {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": config_digest, "size": config.len()},
        "layers": [{"mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": digest, "size": layer.len()}],
    })
    .to_string();
    http::put_manifest(&upstream.address, "odd", "v1", kind, manifest.as_bytes());
    place.write(
        "m.yaml",
        format!(
            "apiVersion: landfall/v1\nkind: Manifest\nmetadata: {{name: t}}\nimages: [{}/odd:v1]\n",
            upstream.address
        ),
    );
    let store = ["--store", "store"];
    place.ok(&[&["lock", "-f", "m.yaml"][..], &store].concat());
    place.ok(&[&["pull"][..], &store].concat());
    assert_eq!(
        std::fs::read(place.path("store").join(digest.layout_path())).unwrap(),
        layer
    );
    place.ok(&[&["pack", "-o", "b"][..], &store].concat());
    place.ok(&["verify", "b"]);
    place.ok(&["push", "b", "--to", &private.address]);
    let there = http::manifest(&private.address, "odd", "v1");
    assert_eq!((there.status, there.text()), (200, manifest));
    assert_eq!(
        http::get(&private.address, &format!("/v2/odd/blobs/{digest}")).body,
        layer
    );
}

#[test]
fn a_large_blob_uses_several_connections_and_is_resumed_after_a_kill() {
    if !need(&NEEDS) {
        return;
    }
    const M: usize = 1 << 20;
    let place = Place::new();
    let registry = own_registry();
    let images = Images::new(place.path("layout"));
    let big = images.blob(
        OCI_ZSTD,
        &zstd::encode_all(&tarball(&[("big", &noise(1, 80 * M))])[..], 1).unwrap(),
    );
    images.push(
        &registry.address,
        "big",
        "v1",
        &images.image("linux/amd64", std::slice::from_ref(&big)),
    );
    place.write(
        "m.yaml",
        format!(
            "apiVersion: landfall/v1\nkind: Manifest\nmetadata: {{name: t}}\nimages: [\"{}/big:v1\"]\n",
            registry.address
        ),
    );
    place.ok(&["lock", "-f", "m.yaml", "--store", "lock-store"]);
    place.ok(&["pull", "--store", "store"]);
    let content = images.bytes(big["digest"].as_str().unwrap());
    assert_eq!(std::fs::read(in_store(&place, &big)).unwrap(), content);
    let get = |status| {
        registry.requests(&format!(
            "\"GET /v2/big/blobs/{} HTTP/1.1\" {status}",
            big["digest"].as_str().unwrap()
        ))
    };
    assert!(get(200) == 1 && get(206) >= 1, "{}", registry.log());
    assert_eq!(
        std::fs::read_dir(place.path("store/.landfall/partial"))
            .unwrap()
            .count(),
        0
    );

    // as left by a killed run: 10 MiB at the beginning, and 50 MiB from 20 MiB on
    let mut partial = vec![0; 70 * M];
    partial[..10 * M].copy_from_slice(&content[..10 * M]);
    partial[20 * M..].copy_from_slice(&content[20 * M..70 * M]);
    let name = format!("killed/.landfall/partial/sha256-{}", hex(&big));
    place.write(&name, &partial);
    place.write(
        &format!("{name}.ranges"),
        format!("0 {}\n{} {}\n", 10 * M, 20 * M, 70 * M),
    );
    let report = place.json(0, &["pull", "--store", "killed"]);
    assert_eq!(
        std::fs::read(place.path("killed/blobs/sha256").join(hex(&big))).unwrap(),
        content
    );
    let bytes = report["totals"]["bytes_transferred"].as_u64().unwrap() as usize;
    assert!(
        bytes >= content.len() - 60 * M && bytes < content.len() - 50 * M,
        "{bytes} of {}",
        content.len()
    );

    // `mirror` with a store also downloads a blob over several connections
    let to = own_registry();
    let before = get(206);
    place.ok(&[
        "mirror",
        "--lock",
        "landfall.lock",
        "--store",
        "passing",
        "--to",
        &to.address,
    ]);
    assert!(get(206) > before, "{}", registry.log());
    assert!(
        http::get(
            &to.address,
            &format!("/v2/big/blobs/{}", big["digest"].as_str().unwrap())
        )
        .body
            == content
    );

    // if the recorded ranges are wrong, the blob is downloaded again
    place.write(&name.replace("killed", "lied"), vec![0; 70 * M]);
    place.write(
        &format!("{}.ranges", name.replace("killed", "lied")),
        format!("0 {}\n", 70 * M),
    );
    place.ok(&["pull", "--store", "lied"]);
    assert_eq!(
        std::fs::read(place.path("lied/blobs/sha256").join(hex(&big))).unwrap(),
        content
    );
}
