//! Submodules: the commits that the locked refs pin.

use super::{manifest, output};
use crate::support::git::{GitServer, GitServerBehavior, history, pointer};
use crate::support::library::Digest;
use crate::support::{Place, landfall_serve};
use serde_json::Value;

/// Adds a commit to `main` with these submodules (path, URL, commit), and returns its id.
fn commit(server: &GitServer, name: &str, time: usize, modules: &[(&str, &str, &str)]) -> String {
    let repository = server.place.path("repos").join(name);
    let mut file = String::new();
    let mut links = String::new();
    for (path, url, commit) in modules {
        file += &format!("[submodule \"{path}\"]\n\tpath = {path}\n\turl = {url}\n");
        links += &format!("M 160000 {commit} {path}\n");
    }
    let from = match server
        .git(&repository, &["for-each-ref", "refs/heads/main"])
        .is_empty()
    {
        true => "",
        false => "from refs/heads/main^0\n",
    };
    let text = format!(
        "commit refs/heads/main\ncommitter T <t@example.com> {} +0000\ndata 2\nm\n\n{from}\
         M 100644 inline .gitmodules\ndata {}\n{file}\n{links}\n",
        1_650_000_000 + time,
        file.len()
    );
    server.import(&repository, &text);
    head(server, name)
}

fn head(server: &GitServer, name: &str) -> String {
    let repository = server.place.path("repos").join(name);
    server
        .git(&repository, &["rev-parse", "main"])
        .trim()
        .to_owned()
}

/// For each locked repository: the last component of its name, and the refs and commits that are
/// requested from it.
fn wanted(place: &Place) -> Vec<(String, Vec<String>)> {
    let lock: Value = serde_yaml::from_str(&place.read("landfall.lock")).unwrap();
    let texts = |list: &Value| -> Vec<String> {
        let list = list.as_array().unwrap().iter();
        list.map(|one| one.as_str().unwrap().to_owned()).collect()
    };
    let git = lock["git"].as_array().unwrap().iter();
    git.map(|one| {
        let name = one["name"].as_str().unwrap();
        let name = name.rsplit('/').next().unwrap().to_owned();
        (name, texts(&one["wanted"]))
    })
    .collect()
}

#[test]
fn submodules_are_locked_and_cloned_from_the_mirror() {
    let Some(server) = GitServer::new() else {
        return;
    };
    for name in ["platform.git", "modules.git", "inner.git"] {
        server.create(&format!("team/{name}"));
    }
    let inner = commit(&server, "team/inner.git", 0, &[]);
    commit(&server, "team/inner.git", 1, &[]);
    let absolute = server.url("team/inner.git");
    let modules = commit(
        &server,
        "team/modules.git",
        0,
        &[("deep/inner", &absolute, &inner)],
    );
    // `main` of `modules.git` has newer commits than the one that `platform.git` pins
    server.import(
        &server.place.path("repos/team/modules.git"),
        &history("main", 5, 3),
    );
    let links = [("libs/modules", "../modules.git", &*modules)];
    commit(&server, "team/platform.git", 0, &links);
    let place = Place::new();
    let url = server.url("team/platform.git");
    place.write("m.yaml", manifest(&url, "ref: main, submodules: true"));
    place.ok(&["lock", "-f", "m.yaml"]);
    let expected = [
        ("inner.git", &*inner),
        ("modules.git", &*modules),
        ("platform.git", "main"),
    ]
    .map(|(name, wanted)| (name.to_owned(), vec![wanted.to_owned()]));
    assert_eq!(wanted(&place), expected);
    let before = server.requests().len();
    let lock = place.read("landfall.lock");
    place.ok(&["lock", "-f", "m.yaml"]);
    assert_eq!(
        (server.requests().len(), place.read("landfall.lock")),
        (before, lock)
    );
    place.ok(&["pull"]);
    place.ok(&["pack", "-o", "b.tar.zst"]);
    let served = landfall_serve(&place, &["b.tar.zst"]);
    let site = format!(
        "apiVersion: landfall/v1\nkind: Site\nfiles: {}\n",
        served.url()
    );
    place.write("site.yaml", site);
    let rendered = place.ok(&["render", "git", "--site", "site.yaml"]);
    place.write("home/.gitconfig", rendered);
    let before = server.requests().len();
    output(
        &place,
        ".",
        &["clone", "-q", "--recurse-submodules", &url, "clone"],
    );
    let status = output(&place, "clone", &["submodule", "status", "--recursive"]);
    assert!(
        status.contains(&format!(" {modules} libs/modules")),
        "{status}"
    );
    assert!(
        status.contains(&format!(" {inner} libs/modules/deep/inner")),
        "{status}"
    );
    assert_eq!(server.requests().len(), before, "upstream gets no request");
}

#[test]
fn a_submodule_that_the_manifest_lists_as_well_is_one_entry() {
    let Some(server) = GitServer::new() else {
        return;
    };
    for name in ["platform.git", "modules.git"] {
        server.create(&format!("team/{name}"));
    }
    let modules = commit(&server, "team/modules.git", 0, &[]);
    commit(&server, "team/modules.git", 1, &[]);
    let links = [("modules", "../modules.git", &*modules)];
    commit(&server, "team/platform.git", 0, &links);
    let place = Place::new();
    let url = server.url("team/platform.git");
    let listed = format!(
        "- {{url: \"{}\", ref: main}}\n",
        server.url("team/modules.git")
    );
    place.write(
        "m.yaml",
        manifest(&url, "ref: main, submodules: true") + &listed,
    );
    let report = place.json(0, &["lock", "-f", "m.yaml"]);
    assert_eq!(report["items"].as_array().unwrap().len(), 2, "{report}");
    assert_eq!(wanted(&place)[0].1, [modules.clone(), "main".to_owned()]);
    let lock = place.read("landfall.lock");
    // upstream gets a new commit, and the pins are kept
    commit(&server, "team/modules.git", 2, &[]);
    let before = server.requests().len();
    place.ok(&["lock", "-f", "m.yaml"]);
    assert_eq!(
        (server.requests().len(), place.read("landfall.lock")),
        (before, lock)
    );
    place.write("m.yaml", manifest(&url, "ref: main"));
    place.ok(&["lock", "-f", "m.yaml"]);
    assert_eq!(wanted(&place).len(), 1);
    // an excluded submodule is not carried
    let exclude = format!("exclude: [\"git+{}\"]\n", server.url("team/modules.git"));
    place.write(
        "m.yaml",
        manifest(&url, "ref: main, submodules: true") + &exclude,
    );
    place.ok(&["lock", "-f", "m.yaml"]);
    assert_eq!(wanted(&place).len(), 1);
}

/// The lock also has a tag for the commit that the other repository needs. Upstream has no such
/// tag, so the repository seemed to have moved at each look-up.
#[test]
fn a_submodule_may_follow_its_branch() {
    let Some(server) = GitServer::new() else {
        return;
    };
    for name in ["platform.git", "modules.git"] {
        server.create(&format!("team/{name}"));
    }
    let needed = commit(&server, "team/modules.git", 0, &[]);
    commit(&server, "team/modules.git", 1, &[]);
    let links = [("modules", "../modules.git", &*needed)];
    commit(&server, "team/platform.git", 0, &links);
    let place = Place::new();
    let url = server.url("team/platform.git");
    let listed = format!(
        "- {{url: \"{}\", ref: main, update: digest}}\n",
        server.url("team/modules.git")
    );
    place.write(
        "m.yaml",
        manifest(&url, "ref: main, submodules: true") + &listed,
    );
    place.json(0, &["lock", "-f", "m.yaml"]);
    let check = ["update", "-f", "m.yaml", "--check"];
    place.json(0, &check);
    let newest = commit(&server, "team/modules.git", 2, &[]);
    place.json(4, &check);
    place.json(0, &["update", "-f", "m.yaml"]);
    let lock = place.read("landfall.lock");
    assert!(lock.contains(&newest) && lock.contains(&needed), "{lock}");
    place.json(0, &check);
}

#[test]
fn a_submodule_has_the_large_files_that_its_parent_requests() {
    let Some(server) = GitServer::new() else {
        return;
    };
    server.create("team/platform.git");
    let modules = server.create("team/modules.git");
    let large = b"large".repeat(1000);
    let pointer = pointer(&large);
    let text = "commit refs/heads/main\ncommitter T <t@example.com> 1650000000 +0000\ndata 2\nm\n";
    let size = pointer.len();
    server.import(
        &modules,
        &format!("{text}\nM 100644 inline one.bin\ndata {size}\n{pointer}\n\n"),
    );
    server.add_large_file(&large);
    let commit_id = head(&server, "team/modules.git");
    let links = [("modules", "../modules.git", &*commit_id)];
    commit(&server, "team/platform.git", 0, &links);
    let place = Place::new();
    let url = server.url("team/platform.git");
    let listed = format!(
        "- {{url: \"{}\", ref: \"{commit_id}\", submodules: true}}\n",
        server.url("team/modules.git")
    );
    place.write(
        "m.yaml",
        manifest(&url, "ref: main, submodules: true, lfs: true") + &listed,
    );
    place.ok(&["lock", "-f", "m.yaml"]);
    let lock = place.read("landfall.lock");
    let digest = Digest::sha256(&large).to_string();
    assert!(lock.contains(&digest), "{lock}");
}

#[test]
fn submodules_that_cannot_be_fetched_or_nest_too_deeply_are_errors() {
    let Some(server) = GitServer::new() else {
        return;
    };
    server.create("team/platform.git");
    let place = Place::new();
    let url = server.url("team/platform.git");
    place.write("m.yaml", manifest(&url, "ref: main, submodules: true"));
    let id = "0123456789012345678901234567890123456789";
    for (time, module, why) in [
        (0, "git@h.example:a/b.git", "is not the URL of a repository"),
        (1, "../../../x.git", "leads out of the server"),
        (2, "\"x", "line 3: the value is not valid"),
    ] {
        commit(&server, "team/platform.git", time, &[("m", module, id)]);
        let report = place.json(1, &["lock", "-f", "m.yaml"]);
        assert!(
            report["items"][0]["reason"].as_str().unwrap().contains(why),
            "{report}"
        );
    }
    // a commit that the repository of the submodule lacks
    commit(
        &server,
        "team/platform.git",
        3,
        &[("m", "../platform.git", id)],
    );
    let report = place.json(1, &["lock", "-f", "m.yaml"]);
    assert!(report.to_string().contains(id), "{report}");
    // each commit has the one before it as its submodule
    let mut before = commit(&server, "team/platform.git", 4, &[]);
    for time in 5..20 {
        let links = [("m", "../platform.git", &*before)];
        before = commit(&server, "team/platform.git", time, &links);
    }
    let report = place.json(1, &["lock", "-f", "m.yaml"]);
    let reason = report["items"][0]["reason"].as_str().unwrap();
    assert!(
        reason.contains("nested in more than 8 repositories"),
        "{report}"
    );
}

/// Hosts that are reached through a proxy count as public, so one git server acts as the proxy to
/// the internet.
#[test]
fn a_public_repository_cannot_lead_to_private_addresses() {
    let (Some(internet), Some(inside)) = (GitServer::new(), GitServer::new()) else {
        return;
    };
    internet.create("team/platform.git");
    inside.create("team/inner.git");
    let inner = commit(&inside, "team/inner.git", 0, &[]);
    let links = [("inner", &*inside.url("team/inner.git"), &*inner)];
    commit(&internet, "team/platform.git", 0, &links);
    let place = Place::new();
    place.set("http_proxy", &format!("http://{}", internet.address));
    let url = "http://public.test/team/platform.git";
    place.write("m.yaml", manifest(url, "ref: main, submodules: true"));
    let lock = |exit: i32, more: &[&str]| {
        let args = ["lock", "-f", "m.yaml", "--plain-http", "public.test"];
        place.json(exit, &[&args[..], more].concat())
    };
    let report = lock(3, &[]);
    let refusal = "public.test:80, a public host, leads to";
    assert!(report.to_string().contains(refusal), "{report}");
    assert_eq!(inside.requests().len(), 0, "{report}");
    let allowed = "apiVersion: landfall/v1\nkind: Site\nprivateTargets: [127.0.0.1]\n";
    place.write("site.yaml", allowed);
    lock(0, &["--site", "site.yaml"]);
    // the same for the URLs of large files
    let large = b"large".repeat(1000);
    for server in [&internet, &inside] {
        server.add_large_file(&large);
    }
    let text = pointer(&large);
    let text = format!(
        "commit refs/heads/lfs\ncommitter T <t@example.com> 1650000000 +0000\ndata 2\nm\n\n\
         M 100644 inline a.bin\ndata {}\n{text}\n\n",
        text.len()
    );
    internet.import(&internet.place.path("repos/team/platform.git"), &text);
    internet.set(GitServerBehavior {
        large_file_host: Some(inside.address.clone()),
        ..GitServerBehavior::default()
    });
    place.write("m.yaml", manifest(url, "ref: lfs, lfs: true"));
    lock(0, &[]);
    let before = inside.requests().len();
    let pull = |exit: i32, more: &[&str]| {
        let args = ["pull", "--plain-http", "public.test"];
        place.json(exit, &[&args[..], more].concat())
    };
    let report = pull(1, &[]);
    assert!(report.to_string().contains(refusal), "{report}");
    assert_eq!(inside.requests().len(), before, "{report}");
    pull(0, &["--site", "site.yaml"]);
}
