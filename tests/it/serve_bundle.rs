//! `landfall serve BUNDLE` and `landfall export files`. The clients of the server are the tests
//! themselves, skopeo and curl.

use crate::support::http::attempt;
use crate::support::http::{get, manifest, put_blob, put_manifest, request};
use crate::support::images::{OCI_INDEX, OCI_MANIFEST, noise, sha256};
use crate::support::library::{
    Descriptor, Digest, Lock, LockedFile, LockedImage, LockedManifest, LockedSidecar,
    LockedTrimmedIndex, file_repository, media_type, trim_index,
};
use crate::support::peers::{skopeo, skopeo_raw};
use crate::support::{Images, Place, landfall_serve, need, run};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;

const KUBELET: &str = "https://dl.example:8443/v1/a%20b/kubelet";
const HOSTILE: &str = "https://dl.example/x'\"><script>alert(1)</script>?a=1&b=2";
const SITE: &str = "apiVersion: landfall/v1\nkind: Site\nregistry:\n  address: 172.20.0.2:5000/base\n  paths: \
                    {quay.io/x: [main, second]}\n";

fn descriptor(value: &Value) -> Descriptor {
    Descriptor::new(
        value["digest"].as_str().unwrap().parse().unwrap(),
        value["size"].as_u64().unwrap(),
        value["mediaType"].as_str().unwrap(),
    )
}

/// A folder with images and files, their lock, and a store that holds them.
struct Carried {
    place: Place,
    images: Images,
    lock: Lock,
}

impl Carried {
    fn new() -> Carried {
        let place = Place::new();
        let images = Images::new(place.path("store"));
        Carried {
            place,
            images,
            lock: Lock {
                version: 1,
                ..Lock::default()
            },
        }
    }

    /// Adds the manifest `top` to the lock as `name`. If `top` is an index, only its first `keep`
    /// children are locked.
    fn image(&mut self, name: &str, top: &Value, keep: usize) {
        let Descriptor {
            digest,
            size,
            media_type: kind,
        } = descriptor(top);
        let bytes = self.images.bytes(&digest.to_string());
        let document: Value = serde_json::from_slice(&bytes).unwrap();
        let children: Vec<Value> = document["manifests"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let kept = &children[..keep.min(children.len())];
        let alone = [top.clone()];
        let mut blobs = Vec::new();
        for child in if children.is_empty() {
            &alone[..]
        } else {
            kept
        } {
            let child: Value =
                serde_json::from_slice(&self.images.bytes(child["digest"].as_str().unwrap()))
                    .unwrap();
            blobs.push(descriptor(&child["config"]));
            blobs.extend(child["layers"].as_array().unwrap().iter().map(descriptor));
        }
        blobs.sort();
        blobs.dedup();
        let manifests = kept.iter().map(|child| {
            let Descriptor {
                digest,
                size,
                media_type,
            } = descriptor(child);
            LockedManifest {
                digest,
                size,
                media_type,
                platform: Some("linux/amd64".into()),
            }
        });
        let manifests: Vec<LockedManifest> = manifests.collect();
        let keep = manifests
            .iter()
            .map(|manifest| manifest.digest.clone())
            .collect();
        let trimmed = (kept.len() < children.len()).then(|| trim_index(&bytes, &keep).unwrap());
        let top = Descriptor::new(digest, size, kind);
        self.lock.images.push(LockedImage {
            platform: children.is_empty().then(|| "linux/amd64".parse().unwrap()),
            manifests,
            blobs,
            trimmed: trimmed.map(|bytes| LockedTrimmedIndex {
                digest: Digest::sha256(&bytes),
                size: bytes.len() as u64,
            }),
            ..LockedImage::new(name.parse().unwrap(), top)
        });
    }

    fn file(&mut self, url: &str, content: &[u8]) -> &mut LockedFile {
        self.images.blob(media_type::OCTETS, content);
        let digest = Digest::sha256(content);
        let size = content.len() as u64;
        self.lock.files.push(LockedFile::new(url, digest, size));
        self.lock.files.last_mut().unwrap()
    }

    fn pack(&self, more: &[&str]) {
        self.place.write("landfall.lock", self.lock.to_text());
        self.place
            .ok(&[&["pack", "-o", "bundle.tar.zst", "--store", "store"], more].concat());
    }
}

/// Locks `quay.io/x/app:1`, which has a trimmed index; `ghcr.io/x/app:1`; nginx; an image by
/// digest; a file with a second URL, a mode and a checksum file; and a file with a hostile URL.
/// Also returns the index of `quay.io/x/app:1`, and the image that the other names refer to.
fn carried() -> (Carried, Value, Value) {
    let mut carried = Carried::new();
    let base = carried.images.layer(&[("base", &noise(1, 3 << 20))]);
    let amd64 = carried
        .images
        .image("linux/amd64", std::slice::from_ref(&base));
    let arm64 = carried
        .images
        .image("linux/arm64", std::slice::from_ref(&base));
    let index = carried.images.index(&[amd64.clone(), arm64]);
    let other = carried.images.image(
        "linux/amd64",
        &[carried.images.layer(&[("other", b"other")])],
    );
    carried.image("quay.io/x/app:1", &index, 1);
    carried.image("ghcr.io/x/app:1", &other, 0);
    carried.image("docker.io/library/nginx:1.27", &other, 0);
    let pinned = format!(
        "localhost:5001/pinned/tool@{}",
        other["digest"].as_str().unwrap()
    );
    carried.image(&pinned, &other, 0);
    let sum = sha256(b"sum");
    carried.images.blob(media_type::OCTETS, b"sum");
    let kubelet = carried.file(KUBELET, &noise(2, 2_500_000));
    kubelet.also = vec!["https://mirror.example/kubelet.tgz".into()];
    kubelet.mode = Some("0755".into());
    let url = format!("{KUBELET}.sha256");
    kubelet.sidecars = vec![LockedSidecar {
        url,
        digest: sum.parse().unwrap(),
        size: 3,
    }];
    carried.file(HOSTILE, b"hostile");
    (carried, index, other)
}

#[test]
fn images_can_be_pulled_by_all_their_names() {
    let (carried, index, other) = carried();
    carried.pack(&[]);
    carried.place.write("site.yaml", SITE);
    let server = landfall_serve(&carried.place, &["bundle.tar.zst", "--site", "site.yaml"]);
    let holds = format!(
        "serving on http://{} (4 images, 2 files, 0 charts, 0 sets of packages, 0 git repositories, 0 providers)",
        server.address
    );
    assert!(server.log().contains(&holds), "{}", server.log());
    let of_index = index["digest"].as_str();
    let of_other = other["digest"].as_str();
    let digest = |target: &str| {
        let head = request("HEAD", &server.address, target, &[], b"");
        head.header("docker-content-digest").map(str::to_owned)
    };
    let short = &of_other.unwrap()["sha256:".len()..][..12];
    for (target, expected) in [
        ("/v2/base/main/app/manifests/1", of_index),
        ("/v2/base/second/app/manifests/1", of_index),
        ("/v2/quay.io/x/app/manifests/1", of_index),
        ("/v2/x/app/manifests/1?ns=quay.io", of_index),
        ("/v2/x/app/manifests/1?ns=ghcr.io", of_other),
        ("/v2/base/x/app/manifests/1", of_other),
        ("/v2/base/x/app/manifests/1?ns=172.20.0.2:5000", of_other),
        ("/v2/base/library/nginx/manifests/1.27", of_other),
        ("/v2/library/nginx/manifests/1.27?ns=docker.io", of_other),
        // as containerd asks a mirror with a path
        (
            "/v2/base/library/nginx/manifests/1.27?ns=docker.io",
            of_other,
        ),
        ("/v2/base/main/app/manifests/1?ns=quay.io", of_index),
        ("/v2/base/x/app/manifests/1?ns=quay.io", None),
        (
            &format!("/v2/base/pinned/tool/manifests/digest-{short}"),
            of_other,
        ),
        (
            &format!(
                "/v2/localhost_5001/pinned/tool/manifests/{}",
                of_other.unwrap()
            ),
            of_other,
        ),
        ("/v2/x/app/manifests/1?ns=docker.io", None),
        ("/v2/x/app/manifests/1", None),
        ("/v2/quay.io/x/app/manifests/2", None),
        (
            &format!("/v2/quay.io/x/app/manifests/{}", of_other.unwrap()),
            None,
        ),
    ] {
        assert_eq!(digest(target).as_deref(), expected, "{target}");
    }
    // the server serves the locked child and the trimmed index by digest, but not the other child
    let trimmed = carried.lock.images[0]
        .trimmed
        .as_ref()
        .unwrap()
        .digest
        .to_string();
    let there = manifest(&server.address, "quay.io/x/app", &trimmed);
    assert_eq!((there.status, sha256(&there.body)), (200, trimmed));
    let document = manifest(&server.address, "quay.io/x/app", "1").json();
    for (child, status) in [(0, 200), (1, 404)] {
        let child = document["manifests"][child]["digest"].as_str().unwrap();
        assert_eq!(
            manifest(&server.address, "quay.io/x/app", child).status,
            status
        );
    }
    let tags = get(&server.address, "/v2/quay.io/x/app/tags/list").json();
    assert_eq!(tags, json!({"name": "quay.io/x/app", "tags": ["1"]}));
    let catalogue = get(&server.address, "/v2/_catalog").json()["repositories"].to_string();
    assert!(
        catalogue.contains("\"base/main/app\"")
            && catalogue.contains("\"localhost_5001/pinned/tool\"")
    );
    for (method, target) in [
        ("POST", "/v2/a/blobs/uploads/"),
        ("PUT", "/v2/a/manifests/1"),
    ] {
        let answer = request(method, &server.address, target, &[], b"{}");
        assert_eq!(
            (answer.status, answer.text().contains("--writable")),
            (405, true),
            "{}",
            answer.text()
        );
    }
}

#[test]
fn the_page_about_nodes_has_the_default_settings_of_podman_and_crio() {
    let mut carried = Carried::new();
    let image = carried
        .images
        .image("linux/amd64", &[carried.images.layer(&[("a", b"a")])]);
    carried.image("quay.io/x/app:1", &image, 0);
    carried.pack(&[]);
    let server = landfall_serve(&carried.place, &["bundle.tar.zst"]);
    let page = get(&server.address, "/nodes").text();
    let line = "unqualified-search-registries = [&quot;docker.io&quot;]";
    assert_eq!(page.matches(line).count(), 2, "podman and crio: {page}");
}

#[test]
fn an_ambiguous_name_gets_a_404_with_both_full_names() {
    let (carried, ..) = carried();
    carried.pack(&[]);
    let server = landfall_serve(&carried.place, &["bundle.tar.zst"]);
    let answer = get(&server.address, "/v2/x/app/manifests/1");
    let printed = answer.text();
    assert_eq!(answer.status, 404);
    assert!(
        printed.contains("quay.io/x/app:1") && printed.contains("ghcr.io/x/app:1"),
        "{printed}"
    );
    assert_eq!(manifest(&server.address, "ghcr.io/x/app", "1").status, 200);
}

#[test]
fn skopeo_copies_from_a_served_bundle() {
    if !need(&["skopeo", "gzip"]) {
        return;
    }
    let (carried, index, other) = carried();
    carried.pack(&[]);
    let server = landfall_serve(&carried.place, &["bundle.tar.zst"]);
    let raw = skopeo_raw(
        &carried.place,
        &format!("{}/quay.io/x/app:1", server.address),
    );
    assert!(raw == carried.images.bytes(index["digest"].as_str().unwrap()));
    let from = format!("docker://{}/library/nginx:1.27", server.address);
    let to = "dir:back";
    run(skopeo(&carried.place).args(["copy", "--quiet", "--src-tls-verify=false", &from, to]));
    for digest in carried.images.closure(&other) {
        let hex = digest.trim_start_matches("sha256:");
        let name = if digest == other["digest"] {
            "manifest.json"
        } else {
            hex
        };
        let back = std::fs::read(carried.place.path("back").join(name)).unwrap();
        assert!(back == carried.images.bytes(&digest), "{digest}");
    }
    // one platform of a sparse index, as a node pulls it
    let from = format!("docker://{}/quay.io/x/app:1", server.address);
    let args = [
        "--override-os",
        "linux",
        "--override-arch",
        "amd64",
        "copy",
        "--quiet",
    ];
    run(skopeo(&carried.place)
        .args(args)
        .args(["--src-tls-verify=false", &from, "dir:amd64"]));
    // a file can be pulled as an artifact
    let file = &carried.lock.files[0];
    let repository = file_repository(&file.name);
    let artifact = manifest(&server.address, &repository, &file.digest.short(12));
    assert_eq!(artifact.json()["artifactType"], media_type::LANDFALL_FILE);
    let layer = artifact.json()["layers"][0]["digest"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        get(&server.address, &format!("/v2/{repository}/blobs/{layer}")).body
            == noise(2, 2_500_000)
    );
}

#[test]
fn files_can_be_read_by_every_url_and_in_ranges() {
    if !need(&["curl"]) {
        return;
    }
    let (carried, ..) = carried();
    carried.pack(&[]);
    let server = landfall_serve(&carried.place, &["bundle.tar.zst"]);
    let kubelet = noise(2, 2_500_000);
    for path in [
        "dl.example:8443/v1/a%20b/kubelet",
        "dl.example%3A8443/v1/a%20b/kubelet",
        "mirror.example/kubelet.tgz",
    ] {
        // the server's own URL is also a base for files
        for base in ["/files/", "/"] {
            assert!(
                get(&server.address, &format!("{base}{path}")).body == kubelet,
                "{base}{path}"
            );
        }
    }
    let archive = get(&server.address, "/files/mirror.example/kubelet.tgz");
    assert_eq!(archive.header("content-type"), Some("application/gzip"));
    let sidecar = get(
        &server.address,
        "/files/dl.example:8443/v1/a%20b/kubelet.sha256",
    );
    assert_eq!((sidecar.body, sidecar.status), (b"sum".to_vec(), 200));
    for path in [
        "dl.example/v1/a%20b/kubelet",
        "dl.example:8443/v1/a%20b/",
        "dl.example:8443",
        "",
    ] {
        // `/` itself is the page
        for base in ["/files/", "/"]
            .into_iter()
            .filter(|base| *base != "/" || !path.is_empty())
        {
            assert_eq!(
                get(&server.address, &format!("{base}{path}")).status,
                404,
                "{base}{path}"
            );
        }
    }
    let hostile = "/files/dl.example/x'%22%3E%3Cscript%3Ealert(1)%3C/script%3E";
    assert_eq!(get(&server.address, hostile).body, b"hostile");
    assert_eq!(
        get(&server.address, &format!("{hostile}?a=1&b=2")).body,
        b"hostile"
    );
    assert_eq!(get(&server.address, &format!("{hostile}?a=2")).status, 404);

    let url = format!(
        "{}/files/{}",
        server.url(),
        "dl.example:8443/v1/a%20b/kubelet"
    );
    let curl = |args: &[&str]| run(carried.place.clean("curl").arg("-sS").args(args).arg(&url));
    assert!(curl(&["-r", "1048500-1048700"]) == kubelet[1_048_500..=1_048_700]);
    carried.place.write("part", &kubelet[..1_100_000]);
    curl(&["-C", "-", "-o", "part"]);
    assert!(
        std::fs::read(carried.place.path("part")).unwrap() == kubelet,
        "a download is resumed"
    );

    let page = get(&server.address, "/");
    assert_eq!(
        page.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    let text = page.text();
    assert!(
        text.matches("<script>").count() == 1 && text.contains("&lt;script&gt;"),
        "{text}"
    );
    assert!(
        text.contains(&format!("{}/library/nginx:1.27", server.address)),
        "{text}"
    );
    let verified = carried.place.json(0, &["verify", "bundle.tar.zst"]);
    assert!(
        text.contains(verified["bundle"]["digest"].as_str().unwrap()),
        "{text}"
    );
    for link in text
        .split("href=\"")
        .skip(1)
        .map(|rest| &rest[..rest.find('"').unwrap()])
    {
        let link = link.replace("&amp;", "&").replace("&#39;", "'");
        assert_eq!(get(&server.address, &link).status, 200, "{link}");
    }
}

#[test]
fn ranges_over_boundaries_are_right_on_one_connection() {
    if !need(&["curl"]) {
        return;
    }
    let (carried, ..) = carried();
    let kubelet = noise(2, 2_500_000);
    // the boundaries of blocks of 128 KiB and frames of 1 MiB, short ranges, and the whole file
    let ranges = [
        (0, 2_499_999),
        (131_071, 500_000),
        (5, 10),
        (1_048_575, 2_200_001),
        (2_499_990, 2_499_999),
    ];
    for more in [&[][..], &["--volume-size", "1100000"]] {
        carried.pack(more);
        let server = landfall_serve(&carried.place, &["bundle.tar.zst"]);
        let url = format!("{}/files/mirror.example/kubelet.tgz", server.url());
        let mut curl = carried.place.clean("curl");
        for (number, (from, to)) in ranges.iter().enumerate() {
            curl.args([
                "-sSf",
                "-w",
                "%{num_connects} ",
                "-o",
                &format!("part{number}"),
                "-r",
            ]);
            curl.args([&format!("{from}-{to}"), &url, "--next"]);
        }
        curl.args(["-sSf", "-o", "part5", &url]);
        assert_eq!(run(&mut curl), b"1 0 0 0 0 ", "{more:?}");
        for (number, (from, to)) in ranges.into_iter().chain([(0, 2_499_999)]).enumerate() {
            let part = std::fs::read(carried.place.path(format!("part{number}"))).unwrap();
            assert!(part == kubelet[from..=to], "{more:?}: {from}-{to}");
        }
        drop(server);
        // the second round writes volumes instead of this file
        let _ = std::fs::remove_file(carried.place.path("bundle.tar.zst"));
    }
}

#[test]
fn names_of_a_bundle_cannot_be_overwritten_and_other_pushes_are_kept() {
    let (carried, _, other) = carried();
    carried.pack(&[]);
    let args = ["bundle.tar.zst", "--writable", "written"];
    let server = landfall_serve(&carried.place, &args);
    let bytes = carried.images.bytes(other["digest"].as_str().unwrap());
    let headers = [("Content-Type", OCI_MANIFEST)];
    for target in [
        "/v2/quay.io/x/app/manifests/1",
        "/v2/x/app/manifests/1",
        "/v2/library/nginx/manifests/1.27",
    ] {
        let put = request("PUT", &server.address, target, &headers, &bytes);
        assert_eq!(put.status, 403, "{target}: {}", put.text());
        let error = put.json()["errors"][0].clone();
        assert_eq!(error["code"], "DENIED");
        assert!(
            error["message"]
                .as_str()
                .unwrap()
                .contains("cannot be overwritten")
        );
    }
    let digest = other["digest"].as_str().unwrap();
    let tagged = format!("/v2/library/nginx/manifests/{digest}?tag=1.27");
    assert_eq!(
        request("PUT", &server.address, &tagged, &headers, &bytes).status,
        403,
        "a tag in a parameter cannot be overwritten either"
    );

    // the blobs of the manifest are in the bundle, so none needs to be uploaded
    put_manifest(
        &server.address,
        "library/nginx",
        "mine",
        OCI_MANIFEST,
        &bytes,
    );
    put_manifest(&server.address, "team/copy", "v1", OCI_MANIFEST, &bytes);
    let tags = get(&server.address, "/v2/library/nginx/tags/list").json();
    assert_eq!(tags["tags"], json!(["1.27", "mine"]));
    drop(server);
    let server = landfall_serve(&carried.place, &["--writable", "written"]);
    for blob in carried.images.closure(&other) {
        let there = match blob == digest {
            true => manifest(&server.address, "team/copy", "v1"),
            false => get(&server.address, &format!("/v2/team/copy/blobs/{blob}")),
        };
        assert!(
            there.body == carried.images.bytes(&blob),
            "without the bundle: {blob}"
        );
    }
}

#[test]
fn a_bundle_takes_precedence_over_pushed_content_and_the_log_says_so() {
    let (carried, _, other) = carried();
    carried.pack(&[]);
    let server = landfall_serve(&carried.place, &["--writable", "written"]);
    let index =
        br#"{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}"#;
    put_manifest(&server.address, "library/nginx", "1.27", OCI_INDEX, index);
    put_manifest(&server.address, "library/nginx", "mine", OCI_INDEX, index);
    drop(server);
    let server = landfall_serve(&carried.place, &["bundle.tar.zst", "--writable", "written"]);
    let there = manifest(&server.address, "library/nginx", "1.27");
    assert_eq!(
        there.header("docker-content-digest"),
        other["digest"].as_str()
    );
    assert_eq!(
        manifest(&server.address, "library/nginx", "mine").body,
        index
    );
    assert!(
        server
            .log()
            .contains("library/nginx:1.27: the pushed image is hidden"),
        "{}",
        server.log()
    );
    assert!(!server.log().contains("mine"), "{}", server.log());
}

#[test]
fn the_ns_parameter_of_containerd_finds_pushed_content() {
    let place = Place::new();
    let server = landfall_serve(&place, &["--writable", "written"]);
    put_blob(&server.address, "x", &sha256(b"{}"), b"{}");
    let index =
        br#"{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}"#;
    let other =
        br#"{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests": []}"#;
    put_manifest(&server.address, "library/nginx", "1", OCI_INDEX, index);
    put_manifest(
        &server.address,
        "quay.io/library/nginx",
        "1",
        OCI_INDEX,
        other,
    );
    assert_eq!(
        get(
            &server.address,
            "/v2/library/nginx/manifests/1?ns=docker.io"
        )
        .body,
        index
    );
    assert_eq!(
        get(&server.address, "/v2/library/nginx/manifests/1?ns=quay.io").body,
        other
    );
}

#[test]
fn a_partial_bundle_is_refused_without_allow_partial_and_lists_what_it_lacks() {
    let (carried, _, other) = carried();
    let config: Value =
        serde_json::from_slice(&carried.images.bytes(other["digest"].as_str().unwrap())).unwrap();
    let config = config["config"]["digest"].as_str().unwrap().to_owned();
    std::fs::remove_file(
        carried
            .place
            .path("store")
            .join("blobs")
            .join(config.replace(':', "/")),
    )
    .unwrap();
    carried.place.write("landfall.lock", carried.lock.to_text());
    let pack = [
        "pack",
        "-o",
        "bundle.tar.zst",
        "--store",
        "store",
        "--allow-partial",
    ];
    carried.place.json(3, &pack);
    let refused = carried
        .place
        .landfall()
        .args(["serve", "bundle.tar.zst"])
        .assert()
        .code(4);
    let printed = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
    assert!(
        printed.contains("--allow-partial") && printed.contains("ghcr.io/x/app:1"),
        "{printed}"
    );
    let server = landfall_serve(&carried.place, &["bundle.tar.zst", "--allow-partial"]);
    assert_eq!(manifest(&server.address, "quay.io/x/app", "1").status, 200);
    let page = get(&server.address, "/").text();
    assert!(
        page.contains("is partial") && page.contains("<li>image ghcr.io/x/app:1</li>"),
        "{page}"
    );
    assert_eq!(
        get(&server.address, &format!("/v2/x/app/blobs/{config}")).status,
        404
    );

    carried.place.write(
        "site.yaml",
        "apiVersion: landfall/v1\nkind: Site\nsigners: allowed\n",
    );
    carried.place.write(
        "allowed",
        "ops@example.com ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDGUKhigbVqmgw8SSL7kPIWI8eZG+v63vgZZnnEFKJbY\n",
    );
    let args = [
        "serve",
        "bundle.tar.zst",
        "--allow-partial",
        "--site",
        "site.yaml",
    ];
    let refused = carried.place.landfall().args(args).assert().code(4);
    assert!(String::from_utf8_lossy(&refused.get_output().stderr).contains("not signed"));
}

#[test]
fn a_damaged_bundle_never_sends_wrong_bytes() {
    let (carried, ..) = carried();
    carried.pack(&[]);
    let kubelet = noise(2, 2_500_000);
    let path = carried.place.path("bundle.tar.zst");
    let mut bundle = std::fs::read(&path).unwrap();
    let window = &kubelet[2_000_000..2_000_032];
    let at = bundle
        .windows(32)
        .position(|bytes| bytes == window)
        .expect("noise is stored uncompressed");
    bundle[at] ^= 1;
    std::fs::write(&path, bundle).unwrap();
    let server = landfall_serve(&carried.place, &["bundle.tar.zst"]);
    let ask = |headers: &[(&str, &str)]| {
        attempt(
            "GET",
            &server.address,
            "/files/mirror.example/kubelet.tgz",
            headers,
            b"",
        )
    };
    for range in [
        &[][..],
        &[("Range", "bytes=2000000-2000031")],
        &[("Range", "bytes=0-31")],
    ] {
        let answer = ask(range).unwrap();
        assert_eq!(answer.status, 500, "{range:?}");
        assert!(
            answer.text().contains("damaged"),
            "{range:?}: {}",
            answer.text()
        );
    }
    assert!(
        server
            .log()
            .contains("/files/mirror.example/kubelet.tgz: sha256:"),
        "{}",
        server.log()
    );
    let sidecar = get(
        &server.address,
        "/files/dl.example:8443/v1/a%20b/kubelet.sha256",
    );
    assert_eq!(
        (sidecar.status, sidecar.body),
        (200, b"sum".to_vec()),
        "undamaged content is still served"
    );
}

#[test]
fn files_are_exported_for_a_web_server_from_bundle_or_store() {
    let (carried, ..) = carried();
    carried.pack(&[]);
    let place = &carried.place;
    let dry = place.json(
        0,
        &[
            "export",
            "files",
            "-o",
            "www",
            "--bundle",
            "bundle.tar.zst",
            "--dry-run",
        ],
    );
    assert_eq!(
        (&dry["totals"]["skipped"], place.path("www").exists()),
        (&json!(3), false)
    );
    for (out, from) in [
        ("www", ["--bundle", "bundle.tar.zst"]),
        ("www2", ["--store", "store"]),
    ] {
        let args = ["export", "files", "-o", out, from[0], from[1]];
        let done = place.json(0, &args);
        assert_eq!(done["totals"]["done"], 3, "{done}");
        let kubelet = place.path(out).join("dl.example:8443/v1/a b/kubelet");
        assert!(std::fs::read(&kubelet).unwrap() == noise(2, 2_500_000));
        assert_eq!(
            std::fs::metadata(&kubelet).unwrap().permissions().mode() & 0o777,
            0o755
        );
        assert!(
            std::fs::read(place.path(out).join("mirror.example/kubelet.tgz")).unwrap()
                == noise(2, 2_500_000)
        );
        assert_eq!(
            std::fs::read(kubelet.with_extension("sha256")).unwrap(),
            b"sum"
        );
        let again = place.json(0, &args);
        assert_eq!(
            (
                &again["totals"]["present"],
                &again["totals"]["bytes_transferred"]
            ),
            (&json!(3), &json!(0))
        );
    }
    std::fs::remove_file(
        place
            .path("store/blobs/sha256")
            .join(&sha256(b"sum")["sha256:".len()..]),
    )
    .unwrap();
    let lost = place.json(3, &["export", "files", "-o", "www3", "--store", "store"]);
    assert_eq!(
        (&lost["totals"]["missing"], &lost["totals"]["done"]),
        (&json!(1), &json!(2))
    );
}
