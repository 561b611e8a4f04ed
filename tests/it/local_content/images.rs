//! Images of archives that only this machine has: OCI layouts and archives, and docker archives.

use super::manifest;
use crate::support::http;
use crate::support::images::{Images, gzip, sha256, tarball};
use crate::support::object_store::ObjectStore;
use crate::support::peers::{landfall_serve, own_registry, skopeo};
use crate::support::{Place, need, run};
use serde_json::{Value, json};
use std::fs;

const NAME: &str = "registry.example.com/team/app:1.4";

/// A manifest with the image `NAME` of this archive.
fn one_image(place: &Place, archive: &str) {
    let body = format!("images:\n- {{archive: {archive}, ref: \"{NAME}\"}}\n");
    manifest(place, "m.yaml", &body);
}

/// An OCI layout in the folder `build/layout`, with an image for two platforms.
fn layout(place: &Place, name: &str) -> (Images, Value) {
    let mut images = Images::new(place.path("build/layout"));
    let children = ["linux/amd64", "linux/arm64"].map(|platform| {
        let layer = images.layer(&[("bin/app", platform.as_bytes())]);
        images.image(platform, &[layer])
    });
    let index = images.index(&children);
    images.tag(name, &index);
    (images, index)
}

/// A docker archive: the files of `docker save` before Docker 25, and of `podman save`.
fn docker_archive(place: &Place, layers: &[&[u8]], lies: bool) -> Vec<u8> {
    let diff_ids: Vec<String> = layers.iter().map(|layer| sha256(layer)).collect();
    let config = json!({
        "architecture": "amd64", "os": "linux", "config": {"Cmd": ["/bin/app"]},
        "rootfs": {"type": "layers", "diff_ids": diff_ids},
    });
    let config = config.to_string();
    let config_path = format!("{}.json", &sha256(config.as_bytes())["sha256:".len()..]);
    let paths: Vec<String> = (0..layers.len())
        .map(|at| format!("{at}/layer.tar"))
        .collect();
    let list = json!([{"Config": config_path, "RepoTags": ["localhost/app:dev"], "Layers": paths}]);
    let list = list.to_string();
    let mut files: Vec<(&str, &[u8])> = vec![
        (&config_path, config.as_bytes()),
        ("manifest.json", list.as_bytes()),
    ];
    for (path, layer) in paths.iter().zip(layers) {
        files.push((path, if lies { b"other" } else { layer }));
    }
    let archive = tarball(&files);
    place.write("build/app.tar", &archive);
    archive
}

#[test]
fn an_image_of_an_oci_layout_is_locked_and_delivered_without_a_registry() {
    let place = Place::new();
    let (images, index) = layout(&place, "1.4");
    one_image(&place, "build/layout/");
    let hosts = place.json(0, &["egress", "-f", "m.yaml"]);
    assert_eq!(hosts["hosts"], json!([]), "{hosts}");
    let locked = place.json(0, &["lock", "-f", "m.yaml"]);
    assert_eq!(locked["totals"]["requests"], 0, "{locked}");
    let lock = place.read("landfall.lock");
    assert!(lock.contains(&format!("- name: {NAME}\n")), "{lock}");
    assert!(lock.contains("  archive: build/layout\n"), "{lock}");
    assert!(lock.contains(index["digest"].as_str().unwrap()), "{lock}");
    let pulled = place.json(0, &["pull"]);
    assert_eq!(pulled["items"][0]["status"], "present", "{pulled}");
    assert_eq!(place.json(0, &["egress"])["hosts"], json!([]));

    // another machine reads the layout next to the lock
    let pulled = place.json(0, &["pull", "--store", "new"]);
    assert_eq!(pulled["items"][0]["status"], "done", "{pulled}");
    assert_eq!(pulled["totals"]["requests"], 0, "{pulled}");
    place.ok(&["pull", "--bundle", "b.tar.zst", "--store", "none"]);
    place.ok(&["verify", "b.tar.zst", "--lock", "landfall.lock"]);
    let registry = own_registry();
    place.ok(&["push", "b.tar.zst", "--to", &registry.address]);
    let served = http::manifest(&registry.address, "team/app", "1.4");
    assert_eq!(served.body, images.bytes(index["digest"].as_str().unwrap()));
    let server = landfall_serve(&place, &["b.tar.zst"]);
    let by_host = http::manifest(&server.address, "registry.example.com/team/app", "1.4");
    assert_eq!(by_host.body, served.body);
    let pod =
        "kind: Pod\nspec: {containers: [{name: a, image: 'registry.example.com/team/app:1.4'}]}\n";
    place.write("pod.yaml", pod);
    let to = [
        "rewrite",
        "pod.yaml",
        "--to",
        "172.20.0.2:5000",
        "--lock",
        "landfall.lock",
    ];
    assert!(place.ok(&to).contains("172.20.0.2:5000/team/app:1.4"));

    // an unchanged archive keeps the lock; a changed one is a changed entry
    place.ok(&["lock", "-f", "m.yaml", "--check"]);
    place.ok(&["lock", "-f", "m.yaml"]);
    assert_eq!(place.read("landfall.lock"), lock);
    fs::remove_dir_all(place.path("build/layout")).unwrap();
    let mut other = Images::new(place.path("build/layout"));
    let layer = other.layer(&[("bin/app", b"new")]);
    let image = other.image("linux/amd64", &[layer]);
    other.tag("1.4", &image);
    place.printed(4, &["lock", "-f", "m.yaml", "--check"]);
    let report = place.json(1, &["pull", "--store", "third"]);
    let reason = report["items"][0]["reason"].as_str().unwrap();
    assert!(
        reason.contains("build/layout") && reason.contains("landfall lock"),
        "{reason}"
    );
    place.ok(&["lock", "-f", "m.yaml"]);
    assert!(
        place
            .read("landfall.lock")
            .contains(image["digest"].as_str().unwrap())
    );
}

#[test]
fn an_oci_archive_is_read_compressed_or_not_and_by_name_if_it_has_several_images() {
    let place = Place::new();
    let (mut images, index) = layout(&place, "registry.example.com/team/app:1.4");
    let layer = images.layer(&[("other", b"other")]);
    let other = images.image("linux/amd64", &[layer]);
    images.tag("registry.example.com/team/other:1", &other);
    let tar = |target: &str, option: &str| {
        let folder = place.path("build/layout");
        let mut tar = place.clean("tar");
        tar.arg("-C").arg(folder).args([option, target, "."]);
        run(&mut tar);
    };
    let plain = place.path("build/app.tar");
    tar(plain.to_str().unwrap(), "-cf");
    place.write("build/app.tar.gz", gzip(&place.read_bytes("build/app.tar")));
    for archive in ["build/app.tar", "build/app.tar.gz"] {
        one_image(&place, archive);
        place.ok(&[
            "lock",
            "-f",
            "m.yaml",
            "--store",
            archive.replace('/', "-").as_str(),
        ]);
        let lock = place.read("landfall.lock");
        assert!(lock.contains(index["digest"].as_str().unwrap()), "{lock}");
        place.json(0, &["pull", "--store", "new"]);
        fs::remove_dir_all(place.path("new")).unwrap();
    }
    // only one platform
    let body = format!(
        "images:\n- {{archive: build/app.tar, ref: \"{NAME}\", platforms: [linux/arm64]}}\n"
    );
    manifest(&place, "m.yaml", &body);
    place.ok(&["lock", "-f", "m.yaml"]);
    assert!(place.read("landfall.lock").contains("  trimmed:"));

    let body = "images:\n- {archive: build/app.tar, ref: \"registry.example.com/team/third:1\"}\n";
    manifest(&place, "m.yaml", body);
    let text = place.printed(1, &["lock", "-f", "m.yaml"]);
    assert!(
        text.contains("several images") && text.contains("team/other:1"),
        "{text}"
    );
}

#[test]
fn an_image_of_a_docker_archive_gets_a_manifest() {
    let place = Place::new();
    let layers = [
        tarball(&[("bin/app", b"app")]),
        tarball(&[("etc/app", b"conf")]),
    ];
    let layers: Vec<&[u8]> = layers.iter().map(Vec::as_slice).collect();
    // docker writes equal layers once
    docker_archive(&place, &[layers[0], layers[1], layers[0]], false);
    let entry = format!("{{archive: build/app.tar, ref: \"{NAME}\", platforms: [linux/amd64]}}");
    manifest(&place, "m.yaml", &format!("images:\n- {entry}\n"));
    place.ok(&["lock", "-f", "m.yaml"]);
    let lock = place.read("landfall.lock");
    assert!(lock.contains("  platform: linux/amd64\n"), "{lock}");
    for layer in &layers {
        assert!(lock.contains(&sha256(layer)), "{lock}");
    }
    place.ok(&["pull", "--store", "new"]);
    place.ok(&["pack", "--store", "new", "-o", "b.tar.zst"]);
    let server = landfall_serve(&place, &["b.tar.zst"]);
    let served: Value = http::manifest(&server.address, "team/app", "1.4").json();
    let sizes = served["layers"].as_array().unwrap();
    assert_eq!(sizes.len(), 3, "{served}");
    assert_eq!(sizes[0]["digest"], sizes[2]["digest"], "{served}");
    let blob = format!("/v2/team/app/blobs/{}", sha256(layers[1]));
    assert_eq!(http::get(&server.address, &blob).body, layers[1]);
}

/// Neither an object store nor a registry takes the blobs in the order of the archive.
#[test]
fn an_archived_image_is_pulled_into_an_object_store_and_mirrored_to_a_registry() {
    let place = Place::new();
    let (_, index) = layout(&place, "1.4");
    let layers = [
        tarball(&[("bin/app", &vec![7; 700_000])]),
        tarball(&[("etc/app", b"conf")]),
    ];
    let compressed = tarball(&[("bin/app", b"compressed")]);
    let archive = docker_archive(&place, &[&compressed], false);
    place.write("build/app.tar.gz", gzip(&archive));
    docker_archive(&place, &[&layers[0], &layers[1]], false);
    let body = "images:\n\
                - {archive: build/layout, ref: \"registry.example.com/team/app:oci\"}\n\
                - {archive: build/app.tar, ref: \"registry.example.com/team/app:tar\"}\n\
                - {archive: build/app.tar.gz, ref: \"registry.example.com/team/app:gz\"}\n\
                files:\n- path: build/app.tar.gz\n";
    manifest(&place, "m.yaml", body);
    place.ok(&["lock", "-f", "m.yaml"]);
    place.ok(&["pull"]);
    place.ok(&["pack", "-o", "b.tar.zst"]);
    let store = ObjectStore::start();
    store.introduce_to(&place);
    let pull = ["pull", "--store", "s3://mirror/x"];
    let pulled = place.json(0, &pull);
    for item in pulled["items"].as_array().unwrap() {
        assert_eq!(item["status"], "done", "{pulled}");
    }
    place.ok(&["pack", "--store", "s3://mirror/x", "-o", "objects.tar.zst"]);
    assert!(place.read_bytes("objects.tar.zst") == place.read_bytes("b.tar.zst"));
    assert_eq!(place.json(0, &pull)["totals"]["present"], 4);

    let registry = own_registry();
    for (more, prefix) in [(&[][..], "a"), (&["--store", "kept"], "b")] {
        let to = format!("{}/{prefix}", registry.address);
        let mirror = ["mirror", "--lock", "landfall.lock", "--to", &to];
        let mirrored = place.json(0, &[&mirror[..], more].concat());
        assert_eq!(mirrored["status"], "done", "{mirrored}");
        let served = http::manifest(&registry.address, &format!("{prefix}/team/app"), "oci");
        assert_eq!(sha256(&served.body), index["digest"].as_str().unwrap());
        for (tag, content) in [("tar", &layers[0]), ("gz", &compressed)] {
            let repository = format!("{prefix}/team/app");
            let served: Value = http::manifest(&registry.address, &repository, tag).json();
            let layer = served["layers"][0]["digest"].as_str().unwrap();
            let blob = format!("/v2/{repository}/blobs/{layer}");
            assert_eq!(http::get(&registry.address, &blob).body, *content);
        }
    }

    // an archive that is gone, another one, and one with other bytes in it
    let lost = |exit: i32, new: &str| {
        place.json(exit, &["pull", "--store", &format!("s3://mirror/{new}")])
    };
    let why = |report: &Value, name: &str| {
        let items = report["items"].as_array().unwrap();
        let item = items
            .iter()
            .find(|item| item["name"].as_str().unwrap().ends_with(name));
        item.unwrap()["reason"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    fs::rename(place.path("build/app.tar"), place.path("build/old.tar")).unwrap();
    let report = lost(3, "y");
    let reason = why(&report, ":tar");
    assert!(
        reason.contains("build/app.tar next to the lock cannot be read"),
        "{reason}"
    );
    docker_archive(&place, &[&layers[1]], false);
    let reason = why(&lost(3, "z"), ":tar");
    assert!(
        reason.contains("build/app.tar changed after it was locked")
            && reason.contains("landfall lock"),
        "{reason}"
    );
    let layer = fs::read_dir(place.path("build/layout/blobs/sha256")).unwrap();
    let layer = layer.map(|entry| entry.unwrap().path()).next().unwrap();
    let mut bytes = fs::read(&layer).unwrap();
    bytes[5] ^= 1;
    fs::write(&layer, bytes).unwrap();
    let report = lost(3, "w");
    let reason = why(&report, ":oci");
    assert!(reason.contains("wrong bytes"), "{reason}");
}

#[test]
fn archives_that_skopeo_writes_are_read() {
    if !need(&["skopeo"]) {
        return;
    }
    let place = Place::new();
    let mut images = Images::new(place.path("layout"));
    let layers = ["one", "two"].map(|text| images.layer(&[(text, text.as_bytes())]));
    let image = images.image("linux/amd64", &layers);
    images.tag("x", &image);
    fs::create_dir(place.path("build")).unwrap();
    let mut body = String::from("images:\n");
    for (number, format) in ["docker-archive", "oci-archive", "oci"].iter().enumerate() {
        let target = format!("{format}:build/{number}:app:dev");
        run(skopeo(&place).args(["copy", "--quiet", "oci:layout:x", &target]));
        let entry = format!("{{archive: build/{number}, ref: \"example.com/app:{format}\"}}");
        body += &format!("- {entry}\n");
    }
    manifest(&place, "m.yaml", &body);
    place.ok(&["lock", "-f", "m.yaml"]);
    let lock = place.read("landfall.lock");
    let digest = image["digest"].as_str().unwrap();
    assert_eq!(
        lock.matches(&format!("  digest: {digest}\n")).count(),
        2,
        "{lock}"
    );
    place.ok(&["pull", "--store", "new"]);
    place.ok(&["pack", "--store", "new", "-o", "b.tar.zst"]);
    let server = landfall_serve(&place, &["b.tar.zst"]);
    // skopeo reads the image with the generated manifest, layer by layer
    let from = format!("docker://{}/app:docker-archive", server.address);
    let insecure = [
        "copy",
        "--quiet",
        "--src-tls-verify=false",
        &from,
        "oci:back",
    ];
    run(skopeo(&place).args(insecure));
}

#[test]
fn archives_that_lie_are_refused() {
    let place = Place::new();
    let lock = |exit: i32| place.printed(exit, &["lock", "-f", "m.yaml"]);
    let layer = tarball(&[("a", b"a")]);
    docker_archive(&place, &[&layer], true);
    one_image(&place, "build/app.tar");
    let text = lock(1);
    assert!(text.contains("its config lists the layer"), "{text}");

    // an index that names a manifest that is not there, a blob that is not there or has other bytes
    for (what, why) in [
        ("manifest", "it lacks sha256:"),
        ("layer", "it lacks sha256:"),
        ("bytes", "received wrong bytes"),
        ("size", "expected"),
    ] {
        let _ = fs::remove_dir_all(place.path("build/layout"));
        let mut images = Images::new(place.path("build/layout"));
        let layer = images.layer(&[("bin/app", what.as_bytes())]);
        let image = images.image("linux/amd64", std::slice::from_ref(&layer));
        images.tag(NAME, &image);
        let path = |descriptor: &Value| {
            let digest = descriptor["digest"].as_str().unwrap().replace(':', "/");
            place.path("build/layout/blobs").join(digest)
        };
        match what {
            "manifest" => fs::remove_file(path(&image)).unwrap(),
            "layer" => fs::remove_file(path(&layer)).unwrap(),
            "bytes" => {
                let mut bytes = fs::read(path(&layer)).unwrap();
                bytes[20] ^= 1;
                fs::write(path(&layer), bytes).unwrap();
            }
            _ => fs::write(path(&layer), "short").unwrap(),
        }
        one_image(&place, "build/layout");
        let text = lock(1);
        assert!(text.contains(why), "{what}: {text}");
        assert!(!place.path("landfall.lock").exists(), "{what}");
    }

    for (content, why) in [("no archive", "not an archive"), ("", "not an archive")] {
        place.write("build/app.tar", content);
        one_image(&place, "build/app.tar");
        let text = lock(1);
        assert!(text.contains(why), "{text}");
    }
    place.write("build/app.tar", tarball(&[("readme", b"x")]));
    assert!(lock(1).contains("neither the index.json"), "{}", lock(1));
    place.write(
        "build/app.tar",
        tarball(&[("index.json", b"{\"manifests\": []}")]),
    );
    assert!(lock(1).contains("it has no image"), "{}", lock(1));
    one_image(&place, "../app.tar");
    assert!(lock(2).contains("not a path below this manifest"));
    let body = format!("images:\n- {{archive: build/app.tar, ref: \"{NAME}\", update: patch}}\n");
    manifest(&place, "m.yaml", &body);
    assert!(lock(2).contains("has no newer versions"));
}

#[test]
fn a_rule_that_requires_a_signature_refuses_an_image_of_an_archive() {
    let place = Place::new();
    layout(&place, NAME);
    let body = format!(
        "images:\n- {{archive: build/layout, ref: \"{NAME}\"}}\nverify:\n\
         - {{match: \"registry.example.com/*\", keys: [key.pub]}}\n"
    );
    place.write(
        "key.pub",
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n\
         -----END PUBLIC KEY-----\n",
    );
    manifest(&place, "m.yaml", &body);
    let text = place.printed(1, &["lock", "-f", "m.yaml"]);
    assert!(text.contains("an image of an archive has none"), "{text}");
}
