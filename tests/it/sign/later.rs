//! Bundles after packing: added signatures, the number of signers that a site requires, and
//! bundles that are older than the last accepted one.

use super::{Desk, SUMS_NAMESPACE, code, shown};
use crate::support::images::noise;
use crate::support::{landfall_serve, need, run};
use serde_json::json;
use std::fs;
use std::process::Stdio;

#[test]
fn a_signature_is_appended_and_all_signers_are_listed() {
    if !need(&["ssh-keygen", "tar", "zstd"]) {
        return;
    }
    let desk = Desk::new();
    desk.lock("landfall.lock", &noise(3, 3_000_000));
    for key in ["board", "release", "other"] {
        desk.key(key, &["ed25519"], "");
    }
    let allowed = desk.line("board@example.com", "", "board")
        + &desk.line("release@example.com", "", "release");
    desk.place.write("allowed", allowed);
    let plain = fs::read(desk.pack("B", &[])).unwrap();
    for (count, key) in ["board", "release", "other"].into_iter().enumerate() {
        let text = desk.place.ok(&["sign", "B", "--key", key]);
        assert!(
            text.contains(&format!("signatures        {}", count + 1)),
            "{text}"
        );
    }
    let absent = desk.run(&["sign", "absent", "--key", "board"]);
    assert_eq!(code(&absent), 2);
    assert!(
        shown(&absent).contains("cannot open the bundle absent"),
        "{}",
        shown(&absent)
    );
    let signed = fs::read(desk.place.path("B")).unwrap();
    let same = plain
        .iter()
        .zip(&signed)
        .take_while(|(old, new)| old == new)
        .count();
    assert!(
        plain.len() - same < 400 && signed.len() - same < 2000,
        "{} of {}",
        same,
        plain.len()
    );
    // `sign` writes the same bytes as `pack --sign`
    let first = desk.pack("first", &["--sign", "board"]);
    desk.pack("C", &[]);
    desk.place.ok(&["sign", "C", "--key", "board"]);
    assert!(fs::read(first).unwrap() == fs::read(desk.place.path("C")).unwrap());
    // signing twice changes nothing
    desk.place.ok(&["sign", "B", "--key", "board"]);
    assert!(fs::read(desk.place.path("B")).unwrap() == signed);

    let text = desk
        .place
        .ok(&["verify", "B", "--allowed-signers", "allowed"]);
    assert!(
        text.contains("signed by board@example.com (") && text.contains(", release@example.com ("),
        "{text}"
    );
    assert!(!text.contains("other"), "{text}");
    let report = desk
        .place
        .json(0, &["verify", "B", "--allowed-signers", "allowed"]);
    let names: Vec<_> = report["bundle"]["signers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|by| &by["principals"])
        .collect();
    assert_eq!(names, ["board@example.com", "release@example.com"]);
    run(desk.place.clean("zstd").args(["-qt", "B"]));
    run(desk.place.clean("tar").args(["--zstd", "-tf", "B"]));
    // packing again replaces the bundle, and removes the added signatures
    assert!(fs::read(desk.pack("B", &[])).unwrap() == plain);
    let refused = desk.run(&["sign", "landfall.lock", "--key", "board"]);
    assert_eq!(code(&refused), 4, "{}", shown(&refused));
}

#[test]
fn signing_that_was_killed_is_completed_by_the_next_run() {
    if !need(&["ssh-keygen"]) {
        return;
    }
    let desk = Desk::new();
    desk.key("board", &["ed25519"], "");
    desk.key("other", &["ed25519"], "");
    let plain = fs::read(desk.pack("B", &[])).unwrap();
    desk.place.ok(&["sign", "B", "--key", "board"]);
    let signed = fs::read(desk.place.path("B")).unwrap();
    // killed during the write: B.signing contains the whole new end, and B only 100 bytes of it
    let at = plain.len() - 354;
    let redo = [&(at as u64).to_le_bytes()[..], &signed[at..]].concat();
    desk.place.write("B.signing", &redo);
    desk.place.write("B", &signed[..at + 100]);
    assert_eq!(code(&desk.run(&["verify", "B"])), 4);
    desk.place.ok(&["sign", "B", "--key", "board"]);
    assert!(fs::read(desk.place.path("B")).unwrap() == signed);
    assert!(!desk.place.path("B.signing").exists());
    desk.place.ok(&["sign", "B", "--key", "other"]);
    // a `B.signing` that another bundle with this name left is ignored and removed
    assert!(fs::read(desk.pack("B", &[])).unwrap() == plain);
    desk.place.write(
        "B.signing",
        [&7u64.to_le_bytes()[..], b"another end"].concat(),
    );
    desk.place.ok(&["sign", "B", "--key", "board"]);
    assert!(fs::read(desk.place.path("B")).unwrap() == signed);
    assert!(!desk.place.path("B.signing").exists());
}

#[test]
fn a_bundle_that_has_no_room_for_a_signature_stays_as_it_was() {
    if !need(&["ssh-keygen", "prlimit"]) {
        return;
    }
    let desk = Desk::new();
    desk.key("board", &["ed25519"], "");
    let plain = fs::read(desk.pack("B", &[])).unwrap();
    // so that a write fails after a part of the new end, as on a full disk
    let sign = |bytes: usize| {
        let mut command = desk.place.clean("sh");
        command.args(["-c", "trap '' XFSZ; exec \"$@\"", "sh", "prlimit"]);
        command.arg(format!("--fsize={bytes}"));
        command.arg(env!("CARGO_BIN_EXE_landfall"));
        command.args(["sign", "B", "--key", "board"]);
        let output = command.output().unwrap();
        assert_eq!(code(&output), 1, "{}", shown(&output));
    };
    for bytes in [plain.len() + 100, 100] {
        sign(bytes);
        assert!(fs::read(desk.place.path("B")).unwrap() == plain, "{bytes}");
        for left in ["B.signing", "B.signing.partial"] {
            assert!(!desk.place.path(left).exists(), "{bytes}: {left}");
        }
    }
    desk.place.ok(&["sign", "B", "--key", "board"]);
}

#[test]
fn the_checksums_are_updated_however_the_bundle_is_named() {
    if !need(&["ssh-keygen", "sha256sum"]) {
        return;
    }
    let desk = Desk::new();
    desk.lock("landfall.lock", &noise(1, 2_500_000));
    desk.key("board", &["ed25519"], "");
    desk.place.write("disc/tool", "a program");
    let split = ["--volume-size", "1100000"];
    desk.pack("disc/V", &split);
    // the name of a bundle in one file may end like that of a volume
    desk.pack("month.0131", &["--include-self=disc/tool"]);
    for (named, folder, sums) in [
        ("disc", "disc", "V.sha256sums"),
        ("month.0131", ".", "month.0131.sha256sums"),
    ] {
        desk.place.ok(&["sign", named, "--key", "board"]);
        run(desk
            .place
            .clean("sha256sum")
            .current_dir(desk.place.path(folder))
            .args(["--strict", "--quiet", "-c", sums]));
    }
}

#[test]
fn signing_volumes_changes_only_the_last_one_and_updates_the_checksums() {
    if !need(&["ssh-keygen", "sha256sum"]) {
        return;
    }
    let desk = Desk::new();
    desk.lock("landfall.lock", &noise(1, 2_500_000));
    desk.key("board", &["ed25519"], "");
    desk.place
        .write("allowed", desk.line("board@example.com", "", "board"));
    desk.pack("V", &["--volume-size", "1100000"]);
    let first = fs::read(desk.place.path("V.0001")).unwrap();
    let [old_sums, old_signature] = ["V.sha256sums", "V.sha256sums.sig"]
        .map(|name| (name, fs::read(desk.place.path(name)).unwrap_or_default()));
    desk.place.ok(&["sign", "V", "--key", "board"]);
    // a killed run may leave the old checksums or their old signature: the next run updates them
    for (name, old) in [&old_sums, &old_signature] {
        let new = fs::read(desk.place.path(name)).unwrap();
        assert_ne!(&new, old);
        fs::write(desk.place.path(name), old).unwrap();
        desk.place.ok(&["sign", "V", "--key", "board"]);
        assert_eq!(fs::read(desk.place.path(name)).unwrap(), new, "{name}");
    }
    assert!(fs::read(desk.place.path("V.0001")).unwrap() == first);
    desk.place
        .json(0, &["verify", "V", "--allowed-signers", "allowed"]);
    run(desk
        .place
        .clean("sha256sum")
        .args(["--strict", "--quiet", "-c", "V.sha256sums"]));
    let sums = fs::File::open(desk.place.path("V.sha256sums")).unwrap();
    let verify = [
        "-Y",
        "verify",
        "-f",
        "allowed",
        "-I",
        "board@example.com",
        "-n",
        SUMS_NAMESPACE,
        "-s",
    ];
    let mut verify = {
        let mut command = desk.place.clean("ssh-keygen");
        command.args(verify);
        command
    };
    run(verify.arg("V.sha256sums.sig").stdin(Stdio::from(sums)));
    // a lost volume that is not the last is packed again, and the added signature still matches
    fs::remove_file(desk.place.path("V.0001")).unwrap();
    desk.place.ok(&[
        "pack",
        "--like",
        "V",
        "--only-volume",
        "1",
        "--store",
        "store",
    ]);
    desk.place
        .json(0, &["verify", "V", "--allowed-signers", "allowed"]);
}

#[test]
fn a_site_may_require_two_signers() {
    if !need(&["ssh-keygen"]) {
        return;
    }
    let desk = Desk::new();
    for key in ["board", "board2", "release", "other"] {
        desk.key(key, &["ed25519"], "");
    }
    let lines = [
        ("board@example.com", "board"),
        ("board@example.com,chair@example.com", "board2"),
        ("release@example.com", "release"),
    ];
    desk.place.write(
        "allowed",
        lines.map(|(name, key)| desk.line(name, "", key)).concat(),
    );
    let site = "apiVersion: landfall/v1\nkind: Site\nsigners: {file: allowed, atLeast: 2}\n";
    desk.place.write("site.yaml", site);
    let verify = || desk.run(&["verify", "B", "--site", "site.yaml"]);
    desk.pack("B", &["--sign", "board"]);
    // one allowed signer: alone, with an unknown signer, and with a second key of the same signer
    for key in ["board", "other", "board2"] {
        desk.place.ok(&["sign", "B", "--key", key]);
        let output = verify();
        assert_eq!(code(&output), 4, "{}", shown(&output));
        assert!(
            shown(&output).contains("signed by 1 of the allowed signers, and 2 are needed"),
            "{}",
            shown(&output)
        );
    }
    desk.place.ok(&["sign", "B", "--key", "release"]);
    let output = verify();
    assert_eq!(code(&output), 0, "{}", shown(&output));
    assert!(
        shown(&output).contains("release@example.com"),
        "{}",
        shown(&output)
    );
    let report = desk.run(&["report", "B", "--site", "site.yaml", "-o", "page.html"]);
    assert!(
        shown(&report).contains("signed by board@example.com (")
            && shown(&report).contains(", release@example.com (")
            && !shown(&report).contains("not checked"),
        "{}",
        shown(&report)
    );
    desk.place.write("site.yaml", site.replace("2}", "0}"));
    assert_eq!(code(&verify()), 2);
}

#[test]
fn an_older_bundle_of_a_series_is_refused() {
    let desk = Desk::new();
    let numbered = |out: &str, number: &str| {
        desk.pack(out, &["--serial", number, "--series", "node images"]);
    };
    numbered("b1", "1");
    numbered("b2", "2");
    desk.pack("plain", &[]);
    desk.pack("others", &["--serial", "1", "--series", "others"]);
    let text = desk.place.ok(&["verify", "b2"]);
    assert!(
        text.contains("series            node images, number 2"),
        "{text}"
    );
    let registry = landfall_serve(&desk.place, &["--writable", "kept", "--anonymous-push"]);
    let site = "apiVersion: landfall/v1\nkind: Site\nreceipt: receipts/last.json\n";
    desk.place.write("conf/site.yaml", site);
    fs::create_dir(desk.place.path("conf/receipts")).unwrap();
    let push = |bundle: &str, more: &[&str]| {
        desk.run(
            &[
                &[
                    "push",
                    bundle,
                    "--to",
                    &registry.address,
                    "--site",
                    "conf/site.yaml",
                ],
                more,
            ]
            .concat(),
        )
    };
    let last = || -> serde_json::Value {
        serde_json::from_slice(&fs::read(desk.place.path("conf/receipts/last.json")).unwrap())
            .unwrap()
    };
    for bundle in ["b1", "b2", "b2", "plain", "others"] {
        let output = push(bundle, &[]);
        assert_eq!(code(&output), 0, "{bundle}: {}", shown(&output));
    }
    assert_eq!(last()["series"], json!({"node images": 2, "others": 1}));
    let output = push("b1", &[]);
    assert_eq!(code(&output), 4, "{}", shown(&output));
    assert!(
        shown(&output).contains("b1 is number 1 of node images, but number 2 was received before"),
        "{}",
        shown(&output)
    );
    let serve = [
        "serve",
        "b1",
        "--listen",
        "127.0.0.1:0",
        "--site",
        "conf/site.yaml",
    ];
    assert_eq!(code(&desk.run(&serve)), 4);
    drop(landfall_serve(
        &desk.place,
        &["b1", "--site", "conf/site.yaml", "--allow-older"],
    ));
    drop(landfall_serve(
        &desk.place,
        &["b2", "--site", "conf/site.yaml"],
    ));
    // a push also compares the number with the receipt that it will replace
    let to = [
        "push",
        "b2",
        "--to",
        &registry.address,
        "--receipt",
        "own.json",
    ];
    assert_eq!(code(&desk.run(&to)), 0);
    let older = [
        "push",
        "b1",
        "--to",
        &registry.address,
        "--receipt",
        "own.json",
    ];
    assert_eq!(code(&desk.run(&older)), 4);
    // pushing an older bundle requires --allow-older; that bundle then counts as the last one
    let output = push("b1", &["--allow-older"]);
    assert_eq!(code(&output), 0, "{}", shown(&output));
    assert_eq!(last()["series"], json!({"node images": 1, "others": 1}));
    // the series defaults to the lock's name; without a name, --serial is refused
    let output = desk.run(&["pack", "-o", "b3", "--serial", "3"]);
    assert_eq!(code(&output), 2, "{}", shown(&output));
    let lock =
        desk.place
            .read("landfall.lock")
            .replacen("version: 1\n", "version: 1\nname: seed\n", 1);
    desk.place.write("landfall.lock", lock);
    desk.pack("b3", &["--serial", "3"]);
    let report = desk.place.json(0, &["verify", "b3"]);
    assert_eq!(
        (&report["bundle"]["series"], &report["bundle"]["serial"]),
        (&json!("seed"), &json!(3))
    );
}
