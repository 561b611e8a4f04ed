//! Charts in registries: their signatures are looked up, verified, carried and delivered if a rule
//! matches them. Charts in HTTP repositories: their provenance is verified.

use crate::support::charts::{Chart, Signer, Upstream, failure_reasons};
use crate::support::peers::{docker_registry, own_registry};
use crate::support::sigstore::{
    ImageSigner, Sigstore, Tampering, lock, push_bundle, push_tagged, sign_statement,
    simple_payload,
};
use crate::support::{Images, Place, http, need};
use serde_json::json;

#[test]
fn a_signed_chart_is_locked_carried_and_delivered_with_its_signatures() {
    if !need(&["gzip", "docker-registry"]) {
        return;
    }
    let place = Place::new();
    let images = Images::new(place.path("layout"));
    let upstream = own_registry();
    let target = docker_registry();
    let address = &upstream.address;
    let sigstore = Sigstore::new();
    let signer = ImageSigner::with_key();
    place.write("one.pub", signer.public_pem());
    place.write("two.pub", ImageSigner::with_key().public_pem());
    for name in ["signed", "bare"] {
        let chart = Chart::new(name, "1.0.0", "", &[]);
        let repository = format!("charts/{name}");
        let artifact = chart.push(&images, address, &repository);
        if name == "signed" {
            let payload = simple_payload(&artifact);
            let layer = sigstore.simple_layer(&images, &signer, &payload, Tampering::Missing);
            push_tagged(&images, address, &repository, &artifact, &layer, ".sig");
            let bundle = sigstore.bundle(&signer, &sign_statement(&artifact), Tampering::Missing);
            push_bundle(&images, address, &repository, &artifact, &bundle);
        }
    }
    let charts = |name: &str| format!("charts: [\"oci://{address}/charts/{name}:1.0.0\"]\n");
    let rule = |key: &str| format!("verify: [{{match: \"{address}/*\", keys: [{key}]}}]\n");

    // without a rule, no signature is locked
    let (exit, report, plain) = lock(&place, "plain", &charts("signed"));
    assert_eq!((exit, plain.contains("referrers")), (0, false), "{report}");

    let manifest = format!("{}{}", charts("signed"), rule("one.pub"));
    let (exit, report, locked) = lock(&place, "landfall", &manifest);
    assert_eq!(exit, 0, "{report}");
    let line = format!(
        "  verified: {{by: key, fingerprint: {}}}\n",
        signer.fingerprint()
    );
    assert!(
        locked.contains(&line) && locked.contains(".sig"),
        "{locked}"
    );
    assert_eq!(
        place.json(0, &["lock", "-f", "landfall.yaml"])["totals"]["requests"],
        0
    );
    place.json(0, &["lock", "-f", "landfall.yaml", "--check"]);

    for (name, key, why) in [
        ("bare", "one.pub", "no signature found"),
        ("signed", "two.pub", "a signature by another key"),
    ] {
        let manifest = format!("{}{}", charts(name), rule(key));
        let (exit, report, _) = lock(&place, name, &manifest);
        let reason = report["items"][0]["reason"].as_str().unwrap_or_default();
        assert!(exit == 1 && reason.contains(why), "{name}: {report}");
    }

    place.ok(&["pull", "--store", "store"]);
    place.ok(&["pack", "--store", "store", "-o", "b.tar.zst"]);
    for (key, exit) in [("one.pub", 0), ("two.pub", 4)] {
        let head = "apiVersion: landfall/v1\nkind: Site\n";
        place.write(
            "site.yaml",
            format!("{head}verify: [{{match: \"*\", keys: [{key}]}}]\n"),
        );
        place.json(exit, &["verify", "b.tar.zst", "--site", "site.yaml"]);
    }
    place.ok(&["push", "b.tar.zst", "--to", &target.address]);
    let tags = http::get(&target.address, "/v2/charts/signed/tags/list").text();
    assert!(tags.contains(".sig"), "{tags}");
    let delivered = format!(
        "charts: [\"oci://{}/charts/signed:1.0.0\"]\n",
        target.address
    );
    let rule = "verify: [{match: \"*\", keys: [one.pub]}]\n";
    let (exit, report, _) = lock(&place, "delivered", &format!("{delivered}{rule}"));
    assert_eq!(exit, 0, "{report}");
}

#[test]
fn provenance_of_charts_in_http_repositories_is_verified_by_the_rules() {
    if !need(&["gpg", "gzip"]) {
        return;
    }
    let up = Upstream::new();
    let place = &up.place;
    let maker = Signer::new(place, "maker");
    let other = Signer::new(place, "other");
    place.write("maker.asc", maker.public());
    place.write("other.gpg", other.keyring());
    let signed = Chart::new("app", "1.0.0", "", &[]).signed(&maker);
    up.repository(&[signed, Chart::new("bare", "1.0.0", "", &[])]);
    let repo = up.repo();
    let manifest = |chart: &str, rule: &str| {
        let charts = json!([{"repo": repo, "name": chart, "version": "1.0.0"}]);
        up.manifest(&charts, &format!("verify: [{rule}]"));
    };
    let rule = |key: &str| format!("{{match: \"{repo}/app\", keys: [{key}]}}");
    for (chart, rule, why) in [
        ("app", rule("other.gpg"), "another key made it"),
        (
            "bare",
            format!("{{match: \"{repo}/*\", keys: [maker.asc]}}"),
            "no provenance",
        ),
    ] {
        manifest(chart, &rule);
        let reasons = failure_reasons(&up.lock(1, &[]));
        assert!(reasons.contains(why), "{chart}: {reasons}");
    }
    manifest("app", &rule("maker.asc"));
    up.lock(0, &[]);
    let locked = place.read("landfall.lock");
    assert!(
        locked.contains("  verified: {by: key, fingerprint: "),
        "{locked}"
    );
    let before = up.requests();
    up.lock(0, &[]);
    assert_eq!(up.requests(), before, "the record in the lock is enough");
    up.lock(0, &["--check"]);

    place.ok(&["pull", "--store", "store"]);
    place.ok(&["pack", "--store", "store", "-o", "b.tar.zst"]);
    for (key, exit) in [("maker.asc", 0), ("other.gpg", 4)] {
        let rule = rule(key).replace("/app", "/app:1.0.0");
        let head = "apiVersion: landfall/v1\nkind: Site\n";
        place.write("site.yaml", format!("{head}verify: [{rule}]\n"));
        place.json(exit, &["verify", "b.tar.zst", "--site", "site.yaml"]);
    }
    // without a rule, nothing is recorded
    up.manifest(
        &json!([{"repo": repo, "name": "app", "version": "1.0.0"}]),
        "",
    );
    up.lock(0, &[]);
    assert!(!place.read("landfall.lock").contains("verified"));
}

/// The signature was valid when it was made, so the bundle stays valid.
#[test]
fn a_bundle_stays_valid_after_the_key_of_a_provenance_has_expired() {
    if !need(&["gpg", "gzip"]) {
        return;
    }
    let up = Upstream::new();
    let place = &up.place;
    let maker = Signer::expired(place, "maker");
    place.write("maker.asc", maker.public());
    up.repository(&[Chart::new("app", "1.0.0", "", &[]).signed(&maker)]);
    let repo = up.repo();
    let rules = format!("verify: [{{match: \"{repo}/*\", keys: [maker.asc]}}]\n");
    let charts = json!([{"repo": repo, "name": "app", "version": "1.0.0"}]);
    up.manifest(&charts, &rules);
    let reasons = failure_reasons(&up.lock(1, &[]));
    assert!(reasons.contains("expired"), "{reasons}");
    up.manifest(&charts, "");
    up.lock(0, &[]);
    place.ok(&["pull", "--store", "store"]);
    place.ok(&["pack", "--store", "store", "-o", "b.tar.zst"]);
    let head = "apiVersion: landfall/v1\nkind: Site\n";
    place.write("site.yaml", format!("{head}{rules}"));
    place.json(0, &["verify", "b.tar.zst", "--site", "site.yaml"]);
}
