//! `export images`: the names, platforms and bytes of an archive, and exports that write no file.

use crate::interrupt::has_open;
use crate::support::images::{OCI_CONFIG, OCI_GZIP, OCI_MANIFEST, OCI_ZSTD, digest, noise, sha256};
use crate::support::peers::{Server, own_registry};
use crate::support::{Guard, Images, Place, need};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::process::Stdio;

pub(crate) const NEEDS: [&str; 1] = ["gzip"];

/// A store with images, and their lock.
pub(crate) struct Site {
    pub(crate) place: Place,
    pub(crate) images: Images,
    pub(crate) upstream: Server,
    /// An image with three platforms, two of which are locked.
    pub(crate) app: Value,
    /// An image with only the two locked platforms.
    pub(crate) tool: Value,
    /// An image with one platform, without an index.
    pub(crate) plain: Value,
}

/// The names of the members of a tar in order, and the content of each member by its name.
pub(crate) fn members(bytes: &[u8]) -> (Vec<String>, BTreeMap<String, Vec<u8>>) {
    let mut order = Vec::new();
    let mut all = BTreeMap::new();
    for entry in tar::Archive::new(bytes).entries().unwrap() {
        let mut entry = entry.unwrap();
        let name = String::from_utf8(entry.path_bytes().into_owned()).unwrap();
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        order.push(name.clone());
        assert!(
            all.insert(name.clone(), content).is_none(),
            "the archive has {name} twice"
        );
    }
    (order, all)
}

impl Site {
    pub(crate) fn new() -> Site {
        let place = Place::new();
        let upstream = own_registry();
        let images = Images::new(place.path("layout"));
        let base = images.layer(&[("etc/os-release", b"ID=test\n")]);
        let image = |platform: &str, text: &str| {
            let own = images.layer(&[("bin/app", format!("{text} for {platform}").as_bytes())]);
            images.image(platform, &[base.clone(), own.clone(), own])
        };
        let amd64 = image("linux/amd64", "app");
        let attestation = images.attestation(&amd64);
        let app = images.index(&[
            amd64,
            image("linux/arm64", "app"),
            image("linux/s390x", "app"),
            attestation,
        ]);
        let tool = images.index(&[image("linux/amd64", "tool"), image("linux/arm64", "tool")]);
        let plain = images.docker_image(
            "linux/amd64",
            &[images.docker_layer(&[("bin/app", b"plain for linux/amd64")])],
        );
        for (name, descriptor) in [("app", &app), ("tool", &tool), ("plain", &plain)] {
            images.push(&upstream.address, &format!("team/{name}"), "v1", descriptor);
        }
        let site = Site {
            place,
            images,
            upstream,
            app,
            tool,
            plain,
        };
        site.lock(&format!(
            "- REG/team/app:v1\n- REG/team/tool@{}\n- {{ref: REG/team/plain:v1, platforms: [linux/amd64]}}\n",
            site.tool["digest"].as_str().unwrap()
        ));
        site
    }

    /// Locks and pulls these images.
    fn lock(&self, images: &str) {
        let text = format!(
            "apiVersion: landfall/v1\nkind: Manifest\nmetadata: {{name: t}}\nplatforms: [linux/amd64, linux/arm64]\n\
             images:\n{}",
            images.replace("REG", &self.upstream.address)
        );
        self.place.write("m.yaml", text);
        self.place.ok(&["lock", "-f", "m.yaml", "--store", "store"]);
        self.place.ok(&["pull", "--store", "store"]);
    }

    pub(crate) fn export(&self, exit: i32, args: &[&str]) -> Value {
        self.place.json(
            exit,
            &[&["export", "images", "--store", "store"], args].concat(),
        )
    }

    /// The message of an export that ends with this code.
    fn refused(&self, exit: i32, args: &[&str]) -> String {
        self.export(exit, args)["error"]["message"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    /// The members of the archive at `name`, and the entries of its `index.json` by image name.
    fn archive(&self, name: &str) -> (BTreeMap<String, Vec<u8>>, BTreeMap<String, Value>) {
        let (_, files) = members(&self.place.read_bytes(name));
        let index: Value = serde_json::from_slice(&files["index.json"]).unwrap();
        let named = index["manifests"].as_array().unwrap().iter().map(|entry| {
            let name = entry["annotations"]["io.containerd.image.name"]
                .as_str()
                .unwrap();
            assert_eq!(
                entry["annotations"]["org.opencontainers.image.ref.name"],
                name
            );
            (name.to_owned(), entry.clone())
        });
        let named = named.collect();
        (files, named)
    }

    fn reg(&self, rest: &str) -> String {
        format!("{}/{rest}", self.upstream.address)
    }
}

/// The paths of a manifest and of everything below it in an archive. Asserts that all of it exists.
fn closure(files: &BTreeMap<String, Vec<u8>>, digest: &str) -> BTreeSet<String> {
    let path = format!("blobs/{}", digest.replace(':', "/"));
    let bytes = files
        .get(&path)
        .unwrap_or_else(|| panic!("{digest} is not in the archive"));
    assert_eq!(sha256(bytes), digest);
    let mut all = BTreeSet::from([path]);
    let document: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let lists = [&document["manifests"], &document["layers"]];
    let children = lists
        .into_iter()
        .filter_map(Value::as_array)
        .flatten()
        .chain(document.get("config"));
    let children: Vec<_> = children
        .filter_map(|child| child["digest"].as_str())
        .collect();
    all.extend(children.into_iter().flat_map(|child| closure(files, child)));
    all
}

#[test]
fn an_archive_has_every_name_and_complete_indexes() {
    if !need(&NEEDS) {
        return;
    }
    let site = Site::new();
    let report = site.export(0, &["-o", "images.tar", "--to", "172.20.0.2:5000/pre"]);
    let (files, named) = site.archive("images.tar");
    let app = digest(&site.app);
    let tool = digest(&site.tool);
    let plain = digest(&site.plain);
    let mut wanted = BTreeSet::new();
    for registry in [site.upstream.address.as_str(), "172.20.0.2:5000/pre"] {
        let tag = format!("digest-{}", &tool["sha256:".len()..][..12]);
        for (name, tag, digest) in [
            ("app", "v1", app),
            ("tool", &tag, tool),
            ("plain", "v1", plain),
        ] {
            wanted.insert(format!("{registry}/team/{name}:{tag}"));
            wanted.insert(format!("{registry}/team/{name}@{digest}"));
        }
    }
    assert_eq!(named.keys().cloned().collect::<BTreeSet<_>>(), wanted);
    // complete images are unchanged; children that are not locked are removed from the index
    assert_eq!(digest(&named[&site.reg("team/plain:v1")]), plain);
    assert_eq!(
        digest(&named[&site.reg(&format!("team/tool@{tool}"))]),
        tool
    );
    let trimmed = digest(&named["172.20.0.2:5000/pre/team/app:v1"]);
    let trims = json!([{"name": site.reg("team/app:v1"), "from": app, "to": trimmed}]);
    assert_eq!(report["trimmed"], trims);
    assert!(
        site.place
            .read("landfall.lock")
            .contains(&format!("trimmed: {{digest: {trimmed}"))
    );
    // the archive has exactly the content that its names need
    let mut needed: BTreeSet<String> = named
        .values()
        .flat_map(|entry| closure(&files, digest(entry)))
        .collect();
    needed.extend(["oci-layout", "index.json"].map(str::to_owned));
    assert_eq!(files.keys().cloned().collect::<BTreeSet<_>>(), needed);
    let bytes = site.place.read_bytes("images.tar").len();
    assert_eq!(
        (&report["archive"]["bytes"], &report["archive"]["format"]),
        (&json!(bytes), &json!("oci"))
    );
}

#[test]
fn an_export_for_one_platform_has_only_its_part_of_every_image() {
    if !need(&NEEDS) {
        return;
    }
    let site = Site::new();
    site.lock("- REG/team/app:v1\n- REG/team/tool:v1\n");
    site.export(0, &["-o", "all.tar"]);
    site.export(0, &["-o", "one.tar", "--platform", "linux/arm64"]);
    site.export(
        0,
        &[
            "-o",
            "both.tar",
            "--platform",
            "linux/arm64",
            "--platform",
            "linux/amd64",
        ],
    );
    assert_eq!(
        site.place.read_bytes("both.tar"),
        site.place.read_bytes("all.tar")
    );
    let (files, named) = site.archive("one.tar");
    for name in ["team/app:v1", "team/tool:v1"] {
        let index: Value = serde_json::from_slice(
            &files[&format!(
                "blobs/{}",
                digest(&named[&site.reg(name)]).replace(':', "/")
            )],
        )
        .unwrap();
        let platforms: Vec<_> = index["manifests"].as_array().unwrap().iter().collect();
        assert_eq!(platforms.len(), 1, "{index}");
        assert_eq!(platforms[0]["platform"]["architecture"], "arm64");
    }
    let text = |name| String::from_utf8_lossy(&site.place.read_bytes(name)).into_owned();
    assert!(
        text("all.tar").contains("unknown") && !text("one.tar").contains("unknown"),
        "only all.tar has the attestation"
    );
    let printed = site.refused(2, &["-o", "no.tar", "--platform", "linux/riscv64"]);
    for part in [
        "team/app:v1: it has no linux/riscv64, only linux/amd64, linux/arm64",
        "team/tool:v1",
    ] {
        assert!(printed.contains(part), "{printed}");
    }
    assert!(!site.place.path("no.tar").exists());
}

#[test]
fn a_docker_archive_has_one_platform_and_refuses_unsupported_content() {
    if !need(&NEEDS) {
        return;
    }
    let site = Site::new();
    let printed = site.refused(2, &["-o", "no.tar", "--format", "docker"]);
    for part in [
        "choose it with --platform",
        "--format oci",
        "team/app:v1: linux/amd64, linux/arm64",
    ] {
        assert!(printed.contains(part), "{printed}");
    }
    assert!(!printed.contains("plain"), "{printed}");
    site.export(
        0,
        &[
            "-o",
            "d.tar",
            "--format",
            "docker",
            "--platform",
            "linux/amd64",
            "--to",
            "r.example",
        ],
    );
    let (files, named) = site.archive("d.tar");
    let saved: Vec<Value> = serde_json::from_slice(&files["manifest.json"]).unwrap();
    assert_eq!(saved.len(), 3);
    let app = &saved[0];
    assert_eq!(
        app["RepoTags"],
        json!([site.reg("team/app:v1"), "r.example/team/app:v1"])
    );
    assert_eq!(
        app["Layers"].as_array().unwrap().len(),
        3,
        "a layer that the manifest lists twice is listed twice"
    );
    let manifest = &named["r.example/team/app:v1"];
    let below = closure(&files, digest(manifest));
    let layers = app["Layers"]
        .as_array()
        .unwrap()
        .iter()
        .chain([&app["Config"]]);
    assert!(
        layers
            .clone()
            .all(|path| below.contains(path.as_str().unwrap()))
    );
    let config: Value = serde_json::from_slice(&files[app["Config"].as_str().unwrap()]).unwrap();
    assert_eq!(config["architecture"], "amd64");

    let layer = site.images.zstd_layer(&[("bin/app", b"x")]);
    let zstd = site.images.image("linux/amd64", &[layer]);
    site.images
        .push(&site.upstream.address, "team/zstd", "v1", &zstd);
    let artifact = site.images.artifact("application/x.test", b"hello", None);
    site.images
        .push(&site.upstream.address, "team/artifact", "v1", &artifact);
    site.lock(
        "- {ref: REG/team/plain:v1, platforms: [linux/amd64]}\n- {ref: REG/team/zstd:v1, platforms: [linux/amd64]}\n\
         - REG/team/artifact:v1\n",
    );
    let printed = site.refused(2, &["-o", "no.tar", "--format", "docker"]);
    for part in [
        "team/zstd:v1: ",
        OCI_ZSTD,
        "team/artifact:v1: it is not a container image",
        "--format oci",
    ] {
        assert!(printed.contains(part), "{printed}");
    }
    assert!(!printed.contains("plain"), "{printed}");
    site.export(0, &["-o", "oci.tar", "--platform", "linux/amd64"]);
    let printed = site.refused(2, &["-o", "no.tar", "--platform", "linux/arm64"]);
    assert!(
        printed.contains("team/plain:v1: it has no linux/arm64, only linux/amd64"),
        "{printed}"
    );
    assert!(!site.place.path("no.tar").exists());
}

#[test]
fn an_archive_has_the_same_bytes_from_every_source() {
    if !need(&NEEDS) {
        return;
    }
    let site = Site::new();
    site.place
        .ok(&["pack", "-o", "B.tar.zst", "--store", "store"]);
    site.place.ok(&[
        "pack",
        "-o",
        "V",
        "--volume-size",
        "60000",
        "--store",
        "store",
    ]);
    let lock = site.place.read("landfall.lock");
    for (format, more) in [("oci", &[][..]), ("docker", &["--platform", "linux/amd64"])] {
        let args = [&["--format", format], more].concat();
        site.export(0, &[&["-o", "store.tar"], &args[..]].concat());
        let wanted = site.place.read_bytes("store.tar");
        for from in [
            &["B.tar.zst"][..],
            &["--bundle", "B.tar.zst"],
            &["V"],
            &["--lock", "landfall.lock"],
        ] {
            site.export(0, &[from, &["-o", "again.tar"], &args[..]].concat());
            assert!(
                site.place.read_bytes("again.tar") == wanted,
                "{from:?} {format}"
            );
        }
        let mut piped = site.place.command();
        piped
            .args(["export", "images", "B.tar.zst", "-o", "-"])
            .args(&args)
            .stderr(Stdio::piped());
        let piped = piped.output().unwrap();
        assert!(piped.status.success() && piped.stdout == wanted, "{format}");
        assert!(String::from_utf8_lossy(&piped.stderr).contains("exported 3 images"));
    }
    // a delta with its base
    site.lock("- REG/team/app:v1\n");
    site.place.ok(&["pack", "-o", "base", "--store", "store"]);
    fs::write(site.place.path("landfall.lock"), lock).unwrap();
    site.place
        .ok(&["pack", "-o", "delta", "--since", "base", "--store", "store"]);
    let printed = site.refused(4, &["delta", "-o", "delta.tar"]);
    assert!(printed.contains("is a delta"), "{printed}");
    site.export(0, &["delta", "--base", "base", "-o", "delta.tar"]);
    site.export(0, &["-o", "store.tar"]);
    assert_eq!(
        site.place.read_bytes("delta.tar"),
        site.place.read_bytes("store.tar")
    );
    let printed = site.refused(2, &["-o", "-"]);
    assert!(printed.contains("--report FILE"), "{printed}");
}

#[test]
fn an_archive_is_written_completely_or_not_at_all() {
    if !need(&NEEDS) {
        return;
    }
    let site = Site::new();
    fs::create_dir(site.place.path("images")).unwrap();
    let report = site.export(0, &["-o", "images"]);
    assert_eq!(report["archive"]["path"], "images/landfall-images.tar");
    fs::write(site.place.path("old.tar"), "old").unwrap();
    std::os::unix::fs::symlink("old.tar", site.place.path("link.tar")).unwrap();
    for (out, why) in [
        ("link.tar", "a symbolic link"),
        ("/dev/null", "a device"),
        (
            "no/where.tar",
            "the folder no does not exist; create it first",
        ),
    ] {
        let printed = site.refused(1, &["-o", out]);
        assert!(printed.contains(why) && printed.contains(out), "{printed}");
    }
    assert!(
        site.refused(2, &["-o", "images.tar.zst"])
            .contains("the archive is not compressed")
    );
    assert!(
        site.export(0, &["-o", "dry.tar", "--dry-run"])["archive"]["bytes"]
            .as_u64()
            .unwrap()
            > 1000
    );
    // a dry run refuses what the run itself would refuse
    site.place.write("mine.tar", "mine");
    for more in [&["-o", "mine.tar"][..], &["-o", "mine.tar", "--dry-run"]] {
        assert!(site.refused(2, more).contains("did not write it"));
    }

    // a missing layer, and a damaged one
    let (files, _) = site.archive("images/landfall-images.tar");
    let layer = files
        .keys()
        .find(|path| path.starts_with("blobs/") && files[*path].starts_with(&[0x1f, 0x8b]));
    let layer = site.place.path("store").join(layer.unwrap());
    let content = fs::read(&layer).unwrap();
    fs::remove_file(&layer).unwrap();
    let report = site.export(1, &["-o", "old.tar", "--replace"]);
    let printed = report["error"]["message"].as_str().unwrap();
    assert!(
        printed.contains("nothing was written") && printed.contains("is missing"),
        "{printed}"
    );
    let missing: Vec<_> = report["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|item| item["status"] == "missing")
        .collect();
    assert!(!missing.is_empty() && missing.len() < 3, "{report}");
    let skipped = report["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|item| item["status"] == "skipped");
    assert_eq!(
        skipped.unwrap()["reason"],
        "not written, because other images are missing"
    );
    let report = site.export(3, &["-o", "partial.tar", "--allow-partial"]);
    assert_eq!(
        report["archive"]["images"].as_array().unwrap().len(),
        3 - missing.len()
    );
    fs::write(&layer, noise(1, content.len())).unwrap();
    let printed = site.refused(1, &["-o", "old.tar", "--replace"]);
    assert!(printed.contains("damaged"), "{printed}");
    assert_eq!(site.place.read("old.tar"), "old");
    let gone = "version: 1\nmissing: [{kind: image, name: 'quay.io/gone/a:v1', reason: removed, \
                until: 9999-01-31}]\n...\n";
    site.place.write("gone.lock", gone);
    let printed = site.refused(2, &["--lock", "gone.lock", "-o", "dry.tar"]);
    assert_eq!(
        printed,
        "the lock contains no images\n\
         accepted image quay.io/gone/a:v1: removed (accepted until 9999-01-31)"
    );
    for name in ["dry.tar", "old.tar.partial", "dry.tar.partial"] {
        assert!(!site.place.path(name).exists(), "{name}");
    }
}

#[test]
fn an_interrupted_export_leaves_no_file() {
    let place = Place::new();
    let store = Images::new(place.path("store"));
    // a sparse file, which takes minutes to hash
    let layer = json!({"mediaType": OCI_GZIP, "digest": format!("sha256:{}", "0".repeat(64)), "size": 1u64 << 38});
    let config = store.blob(OCI_CONFIG, br#"{"os":"linux","architecture":"amd64"}"#);
    let manifest =
        json!({"schemaVersion": 2, "mediaType": OCI_MANIFEST, "config": config, "layers": [layer]});
    let manifest = store.blob(OCI_MANIFEST, manifest.to_string().as_bytes());
    let hole = place.path(format!("store/blobs/sha256/{}", "0".repeat(64)));
    fs::File::create(&hole).unwrap().set_len(1 << 38).unwrap();
    let lock = format!(
        "version: 1\nimages:\n- name: h.example/big:v1\n  digest: {}\n  mediaType: {OCI_MANIFEST}\n  size: {}\n...\n",
        digest(&manifest),
        manifest["size"]
    );
    place.write("landfall.lock", lock);
    let mut command = place.command();
    command.args(["export", "images", "--store", "store", "-o", "images.tar"]);
    let mut guard = Guard::start(command);
    let pid = guard.pid();
    let hole = hole.canonicalize().unwrap();
    guard.wait_until("an open blob", || has_open(pid, &hole));
    assert!(place.path("images.tar.partial").exists());
    guard.signal("INT");
    assert_eq!(guard.wait(), Some(130));
    assert!(!place.path("images.tar.partial").exists() && !place.path("images.tar").exists());
}

#[test]
fn exports_of_image_lists_report_accepted_and_expired_losses() {
    let place = Place::new();
    let lock = |until: &str| {
        format!(
            "version: 1\nmissing: [{{kind: image, name: 'quay.io/gone/a:v1', reason: removed, \
             until: {until}}}]\n...\n"
        )
    };
    place.write("landfall.lock", lock("9999-01-31"));
    place.write("old.lock", lock("2020-01-31"));
    let export = |name: &str, lock: &str, exit: i32| {
        let run = place
            .landfall()
            .args(["export", name, "--lock", lock])
            .assert()
            .code(exit);
        String::from_utf8_lossy(&run.get_output().stderr).into_owned()
    };
    let line = "not in the list: accepted image quay.io/gone/a:v1: removed";
    for name in ["images-txt", "hauler", "skopeo-sync", "imgpkg-lock"] {
        let printed = export(name, "landfall.lock", 0);
        assert!(printed.contains(line), "{name}: {printed}");
        let printed = export(name, "old.lock", 3);
        let line = line.replace("accepted", "missing ");
        assert!(printed.contains(&line), "{name}: {printed}");
    }
    assert_eq!(export("sources", "landfall.lock", 0), "");
}

#[test]
fn an_archive_replaces_only_an_archive_of_landfall() {
    if !need(&NEEDS) {
        return;
    }
    let site = Site::new();
    site.place.write("a.tar", "mine");
    let message = site.refused(2, &["-o", "a.tar"]);
    assert!(
        message.contains("a.tar exists, and this command did not write it"),
        "{message}"
    );
    assert_eq!(site.place.read("a.tar"), "mine");
    site.export(0, &["-o", "a.tar", "--replace"]);
    let docker = ["--format", "docker", "--platform", "linux/amd64"];
    site.export(0, &[&["-o", "a.tar"][..], &docker].concat());
    site.export(0, &["-o", "a.tar"]);
}
