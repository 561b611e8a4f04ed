//! Git LFS: the pointers in git objects, and the large files that they name.

use super::{locked, manifest, output};
use crate::support::git::{GitServer, GitServerBehavior, pointer};
use crate::support::library::Digest;
use crate::support::reverse_proxy::{ProxyAction, ReverseProxy};
use crate::support::{Place, http, landfall_serve, need, run};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A repository with three large files, `one`, `two` and `old`: the first commit has `one` and
/// `old`, and the second `one` and `two`.
fn sample(server: &GitServer) -> [Vec<u8>; 3] {
    let repository = server.create("team/media.git");
    let large = ["one", "two", "old"].map(|name| name.repeat(100_000).into_bytes());
    let commit = |files: &[(&str, String)], more: &str| {
        let files: String = files
            .iter()
            .map(|(name, text)| format!("M 100644 inline {name}\ndata {}\n{text}\n", text.len()))
            .collect();
        let text =
            "commit refs/heads/main\ncommitter T <t@example.com> 1650000000 +0000\ndata 2\nm\n";
        server.import(&repository, &format!("{text}\n{more}{files}\n"));
    };
    let attributes = "*.bin filter=lfs diff=lfs merge=lfs -text\n".to_owned();
    let [one, two, old] = [0, 1, 2].map(|at| pointer(&large[at]));
    commit(
        &[
            (".gitattributes", attributes),
            ("a/one.bin", one),
            ("b.bin", old),
        ],
        "",
    );
    commit(&[("b.bin", two)], "from refs/heads/main^0\n");
    large
}

/// Like [`sample`], and the server has the large files.
fn complete_sample(server: &GitServer) -> [Vec<u8>; 3] {
    let large = sample(server);
    for content in &large {
        server.add_large_file(content);
    }
    large
}

#[test]
fn large_files_are_carried_served_and_exported() {
    let Some(server) = GitServer::new() else {
        return;
    };
    let large = sample(&server);
    let place = Place::new();
    let url = server.url("team/media.git");
    place.write("m.yaml", manifest(&url, "ref: main, lfs: true"));
    // the server lacks one of the two files on `main`
    server.add_large_file(&large[0]);
    let report = place.json(1, &["lock", "-f", "m.yaml"]);
    let lacking = Digest::sha256(&large[1]).to_string();
    assert!(
        report["items"][0]["reason"]
            .as_str()
            .unwrap()
            .contains(&lacking),
        "{report}"
    );
    server.add_large_file(&large[1]);
    place.ok(&["lock", "-f", "m.yaml"]);
    let mut expected: Vec<String> = large[..2]
        .iter()
        .map(|content| format!("{} {}", Digest::sha256(content), content.len()))
        .collect();
    expected.sort();
    assert_eq!(locked(&place)["largeFiles"], json!(expected));
    place.ok(&["pull"]);
    place.ok(&["pack", "-o", "b.tar.zst"]);
    place.ok(&["verify", "b.tar.zst"]);
    let before = server.requests().len();
    let served = landfall_serve(&place, &["b.tar.zst"]);
    let path = format!(
        "/git/{}/team/media.git/info/lfs/objects/batch",
        server.address
    );
    let batch = |oid: &str, operation: &str| {
        let body = json!({"operation": operation, "objects": [{"oid": oid, "size": 300_000}]});
        let address = served.url().replace("http://", "");
        http::request("POST", &address, &path, &[], body.to_string().as_bytes())
    };
    let oid = |at: usize| Digest::sha256(&large[at]).hex();
    let found = batch(&oid(1), "download").json();
    let href = found["objects"][0]["actions"]["download"]["href"]
        .as_str()
        .unwrap()
        .to_owned();
    let target = href.strip_prefix(&served.url()).unwrap();
    let address = served.url().replace("http://", "");
    let file = http::request("GET", &address, target, &[("Range", "bytes=3-5")], b"");
    assert_eq!((file.status, &*file.body), (206, &large[1][3..6]));
    let body = json!({"operation": "download", "objects": [{"oid": oid(1), "size": 1}]});
    let headers = [("X-Forwarded-Proto", "https"), ("Host", "mirror.example")];
    let forwarded = http::request(
        "POST",
        &address,
        &path,
        &headers,
        body.to_string().as_bytes(),
    );
    let there = format!("\"href\":\"https://mirror.example{target}");
    assert!(forwarded.text().contains(&there), "{}", forwarded.text());
    assert_eq!(
        batch(&oid(2), "download").json()["objects"][0]["error"]["code"],
        404
    );
    assert_eq!(batch(&oid(1), "upload").status, 403);
    place.ok(&["export", "git", "b.tar.zst", "-o", "repos"]);
    let exported = format!("repos/{}/team/media.git", server.address);
    let oid = oid(0);
    let name = "lfs/objects";
    let stored = format!("{exported}/{name}/{}/{}/{oid}", &oid[..2], &oid[2..4]);
    assert!(place.read_bytes(&stored) == large[0]);
    output(&place, &exported, &["fsck", "--strict"]);
    let export = [
        "export",
        "git",
        "b.tar.zst",
        "-o",
        "bundles",
        "--format",
        "bundle",
    ];
    let run = place.command().args(export).output().unwrap();
    let printed = String::from_utf8_lossy(&run.stderr).into_owned();
    assert!(
        run.status.success() && printed.contains("the git bundle omits 2 large files"),
        "{printed}"
    );
    let site = GitServer::new().unwrap();
    let target = site.create("team/media.git");
    let answer_uploads = |upload_status| {
        site.set(GitServerBehavior {
            upload_status: Some(upload_status),
            ..GitServerBehavior::default()
        });
    };
    let to = site.url("");
    answer_uploads("413 Payload Too Large");
    let report = place.json(1, &["push", "b.tar.zst", "--git-to", &to]);
    let why = report["items"][0]["reason"].as_str().unwrap();
    assert!(
        why.contains("413 Payload Too Large to an upload of Git LFS"),
        "{why}"
    );
    assert_eq!(
        site.git(&target, &["for-each-ref"]),
        "",
        "refs are pushed only after their large files"
    );
    answer_uploads("201 Created");
    let push = || place.json(0, &["push", "b.tar.zst", "--git-to", &to]);
    let dry_run = |status: &str, what: &str| {
        let push = ["push", "b.tar.zst", "--git-to", &to, "--dry-run"];
        let report = place.json(0, &push);
        let item = &report["items"][0];
        assert_eq!(item["status"], status, "{report}");
        let reason = item["reason"].as_str().unwrap_or_default();
        assert!(reason.ends_with(what), "{report}");
    };
    dry_run("skipped", ": refs/heads/main, 2 large files");
    assert_eq!(push()["items"][0]["status"], "done");
    let pushed = site
        .place
        .path("repos/lfs")
        .join(Digest::sha256(&large[1]).hex());
    assert!(std::fs::read(&pushed).unwrap() == large[1]);
    dry_run("present", "");
    std::fs::remove_file(&pushed).unwrap();
    dry_run("skipped", ": 1 large file");
    assert!(!pushed.exists(), "a dry run uploads nothing");
    assert_eq!(push()["items"][0]["status"], "done");
    assert!(pushed.exists());
    site.git(&target, &["fsck", "--strict"]);
    assert_eq!(push()["items"][0]["status"], "present");
    // without `lfs`, the lock lists no large files, and none is requested
    place.write("m.yaml", manifest(&url, "ref: main"));
    place.ok(&["lock", "-f", "m.yaml"]);
    assert!(locked(&place)["largeFiles"].is_null());
    assert!(
        server.requests()[before..]
            .iter()
            .all(|line| !line.contains("lfs"))
    );
}

#[test]
fn the_documented_host_of_large_files_is_predicted() {
    let Some(server) = GitServer::new() else {
        return;
    };
    for content in &sample(&server)[..2] {
        server.add_large_file(content);
    }
    let place = Place::new();
    let url = "https://github.com/team/media.git";
    place.write("m.yaml", manifest(url, "ref: main, lfs: true"));
    let mirror = format!(
        "upstreams: {{github.com: {{mirror: \"{}\"}}}}\n",
        server.url("")
    );
    place.write(
        "site.yaml",
        format!("apiVersion: landfall/v1\nkind: Site\n{mirror}"),
    );
    place.ok(&["lock", "-f", "m.yaml", "--site", "site.yaml"]);
    let egress = place.ok(&["egress", "--format", "csv"]);
    for host in ["github.com", "github-cloud.githubusercontent.com"] {
        assert!(egress.contains(&format!(",{host},443,")), "{egress}");
    }
}

#[test]
fn a_large_file_with_other_content_is_refused() {
    let Some(server) = GitServer::new() else {
        return;
    };
    let large = complete_sample(&server);
    let place = Place::new();
    let url = server.url("team/media.git");
    place.write("m.yaml", manifest(&url, "ref: main, lfs: true"));
    place.ok(&["lock", "-f", "m.yaml"]);
    let name = Digest::sha256(&large[1]).hex();
    let other = vec![b'x'; large[1].len()];
    server.place.write(&format!("repos/lfs/{name}"), &other);
    let report = place.json(1, &["pull"]);
    assert_eq!(report["items"][0]["status"], "failed", "{report}");
    server.add_large_file(&large[1]);
    place.ok(&["pull"]);
}

#[test]
fn the_host_that_stores_large_files_gets_no_account_of_the_git_server() {
    let Some(server) = GitServer::new() else {
        return;
    };
    let large = complete_sample(&server);
    let site = GitServer::new().unwrap();
    site.create("team/media.git");
    let content_of = move |target: &str| {
        let digest = |content: &&Vec<u8>| target.ends_with(&Digest::sha256(content).hex());
        large.iter().find(digest).cloned().unwrap_or_default()
    };
    // answers uploads and their confirmation with an empty body
    let storage = ReverseProxy::new("", move |request| match request.method.as_str() {
        "GET" => ProxyAction::Bytes(content_of(&request.target)),
        _ => ProxyAction::status(200),
    });
    let place = Place::new();
    let account = STANDARD.encode("git:secret");
    let hosts = [&server.address, &site.address, &storage.address];
    let auths: Value = hosts
        .map(|host| (host.clone(), json!({"auth": account})))
        .into_iter()
        .collect();
    place.write(
        "home/.docker/config.json",
        json!({"auths": auths}).to_string(),
    );
    let plain: Vec<&str> = hosts
        .iter()
        .flat_map(|host| ["--plain-http", host])
        .collect();
    let ok = |args: &[&str]| place.ok(&[args, &plain].concat());
    let url = server.url("team/media.git");
    place.write("m.yaml", manifest(&url, "ref: main, lfs: true"));
    let mut seen = 0;
    for (headers, expected) in [
        (json!({}), None),
        (
            json!({"Range": "bytes=0-0", "Authorization": "RemoteAuth token"}),
            Some("RemoteAuth token"),
        ),
    ] {
        for one in [&server, &site] {
            one.set(GitServerBehavior {
                authorization: Some(format!("Basic {account}")),
                large_file_host: Some(storage.address.clone()),
                large_file_headers: Some(headers.clone()),
                ..GitServerBehavior::default()
            });
        }
        let _ = std::fs::remove_dir_all(place.path("s"));
        ok(&["lock", "-f", "m.yaml", "--store", "s"]);
        ok(&["pull", "--store", "s"]);
        ok(&["push", "--store", "s", "--git-to", &site.url("")]);
        let requests = storage.requests().split_off(seen);
        seen += requests.len();
        for (method, part) in [("GET", "/lfs/"), ("PUT", "/lfs/"), ("POST", "/lfs/verify")] {
            let count = requests
                .iter()
                .filter(|request| request.is(method, part))
                .count();
            assert_eq!(count, 2, "{method} {part}: {requests:?}");
        }
        for request in &requests {
            assert_eq!(request.header("authorization"), expected, "{request:?}");
            assert_eq!(request.header("range"), None, "{request:?}");
        }
        // without the ref, the next push uploads the files again
        site.git(
            &site.place.path("repos/team/media.git"),
            &["update-ref", "-d", "refs/heads/main"],
        );
    }
    // a redirect to another host does not get a cookie of the server either
    let other = ReverseProxy::new("", |_| ProxyAction::status(200));
    let location = format!("http://{}/x", other.address);
    let redirecting = ReverseProxy::new("", move |_| {
        ProxyAction::Answer(
            302,
            vec![("Location".into(), location.clone())],
            String::new(),
        )
    });
    server.set(GitServerBehavior {
        authorization: Some(format!("Basic {account}")),
        large_file_host: Some(redirecting.address.clone()),
        large_file_headers: Some(json!({"Cookie": "session=token"})),
        ..GitServerBehavior::default()
    });
    std::fs::remove_dir_all(place.path("s")).unwrap();
    ok(&["lock", "-f", "m.yaml", "--store", "s"]);
    let pull = [&["pull", "--store", "s"][..], &plain].concat();
    place.json(1, &pull);
    let cookies = |proxy: &ReverseProxy| -> Vec<Option<String>> {
        let requests = proxy.requests().into_iter();
        requests
            .map(|request| request.header("cookie").map(str::to_owned))
            .collect()
    };
    assert!(cookies(&redirecting).contains(&Some("session=token".into())));
    assert!(!cookies(&other).is_empty());
    assert!(cookies(&other).iter().all(Option::is_none));
}

#[test]
fn an_upload_is_repeated_after_its_url_has_expired() {
    let Some(server) = GitServer::new() else {
        return;
    };
    complete_sample(&server);
    let site = GitServer::new().unwrap();
    site.create("team/media.git");
    // refuses the second upload, as if its URL had expired during the first one
    let uploads = AtomicUsize::new(0);
    let storage = ReverseProxy::new("", move |request| {
        let is_second = request.method == "PUT" && uploads.fetch_add(1, Ordering::Relaxed) == 1;
        ProxyAction::status(if is_second { 403 } else { 200 })
    });
    site.set(GitServerBehavior {
        large_file_host: Some(storage.address.clone()),
        ..GitServerBehavior::default()
    });
    let place = Place::new();
    let url = server.url("team/media.git");
    place.write("m.yaml", manifest(&url, "ref: main, lfs: true"));
    place.ok(&["lock", "-f", "m.yaml"]);
    place.ok(&["pull"]);
    let to = site.url("");
    place.ok(&["push", "--git-to", &to, "--plain-http", &storage.address]);
    assert_eq!(storage.count("PUT", "/lfs/"), 3);
}

/// Before, only 307 and 308 were followed. GitHub sends 301 for a repository that was renamed, and
/// many servers from http to https.
#[test]
fn redirected_requests_for_large_files_keep_their_method() {
    let Some(server) = GitServer::new() else {
        return;
    };
    let large = complete_sample(&server);
    let site = GitServer::new().unwrap();
    site.create("team/media.git");
    let redirecting = |server: &GitServer| {
        let address = server.address.clone();
        ReverseProxy::new("", move |request| {
            let location = format!("http://{address}{}", request.target);
            ProxyAction::Answer(301, vec![("Location".into(), location)], String::new())
        })
    };
    let (former, storage) = (redirecting(&server), redirecting(&site));
    site.set(GitServerBehavior {
        large_file_host: Some(storage.address.clone()),
        ..GitServerBehavior::default()
    });
    let place = Place::new();
    let lfs = format!("http://{}/team/media.git/info/lfs", former.address);
    let more = format!("ref: main, lfs: \"{lfs}\"");
    place.write("m.yaml", manifest(&server.url("team/media.git"), &more));
    place.ok(&["lock", "-f", "m.yaml"]);
    place.ok(&["pull"]);
    let to = site.url("");
    place.ok(&["push", "--git-to", &to, "--plain-http", &storage.address]);
    assert!(former.count("POST", "/objects/batch") > 0);
    for content in &large[..2] {
        let name = format!("repos/lfs/{}", Digest::sha256(content).hex());
        assert!(std::fs::read(site.place.path(name)).unwrap() == *content);
    }
}

#[test]
fn answers_that_break_off_are_requested_again() {
    let Some(server) = GitServer::new() else {
        return;
    };
    complete_sample(&server);
    let site = GitServer::new().unwrap();
    let target = site.create("team/media.git");
    for server in [&server, &site] {
        server.set(GitServerBehavior {
            cut_first_answers: true,
            ..GitServerBehavior::default()
        });
    }
    let place = Place::new();
    place.write(
        "m.yaml",
        manifest(&server.url("team/media.git"), "ref: main, lfs: true"),
    );
    place.ok(&["lock", "-f", "m.yaml"]);
    place.ok(&["pull"]);
    place.ok(&["push", "--git-to", &site.url("")]);
    assert_ne!(site.git(&target, &["for-each-ref"]), "");
}

/// The client of Git LFS itself, against the mirror.
#[test]
fn a_clone_with_git_lfs_has_the_large_files() {
    let (true, Some(server)) = (need(&["git-lfs"]), GitServer::new()) else {
        return;
    };
    let large = complete_sample(&server);
    let place = Place::new();
    let url = server.url("team/media.git");
    place.write("m.yaml", manifest(&url, "ref: main, lfs: true"));
    place.ok(&["lock", "-f", "m.yaml"]);
    place.ok(&["pull"]);
    place.ok(&["pack", "-o", "b.tar.zst"]);
    let served = landfall_serve(&place, &["b.tar.zst"]);
    run(place.clean("git").args(["lfs", "install", "--skip-repo"]));
    let here = format!("{}/git/{}/team/media.git", served.url(), server.address);
    let before = server.requests().len();
    output(&place, ".", &["clone", "-q", &here, "clone"]);
    assert!(place.read_bytes("clone/a/one.bin") == large[0]);
    assert!(place.read_bytes("clone/b.bin") == large[1]);
    assert_eq!(server.requests().len(), before, "upstream gets no request");
}
