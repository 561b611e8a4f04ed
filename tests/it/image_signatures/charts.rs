//! Charts in registries: their signatures are looked up, verified, carried and delivered if a rule
//! matches them.

use crate::support::charts::Chart;
use crate::support::peers::{docker_registry, own_registry};
use crate::support::sigstore::{
    ImageSigner, Sigstore, Tampering, lock, push_bundle, push_tagged, sign_statement,
    simple_payload,
};
use crate::support::{Images, Place, http, need};

#[test]
fn a_signed_chart_is_locked_carried_and_delivered_with_its_signatures() {
    if !need(&["gzip", "docker-registry"]) {
        return;
    }
    let place = Place::new();
    let images = Images::new(place.path("layout"));
    let (upstream, target) = (own_registry(), docker_registry());
    let address = &upstream.address;
    let (sigstore, signer) = (Sigstore::new(), ImageSigner::with_key());
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

    // without a rule, nothing is looked up
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
