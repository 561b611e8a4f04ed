//! Signatures, attestations and other referrers: found by `lock`, packed, and pushed to real
//! registries with and without the referrers API.

use crate::referrers::referrers_of;
use crate::support::images::digest;
use crate::support::peers::docker_registry;
use crate::support::signed::{Signed, Upstream, tag_of, writable};
use crate::support::{http, landfall_serve, need};
use serde_json::Value;
use std::collections::BTreeSet;

#[test]
fn referrers_are_delivered_to_docker_registry_and_to_serve() {
    if !need(&["docker-registry", "gzip"]) {
        return;
    }
    for upstream in [Upstream::DockerRegistry, Upstream::Serve] {
        let signed = Signed::new(upstream);
        signed.pack();
        let found = referrers_of(&signed.place.read("landfall.lock"));
        let mut wanted: BTreeSet<(String, String)> = [
            (tag_of(&signed.index, ".sig"), &signed.sig),
            (tag_of(&signed.amd64, ".att"), &signed.att),
        ]
        .map(|(tag, one)| (tag, digest(one).to_owned()))
        .into();
        wanted.extend(
            signed
                .referrers()
                .map(|(one, subject)| (digest(subject).into(), digest(one).into())),
        );
        let report: Value =
            serde_json::from_slice(&signed.images.bytes(digest(&signed.report))).unwrap();
        let parts = report["manifests"].as_array().unwrap();
        wanted.extend(
            parts
                .iter()
                .map(|part| (String::new(), digest(part).to_owned())),
        );
        assert_eq!(found, wanted, "{upstream:?}");

        // the store is complete: another pull sends no request
        let again = signed.place.json(0, &["pull", "--store", "store"]);
        assert_eq!(again["totals"]["requests"], 0);
        let registry = docker_registry();
        let other = writable(&signed.place, "target");
        for target in [&registry, &other] {
            signed
                .place
                .json(0, &["push", "b", "--to", &target.address]);
            signed.check(&target.address, "app");
            let warm = signed
                .place
                .json(0, &["push", "b", "--to", &target.address]);
            assert_eq!(warm["items"][0]["status"], "present");
        }
        let served = landfall_serve(&signed.place, &["b"]);
        signed.check(&served.address, "app");
        let list = http::manifest(&registry.address, "app", &tag_of(&signed.amd64, "")).json();
        assert_eq!(list["manifests"][0]["artifactType"], "application/x.report");
        assert_eq!(list["manifests"][0]["annotations"]["made.by"], "test");
    }
}
