//! `verify` of a repository: tags and commits that git signed with gpg and with ssh-keygen.

use super::{locked, manifest, output};
use crate::support::git::{GitServer, GitServerBehavior, git, history};
use crate::support::{Place, need, run};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The configuration with which git signs with an OpenSSH key.
fn with_ssh(server: &GitServer, key: &str) -> Vec<String> {
    let path = server.place.path(key);
    [
        "gpg.format=ssh".into(),
        format!("user.signingkey={}", path.display()),
    ]
    .to_vec()
}

/// Runs git with this configuration.
fn signing(server: &GitServer, repository: &Path, options: &[String], args: &[&str]) {
    let options = options.iter().flat_map(|option| ["-c", option.as_str()]);
    let all: Vec<&str> = options.chain(args.iter().copied()).collect();
    server.git(repository, &all);
}

fn ssh_key(server: &GitServer, name: &str) {
    run(server
        .place
        .clean("ssh-keygen")
        .args(["-q", "-N", "", "-C", "", "-t", "ed25519", "-f", name]));
}

/// A repository with a history of `commits`, and the options that sign with the key `release`.
fn release_repository(server: &GitServer, commits: usize) -> (PathBuf, Vec<String>) {
    let repository = server.create("team/platform.git");
    server.import(&repository, &history("main", 0, commits));
    ssh_key(server, "release");
    (repository, with_ssh(server, "release"))
}

/// The public half of an OpenSSH key.
fn public(server: &GitServer, name: &str) -> String {
    server.place.read(&format!("{name}.pub"))
}

/// Lets git sign a new commit, and pushes the commit to `branch`.
fn signed_commit(server: &GitServer, repository: &Path, options: &[String], branch: &str) {
    let work = server.place.path(format!("work-{branch}"));
    let [from, to] = [repository, &work].map(|path| path.to_str().unwrap());
    server.git(Path::new("."), &["clone", "-q", from, to]);
    signing(
        server,
        &work,
        options,
        &["commit", "-q", "--allow-empty", "-S", "-m", "signed"],
    );
    server.git(
        &work,
        &["push", "-q", "origin", &format!("HEAD:refs/heads/{branch}")],
    );
}

/// The reason of the only item of a report.
fn reason(report: &Value) -> String {
    report["items"][0]["reason"].as_str().unwrap().to_owned()
}

#[test]
fn tags_and_commits_that_openssh_signed_are_locked_with_their_keys() {
    let (true, Some(server)) = (need(&["ssh-keygen"]), GitServer::new()) else {
        return;
    };
    let repository = server.create("team/platform.git");
    server.import(&repository, &history("main", 0, 5));
    ssh_key(&server, "release");
    ssh_key(&server, "other");
    let release = with_ssh(&server, "release");
    let other = with_ssh(&server, "other");
    signing(
        &server,
        &repository,
        &release,
        &["tag", "-s", "-m", "one", "v1.0", "main"],
    );
    signing(
        &server,
        &repository,
        &other,
        &["tag", "-s", "-m", "two", "v2.0", "main"],
    );
    server.git(&repository, &["tag", "-a", "-m", "three", "v3.0", "main"]);
    signed_commit(&server, &repository, &release, "signed");
    let place = Place::new();
    let url = server.url("team/platform.git");
    place.write("keys/release.pub", public(&server, "release"));
    let rule = "verify: {keys: [keys/release.pub]}";
    let lock = |exit: i32, refs: &str| {
        place.write("m.yaml", manifest(&url, &format!("{refs}, {rule}")));
        place.json(exit, &["lock", "-f", "m.yaml", "--refresh"])
    };
    lock(0, "refs: [v1.0, signed]");
    let verified = locked(&place)["verified"].clone();
    assert_eq!(verified[0]["ref"], "refs/heads/signed");
    assert_eq!(verified[1]["ref"], "refs/tags/v1.0");
    let fingerprint = run(server
        .place
        .clean("ssh-keygen")
        .args(["-l", "-f", "release.pub"]));
    let fingerprint = String::from_utf8(fingerprint).unwrap();
    let fingerprint = fingerprint.split(' ').nth(1).unwrap();
    assert_eq!(verified[1]["key"], format!("ssh-ed25519 {fingerprint}"));
    place.ok(&["pull"]);
    place.ok(&["pack", "-o", "b.tar.zst"]);
    place.ok(&["verify", "b.tar.zst"]);
    // an unchanged entry keeps its pin without a request; with another key, it is verified again
    let before = server.requests().len();
    place.ok(&["lock", "-f", "m.yaml"]);
    assert_eq!(server.requests().len(), before);
    place.write("keys/release.pub", public(&server, "other"));
    let report = place.json(1, &["lock", "-f", "m.yaml"]);
    assert_eq!(report["items"][0]["status"], "missing", "{report}");
    place.write("keys/release.pub", public(&server, "release"));
    for (refs, why) in [
        ("ref: v2.0", "refs/tags/v2.0 is not valid"),
        ("ref: v3.0", "refs/tags/v3.0 is not signed"),
        ("ref: main", "refs/heads/main is not signed"),
    ] {
        let report = lock(1, refs);
        assert!(reason(&report).contains(why), "{report}");
    }
    // with both keys, both tags are valid; a second repository without a signature causes exit 3
    place.write("keys/other.pub", public(&server, "other"));
    let rule = "verify: {keys: [keys/release.pub, keys/other.pub]}";
    let two = manifest(&url, &format!("refs: [v1.0, v2.0], {rule}"));
    let more = server.create("team/more.git");
    server.import(&more, &history("main", 0, 2));
    let more = server.url("team/more.git");
    place.write(
        "m.yaml",
        format!("{two}- {{url: \"{more}\", ref: main, {rule}}}\n"),
    );
    let report = place.json(3, &["lock", "-f", "m.yaml"]);
    let recorded = place.read("landfall.lock");
    let recorded = recorded.split("unresolved:").nth(1).unwrap();
    assert!(
        recorded.contains("refs/heads/main is not signed"),
        "{recorded}"
    );
    assert_eq!(report["items"].as_array().unwrap().len(), 2, "{report}");
}

/// A server could offer an old signed tag under the name of a new one.
#[test]
fn a_signed_tag_is_valid_under_its_own_name_only() {
    let (true, Some(server)) = (need(&["ssh-keygen"]), GitServer::new()) else {
        return;
    };
    let (repository, release) = release_repository(&server, 5);
    signing(
        &server,
        &repository,
        &release,
        &["tag", "-s", "-m", "one", "v1.0", "main"],
    );
    server.git(
        &repository,
        &["update-ref", "refs/tags/v9.9", "refs/tags/v1.0"],
    );
    let place = Place::new();
    let line = format!(
        "me@example.com namespaces=\"git\" {}",
        public(&server, "release")
    );
    place.write("allowed", &line);
    let url = server.url("team/platform.git");
    let lock = |exit: i32, name: &str| {
        let more = format!("ref: {name}, verify: {{keys: [allowed]}}");
        place.write("m.yaml", manifest(&url, &more));
        place.json(exit, &["lock", "-f", "m.yaml"])
    };
    lock(0, "v1.0");
    let report = lock(1, "v9.9");
    assert!(
        reason(&report).contains("with another name: 'v1.0'"),
        "{report}"
    );
    // a signer that is allowed only for files, or only until a time before the signature
    for options in ["namespaces=\"file\"", "valid-before=\"20200101Z\""] {
        place.write("allowed", line.replace("namespaces=\"git\"", options));
        place.write("landfall.lock", "version: 1\n");
        let report = lock(1, "v1.0");
        assert!(reason(&report).contains("does not allow that"), "{report}");
    }
    place.write("allowed", "untrusted comment: x\n");
    let report = lock(2, "v1.0");
    assert!(
        report["error"]["message"]
            .as_str()
            .unwrap()
            .contains("allowed"),
        "{report}"
    );
    place.write("m.yaml", manifest(&url, "ref: v1.0, verify: {keys: []}"));
    place.json(2, &["lock", "-f", "m.yaml"]);
}

/// Before, where commits are signed, a server could offer the signed commit of v1.0.0 as v2.0.0.
#[test]
fn a_tag_that_a_pattern_or_policy_chooses_must_be_signed_itself() {
    let (true, Some(server)) = (need(&["ssh-keygen"]), GitServer::new()) else {
        return;
    };
    let (repository, release) = release_repository(&server, 3);
    signed_commit(&server, &repository, &release, "signed");
    let tag = |args: &[&str]| signing(&server, &repository, &release, &[&["tag"], args].concat());
    tag(&["-s", "-m", "one", "v1.0.0", "signed"]);
    let place = Place::new();
    place.write("release.pub", public(&server, "release"));
    let url = server.url("team/platform.git");
    let write = |refs: &str| {
        let more = format!("{refs}, verify: {{keys: [release.pub]}}");
        place.write("m.yaml", manifest(&url, &more));
    };
    write("tags: \"^v\"");
    place.json(0, &["lock", "-f", "m.yaml"]);
    write("ref: v1.0.0, update: minor");
    place.json(0, &["lock", "-f", "m.yaml"]);
    let pinned = place.read("landfall.lock");

    // a lightweight tag and an unsigned annotated tag of the signed commit
    tag(&["v1.1.0", "signed"]);
    tag(&["-a", "-m", "two", "v1.2.0", "signed"]);
    let report = place.json(0, &["update", "-f", "m.yaml"]);
    let held = &report["updates"][0]["held"];
    for (at, version) in ["v1.2.0", "v1.1.0"].iter().enumerate() {
        assert_eq!(held[at]["version"], *version, "{report}");
        let why = held[at]["why"].as_str().unwrap();
        assert!(why.contains("is not a signed tag"), "{why}");
    }
    assert_eq!(place.read("landfall.lock"), pinned);
    assert!(place.read("m.yaml").contains("v1.0.0"));
    // the next lower version that is signed is used
    tag(&["-s", "-m", "signed", "v1.1.1", "signed"]);
    place.json(0, &["update", "-f", "m.yaml"]);
    assert!(place.read("m.yaml").contains("v1.1.1"));
    write("tags: \"^v\"");
    let report = place.json(1, &["lock", "-f", "m.yaml"]);
    assert!(reason(&report).contains("is not a signed tag"), "{report}");
    // a tag that the manifest names may be covered by its commit; branches and commits always are
    write("refs: [v1.1.0, signed]");
    place.json(0, &["lock", "-f", "m.yaml"]);
    let commit = server.git(&repository, &["rev-parse", "signed"]);
    write(&format!("ref: {}", commit.trim()));
    place.json(0, &["lock", "-f", "m.yaml"]);
}

/// Before, the tag was listed for its age, and locked with the object that it had later.
#[test]
fn a_tag_that_moves_after_its_age_was_checked_is_not_locked() {
    let Some(server) = GitServer::new() else {
        return;
    };
    let repository = server.create("team/platform.git");
    server.import(&repository, &history("main", 0, 4));
    server.git(&repository, &["tag", "v1.0.0", "main~2"]);
    let place = Place::new();
    let url = server.url("team/platform.git");
    place.write("m.yaml", manifest(&url, "ref: v1.0.0, update: minor"));
    place.json(0, &["lock", "-f", "m.yaml"]);
    server.git(&repository, &["tag", "v1.1.0", "main~1"]);
    let [listed, other] = ["v1.1.0", "main"].map(|name| {
        let id = server.git(&repository, &["rev-parse", name]);
        id.trim().to_owned()
    });
    let tag = "refs/tags/v1.1.0".to_owned();
    server.set(GitServerBehavior {
        move_tag: Some((1, repository, tag, other.clone())),
        ..GitServerBehavior::default()
    });
    let output = place
        .command()
        .args(["update", "-f", "m.yaml", "--output", "json"])
        .output()
        .unwrap();
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_ne!(output.status.code(), Some(0), "{report}");
    let moved = format!("was {listed} when the update listed it, and is {other} now");
    assert!(report.contains(&moved), "{report}");
    assert!(!place.read("landfall.lock").contains(&other));
    // the next run sees the tag as it is
    place.json(0, &["update", "-f", "m.yaml"]);
    place.json(0, &["lock", "-f", "m.yaml"]);
    assert!(place.read("landfall.lock").contains(&other));
}

/// Before, rules of `verify:` had no keys for git repositories.
#[test]
fn rules_of_manifest_and_site_demand_signatures_of_repositories() {
    let (true, Some(server)) = (need(&["ssh-keygen"]), GitServer::new()) else {
        return;
    };
    let (repository, release) = release_repository(&server, 2);
    ssh_key(&server, "other");
    signed_commit(&server, &repository, &release, "signed");
    server.git(&repository, &["tag", "v1.0.0", "signed"]);
    let place = Place::new();
    for key in ["release", "other"] {
        place.write(&format!("{key}.pub"), public(&server, key));
    }
    let url = server.url("team/platform.git");
    let rules = |key: &str| format!("verify: [{{match: \"git+*\", keys: [{key}.pub]}}]\n");
    let site = |key: &str| {
        let text = format!("apiVersion: landfall/v1\nkind: Site\n{}", rules(key));
        place.write("site.yaml", text);
    };
    let lock = |exit: i32, refs: &str, rules: &str, more: &[&str]| {
        place.write("m.yaml", manifest(&url, refs) + rules);
        place.json(
            exit,
            &[&["lock", "-f", "m.yaml", "--refresh"], more].concat(),
        )
    };
    let with_site = ["--site", "site.yaml"];
    // the rules of the manifest, those of the site, and both
    lock(0, "ref: signed", &rules("release"), &[]);
    assert_eq!(locked(&place)["verified"][0]["ref"], "refs/heads/signed");
    let report = lock(1, "ref: main", &rules("release"), &[]);
    assert!(reason(&report).contains("main is not signed"), "{report}");
    let report = lock(1, "ref: signed", &rules("other"), &[]);
    assert!(reason(&report).contains("is not valid"), "{report}");
    site("release");
    lock(0, "ref: signed", "", &with_site);
    lock(0, "ref: signed", &rules("release"), &with_site);
    site("other");
    lock(1, "ref: signed", &rules("release"), &with_site);
    // a tag that a pattern chooses must be signed itself; a tag that is named may be covered by its
    // commit, also when the content is delivered
    site("release");
    let report = lock(1, "tags: \"^v\"", "", &with_site);
    assert!(reason(&report).contains("not a signed tag"), "{report}");
    for (refs, exit) in [("tags: \"^v\"", 4), ("ref: v1.0.0", 0)] {
        lock(0, refs, "", &[]);
        place.ok(&["pull", "--store", "store"]);
        let pack = ["pack", "--store", "store", "-o", "b", "--site", "site.yaml"];
        place.json(exit, &pack);
    }
    // a rule of the other URL, and one that matches nothing
    let note = |rule: &str| {
        let text = format!("apiVersion: landfall/v1\nkind: Site\nverify: [{rule}]\n");
        place.write("site.yaml", text);
        place.ok(&["lock", "-f", "m.yaml", "--site", "site.yaml"])
    };
    let missed = note("{match: \"git+https://other.test/*\", keys: [release.pub]}");
    assert!(missed.contains("no item matches the rule"), "{missed}");
    let accepted = note(&format!("{{match: \"git+{url}\", none: reviewed}}"));
    assert!(!accepted.contains("no item matches"), "{accepted}");
}

/// Rules that cannot be applied say where they are.
#[test]
fn rules_for_repositories_accept_keys_of_git_only() {
    let place = Place::new();
    place.write("cosign.pub", "-----BEGIN PUBLIC KEY-----\n");
    for (rule, why) in [
        ("{match: \"\", keys: [cosign.pub]}", "this pattern is empty"),
        ("{match: \"git+*\"}", "names no signer"),
        ("{match: \"git+*\", keys: [cosign.pub]}", "not a public key"),
        ("{match: \"git+*\", keys: [none.pub]}", "cannot read"),
        (
            "{match: \"git+*\", keyless: {issuer: a, identity: b}, trustedRoot: r.json}",
            "verified by keys only",
        ),
    ] {
        let rules = format!("verify: [{rule}]\n");
        place.write(
            "site.yaml",
            format!("apiVersion: landfall/v1\nkind: Site\n{rules}"),
        );
        place.write("m.yaml", manifest("https://git.test/a", "ref: v1") + &rules);
        for args in [
            &["lock", "-f", "m.yaml"][..],
            &["pull", "--site", "site.yaml"],
        ] {
            place.write("landfall.lock", "version: 1\n");
            let report = place.json(2, args).to_string();
            assert!(report.contains(why), "{rule}: {report}");
            let key = "verify[0]";
            let line = "m.yaml:5:";
            assert!(report.contains(key) || report.contains(line), "{report}");
        }
    }
}

#[test]
fn tags_and_commits_that_gpg_signed_are_locked_with_their_keys() {
    let (true, Some(server)) = (need(&["gpg"]), GitServer::new()) else {
        return;
    };
    let repository = server.create("team/platform.git");
    server.import(&repository, &history("main", 0, 5));
    let home = server.place.path("gnupg");
    std::fs::create_dir(&home).unwrap();
    run(server.place.clean("chmod").args(["700", "gnupg"]));
    server.place.set("GNUPGHOME", home.to_str().unwrap());
    let gpg = |args: &[&str]| {
        let batch = [
            "--batch",
            "--quiet",
            "--passphrase",
            "",
            "--pinentry-mode",
            "loopback",
        ];
        run(server.place.clean("gpg").args(batch).args(args))
    };
    for name in ["release@example.com", "other@example.com"] {
        gpg(&["--quick-gen-key", name, "ed25519", "sign", "never"]);
    }
    let key = |name: &str| vec![format!("user.signingkey={name}")];
    let release = key("release@example.com");
    let other = key("other@example.com");
    signing(
        &server,
        &repository,
        &release,
        &["tag", "-s", "-m", "one", "v1.0", "main"],
    );
    signing(
        &server,
        &repository,
        &other,
        &["tag", "-s", "-m", "two", "v2.0", "main"],
    );
    signed_commit(&server, &repository, &release, "signed");
    let place = Place::new();
    let url = server.url("team/platform.git");
    place.write(
        "release.asc",
        gpg(&["--armor", "--export", "release@example.com"]),
    );
    let lock = |exit: i32, refs: &str| {
        let more = format!("{refs}, verify: {{keys: [release.asc]}}");
        place.write("m.yaml", manifest(&url, &more));
        place.json(exit, &["lock", "-f", "m.yaml"])
    };
    lock(0, "refs: [v1.0, signed]");
    let listed = String::from_utf8(gpg(&[
        "--with-colons",
        "--list-keys",
        "release@example.com",
    ]));
    let listed = listed.unwrap();
    let fingerprint = listed
        .lines()
        .find_map(|line| line.strip_prefix("fpr:"))
        .unwrap();
    let fingerprint = fingerprint.trim_matches(':');
    let pinned = locked(&place);
    let verified = pinned["verified"].as_array().unwrap();
    assert_eq!(verified.len(), 2);
    for verified in verified {
        let key = verified["key"].as_str().unwrap();
        assert!(key.eq_ignore_ascii_case(fingerprint), "{key} {fingerprint}");
    }
    let report = lock(1, "ref: v2.0");
    assert!(reason(&report).contains("refs/tags/v2.0"), "{report}");
    // a signed tag whose message was changed afterwards
    let tag = server.git(&repository, &["cat-file", "tag", "v1.0"]);
    let changed = server.place.write("tag", tag.replace("one", "two"));
    let id = output(
        &server.place,
        "repos/team/platform.git",
        &["hash-object", "-t", "tag", "-w", changed.to_str().unwrap()],
    );
    let mut forged = git(
        &server.place,
        &repository,
        &["update-ref", "refs/tags/v1.0", id.trim()],
    );
    run(&mut forged);
    let report = lock(1, "ref: v1.0");
    assert!(reason(&report).contains("is not valid"), "{report}");
}

/// A pin of a tag from before the rule is kept by no verb that makes a lock, as for images.
#[test]
fn a_pin_of_a_tag_that_a_new_rule_refuses_is_not_restored() {
    let (true, Some(server)) = (need(&["ssh-keygen"]), GitServer::new()) else {
        return;
    };
    let repository = server.create("team/platform.git");
    server.import(&repository, &history("main", 0, 5));
    ssh_key(&server, "release");
    server.git(&repository, &["tag", "v1.0.0", "main~1"]);
    let url = server.url("team/platform.git");
    let good = server.create("good.git");
    server.import(&good, &history("main", 0, 2));
    let good = format!("- {{url: \"{}\", ref: main}}\n", server.url("good.git"));
    let with_good = |fields: &str| manifest(&url, fields) + &good;
    let key = public(&server, "release");
    for more in ["", ", update: minor"] {
        for (verb, args) in [
            ("lock", &[][..]),
            ("update", &[]),
            ("refresh", &["-o", "b"]),
        ] {
            let place = Place::new();
            place.write("release.pub", &key);
            place.write("m.yaml", with_good(&format!("ref: v1.0.0{more}")));
            place.ok(&["lock", "-f", "m.yaml", "--store", "store"]);
            assert!(place.read("landfall.lock").contains("refs/tags/v1.0.0 "));
            let rule = format!("ref: v1.0.0{more}, verify: {{keys: [release.pub]}}");
            place.write("m.yaml", with_good(&rule));
            let all = [&[verb, "-f", "m.yaml", "--store", "store"], args].concat();
            let report = place.json(3, &all);
            let lock = place.read("landfall.lock");
            assert!(
                !lock.contains("- refs/tags/v1.0.0 "),
                "{verb}: {report:#}\n{lock}"
            );
            assert!(lock.contains("is not "), "{verb}: {report:#}\n{lock}");
            assert!(!place.path("b").exists(), "{verb}");
        }
    }
}

/// Before, a pin whose tag was verified by its commit stayed after an update policy was added, with
/// which the tag itself must be signed.
#[test]
fn a_pin_of_an_unsigned_tag_is_not_kept_if_the_tag_must_be_signed_itself() {
    let (true, Some(server)) = (need(&["ssh-keygen"]), GitServer::new()) else {
        return;
    };
    let (repository, release) = release_repository(&server, 5);
    signed_commit(&server, &repository, &release, "signed");
    server.git(&repository, &["tag", "v1.0.0", "signed"]);
    let place = Place::new();
    place.write("release.pub", public(&server, "release"));
    let url = server.url("team/platform.git");
    let write = |more: &str| {
        let fields = format!("ref: v1.0.0{more}, verify: {{keys: [release.pub]}}");
        place.write("m.yaml", manifest(&url, &fields));
    };
    write("");
    place.ok(&["lock", "-f", "m.yaml"]);
    assert_eq!(locked(&place)["verified"][0]["ref"], "refs/tags/v1.0.0");
    write(", update: minor");
    let report = place.json(1, &["lock", "-f", "m.yaml"]);
    assert!(
        reason(&report).contains("is not a signed tag"),
        "{report:#}"
    );
    // a signed tag keeps its pin without a request
    server.git(&repository, &["tag", "-d", "v1.0.0"]);
    signing(
        &server,
        &repository,
        &release,
        &["tag", "-s", "-m", "one", "v1.0.0", "signed"],
    );
    write("");
    place.ok(&["lock", "-f", "m.yaml"]);
    write(", update: minor");
    place.ok(&["lock", "-f", "m.yaml"]);
    let before = server.requests().len();
    place.ok(&["lock", "-f", "m.yaml"]);
    assert_eq!(server.requests().len(), before);
}

/// A repository next to the manifest is verified like one of a server.
#[test]
fn signatures_in_a_local_repository_are_verified() {
    let (true, Some(server)) = (need(&["ssh-keygen"]), GitServer::new()) else {
        return;
    };
    let (repository, release) = release_repository(&server, 5);
    ssh_key(&server, "other");
    let tag = |args: &[&str]| signing(&server, &repository, &release, &[&["tag"], args].concat());
    tag(&["-s", "-m", "one", "v1.0", "main"]);
    tag(&["-a", "-m", "two", "v2.0", "main"]);
    signed_commit(&server, &repository, &release, "signed");
    let place = Place::new();
    for key in ["release", "other"] {
        place.write(&format!("{key}.pub"), public(&server, key));
    }
    let from = server.url("team/platform.git");
    output(&place, ".", &["clone", "-q", "--mirror", &from, "bare"]);
    output(&place, ".", &["clone", "-q", "-b", "signed", &from, "copy"]);
    output(&place, "copy", &["branch", "-q", "main", "origin/main"]);
    let bundle = ["bundle", "create", "-q", "../platform.bundle", "--all"];
    output(&place, "bare", &bundle);
    let url = "https://git.example.com/team/platform.git";
    let requests = server.requests().len();
    for path in ["bare", "copy", "platform.bundle"] {
        let lock = |exit: i32, refs: &str, key: &str| {
            let entry = format!("path: {path}, {refs}, verify: {{keys: [{key}.pub]}}");
            place.write("m.yaml", manifest(url, &entry));
            place.write("landfall.lock", "version: 1\n");
            place.json(exit, &["lock", "-f", "m.yaml"])
        };
        lock(0, "refs: [v1.0, signed]", "release");
        let pinned = locked(&place);
        let verified = pinned["verified"].as_array().unwrap();
        let names: Vec<&Value> = verified.iter().map(|one| &one["ref"]).collect();
        assert_eq!(names, ["refs/heads/signed", "refs/tags/v1.0"], "{path}");
        place.ok(&["pull"]);
        let packed = format!("{path}.tar.zst");
        place.ok(&["pack", "-o", &packed]);
        place.ok(&["verify", &packed]);
        for (refs, key, why) in [
            ("ref: v1.0", "other", "refs/tags/v1.0 is not valid"),
            ("ref: signed", "other", "refs/heads/signed is not valid"),
            ("ref: v2.0", "release", "refs/tags/v2.0 is not signed"),
            ("ref: main", "release", "refs/heads/main is not signed"),
            ("tags: \"^v\"", "release", "v2.0 is not a signed tag"),
        ] {
            let report = lock(1, refs, key);
            assert!(reason(&report).contains(why), "{path}: {report}");
            assert!(!place.read("landfall.lock").contains("- refs/"), "{path}");
        }
        // a rule of the manifest
        for (key, exit) in [("release", 0), ("other", 1)] {
            let entry = manifest(url, &format!("path: {path}, ref: v1.0"));
            let rule = format!("verify: [{{match: \"git+{url}\", keys: [{key}.pub]}}]\n");
            place.write("m.yaml", entry + &rule);
            place.write("landfall.lock", "version: 1\n");
            place.json(exit, &["lock", "-f", "m.yaml"]);
        }
    }
    assert_eq!(server.requests().len(), requests);
    // a signed tag that was changed
    let text = output(&place, "bare", &["cat-file", "tag", "v1.0"]);
    place.write("tag", text.replace("one", "two"));
    let write = ["hash-object", "-t", "tag", "-w", "../tag"];
    let id = output(&place, "bare", &write);
    output(&place, "bare", &["update-ref", "refs/tags/v1.0", id.trim()]);
    let entry = "path: bare, ref: v1.0, verify: {keys: [release.pub]}";
    place.write("m.yaml", manifest(url, entry));
    place.write("landfall.lock", "version: 1\n");
    let report = place.json(1, &["lock", "-f", "m.yaml"]);
    assert!(reason(&report).contains("is not valid"), "{report}");
}
