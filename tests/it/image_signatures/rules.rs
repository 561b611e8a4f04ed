//! Rules: the images that they match, the signatures that they require, their effect on an old
//! lock, and mistakes in them.

use crate::support::images::sha256;
use crate::support::peers::own_registry;
use crate::support::sigstore::{
    ImageSigner, Sigstore, Tampering, envelope_layer, lock, push_image, push_tagged,
    simple_payload, statement,
};
use crate::support::{self, Images, Place, need};
use serde_json::{Value, json};

#[test]
fn the_first_matching_rule_applies_and_the_site_adds_rules() {
    if !need(&["gzip"]) {
        return;
    }
    let place = Place::new();
    let images = Images::new(place.path("layout"));
    let upstream = own_registry();
    let address = &upstream.address;
    let sigstore = Sigstore::new();
    let signer = ImageSigner::with_key();
    let other = ImageSigner::with_key();
    place.write("one.pub", signer.public_pem());
    place.write("two.pub", other.public_pem());
    for repository in ["team/signed", "team/bare", "else/bare"] {
        let image = push_image(&images, address, repository);
        if repository == "team/signed" {
            let payload = simple_payload(&image);
            let layer = sigstore.simple_layer(&images, &signer, &payload, Tampering::Missing);
            push_tagged(&images, address, repository, &image, &layer, ".sig");
        }
    }
    let all = format!(
        "images: [{address}/team/signed:v1, {address}/team/bare:v1, {address}/else/bare:v1]\n"
    );
    // without rules, the lock contains nothing about signatures
    let (exit, report, plain) = lock(&place, "plain", &all);
    assert_eq!((exit, plain.contains("verified")), (0, false), "{report}");

    let rules = format!(
        "verify:\n- {{match: \"{address}/team/bare:v1\", none: built here}}\n- {{match: \
         \"{address}/team/*\", keys: [two.pub, one.pub]}}\n"
    );
    let (exit, report, locked) = lock(&place, "landfall", &format!("{all}{rules}"));
    assert_eq!(exit, 0, "{report}");
    let line = format!(
        "  verified: {{by: key, fingerprint: {}}}\n",
        signer.fingerprint()
    );
    assert_eq!(locked, plain_with(&plain, &line), "only this line is new");
    assert_eq!(report["signatures"].as_array().unwrap().len(), 1);

    // an unchanged manifest keeps the pins without a request, and `--check` finds no drift
    let quiet = place.json(0, &["lock", "-f", "landfall.yaml"]);
    assert_eq!(quiet["totals"]["requests"], 0);
    place.json(0, &["lock", "-f", "landfall.yaml", "--check"]);

    // the lock records a signature by a key that the stricter rule does not name
    let stricter = rules.replace("two.pub, one.pub", "two.pub");
    let (exit, report, locked) = lock(&place, "landfall", &format!("{all}{stricter}"));
    assert_eq!(exit, 3, "{report}");
    let failed = &report["items"][2];
    assert_eq!(failed["status"], "missing");
    let why = failed["reason"].as_str().unwrap();
    let wanted = format!("wanted a signature by key {}", other.fingerprint());
    assert!(
        why.contains("a signature by another key") && why.contains(&wanted),
        "{why}"
    );
    assert!(locked.contains("unresolved:\n- {kind: image, name: ") && !locked.contains("verified"));

    // the rules of the site apply as well
    place.write(
        "site.yaml",
        format!(
            "apiVersion: landfall/v1\nkind: Site\nverify: [{{match: \"{address}/else/*\", keys: \
             [one.pub]}}]\n"
        ),
    );
    let report = place.json(3, &["lock", "-f", "plain.yaml", "--site", "site.yaml"]);
    let reasons: Vec<&str> = report["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|item| item["reason"].as_str())
        .collect();
    let expected = format!(
        "no signature found; wanted one by key {}",
        signer.fingerprint()
    );
    assert!(
        reasons.len() == 1 && reasons[0].starts_with(&expected),
        "{reasons:?}"
    );
}

/// Before, such rules matched nothing, and the images were locked without a signature.
#[test]
fn rules_match_every_form_of_a_name_and_those_that_match_nothing_are_listed() {
    if !need(&["gzip"]) {
        return;
    }
    let place = Place::new();
    let images = Images::new(place.path("layout"));
    let upstream = own_registry();
    let port = upstream.address.rsplit(':').next().unwrap();
    let (host, capitals) = (format!("localhost:{port}"), format!("LocalHost:{port}"));
    place.write("key.pub", ImageSigner::with_key().public_pem());
    let image = push_image(&images, &upstream.address, "team/bare");
    let digest = image["digest"].as_str().unwrap();
    let named = [
        format!("{host}/team/bare:v1"),
        format!("{host}/team/bare@{digest}"),
    ];
    for (image, rule) in [
        (&named[0], format!("{capitals}/team/*")),
        (&named[1], format!("{host}/team/bare:*")),
        (&named[1], format!("{capitals}/team/bare")),
        (&named[0], format!("https://{capitals}/team/*")),
    ] {
        let text =
            format!("images: [\"{image}\"]\nverify: [{{match: \"{rule}\", keys: [key.pub]}}]\n");
        let (exit, report, _) = lock(&place, "strict", &text);
        assert_eq!(
            (exit, report["unmatchedRules"].is_null()),
            (1, true),
            "{rule}: {report}"
        );
        let why = report["items"][0]["reason"].as_str().unwrap();
        assert!(why.starts_with("no signature found"), "{rule}: {why}");
    }
    let text = format!(
        "images: [\"{}\"]\nverify: [{{match: \"https://*/team/*\", keys: [key.pub]}}]\n",
        named[0]
    );
    let (exit, report, _) = lock(&place, "loose", &text);
    assert_eq!(
        (exit, &report["unmatchedRules"]),
        (0, &json!(["https://*/team/*"]))
    );
    let text = support::run(place.command().args(["lock", "-f", "loose.yaml"]));
    let text = String::from_utf8(text).unwrap();
    let note = "note: no item matches the rule 'https://*/team/*' of verify";
    assert!(text.contains(note), "{text}");
}

/// `plain` with `line` before the blobs of the signed image.
fn plain_with(plain: &str, line: &str) -> String {
    let image = plain.find("/team/signed:v1").unwrap();
    let at = image + plain[image..].find("  blobs:\n").unwrap();
    format!("{}{line}{}", &plain[..at], &plain[at..])
}

#[test]
fn a_signature_of_another_digest_is_refused_and_an_attestation_needs_conditions() {
    if !need(&["gzip"]) {
        return;
    }
    let place = Place::new();
    let images = Images::new(place.path("layout"));
    let upstream = own_registry();
    let address = &upstream.address;
    let sigstore = Sigstore::new();
    let signer = ImageSigner::with_key();
    place.write("one.pub", signer.public_pem());
    let other = push_image(&images, address, "other");
    let rules = format!("verify: [{{match: \"{address}/*\", keys: [one.pub]}}]\n");
    let scan = |image: &Value| statement(image, "https://scan.test/v1", &json!({"found": 9}));
    let slsa = json!({"builder": {"id": "b"}, "invocation": {"configSource": {"uri": "git+s"}}});
    let built = |image: &Value| statement(image, "https://slsa.dev/provenance/v0.2", &slsa);
    for (name, expected) in [
        ("another", "a signature of another digest"),
        ("scan", "an attestation https://scan.test/v1"),
        ("built", "a provenance, which is not a signature"),
        ("garbage", "a malformed DSSE envelope"),
    ] {
        let image = push_image(&images, address, name);
        let (layer, ending) = match name {
            "another" => {
                let payload = simple_payload(&other);
                (
                    sigstore.simple_layer(&images, &signer, &payload, Tampering::Missing),
                    ".sig",
                )
            }
            "scan" => (envelope_layer(&images, &signer, &scan(&image)), ".att"),
            "built" => (envelope_layer(&images, &signer, &built(&image)), ".att"),
            _ => (
                images.blob("application/vnd.dsse.envelope.v1+json", b"{"),
                ".att",
            ),
        };
        push_tagged(&images, address, name, &image, &layer, ending);
        let manifest = format!("images: [{address}/{name}:v1]\n{rules}");
        let (exit, report, _) = lock(&place, name, &manifest);
        assert_eq!(exit, 1, "{name}: {report}");
        let why = report["items"][0]["reason"].as_str().unwrap();
        assert!(why.contains(expected), "{name}: {why}");
    }
    // with conditions, an attestation by the key is enough
    let rules = rules.replace("}]", ", attestation: {builder: b, source: \"git+*\"}}]");
    let (exit, report, locked) = lock(
        &place,
        "built",
        &format!("images: [{address}/built:v1]\n{rules}"),
    );
    assert_eq!(exit, 0, "{report}");
    assert!(locked.contains(", builder: b, source: git+s}"), "{locked}");
}

#[test]
fn a_signature_by_a_key_may_have_a_certificate() {
    if !need(&["gzip"]) {
        return;
    }
    let place = Place::new();
    let images = Images::new(place.path("layout"));
    let upstream = own_registry();
    let address = &upstream.address;
    let sigstore = Sigstore::new();
    let signer = sigstore.signer("https://issuer.test", "https://signer.test");
    place.write("one.pub", signer.public_pem());
    place.write("other.pub", ImageSigner::with_key().public_pem());
    let image = push_image(&images, address, "app");
    let payload = simple_payload(&image);
    let layer = sigstore.simple_layer(&images, &signer, &payload, Tampering::Missing);
    push_tagged(&images, address, "app", &image, &layer, ".sig");
    for (key, expected) in [("one.pub", 0), ("other.pub", 1)] {
        let rules = format!("verify: [{{match: \"*\", keys: [{key}]}}]\n");
        let manifest = format!("images: [{address}/app:v1]\n{rules}");
        let (exit, report, locked) = lock(&place, key, &manifest);
        assert_eq!(exit, expected, "{key}: {report}");
        let is_verified = locked.contains("verified: {by: key, ");
        assert_eq!(is_verified, exit == 0, "{locked}");
    }
}

#[test]
fn mistakes_in_rules_are_reported_with_their_position() {
    let place = Place::new();
    let key = ImageSigner::with_key();
    place.write("one.pub", key.public_pem());
    place.write("not.pub", "ssh-ed25519 AAAA\n");
    place.write("root.json", "{}");
    for (rule, value, expected) in [
        ("{match: a}", "a}", "this rule names no signer"),
        (
            "{match: a, keys: [gone.pub]}",
            "[gone",
            "cannot read gone.pub",
        ),
        (
            "{match: a, keys: [not.pub]}",
            "[not",
            "not.pub: it is not a public key in PEM",
        ),
        (
            "{match: a, keys: [one.pub], none: x}",
            "x}",
            "either signers or `none`",
        ),
        (
            "{match: \"oci://a/b\", none: x}",
            "\"oci",
            "are matched without a scheme",
        ),
        (
            "{match: a, keyless: {issuer: i, identity: j}}",
            "{issuer",
            "`keyless` needs a trust root",
        ),
        (
            "{match: a, keys: [one.pub], trustedRoot: root.json}",
            "root.json",
            "root.json: it is not a trusted_root.json",
        ),
        ("{match: a, key: one.pub}", "key", "`key`"),
    ] {
        let head = "apiVersion: landfall/v1\nkind: Manifest\nimages: [h.test/a:1]\n";
        place.write("m.yaml", format!("{head}verify: [{rule}]\n"));
        let told = place.stderr(2, &["lock", "-f", "m.yaml"]);
        let column = "verify: [".len() + rule.find(value).unwrap() + 1;
        assert!(
            told.contains(&format!("m.yaml:4:{column}")),
            "{rule}: {told}"
        );
        assert!(told.contains(expected), "{rule}: {told}");
    }
    place.write(
        "m.yaml",
        "apiVersion: landfall/v1\nkind: Manifest\nimages: [h.test/a:1]\n",
    );
    place.write(
        "site.yaml",
        "apiVersion: landfall/v1\nkind: Site\nverify: [{match: a, keys: [gone.pub]}]\n",
    );
    let run = place
        .command()
        .args(["lock", "-f", "m.yaml", "--site", "site.yaml"])
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&run.stderr).into_owned();
    assert_eq!(run.status.code(), Some(2), "{told}");
    assert!(
        told.contains("verify[0].keys of site.yaml: cannot read gone.pub"),
        "{told}"
    );
    // the fingerprint is the SHA-256 of the public key in DER, as openssl writes it
    if need(&["openssl"]) {
        place.write("key.pub", key.public_pem());
        let mut openssl = place.clean("openssl");
        openssl.args(["pkey", "-pubin", "-in", "key.pub", "-outform", "DER"]);
        assert_eq!(key.fingerprint(), sha256(&support::run(&mut openssl)));
    }
}

#[test]
fn the_kyverno_policy_contains_the_key_that_the_setting_names() {
    let place = Place::new();
    let key = ImageSigner::with_key();
    place.write("site.pub", key.public_pem());
    place.write("not.pub", "ssh-ed25519 AAAA\n");
    place.write(
        "site.yaml",
        "apiVersion: landfall/v1\nkind: Site\nregistry: {address: \"172.20.0.2:5000\"}\n",
    );
    place.write(
        "landfall.lock",
        "# landfall.lock, written by `landfall lock`\nversion: 1\n...\n",
    );
    let render = |file: &str| {
        let set = format!("image-key={file}");
        let arguments = [
            "render",
            "kyverno",
            "--site",
            "site.yaml",
            "--set",
            &set,
            "-o",
            "out",
        ];
        place.command().args(arguments).output().unwrap()
    };
    let run = render("site.pub");
    assert!(
        run.status.success(),
        "{}",
        String::from_utf8_lossy(&run.stderr)
    );
    let policy: Value = serde_yaml::from_str(&place.read("out/verify-images.yaml")).unwrap();
    let images = &policy["spec"]["rules"][0]["verifyImages"][0];
    assert_eq!(images["imageReferences"], json!(["172.20.0.2:5000/*"]));
    let keys = &images["attestors"][0]["entries"][0]["keys"];
    assert_eq!(
        keys["publicKeys"].as_str().unwrap(),
        key.public_pem().trim_end()
    );
    let run = render("not.pub");
    let told = String::from_utf8_lossy(&run.stderr).into_owned();
    assert!(
        run.status.code() == Some(2) && told.contains("not a public key in PEM"),
        "{told}"
    );
}
