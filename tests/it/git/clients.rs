//! The git clients of Flux and Argo CD, and rare requests of git, against the mirror.

use super::{manifest, output};
use crate::support::git::{GitServer, history};
use crate::support::peers::Server;
use crate::support::programs::go_program;
use crate::support::{Place, landfall_serve, run};
use std::path::{Path, PathBuf};

/// 40 commits on `main`, a branch that is not carried, an annotated and two plain tags.
fn sample(server: &GitServer) -> PathBuf {
    let repository = server.create("team/platform.git");
    server.import(&repository, &history("main", 0, 40));
    server.git(&repository, &["branch", "other", "main~3"]);
    server.git(
        &repository,
        &["tag", "-a", "-m", "one", "v1.0.0", "main~20"],
    );
    server.git(&repository, &["tag", "v1.1.0", "main~10"]);
    server.git(&repository, &["tag", "v2.0.0", "main~5"]);
    repository
}

/// Locks, packs and serves the repository; `more` are further fields of its manifest entry. Returns
/// the server and the URL of the repository there.
fn mirror(place: &Place, server: &GitServer, more: &str) -> (Server, String) {
    place.write("m.yaml", manifest(&server.url("team/platform.git"), more));
    place.ok(&["lock", "-f", "m.yaml", "--refresh"]);
    place.ok(&["pull"]);
    place.ok(&["pack", "-o", "b.tar.zst"]);
    let served = landfall_serve(place, &["b.tar.zst"]);
    let url = format!("{}/git/{}/team/platform.git", served.url(), server.address);
    (served, url)
}

/// Runs the program that contains the clients, and returns its output.
fn client(place: &Place, program: &Path, args: &[&str]) -> String {
    let printed = run(place.clean(program).args(args));
    String::from_utf8(printed).unwrap()
}

/// Clones with Flux's client. Returns the revision that it prints, and the tree id of `HEAD`.
fn flux(place: &Place, program: &Path, url: &str, what: [&str; 2], shallow: bool) -> [String; 2] {
    let clone = tempfile::tempdir_in(place.dir()).unwrap();
    let folder = clone.path().to_str().unwrap();
    let depth: &[&str] = if shallow { &["shallow"] } else { &[] };
    let printed = client(
        place,
        program,
        &[&["flux", url, folder], &what[..], depth].concat(),
    );
    output(place, folder, &["fsck", "--strict"]);
    let changes = output(place, folder, &["status", "--porcelain"]);
    assert_eq!(changes, "", "{what:?}");
    [
        printed,
        output(place, folder, &["rev-parse", "HEAD^{tree}"]),
    ]
}

#[test]
fn flux_clones_the_mirror_as_it_clones_the_upstream() {
    let (Some(server), Some(program)) = (GitServer::new(), go_program("gitops-clients")) else {
        return;
    };
    let repository = sample(&server);
    let place = Place::new();
    let (_served, here) = mirror(&place, &server, "ref: main, tags: \".*\"");
    let upstream = server.url("team/platform.git");
    let commit = server.git(&repository, &["rev-parse", "main~7"]);
    for what in [
        ["branch", "main"],
        ["tag", "v1.0.0"],
        ["tag", "v1.1.0"],
        ["semver", ">=1.0.0 <2.0.0"],
        ["ref", "refs/tags/v1.1.0"],
        ["commit", commit.trim()],
    ] {
        for shallow in [false, true] {
            assert_eq!(
                flux(&place, &program, &here, what, shallow),
                flux(&place, &program, &upstream, what, shallow),
                "{what:?}, shallow: {shallow}"
            );
        }
    }
    // a branch that did not change is not cloned again
    let [revision, _] = flux(&place, &program, &here, ["branch", "main"], true);
    let folder = place.path("again");
    let folder = folder.to_str().unwrap();
    let args = ["unchanged", &here, folder, "main", revision.trim()];
    let again = client(&place, &program, &args);
    assert_eq!(again, revision);
}

/// Flux clones shallowly unless a commit is named.
#[test]
fn flux_clones_a_shallow_mirror() {
    let (Some(server), Some(program)) = (GitServer::new(), go_program("gitops-clients")) else {
        return;
    };
    sample(&server);
    let place = Place::new();
    let (_served, here) = mirror(&place, &server, "refs: [main, v1.0.0], depth: 1");
    let upstream = server.url("team/platform.git");
    for what in [["branch", "main"], ["tag", "v1.0.0"], ["semver", "1.x"]] {
        let expected = if what[0] == "semver" {
            ["tag", "v1.0.0"]
        } else {
            what
        };
        assert_eq!(
            flux(&place, &program, &here, what, true),
            flux(&place, &program, &upstream, expected, true),
            "{what:?}"
        );
    }
}

/// The commands of Argo CD's repo-server: the refs are listed by go-git, and fetched by git.
#[test]
fn argo_cd_lists_fetches_and_checks_out() {
    let (Some(server), Some(program)) = (GitServer::new(), go_program("gitops-clients")) else {
        return;
    };
    let repository = sample(&server);
    let place = Place::new();
    let (served, here) = mirror(&place, &server, "ref: main, tags: \".*\"");
    let listed = |url: &str| {
        let printed = client(&place, &program, &["argo", url]);
        let mut lines: Vec<String> = printed.lines().map(str::to_owned).collect();
        lines.retain(|line| !line.ends_with("/other"));
        lines.sort();
        lines
    };
    assert_eq!(listed(&here), listed(&server.url("team/platform.git")));
    let id = |name: &str| {
        let printed = server.git(&repository, &["rev-parse", &format!("{name}^{{commit}}")]);
        printed.trim().to_owned()
    };
    let fetch = |folder: &str, revision: &str, depth: &[&str]| {
        let revision: &[&str] = if revision.is_empty() {
            &[]
        } else {
            &[revision]
        };
        let args = [
            &["fetch", "origin"],
            revision,
            depth,
            &["--force", "--prune"],
        ]
        .concat();
        output(&place, folder, &args);
    };
    let check_out = |folder: &str, name: &str, commit: &str| {
        output(&place, folder, &["checkout", "--force", name]);
        output(&place, folder, &["clean", "-ffdx"]);
        let found = output(&place, folder, &["rev-parse", "HEAD"]);
        assert_eq!(found.trim(), commit);
        output(&place, folder, &["fsck", "--strict"]);
    };
    let depths = [("whole", &["--tags"][..]), ("one", &["--depth", "1"])];
    for (folder, depth) in depths {
        output(&place, ".", &["init", "-q", folder]);
        output(&place, folder, &["remote", "add", "origin", &here]);
        fetch(folder, "", depth);
        check_out(folder, &id("main"), &id("main"));
        // the commit of a tag, and a commit that no ref names
        for name in ["v1.0.0", "main~7"] {
            fetch(folder, &id(name), depth);
            check_out(folder, "FETCH_HEAD", &id(name));
        }
    }
    // a newer bundle, with new commits and without the tag `v2.0.0`
    drop(served);
    server.import(&repository, &history("main", 40, 2));
    server.git(&repository, &["tag", "-d", "v2.0.0"]);
    let (_served, here) = mirror(&place, &server, "ref: main, tags: \".*\"");
    for (folder, depth) in depths {
        output(&place, folder, &["remote", "set-url", "origin", &here]);
        fetch(folder, "", depth);
        check_out(folder, &id("main"), &id("main"));
    }
}

/// Every server of git accepts these requests; more than they ask for is a correct answer.
#[test]
fn git_fetches_commits_by_their_ids_and_with_any_filter_and_depth() {
    let Some(server) = GitServer::new() else {
        return;
    };
    sample(&server);
    let place = Place::new();
    let (_served, url) = mirror(&place, &server, "ref: main, tags: \".*\"");
    for version in ["0", "2"] {
        let protocol = format!("protocol.version={version}");
        let git = |folder: &str, args: &[&str]| {
            let args = [&["-c", protocol.as_str()][..], args].concat();
            output(&place, folder, &args).trim().to_owned()
        };
        let count = |folder: &str, of: &str| git(folder, &["rev-list", "--count", of]);
        let options = [
            "--shallow-since=2020-01-01",
            "--shallow-exclude=v1.0.0",
            "--filter=tree:0",
            "--filter=blob:limit=9",
        ];
        for (number, option) in options.into_iter().enumerate() {
            let folder = format!("{version}-{number}");
            git(".", &["clone", "-q", option, &url, &folder]);
            assert_eq!(count(&folder, "HEAD"), "40", "{version} {option}");
        }
        let shallow = format!("shallow-{version}");
        git(".", &["clone", "-q", "--depth", "2", &url, &shallow]);
        git(&shallow, &["fetch", "-q", "--deepen", "3"]);
        assert_eq!(count(&shallow, "HEAD"), "40", "{version}");
        let older = git(&shallow, &["rev-parse", "HEAD~25"]);
        let by_id = format!("by-id-{version}");
        git(".", &["init", "-q", &by_id]);
        git(&by_id, &["fetch", "-q", &url, &older]);
        assert_eq!(count(&by_id, "FETCH_HEAD"), "15", "{version}");
    }
}
