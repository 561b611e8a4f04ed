//! Minimum ages that count from the time at which a transparency log recorded a signature.

use super::moved;
use crate::support::peers::own_registry;
use crate::support::sigstore::{
    ImageSigner, Sigstore, Tampering, push_bundle, push_tagged, sign_statement, simple_payload,
};
use crate::support::{Images, Place, need};
use serde_json::Value;

const ISSUER: &str = "https://token.actions.test";
const IDENTITY: &str = "https://git.test/org/app/.github/workflows/release.yml@refs/heads/main";
/// Everything is logged at this time, which is long before the tests run.
const LOGGED: &str = "2026-01-01T12:00:00Z";
const SIGHTS: &str = "landfall.lock.seen";

/// A registry, and a stand-in for Sigstore's services.
struct LogRig {
    place: Place,
    images: Images,
    address: String,
    sigstore: Sigstore,
    _registry: crate::support::peers::Server,
}

impl LogRig {
    fn new() -> LogRig {
        let place = Place::new();
        let registry = own_registry();
        let sigstore = Sigstore::new();
        place.write("root.json", sigstore.trusted_root());
        LogRig {
            images: Images::new(place.path("layout")),
            place,
            address: registry.address.clone(),
            sigstore,
            _registry: registry,
        }
    }

    /// Uploads an image with content of its own.
    fn push(&self, repository: &str, tag: &str) -> Value {
        let name = format!("{repository}:{tag}");
        let layer = self.images.layer(&[("name", name.as_bytes())]);
        let image = self.images.image("linux/amd64", &[layer]);
        self.images.push(&self.address, repository, tag, &image);
        image
    }

    fn push_signed(&self, repository: &str, tag: &str, tampering: Tampering) -> Value {
        let image = self.push(repository, tag);
        let signer = self.sigstore.signer(ISSUER, IDENTITY);
        self.sign(repository, &image, &signer, tampering);
        image
    }

    fn sign(&self, repository: &str, image: &Value, signer: &ImageSigner, tampering: Tampering) {
        let bundle = self
            .sigstore
            .bundle(signer, &sign_statement(image), tampering);
        push_bundle(&self.images, &self.address, repository, image, &bundle);
    }

    /// Writes a manifest with these entries. Its rules require signatures of all images except
    /// those below `free/`.
    fn manifest(&self, body: &str) -> String {
        let head = "apiVersion: landfall/v1\nkind: Manifest\nminAge: 7d\n";
        let address = &self.address;
        let rule = format!(
            "verify:\n- match: \"{address}/free/*\"\n  none: not signed\n- match: \"{address}/*\"\n  \
             keyless: {{issuer: \"{ISSUER}\", identity: \"https://git.test/org/*\"}}\n  \
             trustedRoot: root.json\n"
        );
        let text = format!("{head}{rule}{}", body.replace("REG", address));
        self.place.write("m.yaml", &text);
        text
    }

    fn update(&self, exit: i32) -> Value {
        self.place
            .json(exit, &["update", "-f", "m.yaml", "--store", "store"])
    }
}

/// The versions that wait.
fn waiting(report: &Value) -> Vec<&str> {
    let moves = report["updates"].as_array().unwrap().iter();
    moves
        .flat_map(|one| one["waiting"].as_array().unwrap())
        .map(|one| one["version"].as_str().unwrap())
        .collect()
}

#[test]
fn a_version_that_was_logged_long_ago_does_not_wait() {
    if !need(&["gzip"]) {
        return;
    }
    let rig = LogRig::new();
    rig.push_signed("app", "1.0.0", Tampering::None);
    let new = rig.push_signed("app", "1.0.1", Tampering::None);
    let text = rig.manifest("images:\n- {ref: 'REG/app:1.0.0', update: patch}\n");
    let report = rig.update(0);
    let name = format!("{}/app", rig.address);
    assert_eq!(
        moved(&report),
        [(name.clone(), "1.0.1".into())],
        "{report:#}"
    );
    assert_eq!(
        rig.place.read("m.yaml"),
        text.replace("app:1.0.0", "app:1.0.1")
    );
    let sights = rig.place.read(SIGHTS);
    let digest = new["digest"].as_str().unwrap();
    for line in [
        format!("{name} 1.0.1 {LOGGED}\n"),
        format!("{name}:1.0.1 {digest} {LOGGED}\n"),
    ] {
        assert!(sights.contains(&line), "{sights}");
    }
    // with `keep`, the age of each version counts from its own signatures
    rig.push_signed("app", "1.1.0", Tampering::None);
    rig.push("app", "1.2.0");
    rig.manifest("images:\n- {ref: 'REG/app:1.0.1', update: {policy: minor, keep: 3}}\n");
    let report = rig.update(0);
    assert_eq!(
        moved(&report),
        [(name, "1.0.1, 1.1.0".into())],
        "{report:#}"
    );
    assert_eq!(waiting(&report), ["1.2.0"]);
}

/// Publishers push a version first and sign it later.
#[test]
fn a_version_without_a_required_signature_is_held() {
    if !need(&["gzip"]) {
        return;
    }
    let rig = LogRig::new();
    for version in ["1.0.0", "1.0.1"] {
        rig.push_signed("app", version, Tampering::None);
    }
    let new = rig.push("app", "1.0.2");
    rig.manifest("images:\n- {ref: 'REG/app:1.0.0', update: {policy: patch, minAge: 0d}}\n");
    let report = rig.update(0);
    let name = format!("{}/app", rig.address);
    assert_eq!(
        moved(&report),
        [(name.clone(), "1.0.1".into())],
        "{report:#}"
    );
    let held = &report["updates"][0]["held"][0];
    assert_eq!(held["version"], "1.0.2");
    let why = held["why"].as_str().unwrap();
    assert!(why.contains("no signature found"), "{why}");
    let signer = rig.sigstore.signer(ISSUER, IDENTITY);
    rig.sign("app", &new, &signer, Tampering::None);
    let report = rig.update(0);
    assert_eq!(moved(&report), [(name, "1.0.2".into())], "{report:#}");
}

/// Rules may be added after an image was locked.
#[test]
fn a_pin_that_a_new_rule_refuses_is_not_restored() {
    if !need(&["gzip"]) {
        return;
    }
    for moves in [false, true] {
        let rig = LogRig::new();
        let old = rig.push("app", "stable");
        rig.push_signed("good", "v1", Tampering::None);
        let ruled = rig.manifest(
            "images:\n- REG/good:v1\n\
             - {ref: 'REG/app:stable', update: {policy: digest, minAge: 0d}}\n",
        );
        let (head, entries) = (ruled.find("verify:"), ruled.find("images:"));
        let free = [&ruled[..head.unwrap()], &ruled[entries.unwrap()..]].concat();
        rig.place.write("m.yaml", &free);
        rig.place.ok(&["lock", "-f", "m.yaml", "--store", "store"]);
        let digest = old["digest"].as_str().unwrap();
        assert!(rig.place.read("landfall.lock").contains(digest));
        if moves {
            let layer = rig.images.layer(&[("name", b"another")]);
            let new = rig.images.image("linux/amd64", &[layer]);
            rig.images.push(&rig.address, "app", "stable", &new);
        }
        rig.place.write("m.yaml", &ruled);
        for (verb, more) in [("update", &[][..]), ("refresh", &["-o", "b"][..])] {
            let args = [&[verb, "-f", "m.yaml", "--store", "store"][..], more].concat();
            let report = rig.place.json(3, &args);
            let lock = rig.place.read("landfall.lock");
            let shown = format!("{verb}, moves: {moves}: {report:#}\n{lock}");
            assert!(!lock.contains(digest), "{shown}");
            assert!(lock.contains("no signature found"), "{shown}");
            assert!(!rig.place.path("b").exists(), "{shown}");
        }
    }
}

#[test]
fn an_older_version_that_was_logged_long_ago_does_not_wait_for_a_newer_one() {
    if !need(&["gzip"]) {
        return;
    }
    let rig = LogRig::new();
    for repository in ["one", "two"] {
        for version in ["1.0.0", "1.0.1"] {
            rig.push_signed(repository, version, Tampering::None);
        }
    }
    // only one of the two images of the newest version is signed
    rig.push_signed("one", "1.0.2", Tampering::None);
    rig.push("two", "1.0.2");
    let text = rig.manifest(
        "vars: {both: {value: 1.0.0, update: patch}}\n\
         images:\n- REG/one:${both}\n- REG/two:${both}\n",
    );
    let report = rig.update(0);
    assert_eq!(
        moved(&report),
        [("both".into(), "1.0.1".into())],
        "{report:#}"
    );
    assert_eq!(waiting(&report), ["1.0.2"]);
    assert_eq!(rig.place.read("m.yaml"), text.replace("1.0.0", "1.0.1"));
}

#[test]
fn a_digest_that_was_logged_long_ago_does_not_wait() {
    if !need(&["gzip"]) {
        return;
    }
    let rig = LogRig::new();
    rig.push_signed("app", "stable", Tampering::None);
    rig.manifest("images:\n- {ref: 'REG/app:stable', update: digest}\n");
    let lock = ["lock", "-f", "m.yaml", "--store", "store"];
    rig.place.ok(&lock);
    // a digest that no log has
    let new = rig.images.layer(&[("name", b"new")]);
    let new = rig.images.image("linux/amd64", &[new]);
    rig.images.push(&rig.address, "app", "stable", &new);
    let report = rig.update(0);
    let until = &report["notices"][0]["until"];
    assert!(until.is_string(), "{report:#}");
    let signer = rig.sigstore.signer(ISSUER, IDENTITY);
    rig.sign("app", &new, &signer, Tampering::None);
    rig.update(0);
    let locked = rig.place.read("landfall.lock");
    assert!(locked.contains(new["digest"].as_str().unwrap()), "{locked}");
}

#[test]
fn a_version_waits_if_an_image_lacks_a_required_signature_with_a_valid_log_entry() {
    if !need(&["gzip"]) {
        return;
    }
    let rig = LogRig::new();
    for repository in ["time", "missing", "unsigned", "other", "free/app", "pair"] {
        rig.push_signed(repository, "1.0.0", Tampering::None);
    }
    rig.push_signed("free/pair", "1.0.0", Tampering::None);
    rig.push_signed("time", "1.0.1", Tampering::Time);
    rig.push_signed("missing", "1.0.1", Tampering::Missing);
    rig.push("unsigned", "1.0.1");
    // a signature by another identity, a signature of another image, and a signature that no rule
    // requires
    let image = rig.push("other", "1.0.1");
    let mallory = rig.sigstore.signer(ISSUER, "https://git.test/mallory/app");
    rig.sign("other", &image, &mallory, Tampering::None);
    let signer = rig.sigstore.signer(ISSUER, IDENTITY);
    let payload = simple_payload(&rig.push("other", "0.9.0"));
    let layer = rig
        .sigstore
        .simple_layer(&rig.images, &signer, &payload, Tampering::None);
    push_tagged(&rig.images, &rig.address, "other", &image, &layer, ".sig");
    rig.push_signed("free/app", "1.0.1", Tampering::None);
    // only one of the two images of this version is signed
    rig.push_signed("pair", "1.0.1", Tampering::None);
    rig.push("free/pair", "1.0.1");
    let entries = ["time", "missing", "unsigned", "other", "free/app"]
        .map(|name| format!("- {{ref: 'REG/{name}:1.0.0', update: patch}}\n"));
    let text = rig.manifest(&format!(
        "vars: {{pair: {{value: 1.0.0, update: patch}}}}\nimages:\n{}- REG/pair:${{pair}}\n\
         - REG/free/pair:${{pair}}\n",
        entries.concat()
    ));
    let report = rig.update(0);
    assert_eq!(moved(&report), [], "{report:#}");
    assert_eq!(waiting(&report), ["1.0.1"; 6]);
    assert_eq!(rig.place.read("m.yaml"), text);
    // the only line with the time of the log has the digest of `pair`, which is signed
    let sights = rig.place.read(SIGHTS);
    let logged: Vec<&str> = sights
        .lines()
        .filter(|line| line.ends_with(LOGGED))
        .collect();
    let name = format!("{}/pair:1.0.1 sha256:", rig.address);
    assert!(
        logged.len() == 1 && logged[0].starts_with(&name),
        "{sights}"
    );
}
