//! Hostile archives of other tools (`lock --from`), and paths that are not regular files.

use crate::support::images::{Images, sha256};
use crate::support::{Place, run};
use serde_json::json;
use std::collections::BTreeSet;

const MANIFEST: &str = "apiVersion: landfall/v1\nkind: Manifest\n";

#[test]
fn the_indexes_of_an_archive_share_one_size_limit() {
    let place = Place::new();
    let index = format!("{{\"manifests\": []{}}}", " ".repeat(8_000_000));
    let file = std::fs::File::create(place.path("a.tar.zst")).unwrap();
    let mut tar = tar::Builder::new(zstd::Encoder::new(file, 1).unwrap());
    for at in 0..200 {
        let mut header = tar::Header::new_ustar();
        header.set_size(index.len() as u64);
        tar.append_data(&mut header, format!("{at}/index.json"), index.as_bytes())
            .unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap();
    assert!(std::fs::metadata(place.path("a.tar.zst")).unwrap().len() < 1 << 20);
    place.write(
        "m.yaml",
        format!("{MANIFEST}endpoints: [{{host: h.example, port: 443, why: x}}]\n"),
    );
    place.limit_memory(1024);
    let (_, printed) = place.exited(&["lock", "-f", "m.yaml", "--from", "a.tar.zst"]);
    assert!(
        printed.contains("the archive has more than 8388608 bytes of index.json"),
        "{printed}"
    );
    assert!(
        printed.contains("further members that cannot be used are not listed"),
        "{printed}"
    );
}

#[test]
fn the_store_gets_only_the_requested_archive_members() {
    let place = Place::new();
    let mut images = Images::new(place.path("layout"));
    let made = ["app", "other"].map(|name| {
        let image = images.image("linux/amd64", &[images.layer(&[("name", name.as_bytes())])]);
        let index = images.index(&[image]);
        images.tag(&format!("quay.io/team/{name}:v1"), &index);
        index
    });
    let stray = json!({"nobody": "asked for it"}).to_string();
    place.write(
        &format!("layout/blobs/sha256/{}", &sha256(stray.as_bytes())[7..]),
        &stray,
    );
    place.write(
        "m.yaml",
        format!("{MANIFEST}platforms: [linux/amd64]\nimages: ['quay.io/team/app:v1']\n"),
    );
    place.ok(&["lock", "-f", "m.yaml", "--from", "layout", "--store", "s"]);
    let lock = place.read("landfall.lock");
    assert!(lock.contains(made[0]["digest"].as_str().unwrap()), "{lock}");
    let kept: BTreeSet<String> = std::fs::read_dir(place.path("s/blobs/sha256"))
        .unwrap()
        .map(|entry| format!("sha256:{}", entry.unwrap().file_name().to_string_lossy()))
        .collect();
    let wanted = images.closure(&made[0]);
    assert!(
        !kept.is_empty() && kept.is_subset(&wanted),
        "the store has {kept:?}, and the image has {wanted:?}"
    );
}

#[test]
fn a_pipe_or_device_instead_of_a_file_is_refused() {
    let place = Place::new();
    run(place
        .clean("mkfifo")
        .arg("pipe")
        .arg("pipe.yaml")
        .arg("pipe.tgz"));
    place.write(
        "m.yaml",
        format!("{MANIFEST}endpoints: [{{host: h.example, port: 443, why: x}}]\n"),
    );
    place.write("landfall.lock", "version: 1\n");
    for args in [
        &["lock", "-f", "m.yaml", "--from", "pipe"][..],
        &["pull", "--from", "pipe"],
        &["lock", "-f", "pipe.yaml"],
        &["lock", "-f", "m.yaml", "--site", "pipe.yaml"],
        &["ls", "pipe"],
        &["verify", "pipe"],
        &["import", "zarf", "pipe.yaml", "-o", "out"],
        &["doctor", "pipe.yaml"],
        &["discover", "pipe.tgz"],
        &[
            "render",
            "helm-values",
            "pipe.tgz",
            "--to",
            "r.example:5000",
        ],
        &["serve", "pipe", "--listen", "127.0.0.1:0"],
        &["push", "pipe", "--to", "127.0.0.1:1"],
        &["lock", "-f", "/dev/zero"],
    ] {
        let (code, printed) = place.exited(args);
        let is_explained = ["pipe", "device"]
            .iter()
            .any(|what| printed.contains(&format!("{what}, not a regular file")));
        assert!(
            code == 2 && is_explained,
            "landfall {}: {code}: {printed}",
            args.join(" ")
        );
    }
}
