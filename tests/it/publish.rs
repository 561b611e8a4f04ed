//! Stateless servers: they serve the published lock of a store, and switch when another lock is
//! published.

use crate::support::faults::Rig;
use crate::support::http::{attempt, get, manifest, request};
use crate::support::images::sha256;
use crate::support::object_store::{Fault, ObjectStore};
use crate::support::peers::nginx_with;
use crate::support::{Place, landfall_serve, need, wait_for};
use std::collections::BTreeSet;
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

const STORE: &str = "s3://mirror/air/gap";

/// Two locks that differ in the image `team/app:v1`, and a store with the content of both; the
/// first lock is published.
struct Site {
    rig: Rig,
    /// The digest of `team/app:v1` in each lock.
    tops: [String; 2],
}

impl Site {
    /// `store` is the value of `--store`. If it names an object store, `objects` is its server.
    fn new(store: &str, objects: Option<&ObjectStore>) -> Site {
        let rig = Rig::of(4);
        let place = &rig.place;
        if let Some(objects) = objects {
            objects.introduce_to(place);
        }
        place.ok(&[
            "lock",
            "-f",
            "m.yaml",
            "--lock",
            "one.lock",
            "--store",
            "stores/locks",
        ]);
        let [old, new] = rig.up.content(|content| {
            let old = content.tags[&("team/app".to_owned(), "v1".to_owned())].clone();
            let image = content.image("team/app", "linux/amd64", &[(1, 160_000), (77, 300_000)]);
            let index = content.index("team/app", &[image]);
            content.tag("team/app", "v1", &index);
            [old, index["digest"].as_str().unwrap().to_owned()]
        });
        place.ok(&[
            "lock",
            "-f",
            "m.yaml",
            "--lock",
            "two.lock",
            "--store",
            "stores/locks",
        ]);
        for lock in ["one.lock", "two.lock"] {
            place.ok(&["pull", "--lock", lock, "--store", store]);
        }
        let site = Site {
            tops: [old, new],
            rig,
        };
        site.publish(store, "one.lock");
        site
    }

    fn place(&self) -> &Place {
        &self.rig.place
    }

    fn publish(&self, store: &str, lock: &str) {
        self.place()
            .ok(&["publish", "--lock", lock, "--store", store]);
    }

    /// The repository of `team/app` on the servers.
    fn repository(&self) -> String {
        format!("{}/team/app", self.rig.up.address.replace(':', "_"))
    }
}

fn tag(address: &str, repository: &str) -> String {
    let answer = manifest(address, repository, "v1");
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(
        answer.header("docker-content-digest"),
        Some(&*sha256(&answer.body))
    );
    sha256(&answer.body)
}

#[test]
fn a_server_of_an_object_store_follows_the_published_lock_and_redirects() {
    let store = ObjectStore::start();
    let site = Site::new(STORE, Some(&store));
    let place = site.place();
    let repository = site.repository();
    let [old, new] = &site.tops;
    let server = landfall_serve(place, &["--store", STORE]);
    let far = landfall_serve(place, &["--store", STORE, "--redirect"]);
    assert_eq!(tag(&server.address, &repository), *old);
    // a blob without a recorded hash is read and hashed completely; other blobs are read from the
    // requested offset on, until the range is complete
    let layer =
        manifest(&server.address, &repository, old).json()["manifests"][0]["digest"].clone();
    let layers =
        manifest(&server.address, &repository, layer.as_str().unwrap()).json()["layers"].clone();
    let digest = layers[0]["digest"].as_str().unwrap().to_owned();
    let path = format!("/v2/{repository}/blobs/{digest}");
    store.reset();
    let blob = get(&server.address, &path);
    assert_eq!(sha256(&blob.body), digest);
    let part = request(
        "GET",
        &server.address,
        &path,
        &[("Range", "bytes=100-199")],
        b"",
    );
    assert_eq!((part.status, &part.body[..]), (206, &blob.body[100..200]));
    let requests = store.requests().into_iter();
    let ranges: Vec<_> = requests
        .filter(|request| request.method == "GET" && request.key.contains("/blobs/"))
        .map(|request| request.range.unwrap_or_default())
        .collect();
    assert_eq!(
        ranges,
        [
            format!("bytes=0-{}", blob.body.len() - 1),
            format!("bytes=100-{}", blob.body.len() - 1)
        ]
    );
    // with a redirect, the server sends no byte of the blob
    assert_eq!(request("HEAD", &far.address, &path, &[], b"").status, 200);
    let link = get(&far.address, &path);
    assert_eq!((link.status, link.body.len()), (307, 0));
    let url = link.header("location").unwrap().to_owned();
    let target = url
        .strip_prefix(&format!("http://{}", store.address))
        .unwrap();
    let fetched = get(&store.address.to_string(), target);
    assert!(
        fetched.status == 200 && fetched.body == blob.body,
        "{}: {}",
        fetched.status,
        fetched.text()
    );
    assert!(
        get(&far.address, "/metrics")
            .text()
            .contains("landfall_redirects_total 1\n")
    );
    // a request by tag reads the pointer of the store (`current`), and a request by digest does not
    store.reset();
    assert_eq!(tag(&server.address, &repository), *old);
    assert_eq!(manifest(&server.address, &repository, old).status, 200);
    assert_eq!(
        store.count(|request| request.key.ends_with("/current")),
        1,
        "{:?}",
        store.requests()
    );
    // both servers switch immediately, and content of the previous lock stays available by digest
    site.publish(STORE, "two.lock");
    for server in [&server, &far] {
        assert_eq!(tag(&server.address, &repository), *new);
        assert_eq!(manifest(&server.address, &repository, old).status, 200);
        assert_eq!(
            request("HEAD", &server.address, &path, &[], b"").status,
            200
        );
        let tags = get(&server.address, &format!("/v2/{repository}/tags/list")).json();
        assert_eq!(
            tags["tags"]
                .as_array()
                .unwrap()
                .iter()
                .filter(|tag| *tag == "v1")
                .count(),
            1,
            "{tags}"
        );
    }
    // if the pointer of the store cannot be read, requests by tag fail, and content is served by
    // digest
    assert_eq!(get(&server.address, "/readyz").status, 200);
    store.judge(|request| request.key.ends_with("/current").then_some(Fault::Skewed));
    let unknown = manifest(&server.address, &repository, "v1");
    assert_eq!(
        (unknown.status, unknown.header("retry-after")),
        (503, Some("5")),
        "{}",
        unknown.text()
    );
    assert_eq!(
        (
            get(&server.address, "/readyz").status,
            get(&server.address, "/healthz").status
        ),
        (503, 200)
    );
    assert_eq!(manifest(&server.address, &repository, new).status, 200);
    store.reset();
    assert_eq!(tag(&server.address, &repository), *new);
    // an object with wrong bytes is never sent completely
    let file = store.file(&format!("air/gap/blobs/{}", digest.replace(':', "/")));
    let mut bytes = std::fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&file, &bytes).unwrap();
    let fresh = landfall_serve(place, &["--store", STORE]);
    let broken = attempt("GET", &fresh.address, &path, &[], b"");
    assert!(
        broken.is_none_or(|answer| answer.body.len() < bytes.len()),
        "all wrong bytes were sent"
    );
}

#[test]
fn a_store_on_disk_can_be_published_and_missing_items_are_reported() {
    let site = Site::new("store", None);
    let place = site.place();
    let repository = site.repository();
    let server = landfall_serve(place, &["--store", "store", "--drain", "5m"]);
    assert_eq!(tag(&server.address, &repository), site.tops[0]);
    site.publish("store", "two.lock");
    assert_eq!(tag(&server.address, &repository), site.tops[1]);
    assert_eq!(
        manifest(&server.address, &repository, &site.tops[0]).status,
        200
    );
    // gc fails while the server uses the store; a dry run shows that gc keeps the published content
    place.write("empty.lock", "version: 1\n...\n");
    let kept = place.json(1, &["gc", "--lock", "empty.lock", "--store", "store"]);
    assert!(
        kept["error"]["message"]
            .as_str()
            .unwrap()
            .contains("another process"),
        "{kept}"
    );
    let swept = place.json(
        0,
        &[
            "gc",
            "--lock",
            "empty.lock",
            "--store",
            "store",
            "--dry-run",
        ],
    );
    assert_eq!(swept["removed"].as_array().unwrap().len(), 0, "{swept}");
    // the server reports that it will stop, and still answers
    let kill = |signal: &str| {
        let kill = std::process::Command::new("kill")
            .args([signal, &server.pid().to_string()])
            .status();
        assert!(kill.unwrap().success());
    };
    kill("-TERM");
    wait_for("the end of readiness", || {
        get(&server.address, "/readyz").status != 200
    });
    let last = manifest(&server.address, &repository, "v1");
    assert_eq!(
        (last.status, last.header("connection")),
        (200, Some("close"))
    );
    kill("-KILL");
    // a lock with missing content is not published
    place.json(0, &["pull", "--lock", "one.lock", "--store", "other"]);
    let lacking = place.json(1, &["publish", "--lock", "two.lock", "--store", "other"]);
    assert!(
        lacking["error"]["message"]
            .as_str()
            .unwrap()
            .contains("team/app:v1"),
        "{lacking}"
    );
    assert_eq!(lacking["totals"]["missing"], 1, "{lacking}");
    // items that could not be locked are reported
    let lost = "\nunresolved:\n- {kind: image, name: \"quay.io/gone/app:v1\", cause: gone}\n...\n";
    let lock = place.read("two.lock").replace("\n...\n", lost);
    place.write("lost.lock", lock);
    let publish = ["publish", "--lock", "lost.lock", "--store", "store"];
    for more in [&["--dry-run"][..], &[]] {
        let partial = place.json(3, &[&publish[..], more].concat());
        assert_eq!(partial["totals"]["missing"], 1, "{partial}");
    }
    let nothing = place.json(2, &["serve", "--store", "other", "--listen", "127.0.0.1:0"]);
    assert!(
        nothing["error"]["message"]
            .as_str()
            .unwrap()
            .contains("landfall publish"),
        "{nothing}"
    );
    let no_links = place.json(2, &["serve", "--store", "other", "--redirect"]);
    assert!(
        no_links["error"]["message"]
            .as_str()
            .unwrap()
            .contains("s3://"),
        "{no_links}"
    );
}

#[test]
fn a_published_lock_must_match_both_expect_and_lock() {
    let site = Site::new("store", None);
    let place = site.place();
    // a server that accepts the lock fails at once, because the port is in use
    let used = TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = used.local_addr().unwrap().to_string();
    let serve = |exit, flags: &[&str]| {
        let common = ["serve", "--store", "store", "--listen", &listen];
        let report = place.json(exit, &[&common[..], flags].concat());
        report["error"]["message"].as_str().unwrap().to_owned()
    };
    let published = place.json(0, &["ls", "one.lock"])["lock"].clone();
    let published = published.as_str().unwrap();
    let other = format!("sha256:{}", "0".repeat(64));
    for (flags, why) in [
        (
            ["--expect", &other, "--lock", "one.lock"],
            "is not expected",
        ),
        (
            ["--expect", published, "--lock", "two.lock"],
            "is not the one of --lock",
        ),
    ] {
        let message = serve(4, &flags);
        assert!(
            message.contains(published) && message.ends_with(why),
            "{message}"
        );
    }
    let in_use = serve(
        1,
        &[
            "--expect", &other, "--expect", published, "--lock", "one.lock",
        ],
    );
    assert!(in_use.contains(&listen), "{in_use}");
}

/// Pulls like a client: the tag, its manifests and their layers, each over a new connection, which
/// may reach any server. Layers in `seen` get only a HEAD request. Returns the digest of the tag.
fn pull(address: &str, repository: &str, seen: &mut BTreeSet<String>) -> String {
    let fetch = |kind: &str, reference: &str| {
        let answer = get(address, &format!("/v2/{repository}/{kind}/{reference}"));
        assert_eq!(answer.status, 200, "{kind} {reference}: {}", answer.text());
        answer
    };
    let top = fetch("manifests", "v1");
    let name = sha256(&top.body);
    for child in top.json()["manifests"].as_array().unwrap() {
        let digest = child["digest"].as_str().unwrap();
        let image = fetch("manifests", digest);
        assert_eq!(sha256(&image.body), digest);
        for layer in image.json()["layers"].as_array().unwrap() {
            let digest = layer["digest"].as_str().unwrap();
            if seen.insert(digest.to_owned()) {
                assert_eq!(sha256(&fetch("blobs", digest).body), digest);
            } else {
                let path = format!("/v2/{repository}/blobs/{digest}");
                assert_eq!(
                    request("HEAD", address, &path, &[], b"").status,
                    200,
                    "{digest}"
                );
            }
        }
    }
    name
}

#[test]
fn three_servers_behind_nginx_switch_under_load_without_failed_or_mixed_responses() {
    if !need(&["nginx"]) {
        return;
    }
    let store = ObjectStore::start();
    let site = Site::new(STORE, Some(&store));
    let repository = site.repository();
    let servers = [(); 3].map(|()| landfall_serve(site.place(), &["--store", STORE]));
    let upstream: Vec<String> = servers
        .iter()
        .map(|server| format!("http://{}", server.address))
        .collect();
    // nginx distributes the requests over the servers by the random ID of each request
    let front = nginx_with(&format!(
        "set $to {}; if ($request_id ~ \"[5-9]$\") {{ set $to {}; }} if ($request_id ~ \"[a-f]$\") {{ set $to {}; }} \
         location / {{ proxy_pass $to; proxy_set_header Host $http_host; }}",
        upstream[0], upstream[1], upstream[2]
    ));
    let is_over = AtomicBool::new(false);
    let after = AtomicBool::new(false);
    let pulls = [(); 3].map(|()| AtomicUsize::new(0));
    let [old, new] = &site.tops;
    std::thread::scope(|scope| {
        let (address, repository) = (&front.address, &repository);
        let (is_over, after) = (&is_over, &after);
        let clients: Vec<_> = pulls
            .iter()
            .map(|own| {
                scope.spawn(move || {
                    let mut seen = BTreeSet::new();
                    let mut was_new = false;
                    while !is_over.load(Ordering::SeqCst) {
                        let is_published = after.load(Ordering::SeqCst);
                        let name = pull(address, repository, &mut seen);
                        assert!(name == *new || name == *old, "{name}");
                        // a pull gets the new lock if it begins after the publication, or if this
                        // client got the new lock before
                        assert!(
                            name == *new || !was_new && !is_published,
                            "the old lock was served again"
                        );
                        was_new |= name == *new;
                        own.fetch_add(1, Ordering::SeqCst);
                    }
                    was_new
                })
            })
            .collect();
        let count = |own: &AtomicUsize| own.load(Ordering::SeqCst);
        // each client pulls this many times
        let pulled = |more: usize| {
            let wanted = pulls.each_ref().map(|own| count(own) + more);
            let is_behind = || (0..3).any(|at| count(&pulls[at]) < wanted[at]);
            while is_behind()
                && !clients
                    .iter()
                    .any(std::thread::ScopedJoinHandle::is_finished)
            {
                std::thread::sleep(Duration::from_millis(5));
            }
        };
        pulled(2);
        site.publish(STORE, "two.lock");
        after.store(true, Ordering::SeqCst);
        pulled(3);
        is_over.store(true, Ordering::SeqCst);
        assert!(
            clients.into_iter().all(|client| client.join().unwrap()),
            "a client never saw the new lock"
        );
    });
    for server in &servers {
        assert_eq!(tag(&server.address, &repository), *new);
        let metrics = get(&server.address, "/metrics").text();
        assert!(
            metrics.contains("landfall_reloads_total 1\n"),
            "each server switched once:\n{metrics}"
        );
        assert!(!metrics.contains("code=\"5"), "{metrics}");
    }
}
