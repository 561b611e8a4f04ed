//! Connections that break, runs that are killed, accounts, proxies, updates of tags, rewritten
//! histories, and a long history.

use super::{locked, manifest, output};
use crate::support::git::{GitServer, GitServerBehavior, history};
use crate::support::http::Response;
use crate::support::images::gzip;
use crate::support::reverse_proxy::{ProxyAction, ReverseProxy};
use crate::support::{Place, landfall_serve, need};
use base64::Engine as _;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};

/// A server with a repository of 300 commits, and a place with a manifest that lists it.
fn sample(refs: &str) -> Option<(GitServer, Place)> {
    let server = GitServer::new()?;
    let repository = server.create("team/platform.git");
    server.import(&repository, &history("main", 0, 300));
    let place = Place::new();
    place.write("m.yaml", manifest(&server.url("team/platform.git"), refs));
    Some((server, place))
}

/// A proxy may compress answers, although they are requested without compression.
#[test]
fn compressed_answers_are_decoded() {
    let Some((server, _)) = sample("ref: main") else {
        return;
    };
    if !need(&["gzip"]) {
        return;
    }
    let front = ReverseProxy::new(&server.address, |_| {
        ProxyAction::Change(Box::new(|response: &mut Response| {
            response.body = gzip(&response.body);
            let is_kept = |(name, _): &(String, String)| name != "content-length";
            response.headers.retain(is_kept);
            let coding = ("Content-Encoding".into(), "gzip".into());
            response.headers.push(coding);
        }))
    });
    let place = Place::new();
    let url = format!("http://{}/team/platform.git", front.address);
    place.write("m.yaml", manifest(&url, "ref: main"));
    place.ok(&["lock", "-f", "m.yaml"]);
    let repository = server.place.path("repos/team/platform.git");
    let commit = server.git(&repository, &["rev-parse", "main"]);
    let lock = place.read("landfall.lock");
    assert!(lock.contains(commit.trim()), "{lock}");
    place.ok(&["pull", "--store", "other"]);
}

/// Starts landfall in the background.
fn start(place: &Place, args: &[&str]) -> Child {
    let mut command = place.command();
    command.args(args).args(["--progress", "none"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

/// Runs a command, and kills it after it received only a part of a pack.
fn kill_in_pack(server: &GitServer, place: &Place, args: &[&str]) {
    server.set(GitServerBehavior {
        hold_packs_after: Some(20_000),
        ..GitServerBehavior::default()
    });
    let before = server.held_packs();
    let mut child = start(place, args);
    while server.held_packs() == before {
        assert!(child.try_wait().unwrap().is_none(), "it ended too early");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    server.set(GitServerBehavior::default());
}

#[test]
fn a_run_that_was_killed_is_completed_with_the_same_bytes() {
    let Some((server, undisturbed)) = sample("ref: main") else {
        return;
    };
    undisturbed.ok(&["lock", "-f", "m.yaml"]);
    undisturbed.ok(&["pull"]);
    undisturbed.ok(&["pack", "-o", "b.tar.zst"]);
    let place = Place::new();
    place.write("m.yaml", undisturbed.read("m.yaml"));
    kill_in_pack(&server, &place, &["lock", "-f", "m.yaml"]);
    assert!(!place.path("landfall.lock").exists());
    place.ok(&["lock", "-f", "m.yaml"]);
    assert_eq!(
        place.read("landfall.lock"),
        undisturbed.read("landfall.lock")
    );
    // a pull on a machine that has only the lock
    let other = Place::new();
    other.write("landfall.lock", place.read("landfall.lock"));
    kill_in_pack(&server, &other, &["pull"]);
    other.ok(&["pull"]);
    // a `pack` that is killed soon after its start
    let mut pack = start(&other, &["pack", "-o", "b.tar.zst"]);
    pack.kill().unwrap();
    pack.wait().unwrap();
    other.ok(&["pack", "-o", "b.tar.zst"]);
    assert!(other.read_bytes("b.tar.zst") == undisturbed.read_bytes("b.tar.zst"));
    let third = Place::new();
    third.write("landfall.lock", other.read("landfall.lock"));
    kill_in_pack(&server, &third, &["pull", "--bundle", "b.tar.zst"]);
    third.ok(&["pull", "--bundle", "b.tar.zst"]);
    assert!(third.read_bytes("b.tar.zst") == undisturbed.read_bytes("b.tar.zst"));
}

#[test]
fn a_list_of_refs_that_breaks_off_is_requested_again() {
    let Some((server, place)) = sample("ref: main") else {
        return;
    };
    server.set(GitServerBehavior {
        cut_lists: 3,
        ..GitServerBehavior::default()
    });
    place.ok(&["lock", "-f", "m.yaml"]);
}

#[test]
fn the_refs_at_a_destination_are_requested_again_if_they_break_off() {
    let Some((_server, place)) = sample("ref: main") else {
        return;
    };
    place.ok(&["lock", "-f", "m.yaml"]);
    place.ok(&["pull"]);
    let site = GitServer::new().unwrap();
    site.create("team/platform.git");
    site.set(GitServerBehavior {
        cut_advertisements: 3,
        ..GitServerBehavior::default()
    });
    place.ok(&["push", "--git-to", &site.url("")]);
}

#[test]
fn media_types_may_have_another_case_and_parameters() {
    let Some((server, place)) = sample("ref: main") else {
        return;
    };
    server.set(GitServerBehavior {
        odd_media_types: true,
        ..GitServerBehavior::default()
    });
    place.ok(&["lock", "-f", "m.yaml"]);
    place.ok(&["pull"]);
}

#[test]
fn packs_that_break_off_all_at_once_are_requested_again() {
    let Some(server) = GitServer::new() else {
        return;
    };
    let mut text = "apiVersion: landfall/v1\nkind: Manifest\ngit:\n".to_owned();
    for (at, name) in ["a", "b", "c"].into_iter().enumerate() {
        let repository = server.create(&format!("team/{name}.git"));
        server.import(&repository, &history(name, 0, 200 + at));
        let url = server.url(&format!("team/{name}.git"));
        text += &format!("- {{url: \"{url}\", ref: {name}}}\n");
    }
    let place = Place::new();
    place.write("m.yaml", text);
    let broken = GitServerBehavior {
        cut_packs: 3,
        ..GitServerBehavior::default()
    };
    server.set(broken.clone());
    place.ok(&["lock", "-f", "m.yaml"]);
    assert_eq!(server.pack_requests(), 6);
    place.ok(&["pull"]);
    place.ok(&["pack", "-o", "b.tar.zst"]);
    let other = Place::new();
    other.write("landfall.lock", place.read("landfall.lock"));
    server.set(broken);
    other.ok(&["pull"]);
    assert_eq!(server.pack_requests(), 12);
    other.ok(&["pack", "-o", "b.tar.zst"]);
    assert!(other.read_bytes("b.tar.zst") == place.read_bytes("b.tar.zst"));
}

#[test]
fn accounts_and_proxies_are_those_of_the_site() {
    let Some((server, place)) = sample("ref: main") else {
        return;
    };
    let encoded = base64::engine::general_purpose::STANDARD.encode("me:secret");
    server.set(GitServerBehavior {
        authorization: Some(format!("Basic {encoded}")),
        ..GitServerBehavior::default()
    });
    let report = place.json(1, &["lock", "-f", "m.yaml"]);
    assert!(!report.to_string().contains("secret"), "{report}");
    place.write("account", "me:secret\n");
    let site = "apiVersion: landfall/v1\nkind: Site\nupstreams:\n";
    place.write(
        "site.yaml",
        format!(
            "{site}  \"{}\": {{plainHTTP: true, credentials: {{file: account}}}}\n",
            server.address
        ),
    );
    place.ok(&["lock", "-f", "m.yaml", "--site", "site.yaml"]);
    assert!(!place.read("landfall.lock").contains("secret"));
    // through a proxy, the server has another name
    let mut port = server.address.split(':');
    let host = "git.example.test";
    let port = port.nth(1).unwrap();
    server.set(GitServerBehavior::default());
    let proxied = Place::new();
    proxied.write(
        "m.yaml",
        manifest(&format!("http://{host}/team/platform.git"), "ref: main"),
    );
    let upstream = format!("  {host}: {{plainHTTP: true}}\n");
    proxied.write(
        "site.yaml",
        format!("{site}{upstream}proxy: {{http: \"http://127.0.0.1:{port}\"}}\n"),
    );
    let report = proxied.json(0, &["lock", "-f", "m.yaml", "--site", "site.yaml"]);
    assert!(report["hosts"].to_string().contains(host), "{report}");
    let requests = server.requests();
    let fetch = format!("POST http://{host}/team/platform.git/git-upload-pack fetch");
    assert_eq!(requests.last(), Some(&fetch));
    assert_eq!(locked(&proxied)["packs"], locked(&place)["packs"]);
}

#[test]
fn update_moves_a_tag_by_its_policy() {
    let Some((server, place)) = sample("ref: v1.0.0, update: minor") else {
        return;
    };
    let repository = server.place.path("repos/team/platform.git");
    for (tag, commit) in [
        ("v1.0.0", "main~9"),
        ("v1.1.0", "main~5"),
        ("v1.2.0-rc.1", "main~4"),
        ("v2.0.0", "main"),
    ] {
        server.git(&repository, &["tag", tag, commit]);
    }
    place.ok(&["lock", "-f", "m.yaml"]);
    let before = locked(&place);
    place.ok(&["update", "-f", "m.yaml"]);
    assert!(
        place.read("m.yaml").contains("ref: v1.1.0, update: minor"),
        "{}",
        place.read("m.yaml")
    );
    place.ok(&["lock", "-f", "m.yaml"]);
    let after = locked(&place);
    assert!(
        after["refs"][0]
            .as_str()
            .unwrap()
            .starts_with("refs/tags/v1.1.0 ")
    );
    assert_eq!(
        after["packs"][0], before["packs"][0],
        "only new commits are added"
    );
    assert_eq!(after["packs"].as_array().unwrap().len(), 2);
}

/// Before, the version was the text after the last slash, and tags with a slash were not listed.
#[test]
fn update_moves_the_tag_of_one_product_of_a_repository() {
    let Some((server, place)) = sample("ref: main") else {
        return;
    };
    let repository = server.place.path("repos/team/platform.git");
    for tag in [
        "cli/v1.0.0",
        "cli/v1.1.0",
        "api/v1.2.0",
        "v1.3.0",
        "@a/b@1.0.0",
        "@a/b@1.0.1",
        "@a/c@1.0.2",
    ] {
        server.git(&repository, &["tag", tag, "main"]);
    }
    for (old, new) in [
        ("cli/v1.0.0", "cli/v1.1.0"),
        ("refs/tags/cli/v1.0.0", "refs/tags/cli/v1.1.0"),
        ("'@a/b@1.0.0'", "'@a/b@1.0.1'"),
    ] {
        let more = format!("ref: {old}, update: minor");
        place.write("m.yaml", manifest(&server.url("team/platform.git"), &more));
        place.ok(&["update", "-f", "m.yaml"]);
        let updated = place.read("m.yaml");
        assert!(updated.contains(&format!("ref: {new},")), "{updated}");
    }
}

/// Before, only the name of a tag had an age: a tag that was moved while it waited, to a commit
/// that nobody had seen, was locked when the wait of its name was over. The dates in commits and
/// tags do not count.
#[test]
fn the_wait_of_a_git_tag_starts_again_if_it_is_moved_by_force() {
    let Some((server, place)) = sample("ref: v1.0.0, update: {policy: minor, minAge: 7d}") else {
        return;
    };
    let repository = server.place.path("repos/team/platform.git");
    let tag = |tag: &str, commit: &str| {
        server.git(&repository, &["tag", "-f", tag, commit]);
        server.git(&repository, &["rev-parse", commit])
    };
    let day = |day: u32| {
        place.set(
            "LANDFALL_TEST_CLOCK",
            &format!("2026-11-{:02}T12:00:00Z", day + 1),
        );
    };
    let locked_refs = || locked(&place)["refs"].to_string();
    let old = tag("v1.0.0", "main~9");
    day(0);
    place.ok(&["lock", "-f", "m.yaml"]);
    tag("v1.1.0", "main~5");
    let update = ["update", "-f", "m.yaml"];
    place.json(0, &update);
    let moved = tag("v1.1.0", "main~2");
    // the present commit of v1.1.0 was first seen on day 6, although its name on day 0
    day(6);
    place.json(0, &update);
    day(8);
    let report = place.json(0, &update);
    let waiting = &report["updates"][0]["waiting"][0];
    assert_eq!(waiting["until"], "2026-11-14T12:00:00Z", "{report:#}");
    assert!(locked_refs().contains(old.trim()), "{report:#}");
    day(13);
    let report = place.json(0, &update);
    assert!(locked_refs().contains(moved.trim()), "{report:#}");
}

#[test]
fn a_force_push_upstream_is_reported() {
    let Some((server, place)) = sample("ref: main") else {
        return;
    };
    let repository = server.place.path("repos/team/platform.git");
    place.ok(&["lock", "-f", "m.yaml"]);
    let old = locked(&place);
    place.write("old.lock", place.read("landfall.lock"));
    server.git(&repository, &["update-ref", "refs/heads/main", "main~10"]);
    server.import(&repository, &history("main", 400, 2));
    // without `--refresh`, the pin is kept
    place.ok(&["lock", "-f", "m.yaml"]);
    assert_eq!(locked(&place), old);
    let run = place
        .command()
        .args(["lock", "-f", "m.yaml", "--refresh"])
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&run.stderr).into_owned();
    assert!(
        run.status.success() && printed.contains("the history was rewritten"),
        "{printed}"
    );
    let new = locked(&place);
    assert_ne!(new["packs"][0], old["packs"][0]);
    let report = place.json(0, &["diff", "old.lock", "landfall.lock"]);
    let changes = report["changes"].as_array().unwrap();
    assert_eq!(changes.len(), 1, "{report}");
    assert_eq!(changes[0]["from"], old["digest"], "{report}");
    assert_eq!(changes[0]["to"], new["digest"], "{report}");
}

/// The complete workflow with 10,000 commits, as in a busy repository.
#[test]
fn a_history_of_10_000_commits_is_carried_and_served() {
    const COMMITS: usize = 10_000;
    let Some(server) = GitServer::new() else {
        return;
    };
    let repository = server.create("team/platform.git");
    server.import(&repository, &history("main", 0, COMMITS));
    let place = Place::new();
    place.write(
        "m.yaml",
        manifest(&server.url("team/platform.git"), "ref: main"),
    );
    place.ok(&["lock", "-f", "m.yaml"]);
    place.ok(&["pull"]);
    place.ok(&["pack", "-o", "b.tar.zst"]);
    place.ok(&["verify", "b.tar.zst"]);
    let served = landfall_serve(&place, &["b.tar.zst"]);
    let here = format!("{}/git/{}/team/platform.git", served.url(), server.address);
    output(
        &place,
        ".",
        &["clone", "-q", "--mirror", &here, "whole.git"],
    );
    output(&place, "whole.git", &["fsck", "--strict"]);
    let count = |folder: &str| output(&place, folder, &["rev-list", "--count", "HEAD"]);
    assert_eq!(count("whole.git").trim(), COMMITS.to_string());
    let clone = |args: &[&str], name: &str| {
        output(
            &place,
            ".",
            &[&["clone", "-q"], args, &[&*here, name]].concat(),
        );
        output(&place, name, &["fsck", "--strict"]);
        count(name)
    };
    assert_eq!(clone(&["--depth", "10"], "shallow").trim(), "10");
    assert_eq!(
        clone(&["--filter=blob:none"], "partial").trim(),
        COMMITS.to_string()
    );
    // a newer lock and bundle with three more commits
    server.import(&repository, &history("main", COMMITS, 3));
    place.ok(&["lock", "-f", "m.yaml", "--refresh"]);
    place.ok(&["pull"]);
    place.ok(&["pack", "-o", "delta.tar.zst", "--since", "b.tar.zst"]);
    let size = |name: &str| std::fs::metadata(place.path(name)).unwrap().len();
    assert!(size("delta.tar.zst") < size("b.tar.zst") / 10);
}

/// Before, only `pre-receive hook declined` was reported. GitLab and GitHub say the reason beside
/// the report.
#[test]
fn the_words_of_a_hook_that_declines_a_push_are_reported() {
    let Some((_server, place)) = sample("ref: main") else {
        return;
    };
    place.ok(&["lock", "-f", "m.yaml"]);
    place.ok(&["pull"]);
    let site = GitServer::new().unwrap();
    let hooks = site.create("team/platform.git").join("hooks");
    std::fs::create_dir_all(&hooks).unwrap();
    let hook = hooks.join("pre-receive");
    let script = "#!/bin/sh\necho GitLab: main is protected >&2\nexit 1\n";
    std::fs::write(&hook, script).unwrap();
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
    let report = place.json(1, &["push", "--git-to", &site.url("")]);
    let reason = report["items"][0]["reason"].as_str().unwrap();
    assert!(
        reason.contains("declined; GitLab: main is protected"),
        "{reason}"
    );
}
