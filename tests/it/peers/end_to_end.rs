//! The complete workflow with real peers on loopback: docker-registry as upstream and private
//! registry, filled and read by skopeo.

use crate::support::Place;
use crate::support::images::sha256;
use crate::support::landfall_serve;
use crate::support::peers::{self, docker_registry};
use crate::support::{Images, World, http, need, run, world};
use serde_json::Value;

const DEPLOYMENT: &str = "\
# who changes this: the platform team
apiVersion: apps/v1
kind: Deployment
metadata:
  name: exporter   # keep
spec:
  template:
    spec:
      initContainers:
        - {name: pause, image: \"k8s.gcr.io/pause:3.1\"}
      containers:
        - name: exporter
          image: quay.io/prometheus/node-exporter:v1.9.0   # pinned
        - name: calico
          image: calico/node:v3.8.2
        - name: unknown
          image: example.com/not/ours:1
";

/// The name and the status of each item of a report.
fn statuses(report: &Value) -> Vec<(String, String)> {
    let text = |item: &Value, key: &str| item[key].as_str().unwrap_or_default().to_owned();
    report["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| (text(item, "name"), text(item, "status")))
        .collect()
}

fn assert_all(report: &Value, status: &str) {
    let statuses = statuses(report);
    assert!(!statuses.is_empty(), "{report:#}");
    assert!(
        statuses.iter().all(|(_, found)| found == status),
        "{status}: {report:#}"
    );
}

/// Runs lock, pull and pack. Returns the name of the bundle.
fn bundle(world: &World) -> &'static str {
    let site = ["--site", "site.yaml"];
    world
        .place
        .json(0, &[&["lock", "-f", "manifest.yaml"][..], &site].concat());
    world.place.json(0, &[&["pull"][..], &site].concat());
    world
        .place
        .json(0, &[&["pack", "-o", "bundle.tar.zst"][..], &site].concat());
    "bundle.tar.zst"
}

#[test]
fn a_manifest_is_delivered_to_a_private_registry_through_a_bundle() {
    if !need(&world::NEEDS) {
        return;
    }
    let world = World::new();
    let place = &world.place;
    let registry = docker_registry();
    place.write("site.yaml", world.site(&registry.address));
    let site = ["--site", "site.yaml"];
    let with = |args: &[&'static str]| [args, &site].concat();

    let locked = place.json(0, &with(&["lock", "-f", "manifest.yaml"]));
    assert_eq!(
        (locked["command"].as_str(), locked["status"].as_str()),
        (Some("lock"), Some("done"))
    );
    let lock = place.read("landfall.lock");
    assert!(
        !lock.contains("127.0.0.1"),
        "the lock contains an address of a mirror:\n{lock}"
    );
    for digest in world.digests() {
        assert!(
            lock.contains(&digest),
            "{digest} is not in the lock:\n{lock}"
        );
    }
    place.json(0, &with(&["lock", "-f", "manifest.yaml"]));
    assert_eq!(
        place.read("landfall.lock"),
        lock,
        "the same manifest, the same lock"
    );

    let pulled = place.json(0, &with(&["pull"]));
    assert_all(&pulled, "done");
    let hosts = pulled["hosts"].as_array().unwrap();
    assert!(
        hosts.iter().all(|host| host["host"] == "127.0.0.1"),
        "{hosts:?}"
    );
    assert!(
        hosts.iter().any(|host| host["for"] == "quay.io"),
        "{hosts:?}"
    );
    let before = world.requests();
    let warm = place.json(0, &with(&["pull"]));
    assert_all(&warm, "present");
    assert_eq!(warm["totals"]["requests"], 0, "{warm:#}");
    assert_eq!(world.requests(), before, "a second pull sends no request");

    place.json(0, &with(&["pack", "-o", "bundle.tar.zst"]));
    let verified = place.ok(&["verify", "bundle.tar.zst"]);
    assert!(verified.contains("origin not proven"), "{verified}");
    let listed = place.ok(&["ls", "bundle.tar.zst"]);
    for upstream in &world.upstreams {
        assert!(
            listed.contains(upstream.name),
            "{}:\n{listed}",
            upstream.name
        );
    }
    // other tools can read the bundle, too
    run(place.clean("tar").args(["--zstd", "-tf", "bundle.tar.zst"]));
    run(place.clean("zstd").args(["-qt", "bundle.tar.zst"]));
    let archive = place.path("bundle.tar.zst").display().to_string();
    let util = world
        .upstreams
        .iter()
        .find(|upstream| upstream.name.contains("util"))
        .unwrap();
    let raw = run(peers::skopeo(place).args([
        "inspect",
        "--raw",
        &format!("oci-archive:{archive}:{}", util.name),
    ]));
    assert!(
        raw == world
            .images
            .bytes(util.descriptor["digest"].as_str().unwrap())
    );

    // the disconnected side has only the bundle
    let before = world.requests();
    let empty = ["--store", "far-store"];
    let pushed = place.json(
        0,
        &[&with(&["push", "bundle.tar.zst"])[..], &empty].concat(),
    );
    assert_all(&pushed, "done");
    assert_eq!(world.requests(), before, "a push sends no request upstream");
    world.assert_arrived(&registry.address, true);

    let uploads = registry.requests("\"PUT /v2/");
    let requests = registry.requests("");
    let warm = place.json(
        0,
        &[&with(&["push", "bundle.tar.zst"])[..], &empty].concat(),
    );
    assert_all(&warm, "present");
    // one request for each image, for the attestation that an index lists, for each of the two
    // files, for the list of delivered locks, for the tags of its repository, and for the next
    // list, which registries with immutable tags have
    let max_requests = world.upstreams.len() + 6;
    let warm_requests = registry
        .log()
        .lines()
        .filter(|line| line.contains("HTTP/1.1\""))
        .skip(requests)
        .count();
    assert_eq!(
        registry.requests("\"PUT /v2/"),
        uploads,
        "nothing is sent again"
    );
    assert_eq!(
        warm["totals"]["requests"], max_requests,
        "one request for each destination tag and attestation, and three for the lists of delivered locks: {warm:#}"
    );
    assert!(
        warm_requests <= max_requests,
        "{warm_requests} requests, more than {max_requests}:\n{}",
        registry.log()
    );
}

#[test]
fn a_store_is_pushed_without_a_bundle() {
    if !need(&world::NEEDS) {
        return;
    }
    let world = World::new();
    let registry = docker_registry();
    world
        .place
        .write("site.yaml", world.site(&registry.address));
    let site = ["--site", "site.yaml"];
    world
        .place
        .json(0, &[&["lock", "-f", "manifest.yaml"][..], &site].concat());
    world.place.json(0, &[&["pull"][..], &site].concat());
    let before = world.requests();
    let dry = world
        .place
        .json(0, &[&["push", "--dry-run"][..], &site].concat());
    assert_all(&dry, "skipped");
    assert_eq!(registry.requests("\"PUT "), 0, "a dry run sends nothing");
    let pushed = world.place.json(0, &[&["push"][..], &site].concat());
    assert_all(&pushed, "done");
    assert_eq!(world.requests(), before);
    world.assert_arrived(&registry.address, false);
    let again = world.place.json(0, &[&["push"][..], &site].concat());
    assert_all(&again, "present");
}

#[test]
fn files_arrive_as_artifacts_and_are_served_from_the_bundle() {
    if !need(&world::NEEDS) {
        return;
    }
    let world = World::new();
    let registry = docker_registry();
    world
        .place
        .write("site.yaml", world.site(&registry.address));
    let bundle = bundle(&world);
    world
        .place
        .json(0, &["push", bundle, "--site", "site.yaml"]);
    let kubelet = [&world.kubelet[..], b"arm64"].concat();
    let digest = sha256(&kubelet);

    let catalog = http::get(&registry.address, "/v2/_catalog").json();
    let repositories: Vec<&str> = catalog["repositories"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let files: Vec<&str> = repositories
        .into_iter()
        .filter(|name| name.starts_with("files/dl.k8s.io/"))
        .collect();
    assert_eq!(files.len(), 2, "{catalog}");
    let tag = &digest["sha256:".len()..][..12];
    let found: Vec<_> = files
        .iter()
        .map(|name| http::manifest(&registry.address, name, tag))
        .collect();
    let found = found
        .iter()
        .find(|answer| answer.status == 200)
        .expect("the file has its tag")
        .json();
    let layers = found["layers"].as_array().unwrap();
    assert_eq!(layers.len(), 2, "the file and its sidecar: {found:#}");
    assert_eq!(layers[0]["digest"], digest.as_str());

    let server = landfall_serve(&world.place, &[bundle, "--site", "site.yaml"]);
    let url = "/files/dl.k8s.io/release/v1.33.4/bin/linux/arm64/kubelet";
    let served = http::get(&server.address, url);
    assert_eq!(served.status, 200, "{}", served.text());
    assert!(served.body == kubelet, "the served file differs");
    let sidecar = http::get(&server.address, &format!("{url}.sha256"));
    assert_eq!(format!("sha256:{}", sidecar.text()), digest);
    world.assert_arrived(&server.address, false);
    for upstream in &world.upstreams {
        let (repository, tag) = upstream.name.rsplit_once(':').unwrap();
        let by_source = http::manifest(&server.address, repository, tag);
        assert_eq!(
            by_source.header("docker-content-digest"),
            upstream.descriptor["digest"].as_str()
        );
    }
}

#[test]
fn mirror_copies_everything_once() {
    if !need(&world::NEEDS) {
        return;
    }
    let world = World::new();
    let registry = docker_registry();
    world
        .place
        .write("site.yaml", world.site(&registry.address));
    let args = ["mirror", "-f", "manifest.yaml", "--site", "site.yaml"];
    let first = world.place.json(0, &args);
    assert_all(&first, "done");
    world.assert_arrived(&registry.address, true);
    assert!(
        !world
            .place
            .path("home/.cache/landfall/store/blobs")
            .exists(),
        "a mirror keeps no store"
    );

    let blobs = |server: &peers::Server| server.requests("/blobs/");
    let before = blobs(&world.kubernetes) + blobs(&world.others) + registry.requests("\"PUT ");
    // another machine: no lock, no store, no cache
    std::fs::remove_file(world.place.path("landfall.lock")).ok();
    std::fs::remove_dir_all(world.place.path("home")).unwrap();
    std::fs::create_dir_all(world.place.path("home/run")).unwrap();
    let second = world.place.json(0, &args);
    assert_all(&second, "present");
    let after = blobs(&world.kubernetes) + blobs(&world.others) + registry.requests("\"PUT ");
    assert_eq!(after, before, "the second run moves no blob: {second:#}");
}

#[test]
fn one_platform_is_delivered_although_sparse_indexes_are_refused() {
    if !need(&world::NEEDS) {
        return;
    }
    let world = World::new();
    let place = &world.place;
    let registry = docker_registry();
    place.write("site.yaml", world.site(&registry.address));
    let manifest = "apiVersion: landfall/v1\nkind: Manifest\nplatforms: [linux/arm64]\nimages:\n  \
                    - quay.io/prometheus/node-exporter:v1.9.0\n";
    place.write("manifest.yaml", manifest);
    let bundle = bundle(&world);
    let lock: Value = serde_yaml::from_str(&place.read("landfall.lock")).unwrap();
    let image = &lock["images"][0];
    let whole = image["digest"].as_str().unwrap();
    let trimmed = image["trimmed"]["digest"].as_str().unwrap();
    let report = place.json(0, &["push", bundle, "--site", "site.yaml"]);
    let from = &report["trimmed"][0]["from"];
    let to = &report["trimmed"][0]["to"];
    assert_eq!(
        (from, to),
        (&whole.into(), &trimmed.into()),
        "the push reports the changed index: {report:#}"
    );

    let there = http::manifest(&registry.address, "prometheus/node-exporter", "v1.9.0");
    assert_eq!(there.header("docker-content-digest"), Some(trimmed));
    let children = there.json()["manifests"].as_array().unwrap().clone();
    assert_eq!(children.len(), 1, "{children:?}");
    assert_eq!(children[0]["platform"]["architecture"], "arm64");
    let child = children[0]["digest"].as_str().unwrap();
    assert_eq!(
        http::manifest(&registry.address, "prometheus/node-exporter", child).status,
        200
    );
    let to = format!("dir:{}", place.path("copied").display());
    let from = format!(
        "docker://{}/prometheus/node-exporter:v1.9.0",
        registry.address
    );
    run(peers::skopeo(place).args([
        "copy",
        "--quiet",
        "--all",
        "--src-tls-verify=false",
        &from,
        &to,
    ]));

    // a site that requires the unchanged index gets an error before anything is sent
    let exact = world
        .site(&registry.address)
        .replace("  paths:", "  index: exact\n  paths:");
    place.write("exact.yaml", exact);
    let is_upload = |line: &&str| line.contains("\"PUT /v2/") && line.contains("/blobs/uploads/");
    let uploads = || registry.log().lines().filter(is_upload).count();
    let sent = uploads();
    let second = format!("{}/second", registry.address);
    let report = place.json(
        4,
        &["push", bundle, "--site", "exact.yaml", "--to", &second],
    );
    assert_eq!(uploads(), sent, "{report:#}");
}

#[test]
fn a_rewritten_deployment_names_images_at_the_registry() {
    if !need(&world::NEEDS) {
        return;
    }
    let world = World::new();
    let place = &world.place;
    let registry = docker_registry();
    place.write("site.yaml", world.site(&registry.address));
    place.write("deployment.yaml", DEPLOYMENT);
    let bundle = bundle(&world);
    place.json(0, &["push", bundle, "--site", "site.yaml"]);

    let to = &registry.address;
    let expected = DEPLOYMENT
        .replace(
            "k8s.gcr.io/pause:3.1",
            &format!("{to}/kubernetes/pause:3.1"),
        )
        .replace(
            "quay.io/prometheus/node-exporter",
            &format!("{to}/prometheus/node-exporter"),
        )
        .replace("image: calico/node", &format!("image: {to}/calico/node"));
    let args = [
        "rewrite",
        "deployment.yaml",
        "--bundle",
        bundle,
        "--site",
        "site.yaml",
    ];
    assert_eq!(
        place.ok(&args),
        expected,
        "only known references change, and all other bytes are kept"
    );
    place.json(4, &[&args[..], &["--check"]].concat());
    place.ok(&[&args[..], &["--in-place"]].concat());
    assert_eq!(place.read("deployment.yaml"), expected);
    place.ok(&[&args[..], &["--check"]].concat());

    for (line, original) in expected
        .lines()
        .zip(DEPLOYMENT.lines())
        .filter(|(new, old)| new != old)
    {
        let at = line.find(to.as_str()).unwrap_or_else(|| panic!("{line}"));
        let reference = line[at..].split(['"', ' ', '}']).next().unwrap();
        let raw = peers::skopeo_raw(place, reference);
        let known = world
            .upstreams
            .iter()
            .find(|up| original.contains(up.name.trim_start_matches("docker.io/")));
        let digest = known.unwrap().descriptor["digest"].as_str().unwrap();
        assert!(raw == world.images.bytes(digest), "{reference}");
    }
}

#[test]
fn items_that_upstream_lost_are_reported_and_refused_by_pack_and_push() {
    if !need(&world::NEEDS) {
        return;
    }
    let world = World::new();
    let place = &world.place;
    let registry = docker_registry();
    place.write("site.yaml", world.site(&registry.address));
    place.write(
        "manifest.yaml",
        "apiVersion: landfall/v1\nkind: Manifest\nimages:\n  - quay.io/kubermatic/util:2.0\n  \
         - quay.io/kubermatic/gone:1.0\n",
    );
    let locked = place.json(3, &["lock", "-f", "manifest.yaml", "--site", "site.yaml"]);
    let lost = statuses(&locked)
        .into_iter()
        .find(|(name, _)| name == "quay.io/kubermatic/gone:1.0");
    assert!(
        lost.is_some_and(|(_, status)| status == "missing"),
        "{locked:#}"
    );
    place.json(3, &["pull", "--site", "site.yaml"]);
    place.json(3, &["pack", "-o", "bundle.tar.zst"]);
    assert!(
        !place.path("bundle.tar.zst").exists(),
        "a partial bundle is written only with --allow-partial"
    );
    place.json(3, &["pack", "-o", "bundle.tar.zst", "--allow-partial"]);
    place.json(4, &["push", "bundle.tar.zst", "--site", "site.yaml"]);
    assert_eq!(
        http::get(&registry.address, "/v2/kubermatic/util/tags/list").status,
        404
    );
    place.json(
        3,
        &[
            "push",
            "bundle.tar.zst",
            "--site",
            "site.yaml",
            "--allow-partial",
        ],
    );
    assert_eq!(
        http::get(&registry.address, "/v2/kubermatic/util/tags/list").status,
        200
    );
}

#[test]
fn skopeo_writes_to_and_reads_from_a_writable_serve() {
    if !need(&["skopeo", "gzip"]) {
        return;
    }
    let place = Place::new();
    let mut images = Images::new(place.path("layout"));
    let base = images.layer(&[("base", b"base")]);
    let index = images.index(&[
        images.image(
            "linux/amd64",
            &[base.clone(), images.layer(&[("a", b"amd64")])],
        ),
        images.image("linux/arm64", &[base, images.layer(&[("a", b"arm64")])]),
    ]);
    images.tag("v1", &index);
    let server = landfall_serve(&place, &["--writable", "written"]);
    peers::skopeo_push(
        &place,
        images.dir(),
        "v1",
        &format!("{}/team/app:v1", server.address),
    );
    // the second repository is filled by mounts
    peers::skopeo_push(
        &place,
        images.dir(),
        "v1",
        &format!("{}/team/copy:v1", server.address),
    );
    for repository in ["team/app", "team/copy"] {
        let raw = peers::skopeo_raw(&place, &format!("{}/{repository}:v1", server.address));
        assert!(raw == images.bytes(index["digest"].as_str().unwrap()));
        let from = format!("docker://{}/{repository}:v1", server.address);
        let to = format!(
            "oci:{}:v1",
            place
                .path(format!("back-{}", repository.replace('/', "-")))
                .display()
        );
        run(peers::skopeo(&place).args([
            "copy",
            "--quiet",
            "--all",
            "--src-tls-verify=false",
            &from,
            &to,
        ]));
    }
    drop(server);
    // pushed content is kept over a restart
    let server = landfall_serve(&place, &["--writable", "written"]);
    let raw = peers::skopeo_raw(&place, &format!("{}/team/app:v1", server.address));
    assert!(raw == images.bytes(index["digest"].as_str().unwrap()));
}
