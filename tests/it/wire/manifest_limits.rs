//! Limits of an image's manifests: the depth of indexes, and the number and depth of referrers.

use super::{manifest, reasons};
use crate::support::Place;
use crate::support::faults::{Content, Faults};
use crate::support::images::{OCI_INDEX, OCI_MANIFEST, sha256};
use crate::support::reverse_proxy::{ProxyAction, ReverseProxy};
use serde_json::{Value, json};

/// The documented limit of nested indexes and of chains of referrers.
const DEPTH: usize = 8;

/// Locks `reference` at `host`, and returns the report.
pub(super) fn lock(place: &Place, host: &str, reference: &str, exit: i32) -> Value {
    let _ = std::fs::remove_file(place.path("landfall.lock"));
    manifest(place, &format!("images: [\"{host}/{reference}\"]\n"));
    let args = ["lock", "-f", "m.yaml", "--store", "s", "--plain-http", host];
    place.json(exit, &args)
}

#[test]
fn indexes_may_be_nested_up_to_the_limit() {
    let mut content = Content::default();
    for depth in [DEPTH, DEPTH + 1] {
        let mut top = content.image("app", "linux/amd64", &[(depth as u64, 10)]);
        for _ in 0..depth {
            top = content.index("app", &[top]);
        }
        content.tag("app", &format!("v{depth}"), &top);
    }
    let server = Faults::new(content);
    let place = Place::new();
    lock(&place, &server.address, "app:v8", 0);
    let lines = place.read("landfall.lock");
    assert_eq!(lines.matches("mediaType: ").count(), 1 + DEPTH, "{lines}");
    let report = lock(&place, &server.address, "app:v9", 1);
    let why = reasons(&report)[0];
    assert!(why.contains("nested deeper than 8"), "{why}");
}

#[test]
fn chains_of_referrers_may_be_as_long_as_the_limit() {
    let mut content = Content::default();
    for depth in [DEPTH, DEPTH + 1] {
        let repository = format!("app{depth}");
        let image = content.image(&repository, "linux/amd64", &[(depth as u64, 10)]);
        content.tag(&repository, "v1", &image);
        let mut subject = image;
        subject.as_object_mut().unwrap().remove("platform");
        for at in 0..depth {
            subject = content.artifact(&repository, &format!("referrer {at}"), Some(&subject));
        }
    }
    let server = Faults::new(content);
    let place = Place::new();
    lock(&place, &server.address, "app8:v1", 0);
    let lines = place.read("landfall.lock");
    assert_eq!(lines.matches(", subject: ").count(), DEPTH, "{lines}");
    let report = lock(&place, &server.address, "app9:v1", 1);
    let why = reasons(&report)[0];
    assert!(why.contains("in a chain of more than 8"), "{why}");
}

#[test]
fn too_many_listed_referrers_are_refused_before_one_is_requested() {
    let mut content = Content::default();
    let app = content.image("app", "linux/amd64", &[(1, 10)]);
    content.tag("app", "v1", &app);
    let server = Faults::new(content);
    let listed = |n: usize| json!({"mediaType": OCI_MANIFEST, "digest": sha256(&n.to_le_bytes()), "size": 100});
    let list = json!({"schemaVersion": 2, "mediaType": OCI_INDEX,
        "manifests": (0..1025).map(listed).collect::<Vec<_>>()});
    let front = ReverseProxy::new(&server.address, move |request| {
        if request.is("GET", "/referrers/") {
            ProxyAction::Answer(200, Vec::new(), list.to_string())
        } else {
            ProxyAction::Pass
        }
    });
    let place = Place::new();
    let report = lock(&place, &front.address, "app:v1", 1);
    let why = reasons(&report)[0];
    assert!(why.contains("more than 1024 of them"), "{why}");
    // only the manifest of the image itself is requested
    assert_eq!(front.count("GET", "/manifests/"), 1);
}
