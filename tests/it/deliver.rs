//! Pushing to registries that behave differently: checks before the first upload, chunks, quotas,
//! immutable tags.

use crate::support::harbor::Harbor;
use crate::support::images::{OCI_ZSTD, noise, tarball};
use crate::support::peers::{Server, own_registry};
use crate::support::reverse_proxy::{ProxyAction, RecordedRequest, ReverseProxy};
use crate::support::{Images, Place, http, need};
use serde_json::{Value, json};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

const NEEDS: [&str; 1] = ["gzip"];
pub(crate) const MIB: usize = 1 << 20;

/// A store with images, and their lock.
pub(crate) struct Stored {
    place: Place,
    upstream: Server,
    images: Images,
    list: Vec<Value>,
}

/// Creates a store with one image for each name. The image has one layer of about the given number
/// of bytes.
pub(crate) fn stored(names: &[(&str, usize)]) -> Stored {
    let place = Place::new();
    let upstream = own_registry();
    let images = Images::new(place.path("layout"));
    let mut manifest =
        "apiVersion: landfall/v1\nkind: Manifest\nmetadata: {name: t}\nimages:\n".to_owned();
    let mut list = Vec::new();
    for (seed, (name, size)) in names.iter().enumerate() {
        let content = tarball(&[("data", &noise(seed as u64 + 1, *size))]);
        let layer = images.blob(OCI_ZSTD, &zstd::encode_all(&content[..], 1).unwrap());
        list.push(images.image("linux/amd64", &[layer]));
        images.push(&upstream.address, name, "v1", &list[seed]);
        manifest += &format!("- {}/{name}:v1\n", upstream.address);
    }
    place.write("m.yaml", manifest);
    place.ok(&["lock", "-f", "m.yaml", "--store", "store"]);
    place.ok(&["pull", "--store", "store"]);
    Stored {
        place,
        upstream,
        images,
        list,
    }
}

impl Stored {
    pub(crate) fn digest(&self, at: usize) -> &str {
        self.list[at]["digest"].as_str().unwrap()
    }

    pub(crate) fn push(&self, exit: i32, to: &str, more: &[&str]) -> Value {
        let host = to.split('/').next().unwrap();
        self.place.json(
            exit,
            &[
                &["push", "--store", "store", "--to", to, "--plain-http", host],
                more,
            ]
            .concat(),
        )
    }
}

pub(crate) fn delivered_digest(address: &str, repository: &str) -> Option<String> {
    http::manifest(address, repository, "v1")
        .header("docker-content-digest")
        .map(str::to_owned)
}

fn message(report: &Value) -> &str {
    report["error"]["message"].as_str().unwrap()
}

/// Answers 401 with a Basic challenge to requests without an account.
fn challenge_without_account(request: &RecordedRequest) -> Option<ProxyAction> {
    request.header("authorization").is_none().then(|| {
        let challenge = (
            "WWW-Authenticate".to_owned(),
            "Basic realm=\"r\"".to_owned(),
        );
        ProxyAction::Answer(401, vec![challenge], String::new())
    })
}

#[test]
fn all_problems_of_a_push_are_reported_before_anything_is_uploaded() {
    if !need(&NEEDS) {
        return;
    }
    let stored = stored(&[
        ("four/app", 40),
        ("one/app", 100),
        ("three/app", 300),
        ("two/app", 200),
    ]);
    let place = &stored.place;
    let images = &stored.images;
    let registry = own_registry();
    let middle = ReverseProxy::new(&registry.address, |request| {
        match request.is("POST", "/v2/two/app/blobs") {
            true => ProxyAction::refuse(403, "DENIED", "no pushing here"),
            false => challenge_without_account(request).unwrap_or(ProxyAction::Pass),
        }
    });
    let to = &middle.address;
    place.write(
        "home/.docker/config.json",
        json!({"auths": {to: {"auth": "dTpw"}}}).to_string(),
    );
    let other = images.image("linux/amd64", &[images.layer(&[("other", b"x")])]);
    images.push(&registry.address, "one/app", "v1", &other);
    let upstream = &stored.upstream.address;
    let site = format!(
        "apiVersion: landfall/v1\nkind: Site\nregistry:\n  address: {to}\n  paths:\n    {upstream}/three/app: {}\n    \
         {upstream}/four/app: {}\n",
        "y".repeat(251),
        "x".repeat(250)
    );
    place.write("site.yaml", site);
    let report = stored.push(1, to, &["--site", "site.yaml"]);
    let text = message(&report);
    let other = other["digest"].as_str().unwrap();
    for part in [
        "4 problems",
        "one/app:v1 already points to",
        other,
        stored.digest(1),
        "--move-tags",
        "two/app",
        "no pushing here",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.matches("maximum of 255").count() == 2, "{text}");
    let problems = report["problems"].as_array().unwrap();
    let kinds: Vec<&str> = problems
        .iter()
        .map(|problem| problem["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["name", "name", "rights", "tag"]);
    assert_eq!(
        (&problems[3]["stands"], &problems[3]["wanted"]),
        (&other.into(), &stored.digest(1).into())
    );
    assert!(
        report["items"]
            .as_array()
            .unwrap()
            .iter()
            .all(|item| item["status"] == "failed"),
        "{report:#}"
    );
    assert_eq!((middle.count("PUT", ""), middle.count("PATCH", "")), (0, 0));

    // one problem is left; the exit code is 3 because one image exists at the registry already
    images.push(&registry.address, "three/app", "v1", &stored.list[2]);
    let report = stored.push(3, to, &["--move-tags", "--all-or-nothing"]);
    let text = message(&report);
    assert!(
        text.contains("because of 1 problem") && text.contains("no pushing here"),
        "{text}"
    );
    let statuses: Vec<&Value> = report["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| &item["status"])
        .collect();
    assert_eq!(statuses, ["failed", "failed", "present", "failed"]);
    assert!(
        report["items"][0]["reason"]
            .as_str()
            .unwrap()
            .contains("not sent"),
        "{report:#}"
    );
    assert_eq!(middle.count("PUT", ""), 0);

    // by default, the problem stops only its own item
    let report = stored.push(3, to, &["--move-tags"]);
    let items = report["items"].as_array().unwrap();
    let statuses: Vec<&Value> = items.iter().map(|item| &item["status"]).collect();
    assert_eq!(
        statuses,
        ["done", "done", "present", "failed"],
        "{report:#}"
    );
}

#[test]
fn moved_tags_are_reported_and_a_second_push_sends_one_request_per_tag() {
    if !need(&NEEDS) {
        return;
    }
    let stored = stored(&[("one/app", 100), ("two/app", 200)]);
    let registry = own_registry();
    let other = stored
        .images
        .image("linux/amd64", &[stored.images.layer(&[("other", b"x")])]);
    stored
        .images
        .push(&registry.address, "one/app", "v1", &other);
    let report = stored.push(0, &registry.address, &["--move-tags"]);
    let moved = &report["moved"][0];
    assert_eq!(
        (&moved["from"], &moved["to"]),
        (&other["digest"], &stored.digest(0).into()),
        "{report:#}"
    );
    assert_eq!(
        delivered_digest(&registry.address, "one/app").unwrap(),
        stored.digest(0)
    );
    let report = stored.push(0, &registry.address, &[]);
    assert_eq!(report["totals"]["requests"], 2, "{report:#}");
}

#[test]
fn missing_harbor_projects_are_reported_or_created() {
    if !need(&NEEDS) {
        return;
    }
    let stored = stored(&[("one/app", 100), ("one/b", 100), ("two/app", 200)]);
    let registry = own_registry();
    let harbor = Harbor::new(&registry.address, &[]);
    stored
        .place
        .write("home/.docker/config.json", harbor.auth_file());
    let report = stored.push(1, harbor.address(), &[]);
    let text = message(&report);
    assert!(
        text.contains("no project 'one'") && text.contains("(affects 2 deliveries)"),
        "{text}"
    );
    assert!(
        text.contains("no project 'two'") && text.contains("--create-projects"),
        "{text}"
    );
    assert_eq!(harbor.middle.count("POST", ""), 0);
    stored.push(0, harbor.address(), &["--create-projects"]);
    assert_eq!(
        harbor.projects().into_keys().collect::<Vec<_>>(),
        ["one", "two"]
    );
    assert_eq!(
        delivered_digest(&registry.address, "one/b").unwrap(),
        stored.digest(1)
    );
    // a repository without a project
    let site = format!(
        "apiVersion: landfall/v1\nkind: Site\nregistry:\n  address: {}\n  paths: {{\"{}/two/app\": pause}}\n",
        harbor.address(),
        stored.upstream.address
    );
    stored.place.write("site.yaml", site);
    let report = stored.push(3, harbor.address(), &["--site", "site.yaml"]);
    assert!(
        message(&report).contains("Harbor requires PROJECT/NAME"),
        "{}",
        message(&report)
    );
}

#[test]
fn a_push_beyond_a_harbor_quota_is_refused_before_any_upload() {
    if !need(&NEEDS) {
        return;
    }
    let stored = stored(&[("17/a", 1000), ("17/b", 300_000), ("two/app", 200)]);
    let registry = own_registry();
    let harbor = Harbor::new(&registry.address, &[("17", 200_000, 100), ("two", -1, 0)]);
    stored
        .place
        .write("home/.docker/config.json", harbor.auth_file());
    // the other project has room
    let report = stored.push(3, harbor.address(), &[]);
    let text = report["problems"][0]["message"].as_str().unwrap();
    assert!(
        text.contains("the project '17' needs 302 kB, and has 200 kB left"),
        "{text}"
    );
    assert_eq!(harbor.middle.count("PUT", "/17/"), 0);
}

#[test]
fn a_quota_refusal_is_final_for_its_project() {
    if !need(&NEEDS) {
        return;
    }
    // the quota cannot be read before the push, and is exceeded during it
    let names: Vec<(String, usize)> = (10..30).map(|n| (format!("one/app{n}"), 1000)).collect();
    let mut names: Vec<(&str, usize)> = names
        .iter()
        .map(|(name, size)| (name.as_str(), *size))
        .collect();
    names.push(("two/app", 1000));
    let stored = stored(&names);
    let registry = own_registry();
    let left = AtomicUsize::new(9000);
    let middle = ReverseProxy::new(&registry.address, move |request| {
        let body = request.is("PUT", "/v2/one/") && request.target.contains("/blobs/uploads/");
        let room = || {
            left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
                left.checked_sub(request.length)
            })
        };
        match body && room().is_err() {
            true => {
                ProxyAction::refuse(403, "DENIED", "Quota exceeded when processing the request")
            }
            false => ProxyAction::Pass,
        }
    });
    let report = stored.push(3, &middle.address, &["--jobs", "2"]);
    let items = report["items"].as_array().unwrap();
    let done: Vec<&Value> = items
        .iter()
        .filter(|item| item["status"] == "done")
        .collect();
    assert!(
        done.iter()
            .any(|item| item["name"].as_str().unwrap().contains("two/app")),
        "{report:#}"
    );
    assert!(done.len() > 2, "{report:#}");
    for (at, item) in items.iter().enumerate() {
        let repository = item["name"]
            .as_str()
            .unwrap()
            .split_once('/')
            .unwrap()
            .1
            .trim_end_matches(":v1");
        let expected = (item["status"] == "done").then(|| stored.digest(at).to_owned());
        assert_eq!(
            delivered_digest(&registry.address, repository),
            expected,
            "{repository}"
        );
    }
    assert!(
        items[19]["reason"]
            .as_str()
            .unwrap()
            .contains("is used up, as the registry answered"),
        "{report:#}"
    );
    // the registry refuses only the uploads in progress; later uploads are not started
    let refused = items
        .iter()
        .filter(|item| item["reason"].as_str().is_some_and(|r| r.contains("403")));
    assert!(refused.count() <= 2, "{report:#}");
}

#[test]
fn a_refused_or_cut_upload_continues_in_chunks() {
    if !need(&NEEDS) {
        return;
    }
    let stored = stored(&[("big/app", 36 * MIB), ("big/other", 17 * MIB)]);
    for cut in [false, true] {
        let registry = own_registry();
        // some registries accept a chunk with 201 and a stale Range (ECR), or with 204 (GCR)
        let patches = AtomicUsize::new(0);
        let middle = ReverseProxy::new(&registry.address, move |request| {
            match request.method.as_str() {
                "PUT" | "PATCH" if request.length > 16 * MIB && cut => ProxyAction::CutAt(5 * MIB),
                "PUT" | "PATCH" if request.length > 16 * MIB => ProxyAction::status(413),
                "PATCH" => {
                    let status = [201, 204, 202][patches.fetch_add(1, Ordering::SeqCst) % 3];
                    ProxyAction::Change(Box::new(move |response| {
                        assert_eq!(response.status, 202, "{}", response.text());
                        response.status = status;
                        response.headers.retain(|(name, _)| name != "range");
                        response.headers.push(("range".into(), "0-0".into()));
                    }))
                }
                _ => ProxyAction::Pass,
            }
        });
        let run = stored.place.command();
        let mut run = run;
        run.args([
            "push",
            "--store",
            "store",
            "--to",
            &middle.address,
            "--jobs",
            "1",
            "--progress",
            "plain",
        ]);
        run.args(["--plain-http", &middle.address]);
        let output = run.output().unwrap();
        let printed = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{printed}");
        let why = if cut {
            "cut the connection twice at the same position of"
        } else {
            "refuses (413)"
        };
        assert!(
            printed.contains(why) && printed.contains("in chunks of 16 MiB"),
            "{printed}"
        );
        for (at, repository) in ["big/app", "big/other"].into_iter().enumerate() {
            assert_eq!(
                delivered_digest(&registry.address, repository).unwrap(),
                stored.digest(at)
            );
        }
        // the first blob is sent in 3 chunks, and the second in 2; before that, only the first blob
        // was sent whole: once if it is refused, and twice if it is cut off
        let large = middle
            .requests()
            .iter()
            .filter(|request| request.length > 16 * MIB)
            .count();
        assert_eq!(
            (middle.count("PATCH", ""), large),
            (5, if cut { 2 } else { 1 }),
            "{printed}"
        );
    }
}

#[test]
fn chunks_have_the_size_that_the_registry_requires() {
    if !need(&NEEDS) {
        return;
    }
    let stored = stored(&[("big/app", 36 * MIB)]);
    let registry = own_registry();
    let refused = AtomicUsize::new(0);
    let middle = ReverseProxy::new(&registry.address, move |request| {
        match request.method.as_str() {
            "PUT" if request.length > MIB && refused.fetch_add(1, Ordering::SeqCst) == 0 => {
                ProxyAction::status(413)
            }
            "POST" => ProxyAction::Change(Box::new(|response| {
                response
                    .headers
                    .push(("oci-chunk-min-length".into(), (20 * MIB).to_string()));
            })),
            _ => ProxyAction::Pass,
        }
    });
    stored.push(0, &middle.address, &["--jobs", "1"]);
    let lengths: Vec<usize> = middle
        .requests()
        .iter()
        .filter(|request| request.method == "PATCH")
        .map(|request| request.length)
        .collect();
    assert!(
        matches!(lengths[..], [first, second] if first == 20 * MIB && second < first),
        "{lengths:?}"
    );
}

#[test]
fn a_refused_chunk_of_the_required_size_ends_the_upload() {
    if !need(&NEEDS) {
        return;
    }
    let stored = stored(&[("big/app", 36 * MIB)]);
    for cut in [false, true] {
        let registry = own_registry();
        let middle = ReverseProxy::new(&registry.address, move |request| {
            match request.method.as_str() {
                "PUT" | "PATCH" if request.length > 16 * MIB && cut => ProxyAction::CutAt(5 * MIB),
                "PUT" | "PATCH" if request.length > 16 * MIB => ProxyAction::status(413),
                "POST" => ProxyAction::Change(Box::new(|response| {
                    let header = ("oci-chunk-min-length".into(), (32 * MIB).to_string());
                    response.headers.push(header);
                })),
                _ => ProxyAction::Pass,
            }
        });
        let report = stored.push(1, &middle.address, &["--jobs", "1"]);
        assert_eq!(report["items"][0]["status"], "failed", "{report:#}");
        assert!(middle.count("PATCH", "") > 0);
    }
}

#[test]
fn a_registry_that_refuses_even_small_chunks_is_reported_with_its_limit() {
    if !need(&NEEDS) {
        return;
    }
    let stored = stored(&[("one/app", 2 * MIB)]);
    let registry = own_registry();
    let middle = ReverseProxy::new(&registry.address, |request| match request.length > MIB {
        true => ProxyAction::status(413),
        false => ProxyAction::Pass,
    });
    let report = stored.push(1, &middle.address, &[]);
    let reason = report["items"][0]["reason"].as_str().unwrap();
    assert!(
        reason.contains("413") && reason.contains("accepts no body of 3 MiB"),
        "{reason}"
    );
    assert!(reason.contains("client_max_body_size"), "{reason}");
}

#[test]
fn registries_that_refuse_mounts_or_hide_missing_content_are_supported() {
    if !need(&NEEDS) {
        return;
    }
    let stored = stored(&[("one/app", 5000), ("two/app", 5000)]);
    let upstream = &stored.upstream.address;
    for mount in [202, 401, 403] {
        let registry = own_registry();
        let middle = ReverseProxy::new(&registry.address, move |request| {
            let head = request.method == "HEAD";
            match request.is("POST", "mount=") {
                // the registry does not support mounts, and starts an upload
                true if mount == 202 => {
                    ProxyAction::As(request.target.split('?').next().unwrap().to_owned())
                }
                true => ProxyAction::status(mount),
                // Artifactory and others answer 403 for missing content
                false if head => ProxyAction::Change(Box::new(|response| {
                    if response.status == 404 {
                        response.status = 403;
                    }
                })),
                false => ProxyAction::Pass,
            }
        });
        let site = format!(
            "apiVersion: landfall/v1\nkind: Site\nregistry:\n  address: {}\n  paths: {{\"{upstream}/one/app\": [one/app, \
             three/app]}}\n",
            middle.address
        );
        stored.place.write("site.yaml", site);
        stored.push(0, &middle.address, &["--site", "site.yaml"]);
        assert_eq!(
            delivered_digest(&registry.address, "three/app").unwrap(),
            stored.digest(0),
            "{mount}"
        );
        assert!(middle.count("POST", "mount=") > 0);
        // if only the manifests are missing, no blob is sent again
        for repository in ["one/app", "two/app", "three/app"] {
            let manifest = format!(
                "/v2/{repository}/manifests/{}",
                delivered_digest(&registry.address, repository).unwrap()
            );
            assert_eq!(
                http::request("DELETE", &registry.address, &manifest, &[], b"").status,
                202
            );
        }
        let before = middle.count("PUT", "/blobs/");
        stored.push(0, &middle.address, &["--site", "site.yaml"]);
        assert_eq!(middle.count("PUT", "/blobs/"), before, "{mount}");
    }
}

#[test]
fn an_upload_is_cancelled_if_its_content_cannot_be_read() {
    if !need(&NEEDS) {
        return;
    }
    let stored = stored(&[("one/app", 5000)]);
    let cancelled = |exit: i32| {
        let registry = own_registry();
        let middle = ReverseProxy::new(&registry.address, |_| ProxyAction::Pass);
        stored.push(exit, &middle.address, &[]);
        middle.count("DELETE", "/blobs/uploads/")
    };
    let before = cancelled(0);
    let manifest: Value = serde_json::from_slice(&stored.images.bytes(stored.digest(0))).unwrap();
    let layer = manifest["layers"][0]["digest"].as_str().unwrap();
    let hex = layer.trim_start_matches("sha256:");
    let path = stored.place.path(format!("store/blobs/sha256/{hex}"));
    std::fs::remove_file(path).unwrap();
    assert_eq!(cancelled(1), before + 1);
}

#[test]
fn blobs_are_mounted_within_a_project_if_mounts_from_other_projects_are_refused() {
    if !need(&NEEDS) {
        return;
    }
    let stored = stored(&[("one/app", 5000)]);
    let upstream = &stored.upstream.address;
    let registry = own_registry();
    // as for accounts that are limited to a project: an upload begins instead
    let middle = ReverseProxy::new(&registry.address, |request| {
        let (path, query) = request.target.split_once('?').unwrap_or_default();
        match path.starts_with("/v2/near/") != query.contains("from=near%2F") {
            true if request.is("POST", "mount=") => ProxyAction::As(path.to_owned()),
            _ => ProxyAction::Pass,
        }
    });
    let site = format!(
        "apiVersion: landfall/v1\nkind: Site\nregistry:\n  address: {}\n  paths: {{\"{upstream}/one/app\": [far/app, \
         near/app, near/more, near/third]}}\n",
        middle.address
    );
    stored.place.write("site.yaml", site);
    stored.push(0, &middle.address, &["--site", "site.yaml"]);
    for repository in ["far/app", "near/app", "near/more", "near/third"] {
        let delivered = delivered_digest(&registry.address, repository);
        assert_eq!(delivered.as_deref(), Some(stored.digest(0)), "{repository}");
    }
    for (project, repositories) in [("far", 1), ("near", 3)] {
        let requests = middle.requests();
        let uploads = requests.iter().filter(|request| {
            request.is("PUT", &format!("/v2/{project}/")) && request.target.contains("/blobs/")
        });
        // the layer and the config, once for the project
        assert_eq!(uploads.count(), 2, "{project}: {repositories} repositories");
    }
}

#[test]
fn an_immutable_tag_with_the_right_digest_is_not_an_error() {
    if !need(&NEEDS) {
        return;
    }
    let stored = stored(&[("one/app", 5000), ("two/app", 5000)]);
    let registry = own_registry();
    let images = &stored.images;
    let list = &stored.list;
    // the first look-up of a tag returns 404, as if another client pushed the tag after the check
    images.push(&registry.address, "one/app", "v1", &list[0]);
    let other = images.image("linux/amd64", &[images.layer(&[("other", b"x")])]);
    images.push(&registry.address, "two/app", "v1", &other);
    let hidden = Mutex::new(std::collections::BTreeSet::new());
    let middle = ReverseProxy::new(&registry.address, move |request| {
        let tag = request.target.ends_with("/manifests/v1");
        match request.method.as_str() {
            // landfall confirms the answer with GET
            "HEAD" | "GET"
                if tag
                    && hidden
                        .lock()
                        .unwrap()
                        .insert((request.method.clone(), request.target.clone())) =>
            {
                ProxyAction::status(404)
            }
            "PUT" if tag => ProxyAction::refuse(412, "PRECONDITION", "configured as immutable"),
            _ => ProxyAction::Pass,
        }
    });
    let report = stored.push(3, &middle.address, &[]);
    let statuses: Vec<&Value> = report["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| &item["status"])
        .collect();
    assert_eq!(statuses, ["done", "failed"], "{report:#}");
    assert!(
        report["items"][1]["reason"]
            .as_str()
            .unwrap()
            .contains("configured as immutable"),
        "{report:#}"
    );
}

#[test]
fn a_repository_that_must_be_created_first_is_reported() {
    if !need(&NEEDS) {
        return;
    }
    let stored = stored(&[("one/app", 100)]);
    let registry = own_registry();
    let middle = ReverseProxy::new(&registry.address, |request| match request.method.as_str() {
        "POST" => ProxyAction::refuse(
            404,
            "NAME_UNKNOWN",
            "The repository with name 'one/app' does not exist",
        ),
        _ => ProxyAction::Pass,
    });
    let report = stored.push(1, &middle.address, &[]);
    assert_eq!(report["problems"][0]["kind"], "repository", "{report:#}");
    assert!(
        message(&report).contains("does not create one by itself"),
        "{}",
        message(&report)
    );
}

/// Gitea answers so if the first component of a repository is no account.
#[test]
fn an_account_that_must_be_created_first_is_reported() {
    if !need(&NEEDS) {
        return;
    }
    let stored = stored(&[("one/app", 100)]);
    let registry = own_registry();
    let middle = ReverseProxy::new(&registry.address, |request| match request.method.as_str() {
        "POST" => ProxyAction::Answer(404, Vec::new(), "Not found.\n".into()),
        _ => ProxyAction::Pass,
    });
    let report = stored.push(1, &middle.address, &[]);
    assert_eq!(report["problems"][0]["kind"], "repository", "{report:#}");
    for words in ["does not create one by itself", "create the account"] {
        assert!(message(&report).contains(words), "{}", message(&report));
    }
}

/// As Gitea 1.26 answers to an account without rights, and beyond the limits of its packages.
#[test]
fn refusals_of_gitea_are_explained() {
    if !need(&NEEDS) {
        return;
    }
    let stored = stored(&[("one/app", 100)]);
    let registry = own_registry();
    let refused = |status: u16, headers: &[(&str, &str)], body: &str, words: &str| {
        let headers: Vec<(String, String)> = headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let body = body.to_owned();
        let middle = ReverseProxy::new(&registry.address, move |request| {
            match (request.method.as_str(), challenge_without_account(request)) {
                (_, Some(challenge)) => challenge,
                ("POST", None) => ProxyAction::Answer(status, headers.clone(), body.clone()),
                _ => ProxyAction::Pass,
            }
        });
        stored.place.write(
            "home/.docker/config.json",
            json!({"auths": {&middle.address: {"auth": "dTpw"}}}).to_string(),
        );
        let report = stored.push(1, &middle.address, &[]).to_string();
        assert!(report.contains(words), "{report}");
    };
    let basic = ("WWW-Authenticate", "Basic realm=\"Gitea Package API\"");
    refused(401, &[basic], "reqPackageAccess\n", "write:package");
    let registry_header = ("Docker-Distribution-Api-Version", "registry/2.0");
    refused(403, &[registry_header], "", "a limit is reached");
}

#[test]
fn a_repository_that_must_be_created_first_is_not_the_problem_of_another() {
    if !need(&NEEDS) {
        return;
    }
    let stored = stored(&[("one/app", 100), ("two/app", 100)]);
    let registry = own_registry();
    let middle = ReverseProxy::new(&registry.address, |request| {
        if request.method == "POST" && request.target.contains("one/app") {
            ProxyAction::refuse(404, "NAME_UNKNOWN", "it does not exist")
        } else {
            ProxyAction::Pass
        }
    });
    let report = stored.push(3, &middle.address, &[]);
    let problems = report["problems"].as_array().unwrap();
    assert_eq!(problems.len(), 1, "{report:#}");
    assert!(problems[0]["at"].as_str().unwrap().ends_with("/one/app"));
    let reason = report["items"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("no repository one/app"), "{report:#}");
    assert_eq!(report["items"][1]["status"], "done", "{report:#}");
}
