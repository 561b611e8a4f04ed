//! `landfall serve` with hostile clients and content: scripts for browsers, connections that block
//! others, wrong passwords, and manifests that take memory.

use crate::support::http::{Response, get, is_closed, metric, put_blob, put_manifest, request};
use crate::support::images::{OCI_INDEX, OCI_MANIFEST, noise, sha256};
use crate::support::peers::{Server, landfall_serve_within};
use crate::support::{Place, landfall_serve, need, wait_for};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

const PUSHES: [&str; 2] = ["--writable", "written"];
const HTML: &str = "<script>alert(document.domain)</script>";

/// Uploads the config `{}`. Returns a manifest with this config, no layers, and the fields of
/// `more`.
fn manifest(server: &Server, repository: &str, more: Value) -> Vec<u8> {
    put_blob(&server.address, repository, &sha256(b"{}"), b"{}");
    let mut document = json!({
        "schemaVersion": 2, "mediaType": OCI_MANIFEST, "layers": [],
        "config": {"mediaType": "application/x.test", "digest": sha256(b"{}"), "size": 2},
    });
    document
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    serde_json::to_vec(&document).unwrap()
}

/// Whether the server has sent nothing and not closed the connection.
fn is_open_and_silent(mut stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let read = stream.read(&mut [0]);
    matches!(read, Err(error) if error.kind() == ErrorKind::WouldBlock)
}

fn is_confined(response: &Response) -> bool {
    response.header("content-security-policy") == Some("sandbox; default-src 'none'")
        && response.header("x-content-type-options") == Some("nosniff")
}

#[test]
fn a_manifest_with_the_media_type_of_a_web_page_is_refused() {
    let place = Place::new();
    let server = landfall_serve(&place, &PUSHES);
    for kind in ["text/html", "image/svg+xml", "application/xhtml+xml"] {
        for fields in [
            json!({"mediaType": kind, "x": HTML}),
            json!({"mediaType": kind, "manifests": []}),
        ] {
            let bytes = manifest(&server, "a", fields);
            for sent in [kind, OCI_MANIFEST, OCI_INDEX] {
                let headers = [("Content-Type", sent)];
                let put = request(
                    "PUT",
                    &server.address,
                    "/v2/a/manifests/v1",
                    &headers,
                    &bytes,
                );
                assert_eq!(
                    put.refusal(),
                    (400, "MANIFEST_INVALID".into()),
                    "{kind} as {sent}"
                );
            }
        }
    }
    // Content-Type is ignored if the manifest has no media type and its fields identify its kind
    let bytes = br#"{"schemaVersion":2,"manifests":[]}"#;
    let put = request(
        "PUT",
        &server.address,
        "/v2/a/manifests/v1",
        &[("Content-Type", "text/html")],
        bytes,
    );
    assert_eq!(put.status, 201, "{}", put.text());
    assert_eq!(
        get(&server.address, "/v2/a/manifests/v1").header("content-type"),
        Some(OCI_INDEX)
    );
}

#[test]
fn a_manifest_in_parts_is_refused() {
    let place = Place::new();
    let server = landfall_serve(&place, &PUSHES);
    let bytes = manifest(&server, "a", json!({}));
    let whole = format!("0-{}", bytes.len() - 1);
    for range in ["5-9", "x", &whole] {
        let headers = [("Content-Range", range), ("Content-Type", OCI_MANIFEST)];
        let target = "/v2/a/manifests/v1";
        let answer = request("PUT", &server.address, target, &headers, &bytes);
        assert_eq!(answer.status, 400, "{range}: {}", answer.text());
        assert!(
            answer.text().contains("MANIFEST_INVALID"),
            "{}",
            answer.text()
        );
        assert_eq!(get(&server.address, target).status, 404);
    }
}

#[test]
fn a_stored_manifest_with_the_media_type_of_a_web_page_is_sent_as_bytes_and_can_be_deleted() {
    let place = Place::new();
    let server = landfall_serve(&place, &PUSHES);
    let bytes = manifest(&server, "a", json!({"annotations": {"x": HTML}}));
    put_manifest(&server.address, "a", "v1", OCI_MANIFEST, &bytes);
    drop(server);
    let kind = format!(
        "written/repositories/a/_manifests/sha256/{}",
        &sha256(&bytes)[7..]
    );
    place.write(&kind, "text/html");
    let server = landfall_serve(&place, &PUSHES);
    let answer = get(&server.address, "/v2/a/manifests/v1");
    assert_eq!((answer.status, &answer.body), (200, &bytes));
    assert!(
        is_confined(&answer) && answer.header("content-type") == Some("application/octet-stream")
    );
    let target = format!("/v2/a/manifests/{}", sha256(&bytes));
    assert_eq!(
        request("DELETE", &server.address, &target, &[], b"").status,
        202
    );
}

#[test]
fn only_the_page_may_run_scripts() {
    let place = Place::new();
    let server = landfall_serve(&place, &PUSHES);
    let bytes = manifest(&server, "a", json!({}));
    put_manifest(&server.address, "a", "v1", OCI_MANIFEST, &bytes);
    put_blob(
        &server.address,
        "a",
        &sha256(HTML.as_bytes()),
        HTML.as_bytes(),
    );
    let html = format!("/v2/a/blobs/{}", sha256(HTML.as_bytes()));
    for (target, status) in [
        ("/v2/", 200),
        ("/v2/a/manifests/v1", 200),
        (&html, 200),
        ("/v2/_catalog", 200),
        ("/v2/a/tags/list", 200),
        ("/v2/%3Cscript%3E/manifests/v1", 400),
        ("/v2/a/manifests/none", 404),
        ("/files/h/x.html", 404),
        ("/none", 404),
        ("/healthz", 200),
        ("/metrics", 200),
    ] {
        let answer = get(&server.address, target);
        assert_eq!(answer.status, status, "{target}");
        assert!(is_confined(&answer), "{target}: {:?}", answer.headers);
        assert!(
            !answer.header("content-type").unwrap().contains("html"),
            "{target}"
        );
    }
    assert_eq!(
        get(&server.address, &html).header("content-type"),
        Some("application/octet-stream")
    );
    let page = get(&server.address, "/");
    let policy = page.header("content-security-policy").unwrap();
    assert!(
        policy.starts_with("default-src 'none'; style-src 'sha256-") && !policy.contains("sandbox")
    );
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
}

/// Writes a certificate for 127.0.0.1 and its key. Returns the server's arguments for both.
fn tls(place: &Place) -> [&'static str; 4] {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    place.write("cert.pem", made.cert.pem());
    place.write("key.pem", made.signing_key.serialize_pem());
    ["--tls-cert", "cert.pem", "--tls-key", "key.pem"]
}

#[test]
fn plain_http_to_an_address_for_https_gets_an_answer_that_says_so() {
    let place = Place::new();
    let server = landfall_serve(&place, &[&PUSHES[..], &tls(&place)].concat());
    for (method, body) in [("GET", Vec::new()), ("POST", noise(1, 4 << 20))] {
        let refused = request(method, &server.address, "/v2/", &[], &body);
        let text = refused.text();
        assert_eq!(refused.status, 400, "{method}: {text}");
        assert!(
            text.contains("HTTP request to an HTTPS server"),
            "{method}: {text}"
        );
    }
}

#[test]
fn unfinished_tls_handshakes_are_closed_oldest_first() {
    if !need(&["curl"]) {
        return;
    }
    let place = Place::new();
    let args = [&PUSHES[..], &tls(&place), &["--max-connections", "20"]].concat();
    let server = landfall_serve(&place, &args);
    let silent: Vec<TcpStream> = (0..20)
        .map(|number| {
            let mut stream = TcpStream::connect(&server.address).unwrap();
            // half of them send only the header of a TLS record that announces 512 bytes
            if number % 2 == 0 {
                stream.write_all(&[0x16, 3, 1, 2, 0]).unwrap();
            }
            stream
        })
        .collect();
    (&silent[0]).write_all(&[1]).unwrap();
    let url = format!("https://{}/healthz", server.address);
    let curl = place
        .clean("curl")
        .args(["-sS", "--cacert", "cert.pem", &url])
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8_lossy(&curl.stdout),
        "ok\n",
        "{}",
        String::from_utf8_lossy(&curl.stderr)
    );
    let open: Vec<bool> = silent.iter().map(is_open_and_silent).collect();
    assert!(
        !open[0] && open[19],
        "the oldest is closed although it sent last, and the youngest stays open: {open:?}"
    );
    assert!(open.iter().filter(|open| !**open).count() < 10, "{open:?}");
}

#[test]
fn requests_that_wait_for_bcrypt_take_no_slot_and_their_number_is_limited() {
    let place = Place::new();
    // the cost is high so that even on a busy machine, many sign-ins wait until the test ends
    place.write("push", format!("anna:{}\n", bcrypt::hash("a", 13).unwrap()));
    let server = landfall_serve(
        &place,
        &[&PUSHES[..], &["--htpasswd", "push", "--max-requests", "2"]].concat(),
    );
    let anna = [("Authorization", "Basic YW5uYTph")];
    let signed_in = || request("GET", &server.address, "/v2/_catalog", &anna, b"");
    assert_eq!(signed_in().status, 200);
    let wrong: Vec<TcpStream> = (0..300)
        .map(|number| {
            let mut stream = TcpStream::connect(&server.address).unwrap();
            let basic = base64(&format!("anna:wrong{number}"));
            write!(
                stream,
                "GET /v2/ HTTP/1.1\r\nHost: h\r\nAuthorization: Basic {basic}\r\nConnection: close\r\n\r\n"
            )
            .unwrap();
            stream
        })
        .collect();
    wait_for("the 100th response with 429", || {
        let name = "landfall_requests_total{method=\"GET\",code=\"429\"}";
        metric(&server.address, name) >= 100
    });
    assert!(
        metric(&server.address, "landfall_sign_ins") > 0,
        "no other sign-in waits"
    );
    for _ in 0..3 {
        assert_eq!(
            signed_in().status,
            200,
            "an account that has signed in before does not wait"
        );
    }
    // the client may have the last byte of an answer before the server ends the request
    wait_for("the end of all requests that have a slot", || {
        assert!(
            metric(&server.address, "landfall_sign_ins") > 0,
            "a waiting sign-in takes a request slot"
        );
        metric(&server.address, "landfall_requests_in_flight") == 0
    });
    assert!(
        metric(&server.address, "landfall_sign_ins") > 0,
        "no other sign-in waits any more"
    );
    let sent_away = wrong
        .iter()
        .filter(|stream| !is_open_and_silent(stream))
        .count();
    assert!((100..300).contains(&sent_away), "{sent_away}");
}

fn base64(text: &str) -> String {
    use ::base64::Engine as _;
    ::base64::engine::general_purpose::STANDARD.encode(text)
}

/// The memory limit of a server in bytes: 400 manifests of 8 MiB would need twice as much.
const MEMORY: u64 = 1600 << 20;

#[test]
fn unfinished_manifest_uploads_take_no_memory() {
    if !need(&["prlimit"]) {
        return;
    }
    let place = Place::new();
    let server = landfall_serve_within(&place, MEMORY, &PUSHES);
    let body = vec![b' '; (8 << 20) - 1];
    let open: Vec<TcpStream> = (0..400)
        .map(|number| {
            let mut stream = TcpStream::connect(&server.address).unwrap();
            let length = body.len() + 1;
            write!(
                stream,
                "PUT /v2/a/manifests/{number} HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n"
            )
            .unwrap();
            stream.write_all(&body).unwrap();
            stream
        })
        .collect();
    let bytes = manifest(&server, "a", json!({}));
    put_manifest(&server.address, "a", "v1", OCI_MANIFEST, &bytes);
    drop(open);
    put_manifest(&server.address, "a", "v2", OCI_MANIFEST, &bytes);
    let incoming = place.path("written/.landfall/temporary");
    wait_for("the removal of unfinished uploads", || {
        std::fs::read_dir(&incoming).unwrap().count() == 0
    });
}

#[test]
fn manifests_with_many_annotations_take_little_memory() {
    if !need(&["prlimit"]) {
        return;
    }
    let place = Place::new();
    let server = landfall_serve_within(&place, 1000 << 20, &PUSHES);
    let mut many = String::new();
    for number in 0..600_000 {
        let _ = write!(many, ",\"{number}\":\"\"");
    }
    let config = json!({"mediaType": "application/x.test", "digest": sha256(b"{}"), "size": 2});
    let annotated = |number: usize, more: &str| {
        format!(
            "{{\"schemaVersion\":2,\"mediaType\":\"{OCI_MANIFEST}\",\"config\":{config},\"layers\":[]{more},\
             \"annotations\":{{\"n\":\"{number}\"{many}}}}}"
        )
    };
    manifest(&server, "a", json!({}));
    std::thread::scope(|scope| {
        for number in 0..12 {
            let server = &server;
            let annotated = &annotated;
            scope.spawn(move || {
                let bytes = annotated(number, "").into_bytes();
                put_manifest(
                    &server.address,
                    "a",
                    &format!("v{number}"),
                    OCI_MANIFEST,
                    &bytes,
                );
            });
        }
    });
    // a manifest with a subject and this many annotations is refused: each list of the subject's
    // referrers would contain the annotations
    let subject = format!(",\"subject\":{config}");
    let headers = [("Content-Type", OCI_MANIFEST)];
    let bytes = annotated(0, &subject).into_bytes();
    let put = request(
        "PUT",
        &server.address,
        "/v2/a/manifests/about",
        &headers,
        &bytes,
    );
    assert_eq!(put.refusal(), (400, "MANIFEST_INVALID".into()));
    assert!(put.text().contains("1048576 bytes"), "{}", put.text());
}

#[test]
fn the_received_bytes_of_a_stalled_upload_are_on_disk() {
    let place = Place::new();
    let server = landfall_serve(&place, &PUSHES);
    let begun = request("POST", &server.address, "/v2/a/blobs/uploads/", &[], b"");
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let location = begun.header("location").unwrap();
    write!(
        stream,
        "PATCH {location} HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n"
    )
    .unwrap();
    stream.write_all(&vec![7; 999_999]).unwrap();
    let size = || {
        let files = std::fs::read_dir(place.path("written/.landfall/temporary")).unwrap();
        files
            .map(|file| file.unwrap().metadata().unwrap().len())
            .sum::<u64>()
    };
    wait_for("the received bytes on disk", || size() >= 999_999);
    assert!(is_open_and_silent(&stream));
    stream.set_nonblocking(false).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert!(is_closed(&stream));
}
