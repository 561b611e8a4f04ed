//! Gitea as the git server of a site.

use super::manifest;
use crate::support::git::{GitServer, history};
use crate::support::gitea::{ACCOUNT, Gitea};
use crate::support::{Place, need};
use serde_json::Value;
use std::path::Path;

fn status_of(report: &Value) -> &str {
    report["items"][0]["status"].as_str().unwrap()
}

#[test]
fn gitea_accepts_branches_and_tags_and_keeps_a_tag_that_was_moved_there() {
    if !need(&["git"]) {
        return;
    }
    let place = Place::new();
    let Some(gitea) = Gitea::start(&place, &[]) else {
        return;
    };
    let server = GitServer::new().unwrap();
    let upstream = server.create("site/platform.git");
    server.import(&upstream, &history("main", 0, 300));
    server.git(&upstream, &["tag", "-a", "-m", "one", "v1.0", "main~10"]);
    server.git(&upstream, &["tag", "v1.1", "main~5"]);
    place.write(
        "m.yaml",
        manifest(
            &server.url("site/platform.git"),
            "refs: [main], tags: \".*\"",
        ),
    );
    place.write("account", ACCOUNT);
    place.write(
        "site.yaml",
        format!(
            "apiVersion: landfall/v1\nkind: Site\nupstreams:\n  \"{}\": {{plainHTTP: true, \
             credentials: {{file: account}}}}\n",
            gitea.address
        ),
    );
    let to = gitea.url("");
    let to = to.trim_end_matches('/');
    let push = |exit: i32, more: &[&str]| {
        let push = ["push", "--git-to", to, "--site", "site.yaml"];
        place.json(exit, &[&push, more].concat())
    };
    let remote = gitea.url("site/platform.git");
    let refs = |repository: &str| {
        let shown = server.git(Path::new("."), &["ls-remote", repository, "refs/*"]);
        shown.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let local = upstream.display().to_string();
    place.ok(&["lock", "-f", "m.yaml"]);
    place.ok(&["pull"]);
    assert_eq!(status_of(&push(0, &[])), "done");
    assert_eq!(refs(&remote), refs(&local));
    assert_eq!(status_of(&push(0, &[])), "present");
    let clone = place.path("clone").display().to_string();
    server.git(Path::new("."), &["clone", "-q", &remote, &clone]);
    server.git(Path::new(&clone), &["fsck", "--strict"]);
    // upstream gets new commits, and a tag is moved at the site
    server.import(&upstream, &history("main", 300, 4));
    let as_site = remote.replacen("://", &format!("://{ACCOUNT}@"), 1);
    let moved = ["push", "-q", "-f", &as_site, "v1.0^{}:refs/tags/v1.1"];
    server.git(Path::new(&clone), &moved);
    let before = refs(&remote);
    place.ok(&["lock", "-f", "m.yaml", "--refresh"]);
    place.ok(&["pull"]);
    let report = push(1, &[]);
    let reason = report["items"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("refs/tags/v1.1"), "{reason}");
    let is_tag = |line: &String| line.ends_with("/v1.1");
    assert_eq!(
        refs(&remote).iter().find(|line| is_tag(line)),
        before.iter().find(|line| is_tag(line))
    );
    push(0, &["--move-tags"]);
    assert_eq!(refs(&remote), refs(&local));
}
