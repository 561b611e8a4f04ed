//! Signatures of files: mirrored unchanged, and verified with a given key when the file is locked.

use crate::support::images::sha256_hex;
use crate::support::peers::{Server, file_server};
use crate::support::{Place, need, run};
use serde_json::Value;

/// The key and the signature of the text `test` from minisign's own documentation.
const KEY: &str = "untrusted comment: minisign public key E7620F1842B4E81F
RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3
";
const SIGNATURE: &str = "untrusted comment: signature from minisign secret key
RUQf6LRCGA9i559r3g7V1qNyJDApGip8MfqcadIgT9CuhV3EMhHoN1mGTkUidF/z7SrlQgXdy8ofjb7bNJJylDOocrCo8KLzZwo=
trusted comment: timestamp:1556193335\tfile:test
y/rUw2y8/hOUYjZU71eHp/Wo1KZ40fGy2VJEDl34XMJM+TX48Ss/17u3IvIfbVR1FkZZSNCisQbuQY+bHwhEBg==
";

/// A web server with the file `tool`, its checksum file and a certificate.
struct Signed {
    place: Place,
    upstream: Server,
}

impl Signed {
    fn new(content: &[u8]) -> Signed {
        let place = Place::new();
        place.write("www/tool", content);
        place.write("www/SHA256SUMS", format!("{}  tool\n", sha256_hex(content)));
        place.write(
            "www/tool.pem",
            "-----BEGIN CERTIFICATE-----\nMAo=\n-----END CERTIFICATE-----\n",
        );
        let upstream = file_server(&place.path("www"));
        Signed { place, upstream }
    }

    fn lock(&self, exit: i32, more: &str) -> Value {
        let url = self.upstream.url();
        let manifest = format!(
            "apiVersion: landfall/v1\nkind: Manifest\nfiles:\n- {{url: \"{url}/tool\", {}}}\n",
            more.replace("AT", &url)
        );
        self.place.write("m.yaml", manifest);
        self.place.json(exit, &["lock", "-f", "m.yaml"])
    }

    fn ssh_key(&self, name: &str) {
        let path = self.place.path(name);
        run(self
            .place
            .clean("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-f"])
            .arg(path));
    }

    fn ssh_sign(&self, key: &str, file: &str) {
        let sign = ["-q", "-Y", "sign", "-n", "file", "-f", key, file];
        run(self.place.clean("ssh-keygen").args(sign));
    }
}

fn reason(report: &Value) -> &str {
    report["items"][0]["reason"].as_str().unwrap_or_default()
}

#[test]
fn signatures_of_a_file_are_mirrored_and_verified_before_locking() {
    let signed = Signed::new(b"test");
    signed.place.write("www/tool.minisig", SIGNATURE);
    signed.place.write("key.pub", KEY);
    let both = "signatures: [\"${url}.minisig\", \"${url}.pem\"]";
    signed.lock(0, &format!("{both}, key: key.pub"));
    let lock = signed.place.read("landfall.lock");
    assert!(
        lock.contains("signedBy: minisign E7620F1842B4E81F\n"),
        "{lock}"
    );
    signed.place.ok(&["pull"]);
    signed.place.ok(&["export", "files", "-o", "out"]);
    let host = signed.upstream.address.as_str();
    assert_eq!(
        signed.place.read(&format!("out/{host}/tool.minisig")),
        SIGNATURE
    );
    assert_eq!(
        signed.place.read(&format!("out/{host}/tool.pem")),
        signed.place.read("www/tool.pem")
    );

    // an unchanged entry is not requested again, unless the content of its key file changed
    let before = signed.upstream.requests("");
    signed.lock(0, &format!("{both}, key: key.pub"));
    assert_eq!(signed.upstream.requests(""), before);
    assert_eq!(signed.place.read("landfall.lock"), lock);
    signed.place.write(
        "key.pub",
        "RWTmpZQh8Jv9vCGwHqwxxW0+xyY0c1gIi8vVdM9u8ZB2RzIY+4lFpdhb\n",
    );
    let report = signed.lock(1, &format!("{both}, key: key.pub"));
    assert!(
        reason(&report).contains("signature is not valid"),
        "{report}"
    );

    signed.place.write("www/tool", "Test");
    signed.place.write("key.pub", KEY);
    signed
        .place
        .path("landfall.lock")
        .exists()
        .then(|| std::fs::remove_file(signed.place.path("landfall.lock")));
    let report = signed.lock(1, &format!("{both}, key: key.pub"));
    assert!(
        reason(&report).contains("E7620F1842B4E81F did not make it"),
        "{report}"
    );
}

#[test]
fn a_file_that_was_replaced_is_not_accepted_because_a_signature_was_added() {
    let signed = Signed::new(b"test");
    signed.place.write("www/tool.minisig", SIGNATURE);
    signed.lock(0, "also: []");
    signed.place.write("www/tool", "Test");
    let signature = "signatures: [\"${url}.minisig\"]";
    let report = signed.lock(1, signature);
    assert!(reason(&report).contains("upstream now has "), "{report}");
    signed.place.json(0, &["lock", "-f", "m.yaml", "--refresh"]);
}

#[test]
fn an_ssh_signature_of_a_file_or_its_checksum_file_is_verified() {
    if !need(&["ssh-keygen"]) {
        return;
    }
    let signed = Signed::new(&crate::support::images::noise(1, 300_000));
    signed.ssh_key("ours");
    signed.ssh_key("theirs");
    signed.ssh_sign("ours", "www/tool");
    signed.lock(0, "signatures: [\"${url}.sig\"], key: ours.pub");
    assert!(
        signed
            .place
            .read("landfall.lock")
            .contains("signedBy: ssh-ed25519 SHA256:")
    );

    signed.ssh_sign("ours", "www/SHA256SUMS");
    let sums = "checksum: AT/SHA256SUMS, signatures: [\"AT/SHA256SUMS.sig\"]";
    std::fs::remove_file(signed.place.path("landfall.lock")).unwrap();
    let before = signed.upstream.requests("GET /tool ");
    signed.lock(0, &format!("{sums}, key: ours.pub"));
    assert_eq!(
        signed.upstream.requests("GET /tool "),
        before,
        "only the signed checksum file is needed"
    );
    assert!(
        signed
            .place
            .read("landfall.lock")
            .contains("signedBy: ssh-ed25519 ")
    );

    for (key, why) in [
        ("theirs.pub", "did not make it"),
        ("m.yaml", "not a public key"),
        ("ours", "private key"),
    ] {
        let _ = std::fs::remove_file(signed.place.path("landfall.lock"));
        let exit = if key == "theirs.pub" { 1 } else { 2 };
        let report = signed.lock(exit, &format!("{sums}, key: {key}"));
        assert!(report.to_string().contains(why), "{key}: {report}");
    }
    let report = signed.lock(2, "key: ours.pub");
    assert!(
        report
            .to_string()
            .contains("a key needs a signature that it can verify"),
        "{report}"
    );
}

#[test]
fn a_signer_of_files_is_accepted_only_for_its_namespaces_and_within_its_validity() {
    if !need(&["ssh-keygen"]) {
        return;
    }
    let signed = Signed::new(b"test");
    signed.ssh_key("ours");
    signed.ssh_sign("ours", "www/tool");
    let key = signed.place.read("ours.pub");
    for (options, exit, why) in [
        ("namespaces=\"file\",valid-after=\"20200101\"", 0, ""),
        (
            "valid-before=\"20200101\"",
            1,
            "allowed it until 2020-01-01T00:00:00Z",
        ),
        ("namespaces=\"git\"", 1, "for the namespaces"),
    ] {
        let _ = std::fs::remove_file(signed.place.path("landfall.lock"));
        let line = format!("ours@example.test {options} {key}");
        signed.place.write("allowed", line);
        let report = signed.lock(exit, "signatures: [\"${url}.sig\"], key: allowed");
        assert!(report.to_string().contains(why), "{options}: {report}");
    }
}

#[test]
fn a_gpg_signature_of_a_file_is_verified_armored_or_not() {
    if !need(&["gpg"]) {
        return;
    }
    let signed = Signed::new(&crate::support::images::noise(1, 300_000));
    let gpg = |args: &[&str]| {
        let home = signed.place.path("home/g");
        std::fs::create_dir_all(&home).unwrap();
        let quiet = [
            "--batch",
            "--quiet",
            "--yes",
            "--pinentry-mode",
            "loopback",
            "--passphrase",
            "",
            "--homedir",
        ];
        run(signed.place.clean("gpg").args(quiet).arg(home).args(args))
    };
    for who in ["ours@example.test", "theirs@example.test"] {
        gpg(&["--quick-generate-key", who, "default", "default", "never"]);
        signed
            .place
            .write(&format!("{who}.asc"), gpg(&["--armor", "--export", who]));
        signed
            .place
            .write(&format!("{who}.gpg"), gpg(&["--export", who]));
    }
    let sign = |who: &str, how: &[&str], to: &str| {
        gpg(&[
            &["--local-user", who, "--output", to, "--detach-sign"],
            how,
            &["www/tool"],
        ]
        .concat());
    };
    sign("ours@example.test", &["--armor"], "www/tool.asc");
    sign("ours@example.test", &[], "www/tool.sig");
    for (ending, key, exit) in [("asc", "ours", 0), ("sig", "ours", 0), ("asc", "theirs", 1)] {
        for form in ["asc", "gpg"] {
            let _ = std::fs::remove_file(signed.place.path("landfall.lock"));
            let key = format!("{key}@example.test.{form}");
            let report = signed.lock(
                exit,
                &format!("signatures: [\"${{url}}.{ending}\"], key: {key}"),
            );
            let lock =
                std::fs::read_to_string(signed.place.path("landfall.lock")).unwrap_or_default();
            assert_eq!(
                lock.contains("signedBy: "),
                exit == 0,
                "{ending} {key}: {report}"
            );
            if exit != 0 {
                assert_not_signed(&report);
            }
        }
    }
    signed.place.write("www/tool", "other");
    let _ = std::fs::remove_file(signed.place.path("landfall.lock"));
    assert_not_signed(&signed.lock(
        1,
        "signatures: [\"${url}.asc\"], key: ours@example.test.asc",
    ));
}

/// Asserts that the reason of the first item is that it has no valid signature.
fn assert_not_signed(report: &Value) {
    let reason = report["items"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("it has no valid signature by "), "{reason}");
}

#[test]
fn members_of_an_archive_are_exported_next_to_it() {
    if !need(&["tar", "gzip"]) {
        return;
    }
    let signed = Signed::new(b"");
    signed.place.write("node/bin/kubelet", "kubelet");
    run(signed
        .place
        .clean("tar")
        .args(["-czf", "www/tool", "-C", "node", "."]));
    signed.lock(0, "unpack: [bin/kubelet]");
    signed.place.ok(&["pull"]);
    signed.place.ok(&["pack", "-o", "b.tar.zst"]);
    signed
        .place
        .ok(&["export", "files", "-o", "out", "--bundle", "b.tar.zst"]);
    let member = format!("out/{}/tool.d/bin/kubelet", signed.upstream.address);
    assert_eq!(signed.place.read(&member), "kubelet");
    for bad in ["../x", "/x", "a//b", "."] {
        signed.lock(2, &format!("unpack: [\"{bad}\"]"));
    }
}
