//! What a request to `landfall serve` costs: the most expensive small request of every kind.

use super::peak_growth;
use super::served_content::{ServedContent, push_tags};
use crate::support::git::{GitServer, history};
use crate::support::http::{get, metric, put_blob, request};
use crate::support::images::{OCI_MANIFEST, gzip, noise, sha256};
use crate::support::peers::Server;
use crate::support::{Place, landfall_serve, wait_for};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The number of refs of the repository. A list of them has 5.5 MB, more than the system buffers
/// for a client that reads nothing.
const REFS: usize = 12_000;
/// The size of a blob, which does not fit into the buffers of the system either.
pub const LARGE: usize = 12 << 20;
/// How often each request is sent at the same time.
const AT_ONCE: usize = 8;
/// The memory that any request may take, in bytes: buffers for the connection, two pieces of the
/// body, and a frame of the bundle, packed and unpacked, which has at most 1 MiB each. Beside other
/// work on the machine, 3.4 MB were measured; the content has 12 MB.
const FIXED: u64 = 4 << 20;
/// The memory that a request may take for each of its own bytes.
const PER_BYTE: u64 = 64;

/// A server with content of every kind.
struct Served<'a> {
    server: Server,
    /// Targets of large content by route.
    targets: &'a [(&'static str, String)],
    /// The path of the git repository.
    git: &'a str,
    place: &'a Place,
}

/// One kind of request, in its most expensive small form.
struct Kind {
    /// The route in the source, and the method.
    route: &'static str,
    method: &'static str,
    target: String,
    headers: Vec<(&'static str, &'static str)>,
    body: Vec<u8>,
    /// The expected status, which shows that the request reached its handler.
    status: u16,
}

/// Packs a repository with a large file and `refs` tags, which `serve` can serve. Returns the path
/// of the repository.
fn pack(place: &Place, refs: usize) -> Option<String> {
    let upstream = GitServer::new()?;
    let repository = upstream.create("a.git");
    upstream.import(&repository, &history("main", 0, 3));
    let work = upstream.place.path("work");
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    upstream.git(
        Path::new("."),
        &["clone", "-q", &path(&repository), &path(&work)],
    );
    upstream.place.write("work/large", noise(7, LARGE));
    upstream.git(&work, &["add", "."]);
    upstream.git(&work, &["commit", "-q", "-m", "large"]);
    upstream.git(&work, &["push", "-q", "origin", "HEAD:main"]);
    let commit = upstream.git(&repository, &["rev-parse", "main"]);
    let commit = commit.trim();
    let mut packed =
        format!("# pack-refs with: peeled fully-peeled sorted\n{commit} refs/heads/main\n");
    for number in 0..refs {
        let _ = writeln!(packed, "{commit} refs/tags/{}/{number:06}", "x".repeat(200));
    }
    std::fs::write(repository.join("packed-refs"), packed).unwrap();
    let _ = std::fs::remove_file(repository.join("refs/heads/main"));

    let manifest = format!(
        "apiVersion: landfall/v1\nkind: Manifest\ngit:\n- {{url: \"{}\", ref: main, tags: \".*\"}}\n",
        upstream.url("a.git")
    );
    place.write("m.yaml", manifest);
    place.ok(&["lock", "-f", "m.yaml"]);
    place.ok(&["pull"]);
    place.ok(&["pack", "-o", "b.tar.zst"]);
    Some(format!("/git/{}/a.git", upstream.address))
}

/// A packet of git's protocol.
fn packet(text: &str) -> String {
    format!("{:04x}{text}\n", text.len() + 5)
}

/// A `ls-refs` request with `size` bytes of different prefixes that all refs have.
fn many_prefixes(size: usize) -> Vec<u8> {
    let mut body = packet("command=ls-refs") + "0001";
    let mut number = 0;
    while body.len() < size {
        body += &packet(&format!("ref-prefix {}", &"refs/tags/"[..number % 11]));
        number += 1;
    }
    (body + "0000").into_bytes()
}

/// A fetch of `want` with `size` bytes of commits that nobody has.
fn fetch(want: &str, size: usize) -> Vec<u8> {
    let mut body = packet("command=fetch") + "0001" + &packet(&format!("want {want}"));
    let mut number = 0;
    while body.len() < size {
        body += &packet(&format!("have {number:040x}"));
        number += 1;
    }
    (body + &packet("done") + "0000").into_bytes()
}

/// A gzipped batch request of Git LFS for `count` files.
fn large_files_request(count: usize) -> Vec<u8> {
    let objects = vec![r#"{"oid":"","size":1}"#; count].join(",");
    gzip(format!(r#"{{"operation":"download","objects":[{objects}]}}"#).as_bytes())
}

impl Served<'_> {
    /// Every kind of request. `UPLOAD` in a target is the path of a new upload.
    fn kinds(&self) -> Vec<Kind> {
        let address = &self.server.address;
        let digest = sha256(b"{}");
        put_blob(address, "a", &digest, b"{}");
        let kind = |route, method, target: &str, body: &[u8], status| Kind {
            route,
            method,
            target: target.into(),
            headers: Vec::new(),
            body: body.into(),
            status,
        };
        let of_type = |kind: Kind, name, value| Kind {
            headers: [kind.headers, vec![(name, value)]].concat(),
            ..kind
        };
        let packed = |kind| of_type(kind, "Content-Encoding", "gzip");
        let version_2 = |kind| of_type(kind, "Git-Protocol", "version=2");
        let manifest = format!(
            r#"{{"schemaVersion":2,"mediaType":"{OCI_MANIFEST}","config":{{"mediaType":"x/y","digest":"{digest}","size":2}},"layers":[{}]}}"#,
            vec!["{}"; 5000].join(",")
        );
        let manifest = manifest.as_bytes();
        let tip = self.tip();
        let batch = format!("{}/info/lfs/objects/batch", self.git);
        let upload_pack = format!("{}/git-upload-pack", self.git);
        let refs = format!("{}/info/refs?service=git-upload-pack", self.git);
        let missing = sha256(b"missing");
        let targets = self.targets.iter();
        let mut kinds: Vec<Kind> = targets
            .map(|(route, target)| kind(route, "GET", target, b"", 200))
            .collect();
        kinds.extend([
            kind("Route::Version", "GET", "/v2/", b"", 200),
            // only a server that allows anonymous clients has tokens
            kind("/v2/token", "GET", "/v2/token", b"", 404),
            kind("Route::Catalog", "GET", "/v2/_catalog", b"", 200),
            kind("Route::Tags", "GET", "/v2/a/tags/list", b"", 404),
            kind("Route::Manifest", "GET", "/v2/a/manifests/v1", b"", 404),
            of_type(
                kind(
                    "Route::Manifest",
                    "PUT",
                    "/v2/a/manifests/v1",
                    manifest,
                    400,
                ),
                "Content-Type",
                OCI_MANIFEST,
            ),
            kind(
                "Route::Manifest",
                "DELETE",
                &format!("/v2/a/manifests/{missing}"),
                b"",
                404,
            ),
            kind(
                "Route::Blob",
                "GET",
                &format!("/v2/a/blobs/{digest}"),
                b"",
                200,
            ),
            kind(
                "Route::Blob",
                "DELETE",
                &format!("/v2/a/blobs/{missing}"),
                b"",
                404,
            ),
            kind(
                "Route::Referrers",
                "GET",
                &format!("/v2/a/referrers/{digest}"),
                b"",
                200,
            ),
            kind(
                "Route::Uploads",
                "POST",
                &format!("/v2/a/blobs/uploads/?digest={missing}"),
                &noise(1, 20_000),
                400,
            ),
            kind("Route::Upload", "GET", "UPLOAD", b"", 204),
            kind("Route::Upload", "PATCH", "UPLOAD", &noise(1, 20_000), 202),
            kind(
                "Route::Upload",
                "PUT",
                &format!("UPLOAD?digest={missing}"),
                b"xy",
                400,
            ),
            kind("Route::Upload", "DELETE", "UPLOAD", b"", 204),
            kind("GitRoute::Advertisement", "GET", &refs, b"", 200),
            version_2(kind("GitRoute::Advertisement", "GET", &refs, b"", 200)),
            version_2(kind(
                "GitRoute::UploadPack",
                "POST",
                &upload_pack,
                &many_prefixes(20_000),
                200,
            )),
            packed(version_2(kind(
                "GitRoute::UploadPack",
                "POST",
                &upload_pack,
                &gzip(&many_prefixes(8 << 20)),
                413,
            ))),
            version_2(kind(
                "GitRoute::UploadPack",
                "POST",
                &upload_pack,
                &fetch(&tip, 20_000),
                200,
            )),
            packed(kind(
                "GitRoute::LargeFiles",
                "POST",
                &batch,
                &large_files_request(12_000),
                200,
            )),
            packed(kind(
                "GitRoute::LargeFiles",
                "POST",
                &batch,
                &large_files_request(419_420),
                413,
            )),
            kind(
                "GitRoute::LargeFile",
                "GET",
                &format!("{}/info/lfs/objects/{}", self.git, &missing[7..]),
                b"",
                404,
            ),
            kind("/", "GET", "/", b"", 200),
            kind("/changes", "GET", "/changes", b"", 200),
            kind("/nodes", "GET", "/nodes", b"", 200),
            kind("/misses", "GET", "/misses", b"", 200),
            kind("/misses.json", "GET", "/misses.json", b"", 200),
            kind("/healthz", "GET", "/healthz", b"", 200),
            kind("/readyz", "GET", "/readyz", b"", 200),
            kind("/metrics", "GET", "/metrics", b"", 200),
            kind("/charts/", "GET", "/charts/none-1.0.0.tgz", b"", 404),
            kind(
                "/providers/",
                "GET",
                "/providers/h/a/b/index.json",
                b"",
                404,
            ),
            kind("/files/", "GET", "/files/h/x", b"", 404),
            kind("/apt/", "GET", "/apt/h/x", b"", 404),
            kind("/yum/", "GET", "/yum/h/x", b"", 404),
        ]);
        kinds
    }

    /// The commit that `main` points to.
    fn tip(&self) -> String {
        let lock: serde_json::Value =
            serde_yaml::from_str(&self.place.read("landfall.lock")).unwrap();
        let refs = lock["git"][0]["refs"].as_array().unwrap();
        let mut refs = refs.iter().map(|one| one.as_str().unwrap());
        let main = refs.find_map(|one| one.strip_prefix("refs/heads/main "));
        main.unwrap().to_owned()
    }

    /// The connections of clients that send `kind` and have received the first bytes of the
    /// answer, and the statuses of these answers.
    fn ask(&self, kind: &Kind) -> (Vec<TcpStream>, BTreeSet<String>) {
        let streams: Vec<TcpStream> = (0..AT_ONCE)
            .map(|_| self.send(kind, kind.body.len()))
            .collect();
        let status = |mut stream: &TcpStream| {
            let mut head = [0; 12];
            let _ = stream.read_exact(&mut head);
            String::from_utf8_lossy(&head[9..]).into_owned()
        };
        let statuses = streams.iter().map(status).collect();
        (streams, statuses)
    }

    /// Sends `kind` on a new connection, with the first `bytes` of its body.
    fn send(&self, kind: &Kind, bytes: usize) -> TcpStream {
        let mut target = kind.target.clone();
        if target.contains("UPLOAD") {
            let uploads = "/v2/a/blobs/uploads/";
            let begun = request("POST", &self.server.address, uploads, &[], b"");
            target = target.replace("UPLOAD", begun.header("location").unwrap());
        }
        let mut stream = TcpStream::connect(&self.server.address).unwrap();
        let timeout = Some(Duration::from_mins(5));
        stream.set_read_timeout(timeout).unwrap();
        let Kind { method, body, .. } = kind;
        let mut head = format!("{method} {target} HTTP/1.1\r\nHost: h\r\n");
        for (name, value) in &kind.headers {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        let _ = write!(head, "Content-Length: {}\r\n\r\n", body.len());
        stream.write_all(head.as_bytes()).unwrap();
        // a server may answer before it has read a body that is too large
        let _ = stream.write_all(&body[..bytes]);
        stream
    }
}

/// The variants of an enum in a source file of the server, as `Enum::Variant`.
fn variants(file: &str, name: &str) -> BTreeSet<String> {
    let text = source(file);
    let start = text.find(&format!("enum {name} {{")).unwrap();
    let body = &text[start..];
    let body = &body[..body.find("\n}").unwrap()];
    let lines = body.lines().skip(1).map(str::trim);
    let words = lines.filter(|line| !line.starts_with("//"));
    words
        .map(|line| line.split(['(', ',', ' ']).next().unwrap())
        .map(|variant| format!("{name}::{variant}"))
        .collect()
}

fn source(file: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/landfall-serve/src");
    std::fs::read_to_string(folder.join(file)).unwrap()
}

/// The paths that the server answers outside of its tables of routes: the texts in the router and
/// in the list of pages that are paths.
fn paths() -> BTreeSet<String> {
    let text = source("router.rs") + &source("page/mod.rs");
    let code = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    let mut found: BTreeSet<String> = code
        .flat_map(|line| line.split('"').skip(1).step_by(2).map(str::to_owned))
        .filter(|text| text.starts_with('/') && !text.contains(['{', ' ', '"']))
        .collect();
    // the root of the distribution API, which is a route
    found.remove("/v2");
    found
}

#[test]
fn no_small_request_takes_much_memory() {
    let place = Place::new();
    let Some(git) = pack(&place, REFS) else {
        return;
    };
    let content = ServedContent::new();
    let mut arguments: Vec<&str> = content.bundles.iter().map(String::as_str).collect();
    arguments.extend(["b.tar.zst", "--writable", "written"]);
    let server = landfall_serve(&place, &arguments);
    push_tags(&server.address);
    let tags = [
        ("Route::Tags", "/v2/tags/tags/list".to_owned()),
        (
            "Route::Manifest",
            format!("/v2/tags/manifests/{}00000", "t".repeat(100)),
        ),
    ];
    let served = Served {
        server,
        targets: &[content.targets, tags.into()].concat(),
        git: &git,
        place: &place,
    };
    let kinds = served.kinds();
    let mut known: BTreeSet<String> = variants("route.rs", "Route");
    known.extend(variants("git/mod.rs", "GitRoute"));
    known.extend(paths());
    let listed: BTreeSet<String> = kinds.iter().map(|kind| kind.route.to_owned()).collect();
    assert_eq!(listed, known, "every route needs a request in `kinds`");
    let mut table = String::new();
    let mut problems = Vec::new();
    for kind in &kinds {
        // the first request opens the repository
        drop(served.ask(kind));
        let mut answers = Default::default();
        let growth = peak_growth(served.server.pid(), || answers = served.ask(kind));
        let growth = growth / AT_ONCE as u64;
        let size = kind.body.len() as u64;
        let (clients, statuses) = answers;
        drop(clients);
        if statuses != BTreeSet::from([kind.status.to_string()]) {
            let problem = format!("{} {}: {statuses:?}", kind.method, kind.target);
            problems.push(problem);
        }
        let line = format!(
            "{} {}: {size} bytes, {growth} bytes of memory\n",
            kind.method, kind.route
        );
        if growth > FIXED + PER_BYTE * size {
            problems.push(line.clone());
        }
        table += &line;
    }
    eprintln!("{table}");
    assert!(problems.is_empty(), "{problems:#?}");
    for (route, target) in [
        ("Route::Manifest", "/v2/a/manifests/v1".to_owned()),
        ("Route::Upload", "/v2/a/blobs/uploads/x".to_owned()),
        ("Route::Blob", format!("/v2/a/blobs/{}", sha256(b"{}"))),
        (
            "GitRoute::UploadPack",
            format!("{}/git-upload-pack", served.git),
        ),
        (
            "GitRoute::LargeFiles",
            format!("{}/info/lfs/objects/batch", served.git),
        ),
    ] {
        let refused = request("TRACE", &served.server.address, &target, &[], b"");
        let allow = refused.header("allow").unwrap();
        for method in allow.split(", ").filter(|method| *method != "HEAD") {
            let is_listed = |kind: &Kind| kind.route == route && kind.method == method;
            let why = "every method of a route needs a request in `kinds`";
            assert!(kinds.iter().any(is_listed), "{method} {route}: {why}");
        }
    }
}

#[test]
fn a_client_that_sends_a_body_byte_by_byte_loses_its_place() {
    let place = Place::new();
    let Some(git) = pack(&place, 1) else { return };
    // a place for one request: the client that sends slowly has it until it loses it
    let start = |written: &str, more: &[&str]| Served {
        server: landfall_serve(
            &place,
            &[
                &["b.tar.zst", "--max-requests", "1", "--writable", written],
                more,
            ]
            .concat(),
        ),
        targets: &[],
        git: &git,
        place: &place,
    };
    let first = start("kinds", &[]);
    let all = first.kinds();
    let kinds: Vec<&Kind> = all.iter().filter(|kind| !kind.body.is_empty()).collect();
    let trickle = |served: &Served<'_>, kind: &Kind, until: &dyn Fn() -> bool| {
        let mut stream = served.send(kind, 1);
        let bytes = kind.body[1..kind.body.len() - 1].iter();
        for byte in bytes.cycle() {
            if until() || stream.write_all(&[*byte]).is_err() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    std::thread::scope(|scope| {
        for (number, kind) in kinds.iter().enumerate() {
            let (start, trickle) = (&start, &trickle);
            scope.spawn(move || {
                let long = Kind {
                    body: kind.body.repeat(20_000 / kind.body.len() + 1),
                    headers: kind.headers.clone(),
                    target: kind.target.clone(),
                    ..**kind
                };
                let served = start(&format!("written{number}"), &[]);
                let address = &served.server.address;
                let has_answer = AtomicBool::new(false);
                let until = || has_answer.load(Ordering::Relaxed);
                std::thread::scope(|scope| {
                    scope.spawn(|| trickle(&served, &long, &until));
                    wait_for("a request in progress", || {
                        metric(address, "landfall_requests_in_flight") == 1
                    });
                    assert_eq!(get(address, "/v2/").status, 200, "{}", kind.route);
                    has_answer.store(true, Ordering::Relaxed);
                });
                // without other clients, it loses its connection after `--stall`
                let served = start(&format!("stall{number}"), &["--stall", "1"]);
                trickle(&served, &long, &|| false);
                let name = "landfall_connections_closed_total{why=\"stalled\"}";
                assert!(metric(&served.server.address, name) > 0, "{}", kind.route);
            });
        }
    });
}
