//! The program for Windows gives the same locks, bundles and documents as the one for Linux, and
//! can be killed at any moment. `scripts/windows` builds it and runs these tests with Wine;
//! `LANDFALL_WINDOWS` names a command that runs it.

use crate::kills::{assert_resumed, blob_progress, finish, kill, moved, slow};
use crate::support::faults::Rig;
use crate::support::git::{GitServer, git, history};
use crate::support::images::sha256;
use crate::support::peers::{file_server, start_landfall};
use crate::support::world::NEEDS;
use crate::support::{
    Place, World, docker_registry, http, need, run, skip, spread_kills, test_name,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The command that runs the program for Windows.
struct Windows(PathBuf);

impl Windows {
    /// `None` if there is none; the test is then skipped.
    fn find() -> Option<Windows> {
        let named = std::env::var_os("LANDFALL_WINDOWS").map(PathBuf::from);
        if named.is_none() {
            skip(
                &test_name(),
                "LANDFALL_WINDOWS names no program; scripts/windows builds it",
            );
        }
        named.map(Windows)
    }

    fn command(&self, place: &Place) -> Command {
        place.clean(&self.0)
    }

    /// Runs it in `place`, asserts the exit code, and returns stdout and stderr.
    fn run(&self, place: &Place, exit: i32, args: &[&str]) -> (String, String) {
        let output = self
            .command(place)
            .args(args)
            .args(["--progress", "none"])
            .output()
            .unwrap();
        let [out, err] =
            [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        let code = output.status.code();
        assert_eq!(code, Some(exit), "{}\n{out}\n{err}", args.join(" "));
        (out, err)
    }
}

/// The files below a folder with their content, without the records of landfall.
fn tree(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(inner) = folders.pop() {
        for entry in std::fs::read_dir(inner).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if !path.ends_with(".landfall-files") {
                let content = std::fs::read(&path).unwrap();
                files.insert(path.strip_prefix(folder).unwrap().into(), content);
            }
        }
    }
    files
}

#[test]
fn locks_bundles_and_documents_are_the_same_as_on_linux() {
    let Some(windows) = Windows::find() else {
        return;
    };
    if !need(&[&NEEDS[..], &["ssh-keygen"]].concat()) {
        return;
    }
    let world = World::new();
    let place = &world.place;
    let private = docker_registry();
    place.write("site.yaml", world.site(&private.address));
    place.set("LANDFALL_SITE", "site.yaml");
    place.write("own/notes.txt", "next to the manifest");
    let more = place.read("manifest.yaml") + "  - path: own/notes.txt\n";
    place.write("manifest.yaml", more);
    for args in [
        &["lock", "-f", "manifest.yaml", "--lock", "linux.lock"][..],
        &["pull", "--lock", "linux.lock", "--store", "linux"],
        &[
            "pack",
            "--lock",
            "linux.lock",
            "--store",
            "linux",
            "-o",
            "linux.tar.zst",
        ],
        &[
            "export",
            "files",
            "--bundle",
            "linux.tar.zst",
            "-o",
            "linux-files",
        ],
        &[
            "export",
            "images",
            "--bundle",
            "linux.tar.zst",
            "-o",
            "linux.tar",
        ],
    ] {
        place.ok(args);
    }
    for args in [
        &["lock", "-f", "manifest.yaml", "--lock", "windows.lock"][..],
        &["pull", "--lock", "windows.lock", "--store", "windows"],
        &[
            "pack",
            "--lock",
            "windows.lock",
            "--store",
            "windows",
            "-o",
            "windows.tar.zst",
        ],
        &[
            "pull",
            "--lock",
            "windows.lock",
            "--store",
            "x",
            "--bundle",
            "direct.tar.zst",
        ],
        &[
            "export",
            "files",
            "--bundle",
            "windows.tar.zst",
            "-o",
            "windows-files",
        ],
        &[
            "export",
            "images",
            "--bundle",
            "windows.tar.zst",
            "-o",
            "windows.tar",
        ],
        &["verify", "linux.tar.zst"],
    ] {
        windows.run(place, 0, args);
    }
    assert_eq!(place.read("windows.lock"), place.read("linux.lock"));
    let linux = place.read_bytes("linux.tar.zst");
    assert!(place.read_bytes("windows.tar.zst") == linux, "pack");
    assert!(place.read_bytes("direct.tar.zst") == linux, "pull --bundle");
    assert!(!place.path("direct.tar.zst.partial.work").exists());
    assert!(place.read_bytes("windows.tar") == place.read_bytes("linux.tar"));
    assert!(tree(&place.path("windows-files")) == tree(&place.path("linux-files")));

    let push = ["push", "windows.tar.zst"];
    let (first, _) = windows.run(place, 0, &push);
    assert!(first.contains(" new, 0 there"), "{first}");
    world.assert_arrived(&private.address, true);
    let (again, _) = windows.run(place, 0, &push);
    assert!(again.contains("0 new, "), "{again}");

    // line ends are those of the file
    let lines = [
        "image: registry.k8s.io/pause:3.10.1 # x",
        "image: other/x:1",
        "",
    ];
    place.write("crlf.yaml", lines.join("\r\n"));
    let rewrite = ["rewrite", "crlf.yaml", "--bundle", "windows.tar.zst"];
    let (rewritten, _) = windows.run(place, 0, &rewrite);
    assert_eq!(rewritten, place.ok(&rewrite));
    let wanted = format!("image: {}/pause:3.10.1 # x\r\n", private.address);
    assert!(rewritten.starts_with(&wanted), "{rewritten}");
    place.write("deploy/a.yaml", lines.join("\n"));
    let diff = ["rewrite", "deploy", "--bundle", "windows.tar.zst", "--diff"];
    assert_eq!(windows.run(place, 0, &diff).0, place.ok(&diff));
    windows.run(place, 0, &[&rewrite[..], &["--in-place"]].concat());
    assert_eq!(place.read("crlf.yaml"), rewritten);
    let audit = ["audit", "crlf.yaml", "--bundle", "windows.tar.zst"];
    let (missing, _) = windows.run(place, 4, &audit);
    assert!(missing.contains("other/x:1"), "{missing}");

    let mut keygen = place.clean("ssh-keygen");
    run(keygen.args(["-q", "-t", "ed25519", "-N", "", "-f", "key"]));
    windows.run(place, 0, &["sign", "windows.tar.zst", "--key", "key"]);
    let key = place.read("key.pub");
    place.write("allowed", format!("me {key}"));
    let verify = ["verify", "windows.tar.zst", "--allowed-signers", "allowed"];
    windows.run(place, 0, &verify);
    place.ok(&verify);
}

#[test]
fn a_killed_pull_is_resumed_on_windows() {
    let Some(windows) = Windows::find() else {
        return;
    };
    let rig = slow();
    let pull = |store: &str| quiet(&windows, &rig, &["pull", "--store", store]);
    let before = moved(&rig);
    finish(pull("stores/whole"), "whole");
    rig.assert_same("whole", "whole");
    spread_kills(4, moved(&rig) - before, |number, after| {
        let store = format!("killed-{number}");
        let folder = format!("stores/{store}");
        let met = kill(&rig, pull(&folder), after);
        let stood = blob_progress(&rig.store(&store));
        rig.set_faults([]);
        finish(pull(&folder), &store);
        assert_resumed(&rig, &stood, &store);
        rig.assert_same(&store, &store);
        met
    });
}

#[test]
fn a_killed_pull_into_a_bundle_is_resumed_on_windows() {
    let Some(windows) = Windows::find() else {
        return;
    };
    let rig = slow();
    let pack = ["pack", "--lock", "landfall.lock", "--store", "stores/first"];
    rig.place
        .ok(&[&pack[..], &["-o", "linux.tar.zst"]].concat());
    let linux = rig.place.read_bytes("linux.tar.zst");
    let pull = |out: &str| quiet(&windows, &rig, &["pull", "--store", "s", "--bundle", out]);
    let before = moved(&rig);
    finish(pull("whole.tar.zst"), "whole");
    let bytes = moved(&rig) - before;
    let mut saved = 0;
    spread_kills(4, bytes, |number, after| {
        let out = format!("killed-{number}.tar.zst");
        let met = kill(&rig, pull(&out), after);
        let before = moved(&rig);
        finish(pull(&out), &out);
        saved += bytes.saturating_sub(moved(&rig) - before);
        assert!(rig.place.read_bytes(&out) == linux, "{out}");
        assert!(!rig.place.path(format!("{out}.partial.work")).exists());
        met
    });
    assert!(saved > 0, "each time, all {bytes} bytes were transferred");
}

#[test]
fn two_processes_on_windows_share_a_store() {
    let Some(windows) = Windows::find() else {
        return;
    };
    let rig = slow();
    let pull = |store: &str| quiet(&windows, &rig, &["pull", "--store", store]);
    let before = moved(&rig);
    finish(pull("stores/one"), "one");
    let bytes = moved(&rig) - before;
    let before = moved(&rig);
    let mut first = pull("stores/both").spawn().unwrap();
    finish(pull("stores/both"), "second");
    assert!(first.wait().unwrap().success());
    let both = moved(&rig) - before;
    assert!(both < bytes + bytes / 4, "{both} of {bytes}");
    rig.assert_same("both", "both");
}

/// A command for the lock and the registries of `rig`.
fn quiet(windows: &Windows, rig: &Rig, args: &[&str]) -> Command {
    let mut command = windows.command(&rig.place);
    command
        .args(args)
        .args(["--lock", "landfall.lock", "--progress", "none"])
        .args(["--plain-http", &rig.up.address])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

#[test]
fn names_that_windows_lacks_are_refused_before_a_file_is_written() {
    let Some(windows) = Windows::find() else {
        return;
    };
    let place = Place::new();
    let [good, aux] = ["good.txt", "aux.txt"].map(|name| {
        place.write(&format!("files/{name}"), name);
        sha256(name.as_bytes())
    });
    let server = file_server(&place.path("files"));
    place.write(
        "site.yaml",
        format!(
            "apiVersion: landfall/v1\nkind: Site\nupstreams:\n  files.test: {{mirror: \"{}\"}}\n",
            server.url()
        ),
    );
    place.set("LANDFALL_SITE", "site.yaml");
    place.write(
        "m.yaml",
        format!(
            "apiVersion: landfall/v1\nkind: Manifest\nmetadata: {{name: t}}\nfiles:\n\
             - {{url: \"https://files.test/good.txt\", checksum: \"{good}\"}}\n\
             - {{url: \"https://files.test/aux.txt\", checksum: \"{aux}\"}}\n"
        ),
    );
    for args in [&["lock", "-f", "m.yaml"][..], &["pull"]] {
        windows.run(&place, 0, args);
    }
    let (_, refused) = windows.run(&place, 2, &["export", "files", "-o", "out"]);
    let wanted = "'aux.txt' is the name of a device on Windows";
    assert!(refused.contains(wanted), "{refused}");
    assert!(!place.path("out").exists());
}

#[test]
fn a_server_on_windows_delivers_and_accepts_content() {
    let Some(windows) = Windows::find() else {
        return;
    };
    let rig = slow();
    let pack = ["pack", "--lock", "landfall.lock", "--store", "stores/first"];
    rig.place.ok(&[&pack[..], &["-o", "b.tar.zst"]].concat());
    let place = &rig.place;
    let reader = start_landfall(windows.command(place), &["b.tar.zst"]);
    let writer = start_landfall(windows.command(place), &["--writable", "pushed"]);
    let status = ["status", "--bundle", "b.tar.zst", "--registry"];
    for server in [&reader, &writer] {
        if server.address == writer.address {
            place.ok(&["push", "b.tar.zst", "--to", &server.address]);
        }
        let found = place.ok(&[&status[..], &[&server.address]].concat());
        assert!(found.contains("3 of 3 there"), "{found}");
        for digest in rig
            .lock
            .entry(0)
            .parts
            .iter()
            .map(|part| &part.descriptor.digest)
        {
            let blob = http::get(&server.address, &format!("/v2/team/app/blobs/{digest}"));
            let path = format!("/v2/team/app/manifests/{digest}");
            let found = if blob.status == 200 {
                blob
            } else {
                http::get(&server.address, &path)
            };
            assert_eq!(sha256(&found.body), digest.to_string(), "{}", found.text());
        }
    }
}

/// The bundle, the packs and the loose objects of a repository are read with Windows' files.
#[test]
fn git_repositories_next_to_the_manifest_are_read_as_on_linux() {
    let (Some(windows), Some(server)) = (Windows::find(), GitServer::new()) else {
        return;
    };
    let repository = server.create("team/app.git");
    server.import(&repository, &history("main", 0, 20));
    server.git(&repository, &["tag", "-a", "-m", "one", "v1.0", "main~3"]);
    let place = Place::new();
    let url = server.url("team/app.git");
    let here = |folder: &str, args: &[&str]| run(&mut git(&place, &place.path(folder), args));
    here(".", &["clone", "-q", "--mirror", &url, "bare"]);
    here(".", &["clone", "-q", &url, "copy"]);
    place.write("copy/more", "more");
    here("copy", &["add", "more"]);
    here("copy", &["commit", "-q", "-m", "more"]);
    here(
        "copy",
        &["bundle", "create", "-q", "../app.bundle", "--all"],
    );
    for path in ["bare", "copy", "app.bundle"] {
        let entry = format!("{{url: \"{url}\", path: {path}, ref: main, tags: \"^v1\"}}");
        let head = "apiVersion: landfall/v1\nkind: Manifest\ngit:\n- ";
        place.write("m.yaml", format!("{head}{entry}\n"));
        let lock = ["lock", "-f", "m.yaml", "--lock"];
        let linux = ["linux.lock", "--store", &format!("{path}-linux")];
        place.ok(&[&lock[..], &linux].concat());
        let own = ["windows.lock", "--store", &format!("{path}-windows")];
        windows.run(&place, 0, &[&lock[..], &own].concat());
        assert_eq!(place.read("windows.lock"), place.read("linux.lock"));
        // read again: this store has no objects yet
        let pull = ["pull", "windows.lock", "--store", &format!("{path}-new")];
        windows.run(&place, 0, &pull);
    }
}

#[test]
fn what_needs_linux_says_so() {
    let Some(windows) = Windows::find() else {
        return;
    };
    let place = Place::new();
    let (_, refused) = windows.run(&place, 2, &["doctor", "node"]);
    assert!(refused.contains("this machine has no Linux"), "{refused}");
}
