//! Signatures next to files, by keys and identities: verified when the files are locked and again
//! from a bundle. landfall's verdicts are compared with cosign's.

use super::cosign::COSIGN;
use crate::support::images::sha256_hex;
use crate::support::peers::{Server, file_server};
use crate::support::programs::go_install;
use crate::support::signed_files::LogSearch;
use crate::support::sigstore::{ImageSigner, Sigstore, Tampering, base64, lock};
use crate::support::{Place, need};
use serde_json::Value;

const ISSUER: &str = "https://accounts.test";
const IDENTITY: &str = "https://git.test/org/tool/.github/workflows/release.yml@refs/tags/v1";
const CONTENT: &[u8] = b"the content of the tool";

/// A web server with files of a publisher.
pub(super) struct Publisher {
    pub(super) place: Place,
    upstream: Server,
}

impl Publisher {
    pub(super) fn new() -> Publisher {
        let place = Place::new();
        place.write("www/tool", CONTENT);
        let upstream = file_server(&place.path("www"));
        Publisher { place, upstream }
    }

    /// Locks `www/tool`, whose entry has `fields`, with a rule that names `signers`. `AT` in
    /// `fields` stands for the URL of the server.
    pub(super) fn lock(&self, name: &str, fields: &str, signers: &str) -> (i32, Value, String) {
        let url = self.upstream.url();
        let manifest = format!(
            "files:\n- {{url: \"{url}/tool\", {}}}\nverify:\n- {{match: \"{url}/*\", {signers}}}\n",
            fields.replace("AT", &url)
        );
        lock(&self.place, name, &manifest)
    }

    fn write_json(&self, path: &str, value: &Value) {
        self.place.write(path, value.to_string());
    }

    fn remove(&self, paths: &[&str]) {
        for path in paths {
            std::fs::remove_file(self.place.path(path)).unwrap();
        }
    }
}

pub(super) fn reason(report: &Value) -> &str {
    report["items"][0]["reason"].as_str().unwrap_or_default()
}

fn keyless(identity: &str) -> String {
    format!("keyless: {{issuer: \"{ISSUER}\", identity: \"{identity}\"}}, trustedRoot: root.json")
}

#[test]
fn a_sigstore_bundle_next_to_a_file_proves_its_publisher() {
    let publisher = Publisher::new();
    let place = &publisher.place;
    let sigstore = Sigstore::new();
    let other = Sigstore::new();
    let signer = sigstore.signer(ISSUER, IDENTITY);
    let signature = signer.file_signature(CONTENT);
    let bundle = sigstore.file_bundle(&signer, CONTENT, &signature, Tampering::None);
    place.write("root.json", sigstore.trusted_root());
    place.write("other.json", other.trusted_root());
    let rule = keyless("https://git.test/org/*");

    let (exit, report, _) = publisher.lock("none", "", &rule);
    assert_eq!(exit, 1, "{report}");
    assert!(
        reason(&report).contains("no signature found")
            && reason(&report).contains("there is none next to the file"),
        "{report}"
    );

    publisher.write_json("www/tool.sigstore.json", &bundle);
    let (exit, report, locked) = publisher.lock("landfall", "", &rule);
    assert_eq!(exit, 0, "{report}");
    let verified = format!(
        "  verified: {{by: keyless, issuer: {ISSUER}, identity: {IDENTITY}, time: \
         \"2026-01-01T12:00:00Z\"}}\n"
    );
    assert!(locked.contains(&verified), "{locked}");
    assert!(locked.contains("/tool.sigstore.json, digest: "), "{locked}");
    assert_eq!(report["signatures"][0]["identity"], IDENTITY);
    // an unchanged manifest needs no request, and a check finds no difference
    let quiet = place.json(0, &["lock", "-f", "landfall.yaml"]);
    assert_eq!(quiet["totals"]["requests"], 0, "{quiet}");
    place.json(0, &["lock", "-f", "landfall.yaml", "--check"]);
    place.json(0, &["lock", "-f", "landfall.yaml", "--refresh"]);

    // the content of landfall's bundle proves the publisher again
    place.ok(&["pull", "--store", "store"]);
    place.ok(&["pack", "--store", "store", "-o", "b.tar.zst"]);
    let site = |root: &str, identity: &str| {
        let text = format!(
            "apiVersion: landfall/v1\nkind: Site\nverify:\n- match: \"http://*\"\n  keyless: \
             {{issuer: \"{ISSUER}\", identity: \"{identity}\"}}\n  trustedRoot: {root}\n"
        );
        place.write("site.yaml", text);
    };
    let verify = ["verify", "b.tar.zst", "--site", "site.yaml"];
    site("root.json", IDENTITY);
    let report = place.json(0, &verify);
    assert_eq!(report["signatures"][0]["verified"], true, "{report}");
    for (root, identity) in [
        ("other.json", IDENTITY),
        ("root.json", "https://git.test/x"),
    ] {
        site(root, identity);
        let report = place.json(4, &verify);
        let told = report["error"]["message"].as_str().unwrap();
        assert!(told.contains("1 item is not signed as"), "{told}");
        let push = [
            "push",
            "b.tar.zst",
            "--site",
            "site.yaml",
            "--to",
            "127.0.0.1:9",
        ];
        place.json(4, &push);
    }
    // a rule that matches all images does not apply to files
    let text = "apiVersion: landfall/v1\nkind: Site\nverify: [{match: \"*\", keys: [one.pub]}]\n";
    place.write("one.pub", ImageSigner::with_key().public_pem());
    place.write("site.yaml", text);
    place.json(0, &verify);
}

#[test]
fn a_file_without_a_valid_signature_of_its_publisher_is_refused() {
    let publisher = Publisher::new();
    let place = &publisher.place;
    let sigstore = Sigstore::new();
    let other = Sigstore::new();
    place.write("root.json", sigstore.trusted_root());
    let cosign = go_install(COSIGN);
    let signer = sigstore.signer(ISSUER, IDENTITY);
    let stranger = sigstore.signer(ISSUER, "https://git.test/mallory/tool");
    let expired = sigstore.signer_until(ISSUER, IDENTITY, 1);
    let untrusted = other.signer(ISSUER, IDENTITY);
    let changed = b"other content".as_slice();
    let cases = [
        ("good", &sigstore, &signer, CONTENT, Tampering::None, None),
        (
            "changed",
            &sigstore,
            &signer,
            changed,
            Tampering::None,
            Some("does not verify"),
        ),
        (
            "stranger",
            &sigstore,
            &stranger,
            CONTENT,
            Tampering::None,
            Some("a signature by https://git.test/mallory/tool"),
        ),
        (
            "expired",
            &sigstore,
            &expired,
            CONTENT,
            Tampering::None,
            Some("does not verify"),
        ),
        (
            "untrusted",
            &other,
            &untrusted,
            CONTENT,
            Tampering::None,
            Some("does not verify"),
        ),
        (
            "time",
            &sigstore,
            &signer,
            CONTENT,
            Tampering::Time,
            Some("does not verify"),
        ),
        (
            "unlogged",
            &sigstore,
            &signer,
            CONTENT,
            Tampering::Missing,
            Some("does not verify"),
        ),
    ];
    for (name, service, signer, content, tampering, refusal) in cases {
        let signature = signer.file_signature(content);
        let bundle = service.file_bundle(signer, content, &signature, tampering);
        publisher.write_json("www/tool.sigstore.json", &bundle);
        let (exit, report, _) = publisher.lock(name, "", &keyless("https://git.test/org/*"));
        if let Some(cosign) = &cosign {
            let expected = place
                .clean(cosign)
                .args(["verify-blob", "--bundle", "www/tool.sigstore.json"])
                .args(["--trusted-root=root.json", "--insecure-ignore-sct=true"])
                .args(["--certificate-oidc-issuer", ISSUER])
                .args([
                    "--certificate-identity-regexp=^https://git[.]test/org/.*$",
                    "www/tool",
                ])
                .current_dir(place.dir())
                .output()
                .unwrap();
            let expected = expected.status.success();
            println!("{name}: landfall {}, cosign {expected}", exit == 0);
            assert_eq!(exit == 0, expected, "{name}: {report}");
        }
        match refusal {
            None => assert_eq!(exit, 0, "{name}: {report}"),
            Some(why) => {
                assert!(
                    exit == 1 && reason(&report).contains(why),
                    "{name}: {report}"
                );
            }
        }
    }
}

#[test]
fn a_signature_and_certificate_without_a_log_entry_are_looked_up_in_the_log() {
    let publisher = Publisher::new();
    let place = &publisher.place;
    let sigstore = Sigstore::new();
    let search = LogSearch::new();
    let root = sigstore
        .trusted_root()
        .replace("https://rekor.test", &search.url());
    place.write("root.json", root);
    let signer = sigstore.signer(ISSUER, IDENTITY);
    let signature = signer.file_signature(CONTENT);
    // as on dl.k8s.io: base64 of the signature, and base64 of the certificate in PEM
    place.write("www/tool.sig", &signature);
    place.write("www/tool.cert", base64(signer.certificate_pem()));
    let rule = keyless(IDENTITY);
    let (exit, report, _) = publisher.lock("unlogged", "", &rule);
    assert_eq!(exit, 1, "{report}");
    assert!(reason(&report).contains("does not verify"), "{report}");

    search.add(&sigstore, &signer, CONTENT, &signature);
    let (exit, report, locked) = publisher.lock("landfall", "", &rule);
    assert_eq!(exit, 0, "{report}");
    assert!(
        locked.contains("  logEntry: {index: 0, time: 1767268800, log: "),
        "{locked}"
    );
    assert!(locked.contains("  verified: {by: keyless, "), "{locked}");
    // the log is queried once: then the entry is in the lock
    let before = search.count();
    place.json(0, &["lock", "-f", "landfall.yaml", "--check"]);
    assert_eq!(search.count(), before);
    place.ok(&["pull", "--store", "store"]);
    place.ok(&["pack", "--store", "store", "-o", "b.tar.zst"]);
    let site = format!(
        "apiVersion: landfall/v1\nkind: Site\nverify: [{{match: \"http://*/tool\", {rule}}}]\n"
    );
    place.write("site.yaml", site);
    let report = place.json(0, &["verify", "b.tar.zst", "--site", "site.yaml"]);
    assert_eq!(
        report["signatures"][0]["time"], "2026-01-01T12:00:00Z",
        "{report}"
    );
    // `--check` detects an altered entry, and `--refresh` replaces it with the entry of the log
    let altered = locked.replace("time: 1767268800", "time: 1767268801");
    place.write("landfall.lock", &altered);
    place.json(4, &["lock", "-f", "landfall.yaml", "--check"]);
    place.json(0, &["lock", "-f", "landfall.yaml", "--refresh"]);
    assert_eq!(place.read("landfall.lock"), locked);

    // a file in cosign's older bundle format contains the log entry
    publisher.remove(&["www/tool.sig", "www/tool.cert"]);
    publisher.write_json(
        "www/tool.bundle",
        &sigstore.cosign_bundle(&signer, CONTENT, &signature),
    );
    let (exit, report, locked) = publisher.lock("old", "signatures: [\"${url}.bundle\"]", &rule);
    assert_eq!(exit, 0, "{report}");
    assert!(!locked.contains("logEntry"), "{locked}");
}

#[test]
fn a_signed_checksum_file_proves_the_files_that_it_lists() {
    if !need(&["openssl"]) {
        return;
    }
    let publisher = Publisher::new();
    let place = &publisher.place;
    let signer = ImageSigner::with_key();
    place.write("one.pub", signer.public_pem());
    let sums = |content: &[u8]| format!("{}  tool\n", sha256_hex(content));
    let fields = "checksum: \"AT/checksums.txt\"";
    place.write("www/checksums.txt", sums(CONTENT));
    let signature = signer.file_signature(sums(CONTENT).as_bytes());
    place.write("www/checksums.txt.sig", &signature);
    let (exit, report, locked) = publisher.lock("landfall", fields, "keys: [one.pub]");
    assert_eq!(exit, 0, "{report}");
    assert!(
        locked.contains("verified: {by: key, fingerprint: "),
        "{locked}"
    );
    assert_eq!(
        publisher.upstream.requests("GET /tool "),
        0,
        "the content of the listed file is not needed"
    );
    place.ok(&["pull", "--store", "store"]);
    place.ok(&["pack", "--store", "store", "-o", "b.tar.zst"]);
    let site =
        "apiVersion: landfall/v1\nkind: Site\nverify: [{match: \"http://*\", keys: [one.pub]}]\n";
    place.write("site.yaml", site);
    place.json(0, &["verify", "b.tar.zst", "--site", "site.yaml"]);

    // a checksum file that is not the signed one
    place.write("www/checksums.txt", format!("{}\n", sums(CONTENT)));
    let (exit, report, _) = publisher.lock("changed", fields, "keys: [one.pub]");
    assert!(
        exit == 1 && reason(&report).contains("a signature by another key"),
        "{report}"
    );
}

/// Before, rules matched the main URL of a file only, and a file that nobody signed was delivered
/// under another URL for which a rule demands a signature.
#[test]
fn a_file_must_meet_the_rules_for_all_urls_under_which_it_is_delivered() {
    let publisher = Publisher::new();
    let place = &publisher.place;
    let [ours, theirs] = [ImageSigner::with_key(), ImageSigner::with_key()];
    place.write("ours.pub", ours.public_pem());
    place.write("theirs.pub", theirs.public_pem());
    let url = publisher.upstream.url();
    let manifest = |rules: &str| {
        format!(
            "files:\n- {{url: \"{url}/tool\", also: [\"https://dl.test/v1/tool\"]}}\n\
             verify: [{rules}]\n"
        )
    };
    let own_free = format!("{{match: \"{url}/*\", none: ours}}");
    let other_ours = "{match: \"https://dl.test/*\", keys: [ours.pub]}";
    let strict = format!("{own_free}, {other_ours}");
    let (exit, report, _) = lock(place, "none", &manifest(&strict));
    assert_eq!(exit, 1, "{report}");
    assert!(reason(&report).contains("no signature found"), "{report}");

    place.write("www/tool.sig", ours.file_signature(CONTENT));
    let (exit, report, locked) = lock(place, "landfall", &manifest(&strict));
    assert_eq!(exit, 0, "{report}");
    assert!(locked.contains("  verified: {by: key, "), "{locked}");
    // each URL has a rule of its own, and the file must meet both
    let own_theirs = format!("{{match: \"{url}/*\", keys: [theirs.pub]}}");
    let both = manifest(&format!("{own_theirs}, {other_ours}"));
    let (exit, report, _) = lock(place, "both", &both);
    assert_eq!(exit, 1, "{report}");

    // a lock of an unsigned file, made without rules, is not delivered to a site with the rule
    place.write("www/tool", "unsigned");
    let (exit, report, _) = lock(place, "bare", &manifest(&own_free));
    assert_eq!(exit, 0, "{report}");
    place.ok(&["pull", "bare.lock", "--store", "store"]);
    place.ok(&[
        "pack",
        "bare.lock",
        "--store",
        "store",
        "-o",
        "bare.tar.zst",
    ]);
    let site = |rules: &str| {
        let text = format!("apiVersion: landfall/v1\nkind: Site\nverify: [{rules}]\n");
        place.write("site.yaml", text);
    };
    site(&strict);
    for verb in [
        &["verify", "bare.tar.zst"][..],
        &["export", "files", "bare.tar.zst", "-o", "out"],
        &["pull", "bare.lock", "--store", "store"],
    ] {
        let args = [verb, &["--site", "site.yaml"]].concat();
        let output = place.command().args(&args).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        assert!(!output.status.success(), "{verb:?}");
        assert!(text.contains("no signature found"), "{verb:?}: {text}");
    }
    site(&own_free);
    place.json(0, &["verify", "bare.tar.zst", "--site", "site.yaml"]);

    // an address that was added to a locked file is checked as well
    let plain = manifest("").replace("also: [\"https://dl.test/v1/tool\"]", "also: []");
    lock(place, "later", &plain);
    let (exit, report, locked) = lock(place, "later", &manifest(other_ours));
    assert_eq!(exit, 1, "{report}\n{locked}");
}
