//! Images that list other images: bundles of imgpkg, as its `push` writes them, with bundles in
//! bundles, copied bundles, and damaged ones.

use crate::support::charts::failure_reasons;
use crate::support::images::Images;
use crate::support::peers::{docker_registry, own_registry};
use crate::support::{Place, http, need, run};
use serde_json::{Value, json};

const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
const DOCKER_CONFIG: &str = "application/vnd.docker.container.image.v1+json";

/// A bundle with this text as its list of images.
fn bundle_of(images: &Images, text: &str) -> Value {
    let layer = images.docker_layer(&[
        ("config/app.yml", b"kind: Deployment"),
        (".imgpkg/images.yml", text.as_bytes()),
    ]);
    let config = json!({
        "architecture": "", "os": "", "created": "0001-01-01T00:00:00Z",
        "config": {"Labels": {"dev.carvel.imgpkg.bundle": "true"}},
        "rootfs": {"type": "layers", "diff_ids": []},
    });
    let config = images.blob(DOCKER_CONFIG, config.to_string().as_bytes());
    let manifest = json!({
        "schemaVersion": 2, "mediaType": DOCKER_MANIFEST, "config": config, "layers": [layer],
    });
    images.blob(DOCKER_MANIFEST, manifest.to_string().as_bytes())
}

/// A list of these images.
fn list(names: &[String]) -> String {
    let images = names
        .iter()
        .map(|name| format!("- image: {name}\n  annotations: {{a: b}}\n"));
    format!(
        "---\napiVersion: imgpkg.carvel.dev/v1alpha1\nkind: ImagesLock\nimages:\n{}",
        images.collect::<String>()
    )
}

/// A registry with two plain images, a bundle that lists one of them, and a bundle that lists that
/// bundle and the other image. Returns the names of these four.
fn upstream(place: &Place, address: &str) -> (Images, [String; 4]) {
    let images = Images::new(place.path("layout"));
    let name = |repository: &str, image: &Value| {
        format!(
            "{address}/{repository}@{}",
            image["digest"].as_str().unwrap()
        )
    };
    let plain = |repository: &str| {
        let image = images.image(
            "linux/amd64",
            &[images.layer(&[("bin", repository.as_bytes())])],
        );
        images.push(address, repository, "v1", &image);
        name(repository, &image)
    };
    let [first, second] = ["team/first", "team/second"].map(plain);
    let inner = bundle_of(&images, &list(std::slice::from_ref(&first)));
    images.push(address, "team/inner", "v1", &inner);
    let inner = name("team/inner", &inner);
    let outer = bundle_of(&images, &list(&[inner.clone(), second.clone()]));
    images.push(address, "team/outer", "v1", &outer);
    (
        images,
        [first, second, inner, format!("{address}/team/outer:v1")],
    )
}

fn manifest(place: &Place, entry: &str) {
    place.write(
        "m.yaml",
        format!("apiVersion: landfall/v1\nkind: Manifest\nplatforms: [linux/amd64]\nimages:\n- {entry}\n"),
    );
}

/// The names of the images in the lock.
fn locked(place: &Place) -> Vec<String> {
    let lock = place.read("landfall.lock");
    let names = lock
        .lines()
        .filter_map(|line| line.strip_prefix("- name: "));
    names
        .map(|name| name.trim_matches('"').to_owned())
        .collect()
}

#[test]
fn the_images_of_a_bundle_are_carried_if_that_is_asked_for() {
    let place = Place::new();
    let up = own_registry();
    let (_, [first, second, inner, outer]) = upstream(&place, &up.address);
    // by default, a note names the number
    manifest(&place, &format!("\"{outer}\""));
    let printed = place.stderr(0, &["lock", "-f", "m.yaml"]);
    assert!(
        printed.contains(&format!(
            "{outer} lists 2 other images, not carried; write `listed: true`"
        )),
        "{printed}"
    );
    assert_eq!(locked(&place), [outer.as_str()]);
    // the report says so too, also of a pinned image
    let report = place.json(0, &["lock", "-f", "m.yaml"]);
    assert_eq!(
        report["items"][0]["reason"], "it lists 2 other images",
        "{report}"
    );

    let carried = format!("{{ref: \"{outer}\", listed: true}}");
    manifest(&place, &carried);
    let report = place.json(0, &["lock", "-f", "m.yaml"]);
    let mut all = [&first, &second, &inner, &outer]
        .map(String::clone)
        .to_vec();
    all.sort();
    let mut names = locked(&place);
    names.sort();
    assert_eq!(names, all, "{report}");
    let lock = place.read("landfall.lock");
    assert!(lock.contains("  lists:\n"), "{lock}");
    // locking again changes nothing and sends no request
    let before = up.requests("\"");
    place.json(0, &["lock", "-f", "m.yaml"]);
    assert_eq!(up.requests("\""), before);
    // the images are delivered like others
    place.ok(&["pull"]);
    place.ok(&["pack", "-o", "b"]);
    let there = own_registry();
    place.ok(&["push", "b", "--to", &there.address]);
    for (repository, name) in [
        ("team/first", &first),
        ("team/second", &second),
        ("team/inner", &inner),
    ] {
        let digest = name.split('@').nth(1).unwrap();
        let path = format!("/v2/{repository}/manifests/{digest}");
        assert_eq!(
            http::request("GET", &there.address, &path, &[], b"").status,
            200,
            "{path}"
        );
    }
    // an image that is excluded is not carried
    place.write(
        "m.yaml",
        format!(
            "apiVersion: landfall/v1\nkind: Manifest\nexclude: [\"{}\"]\nimages: [{carried}]\n",
            second.split('@').next().unwrap()
        ),
    );
    place.json(0, &["lock", "-f", "m.yaml"]);
    assert_eq!(locked(&place).len(), 3);
    // without the key, the images leave the lock
    manifest(&place, &format!("\"{outer}\""));
    place.json(0, &["lock", "-f", "m.yaml"]);
    assert_eq!(locked(&place), [outer.as_str()]);
}

/// After `imgpkg copy`, the registry has all images in the repository of the bundle.
#[test]
fn the_images_of_a_copied_bundle_are_requested_from_its_repository() {
    let place = Place::new();
    let up = own_registry();
    let images = Images::new(place.path("layout"));
    let address = &up.address;
    let image = images.image("linux/amd64", &[images.layer(&[("bin", b"bin")])]);
    let digest = image["digest"].as_str().unwrap();
    // nothing answers at the original place
    let gone = format!("127.0.0.1:1/gone/app@{digest}");
    let bundle = bundle_of(&images, &list(&[gone]));
    images.push(address, "copied/bundle", "app", &image);
    images.push(address, "copied/bundle", "v1", &bundle);
    manifest(
        &place,
        &format!("{{ref: \"{address}/copied/bundle:v1\", listed: true}}"),
    );
    place.json(0, &["lock", "-f", "m.yaml"]);
    let own = format!("{address}/copied/bundle@{digest}");
    assert!(locked(&place).contains(&own), "{:?}", locked(&place));
}

#[test]
fn a_bundle_that_cannot_be_read_is_an_error_with_a_reason() {
    let place = Place::new();
    let up = own_registry();
    let images = Images::new(place.path("layout"));
    let address = &up.address;
    let push = |name: &str, image: &Value| images.push(address, name, "v1", image);
    push(
        "bad/plain",
        &images.image("linux/amd64", &[images.layer(&[("a", b"b")])]),
    );
    push(
        "bad/docker",
        &images.docker_image("linux/amd64", &[images.docker_layer(&[("a", b"b")])]),
    );
    push("bad/yaml", &bundle_of(&images, "kind: ["));
    push("bad/kind", &bundle_of(&images, "kind: Other\nimages: []\n"));
    push(
        "bad/tag",
        &bundle_of(&images, &list(&["quay.io/a/b:v1".to_owned()])),
    );
    for (name, reason) in [
        ("plain", "it has `listed: true`, but lists no images"),
        ("docker", "it has `listed: true`, but lists no images"),
        (
            "yaml",
            "the list of images: .imgpkg/images.yml is not valid",
        ),
        (
            "kind",
            ".imgpkg/images.yml is not a document of the kind ImagesLock",
        ),
        (
            "tag",
            ".imgpkg/images.yml has the image 'quay.io/a/b:v1' without a digest",
        ),
    ] {
        manifest(
            &place,
            &format!("{{ref: \"{address}/bad/{name}:v1\", listed: true}}"),
        );
        let why = failure_reasons(&place.json(1, &["lock", "-f", "m.yaml"]));
        assert!(why.contains(reason), "{name}: {why}");
    }
    // bundles in bundles without end
    let mut bundle = bundle_of(&images, &list(&[]));
    for depth in 0..11 {
        push(&format!("deep/{depth}"), &bundle);
        let name = format!(
            "{address}/deep/{depth}@{}",
            bundle["digest"].as_str().unwrap()
        );
        bundle = bundle_of(&images, &list(&[name]));
    }
    push("deep/top", &bundle);
    manifest(
        &place,
        &format!("{{ref: \"{address}/deep/top:v1\", listed: true}}"),
    );
    let why = failure_reasons(&place.json(3, &["lock", "-f", "m.yaml"]));
    assert!(why.contains("is below 8 bundles already"), "{why}");
}

/// What imgpkg itself does with a bundle behind the gap, if it is installed.
#[test]
fn imgpkg_pulls_a_delivered_bundle() {
    if !need(&["imgpkg", "docker-registry"]) {
        return;
    }
    let place = Place::new();
    let up = docker_registry();
    let (_, [first, ..]) = upstream(&place, &up.address);
    // the bundle `inner` and its image; the site delivers the image to the bundle's repository too
    manifest(
        &place,
        &format!("{{ref: \"{}/team/inner:v1\", listed: true}}", up.address),
    );
    let there = docker_registry();
    place.write(
        "site.yaml",
        format!(
            "apiVersion: landfall/v1\nkind: Site\nregistry:\n  address: {}\n  paths:\n    \
             \"{}/team/first\": [team/first, team/inner]\n",
            there.address, up.address
        ),
    );
    place.ok(&["lock", "-f", "m.yaml"]);
    place.ok(&["pull"]);
    place.ok(&["push", "--site", "site.yaml"]);
    let mut pull = place.clean("imgpkg");
    pull.args([
        "pull",
        "--registry-insecure",
        "-b",
        &format!("{}/team/inner:v1", there.address),
    ]);
    run(pull.arg("-o").arg(place.path("out")));
    let text = place.read("out/.imgpkg/images.yml");
    let digest = first.split('@').nth(1).unwrap();
    let relocated = format!("{}/team/inner@{digest}", there.address);
    assert!(text.contains(&relocated), "{text}");
}
