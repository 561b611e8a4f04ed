//! Files that are signed by keys: landfall's verdicts on keys of cosign are compared with cosign's
//! verdicts, and keys of OpenSSH are accepted.

use super::cosign::{COSIGN, cosign};
use super::files::{Publisher, reason};
use crate::support::pki::key_pair;
use crate::support::programs::go_install;
use crate::support::{need, run};

#[test]
fn landfall_and_cosign_agree_on_files_signed_by_keys() {
    if !need(&["openssl"]) {
        return;
    }
    let Some(program) = go_install(COSIGN) else {
        return;
    };
    let publisher = Publisher::new();
    let place = &publisher.place;
    let algorithms = ["P-256", "P-384", "ed25519", "RSA"];
    for name in algorithms {
        key_pair(place, name, name);
        let key = format!("{name}.pem");
        let import = [
            "import-key-pair",
            "--key",
            &key,
            "--output-key-prefix",
            name,
        ];
        run(&mut cosign(place, &program, &import));
    }
    for form in ["bundle", "sig"] {
        for (signer, wanted) in algorithms
            .map(|name| (name, name))
            .into_iter()
            .chain([("P-256", "RSA")])
        {
            let key = format!("{signer}.key");
            let public = format!("{wanted}.pub");
            let file = if form == "bundle" {
                "www/tool.sigstore.json"
            } else {
                "www/tool.sig"
            };
            let _ = std::fs::remove_file(place.path("www/tool.sigstore.json"));
            let output = if form == "bundle" {
                vec!["--bundle", file]
            } else {
                vec!["--new-bundle-format=false", "--output-signature", file]
            };
            let sign = ["sign-blob", "--key", &key, "-y", "www/tool"];
            let quiet = ["--use-signing-config=false", "--tlog-upload=false"];
            run(cosign(place, &program, &sign).args(quiet).args(&output));
            let input = if form == "bundle" {
                vec!["--bundle", file]
            } else {
                vec!["--new-bundle-format=false", "--signature", file]
            };
            let verify = ["verify-blob", "--key", &public, "www/tool"];
            let expected = cosign(place, &program, &verify)
                .arg("--insecure-ignore-tlog=true")
                .args(&input)
                .output()
                .unwrap();
            let expected = expected.status.success();
            let name = format!("{form}-{signer}-{wanted}");
            let (exit, report, locked) = publisher.lock(&name, "", &format!("keys: [{public}]"));
            println!("{name}: landfall {}, cosign {expected}", exit == 0);
            if signer == "P-384" {
                // `cosign verify-blob` expects another hash than the one with which cosign signs
                assert_eq!(exit, 0, "{name}: {report}");
                continue;
            }
            assert_eq!(exit == 0, expected, "{name}: {report}");
            // cosign's bundles of Ed25519 signatures lack the digest, and both programs refuse them
            let is_good = signer == wanted && (form, signer) != ("bundle", "ed25519");
            assert_eq!(exit == 0, is_good, "{name}: {report}");
            assert_eq!(
                locked.contains("  verified: {by: key, "),
                is_good,
                "{locked}"
            );
        }
    }
}

#[test]
fn openssh_signatures_of_files_are_verified() {
    if !need(&["ssh-keygen"]) {
        return;
    }
    let publisher = Publisher::new();
    let place = &publisher.place;
    for name in ["ours", "theirs"] {
        let path = place.path(name);
        let make = ["-q", "-t", "ed25519", "-N", "", "-f"];
        run(place.clean("ssh-keygen").args(make).arg(path));
    }
    let sign = ["-q", "-Y", "sign", "-n", "file", "-f", "ours", "www/tool"];
    run(place.clean("ssh-keygen").args(sign));
    let (exit, report, locked) = publisher.lock("landfall", "", "keys: [ours.pub]");
    assert_eq!(exit, 0, "{report}");
    assert!(
        locked.contains("verified: {by: key, fingerprint: ssh-ed25519 SHA256:")
            || locked.contains("verified: {by: key, fingerprint: \"ssh-ed25519 SHA256:"),
        "{locked}"
    );
    let (exit, report, _) = publisher.lock("theirs", "", "keys: [theirs.pub]");
    assert!(
        exit == 1 && reason(&report).contains("did not make it"),
        "{report}"
    );
    place.ok(&["pull", "--store", "store"]);
    place.ok(&["pack", "--store", "store", "-o", "b.tar.zst"]);
    for (key, exit) in [("ours", 0), ("theirs", 4)] {
        let site = format!(
            "apiVersion: landfall/v1\nkind: Site\nverify: [{{match: \"http://*\", keys: \
             [{key}.pub]}}]\n"
        );
        place.write("site.yaml", site);
        place.json(exit, &["verify", "b.tar.zst", "--site", "site.yaml"]);
    }
}
