//! Bundles that were packed when version 1 of the format was finished. Every later build must read
//! them.

use super::site::Site;
use super::{code, report, shown};
use crate::support::library::Lock;
use crate::support::{need, run};
use serde_json::json;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/bundles"))
}

fn frozen(name: &str) -> String {
    folder().join(name).display().to_string()
}

/// Packs the frozen bundles; fails if one exists. This was run once; replacing a bundle breaks the
/// promise in `docs/reference/bundle-format.md`.
#[test]
#[ignore = "the bundles are frozen"]
fn freeze() {
    let site = Site::small();
    let into = folder();
    fs::create_dir_all(&into).unwrap();
    let pack = |name: &str, more: &[&str]| {
        let out = into.join(name);
        assert!(!out.exists(), "{name} is frozen");
        let output = site.run(&[&["pack", "-o", out.to_str().unwrap()], more].concat());
        assert!(
            output.status.success() || code(&output) == 3,
            "{}",
            shown(&output)
        );
    };
    for key in ["one", "two"] {
        let file = site.path(key);
        run(Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-C", "", "-f"])
            .arg(&file));
        let line = fs::read_to_string(site.path(&format!("{key}.pub"))).unwrap();
        let allowed = fs::read_to_string(into.join("allowed_signers")).unwrap_or_default();
        fs::write(
            into.join("allowed_signers"),
            format!("{allowed}{key}@example.com {line}"),
        )
        .unwrap();
    }
    pack("plain.tar.zst", &["--serial", "7"]);
    pack("signed.tar.zst", &["--sign", "one"]);
    let signed = site.run(&["sign", &frozen("signed.tar.zst"), "--key", "two"]);
    assert_eq!(code(&signed), 0, "{}", shown(&signed));
    pack("volumes", &["--volume-size", "8k", "--sign", "one"]);
    let file = Lock {
        files: site.lock.files[..1].to_vec(),
        images: vec![],
        ..site.lock.clone()
    };
    fs::write(site.path("old.lock"), file.to_text()).unwrap();
    pack(
        "delta.tar.zst",
        &["--since", "old.lock", "--since", &frozen("plain.tar.zst")],
    );
    site.without(&site.lock.files[1].digest);
    pack("incomplete.tar.zst", &["--allow-partial", "--level", "9"]);
}

/// The digest of each bundle that `freeze` packed.
const DIGESTS: [(&str, &str); 5] = [
    (
        "plain.tar.zst",
        "sha256:62ab2629601bdcb79c20c831830a3bf693d02e11a2ba76edea4d9cbbad7b1a04",
    ),
    (
        "signed.tar.zst",
        "sha256:17a5a4e13a1525a3f360ad34d5d3002cbcdcbf9569650657e7dfda78dbc81de8",
    ),
    (
        "volumes",
        "sha256:17a5a4e13a1525a3f360ad34d5d3002cbcdcbf9569650657e7dfda78dbc81de8",
    ),
    (
        "delta.tar.zst",
        "sha256:af9d95f2b281903c941c8bb2415a00e9355a8201bdef7341c4f0d0570011403b",
    ),
    (
        "incomplete.tar.zst",
        "sha256:1d9bfa780f681fd6ab25d588a07411fa3185bbe45c26cfa85a1eb26e7308f334",
    ),
];

#[test]
fn bundles_of_version_1_stay_readable() {
    let site = Site::small();
    for (name, digest) in DIGESTS {
        let bundle = frozen(name);
        let mut verify = vec!["verify", &bundle, "--output", "json"];
        let bases = [frozen("plain.tar.zst")];
        if name.starts_with("incomplete") {
            assert_eq!(code(&site.run(&verify)), 4);
            verify.push("--allow-partial");
        }
        if name.starts_with("delta") {
            verify.push(&bases[0]);
        }
        let output = site.run(&verify);
        assert_eq!(code(&output), 0, "{name}: {}", shown(&output));
        let bundle = &report(&output)["bundle"];
        assert_eq!(bundle["digest"], digest, "{name}");
        let serial = if name.starts_with("plain") {
            json!(["frozen", 7])
        } else {
            json!([null, null])
        };
        assert_eq!(
            json!([bundle["series"], bundle["serial"]]),
            serial,
            "{name}"
        );
        assert_eq!(
            bundle["signed"],
            ["signed.tar.zst", "volumes"].contains(&name),
            "{name}"
        );
        assert_eq!(
            bundle["partial"].as_array().unwrap().len(),
            usize::from(name.starts_with("inc")),
            "{name}"
        );
        assert_eq!(
            !bundle["omitted"].as_array().unwrap().is_empty(),
            name.starts_with("delta"),
            "{name}"
        );
    }
    // the lock is the same, and so is every byte of each blob that can be opened
    let plain = crate::support::library::Bundle::open(&folder().join("plain.tar.zst")).unwrap();
    let mut lock = site.lock.clone();
    lock.sort();
    assert_eq!(plain.lock().unwrap(), lock);
    let mut opened = 0;
    for (digest, bytes) in &site.blobs {
        let mut read = Vec::new();
        use crate::support::library::BlobRead;
        if let Ok(mut reader) = plain.open(digest, 0) {
            std::io::Read::read_to_end(&mut reader, &mut read).unwrap();
            assert!(read == *bytes, "{digest}");
            opened += 1;
        }
    }
    assert_eq!(opened, 16, "of {} blobs", site.blobs.len());
    for (name, names) in [
        (
            "signed.tar.zst",
            &["one@example.com", "two@example.com"][..],
        ),
        ("volumes", &["one@example.com"]),
    ] {
        let bundle = frozen(name);
        let allowed = frozen("allowed_signers");
        let verified = report(&site.run(&[
            "verify",
            &bundle,
            "--allowed-signers",
            &allowed,
            "--output",
            "json",
        ]));
        let signers = verified["bundle"]["signers"].as_array().unwrap();
        assert_eq!(
            signers
                .iter()
                .map(|by| &by["principals"])
                .collect::<Vec<_>>(),
            names
        );
    }
}

#[test]
fn the_reader_written_from_the_documentation_reads_frozen_bundles() {
    if !need(&["python3", "zstd"]) {
        return;
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/read-bundle.py");
    let read = |args: &[&str]| {
        String::from_utf8(run(Command::new("python3").arg(script).args(args))).unwrap()
    };
    for (name, digest) in DIGESTS {
        assert!(
            read(&[&frozen(name), "check"]).contains("entries are good"),
            "{name}"
        );
        let listed = read(&[&frozen(name)]);
        assert!(
            listed.starts_with(&format!("bundle digest {digest}, ")),
            "{name}: {listed}"
        );
        for (word, of) in [
            ("left out", "delta"),
            ("lacks file https://", "incomplete"),
            ("number 7 of frozen", "plain"),
        ] {
            assert_eq!(
                listed.contains(word),
                name.starts_with(of),
                "{name}: {listed}"
            );
        }
    }
    assert_eq!(
        read(&[&frozen("signed.tar.zst"), "signatures"])
            .matches("BEGIN SSH")
            .count(),
        2
    );
}

/// The digests of two blobs with recipes in `recipe.tar.zst`: a layer that zlib compressed, and a
/// file.
const REBUILT: [&str; 2] = [
    "sha256:009c4493a6aee0c63be91526120998153b549db8e1e8bbea714feccbc5cab4f3",
    "sha256:fe118edc95f5ca2e70079b06f0f31cbac45100387c00881c036b5441b39e1906",
];

/// `recipe.tar.zst` and its base were packed when recipes were added, from streams that real
/// encoders wrote.
#[test]
fn recipes_stay_readable() {
    let site = Site::small();
    let bundle = frozen("recipe.tar.zst");
    let base = frozen("recipe-base.tar.zst");
    let output = site.run(&["verify", &bundle, &base, "--output", "json"]);
    assert_eq!(code(&output), 0, "{}", shown(&output));
    let found = &report(&output)["bundle"];
    assert_eq!(
        found["digest"],
        "sha256:f5ad3a93d1e4f1779e1f4ea776a977571b0796486e4c01f25005e5d3bb3652fa"
    );
    assert_eq!(found["recipes"].as_array().unwrap().len(), 8);
    assert_eq!(code(&site.run(&["verify", &bundle])), 0);
    if !need(&["python3", "zstd"]) {
        return;
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/read-bundle.py");
    for digest in REBUILT {
        let mut command = Command::new("python3");
        let bytes = run(command.args([script, &bundle, digest, &base]));
        assert_eq!(crate::support::images::sha256(&bytes), digest);
    }
}
