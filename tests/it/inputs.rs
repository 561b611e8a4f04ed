//! Files of the wrong kind, plain lists instead of manifests, and manifests with several errors.

use crate::support::images::noise;
use crate::support::peers::own_registry;
use crate::support::{Images, Place, need};
use serde_json::json;
use std::process::Output;

fn run(place: &Place, args: &[&str]) -> (Option<i32>, String) {
    let output: Output = place.command().args(args).output().unwrap();
    (
        output.status.code(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

/// A registry with `app:v1` for two platforms, and the text of a list that names this image.
fn upstream(place: &Place) -> (crate::support::peers::Server, String) {
    let images = Images::new(place.path("layout"));
    let registry = own_registry();
    let of = |platform, seed| images.image(platform, &[images.layer(&[("b", &noise(seed, 100))])]);
    let index = images.index(&[of("linux/amd64", 1), of("linux/arm64", 2)]);
    images.push(&registry.address, "app", "v1", &index);
    let list = format!("# what it needs\n{}/app:v1\n", registry.address);
    (registry, list)
}

#[test]
fn a_plain_list_is_a_manifest() {
    if !need(&["gzip"]) {
        return;
    }
    let place = Place::new();
    let (registry, list) = upstream(&place);
    place.write("rke2-images.linux-amd64.txt", &list);
    place.ok(&["lock", "-f", "rke2-images.linux-amd64.txt", "--store", "s"]);
    assert!(place.read("landfall.lock").contains("linux/arm64"));
    place.ok(&[
        "lock",
        "-f",
        "rke2-images.linux-amd64.txt",
        "--store",
        "s",
        "--platform",
        "linux/amd64",
    ]);
    let lock = place.read("landfall.lock");
    assert!(
        lock.contains("platforms: [linux/amd64]") && !lock.contains("linux/arm64"),
        "{lock}"
    );
    // a manifest that names the list gives the same lock
    place.write(
        "m.yaml",
        "apiVersion: landfall/v1\nkind: Manifest\nplatforms: [linux/amd64]\n\
         lists: [{format: images-txt, file: rke2-images.linux-amd64.txt}]\n",
    );
    place.ok(&["lock", "-f", "m.yaml", "--store", "s", "--lock", "m.lock"]);
    assert_eq!(place.read("m.lock"), lock);

    let found = json!({"level": "info", "msg": "Image found", "source-image": format!("{}/app:v1", registry.address)});
    let end = json!({"level": "info", "msg": "Finished", "all-image-count": 1});
    place.write("kkp.log", format!("{found}\n{end}\n"));
    place.ok(&[
        "lock",
        "-f",
        "kkp.log",
        "--store",
        "s",
        "--platform",
        "linux/amd64",
        "--lock",
        "kkp.lock",
    ]);
    assert_eq!(place.read("kkp.lock"), lock);
    let cut = format!("{found}\n");
    place.write("kkp.log", &cut);
    let (exit, printed) = run(
        &place,
        &[
            "lock", "-f", "kkp.log", "--store", "s", "--lock", "cut.lock",
        ],
    );
    assert_eq!(exit, Some(2), "{printed}");
    assert!(
        printed.contains("kkp.log:1:") && printed.contains("the log ends without"),
        "{printed}"
    );
    assert!(!place.path("cut.lock").exists());

    let (exit, printed) = run(
        &place,
        &[
            "lock",
            "-f",
            "m.yaml",
            "--platform",
            "linux/amd64",
            "--store",
            "s",
        ],
    );
    assert!(
        exit == Some(2) && printed.contains("write `platforms:` in the manifest"),
        "{printed}"
    );
    place.write(
        "typo.txt",
        format!("{list}quay.io/a/b:v 1\nquay.io/a/c:v1\n"),
    );
    let (exit, printed) = run(&place, &["lock", "-f", "typo.txt", "--store", "s"]);
    assert!(
        exit == Some(2) && printed.contains("typo.txt:3:1"),
        "{printed}"
    );
}

#[test]
fn a_file_of_the_wrong_kind_is_reported_with_its_kind() {
    if !need(&["gzip"]) {
        return;
    }
    let place = Place::new();
    let (registry, list) = upstream(&place);
    place.write("images.txt", &list);
    place.ok(&["lock", "-f", "images.txt", "--store", "s"]);
    place.ok(&["pull", "--store", "s"]);
    place.ok(&["pack", "--store", "s", "-o", "b.tar.zst"]);
    let target = own_registry();
    place.ok(&[
        "push",
        "b.tar.zst",
        "--to",
        &target.address,
        "--receipt",
        "r.json",
    ]);
    place.write("site.yaml", "apiVersion: landfall/v1\nkind: Site\n");
    place.write(
        "m.yaml",
        format!(
            "apiVersion: landfall/v1\nkind: Manifest\nimages: [{}/app:v1]\n",
            registry.address
        ),
    );
    let lock = place.read("landfall.lock");
    place.write(
        "conflict.lock",
        lock.replace("  size:", "<<<<<<< HEAD\n  size:")
            .replace("  blobs:", ">>>>>>> b\n  blobs:"),
    );
    place.write("old.lock", "version: 0\nimages: []\n");
    for (args, says) in [
        (
            &["verify", "landfall.lock"][..],
            "landfall.lock is a lock, not a bundle\nhelp: name it with --lock",
        ),
        (
            &["verify", "m.yaml"],
            "m.yaml is a manifest, not a bundle\nhelp: `landfall lock -f` reads it",
        ),
        (
            &["egress", "m.yaml"],
            "m.yaml is a manifest, not a lock\nhelp: `landfall lock -f` reads it; `egress`",
        ),
        (
            &["push", "site.yaml", "--to", "h.test"],
            "site.yaml is a site, not a bundle\nhelp: name it with --site",
        ),
        (
            &["serve", "r.json"],
            "r.json is a push receipt, not a bundle\nhelp: `landfall pack --since`",
        ),
        (
            &["pull", "--lock", "m.yaml"],
            "m.yaml is a manifest, not a lock\nhelp: `landfall lock -f` reads it",
        ),
        (
            &["pull", "--lock", "images.txt"],
            "images.txt is a list of images, not a lock\nhelp: `landfall lock -f`",
        ),
        (
            &["pack", "--lock", "b.tar.zst", "-o", "c"],
            "b.tar.zst is a bundle, not a lock\nhelp: `landfall verify`",
        ),
        (
            &["pull", "--lock", "conflict.lock"],
            "is a file with merge conflicts, not a lock\nhelp: resolve them first",
        ),
        (
            &["lock", "-f", "landfall.lock"],
            "landfall.lock is a lock, not a manifest\nhelp: name it with --lock",
        ),
        (
            &["lock", "-f", "b.tar.zst"],
            "b.tar.zst is a bundle, not a manifest",
        ),
        (
            &["lock", "-f", "site.yaml"],
            "site.yaml is a site, not a manifest\nhelp: name it with --site",
        ),
        (
            &["ls", "landfall.lock", "--site", "m.yaml"],
            "m.yaml is a manifest, not a site",
        ),
        (
            &["pull", "--lock", "old.lock"],
            "write it again with `landfall lock`",
        ),
    ] {
        let (exit, printed) = run(&place, args);
        assert_eq!(exit, Some(2), "{args:?}: {printed}");
        assert!(printed.contains(says), "{args:?}: {printed}");
    }
}

#[test]
fn all_errors_in_manifests_are_reported_at_once() {
    let place = Place::new();
    place.write(
        "m.yaml",
        "apiVersion: landfall/v1\nkind: Manifest\nplatforms: [linux]\nimages:\n- Quay.io/A:1\n- quay.io/a/b:${no}\n\
         - quay.io/a/c:1\nfiles:\n- url: ftp://x/y\nmissing:\n- {ref: \"quay.io/a/d:1\", reason: gone, until: tomorrow}\n",
    );
    place.write(
        "n.yaml",
        "apiVersion: landfall/v1\nkind: Manifest\nimages: [a b]\n",
    );
    let (exit, printed) = run(&place, &["lock", "-f", "m.yaml", "n.yaml"]);
    assert_eq!(exit, Some(2), "{printed}");
    for at in [
        "m.yaml:3:13",
        "m.yaml:5:3",
        "m.yaml:6:15",
        "m.yaml:9:",
        "m.yaml:11:",
        "n.yaml:3:10",
    ] {
        assert!(printed.contains(at), "{at}: {printed}");
    }
    // contradictions between entries are reported if each entry is valid
    place.write(
        "m.yaml",
        "apiVersion: landfall/v1\nkind: Manifest\nimages: [a:1, b:1, a:1, b:1]\nexclude: [c]\n",
    );
    let (_, printed) = run(&place, &["lock", "-f", "m.yaml"]);
    assert_eq!(
        printed.matches("is listed twice in this file").count(),
        2,
        "{printed}"
    );
    assert!(
        printed.contains("no item is named docker.io/library/c"),
        "{printed}"
    );

    let many: String = (0..30).map(|n| format!("- BAD{n}\n")).collect();
    place.write(
        "m.yaml",
        format!("apiVersion: landfall/v1\nkind: Manifest\nimages:\n{many}"),
    );
    let (_, printed) = run(&place, &["lock", "-f", "m.yaml"]);
    assert!(
        printed.contains("BAD19")
            && !printed.contains("BAD20")
            && printed.contains("and 10 more errors"),
        "{printed}"
    );

    place.write(
        "m.yaml",
        "apiVersion: landfall/v1\nkind: Manifest\nplatforms: [linux/amd64]\nvars: {a: b}\n",
    );
    let (exit, printed) = run(&place, &["lock", "-f", "m.yaml"]);
    assert!(
        exit == Some(2) && printed.contains("this manifest contains no items"),
        "{printed}"
    );
    place.write(
        "m.yaml",
        "apiVersion: landfall/v1\nkind: Manifest\nplatforms: linux/amd64\nimages: [a:1]\n",
    );
    let (exit, printed) = run(&place, &["lock", "-f", "m.yaml"]);
    assert!(
        exit == Some(2) && printed.contains("= help: write `[linux/amd64]`"),
        "{printed}"
    );
}

/// Before, the error had all bytes of a key whose line breaks were missing.
#[test]
fn the_error_for_a_damaged_key_does_not_contain_the_key() {
    let place = Place::new();
    place.write("l.lock", "version: 1\n");
    place.ok(&["pull", "--lock", "l.lock"]);
    let made = rcgen::generate_simple_self_signed(["r.test".to_owned()]).unwrap();
    place.write("cert.pem", made.cert.pem());
    let key = made.signing_key.serialize_pem();
    place.write("key.pem", key.replace(['\r', '\n'], " "));
    place.write(
        "site.yaml",
        "apiVersion: landfall/v1\nkind: Site\n\
         registry: {address: r.test, clientCert: cert.pem, clientKey: key.pem}\n",
    );
    let (exit, message) = run(&place, &["push", "--lock", "l.lock", "--site", "site.yaml"]);
    assert_eq!(exit, Some(2), "{message}");
    assert!(
        message.contains("key.pem: a block in PEM form is damaged"),
        "{message}"
    );
    // neither as text nor as numbers
    let line = key.lines().nth(1).unwrap();
    let numbers: Vec<String> = line.bytes().take(9).map(|byte| byte.to_string()).collect();
    assert!(!message.contains(line) && !message.contains(&numbers.join(", ")));
}

/// If a certificate file is missing, the error of `push` and `render` names the file, and the key
/// in the site that refers to the file, such as `registry.ca`.
#[test]
fn a_missing_certificate_file_is_reported_with_its_key_in_the_site() {
    let place = Place::new();
    place.write("l.lock", "version: 1\n");
    place.ok(&["pull", "l.lock"]);
    let site = |text: &str| {
        place.write(
            "site.yaml",
            format!("apiVersion: landfall/v1\nkind: Site\n{text}"),
        )
    };
    let push: &[&str] = &["push", "--lock", "l.lock", "--site", "site.yaml"];
    let render: &[&str] = &[
        "render",
        "containerd",
        "--lock",
        "l.lock",
        "--site",
        "site.yaml",
        "-o",
        "out",
    ];
    let registry = |keys: &str| format!("registry: {{address: r.test, {keys}}}\n");
    for (text, key, verbs) in [
        (
            registry("ca: certs/none.crt"),
            "registry.ca of site.yaml: ",
            &[push, render][..],
        ),
        (
            registry("clientCert: none.crt, clientKey: none.key"),
            "registry.client",
            &[push, render],
        ),
        (
            registry("paths: {}") + "proxy: {http: \"http://p.test:1\", ca: none.crt}\n",
            "proxy.ca of site.yaml: ",
            &[push, render],
        ),
        (
            registry("paths: {}") + "upstreams: {quay.io: {ca: none.crt}}\n",
            "upstreams.quay.io.ca of site.yaml: ",
            &[push],
        ),
    ] {
        site(&text);
        for args in verbs {
            let (exit, message) = run(&place, args);
            assert_eq!(exit, Some(2), "{message}");
            assert!(
                message.contains(key) && message.contains("cannot read"),
                "{args:?}: {message}"
            );
            assert!(
                message.contains("none.") && message.contains("No such file"),
                "{message}"
            );
        }
    }
}

#[test]
fn an_endpoint_may_be_an_ipv6_address_in_brackets() {
    let place = Place::new();
    let lock = |host: &str| {
        let endpoint = format!("endpoints: [{{host: '{host}', port: 443, why: w}}]\n");
        place.write(
            "m.yaml",
            format!("apiVersion: landfall/v1\nkind: Manifest\n{endpoint}"),
        );
        run(&place, &["lock", "-f", "m.yaml", "--store", "s"])
    };
    let locked = ["::1", "[::1]", "[FD00::5]"].map(|host| {
        let (exit, message) = lock(host);
        assert_eq!(exit, Some(0), "{message}");
        place.read("landfall.lock")
    });
    assert_eq!(locked[0], locked[1]);
    assert!(
        locked[2].contains("fd00::5") && !locked[2].contains('['),
        "{}",
        locked[2]
    );
    for host in ["[10.0.0.1]", "[x]", "[::1"] {
        let (exit, message) = lock(host);
        assert!(
            exit == Some(2) && message.contains("is neither a host name nor an address"),
            "{message}"
        );
    }
}

#[test]
fn an_unknown_key_does_not_hide_other_errors() {
    let place = Place::new();
    place.write(
        "m.yaml",
        "apiVersion: landfall/v1\nkind: Manifest\nimagse: [a]\nimages:\n- Quay.io/A:1\n- {ref: \"quay.io/a/b:1\", digets: x}\n\
         - quay.io/a/c\nfiles:\n- url: ftp://x/y\n  zzz: 1\nendpoints:\n- {host: a.test, port: nine, why: w}\n- {host: \"a b\", port: 9, why: w}\n",
    );
    let (exit, printed) = run(&place, &["lock", "-f", "m.yaml", "--store", "s"]);
    assert_eq!(exit, Some(2), "{printed}");
    for fault in [
        "m.yaml:3:1: error: unknown key `imagse`",
        "m.yaml:6:26: error: unknown key `digets`",
        "m.yaml:10:3: error: unknown key `zzz`",
        "m.yaml:12:24: error: this should be a whole number",
        "m.yaml:5:3: error",
        "m.yaml:7:3: error: `quay.io/a/c` names no version",
        "m.yaml:9:8: error",
        "m.yaml:13:10: error: `a b` is neither a host name",
    ] {
        assert!(printed.contains(fault), "{fault}: {printed}");
    }
    assert_eq!(printed.matches(": error: ").count(), 8, "{printed}");
}

/// The lock has 2,100 files of the largest size that a lock may state.
#[test]
fn sizes_that_exceed_64_bits_in_total_cause_no_panic() {
    let place = Place::new();
    let mut lock = "version: 1\nfiles:\n".to_owned();
    for number in 0..2100 {
        lock += &format!(
            "- name: https://files.example/{number:04}\n  digest: sha256:{number:064x}\n  \
             size: 9007199254740992\n"
        );
    }
    place.write("landfall.lock", lock);
    place.write("empty.lock", "version: 1\n");
    place.ok(&["pull", "empty.lock"]);
    for line in [
        "ls landfall.lock",
        "diff empty.lock landfall.lock",
        "pull --dry-run --report report.html",
        "pull --dry-run --shard 1/2",
        "export files -o out --dry-run",
        "export sources",
    ] {
        let (code, err) = run(&place, &line.split(' ').collect::<Vec<_>>());
        assert!(
            matches!(code, Some(0 | 1 | 3)) && !err.contains("panicked"),
            "{line}: {code:?} {err}"
        );
    }
    let needed = place.ok(&["pull", "--dry-run"]);
    assert!(needed.contains("needs at most     18.4 EB"), "{needed}");
}
