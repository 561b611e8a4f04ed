//! `verify` of bundles whose digests are right, but whose packs do not match their lock.

use super::{digest_again, locked, manifest};
use crate::support::Place;
use crate::support::git::{GitServer, git, history, pointer};
use crate::support::library::Digest;
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// 20 commits on `main`, and an annotated tag of an old one.
fn sample(server: &GitServer) -> PathBuf {
    let repository = server.create("team/platform.git");
    server.import(&repository, &history("main", 0, 20));
    server.git(&repository, &["tag", "-a", "-m", "one", "v1.0", "main~15"]);
    repository
}

/// A place whose store is the folder `store`.
fn place() -> Place {
    let place = Place::new();
    place.set("LANDFALL_STORE", "store");
    place
}

/// The id that `name` has in a repository.
fn id(server: &GitServer, repository: &Path, name: &str) -> String {
    let printed = server.git(repository, &["rev-parse", name]);
    printed.trim().to_owned()
}

/// A pack with the objects of `range` except `absent`.
fn pack_of(server: &GitServer, repository: &Path, range: &[&str], absent: Option<&str>) -> Vec<u8> {
    let listed = server.git(repository, &[&["rev-list", "--objects"], range].concat());
    let kept: Vec<&str> = listed
        .lines()
        .filter_map(|line| line.split(' ').next())
        .filter(|id| Some(*id) != absent)
        .collect();
    let is_found = kept.len() < listed.lines().count();
    assert_eq!(is_found, absent.is_some());
    let mut command = git(
        &server.place,
        repository,
        &["pack-objects", "-q", "--stdout"],
    );
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(kept.join("\n").as_bytes()).unwrap();
    drop(input);
    child.wait_with_output().unwrap().stdout
}

/// Replaces the last pack of the lock with `pack`, and all digests with the right ones. Writes a
/// bundle of the result.
fn forge(place: &Place, pack: &[u8], bundle: &str, more: &[&str]) {
    let digest = Digest::sha256(pack);
    place.write(&format!("store/blobs/sha256/{}", digest.hex()), pack);
    let repository = locked(place);
    let old = repository["packs"].as_array().unwrap().last().unwrap();
    let line = |digest: &str, size: &Value| format!("digest: {digest}\n    size: {size}");
    let text = place.read("landfall.lock").replace(
        &line(old["digest"].as_str().unwrap(), &old["size"]),
        &line(&digest.to_string(), &pack.len().into()),
    );
    pack_lock(place, &text, bundle, more);
}

/// Writes a bundle of a changed lock, after the digest of its repository was computed again from
/// the other fields.
fn pack_lock(place: &Place, text: &str, bundle: &str, more: &[&str]) {
    let text = text.replace(locked(place)["digest"].as_str().unwrap(), "DIGEST");
    place.write("landfall.lock", digest_again(&text));
    place.ok(&[&["pack", "-o", bundle], more].concat());
}

/// The reason why `verify` refuses the only repository of a bundle.
fn refusal(place: &Place, args: &[&str]) -> String {
    let report = place.json(4, &[&["verify"], args].concat());
    assert_eq!(report["items"].as_array().unwrap().len(), 1, "{report}");
    assert_eq!(report["items"][0]["kind"], "git", "{report}");
    report["items"][0]["reason"].as_str().unwrap().to_owned()
}

#[test]
fn a_missing_object_is_named_with_the_ref_that_needs_it() {
    let Some(server) = GitServer::new() else {
        return;
    };
    let repository = sample(&server);
    let place = place();
    let url = server.url("team/platform.git");
    place.write("m.yaml", manifest(&url, "refs: [main, v1.0]"));
    place.ok(&["lock", "-f", "m.yaml"]);
    place.ok(&["pull"]);
    place.ok(&["pack", "-o", "good.tar.zst"]);
    let report = place.json(0, &["verify", "good.tar.zst"]);
    assert_eq!(report["repositories"][0]["checked"], true, "{report}");
    assert!(
        place
            .ok(&["verify", "good.tar.zst"])
            .contains("1 repository complete\n")
    );
    let lock = place.read("landfall.lock");
    for (name, kind, found_in) in [
        ("main~3", "commit", "refs/heads/main"),
        ("main~3^{tree}", "tree", "refs/heads/main"),
        ("main:src/d0/f0.txt", "blob", "refs/heads/main"),
        ("main", "object", "refs/heads/main"),
        ("v1.0", "object", "refs/tags/v1.0"),
    ] {
        let absent = id(&server, &repository, name);
        let pack = pack_of(&server, &repository, &["main", "v1.0"], Some(&absent));
        place.write("landfall.lock", &lock);
        forge(&place, &pack, "bad.tar.zst", &[]);
        assert_eq!(
            refusal(&place, &["bad.tar.zst"]),
            format!("{found_in} is not complete: the {kind} {absent} is missing")
        );
    }
    let run = place.command().args(["verify", "bad.tar.zst"]).output();
    let printed = String::from_utf8(run.unwrap().stderr).unwrap();
    assert!(
        printed.contains("1 git repository is not complete\n"),
        "{printed}"
    );
}

#[test]
fn the_objects_of_a_delta_are_checked_with_its_base() {
    let Some(server) = GitServer::new() else {
        return;
    };
    let repository = sample(&server);
    let place = place();
    let url = server.url("team/platform.git");
    place.write("m.yaml", manifest(&url, "ref: main"));
    place.ok(&["lock", "-f", "m.yaml"]);
    place.ok(&["pull"]);
    place.ok(&["pack", "-o", "old.tar.zst"]);
    server.import(&repository, &history("main", 20, 4));
    place.ok(&["lock", "-f", "m.yaml", "--refresh"]);
    place.ok(&["pull"]);
    place.ok(&["pack", "-o", "delta.tar.zst", "--since", "old.tar.zst"]);
    let name = format!("git+{url}");
    let alone = place.json(0, &["verify", "delta.tar.zst"]);
    let unchecked = serde_json::json!([{"name": name, "checked": false}]);
    assert_eq!(alone["repositories"], unchecked);
    let printed = place.ok(&["verify", "delta.tar.zst"]);
    assert!(
        printed.contains(&format!("  not checked       {name}: ")),
        "{printed}"
    );
    let both = place.json(0, &["verify", "delta.tar.zst", "old.tar.zst"]);
    assert_eq!(both["repositories"][0]["checked"], true);
    // a tree that only the new pack would have
    let absent = id(&server, &repository, "main~1^{tree}");
    let pack = pack_of(&server, &repository, &["main", "^main~4"], Some(&absent));
    forge(&place, &pack, "bad.tar.zst", &["--since", "old.tar.zst"]);
    place.ok(&["verify", "bad.tar.zst"]);
    assert_eq!(
        refusal(&place, &["bad.tar.zst", "old.tar.zst"]),
        format!("refs/heads/main is not complete: the tree {absent} is missing")
    );
}

#[test]
fn a_history_that_ends_too_early_is_refused() {
    let Some(server) = GitServer::new() else {
        return;
    };
    let repository = sample(&server);
    let place = place();
    let url = server.url("team/platform.git");
    place.write("m.yaml", manifest(&url, "ref: main, depth: 3"));
    place.ok(&["lock", "-f", "m.yaml"]);
    place.ok(&["pull"]);
    let lock = place.read("landfall.lock");
    let [end, tip] = ["main~2", "main"].map(|name| id(&server, &repository, name));
    // the lock says that the history ends at its newest commit
    let text = lock.replace(
        &format!("  shallow:\n  - \"{end}\""),
        &format!("  shallow:\n  - \"{tip}\""),
    );
    assert_ne!(text, lock);
    pack_lock(&place, &text, "early.tar.zst", &[]);
    let why = refusal(&place, &["early.tar.zst"]);
    assert!(why.starts_with("with the depth of the lock"), "{why}");
    // the pack also lacks the commits before the newest one
    let before = id(&server, &repository, "main~1");
    let pack = pack_of(&server, &repository, &["-1", "main"], None);
    forge(&place, &pack, "cut.tar.zst", &[]);
    assert!(refusal(&place, &["cut.tar.zst"]).ends_with(&before));
}

#[test]
fn large_files_and_submodules_that_differ_from_the_packs_are_refused() {
    let Some(server) = GitServer::new() else {
        return;
    };
    let inner = server.create("team/inner.git");
    server.import(&inner, &history("main", 0, 2));
    let [old, new] = ["main~1", "main"].map(|name| id(&server, &inner, name));
    let large = b"large".repeat(1000);
    server.add_large_file(&large);
    let repository = server.create("team/platform.git");
    let modules = "[submodule \"m\"]\n\tpath = m\n\turl = ../inner.git\n";
    let text = pointer(&large);
    server.import(
        &repository,
        &format!(
            "commit refs/heads/main\ncommitter T <t@example.com> 1650000000 +0000\ndata 2\nm\n\n\
             M 100644 inline a.bin\ndata {}\n{text}\nM 100644 inline .gitmodules\ndata {}\n{modules}\n\
             M 160000 {old} m\n\n",
            text.len(),
            modules.len()
        ),
    );
    let place = place();
    let url = server.url("team/platform.git");
    place.write(
        "m.yaml",
        manifest(&url, "ref: main, lfs: true, submodules: true"),
    );
    place.ok(&["lock", "-f", "m.yaml"]);
    place.ok(&["pull"]);
    place.ok(&["pack", "-o", "good.tar.zst"]);
    let printed = place.ok(&["verify", "good.tar.zst"]);
    assert!(printed.contains("2 repositories complete\n"), "{printed}");
    let lock = place.read("landfall.lock");
    let parsed: Value = serde_yaml::from_str(&lock).unwrap();
    let [inner_digest, digest] = [0, 1].map(|at| parsed["git"][at]["digest"].as_str().unwrap());
    let refused = |digest: &str, text: &str, why: &str| {
        assert_ne!(text, lock);
        place.write(
            "landfall.lock",
            digest_again(&text.replace(digest, "DIGEST")),
        );
        place.ok(&["pack", "-o", "bad.tar.zst"]);
        assert_eq!(refusal(&place, &["bad.tar.zst"]), why);
    };
    let file = Digest::sha256(&large);
    let listed = format!("  largeFiles:\n  - {file} {}\n", large.len());
    refused(
        digest,
        &lock.replace(&listed, "  largeFiles: []\n"),
        &format!("the lock and the pointers of the refs have different large files: {file}"),
    );
    let module = format!("git+{}", server.url("team/inner.git"));
    // the message names the first commit that only one side has
    let first = old.clone().min(new.clone());
    refused(
        digest,
        &lock.replace(&format!("{module} {old}"), &format!("{module} {new}")),
        &format!("the lock and the refs have different submodules: {module} at {first}"),
    );
    // the tag of the commit names another object of the submodule's repository
    let tag = format!("refs/tags/commit-{} ", &old[..12]);
    let tree = id(&server, &inner, "main~1^{tree}");
    refused(
        inner_digest,
        &lock.replace(&format!("{tag}{old}"), &format!("{tag}{tree}")),
        &format!("its submodule {module} lacks the commit {old}"),
    );
}
