//! Files by their path, from the manifest to the clients of the server.

use super::manifest;
use crate::support::Place;
use crate::support::charts::failure_reasons;
use crate::support::http::get;
use crate::support::images::sha256;
use crate::support::peers::{landfall_serve, own_registry};
use std::fs::{File, Permissions, set_permissions};
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const SCRIPT: &str = "#!/bin/sh\nhostnamectl set-hostname node-1\n";

/// A place with a manifest of one script.
fn scripted() -> Place {
    let place = Place::new();
    let script = place.write("scripts/node-setup.sh", SCRIPT);
    set_permissions(script, Permissions::from_mode(0o755)).unwrap();
    manifest(
        &place,
        "m.yaml",
        "files:\n- {path: scripts/node-setup.sh, also: [\"https://files.example.com/setup.sh\"]}\n",
    );
    place
}

#[test]
fn a_local_file_is_locked_packed_pushed_served_and_exported() {
    let place = scripted();
    place.ok(&["lock", "-f", "m.yaml"]);
    let digest = sha256(SCRIPT.as_bytes());
    let lock = place.read("landfall.lock");
    let item = format!(
        "- name: local:scripts/node-setup.sh\n  digest: {digest}\n  size: {}\n  \
         path: scripts/node-setup.sh\n  also:\n  - https://files.example.com/setup.sh\n  \
         mode: \"0755\"\n",
        SCRIPT.len()
    );
    assert!(lock.contains(&item), "{lock}");
    let machine = place.dir().to_str().unwrap();
    assert!(!lock.contains(machine), "{lock}");

    // `lock` read the content into the store, so nothing is left to read
    let pulled = place.json(0, &["pull"]);
    assert_eq!(pulled["items"][0]["status"], "present", "{pulled}");
    assert_eq!(pulled["totals"]["requests"], 0, "{pulled}");
    place.ok(&["pack", "-o", "b.tar.zst"]);
    let listed = place.ok(&["ls", "b.tar.zst"]);
    assert!(listed.contains("local:scripts/node-setup.sh"), "{listed}");
    place.ok(&["verify", "b.tar.zst", "--lock", "landfall.lock"]);
    let hosts = place.json(0, &["egress"]);
    assert!(!hosts.to_string().contains("local:"), "{hosts}");

    let sbom: serde_json::Value = serde_json::from_str(&place.ok(&["sbom", "b.tar.zst"])).unwrap();
    let component = &sbom["components"][0];
    assert_eq!(component["name"], "local:scripts/node-setup.sh", "{sbom}");
    assert_eq!(component["hashes"][0]["content"], digest["sha256:".len()..]);
    assert!(component["purl"].is_null(), "{sbom}");
    let report = place.ok(&["report", "b.tar.zst"]);
    assert!(report.contains("local:scripts/node-setup.sh"), "{report}");

    place.ok(&["export", "files", "-o", "out"]);
    assert_eq!(place.read("out/local/scripts/node-setup.sh"), SCRIPT);
    assert_eq!(place.read("out/files.example.com/setup.sh"), SCRIPT);
    let mode = place.path("out/local/scripts/node-setup.sh").metadata();
    assert_eq!(mode.unwrap().permissions().mode() & 0o777, 0o755);

    let registry = own_registry();
    place.ok(&["push", "b.tar.zst", "--to", &registry.address]);
    let to = ["--registry", &registry.address, "--bundle", "b.tar.zst"];
    place.ok(&[&["status"][..], &to].concat());

    let server = landfall_serve(&place, &["b.tar.zst"]);
    for path in [
        "/files/local/scripts/node-setup.sh",
        "/files/files.example.com/setup.sh",
    ] {
        assert_eq!(get(&server.address, path).text(), SCRIPT, "{path}");
    }
    let page = get(&server.address, "/").text();
    assert!(
        page.contains("/files/local/scripts/node-setup.sh"),
        "{page}"
    );

    // documents that name a URL of `also` are rewritten; paths are not guessed
    let document =
        "runcmd:\n- curl -O https://files.example.com/setup.sh\n- scripts/node-setup.sh\n";
    place.write("cloud-init.yaml", document);
    place.write(
        "site.yaml",
        "apiVersion: landfall/v1\nkind: Site\nregistry: {address: \"127.0.0.1:5000\"}\n\
         files: http://127.0.0.1:8080\n",
    );
    let rewritten = place.ok(&[
        "rewrite",
        "cloud-init.yaml",
        "--site",
        "site.yaml",
        "--lock",
        "landfall.lock",
    ]);
    let expected = document.replace("https://", "http://127.0.0.1:8080/");
    assert_eq!(rewritten, expected);
}

#[test]
fn another_machine_reads_the_file_next_to_the_lock_if_it_has_the_content_of_the_lock() {
    let place = scripted();
    place.ok(&["lock", "-f", "m.yaml"]);
    // another machine has the checkout and an empty store
    let pull = ["pull", "--store", "elsewhere"];
    let pulled = place.json(0, &pull);
    assert_eq!(pulled["items"][0]["status"], "done", "{pulled}");
    place.ok(&["pull", "--bundle", "b.tar.zst", "--store", "none"]);

    place.write("scripts/node-setup.sh", "other");
    let pull = ["pull", "--store", "third"];
    let report = place.json(1, &pull);
    let reason = report["items"][0]["reason"].as_str().unwrap();
    let changed = "scripts/node-setup.sh changed after it was locked";
    assert!(
        reason.contains(changed) && reason.contains("landfall lock"),
        "{reason}"
    );
    std::fs::remove_file(place.path("scripts/node-setup.sh")).unwrap();
    let report = place.json(1, &pull);
    let reason = report["items"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("restore the file"), "{reason}");
    // the store of the first machine has it
    place.ok(&["pull"]);

    // a lock in another folder names no path of this machine
    place.write("scripts/node-setup.sh", SCRIPT);
    place.write("locks/readme", "");
    place.ok(&["lock", "-f", "m.yaml", "--lock", "locks/l.lock"]);
    let lock = place.read("locks/l.lock");
    assert!(
        lock.contains("name: local:scripts/node-setup.sh\n"),
        "{lock}"
    );
    assert!(!lock.contains("path:"), "{lock}");
    let report = place.json(1, &["pull", "locks/l.lock", "--store", "third"]);
    let reason = report["items"][0]["reason"].as_str().unwrap();
    assert!(
        reason.contains("not below the folder of the lock"),
        "{reason}"
    );
}

#[test]
fn a_changed_file_is_locked_again_and_reported() {
    let place = scripted();
    place.ok(&["lock", "-f", "m.yaml"]);
    let first = place.read("landfall.lock");
    place.ok(&["lock", "-f", "m.yaml"]);
    assert_eq!(place.read("landfall.lock"), first);
    place.ok(&["lock", "-f", "m.yaml", "--check"]);
    std::fs::copy(place.path("landfall.lock"), place.path("old.lock")).unwrap();

    place.write("scripts/node-setup.sh", "changed");
    place.printed(4, &["lock", "-f", "m.yaml", "--check"]);
    assert_eq!(place.read("landfall.lock"), first);
    let text = place.ok(&["lock", "-f", "m.yaml"]);
    assert!(text.contains("local:scripts/node-setup.sh"), "{text}");
    let diff = place.ok(&["diff", "old.lock", "landfall.lock"]);
    assert!(diff.contains("local:scripts/node-setup.sh"), "{diff}");

    // a digest in the manifest pins the content
    let pin = sha256(SCRIPT.as_bytes());
    manifest(
        &place,
        "m.yaml",
        &format!("files:\n- {{path: scripts/node-setup.sh, checksum: \"{pin}\"}}\n"),
    );
    let report = place.json(1, &["lock", "-f", "m.yaml", "--lock", "pinned.lock"]);
    let reason = report["items"][0]["reason"].as_str().unwrap();
    assert!(
        reason.contains("its checksum is") && reason.contains(&pin),
        "{reason}"
    );
    place.write("scripts/node-setup.sh", SCRIPT);
    place.ok(&["lock", "-f", "m.yaml", "--lock", "pinned.lock"]);
}

#[test]
fn paths_that_leave_the_folder_of_the_manifest_are_refused() {
    let place = Place::new();
    place.write("secret", "secret");
    place.write("m/inside", "x");
    symlink("../secret", place.path("m/link")).unwrap();
    symlink("inside", place.path("m/alias")).unwrap();
    let pipe = place.path("m/pipe");
    crate::support::run(place.clean("mkfifo").arg(&pipe));
    for (path, why) in [
        ("../secret", "is not a path below this manifest"),
        ("/etc/hostname", "is not a path below this manifest"),
        ("a/../../secret", "is not a path below this manifest"),
        ("link", "a symbolic link leads out of the folder"),
        ("nowhere", "No such file"),
        ("*.sh", "no file matches"),
    ] {
        manifest(&place, "m/m.yaml", &format!("files:\n- path: \"{path}\"\n"));
        let text = place.printed(2, &["lock", "-f", "m/m.yaml"]);
        assert!(
            text.contains(why) && text.contains("m/m.yaml:4:9"),
            "{path}: {text}"
        );
    }
    manifest(&place, "m/m.yaml", "files:\n- path: pipe\n");
    let text = place.printed(1, &["lock", "-f", "m/m.yaml"]);
    assert!(text.contains("named pipe"), "{text}");
    manifest(&place, "m/m.yaml", "files:\n- path: alias\n");
    place.ok(&["lock", "-f", "m/m.yaml"]);
    assert!(place.read("landfall.lock").contains("path: m/inside\n"));

    for (entry, why) in [
        ("{mode: \"0755\"}", "no `url` and no `path`"),
        (
            "{path: inside, url: \"https://h/x\"}",
            "either `url` or `path`",
        ),
        ("{path: inside, key: k}", "`key` does not apply"),
        (
            "{path: inside, signatures: [\"https://h/s\"]}",
            "`signatures` does not apply",
        ),
        (
            "{path: inside, checksum: \"https://h/s\"}",
            "no checksum file",
        ),
        ("{path: inside, as: tar}", "is not a folder"),
        ("{url: \"https://h/x\", as: tar}", "`as` does not apply"),
    ] {
        manifest(&place, "m/m.yaml", &format!("files:\n- {entry}\n"));
        let text = place.printed(2, &["lock", "-f", "m/m.yaml"]);
        assert!(text.contains(why), "{entry}: {text}");
    }
}

#[test]
fn equal_paths_of_two_manifests_get_the_names_of_the_manifests() {
    let place = Place::new();
    for (name, content) in [("one", "1"), ("two", "2")] {
        place.write(&format!("{name}/setup.sh"), content);
        let body = format!("metadata: {{name: {name}}}\nfiles:\n- path: setup.sh\n");
        manifest(&place, &format!("{name}/m.yaml"), &body);
    }
    place.ok(&["lock", "-f", "one/m.yaml", "two/m.yaml"]);
    let lock = place.read("landfall.lock");
    for name in ["one", "two"] {
        assert!(
            lock.contains(&format!("name: local:{name}/setup.sh\n")),
            "{lock}"
        );
        assert!(lock.contains(&format!("path: {name}/setup.sh\n")), "{lock}");
    }
    place.ok(&["pack", "-o", "b.tar.zst"]);
    let server = landfall_serve(&place, &["b.tar.zst"]);
    assert_eq!(
        get(&server.address, "/files/local/two/setup.sh").text(),
        "2"
    );

    manifest(&place, "two/m.yaml", "files:\n- path: setup.sh\n");
    let text = place.printed(2, &["lock", "-f", "one/m.yaml", "two/m.yaml"]);
    assert!(
        text.contains("another manifest has other content as local:setup.sh"),
        "{text}"
    );
    assert!(text.contains("metadata"), "{text}");
    // the same file in two manifests is one item
    manifest(&place, "two/m.yaml", "files:\n- path: setup.sh\n");
    manifest(&place, "two/n.yaml", "files:\n- path: setup.sh\n");
    place.ok(&["lock", "-f", "two/m.yaml", "two/n.yaml"]);
    assert_eq!(
        place.read("landfall.lock").matches("name: local:").count(),
        1
    );
}

#[test]
fn a_lock_with_a_path_that_leaves_its_folder_is_refused() {
    let place = scripted();
    place.ok(&["lock", "-f", "m.yaml"]);
    let lock = place.read("landfall.lock");
    for (from, to) in [
        ("path: scripts/", "path: ../scripts/"),
        ("path: scripts/", "path: /scripts/"),
        ("name: local:scripts/", "name: local:../"),
        ("name: local:scripts/", "name: https://h/"),
    ] {
        place.write("landfall.lock", lock.replace(from, to));
        place.printed(2, &["pull", "--store", "new"]);
    }
}

#[test]
fn a_local_file_can_be_mirrored_excluded_and_named_with_unusual_characters() {
    let place = Place::new();
    place.write("a b#c?%41.txt", "odd");
    place.write("plain", "plain");
    manifest(
        &place,
        "m.yaml",
        "files:\n- path: \"a b#c%41.txt\"\n- path: plain\n",
    );
    std::fs::rename(place.path("a b#c?%41.txt"), place.path("a b#c%41.txt")).unwrap();
    place.ok(&["lock", "-f", "m.yaml"]);
    place.ok(&["pack", "-o", "b.tar.zst"]);
    let server = landfall_serve(&place, &["b.tar.zst"]);
    let response = get(&server.address, "/files/local/a%20b%23c%2541.txt");
    assert_eq!(response.text(), "odd");
    let page = get(&server.address, "/").text();
    assert!(page.contains("/files/local/a%20b%23c%2541.txt"), "{page}");

    let registry = own_registry();
    place.ok(&["mirror", "-f", "m.yaml", "--to", &registry.address]);
    let again = place.json(
        0,
        &[
            "mirror",
            "--lock",
            "landfall.lock",
            "--to",
            &registry.address,
        ],
    );
    assert_eq!(again["totals"]["done"], 0, "{again}");

    manifest(
        &place,
        "m.yaml",
        "exclude: [\"local:plain\"]\nfiles:\n- path: \"a b#c%41.txt\"\n- path: plain\n",
    );
    place.ok(&["lock", "-f", "m.yaml"]);
    assert!(!place.read("landfall.lock").contains("local:plain"));
}

/// A writer changes the file all the time. `lock` reads it twice, and must not store a mixture.
#[test]
fn a_file_that_changes_while_it_is_read_is_an_error() {
    let place = Place::new();
    // large enough that the writer changes its beginning between the two times that it is read
    let path = place.write("big.bin", vec![7; 64 << 20]);
    manifest(&place, "m.yaml", "files:\n- {path: big.bin}\n");
    let is_over = Arc::new(AtomicBool::new(false));
    let writer = std::thread::spawn({
        let (is_over, path) = (is_over.clone(), path.clone());
        move || {
            let file = File::options().write(true).open(path).unwrap();
            let mut number = 0_u64;
            while !is_over.load(Ordering::Relaxed) {
                number += 1;
                file.write_all_at(&number.to_le_bytes(), 0).unwrap();
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    });
    let report = place.json(1, &["lock", "-f", "m.yaml"]);
    is_over.store(true, Ordering::Relaxed);
    writer.join().unwrap();
    let why = failure_reasons(&report);
    assert!(
        why.contains("changed while it was read; lock again"),
        "{why}"
    );
    assert!(
        !place.path("landfall.lock").exists() || !place.read("landfall.lock").contains("big.bin")
    );
    // nothing of it is in the store, and the next run locks what is there then
    place.ok(&["lock", "-f", "m.yaml"]);
    let digest = sha256(&std::fs::read(&path).unwrap());
    assert!(place.read("landfall.lock").contains(&digest));
    let pulled = place.json(0, &["pull"]);
    assert_eq!(pulled["items"][0]["status"], "present", "{pulled}");
}
