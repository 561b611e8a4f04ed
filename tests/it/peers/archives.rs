//! Archives and layouts that skopeo, crane and regctl wrote, as sources of a pull or a lock without
//! a network.

use crate::support::peers::{is_root, skopeo};
use crate::support::programs::go_build;
use crate::support::{Images, Place, docker_registry, need, netns, run, skip, test_name};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// A folder with the lock of an image, and with archives of the image that other tools wrote. The
/// registry of the image no longer runs.
struct Shop {
    place: Place,
    /// `host:port/team/app:v1`; nothing listens there when the tests pull.
    name: String,
}

impl Shop {
    fn new() -> Shop {
        let place = Place::new();
        let registry = docker_registry();
        let name = format!("{}/team/app:v1", registry.address);
        let images = Images::new(place.path("made"));
        let base = images.layer(&[("etc/os-release", b"ID=stand-in\n")]);
        let children = ["linux/amd64", "linux/arm64"].map(|platform| {
            images.image(
                platform,
                &[
                    base.clone(),
                    images.layer(&[("bin/app", platform.as_bytes())]),
                ],
            )
        });
        images.push(
            &registry.address,
            "team/app",
            "v1",
            &images.index(&children),
        );
        let manifest = format!("apiVersion: landfall/v1\nkind: Manifest\nimages: ['{name}']\n");
        place.write("m.yaml", manifest);
        let shop = Shop { place, name };
        shop.place
            .ok(&["lock", "-f", "m.yaml", "--store", "locked"]);
        for to in [
            "oci:skopeo-oci",
            "oci-archive:skopeo-oci.tar",
            "docker-archive:skopeo-docker.tar",
            "dir:skopeo-dir",
        ] {
            let to = if to.starts_with("oci") {
                format!("{to}:{}", shop.name)
            } else {
                to.to_owned()
            };
            let all: &[&str] = if to.starts_with("docker") {
                &[]
            } else {
                &["--all"]
            };
            let mut copy = skopeo(&shop.place);
            copy.args([
                "copy",
                "--quiet",
                "--src-tls-verify=false",
                "--override-arch",
                "amd64",
            ])
            .args(all);
            run(copy.arg(format!("docker://{}", shop.name)).arg(to));
        }
        for (module, made) in [
            (
                "github.com/google/go-containerregistry/cmd/crane@v0.22.1",
                &[
                    "pull --platform all --format oci NAME crane-oci",
                    "pull --platform linux/amd64 NAME crane.tar",
                ][..],
            ),
            (
                "github.com/regclient/regclient/cmd/regctl@v0.11.7",
                &["--host reg=HOST,tls=disabled image export NAME regctl.tar"],
            ),
        ] {
            match go_build(module) {
                Err(why) => skip(&test_name(), &why),
                Ok(program) => made.iter().for_each(|line| {
                    let words = line.split(' ').map(|word| {
                        word.replace("NAME", &shop.name)
                            .replace("HOST", &registry.address)
                    });
                    run(shop.place.clean(&program).args(words));
                }),
            }
        }
        shop
    }

    fn has(&self, archive: &str) -> bool {
        self.place.path(archive).exists()
    }

    /// Runs landfall in a namespace without a network.
    fn alone(&self, exit: i32, args: &[&str]) -> Value {
        let mut landfall = self.place.command();
        landfall
            .args(args)
            .args(["--output", "json", "--progress", "none"]);
        let mut unshare = Command::new("unshare");
        unshare.arg("--net");
        let ran = netns::within(unshare, &landfall).output().unwrap();
        let out = String::from_utf8_lossy(&ran.stdout);
        let err = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(
            ran.status.code(),
            Some(exit),
            "landfall {}\n{out}\n{err}",
            args.join(" ")
        );
        serde_json::from_str(&out).unwrap()
    }

    /// Asserts that the store has everything that the lock names; all hashes are checked again.
    fn assert_whole(&self, store: &str) {
        let bundle = format!("{store}.tar.zst");
        self.place.ok(&["pack", "--store", store, "-o", &bundle]);
        self.place
            .ok(&["verify", &bundle, "--lock", "landfall.lock"]);
    }
}

fn ready() -> bool {
    need(&[
        "docker-registry",
        "skopeo",
        "unshare",
        "gzip",
        "zstd",
        "tar",
    ]) && (is_root() || {
        skip(&test_name(), "only root can create a network namespace");
        false
    })
}

#[test]
fn a_pull_without_a_network_reads_archives_of_other_tools() {
    if !ready() {
        return;
    }
    let shop = Shop::new();
    let place = &shop.place;
    run(place.clean("sh").args([
        "-c",
        "gzip -k skopeo-oci.tar && zstd -q skopeo-oci.tar -o skopeo-oci.tar.zst",
    ]));
    // a Hauler archive has the image layout at its root, and a Zarf package has it below `images`
    run(place.clean("sh").args([
        "-c",
        "tar -C skopeo-oci -cf - . | zstd -q -o haul.tar.zst
         mkdir -p zarf/components && cp -r skopeo-oci zarf/images && echo 'kind: ZarfPackageConfig' > zarf/zarf.yaml
         tar -C zarf -cf - . | zstd -q -o zarf-package-app-amd64.tar.zst",
    ]));
    let whole = [
        "skopeo-oci",
        "skopeo-oci.tar",
        "skopeo-oci.tar.gz",
        "skopeo-oci.tar.zst",
        "crane-oci",
        "regctl.tar",
        "haul.tar.zst",
        "zarf-package-app-amd64.tar.zst",
    ];
    for archive in whole.into_iter().filter(|archive| shop.has(archive)) {
        let store = format!("{archive}.store");
        let dry = shop.alone(
            0,
            &["pull", "--store", &store, "--from", archive, "--dry-run"],
        );
        let report = shop.alone(0, &["pull", "--store", &store, "--from", archive]);
        assert_eq!(report["status"], "done", "{archive}: {report:#}");
        assert_eq!(report["items"][0]["status"], "done", "{archive}");
        assert_eq!(report["totals"]["requests"], 0, "{archive}");
        for key in ["blobs", "bytes"] {
            assert_eq!(
                report["archives"][0][key], dry["archives"][0][key],
                "{archive}"
            );
        }
        // the index, two manifests, two configs, three layers
        assert_eq!(report["archives"][0]["blobs"], 8, "{archive}");
        shop.assert_whole(&store);
        let again = shop.alone(0, &["pull", "--store", &store, "--from", archive]);
        assert_eq!(
            (&again["items"][0]["status"], &again["archives"][0]["blobs"]),
            (&"present".into(), &0.into())
        );
    }
    // directly into a bundle
    shop.alone(
        0,
        &[
            "pull",
            "--store",
            "none",
            "--bundle",
            "direct.tar.zst",
            "--from",
            "skopeo-oci.tar.zst",
        ],
    );
    place.ok(&["verify", "direct.tar.zst", "--lock", "landfall.lock"]);
}

#[test]
fn content_that_an_archive_lacks_is_reported_and_read_from_another_archive() {
    if !ready() {
        return;
    }
    let shop = Shop::new();
    let place = &shop.place;
    let of = |report: &Value| report["archives"].as_array().unwrap().clone();
    // this archive has layers by their digests, but no manifests; `lock` kept the manifests in
    // the store
    if shop.has("crane.tar") {
        run(place.clean("cp").args(["-r", "locked", "with-crane"]));
        let report = shop.alone(1, &["pull", "--store", "with-crane", "--from", "crane.tar"]);
        // the config and two layers of amd64; the pull fails because the archive lacks arm64
        assert_eq!(of(&report)[0]["blobs"], 3, "{report:#}");
        let report = shop.alone(
            0,
            &[
                "pull",
                "--store",
                "with-crane",
                "--from",
                "crane.tar",
                "--from",
                "skopeo-dir",
            ],
        );
        assert_eq!(of(&report)[0]["blobs"], 0, "{report:#}");
        assert!(of(&report)[1]["blobs"].as_u64().unwrap() > 0, "{report:#}");
        shop.assert_whole("with-crane");
    }
    // this archive has uncompressed layers, which cannot be used
    let report = shop.alone(
        1,
        &[
            "pull",
            "--store",
            "with-docker",
            "--from",
            "skopeo-docker.tar",
        ],
    );
    let left = of(&report)[0]["notUsed"].to_string();
    assert!(
        left.contains("2 layers are unpacked, as docker archives have them"),
        "{report:#}"
    );
    assert!(
        report["items"][0]["reason"]
            .as_str()
            .unwrap()
            .starts_with("source: "),
        "{report:#}"
    );
    // the content of a truncated archive is used as far as it can be read, and the truncation is
    // reported
    let bytes = place.read_bytes("skopeo-oci.tar");
    place.write("cut.tar", &bytes[..bytes.len() / 2]);
    let report = shop.alone(1, &["pull", "--store", "with-cut", "--from", "cut.tar"]);
    assert!(
        of(&report)[0]["notUsed"]
            .to_string()
            .contains("cannot be read to its end"),
        "{report:#}"
    );
    shop.alone(
        0,
        &[
            "pull",
            "--store",
            "with-cut",
            "--from",
            "cut.tar",
            "--from",
            "skopeo-oci",
        ],
    );
    shop.assert_whole("with-cut");
    // not an archive
    for (path, words) in [
        ("m.yaml", "m.yaml is not an archive that landfall can read"),
        ("none", "cannot read none"),
    ] {
        let report = shop.alone(2, &["pull", "--store", "x", "--from", path]);
        assert!(
            report["error"]["message"].as_str().unwrap().contains(words),
            "{report:#}"
        );
    }
}

#[test]
fn an_image_that_only_an_archive_has_can_be_locked() {
    if !ready() {
        return;
    }
    let shop = Shop::new();
    let locked = shop.place.read("landfall.lock");
    for archive in ["skopeo-oci", "skopeo-oci.tar", "regctl.tar"]
        .into_iter()
        .filter(|archive| shop.has(archive))
    {
        let store = format!("{archive}.store");
        std::fs::remove_file(shop.place.path("landfall.lock")).unwrap();
        let lock = ["lock", "-f", "m.yaml", "--store", &store, "--from", archive];
        let report = shop.alone(0, &lock);
        assert_eq!(report["totals"]["requests"], 0, "{archive}");
        let text = shop.place.read("landfall.lock");
        // it is unknown whether the image has signatures, so the lock must not record that it has
        // none
        assert_eq!(text, locked.replace("  referrers: []\n", ""), "{archive}");
        shop.alone(0, &lock);
        assert_eq!(shop.place.read("landfall.lock"), text, "a second lock");
        shop.alone(0, &["pull", "--store", &store, "--from", archive]);
        shop.assert_whole(&store);
        assert!(Path::new(&shop.place.path(archive)).exists());
    }
    // a docker archive has no manifests, so images in it cannot be locked
    std::fs::remove_file(shop.place.path("landfall.lock")).unwrap();
    let run = shop.place.command();
    let mut unshare = Command::new("unshare");
    unshare.arg("--net");
    let mut landfall = run;
    landfall.args([
        "lock",
        "-f",
        "m.yaml",
        "--store",
        "docker.store",
        "--from",
        "skopeo-docker.tar",
        "--progress",
        "plain",
    ]);
    let ran = netns::within(unshare, &landfall).output().unwrap();
    let printed = String::from_utf8_lossy(&ran.stderr);
    assert!(
        ran.status.code() == Some(1) && printed.contains("a docker archive has no manifests"),
        "{printed}"
    );
}
