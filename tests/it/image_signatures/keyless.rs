//! Signatures by identities, as simple signatures and as bundles, made with a stand-in for
//! Sigstore's services.

use super::cosign::COSIGN;
use crate::support::images::OCI_MANIFEST;
use crate::support::peers::own_registry;
use crate::support::programs::go_install;
use crate::support::sigstore::{
    ImageSigner, Sigstore, Tampering, lock, push_bundle, push_image, push_tagged, sign_statement,
    simple_payload, statement,
};
use crate::support::{Images, Place, need};
use serde_json::{Value, json};
use std::path::Path;

const ISSUER: &str = "https://token.actions.test";
const IDENTITY: &str = "https://git.test/org/app/.github/workflows/release.yml@refs/heads/main";
const SLSA: &str = "https://slsa.dev/provenance/v1";

/// The rule of the manifests: requires a signature by an identity below `https://git.test/org/`.
/// `more` contains further lines of the rule.
fn rule(address: &str, more: &str) -> String {
    format!(
        "verify:\n- match: \"{address}/*\"\n  keyless: {{issuer: \"{ISSUER}\", identity: \
         \"https://git.test/org/*\"}}\n  trustedRoot: root.json\n{more}"
    )
}

/// The verdict of cosign for the same rule.
fn cosign_accepts(
    place: &Place,
    cosign: &Path,
    form: &str,
    address: &str,
    repository: &str,
) -> bool {
    let format = format!("--new-bundle-format={}", form == "bundle");
    let image = format!("{address}/{repository}:v1");
    let verify = [
        "verify",
        "--trusted-root=root.json",
        "--certificate-oidc-issuer",
        ISSUER,
        "--certificate-identity-regexp=^https://git[.]test/org/.*$",
        // the stand-in has no certificate transparency log
        "--insecure-ignore-sct=true",
        &format,
        &image,
    ];
    let run = place
        .clean(cosign)
        .args(verify)
        .current_dir(place.dir())
        .output()
        .unwrap();
    println!("{}", String::from_utf8_lossy(&run.stderr));
    run.status.success()
}

fn reason(report: &Value) -> String {
    report["items"][0]["reason"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn identities_are_verified_in_both_formats_and_other_signatures_are_refused() {
    if !need(&["gzip"]) {
        return;
    }
    let place = Place::new();
    let images = Images::new(place.path("layout"));
    let upstream = own_registry();
    let address = &upstream.address;
    // if cosign cannot be built, only the comparison with it is skipped
    let cosign = go_install(COSIGN);
    let sigstore = Sigstore::new();
    let other = Sigstore::new();
    place.write("root.json", sigstore.trusted_root());
    let good = sigstore.signer(ISSUER, IDENTITY);
    let cases: [(&str, &Sigstore, ImageSigner, Tampering, Option<&str>); 7] = [
        ("good", &sigstore, good, Tampering::None, None),
        (
            "identity",
            &sigstore,
            sigstore.signer(ISSUER, "https://git.test/mallory/app"),
            Tampering::None,
            Some("a signature by https://git.test/mallory/app of https://token.actions.test"),
        ),
        (
            "issuer",
            &sigstore,
            sigstore.signer("https://login.test", IDENTITY),
            Tampering::None,
            Some("of https://login.test"),
        ),
        (
            "expired",
            &sigstore,
            sigstore.signer_until(ISSUER, IDENTITY, 1),
            Tampering::None,
            Some("a keyless signature that does not verify"),
        ),
        (
            "untrusted",
            &other,
            other.signer(ISSUER, IDENTITY),
            Tampering::None,
            Some("a keyless signature that does not verify"),
        ),
        (
            "time",
            &sigstore,
            sigstore.signer(ISSUER, IDENTITY),
            Tampering::Time,
            Some("a keyless signature that does not verify"),
        ),
        (
            "unlogged",
            &sigstore,
            sigstore.signer(ISSUER, IDENTITY),
            Tampering::Missing,
            Some("a keyless signature that does not verify"),
        ),
    ];
    for (name, service, signer, tampering, refusal) in &cases {
        for form in ["simple", "bundle"] {
            let repository = format!("{form}/{name}");
            let image = push_image(&images, address, &repository);
            if form == "simple" {
                let payload = simple_payload(&image);
                let layer = service.simple_layer(&images, signer, &payload, *tampering);
                push_tagged(&images, address, &repository, &image, &layer, ".sig");
            } else {
                let bundle = service.bundle(signer, &sign_statement(&image), *tampering);
                push_bundle(&images, address, &repository, &image, &bundle);
            }
            let manifest = format!("images: [{address}/{repository}:v1]\n{}", rule(address, ""));
            let (exit, report, locked) = lock(&place, &format!("{form}-{name}"), &manifest);
            if let Some(cosign) = &cosign {
                let expected = cosign_accepts(&place, cosign, form, address, &repository);
                println!("{repository}: landfall {}, cosign {expected}", exit == 0);
                assert_eq!(exit == 0, expected, "{repository}: {report}");
            }
            match refusal {
                None => {
                    assert_eq!(exit, 0, "{repository}: {report}");
                    let verified = format!(
                        "  verified: {{by: keyless, issuer: {ISSUER}, identity: {IDENTITY}, time: \
                         \"2026-01-01T12:00:00Z\"}}\n"
                    );
                    assert!(locked.contains(&verified), "{repository}: {locked}");
                    assert_eq!(report["signatures"][0]["identity"], IDENTITY);
                }
                Some(why) => {
                    assert_eq!(exit, 1, "{repository}: {report}");
                    assert!(reason(&report).contains(why), "{repository}: {report}");
                    assert_eq!(locked, "", "{repository}");
                }
            }
        }
    }
}

#[test]
fn a_provenance_needs_the_builder_and_source_of_the_rule() {
    if !need(&["gzip"]) {
        return;
    }
    let place = Place::new();
    let images = Images::new(place.path("layout"));
    let upstream = own_registry();
    let address = &upstream.address;
    let sigstore = Sigstore::new();
    place.write("root.json", sigstore.trusted_root());
    let signer = sigstore.signer(ISSUER, IDENTITY);
    let image = push_image(&images, address, "app");
    let predicate = json!({
        "buildDefinition": {"externalParameters": {
            "workflow": {"repository": "https://git.test/org/app"},
        }},
        "runDetails": {"builder": {"id": "https://git.test/builders/one@v2"}},
    });
    let provenance = statement(&image, SLSA, &predicate);
    let bundle = sigstore.bundle(&signer, &provenance, Tampering::None);
    push_bundle(&images, address, "app", &image, &bundle);
    for (conditions, exit, expected) in [
        (
            "{builder: \"https://git.test/builders/*\", source: \"https://git.test/org/app\"}",
            0,
            "builder: https://git.test/builders/one@v2, source: https://git.test/org/app",
        ),
        (
            "{source: \"https://git.test/org/other\"}",
            1,
            "the source https://git.test/org/app",
        ),
        (
            "{builder: other}",
            1,
            "the builder https://git.test/builders/one@v2",
        ),
        // a provenance alone does not count as a signature; cosign agrees
        ("", 1, "a provenance, which is not a signature"),
    ] {
        let more = match conditions {
            "" => String::new(),
            conditions => format!("  attestation: {conditions}\n"),
        };
        let manifest = format!("images: [{address}/app:v1]\n{}", rule(address, &more));
        let _ = std::fs::remove_file(place.path("slsa.lock"));
        let (code, report, locked) = lock(&place, "slsa", &manifest);
        assert_eq!(code, exit, "{report}");
        assert!(
            format!("{locked}{}", reason(&report)).contains(expected),
            "{locked}{report}"
        );
    }
}

#[test]
fn signatures_in_a_bundle_are_verified_without_a_network() {
    if !need(&["gzip"]) {
        return;
    }
    let place = Place::new();
    let images = Images::new(place.path("layout"));
    let upstream = own_registry();
    let address = &upstream.address;
    let sigstore = Sigstore::new();
    let other = Sigstore::new();
    place.write("root.json", sigstore.trusted_root());
    place.write("other.json", other.trusted_root());
    let signer = sigstore.signer(ISSUER, IDENTITY);
    let image = push_image(&images, address, "app");
    assert_eq!(image["mediaType"], OCI_MANIFEST);
    let payload = simple_payload(&image);
    let layer = sigstore.simple_layer(&images, &signer, &payload, Tampering::None);
    push_tagged(&images, address, "app", &image, &layer, ".sig");
    let manifest = format!("images: [{address}/app:v1]\n{}", rule(address, ""));
    let (exit, report, _) = lock(&place, "landfall", &manifest);
    assert_eq!(exit, 0, "{report}");
    place.ok(&["pull", "--store", "store"]);
    place.ok(&["pack", "--store", "store", "-o", "b.tar.zst"]);
    drop(upstream);
    let site = |name: &str, root: &str, identity: &str| {
        let text = format!(
            "apiVersion: landfall/v1\nkind: Site\nverify:\n- match: \"*\"\n  keyless: {{issuer: \
             \"{ISSUER}\", identity: \"{identity}\"}}\n  trustedRoot: {root}\n"
        );
        place.write(name, text);
    };
    site("site.yaml", "root.json", IDENTITY);
    let report = place.json(0, &["verify", "b.tar.zst", "--site", "site.yaml"]);
    assert_eq!(report["signatures"][0]["identity"], IDENTITY);
    assert_eq!(report["signatures"][0]["verified"], true);
    // without rules, the signature in the lock is shown, but not as verified
    let report = place.json(0, &["verify", "b.tar.zst"]);
    assert_eq!(report["signatures"][0]["verified"], false);
    site("root.yaml", "other.json", IDENTITY);
    site("identity.yaml", "root.json", "https://git.test/other/*");
    for (site, why) in [
        ("root.yaml", "does not verify"),
        (
            "identity.yaml",
            "wanted a signature by https://git.test/other/*",
        ),
    ] {
        for verb in ["verify", "push"] {
            let mut args = vec![verb, "b.tar.zst", "--site", site];
            if verb == "push" {
                args.extend(["--to", "127.0.0.1:9"]);
            }
            let report = place.json(4, &args);
            assert_eq!(report["status"], "refused");
            let told = report["error"]["message"].as_str().unwrap();
            assert!(
                told.contains(why) && told.contains("1 item is not signed"),
                "{told}"
            );
        }
    }
}
