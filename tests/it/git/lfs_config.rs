//! `.lfsconfig`: repositories whose large files are at another server.

use super::{locked, manifest, output};
use crate::support::git::{GitServer, GitServerBehavior, pointer};
use crate::support::library::Digest;
use crate::support::reverse_proxy::{ProxyAction, ReverseProxy};
use crate::support::{Place, landfall_serve, need, run};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// Adds a commit to `branch` with these files.
fn commit(server: &GitServer, name: &str, branch: &str, files: &[(&str, &str)]) {
    let repository = server.place.path("repos").join(name);
    let files: String = files
        .iter()
        .map(|(name, text)| format!("M 100644 inline {name}\ndata {}\n{text}\n", text.len()))
        .collect();
    let text = "committer T <t@example.com> 1650000000 +0000\ndata 2\nm\n";
    server.import(
        &repository,
        &format!("commit refs/heads/{branch}\n{text}\n{files}\n"),
    );
}

const ATTRIBUTES: (&str, &str) = (
    ".gitattributes",
    "*.bin filter=lfs diff=lfs merge=lfs -text\n",
);

fn large(name: &str) -> Vec<u8> {
    name.repeat(50_000).into_bytes()
}

#[test]
fn large_files_come_from_the_server_in_lfsconfig_and_clients_get_them_from_the_mirror() {
    let (true, Some(git)) = (need(&["git-lfs"]), GitServer::new()) else {
        return;
    };
    let lfs = GitServer::new().unwrap();
    // two repositories share the server
    let named = format!("http://{}/storage/lfs", lfs.address);
    let config = format!("[lfs] url = {named}/\n");
    for name in ["one", "two"] {
        git.create(&format!("team/{name}.git"));
        let pointer = pointer(&large(name));
        let files = [ATTRIBUTES, (".lfsconfig", &*config), ("a.bin", &*pointer)];
        commit(&git, &format!("team/{name}.git"), "main", &files);
        lfs.add_large_file(&large(name));
    }
    let place = Place::new();
    let [first, second] = ["one", "two"].map(|name| git.url(&format!("team/{name}.git")));
    let more = format!("- {{url: \"{second}\", ref: main, lfs: true}}\n");
    place.write("m.yaml", manifest(&first, "ref: main, lfs: true") + &more);
    // each server accepts only its own account
    let auth = |user: &str| STANDARD.encode(format!("{user}:secret"));
    for (server, user) in [(&git, "git"), (&lfs, "lfs")] {
        server.set(GitServerBehavior {
            authorization: Some(format!("Basic {}", auth(user))),
            ..GitServerBehavior::default()
        });
    }
    let auths = json!({
        git.address.clone(): {"auth": auth("git")},
        lfs.address.clone(): {"auth": auth("lfs")},
    });
    place.write(
        "home/.docker/config.json",
        json!({"auths": auths}).to_string(),
    );
    let plain = ["--plain-http", &git.address, "--plain-http", &lfs.address];
    let ok = |args: &[&str]| place.ok(&[args, &plain].concat());
    ok(&["lock", "-f", "m.yaml"]);
    let file = large("one");
    let expected = format!("{} {} {named}", Digest::sha256(&file), file.len());
    assert_eq!(locked(&place)["largeFiles"], json!([expected]));
    let egress = ok(&["egress", "--format", "csv"]);
    let port = lfs.address.rsplit(':').next().unwrap();
    assert!(egress.contains(port), "{egress}");
    ok(&["pull"]);
    assert!(git.requests().iter().all(|line| !line.contains("lfs")));
    place.ok(&["pack", "-o", "b.tar.zst"]);
    place.ok(&["verify", "b.tar.zst"]);
    // what clients do: unchanged URLs, with the rendered configuration
    let served = landfall_serve(&place, &["b.tar.zst"]);
    let mirror = format!("url={}", served.url());
    place.ok(&[
        "render",
        "git",
        "--set",
        &mirror,
        "--lock",
        "landfall.lock",
        "-o",
        "gitconfig",
    ]);
    run(place.clean("git").args(["lfs", "install", "--skip-repo"]));
    let rendered = place.path("gitconfig");
    let rendered = rendered.to_str().unwrap();
    output(
        &place,
        ".",
        &["config", "--global", "include.path", rendered],
    );
    let before = git.requests().len() + lfs.requests().len();
    for (name, url) in [("one", &first), ("two", &second)] {
        output(&place, ".", &["clone", "-q", url, name]);
        assert!(place.read_bytes(&format!("{name}/a.bin")) == large(name));
    }
    let after = git.requests().len() + lfs.requests().len();
    assert_eq!(after, before, "upstream gets no request");
    // a pushed repository still names the other server, which `push` says
    let site = GitServer::new().unwrap();
    for name in ["one", "two"] {
        site.create(&format!("team/{name}.git"));
    }
    let to = site.url("");
    let printed = place.stderr(0, &["push", "b.tar.zst", "--git-to", &to]);
    let new = site.url("team/one.git/info/lfs");
    let old = format!("url.NEW.insteadOf {named}`, where NEW is {new}");
    assert!(printed.contains(&old), "{printed}");
}

#[test]
fn another_lfs_server_gets_no_account_of_the_git_server_and_errors_name_the_file() {
    let Some(git) = GitServer::new() else {
        return;
    };
    let refusing = ReverseProxy::new("", |_| ProxyAction::status(401));
    git.create("team/a.git");
    let config = format!(
        "[remote \"origin\"]\n\tlfsurl = \"http://{}/x\"\n\turl = http://127.0.0.1:1/\n",
        refusing.address
    );
    let file = pointer(&large("a"));
    commit(
        &git,
        "team/a.git",
        "main",
        &[(".lfsconfig", &config), ("a.bin", &file)],
    );
    let auth = STANDARD.encode("git:secret");
    git.set(GitServerBehavior {
        authorization: Some(format!("Basic {auth}")),
        ..GitServerBehavior::default()
    });
    let place = Place::new();
    let auths = json!({git.address.clone(): {"auth": auth}});
    place.write(
        "home/.docker/config.json",
        json!({"auths": auths}).to_string(),
    );
    let url = git.url("team/a.git");
    place.write("m.yaml", manifest(&url, "ref: main, lfs: true"));
    let plain = [
        "--plain-http",
        &git.address,
        "--plain-http",
        &refusing.address,
    ];
    let report = place.json(1, &[&["lock", "-f", "m.yaml"][..], &plain].concat());
    let why = report["items"][0]["reason"].as_str().unwrap();
    assert!(
        why.contains("401") && why.contains("the .lfsconfig of"),
        "{why}"
    );
    let requests = refusing.requests();
    assert_eq!(requests[0].target, "/x/objects/batch");
    assert!(
        requests
            .iter()
            .all(|request| request.header("authorization").is_none())
    );
}

#[test]
fn each_ref_has_its_own_server_and_the_manifest_may_name_another_one() {
    let Some(git) = GitServer::new() else {
        return;
    };
    let lfs = GitServer::new().unwrap();
    git.create("team/a.git");
    let [shared, own, old] = ["shared", "own", "old"].map(large);
    let [in_shared, in_own, in_old] = [&shared, &own, &old].map(|content| pointer(content));
    let named = format!("http://{}/storage/lfs", lfs.address);
    let config = format!("[lfs]\n\turl = {named}\n");
    let name = "team/a.git";
    let on_main = [(".lfsconfig", &*config), ("s.bin", &*in_shared)];
    commit(&git, name, "main", &on_main);
    commit(&git, name, "plain", &[("o.bin", &in_own)]);
    // the shared file is found by the configuration of the default branch
    let ssh = "[lfs]\n\turl = git@git.example:team/a.git\n";
    commit(
        &git,
        name,
        "a",
        &[(".lfsconfig", ssh), ("s.bin", &in_shared)],
    );
    commit(
        &git,
        name,
        "broken",
        &[(".lfsconfig", "<<<<<<< HEAD\n"), ("x", "no large file\n")],
    );
    commit(
        &git,
        name,
        "old",
        &[(".lfsconfig", ssh), ("o.bin", &in_old)],
    );
    lfs.add_large_file(&shared);
    git.add_large_file(&own);
    let place = Place::new();
    let url = git.url(name);
    place.write(
        "m.yaml",
        manifest(&url, "refs: [main, plain, a, broken], lfs: true"),
    );
    place.ok(&["lock", "-f", "m.yaml"]);
    let mut expected = [
        format!("{} {} {named}", Digest::sha256(&shared), shared.len()),
        format!("{} {}", Digest::sha256(&own), own.len()),
    ];
    expected.sort();
    assert_eq!(locked(&place)["largeFiles"], json!(expected));
    place.ok(&["pull"]);
    let reason = |more: &str, code: i32| -> String {
        place.write("m.yaml", manifest(&url, more));
        let report: Value = place.json(code, &["lock", "-f", "m.yaml"]);
        report["items"][0]["reason"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    let why = reason("ref: old, lfs: true", 1);
    assert!(
        why.contains(".lfsconfig of refs/heads/old") && why.contains("not over ssh"),
        "{why}"
    );
    lfs.add_large_file(&old);
    let server = format!("ref: old, lfs: \"{named}\"");
    assert_eq!(reason(&server, 0), "");
    let lock = locked(&place);
    assert_eq!(lock["lfsServer"], json!(named));
    assert_eq!(
        lock["largeFiles"],
        json!([format!("{} {}", Digest::sha256(&old), old.len())])
    );
    place.ok(&["pull"]);
    for bad in ["git@h:a", "https://u:p@h/a", "yes"] {
        place.write(
            "m.yaml",
            manifest(&url, &format!("ref: old, lfs: \"{bad}\"")),
        );
        let message = place.json(2, &["lock", "-f", "m.yaml"])["error"]["message"].to_string();
        assert!(message.contains("m.yaml:"), "{message}");
    }
}
