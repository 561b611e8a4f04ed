//! Manifests, indexes and configs as tools out there write them: with absent, `null` and
//! contradicting members. They are locked, pulled, packed, verified, pushed and served with the
//! same bytes.

use crate::support::Place;
use crate::support::faults::{Content, Fault, FaultKind, Faults, RequestKind, Rule, Settings};
use crate::support::http;
use crate::support::images::{
    DOCKER_LIST, OCI_CONFIG, OCI_GZIP, OCI_INDEX, OCI_MANIFEST, digest, noise, sha256,
};
use crate::support::peers::landfall_serve;
use crate::support::reverse_proxy::{ProxyAction, ReverseProxy};
use serde_json::{Value, json};
use std::sync::Arc;

const ARTIFACT: &str = "application/vnd.oci.artifact.manifest.v1+json";

/// Adds a manifest with exactly these bytes, and returns its descriptor.
fn raw(content: &mut Content, repository: &str, media_type: &str, text: &str) -> Value {
    let bytes = text.as_bytes().to_vec();
    let digest = sha256(&bytes);
    let size = bytes.len();
    let key = (repository.to_owned(), digest.clone());
    let value = (media_type.to_owned(), Arc::new(bytes));
    content.manifests.insert(key, value);
    json!({"mediaType": media_type, "digest": digest, "size": size})
}

/// Repositories with one odd manifest each, under the tag `v1`.
fn odd_content() -> Content {
    let mut content = Content::default();
    let mut add = |name: &str, media_type: &str, document: &dyn Fn(&mut Content) -> String| {
        let text = document(&mut content);
        let top = raw(&mut content, name, media_type, &text);
        content.tag(name, "v1", &top);
    };
    let config = |content: &mut Content, name: &str, text: &str| {
        content.blob(name, OCI_CONFIG, text.as_bytes().to_vec())
    };
    add("no-layers", OCI_MANIFEST, &|content| {
        let config = config(content, "no-layers", "{}");
        json!({"schemaVersion": 2, "mediaType": OCI_MANIFEST, "config": config}).to_string()
    });
    add("null-layers", OCI_MANIFEST, &|content| {
        let config = config(content, "null-layers", "");
        json!({"schemaVersion": 2, "config": config, "layers": null, "manifests": null}).to_string()
    });
    add("no-config", OCI_MANIFEST, &|content| {
        let layer = content.blob("no-config", OCI_GZIP, noise(1, 300));
        json!({"schemaVersion": 2, "mediaType": OCI_MANIFEST, "layers": [layer, layer]}).to_string()
    });
    add("null-manifests", OCI_INDEX, &|_| {
        format!(r#"{{"schemaVersion":2,"mediaType":"{OCI_INDEX}","manifests":null}}"#)
    });
    // no mediaType, and a Content-Type of another kind
    add("wrong-type", DOCKER_LIST, &|content| {
        let config = config(
            content,
            "wrong-type",
            r#"{"os":"linux","architecture":"amd64"}"#,
        );
        let layer = content.blob("wrong-type", OCI_GZIP, noise(2, 300));
        json!({"schemaVersion": 2, "config": config, "layers": [layer]}).to_string()
    });
    add("wrong-type-index", OCI_MANIFEST, &|content| {
        let child = content.image("wrong-type-index", "linux/amd64", &[(3, 300)]);
        json!({"schemaVersion": 2, "manifests": [child]}).to_string()
    });
    // the mediaType contradicts the members
    add("contradiction", OCI_INDEX, &|content| {
        let config = config(content, "contradiction", "not JSON at all");
        json!({"schemaVersion": 2, "mediaType": OCI_INDEX, "config": config, "layers": []})
            .to_string()
    });
    add("old-artifact", ARTIFACT, &|content| {
        let blob = content.blob("old-artifact", "text/plain", b"old".to_vec());
        json!({"mediaType": ARTIFACT, "artifactType": "text/plain", "blobs": [blob]}).to_string()
    });
    add(
        "unknown-type",
        "application/vnd.example.bundle.v3+json",
        &|content| {
            let blob = content.blob("unknown-type", "text/plain", b"unknown".to_vec());
            json!({"mediaType": "application/vnd.example.bundle.v3+json", "layers": [blob]})
                .to_string()
        },
    );
    add("odd-members", OCI_MANIFEST, &|content| {
        let mut config = config(content, "odd-members", r#"{"os":null,"architecture":7}"#);
        config["size"] = json!(f64::from(
            u32::try_from(config["size"].as_u64().unwrap()).unwrap()
        ));
        config["annotations"] = json!([1]);
        let mut layer = content.blob("odd-members", OCI_GZIP, noise(4, 300));
        layer["digest"] = layer["digest"].as_str().unwrap().to_uppercase().into();
        layer["urls"] = Value::Null;
        json!({"schemaVersion": "2", "annotations": {"a": 1, "b": null}, "artifactType": 3,
            "subject": null, "config": config, "layers": [layer]})
        .to_string()
    });
    add("byte-order-mark", OCI_MANIFEST, &|content| {
        let text = "\u{feff}{\"os\":\"linux\",\"architecture\":\"amd64\"}";
        let config = config(content, "byte-order-mark", text);
        let document = json!({"schemaVersion": 2, "mediaType": OCI_MANIFEST, "config": config});
        format!("\u{feff}{document}")
    });
    add("byte-order-mark-index", OCI_INDEX, &|content| {
        let child = content.image("byte-order-mark-index", "linux/amd64", &[(8, 300)]);
        format!(
            "\u{feff}{}",
            json!({"schemaVersion": 2, "manifests": [child]})
        )
    });
    // one manifest for two platforms
    add("two-platforms", OCI_INDEX, &|content| {
        let first = content.image("two-platforms", "linux/amd64", &[(6, 300)]);
        let mut second = first.clone();
        second["platform"]["architecture"] = "arm64".into();
        json!({"schemaVersion": 2, "manifests": [first, second]}).to_string()
    });
    add("odd-index", OCI_INDEX, &|content| {
        let mut first = content.image("odd-index", "linux/amd64", &[(5, 300)]);
        first["platform"]["os.features"] = Value::Null;
        first["platform"]["architecture"] = "x86_64".into();
        let again = first.clone();
        let mut second = content.artifact("odd-index", "artifact", None);
        second["platform"] = Value::Null;
        second["annotations"] = json!({"vnd.docker.reference.digest": 1});
        let old = content.blob("odd-index", "text/plain", b"child".to_vec());
        let old = json!({"mediaType": ARTIFACT, "blobs": [old]}).to_string();
        let old = raw(content, "odd-index", ARTIFACT, &old);
        let other = json!({"mediaType": OCI_MANIFEST, "digest": "blake3:00", "size": 7,
            "platform": {"os": "linux", "architecture": "s390x"}});
        json!({"schemaVersion": 2, "mediaType": OCI_INDEX,
            "manifests": [first, again, null, second, old, other], "annotations": []})
        .to_string()
    });
    content
}

#[test]
fn odd_manifests_are_carried_byte_for_byte() {
    let content = odd_content();
    let names: Vec<String> = content.tags.keys().map(|(name, _)| name.clone()).collect();
    let up = Faults::new(content.clone());
    let down = Faults::new(Content::default());
    let place = Place::new();
    let images: Vec<String> = names
        .iter()
        .map(|name| format!("- {}/{name}:v1\n", up.address))
        .collect();
    let manifest = format!(
        "apiVersion: landfall/v1\nkind: Manifest\nplatforms: [linux/amd64]\nimages:\n{}",
        images.concat()
    );
    place.write("m.yaml", manifest);
    let report = place.json(0, &["lock", "-f", "m.yaml", "--store", "s"]);
    assert_eq!(report["items"].as_array().unwrap().len(), names.len());
    let text = place.read("landfall.lock");
    assert!(!text.contains("linux/arm64"), "{text}");
    // a lock of odd content is kept, and agrees with itself
    place.json(0, &["lock", "-f", "m.yaml", "--store", "s", "--check"]);
    place.json(0, &["pull", "--store", "s"]);
    place.json(0, &["pack", "--store", "s", "-o", "b.tar.zst"]);
    place.json(0, &["verify", "b.tar.zst", "--lock", "landfall.lock"]);
    place.json(0, &["ls", "b.tar.zst"]);
    place.json(0, &["sbom", "b.tar.zst"]);
    place.json(0, &["export", "images", "b.tar.zst", "-o", "oci.tar"]);
    let to = format!("{}/m", down.address);
    for _ in 0..2 {
        place.json(0, &["push", "b.tar.zst", "--to", &to]);
    }
    place.json(0, &["status", "--registry", &to, "--bundle", "b.tar.zst"]);
    let served = landfall_serve(&place, &["b.tar.zst"]);
    for name in &names {
        let digest = &content.tags[&(name.clone(), "v1".to_owned())];
        let (_, bytes) = &content.manifests[&(name.clone(), digest.clone())];
        let pushed =
            |content: &mut Content| content.tags[&(format!("m/{name}"), "v1".into())].clone();
        // the registry refuses an index with missing children
        if name != "odd-index" {
            assert_eq!(down.content(pushed), *digest, "{name}");
        }
        let got = http::manifest(&served.address, name, "v1");
        assert_eq!((got.status, &got.body), (200, &**bytes), "{name}");
        let kind = got.header("content-type").unwrap().to_owned();
        let expected = match name.as_str() {
            "null-manifests"
            | "wrong-type-index"
            | "contradiction"
            | "two-platforms"
            | "odd-index"
            | "byte-order-mark-index" => OCI_INDEX,
            "old-artifact" => ARTIFACT,
            "unknown-type" => "application/vnd.example.bundle.v3+json",
            _ => OCI_MANIFEST,
        };
        assert_eq!(kind, expected, "{name}");
    }
}

/// Before, each child of an unknown type was requested as a blob, and the image was missing.
#[test]
fn children_of_unknown_types_are_manifests_or_blobs_as_upstream_has_them() {
    let kind = "application/vnd.example.bundle.v1+json";
    let mut content = Content::default();
    let blob = content.blob("app", "text/plain", b"below".to_vec());
    let manifest = json!({"schemaVersion": 2, "layers": [blob]}).to_string();
    let manifest = raw(&mut content, "app", kind, &manifest);
    let json = content.blob("app", kind, b"{\"a\":1}".to_vec());
    let index = content.index("app", &[manifest.clone(), json.clone()]);
    content.tag("app", "v1", &index);
    let up = Faults::new(content);
    let down = Faults::new(Content::default());
    let rules = json!([{"sparse-indexes": "accepted"}]);
    let rules: Vec<Rule> = serde_json::from_value(rules).unwrap();
    down.set(Settings {
        rules: rules.into(),
        ..Settings::default()
    });
    let place = Place::new();
    place.write("m.yaml", manifest_of(&up.address));
    place.json(0, &["lock", "-f", "m.yaml", "--store", "s"]);
    place.json(0, &["lock", "-f", "m.yaml", "--store", "s", "--check"]);
    place.json(0, &["pull", "--store", "other"]);
    place.json(0, &["pack", "--store", "other", "-o", "b.tar.zst"]);
    place.json(0, &["verify", "b.tar.zst", "--lock", "landfall.lock"]);
    place.json(0, &["push", "b.tar.zst", "--to", &down.address]);
    let key = |one: &Value| ("app".to_owned(), one["digest"].as_str().unwrap().to_owned());
    down.content(|content| {
        let (pushed, _) = &content.manifests[&key(&manifest)];
        assert_eq!(pushed, kind);
        assert!(content.blobs.contains_key(&key(&blob)));
        assert!(content.blobs.contains_key(&key(&json)));
        assert!(!content.manifests.contains_key(&key(&json)));
    });
    let served = landfall_serve(&place, &["b.tar.zst"]);
    let digest = manifest["digest"].as_str().unwrap();
    assert_eq!(http::manifest(&served.address, "app", digest).status, 200);
}

/// An image with two referrers: `kept` and `lost`.
fn referred() -> (Content, Value, Value) {
    let mut content = Content::default();
    let mut image = content.image("app", "linux/amd64", &[(7, 300)]);
    content.tag("app", "v1", &image);
    image.as_object_mut().unwrap().remove("platform");
    let kept = content.artifact("app", "kept", Some(&image));
    let lost = content.artifact("app", "lost", Some(&image));
    (content, kept, lost)
}

fn manifest_of(address: &str) -> String {
    format!("apiVersion: landfall/v1\nkind: Manifest\nimages: [\"{address}/app:v1\"]\n")
}

fn items_of(report: &Value, kind: &str) -> Vec<(String, String)> {
    let items = report["items"].as_array().unwrap().iter();
    items
        .filter(|item| item["kind"] == kind)
        .map(|item| {
            let text = |key: &str| item[key].as_str().unwrap_or_default().to_owned();
            (text("name"), text("status"))
        })
        .collect()
}

#[test]
fn a_referrer_that_cannot_be_read_is_lost_without_its_image() {
    let (content, kept, lost) = referred();
    let faults = [
        FaultKind::Status(404),
        FaultKind::Status(403),
        FaultKind::Status(500),
        FaultKind::Corrupt,
        FaultKind::Page("Blocked"),
    ];
    let up = Faults::new(content);
    let name = format!("{}/app:v1", up.address);
    let lost_name = format!("{name} {}", digest(&lost));
    for fault in faults {
        let place = Place::new();
        place.write("m.yaml", manifest_of(&up.address));
        up.set_faults([Fault::always(RequestKind::Manifest, fault.clone()).at(digest(&lost))]);
        let lock = ["lock", "-f", "m.yaml", "--store", "s"];
        let report = place.json(3, &lock);
        assert_eq!(
            items_of(&report, "image"),
            [(name.clone(), "done".into())],
            "{fault:?}"
        );
        let missing = [(lost_name.clone(), "missing".to_owned())];
        assert_eq!(items_of(&report, "referrer"), missing, "{fault:?}");
        let text = place.read("landfall.lock");
        assert!(
            text.contains(digest(&kept)) && text.contains("kind: referrer"),
            "{text}"
        );
        // later commands repeat the loss, and the image is carried
        let report = place.json(3, &["pull", "--store", "s"]);
        assert_eq!(items_of(&report, "image")[0].1, "done", "{report}");
        assert_eq!(items_of(&report, "referrer"), missing);
        place.json(3, &["pack", "--store", "s", "-o", "b.tar.zst"]);
        place.json(
            3,
            &["pack", "--store", "s", "-o", "b.tar.zst", "--allow-partial"],
        );
        let down = Faults::new(Content::default());
        let to = [
            "push",
            "b.tar.zst",
            "--to",
            &down.address,
            "--allow-partial",
        ];
        let report = place.json(3, &to);
        assert_eq!(items_of(&report, "image")[0].1, "done", "{report}");
        // another run that fails in the same way changes nothing
        place.json(3, &lock);
        assert_eq!(place.read("landfall.lock"), text);
        // the next run without the fault completes the lock
        up.set_faults([]);
        place.json(0, &lock);
        let text = place.read("landfall.lock");
        assert!(
            text.contains(digest(&lost)) && !text.contains("unresolved"),
            "{text}"
        );
        place.json(0, &["pull", "--store", "s"]);
    }
}

#[test]
fn mirror_delivers_an_image_without_the_referrer_that_cannot_be_read() {
    let (content, _, lost) = referred();
    let up = Faults::new(content);
    let down = Faults::new(Content::default());
    let place = Place::new();
    place.write("m.yaml", manifest_of(&up.address));
    up.set_faults([Fault::always(RequestKind::Manifest, FaultKind::Status(500)).at(digest(&lost))]);
    let mirror = [
        "mirror",
        "-f",
        "m.yaml",
        "--store",
        "s",
        "--to",
        &down.address,
    ];
    for status in ["done", "present"] {
        let report = place.json(3, &mirror);
        assert_eq!(items_of(&report, "image")[0].1, status, "{report}");
        assert_eq!(items_of(&report, "referrer").len(), 1, "{report}");
    }
    up.set_faults([]);
    place.json(0, &mirror);
    let has = |content: &mut Content| {
        content
            .manifests
            .contains_key(&("app".to_owned(), digest(&lost).to_owned()))
    };
    assert!(down.content(has));
}

#[test]
fn odd_entries_of_a_list_of_referrers_are_lost_alone() {
    let (content, kept, lost) = referred();
    let up = Faults::new(content);
    let entries = json!([kept, {"digest": "sha384:00", "size": 1}, {"size": 3}, null,
        {"mediaType": OCI_MANIFEST, "digest": digest(&lost), "size": 1_u64 << 40}]);
    let list = json!({"schemaVersion": 2, "manifests": entries}).to_string();
    let top = up.content(|content| content.tags[&("app".to_owned(), "v1".to_owned())].clone());
    let lists = format!("/referrers/{top}");
    let front = ReverseProxy::new(&up.address, move |request| {
        if request.is("GET", &lists) {
            ProxyAction::Answer(200, Vec::new(), list.clone())
        } else {
            ProxyAction::Pass
        }
    });
    let place = Place::new();
    place.write("m.yaml", manifest_of(&front.address));
    let plain = ["--plain-http", &front.address];
    let lock = [&["lock", "-f", "m.yaml", "--store", "s"][..], &plain].concat();
    let report = place.json(3, &lock);
    assert_eq!(items_of(&report, "image")[0].1, "done");
    assert_eq!(items_of(&report, "referrer").len(), 3, "{report}");
    assert!(place.read("landfall.lock").contains(digest(&kept)));
}

#[test]
fn a_list_of_referrers_may_be_null() {
    let (content, ..) = referred();
    let up = Faults::new(content);
    let front = ReverseProxy::new(&up.address, |request| {
        if request.is("GET", "/referrers/") {
            let body = r#"{"schemaVersion":2,"manifests":null}"#.to_owned();
            ProxyAction::Answer(200, Vec::new(), body)
        } else {
            ProxyAction::Pass
        }
    });
    let place = Place::new();
    place.write("m.yaml", manifest_of(&front.address));
    let plain = ["--plain-http", &front.address];
    place.json(
        0,
        &[&["lock", "-f", "m.yaml", "--store", "s"][..], &plain].concat(),
    );
    assert!(place.read("landfall.lock").contains("referrers: []"));
}

#[test]
fn a_part_of_a_referrer_that_cannot_be_pulled_is_lost_without_its_image() {
    let (content, kept, lost) = referred();
    let manifest = &content.manifests[&("app".to_owned(), digest(&lost).to_owned())].1;
    let manifest: Value = serde_json::from_slice(manifest).unwrap();
    let blob = digest(&manifest["layers"][0]).to_owned();
    let up = Faults::new(content);
    let place = Place::new();
    place.write("m.yaml", manifest_of(&up.address));
    place.json(0, &["lock", "-f", "m.yaml", "--store", "s"]);
    up.set_faults([Fault::always(RequestKind::Blob, FaultKind::Status(404)).at(&blob)]);
    let report = place.json(3, &["pull", "--store", "s"]);
    assert_eq!(items_of(&report, "image")[0].1, "done", "{report}");
    let name = format!("{}/app:v1", up.address);
    let failed = (format!("{name} {blob}"), "failed".to_owned());
    assert_eq!(items_of(&report, "referrer"), [failed]);
    // a partial bundle has the image with its other referrer
    place.json(3, &["pack", "--store", "s", "-o", "b.tar.zst"]);
    let report = place.json(
        3,
        &["pack", "--store", "s", "-o", "b.tar.zst", "--allow-partial"],
    );
    assert_eq!(items_of(&report, "image").len(), 1, "{report}");
    place.json(4, &["verify", "b.tar.zst"]);
    place.json(0, &["verify", "b.tar.zst", "--allow-partial"]);
    let down = Faults::new(Content::default());
    let push = [
        "push",
        "b.tar.zst",
        "--to",
        &down.address,
        "--allow-partial",
    ];
    let report = place.json(3, &push);
    assert_eq!(items_of(&report, "image")[0].1, "done", "{report}");
    let has = |descriptor: &Value| {
        let key = ("app".to_owned(), digest(descriptor).to_owned());
        down.content(|content| content.manifests.contains_key(&key))
    };
    assert!(has(&kept) && !has(&lost));
    up.set_faults([]);
    place.json(0, &["pull", "--store", "s"]);
    place.json(0, &["pack", "--store", "s", "-o", "c.tar.zst"]);
    place.json(0, &["verify", "c.tar.zst"]);
}

#[test]
fn content_that_cannot_be_checked_fails_its_image_with_the_reason() {
    let mut content = odd_content();
    let size = json!({"layers": [{"digest": sha256(b"x"), "size": -1}]}).to_string();
    let top = raw(&mut content, "negative", OCI_MANIFEST, &size);
    content.tag("negative", "v1", &top);
    let page = raw(&mut content, "page", OCI_MANIFEST, r#"{"errors":[]}"#);
    content.tag("page", "v1", &page);
    let up = Faults::new(content);
    let place = Place::new();
    for (name, why) in [
        ("odd-index", "unsupported algorithm"),
        ("negative", "without a valid size"),
        ("page", "neither an image manifest nor an index"),
    ] {
        let image = format!("images: [\"{}/{name}:v1\"]\n", up.address);
        let manifest = format!("apiVersion: landfall/v1\nkind: Manifest\n{image}");
        place.write("m.yaml", manifest);
        let report = place.json(1, &["lock", "-f", "m.yaml", "--store", "s"]);
        let reason = report["items"][0]["reason"].as_str().unwrap();
        assert!(reason.contains(why), "{name}: {reason}");
    }
}
