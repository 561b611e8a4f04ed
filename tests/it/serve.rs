//! `landfall serve` as a registry that accepts pushes, over sockets, and with skopeo and curl as
//! clients.

use crate::support::free_port;
use crate::support::http::{get, manifest, put_blob, put_manifest, request};
use crate::support::images::{
    DOCKER_MANIFEST, OCI_INDEX, OCI_MANIFEST, digest, hex, noise, sha256,
};
use crate::support::peers::{Server, skopeo, skopeo_push, skopeo_raw};
use crate::support::{Guard, Images, Place, landfall_serve, need, run, wait_for};
use serde_json::{Value, json};
use sha2::{Digest, Sha512};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

const PUSHES: [&str; 2] = ["--writable", "written"];

/// The manifest of an artifact without layers, with the fields of `more`. Uploads its config to
/// `repository`.
fn artifact(server: &Server, repository: &str, more: Value) -> Vec<u8> {
    put_blob(&server.address, repository, &sha256(b"{}"), b"{}");
    let mut document = json!({
        "schemaVersion": 2, "mediaType": OCI_MANIFEST, "artifactType": "application/x.test",
        "config": {"mediaType": "application/vnd.oci.empty.v1+json", "digest": sha256(b"{}"), "size": 2},
        "layers": [],
    });
    document
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    serde_json::to_vec(&document).unwrap()
}

#[test]
fn skopeo_can_push_list_inspect_and_pull_images() {
    if !need(&["skopeo", "gzip"]) {
        return;
    }
    let place = Place::new();
    let mut images = Images::new(place.path("layout"));
    let base = images.layer(&[("base", &noise(1, 3 << 20))]);
    let amd64 = images.image(
        "linux/amd64",
        &[base.clone(), images.layer(&[("a", b"amd64")])],
    );
    let index = images.index(&[
        amd64.clone(),
        images.image("linux/arm64", std::slice::from_ref(&base)),
        images.attestation(&amd64),
    ]);
    images.tag("multi", &index);
    images.tag("one", &images.image("linux/amd64", &[base]));
    let server = landfall_serve(&place, &PUSHES);
    skopeo_push(
        &place,
        images.dir(),
        "multi",
        &format!("{}/team/app:v1", server.address),
    );
    skopeo_push(
        &place,
        images.dir(),
        "one",
        &format!("{}/team/app:v2", server.address),
    );

    let app = format!("docker://{}/team/app", server.address);
    let tags = run(skopeo(&place).args(["list-tags", "--tls-verify=false", &app]));
    assert_eq!(
        serde_json::from_slice::<Value>(&tags).unwrap()["Tags"],
        json!(["v1", "v2"])
    );
    let raw = skopeo_raw(&place, &format!("{}/team/app:v1", server.address));
    assert!(raw == images.bytes(digest(&index)));
    let back = place.path("back");
    let to = format!("dir:{}", back.display());
    let from = format!("{app}@{}", digest(&amd64));
    run(skopeo(&place).args(["copy", "--quiet", "--src-tls-verify=false", &from, &to]));
    assert!(std::fs::read(back.join("manifest.json")).unwrap() == images.bytes(digest(&amd64)));
    let blobs = images
        .closure(&amd64)
        .into_iter()
        .filter(|blob| blob != digest(&amd64));
    for blob in blobs {
        let hex = blob.trim_start_matches("sha256:");
        assert!(
            std::fs::read(back.join(hex)).unwrap() == images.bytes(&blob),
            "{blob}"
        );
    }
}

#[test]
fn odd_manifests_keep_their_bytes_and_types() {
    let place = Place::new();
    let images = Images::new(place.path("layout"));
    let layer = images.docker_layer(&[("etc/motd", b"docker\n")]);
    let docker = images.docker_image("linux/amd64", &[layer]);
    let artifact = images.artifact("application/x.test", b"", None);
    let nested = images.index(&[
        images.index(std::slice::from_ref(&artifact)),
        docker.clone(),
    ]);
    let server = landfall_serve(&place, &PUSHES);
    images.push(&server.address, "odd", "nested", &nested);
    for child in [&nested, &docker, &artifact] {
        let there = manifest(&server.address, "odd", digest(child));
        assert_eq!(there.header("content-type"), child["mediaType"].as_str());
        assert_eq!(there.header("docker-content-digest"), Some(digest(child)));
        assert!(there.body == images.bytes(digest(child)));
    }
    // a client that accepts only another type gets the manifest unchanged: manifests are never
    // converted
    let one = [("Accept", DOCKER_MANIFEST)];
    let there = request(
        "GET",
        &server.address,
        "/v2/odd/manifests/nested",
        &one,
        b"",
    );
    assert_eq!(
        (there.status, there.header("content-type")),
        (200, Some(OCI_INDEX))
    );
    let head = request(
        "HEAD",
        &server.address,
        "/v2/odd/manifests/nested",
        &[],
        b"",
    );
    let size = nested["size"].to_string();
    assert_eq!(
        (head.status, head.header("content-length"), head.body.len()),
        (200, Some(&*size), 0)
    );
    // a manifest is available only in its own repository
    assert_eq!(
        manifest(&server.address, "other", digest(&nested)).status,
        404
    );
}

#[test]
fn chunked_uploads_are_checked_and_their_state_can_be_requested() {
    let place = Place::new();
    let server = landfall_serve(&place, &PUSHES);
    let send = |method, target: &str, headers: &[(&str, &str)], body: &[u8]| {
        request(method, &server.address, target, headers, body)
    };
    let blob = noise(2, 3_000_000);
    let begun = send("POST", "/v2/a/blobs/uploads/", &[], b"");
    assert_eq!(begun.status, 202);
    let at = begun.header("location").unwrap().to_owned();
    let first = send(
        "PATCH",
        &at,
        &[("Content-Range", "0-999999")],
        &blob[..1_000_000],
    );
    assert_eq!(
        (first.status, first.header("range")),
        (202, Some("0-999999"))
    );
    let again = send(
        "PATCH",
        &at,
        &[("Content-Range", "0-999999")],
        &blob[..1_000_000],
    );
    assert_eq!(
        (again.status, again.header("range")),
        (416, Some("0-999999")),
        "the same chunk again"
    );
    let gap = send(
        "PATCH",
        &at,
        &[("Content-Range", "2000000-2999999")],
        &blob[2_000_000..],
    );
    assert_eq!(gap.status, 416);
    let wrong = send(
        "PATCH",
        &at,
        &[("Content-Range", "1000000-1000009")],
        &blob[1_000_000..2_000_000],
    );
    assert_eq!(wrong.refusal(), (400, "SIZE_INVALID".into()));
    let progress = send("GET", &at, &[], b"");
    assert_eq!(
        (progress.status, progress.header("range")),
        (204, Some("0-999999"))
    );
    assert_eq!(
        send("GET", &at.replace("/v2/a/", "/v2/b/"), &[], b"").status,
        404,
        "the upload belongs to another repository"
    );
    assert_eq!(
        send("PATCH", &at, &[], &blob[1_000_000..2_000_000]).status,
        202,
        "without a range"
    );
    let end = format!("{at}?digest={}", sha256(&blob));
    let done = send(
        "PUT",
        &end,
        &[("Content-Range", "2000000-2999999")],
        &blob[2_000_000..],
    );
    assert_eq!(
        (done.status, done.header("docker-content-digest")),
        (201, Some(&*sha256(&blob)))
    );
    assert!(get(&server.address, done.header("location").unwrap()).body == blob);
    assert_eq!(
        send("GET", &at, &[], b"").status,
        404,
        "the upload has ended"
    );

    let cancelled = send("POST", "/v2/a/blobs/uploads/", &[], b"");
    let at = cancelled.header("location").unwrap();
    assert_eq!(send("DELETE", at, &[], b"").status, 204);
    assert_eq!(send("PATCH", at, &[], b"x").status, 404);
    let incoming = std::fs::read_dir(place.path("written/.landfall/temporary"))
        .unwrap()
        .count();
    assert_eq!(incoming, 0, "nothing is left of ended uploads");
}

#[test]
fn a_broken_upload_is_resumed() {
    let place = Place::new();
    let server = landfall_serve(&place, &PUSHES);
    let blob = noise(3, 2_500_000);
    let begun = request("POST", &server.address, "/v2/a/blobs/uploads/", &[], b"");
    let at = begun.header("location").unwrap();
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let head = format!(
        "PATCH {at} HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n",
        blob.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(&blob[..1_700_000]).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let _ = stream.read_to_end(&mut Vec::new());
    let progress = request("GET", &server.address, at, &[], b"");
    let last: usize = progress
        .header("range")
        .unwrap()
        .trim_start_matches("0-")
        .parse()
        .unwrap();
    assert_eq!(last + 1, 1_700_000, "received bytes are kept");
    let end = format!("{at}?digest={}", sha256(&blob));
    let done = request("PUT", &server.address, &end, &[], &blob[last + 1..]);
    assert_eq!(done.status, 201, "{}", done.text());
}

#[test]
fn single_posts_mounts_and_sha512_are_accepted_and_wrong_digests_refused() {
    let place = Place::new();
    let server = landfall_serve(&place, &PUSHES);
    let post = |query: &str, body: &[u8]| {
        request(
            "POST",
            &server.address,
            &format!("/v2/a/blobs/uploads/{query}"),
            &[],
            body,
        )
    };
    assert_eq!(
        post(&format!("?digest={}", sha256(b"one")), b"one").status,
        201
    );
    assert_eq!(
        post(&format!("?mount={}&from=b", sha256(b"one")), b"").status,
        201
    );
    assert_eq!(
        post(&format!("?mount={}&from=b", sha256(b"none")), b"").status,
        202
    );
    let hex = hex(&Sha512::digest(b"long"));
    let long = format!("sha512:{hex}");
    for begin in ["", "?digest-algorithm=sha512"] {
        // without `digest-algorithm`, the algorithm is known only at the end
        let at = post(begin, b"").header("location").unwrap().to_owned();
        assert_eq!(
            request("PATCH", &server.address, &at, &[], b"lo").status,
            202
        );
        let done = request(
            "PUT",
            &server.address,
            &format!("{at}?digest={long}"),
            &[],
            b"ng",
        );
        assert_eq!(
            (done.status, done.header("docker-content-digest")),
            (201, Some(&*long))
        );
    }
    assert_eq!(
        get(&server.address, &format!("/v2/a/blobs/{long}")).body,
        b"long"
    );
    assert!(place.path("written/blobs/sha512").join(hex).is_file());
    let wrong = post(&format!("?digest={}", sha256(b"x")), b"y");
    assert_eq!(wrong.refusal(), (400, "DIGEST_INVALID".into()));
    assert_eq!(
        get(&server.address, &format!("/v2/a/blobs/{}", sha256(b"x"))).status,
        404
    );
}

#[test]
fn invalid_manifests_are_refused_with_their_reason() {
    let place = Place::new();
    let server = landfall_serve(&place, &PUSHES);
    let put = |reference: &str, bytes: &[u8]| {
        let target = format!("/v2/a/manifests/{reference}");
        let answer = request(
            "PUT",
            &server.address,
            &target,
            &[("Content-Type", OCI_MANIFEST)],
            bytes,
        );
        answer.refusal()
    };
    let good = artifact(&server, "a", json!({}));
    assert_eq!(put("v1", b"{}"), (400, "MANIFEST_INVALID".into()));
    assert_eq!(put(".x", &good), (400, "TAG_INVALID".into()));
    assert_eq!(
        put(&sha256(b"other"), &good),
        (400, "DIGEST_INVALID".into())
    );
    let layer =
        json!({"mediaType": "application/octet-stream", "digest": sha256(b"absent"), "size": 6});
    let lacking = artifact(&server, "a", json!({"layers": [layer]}));
    assert_eq!(put("v1", &lacking), (400, "MANIFEST_BLOB_UNKNOWN".into()));
    let wrong_size =
        json!({"mediaType": "application/octet-stream", "digest": sha256(b"{}"), "size": 3});
    assert_eq!(
        put(
            "v1",
            &artifact(&server, "a", json!({"layers": [wrong_size]}))
        ),
        (400, "MANIFEST_INVALID".into())
    );
    let index =
        serde_json::to_vec(&json!({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": []}));
    assert_eq!(
        put("v1", &index.unwrap()),
        (400, "MANIFEST_INVALID".into()),
        "an index that was sent as a manifest"
    );
    assert_eq!(
        put("v1", &vec![b' '; (8 << 20) + 1]),
        (413, "MANIFEST_INVALID".into())
    );
    assert_eq!(
        get(&server.address, "/v2/a/tags/list").status,
        404,
        "nothing was kept"
    );

    // a foreign layer and a child of an index may be missing
    let mut elsewhere = layer.clone();
    elsewhere["urls"] = json!(["https://upstream.example/layer"]);
    put_manifest(
        &server.address,
        "a",
        "foreign",
        OCI_MANIFEST,
        &artifact(&server, "a", json!({"layers": [elsewhere]})),
    );
    let sparse = json!({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": [layer]});
    put_manifest(
        &server.address,
        "a",
        "sparse",
        OCI_INDEX,
        &serde_json::to_vec(&sparse).unwrap(),
    );
    for (method, target) in [
        ("DELETE", "/v2/a/tags/list"),
        ("PUT", "/v2/"),
        ("POST", "/"),
    ] {
        assert_eq!(
            request(method, &server.address, target, &[], b"").status,
            405,
            "{method} {target}"
        );
    }
}

#[test]
fn referrers_are_listed_filtered_and_stored() {
    let place = Place::new();
    let mut server = landfall_serve(&place, &PUSHES);
    let subject = artifact(&server, "a", json!({}));
    put_manifest(&server.address, "a", "v1", OCI_MANIFEST, &subject);
    let about =
        json!({"mediaType": OCI_MANIFEST, "digest": sha256(&subject), "size": subject.len()});
    for kind in ["application/x.sbom", "application/x.signature"] {
        let more = json!({"subject": about, "artifactType": kind, "annotations": {"k": kind}});
        let referrer = artifact(&server, "a", more);
        let target = format!("/v2/a/manifests/{}", sha256(&referrer));
        let put = request(
            "PUT",
            &server.address,
            &target,
            &[("Content-Type", OCI_MANIFEST)],
            &referrer,
        );
        assert_eq!(
            (put.status, put.header("oci-subject")),
            (201, Some(&*sha256(&subject)))
        );
    }
    let at = format!("/v2/a/referrers/{}", sha256(&subject));
    for round in 0..2 {
        let all = get(&server.address, &at);
        assert_eq!(
            (all.status, all.header("content-type")),
            (200, Some(OCI_INDEX)),
            "{round}"
        );
        assert_eq!(all.json()["manifests"].as_array().unwrap().len(), 2);
        let one = get(
            &server.address,
            &format!("{at}?artifactType=application/x.sbom"),
        );
        assert_eq!(one.header("oci-filters-applied"), Some("artifactType"));
        let entries = one.json()["manifests"].clone();
        assert_eq!(entries.as_array().unwrap().len(), 1);
        assert_eq!(entries[0]["annotations"]["k"], "application/x.sbom");
        let none = get(
            &server.address,
            &format!("/v2/a/referrers/{}", sha256(b"none")),
        );
        assert_eq!((none.status, &none.json()["manifests"]), (200, &json!([])));
        drop(server);
        server = landfall_serve(&place, &PUSHES);
    }
}

#[test]
fn curl_reads_ranges_and_sends_conditions() {
    if !need(&["curl"]) {
        return;
    }
    let place = Place::new();
    let server = landfall_serve(&place, &PUSHES);
    let blob = noise(4, 2_500_001);
    put_blob(&server.address, "a", &sha256(&blob), &blob);
    let url = format!("{}/v2/a/blobs/{}", server.url(), sha256(&blob));
    let curl = |args: &[&str]| run(place.clean("curl").args(["-sS"]).args(args).arg(&url));
    assert!(
        curl(&["-r", "1048570-1048590"]) == blob[1_048_570..=1_048_590],
        "a range over the boundary of two frames"
    );
    assert!(curl(&["-r", "-5"]) == blob[blob.len() - 5..]);
    let shown = String::from_utf8(curl(&["-i", "-r", "2500001-"]))
        .unwrap()
        .to_lowercase();
    assert!(
        shown.starts_with("http/1.1 416") && shown.contains("content-range: bytes */2500001"),
        "{shown}"
    );
    assert!(
        shown.contains("range_invalid"),
        "the body has the error code: {shown}"
    );
    place.write("part", &blob[..2_000_000]);
    curl(&["-C", "-", "-o", "part"]);
    assert!(
        std::fs::read(place.path("part")).unwrap() == blob,
        "a download is resumed"
    );
    let etag = format!("If-None-Match: \"{}\"", sha256(&blob));
    assert_eq!(curl(&["-H", &etag, "-w", "%{http_code}"]), b"304");
    for (tag, status) in [(sha256(&blob), "200"), (sha256(b"older"), "412")] {
        let condition = format!("If-Match: \"{tag}\"");
        let head = curl(&["-I", "-H", &condition, "-w", "%{http_code}"]);
        assert!(String::from_utf8(head).unwrap().ends_with(status), "{tag}");
    }
}

#[test]
fn bytes_that_changed_on_disk_are_never_sent() {
    let place = Place::new();
    let server = landfall_serve(&place, &PUSHES);
    let blob = noise(5, 3 << 20);
    put_blob(&server.address, "a", &sha256(&blob), &blob);
    let path = place
        .path("written/blobs/sha256")
        .join(sha256(&blob).trim_start_matches("sha256:"));
    let mut changed = blob.clone();
    changed[(2 << 20) + 7] ^= 1;
    std::fs::write(&path, &changed).unwrap();
    let answer = get(&server.address, &format!("/v2/a/blobs/{}", sha256(&blob)));
    assert_eq!(
        (answer.status, answer.text().contains("damaged")),
        (500, true),
        "{}",
        answer.text()
    );
    assert!(server.log().contains("damaged"), "{}", server.log());
    // a new upload repairs the blob; unlike `put_blob`, it sends no HEAD request, which would
    // report the blob as present
    let post = format!("/v2/a/blobs/uploads/?digest={}", sha256(&blob));
    assert_eq!(
        request("POST", &server.address, &post, &[], &blob).status,
        201
    );
    assert!(get(&server.address, &format!("/v2/a/blobs/{}", sha256(&blob))).body == blob);
}

#[test]
fn lists_have_pages() {
    let place = Place::new();
    let server = landfall_serve(&place, &PUSHES);
    let bytes = artifact(&server, "a", json!({}));
    for tag in ["v10", "v2", "v1"] {
        put_manifest(&server.address, "a", tag, OCI_MANIFEST, &bytes);
        put_manifest(
            &server.address,
            &format!("team/{tag}"),
            "x",
            OCI_MANIFEST,
            &bytes,
        );
    }
    for (path, key, expected) in [
        ("/v2/a/tags/list", "tags", json!(["v1", "v10", "v2"])),
        (
            "/v2/_catalog",
            "repositories",
            json!(["a", "team/v1", "team/v10", "team/v2"]),
        ),
    ] {
        assert_eq!(get(&server.address, path).json()[key], expected);
        let mut seen = Vec::new();
        let mut next = Some(format!("{path}?n=2"));
        while let Some(target) = next {
            let page = get(&server.address, &target);
            seen.extend(page.json()[key].as_array().unwrap().clone());
            let link = page
                .header("link")
                .map(|link| link[1..link.find('>').unwrap()].to_owned());
            next = link;
        }
        assert_eq!(Value::from(seen), expected);
    }
    assert_eq!(
        get(&server.address, "/v2/none/tags/list").refusal().1,
        "NAME_UNKNOWN"
    );
    assert_eq!(
        get(&server.address, "/v2/a/tags/list?n=x").refusal().1,
        "PAGINATION_NUMBER_INVALID"
    );
    let page = get(&server.address, "/").text();
    assert!(
        page.contains(&format!("{}/team/v10:x", server.address)),
        "{page}"
    );
}

#[test]
fn paths_cannot_lead_out_of_the_folder() {
    let place = Place::new();
    place.write("secret", "secret of the machine");
    let server = landfall_serve(&place, &PUSHES);
    for target in [
        "/v2/../../secret/manifests/x",
        "/v2/a/manifests/..%2f..%2f..%2f..%2fsecret",
        "/v2/..%2f..%2f/tags/list",
        "/v2/a/../../../secret/blobs/uploads/x",
        "/files/../secret",
        "/files/%2e%2e/secret",
        "/secret",
    ] {
        let answer = get(&server.address, target);
        assert!(
            (400..=405).contains(&answer.status),
            "{target}: {}",
            answer.status
        );
        assert!(answer.body != b"secret of the machine", "{target}");
        let put = request(
            "PUT",
            &server.address,
            target,
            &[("Content-Type", OCI_MANIFEST)],
            b"{}",
        );
        assert!(
            (400..=405).contains(&put.status),
            "PUT {target}: {}",
            put.status
        );
    }
    let names: Vec<_> = std::fs::read_dir(place.dir())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names.len(), 4, "home, tmp, secret, written: {names:?}");
}

#[test]
fn slashes_at_the_end_of_a_base_url_are_merged_with_the_next_ones() {
    let place = Place::new();
    let server = landfall_serve(&place, &PUSHES);
    put_blob(&server.address, "a/b", &sha256(b"abc"), b"abc");
    let blob = format!("//v2//a/b/blobs//{}", sha256(b"abc"));
    assert_eq!(get(&server.address, &blob).body, b"abc");
    assert_eq!(get(&server.address, "//healthz").text(), "ok\n");
    let absolute = format!("http://{}{blob}", server.address);
    assert_eq!(get(&server.address, &absolute).body, b"abc");
}

#[test]
fn pushes_beyond_loopback_need_accounts_or_anonymous_push() {
    let place = Place::new();
    for listen in ["0.0.0.0:0", "[::]:0"] {
        let run = place
            .landfall()
            .args(["serve", "--writable", "w", "--listen", listen])
            .assert()
            .code(2);
        let printed = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
        assert!(
            printed.contains("--htpasswd") && printed.contains("--anonymous-push"),
            "{printed}"
        );
        assert!(!place.path("w").exists());
    }
    let wrong = |args: &[&str], word: &str| {
        let run = place.landfall().arg("serve").args(args).assert().code(2);
        let printed = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
        assert!(printed.contains(word), "{args:?}: {printed}");
    };
    wrong(&[], "--writable");
    wrong(&["--writable", "w", "--listen", "nonsense"], "HOST:PORT");
    place.write("users", "anna:plain\n");
    wrong(&["--writable", "w", "--htpasswd", "users"], "htpasswd -B");
    wrong(
        &[
            "--writable",
            "w",
            "--tls-cert",
            "users",
            "--tls-key",
            "users",
        ],
        "TLS",
    );
    let server = landfall_serve(&place, &PUSHES);
    let second = ["serve", "--writable", "written", "--listen", "127.0.0.1:0"];
    let run = place.landfall().args(second).assert().code(1);
    assert!(
        String::from_utf8_lossy(&run.get_output().stderr).contains("another landfall"),
        "only one process may use the folder"
    );
    drop(server);
}

#[test]
fn only_users_of_the_password_file_may_push_and_pull() {
    if !need(&["skopeo", "gzip"]) {
        return;
    }
    let place = Place::new();
    let hash = bcrypt::hash("se:cret", 4).unwrap();
    place.write("users", format!("anna:{hash}\n"));
    let mut images = Images::new(place.path("layout"));
    let image = images.image("linux/amd64", &[images.layer(&[("a", b"a")])]);
    images.tag("v1", &image);
    let server = landfall_serve(&place, &["--writable", "written", "--htpasswd", "users"]);
    let challenge = get(&server.address, "/v2/");
    assert_eq!(challenge.refusal(), (401, "UNAUTHORIZED".into()));
    assert!(
        challenge
            .header("www-authenticate")
            .unwrap()
            .starts_with("Basic ")
    );
    assert_eq!(
        get(&server.address, "/").status,
        200,
        "the page needs no account"
    );
    let copy = |user: &str| {
        let from = format!("oci:{}:v1", images.dir().display());
        let to = format!("docker://{}/team/app:v1", server.address);
        let mut command = skopeo(&place);
        command.args([
            "copy",
            "--quiet",
            "--dest-tls-verify=false",
            "--dest-creds",
            user,
            &from,
            &to,
        ]);
        command
    };
    assert!(!copy("anna:wrong").output().unwrap().status.success());
    run(&mut copy("anna:se:cret"));
    assert_eq!(get(&server.address, "/v2/team/app/tags/list").status, 401);
    let basic = [("Authorization", "Basic YW5uYTpzZTpjcmV0")];
    assert_eq!(
        request(
            "GET",
            &server.address,
            "/v2/team/app/manifests/v1",
            &basic,
            b""
        )
        .status,
        200
    );
}

#[test]
fn a_certificate_enables_tls_and_a_plain_server_answers_tls_clients_with_http() {
    if !need(&["curl"]) {
        return;
    }
    let place = Place::new();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()])
        .unwrap();
    place.write("cert.pem", made.cert.pem());
    place.write("key.pem", made.signing_key.serialize_pem());
    let args = [
        "--writable",
        "tls",
        "--tls-cert",
        "cert.pem",
        "--tls-key",
        "key.pem",
    ];
    let server = landfall_serve(&place, &args);
    assert!(
        server.log().contains("serving on https://127.0.0.1:"),
        "{}",
        server.log()
    );
    let url = format!("https://{}/v2/", server.address);
    assert_eq!(
        run(place
            .clean("curl")
            .args(["-sS", "--cacert", "cert.pem", &url])),
        b"{}"
    );

    let plain = landfall_serve(&place, &PUSHES);
    let mut stream = TcpStream::connect(&plain.address).unwrap();
    // the start of a ClientHello: clients detect plain http by a response that begins with HTTP/
    stream
        .write_all(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 and thirty-two random bytes")
        .unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(
        answer.starts_with(b"HTTP/1.1 400"),
        "{:?}",
        String::from_utf8_lossy(&answer)
    );
}

#[test]
fn signals_end_the_server_after_requests_in_progress() {
    let place = Place::new();
    for (signal, exit) in [("TERM", 0), ("INT", 130)] {
        let port = free_port();
        let mut command = place.command();
        command.args([
            "serve",
            "--writable",
            "written",
            "--listen",
            &format!("127.0.0.1:{port}"),
        ]);
        let mut guard = Guard::start(command);
        guard.wait_for_http(([127, 0, 0, 1], port).into());
        assert!(guard.log().contains(&format!(
            "serving on http://127.0.0.1:{port} (0 images, 0 files, 0 charts, 0 sets of packages, 0 git repositories, 0 providers, accepts pushes)"
        )));
        let address = format!("127.0.0.1:{port}");
        let blob = noise(6, 1 << 20);
        let post = format!(
            "POST /v2/a/blobs/uploads/?digest={} HTTP/1.1\r\nHost: h\r\n",
            sha256(&blob)
        );
        let mut stream = TcpStream::connect(&address).unwrap();
        stream
            .write_all(format!("{post}Content-Length: {}\r\n\r\n", blob.len()).as_bytes())
            .unwrap();
        stream.write_all(&blob[..1000]).unwrap();
        wait_for("the upload", || {
            let mut incoming =
                std::fs::read_dir(place.path("written/.landfall/temporary")).unwrap();
            incoming.next().is_some()
        });
        guard.signal(signal);
        wait_for("the end of the listener", || {
            TcpStream::connect(&address).is_err()
        });
        stream.write_all(&blob[1000..]).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        assert!(
            answer.starts_with(b"HTTP/1.1 201"),
            "{:?}",
            String::from_utf8_lossy(&answer)
        );
        assert_eq!(guard.wait(), Some(exit), "{signal}");
    }
}

#[test]
fn stdout_has_only_the_json_document() {
    let place = Place::new();
    let mut command: Command = place.command();
    command.args([
        "serve",
        "--writable",
        "w",
        "--listen",
        "127.0.0.1:0",
        "--output",
        "json",
    ]);
    command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut printed = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut printed, &mut line).unwrap();
    assert!(line.starts_with("serving on http://127.0.0.1:"), "{line}");
    run(Command::new("sh").args(["-c", &format!("kill -TERM {}", child.id())]));
    let output = child.wait_with_output().unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&document["command"], &document["status"]),
        (&json!("serve"), &json!("done"))
    );
}
