//! `depth` of a repository, and commits by their ids.

use super::{locked, manifest, output};
use crate::support::git::{GitServer, GitServerBehavior, git, history};
use crate::support::{Place, landfall_serve};
use std::path::Path;

/// 30 commits, a merge commit and a tag.
fn sample(server: &GitServer) -> std::path::PathBuf {
    let repository = server.create("team/platform.git");
    server.import(&repository, &history("main", 0, 30));
    server.import(
        &repository,
        "commit refs/heads/main\ncommitter T <t@example.com> 1600000900 +0000\ndata 5\nmerge\n\
         from refs/heads/main^0\nmerge refs/heads/main~10\nM 100644 inline m\ndata 1\nm\n\n",
    );
    server.git(&repository, &["tag", "-a", "-m", "one", "v1.0", "main~20"]);
    repository
}

/// Before, such servers were refused. Azure DevOps is one.
#[test]
fn servers_that_speak_only_version_0_give_the_same_locks() {
    let Some(server) = GitServer::new() else {
        return;
    };
    let repository = sample(&server);
    let commit = server.git(&repository, &["rev-parse", "main~7"]);
    let url = server.url("team/platform.git");
    let lock = |place: &Place, only_version_0: bool| {
        server.set(GitServerBehavior {
            only_version_0,
            ..GitServerBehavior::default()
        });
        place.ok(&["lock", "-f", "m.yaml"]);
        // a machine that has only the lock
        let other = Place::new();
        other.write("landfall.lock", place.read("landfall.lock"));
        other.ok(&["pull"]);
        place.read("landfall.lock")
    };
    for (number, refs) in [
        "refs: [main, v1.0]",
        "ref: main, depth: 3",
        &format!("ref: {}", commit.trim()),
    ]
    .into_iter()
    .enumerate()
    {
        let places = [Place::new(), Place::new()];
        for place in &places {
            place.write("m.yaml", manifest(&url, refs));
        }
        assert_eq!(lock(&places[0], true), lock(&places[1], false), "{refs}");
        // the second pack has only what the first lacks
        server.import(&repository, &history("main", 100 + number, 3));
        assert_eq!(lock(&places[0], true), lock(&places[1], false), "{refs}");
    }
}

#[test]
fn servers_of_version_0_send_only_what_the_store_lacks() {
    let Some(server) = GitServer::new() else {
        return;
    };
    let repository = sample(&server);
    server.set(GitServerBehavior {
        only_version_0: true,
        ..GitServerBehavior::default()
    });
    let place = Place::new();
    let url = server.url("team/platform.git");
    place.write("m.yaml", manifest(&url, "refs: [main, v1.0]"));
    let lock = || {
        let report = place.json(0, &["lock", "-f", "m.yaml", "--refresh"]);
        report["hosts"][0]["bytes"].as_u64().unwrap()
    };
    let whole = lock();
    server.import(&repository, &history("main", 100, 1));
    let new = lock();
    assert!(3 * new < whole, "{new} of {whole} bytes");
    // upstream no longer has the locked commit
    server.git(&repository, &["update-ref", "refs/heads/main", "main~3"]);
    server.git(&repository, &["reflog", "expire", "--expire=now", "--all"]);
    server.git(&repository, &["gc", "-q", "--prune=now"]);
    server.import(&repository, &history("main", 200, 1));
    lock();
    place.ok(&["pull"]);
}

#[test]
fn a_shallow_upstream_needs_a_depth() {
    let Some(server) = GitServer::new() else {
        return;
    };
    let repository = sample(&server);
    let from = format!("file://{}", repository.display());
    let shallow = repository.with_file_name("shallow.git");
    let shallow = shallow.to_str().unwrap();
    let clone = ["clone", "-q", "--bare", "--depth", "2", &from, shallow];
    server.git(Path::new("."), &clone);
    let url = server.url("team/shallow.git");
    let place = Place::new();
    place.write("m.yaml", manifest(&url, "ref: main"));
    let report = place.json(1, &["lock", "-f", "m.yaml"]);
    let reason = report["items"][0]["reason"].as_str().unwrap();
    let words = "is missing: upstream did not send it; if upstream is a shallow clone, set `depth`";
    assert!(reason.contains(words), "{reason}");
    place.write("m.yaml", manifest(&url, "ref: main, depth: 1"));
    place.ok(&["lock", "-f", "m.yaml"]);
}

#[test]
fn a_shallow_repository_is_the_same_on_every_machine_and_is_served_shallow() {
    let Some(server) = GitServer::new() else {
        return;
    };
    let repository = sample(&server);
    let place = Place::new();
    let url = server.url("team/platform.git");
    place.write("m.yaml", manifest(&url, "refs: [main, v1.0], depth: 3"));
    place.ok(&["lock", "-f", "m.yaml"]);
    place.ok(&["pull"]);
    place.ok(&["pack", "-o", "b.tar.zst"]);
    place.ok(&["verify", "b.tar.zst"]);
    // a shallow clone of the upstream, for comparison
    let clone = [
        "clone",
        "-q",
        "--bare",
        "--depth",
        "3",
        "--no-single-branch",
    ];
    output(&place, ".", &[&clone[..], &[&url, "upstream.git"]].concat());
    let shallow = locked(&place)["shallow"].as_array().unwrap().clone();
    let mut expected: Vec<String> = place
        .read("upstream.git/shallow")
        .lines()
        .map(str::to_owned)
        .collect();
    expected.sort();
    assert_eq!(shallow, expected);
    let objects = |folder: &str| {
        let listed = output(
            &place,
            folder,
            &["cat-file", "--batch-check", "--batch-all-objects"],
        );
        let mut lines: Vec<String> = listed.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    server.git(&repository, &["repack", "-adfq"]);
    let other = Place::new();
    other.write("landfall.lock", place.read("landfall.lock"));
    other.ok(&["pull", "--bundle", "b.tar.zst"]);
    assert!(place.read_bytes("b.tar.zst") == other.read_bytes("b.tar.zst"));
    let served = landfall_serve(&place, &["b.tar.zst"]);
    let here = format!("{}/git/{}/team/platform.git", served.url(), server.address);
    for version in ["0", "2"] {
        let protocol = format!("protocol.version={version}");
        let name = format!("clone-{version}.git");
        output(
            &place,
            ".",
            &["-c", &protocol, "clone", "-q", "--mirror", &here, &name],
        );
        output(&place, &name, &["fsck", "--strict"]);
        assert_eq!(objects(&name), objects("upstream.git"), "version {version}");
        // a clone with fewer commits than the mirror, which later fetches the remaining commits
        let name = format!("one-{version}");
        let args = ["-c", &protocol, "clone", "-q", "--depth", "1", &here, &name];
        output(&place, ".", &args);
        let count = || {
            output(&place, &name, &["rev-list", "--count", "HEAD"])
                .trim()
                .to_owned()
        };
        assert_eq!(count(), "1");
        output(
            &place,
            &name,
            &["-c", &protocol, "fetch", "-q", "--depth", "9"],
        );
        output(&place, &name, &["fsck", "--strict"]);
        assert_eq!(
            count(),
            output(&place, "upstream.git", &["rev-list", "--count", "main"]).trim()
        );
    }
    place.ok(&["export", "git", "b.tar.zst", "-o", "repos"]);
    let exported = format!("repos/{}/team/platform.git", server.address);
    output(&place, &exported, &["fsck", "--strict"]);
    assert_eq!(objects(&exported), objects("upstream.git"));
    output(
        &place,
        ".",
        &[
            "clone",
            "-q",
            &format!("file://{}", place.path(&exported).display()),
            "e",
        ],
    );
}

/// A git server refuses shallow pushes unless `receive.shallowUpdate` is set.
#[test]
fn a_shallow_push_is_refused_unless_the_server_accepts_it() {
    let Some(server) = GitServer::new() else {
        return;
    };
    sample(&server);
    let place = Place::new();
    let url = server.url("team/platform.git");
    place.write("m.yaml", manifest(&url, "ref: v1.0, depth: 2"));
    place.ok(&["lock", "-f", "m.yaml"]);
    place.ok(&["pull"]);
    let site = GitServer::new().unwrap();
    let target = site.create("team/platform.git");
    let to = site.url("");
    let report = place.json(1, &["push", "--git-to", &to]);
    assert!(
        report.to_string().contains("shallow update not allowed"),
        "{report}"
    );
    site.git(&target, &["config", "receive.shallowUpdate", "true"]);
    place.ok(&["push", "--git-to", &to]);
    site.git(&target, &["fsck", "--strict"]);
    assert_eq!(
        site.git(&target, &["rev-list", "--count", "v1.0"]).trim(),
        "2"
    );
}

#[test]
fn another_depth_or_newer_commits_replace_the_pack() {
    let Some(server) = GitServer::new() else {
        return;
    };
    let repository = sample(&server);
    let place = Place::new();
    let url = server.url("team/platform.git");
    let count = |more: &str| {
        place.write("m.yaml", manifest(&url, more));
        place.ok(&["lock", "-f", "m.yaml", "--refresh"]);
        place.ok(&["pull"]);
        let lock = locked(&place);
        assert_eq!(lock["packs"].as_array().unwrap().len(), 1);
        place.ok(&["pack", "-o", "b.tar.zst"]);
        let served = landfall_serve(&place, &["b.tar.zst"]);
        let here = format!("{}/git/{}/team/platform.git", served.url(), server.address);
        let name = format!("clone-{}", server.requests().len());
        output(&place, ".", &["clone", "-q", &here, &name]);
        output(&place, &name, &["rev-list", "--count", "HEAD"])
            .trim()
            .to_owned()
    };
    assert_eq!(count("ref: main, depth: 1"), "1");
    let before = place.read("landfall.lock");
    assert_eq!(count("ref: main, depth: 1"), "1");
    assert_eq!(place.read("landfall.lock"), before);
    server.import(&repository, &history("main", 40, 2));
    assert_eq!(count("ref: main, depth: 2"), "2");
    assert_eq!(count("ref: main"), "33");
    place.write("m.yaml", manifest(&url, "ref: main, depth: 0"));
    place.json(2, &["lock", "-f", "m.yaml"]);
}

#[test]
fn a_commit_is_carried_by_its_id() {
    let Some(server) = GitServer::new() else {
        return;
    };
    let repository = sample(&server);
    let place = Place::new();
    let url = server.url("team/platform.git");
    let commit = server.git(&repository, &["rev-parse", "main~7"]);
    let commit = commit.trim();
    place.write("m.yaml", manifest(&url, &format!("ref: \"{commit}\"")));
    place.ok(&["lock", "-f", "m.yaml"]);
    place.ok(&["pull"]);
    place.ok(&["pack", "-o", "b.tar.zst"]);
    let served = landfall_serve(&place, &["b.tar.zst"]);
    let here = format!("{}/git/{}/team/platform.git", served.url(), server.address);
    let tag = format!("commit-{}", &commit[..12]);
    output(
        &place,
        ".",
        &["clone", "-q", "--branch", &tag, &here, "clone"],
    );
    assert_eq!(
        output(&place, "clone", &["rev-parse", "HEAD"]).trim(),
        commit
    );
    for version in ["0", "2"] {
        let protocol = format!("protocol.version={version}");
        let folder = format!("f{version}");
        output(&place, ".", &["init", "-q", &folder]);
        let fetch = ["-c", &protocol, "fetch", "-q", &here, commit];
        output(&place, &folder, &fetch);
        assert_eq!(
            output(&place, &folder, &["rev-parse", "FETCH_HEAD"]).trim(),
            commit
        );
    }
    let absent = "0123456789012345678901234567890123456789";
    place.write("m.yaml", manifest(&url, &format!("ref: \"{absent}\"")));
    let report = place.json(1, &["lock", "-f", "m.yaml"]);
    assert!(report.to_string().contains(absent), "{report}");
    // a branch whose name is the id of a commit does not replace the commit
    let name = format!("refs/heads/{commit}");
    let mut forged = git(&server.place, Path::new("."), &["-C"]);
    forged.arg(&repository).args(["update-ref", &name, "main"]);
    crate::support::run(&mut forged);
    place.write("m.yaml", manifest(&url, &format!("ref: \"{commit}\"")));
    place.ok(&["lock", "-f", "m.yaml", "--refresh"]);
    assert_eq!(
        locked(&place)["refs"][0],
        format!("refs/tags/{tag} {commit}")
    );
}
