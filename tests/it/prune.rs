//! `push --prune`: the content that it lists and deletes at a real registry, and the content that
//! it keeps.

use crate::support::faults::{Content, Faults};
use crate::support::front::Front;
use crate::support::images::{OCI_INDEX, digest, noise};
use crate::support::peers::{Server, docker_registry_without_deletion, own_registry};
use crate::support::signed::tag_of;
use crate::support::{Images, Place, docker_registry, http, need};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const NEEDS: [&str; 2] = ["docker-registry", "gzip"];

/// A private registry, and the bundles that were pushed to it. `app:v1` and `app:v2` are two
/// indexes that share an image; each index has a signature under cosign's tag. The repository
/// `other` was filled without landfall; it has the image that is only in `v1`.
struct Far {
    place: Place,
    registry: Server,
    _upstream: Server,
    /// The indexes of `v1` and `v2`.
    indexes: [Value; 2],
    /// The image only in `v1`, the shared image, and the image only in `v2`.
    images: [Value; 3],
    signatures: [String; 2],
}

impl Far {
    fn new(registry: Server) -> Far {
        let place = Place::new();
        let upstream = own_registry();
        let images = Images::new(place.path("layout"));
        let one = |platform, seed| {
            images.image(platform, &[images.layer(&[("app", &noise(seed, 4000))])])
        };
        let own = [
            one("linux/amd64", 1),
            one("linux/arm64", 2),
            one("linux/amd64", 3),
        ];
        let indexes = [
            images.index(&[own[0].clone(), own[1].clone()]),
            images.index(&[own[1].clone(), own[2].clone()]),
        ];
        let mut signatures = [String::new(), String::new()];
        for (at, index) in indexes.iter().enumerate() {
            let tag = format!("v{}", at + 1);
            images.push(&upstream.address, "app", &tag, index);
            let signature = images.artifact("application/vnd.example.sig", tag.as_bytes(), None);
            signatures[at] = tag_of(index, ".sig");
            images.push(&upstream.address, "app", &signatures[at], &signature);
            let manifest = "apiVersion: landfall/v1\nkind: Manifest\nmetadata: {name: t}\nimages: ";
            place.write(
                "m.yaml",
                format!("{manifest}[\"{}/app:{tag}\"]\n", upstream.address),
            );
            let lock = format!("{tag}.lock");
            let bundle = format!("b{}", at + 1);
            place.ok(&["lock", "-f", "m.yaml", "--lock", &lock, "--store", "store"]);
            place.ok(&["pull", "--lock", &lock, "--store", "store"]);
            place.ok(&["pack", "--lock", &lock, "-o", &bundle, "--store", "store"]);
            let receipt = format!("r{}.json", at + 1);
            place.ok(&[
                "push",
                &bundle,
                "--to",
                &registry.address,
                "--receipt",
                &receipt,
            ]);
        }
        images.push(&registry.address, "other", "mine", &own[0]);
        Far {
            place,
            registry,
            _upstream: upstream,
            indexes,
            images: own,
            signatures,
        }
    }

    fn push(&self, exit: i32, more: &[&str]) -> Value {
        let push = ["push", "b2", "--to", &self.registry.address];
        self.place.json(exit, &[&push, more].concat())
    }

    /// The descriptors of the config and of the layers of an image at the registry.
    fn blobs(&self, repository: &str, reference: &str) -> Vec<Value> {
        let manifest = http::manifest(&self.registry.address, repository, reference).json();
        let layers = manifest["layers"].as_array().unwrap().iter();
        std::iter::once(&manifest["config"])
            .chain(layers)
            .cloned()
            .collect()
    }

    fn status(&self, repository: &str, reference: &str) -> u16 {
        http::manifest(&self.registry.address, repository, reference).status
    }
}

fn size(blobs: &[Value]) -> u64 {
    blobs
        .iter()
        .map(|blob| blob["size"].as_u64().unwrap())
        .sum()
}

/// The output of `kubectl get pods -A -o json` for one pod with this image.
fn pods(image: &str) -> String {
    let pod = json!({"spec": {"containers": [{"image": image}]}});
    json!({"kind": "List", "apiVersion": "v1", "items": [pod]}).to_string()
}

/// The digests of the manifests that the push deleted or would delete.
fn gone(report: &Value) -> Vec<&str> {
    report["pruned"]["manifests"]
        .as_array()
        .unwrap()
        .iter()
        .map(digest)
        .collect()
}

const PRUNE: [&str; 3] = ["--prune", "--repository", "app"];

#[test]
fn unneeded_manifests_are_listed_and_deleted_only_with_delete() {
    if !need(&NEEDS) {
        return;
    }
    let far = Far::new(docker_registry());
    let [v1, v2] = [0, 1].map(|at| digest(&far.indexes[at]));
    let listed = far.push(0, &PRUNE);
    let would = gone(&listed);
    assert!(
        would.contains(&v1) && would.contains(&digest(&far.images[0])),
        "{listed:#}"
    );
    // v1, its own image and its signature are listed, but not the image that v2 also names
    assert_eq!(
        (would.len(), &listed["pruned"]["deleted"]),
        (3, &json!(false)),
        "{listed:#}"
    );
    assert_eq!(far.status("app", "v1"), 200, "a list removes nothing");
    assert_eq!(
        gone(&far.push(0, &[&PRUNE[..], &["--delete", "--dry-run"]].concat())),
        would
    );
    assert_eq!(far.status("app", "v1"), 200, "a dry run removes nothing");

    // the bytes of v1's own image count: `other` has this image too, but this command does not
    // examine `other`. The config of v1's signature does not count: v2's signature has the same
    // config
    let signature = &far.blobs("app", &far.signatures[0])[1..];
    let all = size(signature) + size(&far.blobs("app", digest(&far.images[0])));
    assert_eq!(listed["pruned"]["bytes"], all, "{listed:#}");
    far.place.write(
        "pods.json",
        pods(&format!("{}/other:mine", far.registry.address)),
    );
    let both = [
        "--prune",
        "--repository",
        "app",
        "--repository",
        "other",
        "--keep",
        "pods.json",
    ];
    let both = far.push(0, &both);
    assert_eq!(
        (gone(&both), &both["pruned"]["bytes"]),
        (would.clone(), &json!(size(signature))),
        "{both:#}"
    );

    let did = far.push(
        0,
        &[&PRUNE[..], &["--delete", "--receipt", "r.json"]].concat(),
    );
    assert_eq!(did["pruned"]["bytes"], all);
    assert_eq!(gone(&did), would);
    for (reference, status) in [
        ("v1", 404),
        (v1, 404),
        (digest(&far.images[0]), 404),
        (&far.signatures[0], 404),
        ("v2", 200),
        (v2, 200),
        (digest(&far.images[1]), 200),
        (digest(&far.images[2]), 200),
        (&far.signatures[1], 200),
    ] {
        assert_eq!(far.status("app", reference), status, "{reference}");
    }
    assert_eq!(
        far.status("other", "mine"),
        200,
        "a repository that is not named is not changed"
    );
    let receipt: Value = serde_json::from_str(&far.place.read("r.json")).unwrap();
    assert_eq!(
        receipt["pruned"].as_array().unwrap().len(),
        3,
        "{receipt:#}"
    );
    assert!(
        receipt["pruned"][0]["tags"].is_array() && receipt["items"].as_array().unwrap().len() == 1
    );
    assert!(gone(&far.push(0, &[&PRUNE[..], &["--delete"]].concat())).is_empty());
    // the remaining content is complete
    far.place.json(
        0,
        &["status", "b2", "--to", &far.registry.address, "--recheck"],
    );
}

#[test]
fn content_of_locks_receipts_bundles_pods_and_last_tags_is_kept() {
    if !need(&NEEDS) {
        return;
    }
    let far = Far::new(docker_registry());
    let v1 = digest(&far.indexes[0]).to_owned();
    far.place.write(
        "by-tag.json",
        pods(&format!("{}/app:v1", far.registry.address)),
    );
    far.place
        .write("by-digest.json", pods(&format!("quay.io/any/name@{v1}")));
    far.place
        .write("of-another.json", pods("quay.io/any/name:v1"));
    let kept = ["v1.lock", "r1.json", "b1", "by-tag.json", "by-digest.json"];
    for keep in kept {
        assert!(
            gone(&far.push(0, &[&PRUNE[..], &["--keep", keep]].concat())).is_empty(),
            "{keep}"
        );
    }
    assert!(gone(&far.push(0, &[&PRUNE[..], &["--keep-last", "2"]].concat())).is_empty());
    assert_eq!(
        gone(&far.push(0, &[&PRUNE[..], &["--keep-last", "1"]].concat())).len(),
        3
    );
    assert_eq!(
        gone(&far.push(0, &[&PRUNE[..], &["--keep", "of-another.json"]].concat())).len(),
        3
    );

    far.place.write(
        "r9.json",
        far.place
            .read("r1.json")
            .replace(&far.registry.address, "elsewhere:5000"),
    );
    let other = far.push(2, &[&PRUNE[..], &["--keep", "r9.json"]].concat());
    assert!(
        other["error"]["message"]
            .as_str()
            .unwrap()
            .contains("push to elsewhere:5000")
    );
    far.place.write(
        "empty.json",
        r#"{"kind": "List", "apiVersion": "v1", "items": []}"#,
    );
    let empty = far.push(2, &[&PRUNE[..], &["--keep", "empty.json"]].concat());
    assert!(
        empty["error"]["message"]
            .as_str()
            .unwrap()
            .contains("contains no image of a pod")
    );
}

/// An image with one small layer.
fn small_image(images: &Images, seed: u64) -> Value {
    let layer = images.layer(&[("app", &noise(seed, 400))]);
    images.image("linux/amd64", &[layer])
}

/// Fills the repository `app` at `address` with images, indexes and artifacts that refer to each
/// other in different ways. Returns the digests that pods run, and the digests that may be deleted
/// while these pods run.
fn fill_with_shapes(images: &Images, address: &str) -> (Vec<String>, BTreeSet<String>) {
    let image = |seed| small_image(images, seed);
    let push = |tag: &str, manifest: &Value| images.push(address, "app", tag, manifest);
    let artifact = |content: &str, subject: Option<&Value>| {
        images.artifact("application/vnd.example", content.as_bytes(), subject)
    };
    let about = |subject: &Value, child: &Value| {
        let index = json!({
            "schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": [child],
            "artifactType": "application/vnd.example", "subject": subject,
        });
        images.blob(OCI_INDEX, &serde_json::to_vec(&index).unwrap())
    };
    let mut pods = Vec::new();
    let mut gone = Vec::new();

    // a child of an index, and a child of a nested index
    let child = image(11);
    push("child", &images.index(&[child.clone(), image(12)]));
    let nested = image(13);
    push(
        "nested",
        &images.index(&[images.index(std::slice::from_ref(&nested))]),
    );
    pods.extend([child, nested]);
    // a child of two indexes; pods need the child and one of the indexes
    let [shared, own] = [14, 15].map(image);
    let kept = images.index(&[shared.clone(), image(16)]);
    let old = images.index(&[shared.clone(), own.clone()]);
    push("shared-kept", &kept);
    push("shared-old", &old);
    pods.extend([shared, kept]);
    gone.extend([old, own]);
    // a manifest with two tags
    let twice = image(18);
    push("one", &twice);
    push("two", &twice);
    pods.push(twice);
    // an artifact and an index whose subject is a kept image, and an image that only the index
    // names
    let subject = image(19);
    push("subject", &subject);
    push("about-image", &artifact("1", Some(&subject)));
    push("about-index", &about(&subject, &image(20)));
    pods.push(subject);
    // the subject of a kept referrer
    let subject = image(21);
    push("subject-of-kept", &subject);
    let referrer = artifact("2", Some(&subject));
    push("referrer", &referrer);
    pods.push(referrer);
    // an index without a tag; another index has one of its images
    let own = image(22);
    let untagged = images.index(&[own.clone(), image(23)]);
    push(digest(&untagged), &untagged);
    push(&tag_of(&untagged, ".sig"), &artifact("3", None));
    let part_child = image(24);
    let part = images.index(&[own, part_child.clone()]);
    push("part", &part);
    pods.push(untagged);
    gone.extend([part, part_child]);
    // an index with a nested index, a signature and two referrers; no pod runs any of them
    let unneeded = [image(25), image(26)];
    let index = images.index(&[images.index(&unneeded[..1]), unneeded[1].clone()]);
    let signature = artifact("4", None);
    let referrers = [artifact("5", Some(&index)), about(&index, &unneeded[0])];
    push("unneeded", &index);
    push(&tag_of(&index, ".sig"), &signature);
    push("unneeded-image", &referrers[0]);
    push("unneeded-index", &referrers[1]);
    gone.extend([index, images.index(&unneeded[..1]), signature]);
    gone.extend(unneeded.into_iter().chain(referrers));

    let digests = |all: Vec<Value>| all.into_iter().map(|one| digest(&one).to_owned());
    (digests(pods).collect(), digests(gone).collect())
}

#[test]
fn prune_keeps_every_manifest_that_running_pods_need() {
    if !need(&NEEDS) {
        return;
    }
    let far = Far::new(docker_registry());
    let with_referrers = Faults::new(Content::default());
    let images = Images::new(far.place.path("shapes"));
    for address in [&far.registry.address, &with_referrers.address] {
        let (running, mut expected) = fill_with_shapes(&images, address);
        let mut pods: Vec<Value> = running
            .iter()
            .map(|digest| json!({"image": format!("{address}/app@{digest}")}))
            .collect();
        if *address == with_referrers.address {
            // referrers without a tag, which only the API lists
            let subjects = [31, 32].map(|seed| small_image(&images, seed));
            for (at, subject) in subjects.iter().enumerate() {
                images.push(address, "app", &format!("untagged-{at}"), subject);
                let content = format!("untagged {at}");
                let referrer =
                    images.artifact("application/vnd.example", content.as_bytes(), Some(subject));
                images.push(address, "app", digest(&referrer), &referrer);
                if at == 0 {
                    pods.push(json!({"image": format!("{address}/app@{}", digest(&referrer))}));
                } else {
                    expected.extend([subject, &referrer].map(|one| digest(one).to_owned()));
                }
            }
        } else {
            // `v1` with its own image and its signature
            expected.extend([&far.indexes[0], &far.images[0]].map(|one| digest(one).to_owned()));
            let signature = http::manifest(address, "app", &far.signatures[0]);
            expected.insert(crate::support::images::sha256(&signature.body));
        }
        let dump = json!({"kind": "List", "apiVersion": "v1", "items": pods});
        far.place.write("pods.json", dump.to_string());
        let push = ["push", "b2", "--to", address];
        let prune = ["--keep", "pods.json", "--delete"];
        let report = far.place.json(0, &[&push[..], &PRUNE, &prune].concat());
        let deleted: BTreeSet<String> = gone(&report).into_iter().map(str::to_owned).collect();
        let [extra, missing] = [(&deleted, &expected), (&expected, &deleted)]
            .map(|(one, other)| one.difference(other).collect::<Vec<_>>());
        assert!(
            extra.is_empty() && missing.is_empty(),
            "{address}: deleted {extra:?}, not deleted {missing:?}: {report:#}"
        );
        for digest in &running {
            assert_eq!(
                http::manifest(address, "app", digest).status,
                200,
                "{digest}"
            );
        }
    }
}

#[test]
fn only_named_repositories_are_pruned_and_unlistable_ones_are_skipped() {
    if !need(&NEEDS) {
        return;
    }
    let far = Far::new(docker_registry());
    let unnamed = far.push(2, &["--prune"]);
    let printed = unnamed["error"]["message"].as_str().unwrap();
    assert!(
        printed.contains("--repository NAME") && printed.contains("\n  app\n"),
        "{printed}"
    );
    far.place.write("names", "# ours\nnobody/knows\napp\n");
    let report = far.push(3, &["--prune", "--delete", "--repository", "@names"]);
    let left = &report["pruned"]["repositories"][1];
    assert_eq!(
        (&left["repository"], left["why"].is_string()),
        (&json!("nobody/knows"), true),
        "{report:#}"
    );
    // the repository that cannot be examined may need every blob
    assert!(report["pruned"]["bytes"].is_null(), "{report:#}");
    assert_eq!(gone(&report).len(), 3);
    let bad = far.push(2, &["--prune", "--repository", "r:5000/app:v1"]);
    assert!(
        bad["error"]["message"]
            .as_str()
            .unwrap()
            .contains("omit the registry")
    );
}

#[test]
fn an_index_that_cannot_be_deleted_keeps_its_images() {
    if !need(&NEEDS) {
        return;
    }
    let far = Far::new(docker_registry());
    let front = Front::new(&far.registry.address);
    let v1 = digest(&far.indexes[0]);
    let deletion = format!("DELETE /v2/app/manifests/{v1}");
    front.answer(&deletion, 403, "", b"{}");
    let push = ["push", "b2", "--to", &front.address];
    let tried = far
        .place
        .json(3, &[&push[..], &PRUNE, &["--delete"]].concat());
    assert_eq!(gone(&tried).len(), 1, "only the signature: {tried:#}");
    for reference in ["v1", v1, digest(&far.images[0])] {
        assert_eq!(far.status("app", reference), 200, "{reference}");
    }
    assert_eq!(far.status("app", &far.signatures[0]), 404);
}

#[test]
fn a_registry_that_cannot_delete_gets_a_hint() {
    if !need(&NEEDS) {
        return;
    }
    let far = Far::new(docker_registry_without_deletion());
    assert_eq!(gone(&far.push(0, &PRUNE)).len(), 3);
    let refused = far.push(3, &[&PRUNE[..], &["--delete"]].concat());
    let printed = refused["error"]["message"].as_str().unwrap();
    assert!(
        printed.contains("storage.delete.enabled") && printed.starts_with("delivered, but "),
        "{printed}"
    );
    assert_eq!(far.status("app", "v1"), 200);
}
