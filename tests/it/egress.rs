//! `landfall egress`: hosts that are predicted from the lock, observed by `lock` and `pull`,
//! probed, and compared with an older list.

use crate::support::charts::{self, Chart};
use crate::support::images::noise;
use crate::support::peers::{Server, file_server, own_registry};
use crate::support::reverse_proxy::{ProxyAction, ReverseProxy};
use crate::support::sigstore::Sigstore;
use crate::support::{Images, Place, need};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A registry, its token realm and the host of its blobs, each at its own address, and a file
/// server.
struct Upstream {
    place: Place,
    front: ReverseProxy,
    realm: ReverseProxy,
    cdn: ReverseProxy,
    files: Server,
    /// Whether requests to the host of the blobs are refused.
    closed: Arc<AtomicBool>,
    _registry: Server,
}

impl Upstream {
    fn new() -> Upstream {
        let place = Place::new();
        let images = Images::new(place.path("layout"));
        let registry = own_registry();
        let image = images.image("linux/amd64", &[images.layer(&[("app", &noise(1, 3000))])]);
        images.push(&registry.address, "app", "v1", &image);
        place.write("www/tool", "a tool");
        let files = file_server(&place.path("www"));
        let closed = Arc::new(AtomicBool::new(false));
        let is_closed = closed.clone();
        let cdn = ReverseProxy::new(&registry.address, move |_| {
            match is_closed.load(Ordering::Relaxed) {
                true => ProxyAction::status(403),
                false => ProxyAction::Pass,
            }
        });
        let realm = ReverseProxy::new("", |_| {
            ProxyAction::Answer(200, Vec::new(), r#"{"token": "good"}"#.into())
        });
        let realm_at = realm.address.clone();
        let cdn_at = cdn.address.clone();
        let front = ReverseProxy::new(&registry.address, move |request| {
            let redirect = format!("http://{cdn_at}{}?sig=hush", request.target);
            match request.header("authorization") {
                None => ProxyAction::Answer(
                    401,
                    vec![(
                        "WWW-Authenticate".into(),
                        format!("Bearer realm=\"http://{realm_at}/token\",service=\"r\""),
                    )],
                    String::new(),
                ),
                Some(_) if request.target.contains("/blobs/") => {
                    ProxyAction::Answer(307, vec![("Location".into(), redirect)], String::new())
                }
                Some(_) => ProxyAction::Pass,
            }
        });
        let upstream = Upstream {
            place,
            front,
            realm,
            cdn,
            files,
            closed,
            _registry: registry,
        };
        upstream.manifest("");
        upstream
    }

    fn manifest(&self, more: &str) {
        let head = "apiVersion: landfall/v1\nkind: Manifest\nmetadata: {name: t}\n";
        let registry = &self.front.address;
        let files = &self.files.address;
        let endpoints =
            "endpoints: [{host: ec2.test, port: 443, why: machines, from: [seed-cluster-node]}]\n";
        let items = format!(
            "images: [\"{registry}/app:v1\"]\n{endpoints}{}",
            more.replace("FILES", files)
        );
        self.place.write("m.yaml", format!("{head}{items}"));
    }

    fn run(&self, exit: i32, store: &str, args: &[&str]) -> Value {
        let plain = ["--store", store, "--plain-http", &self.front.address];
        self.place.json(exit, &[args, &plain].concat())
    }

    fn locked(self) -> Upstream {
        self.run(0, "store", &["lock", "-f", "m.yaml"]);
        self
    }
}

/// The evidence and the purpose of each `host:port` in the report.
fn hosts(report: &Value) -> BTreeMap<String, (String, String)> {
    let rows = report["egress"]["hosts"].as_array().unwrap();
    let text = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
    let why = |row: &Value| {
        row["why"]
            .as_array()
            .unwrap()
            .iter()
            .map(|why| why.as_str().unwrap())
            .collect::<Vec<_>>()
            .join("; ")
    };
    rows.iter()
        .map(|row| {
            (
                format!("{}:{}", text(row, "host"), row["port"]),
                (text(row, "known"), why(row)),
            )
        })
        .collect()
}

#[test]
fn hosts_are_predicted_then_observed_by_lock_and_then_by_pull() {
    if !need(&["gzip"]) {
        return;
    }
    let up = Upstream::new().locked();
    let of = |address: &str| format!("127.0.0.1:{}", address.split(':').nth(1).unwrap());
    let front = of(&up.front.address);
    let realm = of(&up.realm.address);
    let cdn = of(&up.cdn.address);
    let known = |known: &str, why: String| (known.to_owned(), why);
    let endpoint = (
        "ec2.test:443".to_owned(),
        known("declared", "machines".into()),
    );

    let before = up.run(0, "empty", &["egress"]);
    let images = format!("images of {front}");
    assert_eq!(
        hosts(&before),
        [
            endpoint.clone(),
            (front.clone(), known("predicted", images.clone()))
        ]
        .into()
    );
    assert!(
        before["egress"]["notes"][0]
            .as_str()
            .unwrap()
            .contains("no run with this store has contacted it")
    );
    assert_eq!(before["totals"]["requests"], 0);

    let after_lock = up.run(0, "store", &["egress"]);
    let tokens = (
        realm.clone(),
        known("observed", format!("tokens of {front}")),
    );
    let mut expected =
        BTreeMap::from([endpoint, (front.clone(), known("observed", images)), tokens]);
    assert_eq!(hosts(&after_lock), expected);
    assert!(
        after_lock["egress"]["notes"][0]
            .as_str()
            .unwrap()
            .contains("only commands that request no blobs, such as `lock`, have contacted it")
    );

    up.run(0, "store", &["pull"]);
    let after_pull = up.run(0, "store", &["egress"]);
    expected.insert(cdn, known("observed", format!("redirects of {front}")));
    assert_eq!(hosts(&after_pull), expected);
    assert_eq!(after_pull["egress"]["notes"], serde_json::json!([]));
    // a second pull sends no request, and the known hosts are kept
    up.run(0, "store", &["pull"]);
    assert_eq!(
        up.run(0, "store", &["egress"])["egress"],
        after_pull["egress"]
    );
    assert!(!up.place.read("store/.landfall/egress").contains("hush"));
    assert!(
        !up.place.read("landfall.lock").contains(&realm),
        "a lock does not name token realms"
    );
}

#[test]
fn notes_name_the_command_that_finds_further_hosts() {
    let place = Place::new();
    place.write("www/tool", "a tool");
    let chart = Chart::new("app", "1.0.0", "", &[("values.yaml", "a: 1\n")]);
    charts::repository(&place, "www/charts", "", &[chart]);
    let files = file_server(&place.path("www"));
    let url = files.url();
    let manifest = format!(
        "apiVersion: landfall/v1\nkind: Manifest\nfiles: [{{url: '{url}/tool'}}]\n\
         charts: [{{repo: '{url}/charts', name: app, version: 1.0.0}}]\n"
    );
    place.write("m.yaml", manifest);
    place.json(0, &["lock", "-f", "m.yaml", "--store", "store"]);
    let notes =
        |store: &str| place.json(0, &["egress", "--store", store])["egress"]["notes"].clone();
    let before = notes("empty");
    let has = |what: &str| {
        let notes = before.as_array().unwrap().iter();
        notes
            .filter(|note| note.as_str().unwrap().contains(what))
            .count()
    };
    // one note for the chart index, which a pull does not request, and one for the files
    assert_eq!(
        (has("at the first `lock`"), has("at the first pull")),
        (1, 1),
        "{before:#}"
    );
    // `lock` has downloaded the file and the chart, so a pull contacts no host
    assert_eq!(notes("store"), serde_json::json!([]));
    let pulled = place.json(0, &["pull", "--store", "store"]);
    assert_eq!(pulled["totals"]["requests"], 0);
}

#[test]
fn a_probe_fails_if_a_redirect_names_no_valid_host() {
    let place = Place::new();
    place.write("www/tool", "a tool");
    let files = file_server(&place.path("www"));
    let is_bad = Arc::new(AtomicBool::new(false));
    let bad = is_bad.clone();
    let front = ReverseProxy::new(&files.address, move |_| {
        let location = ("Location".to_owned(), "http://*.*/tool".to_owned());
        match bad.load(Ordering::Relaxed) {
            true => ProxyAction::Answer(302, vec![location], String::new()),
            false => ProxyAction::Pass,
        }
    });
    let manifest = format!(
        "apiVersion: landfall/v1\nkind: Manifest\nfiles: [{{url: 'http://{}/tool'}}]\n",
        front.address
    );
    place.write("m.yaml", manifest);
    place.json(0, &["lock", "-f", "m.yaml", "--store", "store"]);
    is_bad.store(true, Ordering::Relaxed);
    let report = place.json(4, &["egress", "--probe", "--store", "fresh"]);
    let rows = report["egress"]["hosts"].as_array().unwrap();
    assert_eq!(
        (rows.len(), &rows[0]["reach"]),
        (1, &"fails".into()),
        "{report:#}"
    );
    assert!(
        rows[0]["reason"].as_str().unwrap().contains("*.*"),
        "{report:#}"
    );
}

#[test]
fn diff_lists_added_and_removed_hosts() {
    if !need(&["gzip"]) {
        return;
    }
    let up = Upstream::new().locked();
    let list = up
        .place
        .ok(&["egress", "--format", "json", "--store", "store"]);
    up.place.write("old.json", list);
    std::fs::rename(up.place.path("landfall.lock"), up.place.path("old.lock")).unwrap();
    up.manifest("files: [{url: 'http://FILES/tool'}]\n");
    let moved = up
        .place
        .read("m.yaml")
        .replace("host: ec2.test", "host: s3.test");
    up.place.write("m.yaml", moved);
    up.run(0, "store", &["lock", "-f", "m.yaml"]);
    for old in ["old.lock", "old.json"] {
        let report = up.run(0, "store", &["egress", "--diff", old]);
        let rows = report["egress"]["hosts"].as_array().unwrap();
        let changes: Vec<String> = rows
            .iter()
            .map(|row| format!("{} {}", row["change"], row["host"]))
            .collect();
        let expected = [
            "\"added\" \"127.0.0.1\"",
            "\"removed\" \"ec2.test\"",
            "\"added\" \"s3.test\"",
        ];
        assert_eq!(changes, expected, "{old}: {report:#}");
    }
    up.run(
        2,
        "store",
        &["egress", "--diff", "old.lock", "--format", "squid"],
    );
}

#[test]
fn a_probe_follows_redirects_and_continues_after_refusals() {
    if !need(&["gzip"]) {
        return;
    }
    let up = Upstream::new();
    up.manifest("files: [{url: 'http://FILES/tool'}]\n");
    let up = up.locked();
    let report = up.run(0, "fresh", &["egress", "--probe"]);
    let found = |report: &Value, address: &str| {
        let port: u64 = address.split(':').nth(1).unwrap().parse().unwrap();
        let rows = report["egress"]["hosts"].as_array().unwrap();
        let row = rows.iter().find(|row| row["port"] == port);
        let row = row.unwrap_or_else(|| panic!("{address} is not in {report:#}"));
        (
            row["known"].as_str().unwrap().to_owned(),
            row["reach"].as_str().unwrap_or("").to_owned(),
        )
    };
    let reached = ("observed".to_owned(), "reached".to_owned());
    for address in [
        &up.front.address,
        &up.realm.address,
        &up.cdn.address,
        &up.files.address,
    ] {
        assert_eq!(found(&report, address), reached, "{report:#}");
    }
    assert_eq!(
        up.cdn.count("GET", "/blobs/"),
        1,
        "only one blob is requested, and only once"
    );
    // endpoints are contacted by other machines, so they are not probed
    assert_eq!(found(&report, "x:443"), ("declared".into(), String::new()));

    up.closed.store(true, Ordering::Relaxed);
    let report = up.run(4, "fresh", &["egress", "--probe"]);
    assert_eq!(report["status"], "refused");
    assert_eq!(found(&report, &up.cdn.address).1, "refused", "{report:#}");
    assert_eq!(found(&report, &up.front.address).1, "reached");
    assert_eq!(
        found(&report, &up.files.address).1,
        "reached",
        "a refusal ends only the requests to the host that refuses"
    );
    let notes = report["egress"]["notes"].to_string();
    assert!(
        notes.contains("; the hosts that its responses name are not known")
            && !report.to_string().contains("hush"),
        "{report:#}"
    );
}

/// squid accepts the rules for every kind of host without an error or a warning.
#[test]
fn squid_accepts_the_rules_for_hosts_of_every_kind() {
    if !need(&["squid"]) {
        return;
    }
    let place = Place::new();
    place.write("www/tool", "a tool");
    let files = file_server(&place.path("www"));
    let hosts = [
        "_a.test",
        "xn--bcher-kva.test",
        "A-1.b.test",
        "all",
        "none",
        "*.corp.test",
        "*.all",
        "10.0.0.9",
        "fd00::7",
    ];
    let endpoints: String = hosts
        .iter()
        .map(|host| format!("- {{host: '{host}', port: 443, why: \"it ends with \\\\\"}}\n"))
        .collect();
    let manifest = format!(
        "apiVersion: landfall/v1\nkind: Manifest\nfiles: [{{url: '{}/tool'}}]\nendpoints:\n{endpoints}",
        files.url()
    );
    place.write("m.yaml", manifest);
    place.json(0, &["lock", "-f", "m.yaml", "--store", "store"]);
    let rules = place.ok(&["egress", "--format", "squid", "--store", "store"]);
    let at = place.dir().display();
    let head = format!(
        "http_port 127.0.0.1:3128\npid_filename none\ncoredump_dir {at}\ncache_log {at}/cache.log\n"
    );
    place.write("squid.conf", head + &rules);
    let run = place
        .clean("squid")
        .args(["-n", &format!("parse{}", std::process::id()), "-k", "parse"])
        .args(["-f", "squid.conf"])
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{printed}\n{rules}");
    for word in ["FATAL", "ERROR", "WARNING"] {
        assert!(!printed.contains(word), "{printed}\n{rules}");
    }
    let read = printed
        .lines()
        .filter(|line| line.contains("Processing: "))
        .count();
    let written = rules.lines().filter(|line| !line.starts_with('#')).count();
    assert_eq!(read, written + 4, "{printed}\n{rules}");
}

/// A file host that is also an endpoint has the roles of the endpoint in addition to the role
/// `landfall`. If the endpoint has no roles, the host has none either.
#[test]
fn a_host_of_the_lock_keeps_the_roles_of_its_endpoint() {
    if !need(&["gzip"]) {
        return;
    }
    let up = Upstream::new();
    let (host, port) = up.files.address.split_once(':').unwrap();
    let port: u16 = port.parse().unwrap();
    let rows = |from: &str| {
        let files = format!("files: [{{url: 'http://{host}:{port}/tool'}}]\n");
        let endpoints =
            format!("endpoints: [{{host: '{host}', port: {port}, why: updates{from}}}]\n");
        up.place.write(
            "m.yaml",
            format!("apiVersion: landfall/v1\nkind: Manifest\n{files}{endpoints}"),
        );
        up.place
            .json(0, &["lock", "-f", "m.yaml", "--store", "store"]);
        let report = up.place.json(0, &["egress", "--store", "store"]);
        let rows = report["egress"]["hosts"].as_array().unwrap().clone();
        rows.into_iter()
            .find(|row| row["host"] == host && row["port"] == port)
            .unwrap()
    };
    let row = rows(", from: [user-cluster-node, kkp-user]");
    assert_eq!(
        row["from"],
        serde_json::json!(["kkp-user", "landfall", "user-cluster-node"]),
        "{row:#}"
    );
    assert_eq!(row["why"].as_array().unwrap().len(), 2, "{row:#}");
    assert_eq!(rows("").get("from"), None, "every machine may contact it");
}

/// A place with a lock of one image at Docker Hub, one file at `dl.k8s.io`, and two endpoints.
fn docker_hub() -> Place {
    let place = Place::new();
    let lock = include_str!("../data/every-kind.lock").replace(
        "quay.io/prometheus/node-exporter:v1.9.0",
        "docker.io/library/nginx:1.27",
    );
    let (resolved, _) = lock.split_once("unresolved:\n").unwrap();
    place.write("landfall.lock", format!("{resolved}...\n"));
    place
}

/// The hosts on port 443, with their evidence.
fn evidence(place: &Place, more: &[&str]) -> BTreeMap<String, String> {
    let report = place.json(0, &[&["egress", "--store", "store"], more].concat());
    let rows = hosts(&report).into_iter();
    rows.filter_map(|(host, (known, _))| Some((host.strip_suffix(":443")?.to_owned(), known)))
        .collect()
}

#[test]
fn documented_hosts_of_registries_are_predicted_until_the_real_hosts_are_observed() {
    let place = docker_hub();
    let own = ["registry-1.docker.io", "dl.k8s.io"];
    let content = [
        "docker-images-prod.6aa30f8b08e16409b46e0173d6de2f56.r2.cloudflarestorage.com",
        "production.cloudflare.docker.com",
        "production.cloudfront.docker.com",
    ];
    let declared = ["*.corp.test", "vcenter.corp.test"];
    let all = |known: &[(&[&str], &str)]| -> BTreeMap<String, String> {
        let declared = (&declared[..], "declared");
        let each = known.iter().chain([&declared]);
        each.flat_map(|(hosts, known)| {
            hosts
                .iter()
                .map(|host| (host.to_string(), known.to_string()))
        })
        .collect()
    };
    let predicted = all(&[
        (&own, "predicted"),
        (&["auth.docker.io"], "predicted"),
        (&content, "predicted"),
    ]);
    assert_eq!(evidence(&place, &[]), predicted);
    let text = place.ok(&["egress", "--store", "store"]);
    let row =
        "predicted  tokens of docker.io, see https://docs.docker.com/desktop/setup/allow-list/";
    assert!(text.contains(row), "{text}");
    assert!(
        text.contains("note: docker.io: no run with this store has contacted it"),
        "{text}"
    );
    for format in [
        "json",
        "csv",
        "markdown",
        "squid",
        "cilium",
        "networkpolicy",
    ] {
        let list = place.ok(&["egress", "--store", "store", "--format", format]);
        assert!(
            list.contains("production.cloudfront.docker.com"),
            "{format}: {list}"
        );
        assert!(
            list.contains("predicted") || format == "squid",
            "{format}: {list}"
        );
    }

    let observed = |host: &str, named_by: &str, by: &str| {
        let named_by: Vec<&str> = named_by
            .split(' ')
            .filter(|name| !name.is_empty())
            .collect();
        serde_json::json!({
            "host": host, "port": 443, "scheme": "https", "why": ["registry"],
            "namedBy": named_by, "by": by.split(' ').collect::<Vec<_>>(),
        })
    };
    let record = |hosts: &[Value]| {
        let record = serde_json::json!({"version": 1, "hosts": hosts});
        place.write("store/.landfall/egress", record.to_string());
    };
    // `lock` has observed the host that issues tokens
    let hub = "registry-1.docker.io:443";
    record(&[
        observed("registry-1.docker.io", "", "lock"),
        observed("tokens.test", hub, "lock"),
    ]);
    let expected = all(&[
        (&["registry-1.docker.io", "tokens.test"], "observed"),
        (&["dl.k8s.io"], "predicted"),
        (&content, "predicted"),
    ]);
    assert_eq!(evidence(&place, &[]), expected);
    // `pull` has observed all hosts
    record(&[
        observed("registry-1.docker.io", "", "lock pull"),
        observed("tokens.test", hub, "lock"),
        observed("cdn.test", hub, "pull"),
        observed("dl.k8s.io", "", "pull"),
    ]);
    let own = [&own[..], &["tokens.test", "cdn.test"]].concat();
    assert_eq!(evidence(&place, &[]), all(&[(&own, "observed")]));
}

#[test]
fn hosts_of_items_that_could_not_be_locked_are_listed() {
    let place = docker_hub();
    let lost = "unresolved:\n\
                - {kind: image, name: \"quay.io/gone/app:v1\", cause: refused}\n\
                - {kind: file, name: \"https://dl.test/tool\", cause: refused}\n...\n";
    let lock = place.read("landfall.lock").replace("...\n", lost);
    place.write("landfall.lock", lock);
    let found = evidence(&place, &[]);
    for host in ["quay.io", "cdn.quay.io", "dl.test"] {
        assert_eq!(found[host], "predicted", "{host}: {found:?}");
    }
    let text = place.ok(&["egress", "--store", "store"]);
    assert!(
        text.contains("note: 2 items of the lock could not be resolved"),
        "{text}"
    );
    // without content in the lock, a probe has nothing to request from a host
    place.write("landfall.lock", format!("version: 1\n{lost}"));
    let text = place.ok(&["egress", "--store", "store", "--probe"]);
    for host in ["quay.io", "dl.test"] {
        assert!(
            text.contains(&format!("note: {host}: not probed")),
            "{text}"
        );
    }
}

#[test]
fn the_log_that_lock_asks_about_a_signature_is_listed() {
    let place = docker_hub();
    let host = "rekor.sigstore.dev";
    assert!(!evidence(&place, &[]).contains_key(host));
    // the digest of the log's public key
    let key = "c0d23d6ad406973f9559f3ba2d1ca01f84147d8ffc5b8445c224f98b9591801d";
    let lock = place.read("landfall.lock").replace("\"c0d2: 3d\"", key);
    place.write("landfall.lock", lock);
    assert_eq!(evidence(&place, &[])[host], "predicted");
}

#[test]
fn the_host_of_a_snapshot_is_listed_with_that_of_its_repository() {
    let place = Place::new();
    let all = include_str!("../data/all-fields.lock");
    let start = all.find("packages:\n").unwrap();
    let end = all.find("- name: yum:nodes").unwrap();
    // the digest of the set, which has a placeholder there
    let set = all[start..end].replace(
        "6ee0eb490ff832101cf82a3d387c35f29e4230be786978f7acf9e811febf6723",
        "03cb1ce457340f185643d70823c8941108f0117854958fa3371ad2199f52ae86",
    );
    place.write("landfall.lock", format!("version: 1\n{set}...\n"));
    let found = evidence(&place, &[]);
    for host in ["deb.test", "snapshot.test"] {
        assert_eq!(found[host], "predicted", "{found:?}");
    }
}

#[test]
fn an_index_of_a_chart_that_could_not_be_locked_needs_no_pull() {
    let place = Place::new();
    place.write(
        "landfall.lock",
        "version: 1\nunresolved:\n\
         - {kind: chart, name: \"helm+https://charts.test/x/app:1.2.3\", cause: gone}\n...\n",
    );
    let record = serde_json::json!({"version": 1, "hosts": [{
        "host": "charts.test", "port": 443, "scheme": "https", "why": ["registry"],
        "namedBy": [], "by": ["lock"],
    }]});
    place.write("store/.landfall/egress", record.to_string());
    assert_eq!(evidence(&place, &[])["charts.test"], "observed");
    let text = place.ok(&["egress", "--store", "store"]);
    assert!(!text.contains("note: charts.test"), "{text}");
}

#[test]
fn a_mirror_in_the_site_replaces_the_documented_hosts() {
    let place = docker_hub();
    place.write(
        "site.yaml",
        "apiVersion: landfall/v1\nkind: Site\nupstreams:\n  docker.io: {mirror: \"https://cache.test/hub\"}\n",
    );
    let found = evidence(&place, &["--site", "site.yaml"]);
    assert_eq!(found["cache.test"], "predicted");
    assert!(
        !found.keys().any(|host| host.contains("docker")),
        "{found:?}"
    );
}

const MANIFEST: &str = "apiVersion: landfall/v1
kind: Manifest
metadata: {name: t}
vars: {v: v1.33.4}
images: [\"quay.io/a/app:v1\", \"docker.io/library/nginx:1.27\", \"registry.k8s.io/pause:3.10\"]
files:
- {url: \"https://dl.k8s.io/${v}/bin/linux/amd64/kubelet\", checksum: \"https://sums.test/kubelet.sha256\"}
- {url: \"https://github.com/o/r/releases/download/v1/x.tgz\"}
charts: [\"oci://ghcr.io/o/app:1.2.3\", {repo: \"https://charts.test\", name: app, version: 1.2.3}]
git: [{url: \"https://git.test/a.git\", ref: main}]
endpoints:
- {host: ec2.test, port: 443, why: machines, from: [seed-cluster-node]}
- {host: time.test, port: 443, why: time}
- {host: quay.io, port: 443, why: nodes pull here, from: [user-cluster-node]}
";

/// The first question of a reader is the allow-list, before anything can be requested.
#[test]
fn the_hosts_of_a_manifest_are_predicted_without_a_lock() {
    let place = Place::new();
    place.write("m.yaml", MANIFEST);
    let found = |more: &[&str]| evidence(&place, &[&["-f", "m.yaml"], more].concat());
    let all = found(&[]);
    for host in [
        "quay.io",
        "cdn01.quay.io",
        "registry-1.docker.io",
        "auth.docker.io",
        "production.cloudflare.docker.com",
        "registry.k8s.io",
        "*.pkg.dev",
        "dl.k8s.io",
        "sums.test",
        "github.com",
        "release-assets.githubusercontent.com",
        "ghcr.io",
        "pkg-containers.githubusercontent.com",
        "charts.test",
        "git.test",
    ] {
        assert_eq!(all[host], "predicted", "{host}: {all:?}");
    }
    assert_eq!(all["ec2.test"], "declared");
    let text = place.ok(&["egress", "-f", "m.yaml", "--store", "store"]);
    assert!(
        text.contains(
            "note: nothing was requested: the list is predicted from the names in the manifests"
        ),
        "{text}"
    );
    assert!(!text.contains("could not be resolved"), "{text}");
    // without a lock, the error leads to the prediction
    let run = place.command().arg("egress").output().unwrap();
    let printed = String::from_utf8_lossy(&run.stderr);
    assert!(
        run.status.code() == Some(2) && printed.contains("egress -f MANIFEST"),
        "{printed}"
    );

    // landfall's machine and the nodes have lists of their own
    let own = found(&["--role", "landfall"]);
    assert!(
        own.contains_key("cdn01.quay.io") && own.contains_key("time.test"),
        "{own:?}"
    );
    assert!(!own.contains_key("ec2.test"), "{own:?}");
    let list = |role: &str| found(&["--role", role]).into_keys().collect::<Vec<_>>();
    assert_eq!(list("seed-cluster-node"), ["ec2.test", "time.test"]);
    assert_eq!(list("user-cluster-node"), ["quay.io", "time.test"]);
    let ticket = place.ok(&[
        "egress", "-f", "m.yaml", "--store", "store", "--format", "json",
    ]);
    place.write("ticket.json", ticket);
    let diff = ["--role", "seed-cluster-node", "--diff", "ticket.json"];
    assert_eq!(found(&diff).len(), 0);
    for (args, words) in [
        (
            &["-f", "m.yaml", "--role", "landfal"][..],
            "did you mean landfall?",
        ),
        (&["-f", "m.yaml", "--probe"], "--probe"),
    ] {
        let run = place.command().arg("egress").args(args).output().unwrap();
        let printed = String::from_utf8_lossy(&run.stderr);
        assert!(
            run.status.code() == Some(2) && printed.contains(words),
            "{printed}"
        );
    }
}

/// `update` contacts hosts that no item names: those of versions, lists and trust roots.
#[test]
fn the_sources_of_updates_are_predicted_too() {
    let place = Place::new();
    place.write("list.txt", "quay.io/a/b:v1\n");
    place.write("root.json", Sigstore::new().trusted_root());
    place.write("tuf.json", "{}");
    place.write(
        "m.yaml",
        "apiVersion: landfall/v1
kind: Manifest
metadata: {name: t}
vars:
  a: {value: v1.33.4, update: patch, from: \"https://text.test/stable-1.33.txt\"}
  b: {value: v1.33.4, update: patch, from: {url: \"https://json.test/releases\", path: \"[].tag_name\"}}
  c: {value: 1.2.3, update: patch, from: {repo: \"https://charts.test/x\", chart: app}}
  d: {value: v1.2.3, update: patch, from: tags.test/a/b}
lists:
- {format: images-txt, file: list.txt, from: \"https://lists.test/list.txt\"}
files:
- {url: \"https://files.test/${a}/${b}/${c}/${d}\"}
verify:
- match: \"quay.io/a/*\"
  keyless: {issuer: \"https://token.test\", identity: \"https://github.com/org/*\"}
  trustedRoot: {file: root.json, from: \"https://tuf.test\", tufRoot: tuf.json}
",
    );
    let found = evidence(&place, &["-f", "m.yaml"]);
    for host in [
        "text.test",
        "json.test",
        "charts.test",
        "tags.test",
        "lists.test",
        "tuf.test",
        "files.test",
    ] {
        assert_eq!(found[host], "predicted", "{host}: {found:?}");
    }
    let nodes = place.write("n.yaml", MANIFEST);
    let nodes = nodes.to_str().unwrap();
    let role = ["-f", "m.yaml", "-f", nodes, "--role", "seed-cluster-node"];
    assert!(!evidence(&place, &role).contains_key("tuf.test"));
}

/// Hosts that a proxy refused are still predicted, with the further hosts that their responses
/// would have named.
#[test]
fn the_list_does_not_shrink_after_a_refused_run() {
    let place = Place::new();
    place.write("m.yaml", MANIFEST);
    let before = evidence(&place, &["-f", "m.yaml"]);
    let proxy = ReverseProxy::new("", |_| ProxyAction::status(403));
    for command in [
        &["lock", "-f", "m.yaml"][..],
        &["mirror", "-f", "m.yaml", "--to", "r.test"],
    ] {
        let mut run = place.command();
        run.args(command).args(["--store", "store"]);
        for name in ["HTTP_PROXY", "HTTPS_PROXY"] {
            run.env(name, format!("http://{}", proxy.address));
        }
        assert_ne!(run.output().unwrap().status.code(), Some(0), "{command:?}");
    }
    assert!(proxy.requests().len() > 3, "the proxy was asked");
    assert_eq!(evidence(&place, &["-f", "m.yaml"]), before);
    let text = place.ok(&["egress", "-f", "m.yaml", "--store", "store"]);
    assert!(
        text.contains("note: quay.io: it refused or failed every request"),
        "{text}"
    );
}

/// A registry answers, but the host of its blobs is refused: which further hosts it names is known
/// only in part.
#[test]
fn a_refused_redirect_keeps_the_documented_hosts() {
    let place = docker_hub();
    let hub = "registry-1.docker.io:443";
    let host = |host: &str, named_by: &[&str], refused: bool| {
        serde_json::json!({
            "host": host, "port": 443, "scheme": "https", "why": ["registry"],
            "namedBy": named_by, "by": ["lock", "pull"], "refused": refused,
        })
    };
    for (refused, is_predicted) in [(true, true), (false, false)] {
        let hosts = [
            host("registry-1.docker.io", &[], false),
            host("tokens.test", &[hub], false),
            host("cdn.test", &[hub], refused),
        ];
        let record = serde_json::json!({"version": 1, "hosts": hosts});
        place.write("store/.landfall/egress", record.to_string());
        let found = evidence(&place, &[]);
        assert_eq!(found["cdn.test"], "observed");
        let documented = found.contains_key("production.cloudflare.docker.com");
        assert_eq!(documented, is_predicted, "{found:?}");
        let text = place.ok(&["egress", "--store", "store"]);
        let note = "docker.io: cdn.test, which it named, has not answered yet";
        assert_eq!(text.contains(note), is_predicted, "{text}");
    }
}
