//! Git bundles that `export git --format bundle` writes, compared with bundles of git itself.

use super::{manifest, output};
use crate::support::Place;
use crate::support::git::{GitServer, history};

/// 60 commits on `main`, a branch that is not carried, an annotated and a plain tag.
fn sample(server: &GitServer) -> std::path::PathBuf {
    let repository = server.create("team/platform.git");
    server.import(&repository, &history("main", 0, 60));
    server.git(&repository, &["branch", "other", "main~3"]);
    server.git(&repository, &["tag", "-a", "-m", "one", "v1.0", "main~20"]);
    server.git(&repository, &["tag", "v1.1", "main~10"]);
    repository
}

/// Locks and pulls the repository; `more` are further fields of its manifest entry.
fn pull(place: &Place, server: &GitServer, more: &str) {
    place.write("m.yaml", manifest(&server.url("team/platform.git"), more));
    place.ok(&["lock", "-f", "m.yaml", "--refresh"]);
    place.ok(&["pull"]);
}

#[test]
fn an_exported_bundle_is_like_one_that_git_creates() {
    let Some(server) = GitServer::new() else {
        return;
    };
    let repository = sample(&server);
    let place = Place::new();
    let export = ["export", "git", "-o", "out", "--format", "bundle"];
    pull(&place, &server, "ref: main, tags: \".*\"");
    place.ok(&[&export[..], &["--dry-run"]].concat());
    assert!(!place.path("out").exists());
    place.ok(&export);
    let bundle = format!("out/{}/team/platform.bundle", server.address);
    output(&place, ".", &["clone", "-q", &bundle, "old"]);
    // a second pack, whose deltas have bases in the first
    server.import(&repository, &history("main", 60, 10));
    pull(&place, &server, "ref: main, tags: \".*\"");
    place.ok(&export);
    let again = place.ok(&export);
    assert!(
        again.contains("0 files written") && again.contains("1 unchanged"),
        "{again}"
    );
    let created = place.path("created.bundle");
    let created = created.to_str().unwrap();
    let args = ["bundle", "create", "-q", created, "main", "HEAD", "--tags"];
    server.git(&repository, &args);
    output(
        &place,
        "old",
        &["bundle", "verify", &format!("../{bundle}")],
    );
    let heads = |bundle: &str| {
        let listed = output(&place, ".", &["bundle", "list-heads", bundle]);
        let mut lines: Vec<String> = listed.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(heads(&bundle), heads(created));
    let [ours, gits] = [&*bundle, created].map(|name| place.read_bytes(name).len());
    assert!(ours < gits * 5 / 4, "{ours} {gits}");
    let cloned = |bundle: &str, name: &str| {
        output(&place, ".", &["clone", "-q", "--mirror", bundle, name]);
        output(&place, name, &["fsck", "--strict"]);
        let all = ["cat-file", "--batch-check", "--batch-all-objects"];
        output(&place, name, &all)
    };
    assert_eq!(cloned(&bundle, "ours.git"), cloned(created, "gits.git"));
    // a clone of the old bundle fetches from the new one
    output(&place, "old", &["pull", "-q", "--ff-only"]);
    let count = output(&place, "old", &["rev-list", "--count", "HEAD"]);
    assert_eq!(count.trim(), "70");
    let branch = output(&place, "old", &["symbolic-ref", "--short", "HEAD"]);
    assert_eq!(branch.trim(), "main");
}

#[test]
fn a_shallow_history_is_not_exported_as_a_bundle() {
    let Some(server) = GitServer::new() else {
        return;
    };
    sample(&server);
    let place = Place::new();
    pull(&place, &server, "ref: main, depth: 2");
    let report = place.json(1, &["export", "git", "-o", "out", "--format", "bundle"]);
    let why = report["items"][0]["reason"].as_str().unwrap();
    assert!(why.contains("--format bare"), "{why}");
    assert!(!place.path("out").exists());
}

#[test]
fn a_clone_of_a_bundle_of_tags_checks_out_the_last_tag() {
    let Some(server) = GitServer::new() else {
        return;
    };
    let repository = sample(&server);
    let place = Place::new();
    pull(&place, &server, "refs: [v1.0, v1.1]");
    place.ok(&["export", "git", "-o", "out", "--format", "bundle"]);
    let bundle = format!("out/{}/team/platform.bundle", server.address);
    output(&place, ".", &["clone", "-q", &bundle, "clone"]);
    let commit = server.git(&repository, &["rev-parse", "v1.1"]);
    assert_eq!(output(&place, "clone", &["rev-parse", "HEAD"]), commit);
}
