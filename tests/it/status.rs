//! `landfall status` compares a registry with a lock: it reports present, missing, different,
//! incomplete and foreign tags. `push` fixes tags that are missing or different, or whose image
//! lacks a signature.

use crate::support::images::noise;
use crate::support::peers::{Server, own_registry};
use crate::support::{Images, Place, docker_registry, free_port, http, need};
use serde_json::Value;

/// Four images, one of them with a signature under cosign's tag; locked, pulled and packed as `b`.
fn packed() -> (Place, Server, Images) {
    let place = Place::new();
    let upstream = own_registry();
    let images = Images::new(place.path("layout"));
    let mut manifest =
        "apiVersion: landfall/v1\nkind: Manifest\nmetadata: {name: t}\nimages:\n".to_owned();
    for (seed, name) in ["a", "b", "c", "d"].iter().enumerate() {
        let image = images.image(
            "linux/amd64",
            &[images.layer(&[("app", &noise(seed as u64 + 1, 3000))])],
        );
        images.push(&upstream.address, name, "v1", &image);
        manifest += &format!("- {}/{name}:v1\n", upstream.address);
        if *name == "d" {
            let signature = images.artifact("application/vnd.example.signature", b"signed", None);
            let tag = format!(
                "{}.sig",
                image["digest"].as_str().unwrap().replace(':', "-")
            );
            images.push(&upstream.address, name, &tag, &signature);
            place.write("signature", signature["digest"].as_str().unwrap());
        }
    }
    place.write("m.yaml", manifest);
    for line in [
        &["lock", "-f", "m.yaml"][..],
        &["pull"],
        &["pack", "-o", "b"],
    ] {
        place.ok(&[line, &["--store", "store"]].concat());
    }
    (place, upstream, images)
}

/// `REPOSITORY:TAG` of every tag in this state.
fn tags_in_state(report: &Value, state: &str) -> Vec<String> {
    let all = report["standings"].as_array().unwrap().iter();
    all.filter(|one| one["state"] == state)
        .map(|one| one["at"].as_str().unwrap().to_owned())
        .collect()
}

fn assert_drift_is_reported_and_fixed(registry: &Server) {
    let (place, _upstream, images) = packed();
    let to = registry.address.as_str();
    let status =
        |exit, more: &[&str]| place.json(exit, &[&["status", "b", "--to", to], more].concat());

    let nothing = status(4, &[]);
    assert_eq!(
        tags_in_state(&nothing, "missing"),
        ["a:v1", "b:v1", "c:v1", "d:v1"]
    );
    assert_eq!(
        (&nothing["status"], &nothing["totals"]["missing"]),
        (&"refused".into(), &4.into())
    );

    place.json(0, &["push", "b", "--to", to]);
    let before = registry.requests("/v2/");
    let gets = registry.requests("\"GET /v2/a/");
    let whole = status(0, &[]);
    assert_eq!(tags_in_state(&whole, "there").len(), 4);
    // one HEAD per image, one for the signature, and at most one other request
    let count = registry.requests("/v2/") - before;
    assert!(
        count <= 6 && registry.requests("\"GET /v2/a/") == gets,
        "{count} requests\n{}",
        registry.log()
    );

    let other = images.image("linux/amd64", &[images.layer(&[("other", b"x")])]);
    images.push(to, "b", "v1", &other);
    images.push(to, "c", "v0", &other);
    let drifted = status(4, &[]);
    assert_eq!(tags_in_state(&drifted, "different"), ["b:v1"]);
    let different = drifted["standings"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["state"] == "different");
    assert_eq!(different.unwrap()["stands"], other["digest"]);
    assert!(
        tags_in_state(&drifted, "foreign").is_empty(),
        "foreign tags are reported only with --foreign"
    );
    let foreign = status(4, &["--foreign"]);
    assert_eq!(tags_in_state(&foreign, "foreign"), ["c:v0"], "{foreign:#}");

    let printed = place
        .landfall()
        .args(["status", "b", "--to", to])
        .assert()
        .code(4);
    let printed = String::from_utf8_lossy(&printed.get_output().stdout).into_owned();
    let fix = printed
        .lines()
        .find_map(|line| line.strip_prefix("  to fix it         landfall "))
        .unwrap();
    assert!(fix.contains("--move-tags"), "{printed}");
    // the paths, certificates and account of the site
    place.write(
        "site.yaml",
        format!("apiVersion: landfall/v1\nkind: Site\nregistry: {{address: \"{to}\"}}\n"),
    );
    let printed = place
        .landfall()
        .args(["status", "b", "--site", "site.yaml"])
        .assert()
        .code(4);
    let printed = String::from_utf8_lossy(&printed.get_output().stdout).into_owned();
    let ends = format!("--to {to} --site site.yaml --move-tags");
    assert!(printed.contains(&ends), "{printed}");
    place.ok(&fix.split(' ').collect::<Vec<_>>());
    // push does not change foreign tags
    assert_eq!(
        tags_in_state(&status(0, &["--foreign"]), "foreign"),
        ["c:v0"]
    );
}

#[test]
fn status_reports_missing_and_different_images_and_push_fixes_them() {
    if need(&["gzip"]) {
        assert_drift_is_reported_and_fixed(&own_registry());
    }
}

#[test]
fn status_and_push_do_the_same_with_docker_registry() {
    if need(&["docker-registry", "gzip"]) {
        assert_drift_is_reported_and_fixed(&docker_registry());
    }
}

#[test]
fn a_lost_signature_is_drift_and_recheck_also_detects_a_lost_blob() {
    if !need(&["docker-registry", "gzip"]) {
        return;
    }
    let (place, _upstream, _images) = packed();
    let registry = own_registry();
    let status = |exit, more: &[&str]| {
        place.json(
            exit,
            &[
                &[
                    "status",
                    "--lock",
                    "landfall.lock",
                    "--to",
                    &registry.address,
                ],
                more,
            ]
            .concat(),
        )
    };
    place.json(0, &["push", "b", "--to", &registry.address]);
    registry.forget("d", &place.read("signature"));
    assert_eq!(tags_in_state(&status(4, &[]), "incomplete"), ["d:v1"]);
    place.json(0, &["push", "b", "--to", &registry.address]);
    status(0, &["--recheck"]);

    let docker = docker_registry();
    place.json(0, &["push", "b", "--to", &docker.address]);
    let manifest = http::manifest(&docker.address, "a", "v1");
    let manifest: Value = serde_json::from_slice(&manifest.body).unwrap();
    std::fs::remove_file(docker.blob_file(manifest["layers"][0]["digest"].as_str().unwrap()))
        .unwrap();
    place.json(0, &["status", "b", "--to", &docker.address]);
    let lost = place.json(4, &["status", "b", "--to", &docker.address, "--recheck"]);
    assert_eq!(tags_in_state(&lost, "incomplete"), ["a:v1"]);
}

#[test]
fn status_writes_markdown_and_reports_failed_requests() {
    if !need(&["gzip"]) {
        return;
    }
    let (place, _upstream, _images) = packed();
    let registry = own_registry();
    let args = [
        "status",
        "b",
        "--to",
        &registry.address,
        "--output",
        "markdown",
    ];
    let printed = place.landfall().args(args).assert().code(4);
    let printed = String::from_utf8_lossy(&printed.get_output().stdout).into_owned();
    assert!(
        printed.starts_with(&format!(
            "**{}: 0 of 4 there, 4 missing**\n",
            registry.address
        )),
        "{printed}"
    );
    assert!(
        printed.contains("<details><summary>missing: 4</summary>")
            && printed.contains("| `a:v1` |"),
        "{printed}"
    );

    let nobody = format!("127.0.0.1:{}", free_port());
    let failed = place.json(1, &["status", "b", "--to", &nobody]);
    assert_eq!(failed["error"]["side"], "destination");
    let unnamed = place.json(2, &["status", "b"]);
    assert!(
        unnamed["error"]["message"]
            .as_str()
            .unwrap()
            .contains("--to HOST[:PORT]")
    );
}

#[test]
fn status_reports_items_that_could_not_be_locked() {
    if !need(&["gzip"]) {
        return;
    }
    let (place, _upstream, _images) = packed();
    let registry = own_registry();
    let to = registry.address.as_str();
    place.json(0, &["push", "b", "--to", to]);
    let lost = "\nunresolved:\n- {kind: image, name: \"quay.io/gone/app:v1\", cause: gone}\n...\n";
    let lock = place.read("landfall.lock").replace("\n...\n", lost);
    place.write("lost.lock", lock);
    let report = place.json(3, &["status", "--lock", "lost.lock", "--to", to]);
    assert_eq!(
        (&report["status"], &report["totals"]["missing"]),
        (&"partial".into(), &1.into()),
        "{report:#}"
    );
    let args = ["status", "--lock", "lost.lock", "--to", to];
    let printed = place.landfall().args(args).assert().code(3);
    let printed = String::from_utf8_lossy(&printed.get_output().stdout).into_owned();
    assert!(
        printed.contains("missing  image quay.io/gone/app:v1: gone")
            && printed.contains(": 4 of 4 there, 1 not locked or packed; "),
        "{printed}"
    );
    let args = [&args[..], &["--output", "markdown"]].concat();
    let printed = place.landfall().args(args).assert().code(3);
    let printed = String::from_utf8_lossy(&printed.get_output().stdout).into_owned();
    assert!(
        printed.contains("<summary>not locked or packed: 1</summary>")
            && printed.contains("| `quay.io/gone/app:v1` | gone |"),
        "{printed}"
    );
}
