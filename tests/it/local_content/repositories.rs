//! Git repositories next to the manifest: working copies, bare repositories and git bundles.

use super::manifest;
use crate::support::charts::failure_reasons;
use crate::support::git::{GitServer, git, history};
use crate::support::object_store::ObjectStore;
use crate::support::peers::{landfall_serve, own_registry};
use crate::support::{Place, run};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

const URL: &str = "https://git.example.com/team/app.git";

/// A server that has a repository with a branch, an annotated and a plain tag; and a place with a
/// working copy of it in `repos/app`.
fn cloned() -> Option<(GitServer, Place)> {
    let server = GitServer::new()?;
    let repository = server.create("team/app.git");
    server.import(&repository, &history("main", 0, 30));
    server.git(&repository, &["tag", "-a", "-m", "one", "v1.0", "main~9"]);
    server.git(&repository, &["tag", "v1.1", "main~3"]);
    let place = Place::new();
    fs::create_dir(place.path("repos")).unwrap();
    here(
        &place,
        ".",
        &["clone", "-q", &server.url("team/app.git"), "repos/app"],
    );
    Some((server, place))
}

/// Runs git in a folder of `place`, and returns its output.
fn here(place: &Place, folder: &str, args: &[&str]) -> String {
    String::from_utf8(run(&mut git(place, &place.path(folder), args))).unwrap()
}

fn commit(place: &Place, folder: &str, name: &str) {
    place.write(&format!("{folder}/{name}"), name);
    here(place, folder, &["add", name]);
    here(place, folder, &["commit", "-q", "-m", name]);
}

/// A manifest with one repository.
fn one(place: &Place, fields: &str) {
    manifest(
        place,
        "m.yaml",
        &format!("git:\n- {{url: \"{URL}\", {fields}}}\n"),
    );
}

fn locked(place: &Place) -> Value {
    let lock: Value = serde_yaml::from_str(&place.read("landfall.lock")).unwrap();
    lock["git"][0].clone()
}

const WANTED: &str = "ref: main, tags: \"^v1\"";

#[test]
fn a_working_copy_a_bare_repository_and_a_bundle_lock_like_the_server() {
    let Some((server, place)) = cloned() else {
        return;
    };
    // the same history at a server gives the packs that are expected
    let of_server = Place::new();
    let url = server.url("team/app.git");
    let body = format!("git:\n- {{url: \"{url}\", {WANTED}}}\n");
    manifest(&of_server, "m.yaml", &body);
    of_server.ok(&["lock", "-f", "m.yaml"]);
    let expected = locked(&of_server);

    here(
        &place,
        "repos",
        &["clone", "-q", "--mirror", &url, "app.git"],
    );
    here(
        &place,
        "repos/app",
        &["bundle", "create", "-q", "../app.bundle", "--all"],
    );
    // without packs, each object is a file
    here(&place, "repos", &["init", "-q", "-b", "main", "loose"]);
    let packs = fs::read_dir(place.path("repos/app/.git/objects/pack")).unwrap();
    for pack in packs.map(|entry| entry.unwrap().path()) {
        if pack
            .extension()
            .is_some_and(|extension| extension == "pack")
        {
            let mut unpack = git(
                &place,
                &place.path("repos/loose"),
                &["unpack-objects", "-q"],
            );
            run(unpack.stdin(fs::File::open(pack).unwrap()));
        }
    }
    here(
        &place,
        "repos/loose",
        &[
            "fetch",
            "-q",
            "../app",
            "main:main",
            "--tags",
            "--update-head-ok",
        ],
    );
    assert!(
        fs::read_dir(place.path("repos/loose/.git/objects/pack"))
            .unwrap()
            .next()
            .is_none()
    );
    let requests = server.requests().len();
    for path in [
        "repos/app/",
        "repos/app.git",
        "./repos/app.bundle",
        "repos/loose",
    ] {
        one(&place, &format!("path: {path}, {WANTED}"));
        let hosts = place.json(0, &["egress", "-f", "m.yaml"]);
        assert_eq!(hosts["hosts"], json!([]), "{hosts}");
        let name = path.trim_start_matches("./").trim_end_matches('/');
        let store = format!("stores/{}", name.replace('/', "-"));
        let store = ["--store", &store];
        let report = place.json(0, &[&["lock", "-f", "m.yaml"][..], &store].concat());
        assert_eq!(report["totals"]["requests"], 0, "{report}");
        let found = locked(&place);
        for key in ["wanted", "head", "refs", "packs"] {
            assert_eq!(found[key], expected[key], "{path} {key}");
        }
        assert_eq!(found["path"], name, "{found}");
        assert_eq!(found["name"], format!("git+{URL}"));
        let lock = place.read("landfall.lock");
        assert!(!lock.contains(place.dir().to_str().unwrap()), "{lock}");
        let pulled = place.json(0, &[&["pull"][..], &store].concat());
        assert_eq!(pulled["items"][0]["status"], "present", "{pulled}");
        assert_eq!(place.json(0, &["egress"])["hosts"], json!([]));

        // another machine reads the repository next to the lock
        let _ = fs::remove_dir_all(place.path("new"));
        let pulled = place.json(0, &["pull", "--store", "new"]);
        assert_eq!(pulled["items"][0]["status"], "done", "{pulled}");
        assert_eq!(pulled["totals"]["requests"], 0, "{pulled}");
        place.ok(&["lock", "-f", "m.yaml", "--check", "--store", "new"]);
        fs::remove_file(place.path("landfall.lock")).unwrap();
    }
    assert_eq!(server.requests().len(), requests);
}

#[test]
fn a_local_repository_is_packed_served_exported_pushed_and_mirrored() {
    let Some((_server, place)) = cloned() else {
        return;
    };
    one(&place, &format!("path: repos/app, {WANTED}"));
    place.ok(&["lock", "-f", "m.yaml"]);
    place.ok(&["pull"]);
    place.ok(&["pack", "-o", "b.tar.zst"]);
    place.ok(&["verify", "b.tar.zst", "--lock", "landfall.lock"]);
    let server = landfall_serve(&place, &["b.tar.zst"]);
    let url = format!("http://{}/git/git.example.com/team/app.git", server.address);
    here(&place, ".", &["clone", "-q", &url, "served"]);
    let head = here(&place, "repos/app", &["rev-parse", "main", "v1.0", "v1.1"]);
    assert_eq!(
        here(&place, "served", &["rev-parse", "main", "v1.0", "v1.1"]),
        head
    );
    place.ok(&["export", "git", "-o", "out", "--format", "bundle"]);
    let bundle = "out/git.example.com/team/app.bundle";
    assert!(
        here(&place, ".", &["bundle", "list-heads", bundle]).contains(head.lines().next().unwrap())
    );
    let document = format!(
        "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nspec:\n  url: {URL}\n"
    );
    place.write("gitops.yaml", document);
    let files = format!("http://{}/git", server.address);
    let rewritten = place.ok(&[
        "rewrite",
        "gitops.yaml",
        "--files",
        &files,
        "--to",
        "127.0.0.1:1",
        "--lock",
        "landfall.lock",
    ]);
    assert!(
        rewritten.contains(&format!("  url: {url}\n")),
        "{rewritten}"
    );

    // without the content of any store: to a registry, into a bundle and into an object store
    let registry = own_registry();
    place.ok(&["push", "b.tar.zst", "--to", &registry.address]);
    let mirrored = place.json(
        0,
        &[
            "mirror",
            "--lock",
            "landfall.lock",
            "--to",
            &format!("{}/m", registry.address),
            "--store",
            "empty",
        ],
    );
    assert_eq!(mirrored["status"], "done", "{mirrored}");
    place.ok(&["pull", "--bundle", "direct.tar.zst", "--store", "none"]);
    assert_eq!(
        place.read_bytes("direct.tar.zst"),
        place.read_bytes("b.tar.zst")
    );
    let store = ObjectStore::start();
    store.introduce_to(&place);
    let pulled = place.json(0, &["pull", "--store", "s3://mirror/x"]);
    assert_eq!(pulled["items"][0]["status"], "done", "{pulled}");
    place.ok(&[
        "pack",
        "--store",
        "s3://mirror/x",
        "-o",
        "of-objects.tar.zst",
    ]);
    assert_eq!(
        place.read_bytes("of-objects.tar.zst"),
        place.read_bytes("b.tar.zst")
    );
}

#[test]
fn a_changed_repository_is_a_changed_entry_and_a_rewritten_one_cannot_be_pulled() {
    let Some((_server, place)) = cloned() else {
        return;
    };
    one(&place, "path: repos/app, ref: main");
    place.ok(&["lock", "-f", "m.yaml"]);
    let first = locked(&place);
    let old_head = here(&place, "repos/app", &["rev-parse", "HEAD"]);
    commit(&place, "repos/app", "more");
    // what is locked is still there
    place.ok(&["pull", "--store", "second"]);
    place.printed(4, &["lock", "-f", "m.yaml", "--check"]);
    place.ok(&["lock", "-f", "m.yaml"]);
    let second = locked(&place);
    assert_eq!(second["packs"].as_array().unwrap().len(), 2, "{second}");
    assert_eq!(second["packs"][0], first["packs"][0]);

    here(
        &place,
        "repos/app",
        &["reset", "-q", "--hard", old_head.trim()],
    );
    here(
        &place,
        "repos/app",
        &["reflog", "expire", "--expire=now", "--all"],
    );
    here(&place, "repos/app", &["update-ref", "-d", "ORIG_HEAD"]);
    here(&place, "repos/app", &["gc", "-q", "--prune=now"]);
    let why = failure_reasons(&place.json(1, &["pull", "--store", "third"]));
    assert!(
        why.contains("repos/app changed after it was locked") && why.contains("landfall lock"),
        "{why}"
    );
    // the store that locked it has it
    place.ok(&["pull"]);
    fs::rename(place.path("repos/app"), place.path("repos/gone")).unwrap();
    let why = failure_reasons(&place.json(1, &["pull", "--store", "third"]));
    assert!(
        why.contains("repos/app next to the lock cannot be read"),
        "{why}"
    );
    // the lock of a manifest elsewhere has no path
    fs::create_dir(place.path("locks")).unwrap();
    one(&place, "path: repos/gone, ref: main");
    place.ok(&["lock", "-f", "m.yaml", "--lock", "locks/a.lock"]);
    let lock = place.read("locks/a.lock");
    assert!(lock.contains("  path: \"\"\n"), "{lock}");
    place.ok(&["pull", "locks/a.lock"]);
    let why = failure_reasons(&place.json(1, &["pull", "locks/a.lock", "--store", "third"]));
    assert!(why.contains("not below the folder of the lock"), "{why}");
}

#[test]
fn depth_and_commits_work_and_a_shallow_clone_needs_a_depth() {
    let Some((server, place)) = cloned() else {
        return;
    };
    let url = server.url("team/app.git");
    let id = here(&place, "repos/app", &["rev-parse", "main~5"]);
    one(
        &place,
        &format!("path: repos/app, refs: [main, \"{}\"], depth: 2", id.trim()),
    );
    place.ok(&["lock", "-f", "m.yaml"]);
    let whole = locked(&place);
    assert_eq!(whole["shallow"].as_array().unwrap().len(), 2, "{whole}");
    place.ok(&["pull", "--store", "new"]);

    let shallow = ["clone", "-q", "--depth", "3", &url, "shallow"];
    here(&place, "repos", &shallow);
    one(&place, "path: repos/shallow, ref: main");
    let text = place.printed(1, &["lock", "-f", "m.yaml", "--lock", "s.lock"]);
    assert!(
        text.contains("shallow clone") && text.contains("`depth`"),
        "{text}"
    );
    one(&place, "path: repos/shallow, ref: main, depth: 3");
    place.ok(&["lock", "-f", "m.yaml", "--lock", "s.lock"]);
    place.ok(&["pull", "s.lock", "--store", "new"]);
    one(&place, "path: repos/shallow, ref: main, depth: 4");
    let text = place.printed(1, &["lock", "-f", "m.yaml", "--lock", "s.lock"]);
    assert!(
        text.contains("repos/shallow") && text.contains("is missing"),
        "{text}"
    );
}

#[test]
fn a_submodule_that_the_manifest_lists_is_read_from_its_path() {
    let Some((_server, place)) = cloned() else {
        return;
    };
    here(&place, "repos", &["init", "-q", "-b", "main", "lib"]);
    commit(&place, "repos/lib", "lib.txt");
    let lib = place.path("repos/lib");
    let add = ["submodule", "--quiet", "add", lib.to_str().unwrap(), "lib"];
    here(&place, "repos/app", &add);
    let url = [
        "config",
        "-f",
        ".gitmodules",
        "submodule.lib.url",
        "../lib.git",
    ];
    here(&place, "repos/app", &url);
    here(&place, "repos/app", &["commit", "-q", "-a", "-m", "lib"]);
    let body = format!(
        "git:\n- {{url: \"{URL}\", path: repos/app, ref: main, submodules: true}}\n\
         - {{url: \"https://git.example.com/team/lib.git\", path: repos/lib, ref: main}}\n"
    );
    manifest(&place, "m.yaml", &body);
    let report = place.json(0, &["lock", "-f", "m.yaml"]);
    assert_eq!(report["totals"]["requests"], 0, "{report}");
    let lock: Value = serde_yaml::from_str(&place.read("landfall.lock")).unwrap();
    let id = here(&place, "repos/lib", &["rev-parse", "HEAD"]);
    let submodule = format!("git+https://git.example.com/team/lib.git {}", id.trim());
    assert_eq!(lock["git"][0]["submodules"], json!([submodule]));
    assert_eq!(lock["git"][1]["path"], "repos/lib");
    place.ok(&["pull", "--store", "new"]);
    place.ok(&["pack", "--store", "new", "-o", "b.tar.zst"]);
    place.ok(&["verify", "b.tar.zst"]);
}

#[test]
fn a_path_without_a_usable_repository_is_an_error() {
    let Some((_server, place)) = cloned() else {
        return;
    };
    let fault = |exit: i32, fields: &str| {
        one(&place, fields);
        let text = place.printed(exit, &["lock", "-f", "m.yaml"]);
        assert!(!place.path("landfall.lock").exists(), "{fields}");
        text
    };
    let outer = Place::new();
    here(&outer, ".", &["init", "-q", "-b", "main", "other"]);
    commit(&outer, "other", "a");
    symlink(outer.path("other"), place.path("repos/link")).unwrap();
    for (fields, why) in [
        ("path: ../app, ref: main", "not a path below this manifest"),
        (
            "path: /srv/app, ref: main",
            "not a path below this manifest",
        ),
        ("path: repos/none, ref: main", "cannot read repos/none"),
        (
            "path: repos/link, ref: main",
            "a symbolic link leads out of the folder",
        ),
        ("path: repos/app", "needs `ref`, `refs` or `tags`"),
        (
            "path: repos/app, ref: v1.0, update: patch",
            "has no newer versions",
        ),
        (
            "path: repos/app, ref: main, lfs: true",
            "large files are not read",
        ),
    ] {
        let text = fault(2, fields);
        assert!(text.contains(why), "{fields}: {text}");
    }
    manifest(&place, "m.yaml", "git:\n- {path: repos/app, ref: main}\n");
    let text = place.printed(2, &["lock", "-f", "m.yaml"]);
    assert!(
        text.contains("m.yaml:4:3") && text.contains("needs `url`"),
        "{text}"
    );

    place.write("repos/text", "not a bundle");
    place.write("repos/folder/file", "");
    let range = [
        "bundle",
        "create",
        "-q",
        "../part.bundle",
        "main",
        "^main~2",
    ];
    here(&place, "repos/app", &range);
    here(
        &place,
        "repos/app",
        &["bundle", "create", "-q", "../cut.bundle", "main"],
    );
    let bundle = place.read_bytes("repos/cut.bundle");
    fs::write(place.path("repos/cut.bundle"), &bundle[..bundle.len() - 30]).unwrap();
    here(
        &place,
        "repos/app",
        &["worktree", "add", "-q", "--detach", "../tree"],
    );
    for (fields, why) in [
        ("path: repos/text, ref: main", "neither a git bundle nor"),
        (
            "path: repos/folder, ref: main",
            "not the folder of a git repository",
        ),
        (
            "path: repos/part.bundle, ref: main",
            "only a part of the history",
        ),
        ("path: repos/cut.bundle, ref: main", "damaged"),
        (
            "path: repos/tree, ref: main",
            "linked working tree or a submodule",
        ),
        ("path: repos/app, ref: v9", "it has no branch or tag v9"),
        (
            "path: repos/app, tags: \"^w\"",
            "no tag of the repository matches",
        ),
    ] {
        let text = fault(1, fields);
        assert!(
            text.contains(why) && text.contains("repos/"),
            "{fields}: {text}"
        );
    }
    // links inside of the repository could name any file of the machine
    let objects = place.path("repos/app/.git/objects/pack");
    fs::rename(&objects, outer.path("pack")).unwrap();
    symlink(outer.path("pack"), &objects).unwrap();
    let text = fault(1, "path: repos/app, ref: main");
    assert!(text.contains("symbolic link"), "{text}");
    fs::remove_dir_all(Path::new(&place.path("repos/app/.git"))).unwrap();
    symlink(outer.path("other/.git"), place.path("repos/app/.git")).unwrap();
    let text = fault(1, "path: repos/app, ref: main");
    assert!(text.contains("symbolic link"), "{text}");
}
