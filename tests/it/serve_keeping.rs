//! `landfall serve` as a long-running registry: quotas, deletion, read-only users, reloads, metrics
//! and logs.

use crate::support::http::{Response, get, manifest, put_blob, put_manifest, request};
use crate::support::images::{OCI_INDEX, OCI_MANIFEST, noise, sha256};
use crate::support::peers::{Server, skopeo};
use crate::support::{Images, Place, landfall_serve, need, run, wait_for};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

const PUSHES: [&str; 2] = ["--writable", "written"];

fn serve(place: &Place, args: &[&str]) -> Server {
    landfall_serve(place, &[&PUSHES[..], args].concat())
}

/// Pushes an image with one layer and the fields of `more`, by digest if `tag` is empty. Returns
/// its manifest.
fn push(server: &Server, repository: &str, tag: &str, layer: &[u8], more: Value) -> Vec<u8> {
    put_blob(&server.address, repository, &sha256(b"{}"), b"{}");
    put_blob(&server.address, repository, &sha256(layer), layer);
    let octets = "application/octet-stream";
    let mut document = json!({
        "schemaVersion": 2, "mediaType": OCI_MANIFEST,
        "config": {"mediaType": octets, "digest": sha256(b"{}"), "size": 2},
        "layers": [{"mediaType": octets, "digest": sha256(layer), "size": layer.len()}],
    });
    document
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    let bytes = serde_json::to_vec(&document).unwrap();
    let reference = if tag.is_empty() {
        sha256(&bytes)
    } else {
        tag.to_owned()
    };
    put_manifest(
        &server.address,
        repository,
        &reference,
        OCI_MANIFEST,
        &bytes,
    );
    bytes
}

fn delete(server: &Server, target: &str) -> Response {
    request("DELETE", &server.address, target, &[], b"")
}

fn entries_in(dir: &Path) -> usize {
    std::fs::read_dir(dir).into_iter().flatten().count()
}

#[test]
fn a_quota_is_enforced_reported_and_freed_by_deletion() {
    let place = Place::new();
    let server = serve(&place, &["--max-bytes", "2MiB", "--upload-expiry", "1s"]);
    let first = push(&server, "a", "v1", &noise(1, 1_500_000), json!({}));
    let too_much = noise(2, 700_000);
    let post = format!("/v2/a/blobs/uploads/?digest={}", sha256(&too_much));
    let refused = request("POST", &server.address, &post, &[], &too_much);
    assert_eq!(refused.refusal(), (403, "DENIED".into()));
    assert!(
        refused.text().contains("2097152 bytes (--max-bytes)"),
        "{}",
        refused.text()
    );
    let begun = request("POST", &server.address, "/v2/a/blobs/uploads/", &[], b"");
    let location = begun.header("location").unwrap().to_owned();
    assert_eq!(
        request("PATCH", &server.address, &location, &[], &too_much).status,
        403,
        "an upload in chunks is refused too"
    );
    assert_eq!(
        request(
            "PATCH",
            &server.address,
            &location,
            &[],
            &too_much[..400_000]
        )
        .status,
        202
    );
    assert_eq!(
        request(
            "PATCH",
            &server.address,
            &location,
            &[],
            &too_much[400_000..]
        )
        .status,
        403
    );
    delete(&server, &location);
    assert_eq!(
        delete(&server, &format!("/v2/a/manifests/{}", sha256(&first))).status,
        202
    );
    // a sweep removes blobs only when no push can rely on them; a push that needs space triggers
    // a sweep
    wait_for("space for the upload", || {
        request("POST", &server.address, &post, &[], &too_much).status == 201
    });
    drop(server);
    let server = serve(&place, &["--max-bytes", "1MiB"]);
    let third = noise(3, 500_000);
    let post = format!("/v2/a/blobs/uploads/?digest={}", sha256(&third));
    assert_eq!(
        request("POST", &server.address, &post, &[], &third).status,
        403,
        "the used space is counted at the start"
    );
}

#[test]
fn an_upload_that_does_not_fit_leaves_its_room_to_others() {
    let place = Place::new();
    let server = serve(&place, &["--max-bytes", "2MiB"]);
    let begun = request("POST", &server.address, "/v2/a/blobs/uploads/", &[], b"");
    let location = begun.header("location").unwrap();
    let chunk = noise(1, 1_500_000);
    for status in [202, 403, 404] {
        let sent = request("PATCH", &server.address, location, &[], &chunk);
        assert_eq!(sent.status, status, "{}", sent.text());
    }
    let metrics = get(&server.address, "/metrics");
    assert!(metrics.text().contains("\nlandfall_writable_bytes 0\n"));
    assert!(metrics.text().contains("\nlandfall_uploads 0\n"));
    put_blob(&server.address, "b", &sha256(&chunk), &chunk);
}

#[test]
fn uploads_beyond_the_limit_are_refused_until_one_ends() {
    let place = Place::new();
    let server = serve(&place, &["--max-uploads", "2"]);
    let begin = || request("POST", &server.address, "/v2/a/blobs/uploads/", &[], b"");
    let first = begin();
    assert_eq!((first.status, begin().status), (202, 202));
    let refused = begin();
    assert_eq!(refused.refusal(), (429, "TOOMANYREQUESTS".into()));
    assert!(
        refused.text().contains("2 uploads are in progress"),
        "{}",
        refused.text()
    );
    assert_eq!(
        delete(&server, first.header("location").unwrap()).status,
        204
    );
    assert_eq!(begin().status, 202);
}

#[test]
fn commands_for_stores_refuse_the_folder_of_pushed_content() {
    let place = Place::new();
    let server = serve(&place, &[]);
    push(&server, "a", "v1", b"layer", json!({}));
    place.write("empty.lock", "version: 1\n");
    place.write("written/oci-layout", "{\"imageLayoutVersion\":\"1.0.0\"}");
    let command = |verb: &'static str| [verb, "--store", "written", "--lock", "empty.lock"];
    let refuse = |verb: &'static str| {
        let refused = place.json(1, &command(verb));
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.contains("--writable` and not a store"), "{message}");
    };
    refuse("pull");
    refuse("gc");
    drop(server);
    refuse("pull");
    refuse("gc");
    std::fs::remove_file(place.path("written/oci-layout")).unwrap();
    let none = place.json(2, &command("gc"));
    let message = none["error"]["message"].as_str().unwrap();
    assert!(message.contains("is not a store"), "{message}");
    let server = serve(&place, &[]);
    assert_eq!(get(&server.address, "/v2/a/manifests/v1").status, 200);
    let layer = format!("/v2/a/blobs/{}", sha256(b"layer"));
    assert!(get(&server.address, &layer).body == b"layer");
}

#[test]
fn unfinished_uploads_are_removed_by_age() {
    let place = Place::new();
    let server = serve(&place, &["--upload-expiry", "1s"]);
    let begun = request("POST", &server.address, "/v2/a/blobs/uploads/", &[], b"");
    let location = begun.header("location").unwrap();
    let mut stream = TcpStream::connect(&server.address).unwrap();
    write!(
        stream,
        "PATCH {location} HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\nabc"
    )
    .unwrap();
    wait_for("the upload", || {
        entries_in(&place.path("written/.landfall/temporary")) == 1
    });
    drop(stream);
    wait_for("the end of the upload", || {
        entries_in(&place.path("written/.landfall/temporary")) == 0
    });
    assert_eq!(
        request("GET", &server.address, location, &[], b"").status,
        404
    );
    assert!(
        get(&server.address, "/metrics")
            .text()
            .contains("\nlandfall_uploads 0\n")
    );
}

#[test]
fn tags_manifests_and_blobs_can_be_deleted_and_the_sweep_removes_unreferenced_blobs() {
    let place = Place::new();
    let server = serve(&place, &["--upload-expiry", "1s"]);
    let first = noise(1, 1000);
    let second = noise(2, 1000);
    let old = push(&server, "a", "v1", &first, json!({}));
    let new = push(&server, "a", "v2", &second, json!({}));
    let of_old = format!("/v2/a/manifests/{}", sha256(&old));
    let of_layer = format!("/v2/a/blobs/{}", sha256(&first));
    let refused = delete(&server, &of_layer);
    assert_eq!(
        refused.refusal(),
        (403, "DENIED".into()),
        "a manifest refers to the blob"
    );
    assert_eq!(delete(&server, "/v2/a/manifests/v1").status, 202);
    assert_eq!(manifest(&server.address, "a", "v1").status, 404);
    assert_eq!(
        get(&server.address, &of_old).status,
        200,
        "deleting a tag keeps its manifest"
    );
    assert_eq!(delete(&server, &of_old).status, 202);
    for gone in ["/v2/a/manifests/v1", &*of_old] {
        assert_eq!(
            (
                delete(&server, gone).status,
                get(&server.address, gone).status
            ),
            (404, 404),
            "{gone}"
        );
    }
    wait_for("the sweep", || {
        !place
            .path("written/blobs/sha256")
            .join(&sha256(&first)[7..])
            .exists()
    });
    assert_eq!(get(&server.address, &of_layer).status, 404);
    assert_eq!(manifest(&server.address, "a", "v2").body, new);
    assert!(get(&server.address, &format!("/v2/a/blobs/{}", sha256(&second))).body == second);
    // a DELETE request removes an unreferenced blob at once
    let alone = noise(3, 2_000_000);
    put_blob(&server.address, "a", &sha256(&alone), &alone);
    let target = format!("/v2/a/blobs/{}", sha256(&alone));
    assert!(get(&server.address, &target).body == alone);
    assert_eq!(
        (
            delete(&server, &target).status,
            get(&server.address, &target).status
        ),
        (202, 404)
    );
    assert_eq!(delete(&server, &target).status, 404);
    assert_eq!(entries_in(&place.path("written/frames/sha256")), 0);
}

#[test]
fn referrers_are_returned_in_pages_of_bounded_size() {
    let place = Place::new();
    let server = serve(&place, &[]);
    let subject = push(&server, "a", "v1", b"layer", json!({}));
    let about =
        json!({"mediaType": OCI_MANIFEST, "digest": sha256(&subject), "size": subject.len()});
    let large = "x".repeat(600_000);
    for number in 0..12 {
        let kind = format!("application/x.{}", number % 2);
        let annotations = json!({"number": number.to_string(), "large": large});
        push(
            &server,
            "a",
            "",
            b"layer",
            json!({"subject": about, "artifactType": kind, "annotations": annotations}),
        );
    }
    for (query, expected) in [
        ("", 12),
        ("?n=1", 12),
        ("?artifactType=application/x.0", 6),
        ("?artifactType=application/x.none", 0),
    ] {
        let mut next = Some(format!("/v2/a/referrers/{}{query}", sha256(&subject)));
        let mut seen = std::collections::BTreeSet::new();
        let mut pages = 0;
        while let Some(target) = next {
            let page = get(&server.address, &target);
            assert!(
                page.status == 200 && page.body.len() < 2 << 20,
                "{target}: {}",
                page.body.len()
            );
            assert_eq!(page.header("content-type"), Some(OCI_INDEX));
            assert_eq!(
                page.header("oci-filters-applied").is_some(),
                query.contains("artifactType")
            );
            let entries = page.json()["manifests"].as_array().unwrap().clone();
            assert!(!query.contains("n=1") || entries.len() == 1);
            seen.extend(
                entries
                    .iter()
                    .map(|entry| entry["digest"].as_str().unwrap().to_owned()),
            );
            next = page
                .header("link")
                .map(|link| link[1..link.find('>').unwrap()].to_owned());
            pages += 1;
        }
        assert_eq!(seen.len(), expected, "{query}");
        assert!(expected < 12 || pages >= 6, "{query}: {pages} pages");
    }
    let wrong = get(
        &server.address,
        &format!("/v2/a/referrers/{}?n=0", sha256(&subject)),
    );
    assert_eq!(wrong.refusal(), (400, "PAGINATION_NUMBER_INVALID".into()));
}

/// Writes the files `push` and `read` with a user each: anna may push, otto may only read.
fn users(place: &Place) {
    for (file, user, password) in [("push", "anna", "a"), ("read", "otto", "o")] {
        place.write(
            file,
            format!("{user}:{}\n", bcrypt::hash(password, 4).unwrap()),
        );
    }
}

const ANNA: (&str, &str) = ("Authorization", "Basic YW5uYTph");
const OTTO: (&str, &str) = ("Authorization", "Basic b3R0bzpv");

#[test]
fn a_user_who_may_only_read_neither_pushes_nor_deletes() {
    let place = Place::new();
    users(&place);
    let server = serve(&place, &["--htpasswd", "push", "--htpasswd-read", "read"]);
    let index =
        br#"{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}"#;
    let ask = |method: &str, target: &str, user: &[(&str, &str)]| {
        let headers = [&[("Content-Type", OCI_INDEX)], user].concat();
        request(
            method,
            &server.address,
            target,
            &headers,
            if method == "PUT" { index } else { b"" },
        )
        .status
    };
    let target = "/v2/a/manifests/v1";
    for (user, status) in [(&[][..], 401), (&[OTTO], 403), (&[ANNA], 201)] {
        assert_eq!(ask("PUT", target, user), status);
    }
    for (user, status) in [(&[][..], 401), (&[OTTO], 200), (&[ANNA], 200)] {
        assert_eq!(
            (ask("GET", "/v2/", user), ask("GET", target, user)),
            (status, status)
        );
    }
    for (user, status) in [(&[][..], 401), (&[OTTO], 403), (&[ANNA], 202)] {
        assert_eq!(ask("POST", "/v2/a/blobs/uploads/", user), status);
        assert_eq!(ask("DELETE", target, user), status);
    }
}

#[test]
fn anonymous_users_read_and_only_signed_in_users_push() {
    if !need(&["skopeo", "gzip"]) {
        return;
    }
    let place = Place::new();
    users(&place);
    let server = serve(&place, &["--htpasswd", "push", "--anonymous-read"]);
    let mut images = Images::new(place.path("layout"));
    let image = images.image("linux/amd64", &[images.layer(&[("a", b"a")])]);
    images.tag("v1", &image);
    let from = format!("oci:{}:v1", images.dir().display());
    let to = format!("docker://{}/team/app:v1", server.address);
    let push = |creds: &[&str]| {
        let mut command = skopeo(&place);
        command
            .args(["copy", "--quiet", "--dest-tls-verify=false"])
            .args(creds)
            .args([&from, &to]);
        command
    };
    assert!(!push(&[]).output().unwrap().status.success());
    run(&mut push(&["--dest-creds", "anna:a"]));
    // skopeo, which requests /v2/ first, and a plain GET need no account to read
    run(skopeo(&place).args(["copy", "--quiet", "--src-tls-verify=false", &to, "dir:back"]));
    assert_eq!(manifest(&server.address, "team/app", "v1").status, 200);
    assert_eq!(
        get(&server.address, "/v2/").status,
        401,
        "this response tells clients that they can sign in"
    );
    let wrong = [("Authorization", "Basic YW5uYTp3cm9uZw==")];
    assert_eq!(
        request(
            "GET",
            &server.address,
            "/v2/team/app/tags/list",
            &wrong,
            b""
        )
        .status,
        401
    );
    let post = request(
        "POST",
        &server.address,
        "/v2/team/app/blobs/uploads/",
        &[],
        b"",
    );
    assert_eq!(
        (post.status, post.header("www-authenticate").is_some()),
        (401, true)
    );
}

/// The daemon sends no request without an account if `/v2/` requires Basic.
#[test]
fn the_docker_daemon_reads_without_an_account_by_a_token() {
    let place = Place::new();
    users(&place);
    let server = serve(&place, &["--htpasswd", "push", "--anonymous-read"]);
    let address = &server.address;
    let docker = (
        "User-Agent",
        "docker/28.5.1 go/go1.24.8 os/linux arch/amd64",
    );
    let ask = |method: &str, target: &str, headers: &[(&str, &str)]| {
        request(method, address, target, headers, b"")
    };
    let challenge = |headers: &[(&str, &str)]| {
        let ping = ask("GET", "/v2/", headers);
        assert_eq!(ping.status, 401);
        ping.header("www-authenticate").unwrap().to_owned()
    };
    let bearer = |url: &str| format!("Bearer realm=\"{url}/v2/token\",service=\"landfall\"");
    assert_eq!(challenge(&[docker]), bearer(&format!("http://{address}")));
    let front = ("Host", "registry.test");
    let tls = ("X-Forwarded-Proto", "https");
    assert_eq!(
        challenge(&[docker, front, tls]),
        bearer("https://registry.test")
    );
    // others need no token, and a proxy that does not say so may end TLS
    for headers in [
        &[][..],
        &[("User-Agent", "skopeo/1.9")],
        &[docker, front],
        &[docker, ("X-Forwarded-For", "172.20.0.9")],
        &[docker, ("Via", "1.1 registry.test")],
    ] {
        assert!(challenge(headers).starts_with("Basic "), "{headers:?}");
    }
    let old = format!(
        "GET /v2/ HTTP/1.0\r\nHost: {address}\r\nUser-Agent: {}\r\n\r\n",
        docker.1
    );
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(old.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("www-authenticate: Basic "), "{answer}");
    let token = |headers: &[(&str, &str)]| {
        let target = "/v2/token?service=landfall&scope=repository%3Aa%3Apull";
        let answer = ask("GET", target, headers);
        assert_eq!(answer.status, 200);
        format!("Bearer {}", answer.json()["token"].as_str().unwrap())
    };
    let (nobody, anna) = (token(&[]), token(&[ANNA]));
    for (token, ping, read, push) in [(&nobody, 401, 404, 401), (&anna, 200, 404, 202)] {
        let signed = [("Authorization", token.as_str())];
        assert_eq!(ask("GET", "/v2/", &signed).status, ping);
        assert_eq!(ask("GET", "/v2/a/tags/list", &signed).status, read);
        assert_eq!(ask("POST", "/v2/a/blobs/uploads/", &signed).status, push);
    }
    // otto is no user of this server
    assert_eq!(ask("GET", "/v2/token", &[OTTO]).status, 401);
}

fn hang_up(server: &Server) {
    run(Command::new("sh").args(["-c", &format!("kill -HUP {}", server.pid())]));
}

fn log_has(server: &Server, line: &str, times: usize) {
    wait_for(line, || server.log().matches(line).count() >= times);
}

#[test]
fn a_reload_applies_new_passwords_and_certificates_and_a_failed_one_changes_nothing() {
    if !need(&["curl"]) {
        return;
    }
    let place = Place::new();
    users(&place);
    let certify = || {
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        place.write("cert.pem", made.cert.pem());
        place.write("key.pem", made.signing_key.serialize_pem());
    };
    certify();
    let tls = [
        "--tls-cert",
        "cert.pem",
        "--tls-key",
        "key.pem",
        "--htpasswd",
        "push",
    ];
    let server = serve(&place, &tls);
    let url = format!("https://{}/v2/", server.address);
    let curl = |user: &str| {
        let args = [
            "-sS",
            "--cacert",
            "cert.pem",
            "-u",
            user,
            "-w",
            "%{http_code}",
            "-o",
            "/dev/null",
            &url,
        ];
        let output = place.clean("curl").args(args).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(
        (curl("anna:a"), curl("berta:b")),
        ("200".into(), "401".into())
    );
    certify();
    assert_eq!(curl("anna:a"), "000", "the old certificate is still sent");
    place.write("push", format!("berta:{}\n", bcrypt::hash("b", 4).unwrap()));
    hang_up(&server);
    log_has(&server, "reloaded", 1);
    assert_eq!(
        (curl("anna:a"), curl("berta:b")),
        ("401".into(), "200".into())
    );
    // if a file is invalid, the reload changes nothing
    place.write("push", "nonsense\n");
    hang_up(&server);
    log_has(&server, "reload failed", 1);
    assert_eq!(curl("berta:b"), "200");
}

#[test]
fn a_reload_applies_new_bundles_and_responses_in_progress_end_unchanged() {
    let place = Place::new();
    let mut images = Images::new(place.path("store"));
    let layer = images.layer(&[("noise", &noise(1, 30 << 20))]);
    let pack = |images: &mut Images, arch: &str| {
        let image = images.image(arch, std::slice::from_ref(&layer));
        let bytes = images.bytes(image["digest"].as_str().unwrap());
        let document: Value = serde_json::from_slice(&bytes).unwrap();
        let blob = |part: &Value| {
            format!(
                "  - {} {} {}\n",
                part["digest"].as_str().unwrap(),
                part["size"],
                part["mediaType"].as_str().unwrap()
            )
        };
        let lock = format!(
            "version: 1\nimages:\n- name: quay.io/x/app:1\n  digest: {}\n  mediaType: {}\n  size: {}\n  platform: {arch}\n  blobs:\n{}{}",
            image["digest"].as_str().unwrap(),
            OCI_MANIFEST,
            image["size"],
            blob(&document["config"]),
            blob(&document["layers"][0]),
        );
        place.write("landfall.lock", lock);
        place.ok(&["pack", "-o", "bundle.tar.zst", "--store", "store"]);
        bytes
    };
    let first = pack(&mut images, "linux/amd64");
    let server = landfall_serve(&place, &["bundle.tar.zst"]);
    assert_eq!(manifest(&server.address, "x/app", "1").body, first);
    let target = format!("/v2/x/app/blobs/{}", layer["digest"].as_str().unwrap());
    let mut under_way = TcpStream::connect(&server.address).unwrap();
    write!(
        under_way,
        "GET {target} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    under_way.read_exact(&mut [0; 9]).unwrap();
    let second = pack(&mut images, "linux/arm64");
    assert_eq!(
        manifest(&server.address, "x/app", "1").body,
        first,
        "the old bundle is served until a reload"
    );
    hang_up(&server);
    log_has(&server, "reloaded", 1);
    assert_eq!(manifest(&server.address, "x/app", "1").body, second);
    let mut answer = Vec::new();
    under_way.read_to_end(&mut answer).unwrap();
    let whole = images.bytes(layer["digest"].as_str().unwrap());
    assert!(
        answer.ends_with(&whole),
        "{} bytes were received",
        answer.len()
    );
    // like `pack`, this replaces the file and does not write into it
    let other = place.write("other", b"no bundle");
    std::fs::rename(other, place.path("bundle.tar.zst")).unwrap();
    hang_up(&server);
    log_has(&server, "reload failed", 1);
    assert_eq!(manifest(&server.address, "x/app", "1").body, second);
    assert!(get(&server.address, &target).body == whole);
}

#[test]
fn each_request_is_logged_and_a_reload_reopens_the_access_log() {
    let place = Place::new();
    users(&place);
    let args = [
        "--access-log",
        "access.log",
        "--htpasswd",
        "push",
        "--htpasswd-read",
        "read",
    ];
    let server = serve(&place, &args);
    let read = |name: &str| std::fs::read_to_string(place.path(name)).unwrap_or_default();
    request(
        "GET",
        &server.address,
        "/v2/_catalog?n=5&token=secret",
        &[OTTO, ("User-Agent", "test/1")],
        b"",
    );
    request(
        "POST",
        &server.address,
        "/v2/a/blobs/uploads/",
        &[OTTO],
        b"",
    );
    wait_for("the lines", || read("access.log").contains("POST"));
    let log = read("access.log");
    let line = log.lines().find(|line| line.contains("_catalog")).unwrap();
    assert!(line.starts_with("127.0.0.1 - otto ["), "{line}");
    let fields = "\"GET /v2/_catalog?… HTTP/1.1\" 200 19 \"-\" \"test/1\" ";
    let (_, took) = line.split_once(fields).unwrap_or_else(|| panic!("{line}"));
    assert!(took.parse::<f64>().is_ok(), "{line}");
    assert!(!log.contains("secret"), "{log}");
    assert!(
        log.contains("- otto [") && log.contains("\"POST /v2/a/blobs/uploads/ HTTP/1.1\" 403 "),
        "{log}"
    );
    std::fs::rename(place.path("access.log"), place.path("old.log")).unwrap();
    hang_up(&server);
    log_has(&server, "reloaded", 1);
    get(&server.address, "/after");
    wait_for("the new file", || read("access.log").contains("/after"));
    assert!(!read("old.log").contains("/after"));
}

#[test]
fn health_and_metrics_need_no_login() {
    let place = Place::new();
    users(&place);
    let server = serve(&place, &["--htpasswd", "push", "--max-bytes", "1GB"]);
    let health = get(&server.address, "/healthz");
    assert_eq!((health.status, health.text()), (200, "ok\n".into()));
    let blob = noise(1, 100_000);
    let post = format!("/v2/a/blobs/uploads/?digest={}", sha256(&blob));
    assert_eq!(
        request("POST", &server.address, &post, &[ANNA], &blob).status,
        201
    );
    assert_eq!(
        request(
            "GET",
            &server.address,
            &format!("/v2/a/blobs/{}", sha256(&blob)),
            &[ANNA],
            b""
        )
        .body,
        blob
    );
    let page = get(&server.address, "/metrics");
    assert_eq!(
        page.header("content-type"),
        Some("text/plain; version=0.0.4; charset=utf-8")
    );
    let text = page.text();
    for line in [
        "landfall_requests_total{method=\"POST\",code=\"201\"} 1",
        "landfall_requests_in_flight 0",
        "landfall_connections_closed_total{why=\"stalled\"} 0",
        "landfall_blobs_hashed_total 0",
        "landfall_writable_bytes 100000",
        "landfall_writable_max_bytes 1000000000",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}:\n{text}");
    }
    // each line is a comment, or a name and a number
    for line in text.lines().filter(|line| !line.starts_with("# ")) {
        let (name, value) = line.rsplit_once(' ').unwrap();
        assert!(
            name.starts_with("landfall_") && value.parse::<f64>().is_ok(),
            "{line}"
        );
    }
    assert_eq!(
        request("POST", &server.address, "/metrics", &[], b"").status,
        405
    );
    // the default check of HAProxy
    for (target, status) in [("/", 204), ("/healthz", 200), ("/readyz", 200)] {
        let answer = request("OPTIONS", &server.address, target, &[], b"");
        assert_eq!(answer.status, status, "{target}");
    }
    let answer = request("OPTIONS", &server.address, "/v2/a/tags/list", &[ANNA], b"");
    assert_eq!(
        (answer.status, answer.header("allow")),
        (204, Some("GET, HEAD"))
    );
}
