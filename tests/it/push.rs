//! Pushing: destinations, existing content, and refusals before the first upload.

use crate::support::free_port;
use crate::support::images::noise;
use crate::support::peers::{Server, own_registry};
use crate::support::reverse_proxy::{ProxyAction, ReverseProxy};
use crate::support::{Images, Place, http, need};
use std::collections::BTreeSet;
use std::time::Duration;

const NEEDS: [&str; 1] = ["gzip"];

/// An upstream with the images `one/app` and `two/app`. The images that `manifest` lists are
/// locked, pulled and packed as `b`. `DIGEST` in `manifest` is replaced by the digest of `one/app`.
fn packed(manifest: &str) -> (Place, Server, Images) {
    let place = Place::new();
    let upstream = own_registry();
    let images = Images::new(place.path("layout"));
    for (repository, seed) in [("one/app", 1), ("two/app", 2)] {
        let image = images.image(
            "linux/amd64",
            &[images.layer(&[("app", &noise(seed, 3000))])],
        );
        images.push(&upstream.address, repository, "v1", &image);
        if repository == "one/app" {
            place.write("digest", image["digest"].as_str().unwrap());
        }
    }
    let site = format!(
        "apiVersion: landfall/v1\nkind: Site\nupstreams:\n  one.test: {{mirror: \"{0}/one\"}}\n  two.test: {{mirror: \"{0}/two\"}}\n",
        upstream.url()
    );
    place.write("up.yaml", site);
    let manifest = manifest.replace("DIGEST", &place.read("digest"));
    place.write(
        "m.yaml",
        format!("apiVersion: landfall/v1\nkind: Manifest\nmetadata: {{name: t}}\n{manifest}"),
    );
    let common = ["--store", "store", "--site", "up.yaml"];
    for verb in [
        &["lock", "-f", "m.yaml"][..],
        &["pull"],
        &["pack", "-o", "b"],
    ] {
        place.ok(&[verb, &common].concat());
    }
    (place, upstream, images)
}

#[test]
fn two_digests_for_one_name_are_refused_before_any_upload() {
    if !need(&NEEDS) {
        return;
    }
    let (place, _upstream, _images) = packed("images: [one.test/app:v1, two.test/app:v1]\n");
    let registry = own_registry();
    let report = place.json(2, &["push", "b", "--to", &registry.address]);
    let message = report["error"]["message"].as_str().unwrap();
    for part in [
        "one.test/app:v1",
        "two.test/app:v1",
        "registry.paths",
        "two.test/app: two.test/app",
    ] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert_eq!(registry.requests("/v2/app"), 0);
    // the suggested lines for the site work
    let site = format!(
        "apiVersion: landfall/v1\nkind: Site\nregistry:\n  address: {}\n  paths:\n    two.test/app: two.test/app\n",
        registry.address
    );
    place.write("site.yaml", site);
    place.json(0, &["push", "b", "--site", "site.yaml"]);
    for repository in ["app", "two.test/app"] {
        assert_eq!(
            http::manifest(&registry.address, repository, "v1").status,
            200
        );
    }
}

#[test]
fn a_tag_with_another_digest_moves_only_with_move_tags() {
    if !need(&NEEDS) {
        return;
    }
    let (place, _upstream, images) = packed("images: [one.test/app:v1]\n");
    let registry = own_registry();
    let other = images.image("linux/amd64", &[images.layer(&[("other", b"x")])]);
    images.push(&registry.address, "app", "v1", &other);
    let report = place.json(1, &["push", "b", "--to", &registry.address]);
    let reason = report["items"][0]["reason"].as_str().unwrap();
    assert!(
        reason.contains(other["digest"].as_str().unwrap()) && reason.contains("--move-tags"),
        "{reason}"
    );
    let delivered_digest = || {
        http::manifest(&registry.address, "app", "v1")
            .header("docker-content-digest")
            .unwrap()
            .to_owned()
    };
    assert_eq!(delivered_digest(), other["digest"].as_str().unwrap());
    place.json(0, &["push", "b", "--to", &registry.address, "--move-tags"]);
    assert_eq!(delivered_digest(), place.read("digest"));
}

#[test]
fn images_by_tag_and_by_digest_are_pushed_to_all_destinations() {
    if !need(&NEEDS) {
        return;
    }
    let (place, _upstream, _images) =
        packed("images: [one.test/app:v1, \"two.test/app:v1\", \"one.test/app@DIGEST\"]\n");
    let registry = own_registry();
    let site = format!(
        "apiVersion: landfall/v1\nkind: Site\nregistry:\n  address: {}/base\n  paths:\n    one.test/app: [first/app, second]\n    two.test: two\n",
        registry.address
    );
    place.write("site.yaml", site);
    place.json(
        0,
        &["push", "b", "--site", "site.yaml", "--receipt", "r.json"],
    );
    let digest = place.read("digest");
    let tag = format!("digest-{}", &digest["sha256:".len()..][..12]);
    for (repository, tag) in [
        ("base/first/app", "v1"),
        ("base/second", "v1"),
        ("base/first/app", &tag),
        ("base/second", &tag),
    ] {
        let there = http::manifest(&registry.address, repository, tag);
        assert_eq!(
            there.header("docker-content-digest"),
            Some(digest.as_str()),
            "{repository}:{tag}"
        );
    }
    let receipt: serde_json::Value = serde_json::from_str(&place.read("r.json")).unwrap();
    assert_eq!(receipt["registry"], registry.address.as_str());
    assert_eq!(receipt["items"].as_array().unwrap().len(), 5, "{receipt:#}");
    assert!(
        receipt["blobs"].as_object().unwrap().len() == 4,
        "{receipt:#}"
    );
    // each blob was uploaded to one repository and mounted in the other; which delivery is the
    // first to need a blob is a matter of chance
    let log = registry.log();
    let mut uploaded = Vec::new();
    let mut mounted = BTreeSet::new();
    for (repository, other) in [("first/app", "second"), ("second", "first%2Fapp")] {
        let requests = format!("/v2/base/{repository}/blobs/uploads/");
        for line in log.lines() {
            if line.contains(&format!("PUT {requests}")) {
                let (_, rest) = line.split_once("digest=").unwrap();
                uploaded.push(rest.split(' ').next().unwrap());
            } else if let Some((_, rest)) = line.split_once(&format!("POST {requests}?mount="))
                && let Some((blob, rest)) = rest.split_once(&format!("&from=base%2F{other} "))
            {
                assert!(rest.ends_with("\" 201 0"), "{line}");
                mounted.insert(blob);
            }
        }
    }
    uploaded.sort_unstable();
    assert_eq!(uploaded, mounted.into_iter().collect::<Vec<_>>(), "{log}");
    assert_eq!(uploaded.len(), 2, "{log}");
}

#[test]
fn a_blob_that_was_uploaded_for_another_tag_is_not_looked_up_again() {
    if !need(&NEEDS) {
        return;
    }
    let (place, _upstream, _images) =
        packed("images: [one.test/app:v1, \"one.test/app@DIGEST\"]\n");
    let registry = own_registry();
    let middle = ReverseProxy::new(&registry.address, |request| {
        let is_mount = |to: &str, from: &str| {
            request.is("POST", &format!("/v2/{to}/blobs/uploads/?mount="))
                && request.target.ends_with(&format!("&from={from}"))
        };
        if is_mount("first", "second") || is_mount("second", "first") {
            // the deliveries of both tags request the mount before the first is refused
            std::thread::sleep(Duration::from_millis(300));
            return ProxyAction::status(403);
        }
        ProxyAction::Pass
    });
    let site = format!(
        "apiVersion: landfall/v1\nkind: Site\nregistry:\n  address: {}\n  paths:\n    one.test/app: [first, second]\n",
        middle.address
    );
    place.write("site.yaml", site);
    let address = &middle.address;
    place.json(
        0,
        &["push", "b", "--site", "site.yaml", "--plain-http", address],
    );
    let requests = middle.requests();
    let lookups: Vec<&str> = requests
        .iter()
        .filter(|request| {
            ["first", "second"].iter().any(|repository| {
                request.is("HEAD", &format!("/v2/{repository}/blobs/"))
                    || request.is("POST", &format!("/v2/{repository}/blobs/uploads/?mount="))
                        && request.target.ends_with(&format!("&from={repository}"))
            })
        })
        .map(|request| request.target.as_str())
        .collect();
    // two blobs in two repositories, and one mount that finds out what the registry supports
    assert!(lookups.len() <= 5, "{lookups:#?}");
}

#[test]
fn an_unreachable_registry_is_an_error_of_the_destination() {
    if !need(&NEEDS) {
        return;
    }
    let (place, _upstream, _images) = packed("images: [one.test/app:v1]\n");
    let nobody = format!("127.0.0.1:{}", free_port());
    let report = place.json(1, &["push", "b", "--to", &nobody]);
    assert_eq!(
        (&report["status"], &report["error"]["side"]),
        (&"failed".into(), &"destination".into())
    );
    let message = report["error"]["message"].as_str().unwrap();
    assert!(
        message.contains(&nobody) && message.contains("refused"),
        "{message}"
    );
    let report = place.json(2, &["push", "b"]);
    assert!(
        report["error"]["message"]
            .as_str()
            .unwrap()
            .contains("--to HOST[:PORT]")
    );
}

#[test]
fn a_registry_is_mirrored_into_itself() {
    if !need(&NEEDS) {
        return;
    }
    let place = Place::new();
    let registry = own_registry();
    let images = Images::new(place.path("layout"));
    let layers: Vec<_> = (0..4)
        .map(|n| images.layer(&[("layer", &noise(n, 300_000))]))
        .collect();
    images.push(
        &registry.address,
        "team/app",
        "v1",
        &images.image("linux/amd64", &layers),
    );
    let address = &registry.address;
    let head = "apiVersion: landfall/v1\nkind";
    place.write(
        "m.yaml",
        format!("{head}: Manifest\nmetadata: {{name: m}}\nimages: [\"{address}/team/app:v1\"]\n"),
    );
    // with one slot, an upload that kept the slot while it waited for a download would wait forever
    let upstreams = format!("upstreams: {{\"{address}\": {{maxConcurrent: 1}}}}");
    place.write("site.yaml", format!("{head}: Site\n{upstreams}\n"));
    let to = format!("{address}/tested");
    place.ok(&[
        "mirror",
        "-f",
        "m.yaml",
        "--to",
        &to,
        "--site",
        "site.yaml",
        "--first-byte",
        "20s",
    ]);
    let [old, new] =
        ["team/app", "tested/team/app"].map(|name| http::manifest(address, name, "v1"));
    assert_eq!((new.status, new.body), (200, old.body));
    assert_eq!(
        registry.requests("\" 200 300"),
        4,
        "a layer was not downloaded exactly once: {}",
        registry.log()
    );
}

/// Detected plain http is reported with the line for the site. Configured plain http is not
/// reported.
#[test]
fn detected_plain_http_is_reported_with_the_line_for_the_site() {
    if !need(&NEEDS) {
        return;
    }
    let (place, _upstream, _images) = packed("images: [one.test/app:v1]\n");
    let registry = own_registry();
    let stderr_of = |args: &[&str]| {
        let run = place
            .command()
            .args(args)
            .args(["--progress", "none"])
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&run.stderr).into_owned();
        assert_eq!(run.status.code(), Some(0), "{printed}");
        printed
    };
    let note = format!(
        "note: {} uses plain http (found by probing)",
        registry.address
    );
    let mirror = [
        "mirror",
        "-f",
        "m.yaml",
        "--site",
        "up.yaml",
        "--to",
        &registry.address,
    ];
    for args in [&["push", "b", "--to", &registry.address][..], &mirror] {
        let printed = stderr_of(args);
        assert_eq!(printed.matches(&note).count(), 1, "{printed}");
        assert!(
            printed.contains("add `plainHTTP: true` under registry in the site"),
            "{printed}"
        );
    }
    let printed = stderr_of(&[
        "push",
        "b",
        "--to",
        &registry.address,
        "--plain-http",
        &registry.address,
    ]);
    assert!(!printed.contains("plain http"), "{printed}");
    let site = format!(
        "apiVersion: landfall/v1\nkind: Site\nregistry: {{address: \"{}\", plainHTTP: true}}\n",
        registry.address
    );
    place.write("site.yaml", site);
    assert!(!stderr_of(&["push", "b", "--site", "site.yaml"]).contains("plain http"));
}
