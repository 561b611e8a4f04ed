//! cosign signs with every kind of key and in both formats, and landfall's verdicts are compared
//! with those of `cosign verify` on the same images.

use crate::support::peers::docker_registry;
use crate::support::pki::key_pair;
use crate::support::programs::go_install;
use crate::support::sigstore::{lock, push_image};
use crate::support::{Images, Place, need, run};
use std::path::Path;
use std::process::Command;

/// The release with which landfall is compared.
pub const COSIGN: &str = "github.com/sigstore/cosign/v3/cmd/cosign@v3.1.3";

/// The flag with which cosign verifies signatures that are in no log.
const UNLOGGED: &str = "--insecure-ignore-tlog=true";

pub fn cosign(place: &Place, program: &Path, args: &[&str]) -> Command {
    let mut command = place.clean(program);
    command
        .args(args)
        .env("COSIGN_PASSWORD", "")
        .current_dir(place.dir());
    command
}

fn accepts(mut command: Command) -> bool {
    command.output().unwrap().status.success()
}

#[test]
fn landfall_and_cosign_agree_on_signatures_by_keys() {
    if !need(&["docker-registry", "openssl", "gzip"]) {
        return;
    }
    let Some(program) = go_install(COSIGN) else {
        return;
    };
    let place = Place::new();
    let images = Images::new(place.path("layout"));
    let upstream = docker_registry();
    let address = &upstream.address;
    let algorithms = ["P-256", "P-384", "ed25519", "RSA"];
    for name in algorithms {
        key_pair(&place, name, name);
        let key = format!("{name}.pem");
        let import = [
            "import-key-pair",
            "--key",
            &key,
            "--output-key-prefix",
            name,
        ];
        run(&mut cosign(&place, &program, &import));
    }
    // the format, the name of the image, the key that signs, and the key that is required
    let mut table = Vec::new();
    for format in ["bundle", "sig"] {
        for name in algorithms {
            table.push((format, name, Some(name), name));
        }
        table.push((format, "wrong", Some("P-256"), "RSA"));
    }
    table.push(("none", "bare", None, "P-256"));
    for (format, name, signer, wanted) in table {
        let repository = format!("{format}/{}", name.to_ascii_lowercase());
        let image = push_image(&images, address, &repository);
        let reference = format!(
            "{address}/{repository}@{}",
            image["digest"].as_str().unwrap()
        );
        let is_bundle = format!("--new-bundle-format={}", format == "bundle");
        if let Some(signer) = signer {
            let key = format!("{signer}.key");
            let sign = [
                "sign",
                "--key",
                &key,
                "--use-signing-config=false",
                "--tlog-upload=false",
                &is_bundle,
                "-y",
                &reference,
            ];
            run(&mut cosign(&place, &program, &sign));
        }
        let key = format!("{wanted}.pub");
        let mut verify = vec!["verify", "--key", &key, UNLOGGED, &is_bundle];
        if wanted == "P-384" {
            // by default, cosign signs with SHA-384 but does not verify with it
            verify.push("--signature-digest-algorithm=sha384");
        }
        verify.push(&reference);
        let expected = accepts(cosign(&place, &program, &verify));
        let manifest = format!(
            "images: [{address}/{repository}:v1]\nverify: [{{match: \"*\", keys: [{key}]}}]\n"
        );
        let (exit, report, locked) = lock(&place, &format!("{format}-{name}"), &manifest);
        let accepted = exit == 0;
        println!("{repository}: landfall {accepted}, cosign {expected}");
        if signer == Some("ed25519") {
            // cosign 3 signs with Ed25519ph, which its own `verify` refuses
            assert!(accepted, "{report}");
            continue;
        }
        assert_eq!(accepted, expected, "{repository}: {report}");
        assert_eq!(accepted, signer == Some(wanted), "{repository}: {report}");
        assert_eq!(
            locked.contains("  verified: {by: key, "),
            accepted,
            "{locked}"
        );
    }
}

#[test]
fn cosign_accepts_what_push_signs_at_the_destination() {
    if !need(&["docker-registry", "openssl", "gzip"]) {
        return;
    }
    let Some(program) = go_install(COSIGN) else {
        return;
    };
    let place = Place::new();
    let images = Images::new(place.path("layout"));
    let upstream = docker_registry();
    let target = docker_registry();
    key_pair(&place, "site", "P-256");
    key_pair(&place, "team", "P-256");
    let import = [
        "import-key-pair",
        "--key",
        "team.pem",
        "--output-key-prefix",
        "team",
    ];
    run(&mut cosign(&place, &program, &import));
    let image = push_image(&images, &upstream.address, "team/app");
    let digest = image["digest"].as_str().unwrap();
    let reference = format!("{}/team/app@{digest}", upstream.address);
    for format in ["--new-bundle-format=true", "--new-bundle-format=false"] {
        let sign = [
            "sign",
            "--key",
            "team.key",
            "--use-signing-config=false",
            "--tlog-upload=false",
            format,
            "-y",
            &reference,
        ];
        run(&mut cosign(&place, &program, &sign));
    }
    let manifest = format!("images: [{}/team/app:v1]\n", upstream.address);
    assert_eq!(lock(&place, "landfall", &manifest).0, 0);
    place.ok(&["pull", "--store", "store"]);
    place.ok(&["pack", "--store", "store", "-o", "b.tar.zst"]);
    let to = format!("{}/mirror", target.address);
    let push = [
        "push",
        "b.tar.zst",
        "--to",
        &to,
        "--sign-images",
        "site.pem",
    ];
    let report = place.json(0, &push);
    assert_eq!(report["items"][0]["status"], "done", "{report}");
    let mirrored = format!("{to}/team/app:v1");
    for key in ["site.pub", "team.pub"] {
        for format in ["--new-bundle-format=true", "--new-bundle-format=false"] {
            let verify = ["verify", "--key", key, UNLOGGED, format, &mirrored];
            run(&mut cosign(&place, &program, &verify));
        }
    }
    // signing again changes nothing
    let again = place.json(0, &push);
    assert_eq!(again["items"][0]["status"], "present", "{again}");
    // landfall itself accepts the site's signature as well
    let site =
        format!("images: [{mirrored}]\nverify: [{{match: \"*/mirror/*\", keys: [site.pub]}}]\n");
    let (exit, report, locked) = lock(&place, "site", &site);
    assert!(
        exit == 0 && locked.contains("verified: {by: key"),
        "{report}"
    );
    // an encrypted key in PEM cannot sign
    place.write("rsa.pem", "-----BEGIN ENCRYPTED PRIVATE KEY-----\n");
    let told = place.stderr(
        2,
        &["push", "b.tar.zst", "--to", &to, "--sign-images", "rsa.pem"],
    );
    assert!(told.contains("it is encrypted"), "{told}");
}

#[test]
fn push_signs_with_an_encrypted_key_of_cosign_and_its_password() {
    if !need(&["docker-registry", "gzip"]) {
        return;
    }
    let Some(program) = go_install(COSIGN) else {
        return;
    };
    let place = Place::new();
    let images = Images::new(place.path("layout"));
    let upstream = docker_registry();
    let target = docker_registry();
    let generate = ["generate-key-pair", "--output-key-prefix", "site"];
    run(cosign(&place, &program, &generate).env("COSIGN_PASSWORD", "a secret"));
    push_image(&images, &upstream.address, "team/app");
    let manifest = format!("images: [{}/team/app:v1]\n", upstream.address);
    assert_eq!(lock(&place, "landfall", &manifest).0, 0);
    place.ok(&["pull", "--store", "store"]);
    place.ok(&["pack", "--store", "store", "-o", "b.tar.zst"]);
    let push = |password: Option<&str>, more: &[&str]| {
        let mut push = place.command();
        push.args(["push", "b.tar.zst", "--to", &target.address]);
        push.args(["--sign-images", "site.key"]).args(more);
        if let Some(password) = password {
            push.env("COSIGN_PASSWORD", password);
        }
        let run = push.output().unwrap();
        let told = String::from_utf8_lossy(&run.stderr).into_owned();
        (run.status.code().unwrap(), told)
    };
    for (password, why) in [
        (None, "no password is given"),
        (Some("other"), "does not decrypt it"),
    ] {
        let (exit, told) = push(password, &[]);
        assert!(exit == 2 && told.contains(why), "{told}");
    }
    assert_eq!(push(Some("a secret"), &[]).0, 0);
    place.write("password", "a secret\n");
    let (exit, told) = push(None, &["--sign-images-password", "password"]);
    assert_eq!(exit, 0, "{told}");
    let reference = format!("{}/team/app:v1", target.address);
    for format in ["--new-bundle-format=true", "--new-bundle-format=false"] {
        let verify = ["verify", "--key", "site.pub", UNLOGGED, format, &reference];
        run(&mut cosign(&place, &program, &verify));
    }
}
