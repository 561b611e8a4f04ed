//! Repositories are locked, pulled, packed, served and pushed.

use super::{locked, manifest, output};
use crate::support::git::{GitServer, git, history};
use crate::support::peers::{file_server, own_registry};
use crate::support::{Place, landfall_serve, run, wait_for};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// The packs in the only repository of a lock: digests and sizes.
fn packs(place: &Place) -> Vec<(String, u64)> {
    let lock = locked(place);
    let packs = lock["packs"].as_array().unwrap().iter();
    packs
        .map(|pack| {
            (
                pack["digest"].as_str().unwrap().to_owned(),
                pack["size"].as_u64().unwrap(),
            )
        })
        .collect()
}

/// A repository with 300 commits on `main`, a second branch, an annotated and two plain tags, a
/// symbolic link, an executable file and a submodule.
fn sample(server: &GitServer) -> std::path::PathBuf {
    let repository = server.create("team/platform.git");
    server.import(&repository, &history("main", 0, 300));
    server.import(
        &repository,
        "commit refs/heads/side\ncommitter T <t@example.com> 1600000500 +0000\ndata 5\nside\n\
         from refs/heads/main~20\nM 120000 inline link\ndata 6\nREADME\nM 100755 inline run.sh\ndata 3\n#!\n\n\
         M 160000 e69de29bb2d1d6434b8b29ae775ad8c2e48c5391 module\n\n",
    );
    server.git(&repository, &["tag", "-a", "-m", "one", "v1.0", "main~10"]);
    server.git(&repository, &["tag", "v1.1", "main~5"]);
    server.git(&repository, &["tag", "other", "side"]);
    repository
}

/// The output of `git ls-remote`: all refs, with peeled tags.
fn refs(server: &GitServer, url: &str) -> String {
    server.git(Path::new("."), &["ls-remote", url])
}

#[test]
fn a_reload_closes_a_bundle_that_was_replaced() {
    let Some(server) = GitServer::new() else {
        return;
    };
    sample(&server);
    let place = Place::new();
    let url = server.url("team/platform.git");
    place.write("m.yaml", manifest(&url, "refs: [main]"));
    place.ok(&["lock", "-f", "m.yaml"]);
    place.ok(&["pull"]);
    place.ok(&["pack", "-o", "b.tar.zst"]);
    let served = landfall_serve(&place, &["b.tar.zst"]);
    let here = format!("{}/git/{}/team/platform.git", served.url(), server.address);
    output(&place, ".", &["clone", "-q", &here, "before"]);
    std::fs::copy(place.path("b.tar.zst"), place.path("new")).unwrap();
    std::fs::rename(place.path("new"), place.path("b.tar.zst")).unwrap();
    let files = format!("/proc/{}/fd", served.pid());
    let holds_old_bundle = || {
        std::fs::read_dir(&files).unwrap().any(|file| {
            let target = file.and_then(|file| std::fs::read_link(file.path()));
            target.is_ok_and(|path| path.to_string_lossy().ends_with("b.tar.zst (deleted)"))
        })
    };
    assert!(holds_old_bundle());
    run(Command::new("sh").args(["-c", &format!("kill -HUP {}", served.pid())]));
    wait_for("the reload", || served.log().contains("reloaded"));
    wait_for("the end of the old bundle", || !holds_old_bundle());
    output(&place, ".", &["clone", "-q", &here, "after"]);
}

#[test]
fn a_repository_is_locked_packed_and_served_to_real_git() {
    let Some(server) = GitServer::new() else {
        return;
    };
    let repository = sample(&server);
    let place = Place::new();
    let url = server.url("team/platform.git");
    place.write("m.yaml", manifest(&url, "refs: [main, side], tags: \".*\""));
    place.ok(&["lock", "-f", "m.yaml"]);
    place.ok(&["pull"]);
    place.ok(&["pack", "-o", "b.tar.zst"]);
    place.ok(&["verify", "b.tar.zst"]);
    assert!(place.ok(&["ls", "b.tar.zst"]).contains("platform.git"));
    // from here on, landfall uses only the bundle
    let served = landfall_serve(&place, &["b.tar.zst"]);
    let here = format!("{}/git/{}/team/platform.git", served.url(), server.address);
    assert_eq!(refs(&server, &here), refs(&server, &url));
    for version in ["0", "2"] {
        let protocol = format!("protocol.version={version}");
        let clone = format!("clone-{version}");
        let args = ["-c", &protocol, "clone", "-q", &here, &clone];
        output(&place, ".", &args);
        output(&place, &clone, &["fsck", "--strict"]);
        let all = |folder: &Path| server.git(folder, &["rev-list", "--all", "--objects"]);
        let mut objects: Vec<String> = all(&repository).lines().map(str::to_owned).collect();
        output(
            &place,
            &clone,
            &["fetch", "-q", "origin", "refs/heads/*:refs/heads/x/*"],
        );
        let mut cloned: Vec<String> = all(&place.path(&clone))
            .lines()
            .map(str::to_owned)
            .collect();
        objects.sort();
        cloned.sort();
        assert_eq!(objects, cloned, "version {version}");
        // a shallow clone, which is deepened and then completed
        let shallow = format!("shallow-{version}");
        output(
            &place,
            ".",
            &[
                "-c", &protocol, "clone", "-q", "--depth", "3", &here, &shallow,
            ],
        );
        let count = |folder: &str| output(&place, folder, &["rev-list", "--count", "HEAD"]);
        assert_eq!(count(&shallow).trim(), "3");
        output(
            &place,
            &shallow,
            &["-c", &protocol, "fetch", "-q", "--depth", "9"],
        );
        assert_eq!(count(&shallow).trim(), "9");
        output(
            &place,
            &shallow,
            &["-c", &protocol, "fetch", "-q", "--unshallow"],
        );
        assert_eq!(count(&shallow).trim(), "300");
        output(&place, &shallow, &["fsck", "--strict"]);
        // a client with some commits gets the missing ones
        let old = format!("old-{version}");
        output(
            &place,
            ".",
            &["clone", "-q", repository.to_str().unwrap(), &old],
        );
        output(&place, &old, &["reset", "-q", "--hard", "HEAD~30"]);
        output(&place, &old, &["tag", "-d", "v1.0"]);
        output(&place, &old, &["remote", "set-url", "origin", &here]);
        output(&place, &old, &["-c", &protocol, "pull", "-q", "--ff-only"]);
        assert_eq!(count(&old).trim(), "300");
        output(&place, &old, &["fsck", "--strict"]);
    }
    let args = [
        "clone",
        "-q",
        "--filter=blob:none",
        "--branch",
        "v1.0",
        &here,
        "partial",
    ];
    output(&place, ".", &args);
    output(&place, "partial", &["checkout", "-q", "v1.1"]);
    output(
        &place,
        ".",
        &["clone", "-q", "--mirror", &here, "mirror.git"],
    );
    output(&place, "mirror.git", &["fsck", "--strict"]);
    let refused = git(
        &place,
        &place.path("clone-2"),
        &["push", "origin", "HEAD:refs/heads/new"],
    )
    .output()
    .unwrap();
    assert!(!refused.status.success(), "the mirror is read-only");
    let absent = format!("{}/git/{}/team/other.git", served.url(), server.address);
    let absent = git(&place, Path::new("."), &["ls-remote", &absent])
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&absent.stderr).contains("not found"));
}

#[test]
fn a_lock_gives_the_same_packs_on_every_machine_however_the_server_packs() {
    let Some(server) = GitServer::new() else {
        return;
    };
    let repository = sample(&server);
    let url = server.url("team/platform.git");
    let first = Place::new();
    first.write("m.yaml", manifest(&url, "ref: main"));
    first.ok(&["lock", "-f", "m.yaml"]);
    first.ok(&["pull"]);
    first.ok(&["pack", "-o", "b.tar.zst"]);
    // upstream repacks the repository and gets new commits
    server.git(&repository, &["repack", "-adfq", "--depth=2", "--window=3"]);
    server.import(&repository, &history("main", 300, 5));
    let second = Place::new();
    second.write("landfall.lock", first.read("landfall.lock"));
    second.ok(&["pull"]);
    second.ok(&["pack", "-o", "b.tar.zst"]);
    assert!(first.read_bytes("b.tar.zst") == second.read_bytes("b.tar.zst"));
    let third = Place::new();
    third.write("landfall.lock", first.read("landfall.lock"));
    third.ok(&["pull", "--bundle", "c.tar.zst"]);
    assert!(first.read_bytes("b.tar.zst") == third.read_bytes("c.tar.zst"));
    // an unchanged entry keeps its pin without a request
    let before = server.requests().len();
    first.ok(&["lock", "-f", "m.yaml"]);
    assert_eq!(server.requests().len(), before);
}

#[test]
fn a_newer_lock_adds_a_pack_and_a_rewritten_history_replaces_all_packs() {
    let Some(server) = GitServer::new() else {
        return;
    };
    let repository = sample(&server);
    let url = server.url("team/platform.git");
    let place = Place::new();
    place.write("m.yaml", manifest(&url, "ref: main"));
    place.ok(&["lock", "-f", "m.yaml"]);
    place.ok(&["pull"]);
    place.ok(&["pack", "-o", "old.tar.zst"]);
    let old = packs(&place);
    server.import(&repository, &history("main", 300, 5));
    place.ok(&["lock", "-f", "m.yaml", "--refresh"]);
    let new = packs(&place);
    assert_eq!((new.len(), &new[0]), (2, &old[0]));
    assert!(new[1].1 < old[0].1 / 4, "{new:?}");
    place.ok(&["pull"]);
    place.ok(&["pack", "-o", "delta.tar.zst", "--since", "old.tar.zst"]);
    let size = |name: &str| std::fs::metadata(place.path(name)).unwrap().len();
    assert!(size("delta.tar.zst") < size("old.tar.zst") / 2);
    place.ok(&["pack", "-o", "new.tar.zst"]);
    let served = landfall_serve(&place, &["new.tar.zst"]);
    let here = format!("{}/git/{}/team/platform", served.url(), server.address);
    output(&place, ".", &["clone", "-q", &here, "clone"]);
    output(&place, "clone", &["fsck", "--strict"]);
    assert_eq!(
        output(&place, "clone", &["rev-list", "--count", "HEAD"]).trim(),
        "305"
    );
    // a machine that has only the lock writes both packs again
    let other = Place::new();
    other.write("landfall.lock", place.read("landfall.lock"));
    other.ok(&["pull"]);
    server.git(&repository, &["update-ref", "refs/heads/main", "main~20"]);
    server.import(&repository, &history("main", 400, 1));
    let report = place.json(0, &["lock", "-f", "m.yaml", "--refresh"]);
    let rewritten = packs(&place);
    assert_eq!(rewritten.len(), 1, "{report}");
}

#[test]
fn a_repository_is_pushed_to_a_registry_as_an_artifact_and_served_from_there() {
    let Some(server) = GitServer::new() else {
        return;
    };
    sample(&server);
    let place = Place::new();
    place.write(
        "m.yaml",
        manifest(&server.url("team/platform.git"), "ref: main"),
    );
    place.ok(&["lock", "-f", "m.yaml"]);
    place.ok(&["pull"]);
    let registry = own_registry();
    let report = place.json(0, &["push", "--to", &registry.address]);
    assert_eq!(report["items"][0]["kind"], "git");
    let served = landfall_serve(
        &place,
        &["--from", &registry.address, "--lock", "landfall.lock"],
    );
    let here = format!("{}/git/{}/team/platform.git", served.url(), server.address);
    output(&place, ".", &["clone", "-q", &here, "clone"]);
    output(&place, "clone", &["fsck", "--strict"]);
}

#[test]
fn exported_repositories_are_read_by_git_and_served_by_any_web_server() {
    let Some(server) = GitServer::new() else {
        return;
    };
    let repository = sample(&server);
    let place = Place::new();
    let url = server.url("team/platform.git");
    place.write("m.yaml", manifest(&url, "ref: main, tags: \".*\""));
    place.ok(&["lock", "-f", "m.yaml"]);
    server.import(&repository, &history("main", 300, 3));
    place.ok(&["lock", "-f", "m.yaml", "--refresh"]);
    place.ok(&["pull"]);
    place.ok(&["pack", "-o", "b.tar.zst"]);
    let report = place.json(
        0,
        &["export", "git", "b.tar.zst", "-o", "repos", "--dry-run"],
    );
    assert!(!place.path("repos").exists(), "{report}");
    place.ok(&["export", "git", "b.tar.zst", "-o", "repos"]);
    let path = format!("repos/{}/team/platform.git", server.address);
    output(&place, &path, &["fsck", "--strict"]);
    let shown = |args: &[&str]| output(&place, &path, args);
    let listed = refs(&server, &url);
    let carried: String = listed
        .lines()
        .filter(|line| !line.ends_with("refs/heads/side"))
        .map(|line| format!("{line}\n"))
        .collect();
    assert_eq!(shown(&["ls-remote", "."]), carried);
    output(&place, ".", &["clone", "-q", &path, "clone"]);
    let web = file_server(&place.path("repos"));
    let dumb = format!("{}/{}/team/platform.git", web.url(), server.address);
    output(&place, ".", &["clone", "-q", &dumb, "dumb"]);
    assert_eq!(
        output(&place, "dumb", &["rev-list", "--count", "HEAD"]).trim(),
        "303"
    );
    let again = place.json(0, &["export", "git", "b.tar.zst", "-o", "repos"]);
    assert_eq!(again["totals"]["done"], 0, "{again}");

    // a repository whose folder would be a ref of another one
    let lock = place.read("landfall.lock");
    let (head, entry) = lock.split_once("git:\n").unwrap();
    let entry = entry.trim_end_matches("...\n");
    let inner = entry.replace("platform.git", "platform.git/refs/heads/x");
    let export = |inner: &str| {
        place.write("nested.lock", format!("{head}git:\n{entry}{inner}...\n"));
        let export = ["export", "git", "nested.lock", "-o", "nested"];
        place.command().args(export).output().unwrap()
    };
    // the digest of an entry depends on its URL, and the refusal has the right one
    let printed = String::from_utf8_lossy(&export(&inner).stderr).into_owned();
    let digests: Vec<&str> = printed
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == ':'))
        .filter(|word| word.starts_with("sha256:"))
        .collect();
    let [written, right] = digests[..] else {
        panic!("{printed}")
    };
    let run = export(&inner.replace(written, right));
    let printed = String::from_utf8_lossy(&run.stderr);
    assert!(
        run.status.code() == Some(1)
            && printed.contains("its folder would be inside that of")
            && !place.path("nested").exists(),
        "{printed}"
    );
}

#[test]
fn tags_of_folders_and_files_are_carried_and_do_not_prevent_a_clone() {
    let Some(server) = GitServer::new() else {
        return;
    };
    let repository = sample(&server);
    let tag = |name: &str, object: &str| {
        server.git(&repository, &["tag", "-a", "-m", "x", name, object]);
    };
    tag("x1-tag", "v1.0");
    tag("x2-tree", "main^{tree}");
    tag("x3-file", "main:src/d0/f0.txt");
    let url = server.url("team/platform.git");
    let listed = refs(&server, &url);
    for (wanted, has_commit) in [("tags: ^x", true), ("ref: x2-tree", false)] {
        let place = Place::new();
        place.write("m.yaml", manifest(&url, wanted));
        place.ok(&["lock", "-f", "m.yaml"]);
        place.ok(&["pull"]);
        place.ok(&["pack", "-o", "b.tar.zst"]);
        place.ok(&["export", "git", "b.tar.zst", "-o", "repos"]);
        let path = format!("repos/{}/team/platform.git", server.address);
        let export = [
            "export",
            "git",
            "b.tar.zst",
            "--format",
            "bundle",
            "-o",
            "bundles",
        ];
        place.ok(&export);
        let bundle = format!("bundles/{}/team/platform.bundle", server.address);
        let serving = landfall_serve(&place, &["b.tar.zst"]);
        let served = format!("{}/git/{}/team/platform.git", serving.url(), server.address);
        for (from, clone) in [
            (&path, "exported"),
            (&bundle, "bundled"),
            (&served, "served"),
        ] {
            output(&place, ".", &["clone", "-q", "--mirror", from, clone]);
            output(&place, clone, &["fsck", "--strict"]);
            let mirrored = output(&place, clone, &["show-ref", "-d"]);
            assert!(mirrored.contains("x2-tree"), "{mirrored}");
            for line in mirrored.lines() {
                let line = line.replacen(' ', "\t", 1);
                assert!(listed.lines().any(|one| one == line), "{line}: {listed}");
            }
            let head = git(&place, &place.path(clone), &["cat-file", "-t", "HEAD"])
                .output()
                .unwrap();
            let is_commit = head.status.success() && head.stdout == b"commit\n";
            // without a branch, `serve` offers a commit only if there is no other ref
            let is_expected = has_commit && clone != "served";
            assert_eq!(is_commit, is_expected, "{wanted}, {clone}: {head:?}");
        }
    }
}

#[test]
fn branches_and_tags_are_pushed_to_a_git_server_and_a_moved_tag_is_kept() {
    let Some(server) = GitServer::new() else {
        return;
    };
    let upstream = sample(&server);
    let place = Place::new();
    let url = server.url("team/platform.git");
    place.write("m.yaml", manifest(&url, "refs: [main], tags: \".*\""));
    place.ok(&["lock", "-f", "m.yaml"]);
    place.ok(&["pull"]);
    let site = GitServer::new().unwrap();
    let repository = site.create("mirror/team/platform.git");
    let to = format!("{}/mirror", site.url("").trim_end_matches('/'));
    let statuses = |report: &Value| {
        let items = report["items"].as_array().unwrap().iter();
        items
            .map(|item| item["status"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    // this server ignores the password, which must not appear in the output
    let with_password = to.replacen("://", "://me:s3cret@", 1);
    let dry_run = ["push", "--git-to", &with_password, "--dry-run"];
    let dry = place.json(0, &dry_run);
    assert_eq!(statuses(&dry), ["skipped"], "{dry}");
    let told = place.ok(&dry_run);
    assert!(
        told.contains("would be pushed to") && !format!("{dry}{told}").contains("s3cret"),
        "{dry}{told}"
    );
    assert_eq!(site.git(&repository, &["for-each-ref"]), "");
    assert_eq!(
        statuses(&place.json(0, &["push", "--git-to", &to])),
        ["done"]
    );
    let shown = |folder: &Path| {
        let refs = server.git(
            folder,
            &["for-each-ref", "--format=%(objectname) %(refname)"],
        );
        refs.lines()
            .filter(|line| !line.ends_with("/side"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(shown(&repository), shown(&upstream));
    site.git(&repository, &["fsck", "--strict"]);
    assert_eq!(
        statuses(&place.json(0, &["push", "--git-to", &to])),
        ["present"]
    );
    // upstream gets new commits, and a tag is moved at the site
    server.import(&upstream, &history("main", 300, 4));
    site.git(&repository, &["tag", "-f", "v1.1", "main~50"]);
    let moved = shown(&repository);
    place.ok(&["lock", "-f", "m.yaml", "--refresh"]);
    place.ok(&["pull"]);
    place.ok(&["pack", "-o", "b.tar.zst"]);
    for dry_run in [&["--dry-run"][..], &[]] {
        let push = [&["push", "b.tar.zst", "--git-to", &to], dry_run].concat();
        let report = place.json(1, &push);
        let reason = report["items"][0]["reason"].as_str().unwrap();
        assert!(
            reason.contains("refs/tags/v1.1") && reason.contains("--move-tags"),
            "{reason}"
        );
        let is_unchanged = shown(&repository) == moved;
        assert_eq!(is_unchanged, !dry_run.is_empty(), "{dry_run:?}");
    }
    let main = |folder: &Path| server.git(folder, &["rev-parse", "main"]);
    assert_eq!(main(&repository), main(&upstream), "the branch was updated");
    assert_eq!(shown(&repository)[1..], moved[1..], "the tag is unchanged");
    place.ok(&["push", "b.tar.zst", "--git-to", &to, "--move-tags"]);
    assert_eq!(shown(&repository), shown(&upstream));
    // a URL without a repository: the content is there, but cannot be delivered
    let report = place.json(1, &["push", "--git-to", &format!("{to}/none")]);
    assert_eq!(statuses(&report), ["failed"], "{report}");
}

#[test]
fn a_dry_run_exits_with_3_if_only_some_repositories_would_be_pushed() {
    let Some(server) = GitServer::new() else {
        return;
    };
    let urls = ["team/a.git", "team/b.git"].map(|name| {
        let repository = server.create(name);
        server.import(&repository, &history("main", 0, 3));
        server.url(name)
    });
    let place = Place::new();
    let second = format!("- {{url: \"{}\", refs: [main]}}\n", urls[1]);
    place.write("m.yaml", manifest(&urls[0], "refs: [main]") + &second);
    place.ok(&["lock", "-f", "m.yaml"]);
    place.ok(&["pull"]);
    place.ok(&["pack", "-o", "b.tar.zst"]);
    let site = GitServer::new().unwrap();
    site.create("mirror/team/a.git");
    let to = format!("{}/mirror", site.url("").trim_end_matches('/'));
    for (more, status) in [(&["--dry-run"][..], "skipped"), (&[][..], "done")] {
        let report = place.json(3, &[&["push", "b.tar.zst", "--git-to", &to], more].concat());
        let of_item = |at: usize| report["items"][at]["status"].as_str().unwrap();
        assert_eq!((of_item(0), of_item(1)), (status, "failed"), "{report:#}");
        // for the evidence log
        assert_eq!(report["to"], to);
        assert!(report["lock"].is_string(), "{report:#}");
        assert_eq!(report["bundle"]["lock"], report["lock"], "{report:#}");
    }
    // a repository that could not be locked is reported
    let lost =
        "\nunresolved:\n- {kind: git, name: \"git+https://h.test/gone.git\", cause: gone}\n...\n";
    let lock = place.read("landfall.lock").replace("\n...\n", lost);
    place.write("lost.lock", lock);
    let report = place.json(3, &["push", "--lock", "lost.lock", "--git-to", &to]);
    let items = report["items"].as_array().unwrap().iter();
    let statuses: Vec<&Value> = items.map(|item| &item["status"]).collect();
    assert_eq!(statuses, ["present", "failed", "missing"], "{report:#}");
    // flags that only registries support are not ignored
    for flags in [
        &["--all-or-nothing"][..],
        &["--skip-kinds", "image"],
        &["--referrers", "skip"],
        &["127.0.0.1:9"],
    ] {
        let push = [&["push", "b.tar.zst", "--git-to", &to], flags].concat();
        place.landfall().args(push).assert().code(2);
    }
}

#[test]
fn a_receipt_without_a_repository_is_not_a_complete_delivery() {
    let Some(server) = GitServer::new() else {
        return;
    };
    sample(&server);
    let place = Place::new();
    let url = server.url("team/platform.git");
    place.write("m.yaml", manifest(&url, "refs: [main]"));
    place.ok(&["lock", "-f", "m.yaml"]);
    place.ok(&["pull"]);
    place.ok(&["pack", "-o", "b.tar.zst"]);
    let registry = own_registry();
    let to = &registry.address;
    place.ok(&["push", "b.tar.zst", "--to", to, "--receipt", "r.json"]);
    let refresh = [
        "refresh",
        "-f",
        "m.yaml",
        "-o",
        "d.tar.zst",
        "--since",
        "r.json",
    ];
    let report = place.json(0, &refresh);
    assert!(report.get("bundle").is_none(), "{report:#}");
    // as after a push that failed for the repository
    let mut receipt: Value = serde_json::from_str(&place.read("r.json")).unwrap();
    receipt["items"].as_array_mut().unwrap().clear();
    place.write("r.json", receipt.to_string());
    let report = place.json(0, &refresh);
    assert!(report["bundle"]["digest"].is_string(), "{report:#}");
}

/// Before, `update: digest` was accepted and had no effect.
#[test]
fn an_update_follows_branches_with_the_policy_digest() {
    let Some(server) = GitServer::new() else {
        return;
    };
    let repository = sample(&server);
    let place = Place::new();
    let url = server.url("team/platform.git");
    place.write(
        "m.yaml",
        manifest(&url, "refs: [main, v1.1], update: digest"),
    );
    place.ok(&["lock", "-f", "m.yaml"]);
    let old = locked(&place);
    let check = ["update", "-f", "m.yaml", "--check"];
    place.json(0, &check);
    server.import(&repository, &history("main", 1000, 2));
    let report = place.json(4, &check);
    let mut notices = report["notices"].as_array().unwrap().iter();
    assert!(notices.any(|one| one["kind"] == "moved"), "{report}");
    assert_eq!(locked(&place), old);
    place.json(0, &["update", "-f", "m.yaml"]);
    let new = locked(&place);
    assert_ne!(new["refs"], old["refs"]);
    // a delta to the old lock has the new commits only
    assert_eq!(new["packs"][0], old["packs"][0]);
    assert_eq!(packs(&place).len(), 2);
    place.json(0, &check);
    place.ok(&["pull"]);

    // a branch without the policy stays
    place.write("m.yaml", manifest(&url, "refs: [main, v1.1]"));
    server.import(&repository, &history("main", 2000, 1));
    place.json(0, &check);
    place.json(0, &["update", "-f", "m.yaml"]);
    assert_eq!(locked(&place)["refs"], new["refs"]);
}

#[test]
fn refs_that_upstream_lacks_are_unresolved() {
    let Some(server) = GitServer::new() else {
        return;
    };
    sample(&server);
    let place = Place::new();
    place.write(
        "m.yaml",
        manifest(&server.url("team/platform.git"), "ref: v9"),
    );
    let report = place.json(1, &["lock", "-f", "m.yaml"]);
    assert!(report.to_string().contains("v9"), "{report}");
    place.write("m.yaml", manifest(&server.url("team/none.git"), "ref: v9"));
    place.json(1, &["lock", "-f", "m.yaml"]);
    let bad = [
        ("https://h/a.git", "ref: \"../x\""),
        ("https://h/a.git", "tags: \"(\""),
        ("ssh://h/a.git", "ref: main"),
        ("https://u:p@h/a.git", "ref: main"),
        ("https://h/a.git", "ref: ${x}"),
    ];
    for (url, more) in bad {
        place.write("m.yaml", manifest(url, more));
        place.json(2, &["lock", "-f", "m.yaml"]);
    }
}

#[test]
fn unchanged_and_rewritten_urls_lead_to_the_mirror() {
    let Some(server) = GitServer::new() else {
        return;
    };
    sample(&server);
    let place = Place::new();
    let url = server.url("team/platform.git");
    place.write("m.yaml", manifest(&url, "ref: main"));
    place.ok(&["lock", "-f", "m.yaml"]);
    place.ok(&["pull"]);
    place.ok(&["pack", "-o", "b.tar.zst"]);
    let served = landfall_serve(&place, &["b.tar.zst"]);
    let site = format!(
        "apiVersion: landfall/v1\nkind: Site\nfiles: {}\nproxy: {{http: \"http://127.0.0.1:1\"}}\n",
        served.url()
    );
    place.write("site.yaml", site);
    let rendered = place.ok(&["render", "git", "--site", "site.yaml"]);
    let here = format!("{}/{}/team/platform.git", served.url(), server.address);
    assert!(
        rendered.contains(&format!("[url \"{here}\"]\n\tinsteadOf = \"{url}\"\n")),
        "{rendered}"
    );
    // a proxy of the user for all hosts does not apply to the mirror
    let proxy = "[http]\n\tproxy = http://127.0.0.1:1\n";
    place.write("home/.gitconfig", format!("{proxy}{rendered}"));
    let before = server.requests().len();
    output(&place, ".", &["clone", "-q", &url, "clone"]);
    assert_eq!(
        server.requests().len(),
        before,
        "no request was sent upstream"
    );
    let fetched_from = |url: &str| output(&place, ".", &["ls-remote", "--get-url", url]);
    assert_eq!(
        fetched_from(&format!("{url}/info/lfs")),
        format!("{here}/info/lfs\n")
    );
    // other repositories whose URLs begin with the URL of the locked one
    for other in ["hub.io", "-wiki", "2"] {
        let other = format!("{url}{other}");
        assert_eq!(fetched_from(&other), format!("{other}\n"));
    }
    let documents = format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\nspec:\n  source: {{repoURL: '{url}', path: a}}\n---\n\
         apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nspec:\n  url: {url}\n  ref: {{branch: main}}\n"
    );
    place.write("apps.yaml", &documents);
    let rewritten = place.ok(&[
        "rewrite",
        "apps.yaml",
        "--site",
        "site.yaml",
        "--to",
        "127.0.0.1:1",
    ]);
    assert_eq!(rewritten, documents.replace(&url, &here));
    place.write(
        "other.yaml",
        documents.replace("platform.git", "platform2.git"),
    );
    place.ok(&["audit", "apps.yaml"]);
    let report = place.json(4, &["audit", "other.yaml"]);
    assert!(
        report["missing"].to_string().contains("platform2"),
        "{report}"
    );
}
