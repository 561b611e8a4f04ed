//! Signed bundles: allowed signers, approval, and signatures that OpenSSH's own tools verify.

mod later;

use crate::support::images::noise;
use crate::support::library::{Digest, Lock, LockedFile};
use crate::support::which;
use crate::support::{Guard, Place, code, landfall_serve, need, position_of, run, shown};
use serde_json::json;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

const NAMESPACE: &str = "landfall-bundle-v1";
const SUMS_NAMESPACE: &str = "landfall-sums-v1";

/// A folder with a store, a lock of one file, and keys.
struct Desk {
    place: Place,
}

impl Desk {
    fn new() -> Desk {
        let desk = Desk {
            place: Place::new(),
        };
        desk.lock("landfall.lock", b"what is carried");
        desk
    }

    /// Writes a lock of one file with this content, and adds the file to the store.
    fn lock(&self, name: &str, content: &[u8]) -> Lock {
        let digest = Digest::sha256(content);
        self.place
            .write(&format!("store/{}", digest.layout_path()), content);
        self.place
            .write("store/oci-layout", r#"{"imageLayoutVersion":"1.0.0"}"#);
        let file = LockedFile::new("https://h.example/tool", digest, content.len() as u64);
        let lock = Lock {
            version: 1,
            files: vec![file],
            ..Lock::default()
        };
        self.place.write(name, lock.to_text());
        lock
    }

    fn key(&self, name: &str, kind: &[&str], passphrase: &str) {
        let mut command = self.place.clean("ssh-keygen");
        run(command
            .args(["-q", "-N", passphrase, "-C", "", "-f", name, "-t"])
            .args(kind));
    }

    /// The key's line in a file of allowed signers.
    fn line(&self, principals: &str, options: &str, key: &str) -> String {
        format!(
            "{principals} {options} {}\n",
            self.place.read(&format!("{key}.pub")).trim()
        )
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.place.command();
        command
            .args(args)
            .args(["--store", "store", "--progress", "none"]);
        command
    }

    fn pack(&self, out: &str, more: &[&str]) -> PathBuf {
        let output = self.run(&[&["pack", "-o", out], more].concat());
        assert_eq!(code(&output), 0, "{}", shown(&output));
        self.place.path(out)
    }

    /// Writes the signatures of a bundle to a file, as documented for users without landfall.
    fn signatures(&self, bundle: &str, to: &str) {
        let script = format!(
            "tail -c 66000 '{bundle}' | LC_ALL=C sed -n '/^-----BEGIN SSH/,/^-----END SSH/p' > '{to}'"
        );
        run(self.place.clean("sh").args(["-c", &script]));
    }

    /// Writes a site that accepts only bundles signed by a signer in the file `allowed`. Returns
    /// its path.
    fn site(&self) -> &'static str {
        let site = "apiVersion: landfall/v1\nkind: Site\nsigners: allowed\n";
        self.place
            .write("conf/site.yaml", site.replace("allowed", "../allowed"));
        "conf/site.yaml"
    }
}

/// Starts an SSH agent. Returns the folder of its socket, the agent, and the path of the socket.
fn agent(desk: &Desk) -> (tempfile::TempDir, Guard, PathBuf) {
    // the path of a socket must be short
    let folder = tempfile::Builder::new()
        .prefix("landfall-agent-")
        .tempdir()
        .unwrap();
    let socket = folder.path().join("socket");
    let mut command = desk.place.clean("ssh-agent");
    command.args(["-D", "-a"]).arg(&socket);
    let mut guard = Guard::start(command);
    guard.wait_until("a socket", || socket.exists());
    (folder, guard, socket)
}

#[test]
fn keys_of_several_kinds_sign_and_openssh_agrees() {
    if !need(&["ssh-keygen", "ssh-agent", "ssh-add", "tar", "zstd"]) {
        return;
    }
    let desk = Desk::new();
    // RSA keys sign through the agent
    let (_folder, _agent, socket) = agent(&desk);
    let kinds: [&[&str]; 5] = [
        &["ed25519"],
        &["ecdsa", "-b", "256"],
        &["ecdsa", "-b", "384"],
        &["rsa", "-b", "2048"],
        &["rsa", "-b", "3072"],
    ];
    let unsigned = desk.pack("B", &[]);
    for (n, kind) in kinds.iter().enumerate() {
        let key = format!("key{n}");
        let bundle = format!("B{n}");
        desk.key(&key, kind, "");
        if kind[0] == "rsa" {
            let refused = desk.run(&["pack", "-o", &bundle, "--sign", &key]);
            assert_eq!(code(&refused), 2, "{}", shown(&refused));
            assert!(
                shown(&refused).contains(&format!("`ssh-add {key}`")),
                "{}",
                shown(&refused)
            );
            run(desk
                .place
                .clean("ssh-add")
                .env("SSH_AUTH_SOCK", &socket)
                .args(["-q", &key]));
        }
        let mut pack = desk.command(&["pack", "-o", &bundle, "--sign", &key]);
        let packed = pack.env("SSH_AUTH_SOCK", &socket).output().unwrap();
        assert_eq!(code(&packed), 0, "{}", shown(&packed));
        let path = desk.place.path(&bundle);
        desk.place.write(
            "allowed",
            desk.line("board@example.com", "namespaces=\"landfall-*\"", &key),
        );
        let report = desk
            .place
            .json(0, &["verify", &bundle, "--allowed-signers", "allowed"]);
        assert_eq!(
            report["bundle"]["signer"]["principals"], "board@example.com",
            "{kind:?}"
        );
        let plain = desk.place.json(0, &["verify", "B"]);
        assert_eq!(report["bundle"]["digest"], plain["bundle"]["digest"]);
        assert_eq!(
            (&plain["bundle"]["signed"], &plain["bundle"]["signer"]),
            (&json!(false), &json!(null))
        );

        // the documented commands for users without landfall
        let out = desk.place.path(format!("out{n}"));
        std::fs::create_dir(&out).unwrap();
        let mut tar = desk.place.clean("tar");
        tar.args(["--zstd", "-C"]).arg(&out).arg("-xf").arg(&path);
        run(tar.arg("landfall-contents.json"));
        desk.signatures(&bundle, &format!("out{n}/sig"));
        let contents = std::fs::File::open(out.join("landfall-contents.json")).unwrap();
        let mut verify = desk.place.clean("ssh-keygen");
        verify.args([
            "-Y",
            "verify",
            "-f",
            "allowed",
            "-I",
            "board@example.com",
            "-n",
            NAMESPACE,
            "-s",
        ]);
        let printed = run(verify.arg(out.join("sig")).stdin(Stdio::from(contents)));
        assert!(
            String::from_utf8_lossy(&printed).starts_with("Good \"landfall-bundle-v1\" signature")
        );
        if kind == &["ed25519"] {
            // Ed25519 signatures are deterministic, so they can be compared
            let sign = ["-q", "-Y", "sign", "-n", NAMESPACE, "-f", &key];
            std::fs::copy(out.join("landfall-contents.json"), out.join("again")).unwrap();
            run(desk
                .place
                .clean("ssh-keygen")
                .args(sign)
                .arg(out.join("again")));
            let ours = out.join("sig");
            let theirs = out.join("again.sig");
            assert_eq!(std::fs::read(ours).unwrap(), std::fs::read(theirs).unwrap());
        }
        run(desk.place.clean("zstd").arg("-qt").arg(&path));
        if which("python3").is_some() {
            // a reader written from the documentation finds the signature, too
            let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/read-bundle.py");
            for (what, name) in [("index", "landfall-contents.json"), ("signatures", "sig")] {
                let read = run(desk.place.clean("python3").arg(script).arg(&path).arg(what));
                assert_eq!(read, std::fs::read(out.join(name)).unwrap());
            }
            let read = desk
                .place
                .clean("python3")
                .arg(script)
                .arg(&unsigned)
                .arg("signatures")
                .output()
                .unwrap();
            assert!(
                String::from_utf8_lossy(&read.stderr).contains("not signed"),
                "{}",
                shown(&read)
            );
        }
    }
    assert_eq!(
        std::fs::read(desk.pack("again", &[])).unwrap(),
        std::fs::read(unsigned).unwrap()
    );
}

#[test]
fn the_agent_signs_if_the_named_key_is_public_or_encrypted() {
    if !need(&["ssh-keygen", "ssh-agent", "ssh-add"]) {
        return;
    }
    let desk = Desk::new();
    for kind in ["ed25519", "rsa", "ecdsa"] {
        desk.key(kind, &[kind], "");
    }
    desk.key("locked", &["ed25519"], "a passphrase");
    let (_folder, _agent, socket) = agent(&desk);
    for kind in ["ed25519", "rsa", "ecdsa"] {
        run(desk
            .place
            .clean("ssh-add")
            .env("SSH_AUTH_SOCK", &socket)
            .args(["-q", kind]));
        desk.place.write("allowed", desk.line("a", "", kind));
        let public = desk.place.read(&format!("{kind}.pub"));
        for key in [&format!("{kind}.pub"), public.trim()] {
            let packed = desk
                .command(&["pack", "-o", "B", "--sign", key])
                .env("SSH_AUTH_SOCK", &socket)
                .output()
                .unwrap();
            assert_eq!(code(&packed), 0, "{kind} {}", shown(&packed));
            assert!(shown(&packed).contains("signed by"), "{}", shown(&packed));
            desk.place
                .json(0, &["verify", "B", "--allowed-signers", "allowed"]);
            // a bundle that exists already can be signed too
            desk.pack("later", &[]);
            let mut sign = desk.command(&["sign", "later", "--key", key]);
            let signed = sign.env("SSH_AUTH_SOCK", &socket).output().unwrap();
            assert_eq!(code(&signed), 0, "{kind} {}", shown(&signed));
            desk.place
                .json(0, &["verify", "later", "--allowed-signers", "allowed"]);
        }
    }
    std::fs::remove_file(desk.place.path("B")).unwrap();
    let refused = |key: &str, socket: Option<&PathBuf>, why: &str| {
        let mut command = desk.command(&["pack", "-o", "B", "--sign", key]);
        command.envs(socket.map(|socket| ("SSH_AUTH_SOCK", socket)));
        let output = command.output().unwrap();
        assert!(shown(&output).contains(why), "{key}: {}", shown(&output));
        assert!(!desk.place.path("B").exists() && !desk.place.path("B.partial").exists());
        code(&output)
    };
    assert_eq!(refused("locked", None, "`ssh-add locked`"), 2);
    assert_eq!(refused("locked", Some(&socket), "`ssh-add locked`"), 2);
    assert_eq!(
        refused("locked.pub", Some(&socket), "the agent does not hold"),
        2
    );
    assert_eq!(refused("ed25519.pub", None, "SSH_AUTH_SOCK is not set"), 2);
    assert_eq!(
        refused("ed25519.pub", Some(&desk.place.path("nowhere")), "nowhere"),
        1
    );
    assert_eq!(refused("landfall.lock", None, "is not an OpenSSH key"), 2);
    assert_eq!(refused("absent", None, "cannot read the key absent"), 2);
    // once the agent holds the decrypted key, the encrypted file can be named
    desk.place
        .write("passphrase", "#!/bin/sh\necho a passphrase\n");
    run(Command::new("chmod")
        .arg("755")
        .arg(desk.place.path("passphrase")));
    let mut add = desk.place.clean("ssh-add");
    add.env("SSH_ASKPASS", desk.place.path("passphrase"))
        .env("SSH_ASKPASS_REQUIRE", "force");
    run(add.env("SSH_AUTH_SOCK", &socket).args(["-q", "locked"]));
    let packed = desk
        .command(&["pack", "-o", "B", "--sign", "locked"])
        .env("SSH_AUTH_SOCK", &socket)
        .output();
    assert_eq!(code(&packed.unwrap()), 0);
}

#[test]
fn an_unaccepted_signature_is_refused_with_its_reason() {
    if !need(&["ssh-keygen"]) {
        return;
    }
    let desk = Desk::new();
    desk.key("board", &["ed25519"], "");
    desk.key("other", &["ed25519"], "");
    desk.pack("unsigned", &[]);
    desk.pack("B", &["--sign", "board"]);
    let refused = |bundle: &str, allowed: &str, why: &str| {
        desk.place.write("allowed", allowed);
        let output = desk.run(&["verify", bundle, "--allowed-signers", "allowed"]);
        assert_eq!(code(&output), 4, "{why}: {}", shown(&output));
        assert!(shown(&output).contains(why), "{why}: {}", shown(&output));
    };
    let board = desk.line("board@example.com", "", "board");
    refused("unsigned", &board, "is not signed");
    refused("B", &desk.line("x", "", "other"), "no line has this key");
    refused("B", "", "no line has this key");
    refused(
        "B",
        &desk.line("x", "valid-before=\"20200101\"", "board"),
        "line 1 allowed it until",
    );
    refused(
        "B",
        &desk.line("x", "valid-after=\"99990101\"", "board"),
        "line 1 allows it from",
    );
    refused(
        "B",
        &desk.line("x", "namespaces=\"git\"", "board"),
        "the namespaces \"git\" only",
    );
    refused(
        "B",
        &desk.line("x", "cert-authority", "board"),
        "landfall does not support",
    );
    desk.place.write(
        "allowed",
        format!(
            "board@example.com nonsense {}",
            desk.place.read("board.pub")
        ),
    );
    let output = desk.run(&["verify", "B", "--allowed-signers", "allowed"]);
    assert_eq!(code(&output), 2);
    assert!(
        shown(&output).contains("allowed:1:19: "),
        "{}",
        shown(&output)
    );
    assert_eq!(
        code(&desk.run(&["verify", "B", "--allowed-signers", "absent"])),
        2
    );

    // without a file of signers, the signature is shown and not checked
    let text = desk.place.ok(&["verify", "B"]);
    assert!(
        text.contains("origin not proven (signed; --allowed-signers FILE checks by whom)"),
        "{text}"
    );
    let report = desk.place.json(0, &["verify", "B"]);
    assert_eq!(
        (&report["bundle"]["signed"], &report["bundle"]["signer"]),
        (&json!(true), &json!(null))
    );
    // any line that allows the key suffices, and comments are ignored
    desk.place.write(
        "allowed",
        format!(
            "# {board}\n{}{board}",
            desk.line("x", "namespaces=\"git\"", "board")
        ),
    );
    let text = desk
        .place
        .ok(&["verify", "B", "--allowed-signers", "allowed"]);
    assert!(
        text.contains("consistent, signed by board@example.com (ssh-ed25519 SHA256:"),
        "{text}"
    );
}

/// The byte range of the signature's text in the file.
fn text_at(bundle: &[u8]) -> std::ops::Range<usize> {
    let place = |part: &str| position_of(bundle, part.as_bytes());
    let end = "-----END SSH SIGNATURE-----\n";
    place("-----BEGIN SSH SIGNATURE-----")..place(end) + end.len()
}

#[test]
fn a_swapped_signature_is_refused() {
    if !need(&["ssh-keygen"]) {
        return;
    }
    let desk = Desk::new();
    desk.key("board", &["ed25519"], "");
    desk.place
        .write("allowed", desk.line("board@example.com", "", "board"));
    let verify = |bundle: &str| desk.run(&["verify", bundle, "--allowed-signers", "allowed"]);
    let good = std::fs::read(desk.pack("B", &["--sign", "board"])).unwrap();
    assert_eq!(code(&verify("B")), 0);
    desk.lock("other.lock", b"what nobody looked at");
    let other =
        std::fs::read(desk.pack("other", &["--sign", "board", "--lock", "other.lock"])).unwrap();
    let ours = text_at(&good);
    let theirs = text_at(&other);
    assert_eq!(ours.len(), theirs.len());

    // a signature of another bundle by the same key: the bundle is intact, but the signature is not
    // for its content
    let mut swapped = good.clone();
    swapped[ours.clone()].copy_from_slice(&other[theirs.clone()]);
    let frame = |range: &std::ops::Range<usize>| range.start - 9..range.end;
    let sum = |bytes: &[u8]| Digest::sha256(bytes).hex();
    let old = sum(&good[frame(&ours)]);
    let at = good.len() - 65;
    assert_eq!(good[at..good.len() - 1], *old.as_bytes());
    let new = sum(&swapped[frame(&ours)]);
    swapped[at..good.len() - 1].copy_from_slice(new.as_bytes());
    desk.place.write("swapped", swapped);
    assert_eq!(code(&desk.run(&["verify", "swapped"])), 0);
    let output = verify("swapped");
    assert_eq!(code(&output), 4);
    assert!(
        shown(&output).contains("did not make it for this content"),
        "{}",
        shown(&output)
    );

    // a flipped bit in any part of the signatures, the footer or the end is detected
    for at in (ours.start - 9..good.len()).step_by(7) {
        let mut bad = good.clone();
        bad[at] ^= 1 << (at % 8);
        desk.place.write("bad", bad);
        assert_eq!(code(&verify("bad")), 4, "{at}");
    }
    for cut in [ours.start - 9, ours.start, ours.end, good.len() - 1] {
        desk.place.write("bad", &good[..cut]);
        assert_eq!(code(&verify("bad")), 4, "{cut}");
    }
}

#[test]
fn commands_refuse_a_bundle_that_the_signers_of_the_site_did_not_sign() {
    if !need(&["ssh-keygen"]) {
        return;
    }
    let desk = Desk::new();
    desk.key("board", &["ed25519"], "");
    desk.key("other", &["ed25519"], "");
    desk.place
        .write("allowed", desk.line("board@example.com", "", "board"));
    desk.place.write("x.yaml", "image: quay.io/a/b:1\n");
    desk.pack("unsigned", &[]);
    desk.pack("wrong", &["--sign", "other"]);
    desk.pack("B", &["--sign", "board"]);
    let site = desk.site();
    // no server listens on port 1, so the refusal must precede any request
    let verbs: [&[&str]; 9] = [
        &["verify"],
        &["ls"],
        &["diff", "landfall.lock"],
        &["audit", "x.yaml", "--bundle"],
        &["push", "--to", "127.0.0.1:1"],
        &["serve", "--listen", "127.0.0.1:0"],
        &["rewrite", "x.yaml", "--to", "127.0.0.1:1", "--bundle"],
        &["export", "files", "-o", "out", "--bundle"],
        &["export", "files", "-o", "out", "--dry-run", "--bundle"],
    ];
    for verb in verbs {
        for (bundle, why) in [
            ("unsigned", "is not signed"),
            ("wrong", "no line has this key"),
        ] {
            let output = desk.run(&[verb, &[bundle, "--site", site]].concat());
            assert_eq!(code(&output), 4, "{verb:?} {}", shown(&output));
            assert!(shown(&output).contains(why), "{verb:?} {}", shown(&output));
        }
    }
    assert!(!desk.place.path("out").exists());
    let registry = landfall_serve(&desk.place, &["--writable", "kept", "--anonymous-push"]);
    let pushed = desk
        .place
        .json(0, &["push", "B", "--to", &registry.address, "--site", site]);
    assert_eq!(
        pushed["bundle"]["signer"]["principals"],
        "board@example.com"
    );
    desk.place.json(0, &["verify", "B", "--site", site]);
    let listed = desk.place.json(0, &["ls", "B", "--site", site]);
    assert_eq!(
        listed["bundle"]["signer"]["principals"],
        "board@example.com"
    );
    assert!(
        desk.place
            .ok(&["ls", "B", "--site", site])
            .contains("signed by         board@example.com")
    );
    desk.place
        .json(0, &["diff", "B", "landfall.lock", "--site", site]);
    desk.place.json(
        0,
        &[
            "rewrite",
            "x.yaml",
            "--to",
            "127.0.0.1:1",
            "--bundle",
            "B",
            "--site",
            site,
        ],
    );
    desk.place.json(
        0,
        &[
            "export", "files", "-o", "out", "--bundle", "B", "--site", site,
        ],
    );
    drop(landfall_serve(&desk.place, &["B", "--site", site]));
    // `--allowed-signers` replaces the site's file of signers
    desk.place
        .write("others", desk.line("other@example.com", "", "other"));
    desk.place.json(
        0,
        &[
            "verify",
            "wrong",
            "--allowed-signers",
            "others",
            "--site",
            site,
        ],
    );
}

#[test]
fn only_an_approved_bundle_is_pushed_and_served() {
    let desk = Desk::new();
    let other = desk.lock("other.lock", b"another");
    let lock = desk.lock("landfall.lock", b"what is carried");
    desk.pack("B", &[]);
    desk.pack("other", &["--lock", "other.lock"]);
    let packed = desk.place.json(0, &["verify", "B"]);
    let digest = packed["bundle"]["digest"].as_str().unwrap();
    let fingerprint = lock.fingerprint().to_string();
    let wrong = other.fingerprint().to_string();
    for verb in [
        &["push", "B", "--to", "127.0.0.1:1"][..],
        &["serve", "B", "--listen", "127.0.0.1:0"],
        &["verify", "B"],
    ] {
        for demand in [["--expect", &wrong], ["--lock", "other.lock"]] {
            let output = desk.run(&[verb, &demand].concat());
            assert_eq!(code(&output), 4, "{verb:?} {demand:?} {}", shown(&output));
            assert!(
                shown(&output).contains(&wrong) && shown(&output).contains(&fingerprint),
                "{}",
                shown(&output)
            );
        }
    }
    let registry = landfall_serve(&desk.place, &["--writable", "kept", "--anonymous-push"]);
    for demand in [
        ["--expect", digest],
        ["--expect", &fingerprint],
        ["--lock", "landfall.lock"],
    ] {
        let pushed = desk.place.json(
            0,
            &[&["push", "B", "--to", &registry.address], &demand[..]].concat(),
        );
        assert_eq!(
            (&pushed["lock"], &pushed["bundle"]["digest"]),
            (&json!(fingerprint), &json!(digest))
        );
    }
    let text = desk.place.ok(&["push", "B", "--to", &registry.address]);
    assert!(
        text.contains(&format!("lock fingerprint  {fingerprint}")),
        "{text}"
    );
    // if several bundles are served, each must be expected
    let both = ["B", "other", "--expect", digest, "--expect", &wrong];
    drop(landfall_serve(&desk.place, &both));
    assert_eq!(
        code(&desk.run(&[&["serve"], &both[..4], &["--listen", "127.0.0.1:0"]].concat())),
        4
    );
    drop(landfall_serve(
        &desk.place,
        &["B", "--lock", "landfall.lock"],
    ));

    // without a bundle, the lock is pushed from the store
    let from_store = ["push", "--store", "store", "--to", &registry.address];
    desk.place
        .json(0, &[&from_store[..], &["--expect", &fingerprint]].concat());
    let refused = desk
        .place
        .json(4, &[&from_store[..], &["--expect", digest]].concat());
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap()
            .contains(&fingerprint),
        "{refused}"
    );
}

#[test]
fn checksums_next_to_a_signed_bundle_are_signed_too() {
    if !need(&["ssh-keygen", "sha256sum"]) {
        return;
    }
    let desk = Desk::new();
    desk.lock("landfall.lock", &noise(1, 1_500_000));
    desk.key("board", &["ed25519"], "");
    desk.place
        .write("allowed", desk.line("board@example.com", "", "board"));
    desk.pack("B", &["--volume-size", "1100000", "--sign", "board"]);
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
        "B.sha256sums.sig",
    ];
    let sums = || std::fs::File::open(desk.place.path("B.sha256sums")).unwrap();
    run(desk
        .place
        .clean("ssh-keygen")
        .args(verify)
        .stdin(Stdio::from(sums())));
    // the signature of the checksums is not valid in the namespace of bundle signatures
    let as_index = verify.map(|word| {
        if word == SUMS_NAMESPACE {
            NAMESPACE
        } else {
            word
        }
    });
    let refused = desk
        .place
        .clean("ssh-keygen")
        .args(as_index)
        .stdin(Stdio::from(sums()))
        .output();
    assert!(!refused.unwrap().status.success());
    run(desk
        .place
        .clean("sha256sum")
        .args(["--strict", "-c", "B.sha256sums"]));
    let report = desk
        .place
        .json(0, &["verify", "B", "--allowed-signers", "allowed"]);
    assert_eq!(
        report["bundle"]["signer"]["principals"],
        "board@example.com"
    );
    // the joined volumes equal a signed bundle in one file
    let whole = std::fs::read(desk.pack("C", &["--sign", "board"])).unwrap();
    let volume = |n: usize| std::fs::read(desk.place.path(format!("B.{n:04}"))).unwrap();
    assert_eq!([volume(1), volume(2)].concat(), whole);
    assert!(!desk.place.path("C.sha256sums").exists());
    // a lost volume is packed again, and the signature in another volume still matches
    std::fs::remove_file(desk.place.path("B.0001")).unwrap();
    let output = desk.run(&["pack", "--like", "B", "--only-volume", "1"]);
    assert_eq!(code(&output), 0, "{}", shown(&output));
    assert_eq!([volume(1), volume(2)].concat(), whole);
    desk.place
        .json(0, &["verify", "B", "--allowed-signers", "allowed"]);

    // an older signature is not kept with new checksums
    desk.pack("B", &["--volume-size", "1100000"]);
    assert!(
        desk.place.path("B.sha256sums").exists() && !desk.place.path("B.sha256sums.sig").exists()
    );
    desk.place.write("tool", "#!/bin/sh\n");
    let output = desk.run(&[
        "pack",
        "-o",
        "tool",
        "--include-self=tool",
        "--sign",
        "board",
    ]);
    assert_eq!(code(&output), 2, "{}", shown(&output));
    desk.pack("D", &["--include-self=tool", "--sign", "board"]);
    assert!(desk.place.path("D.sha256sums.sig").exists());
}
