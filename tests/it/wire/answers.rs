//! Unusual responses: compressed in transit, with absurd numbers, in old formats, or too large.

use super::in_transit::compress;
use super::manifest_limits::lock as lock_image;
use super::{manifest, reasons};
use crate::support::faults::Faults;
use crate::support::faults::{Content, Settings};
use crate::support::images::{OCI_INDEX, OCI_MANIFEST, gzip, sha256};
use crate::support::peers::{file_server, own_registry};
use crate::support::reverse_proxy::{ProxyAction, ReverseProxy};
use crate::support::{Images, Place, need};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

/// A file server with `tool.bin`, behind a proxy that refuses HEAD requests. The proxy compresses
/// the responses to all other requests and sets `Content-Encoding`.
fn compressing(place: &Place) -> ReverseProxy {
    place.write("www/tool.bin", vec![b'a'; 5000]);
    let server = file_server(&place.path("www"));
    let front = server.address.clone();
    // the proxy keeps the server running
    ReverseProxy::new(&front, move |request| {
        let _server = &server;
        if request.method == "HEAD" {
            ProxyAction::status(405)
        } else {
            ProxyAction::Change(Box::new(compress))
        }
    })
}

#[test]
fn content_compressed_in_transit_is_not_locked_as_the_file() {
    if !need(&["gzip"]) {
        return;
    }
    let place = Place::new();
    let front = compressing(&place).address;
    let lock = |exit, entry: &str| {
        let _ = std::fs::remove_file(place.path("landfall.lock"));
        manifest(&place, &format!("files: [{entry}]\n"));
        place.json(exit, &["lock", "-f", "m.yaml", "--store", "s"])
    };
    let printed = |report: &Value| {
        let why = reasons(report)[0].to_owned();
        assert!(why.contains("Content-Encoding: gzip"), "{why}");
        assert!(why.contains("a proxy or the server compresses it"), "{why}");
        why
    };
    let why = printed(&lock(1, &format!("{{url: \"http://{front}/tool.bin\"}}")));
    assert!(why.contains("checksum"), "{why}");
    assert!(!place.path("landfall.lock").exists());
    // with the checksum of the uncompressed file, the compressed bytes are refused
    let right = sha256(&vec![b'a'; 5000]);
    printed(&lock(
        1,
        &format!("{{url: \"http://{front}/tool.bin\", checksum: \"{right}\"}}"),
    ));
    // bytes with the right checksum are accepted in spite of the header, because some servers
    // declare an archive's own compression as an encoding
    let packed = gzip(&vec![b'a'; 5000]);
    lock(
        0,
        &format!(
            "{{url: \"http://{front}/tool.bin\", checksum: \"{}\"}}",
            sha256(&packed)
        ),
    );
    place.json(0, &["pull", "--store", "s"]);
}

#[test]
fn a_quota_with_an_absurd_window_is_reported_without_a_panic() {
    let place = Place::new();
    let middle = ReverseProxy::new("", |request| {
        if !request.is("GET", "/manifests/") {
            return ProxyAction::status(404);
        }
        let headers = [
            ("ratelimit-limit", "100;w=999999999999"),
            ("ratelimit-remaining", "0;w=999999999999"),
        ];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
        ProxyAction::Answer(429, headers.into(), String::new())
    });
    let host = &middle.address;
    let report = lock_image(&place, host, "app:v1", 1);
    assert!(
        reasons(&report)[0].contains("asks to retry in"),
        "{report:#}"
    );
    assert!(!place.path("landfall.lock").exists());
}

#[test]
fn an_absurd_content_length_is_refused() {
    let place = Place::new();
    let middle = ReverseProxy::new("", |request| {
        let length = (
            "Content-Length".to_owned(),
            "9223372036854775807".to_owned(),
        );
        if request.method == "HEAD" {
            ProxyAction::Answer(200, vec![length], String::new())
        } else {
            ProxyAction::status(404)
        }
    });
    let url = format!("http://{}/tool.bin", middle.address);
    let digest = sha256(b"x");
    manifest(
        &place,
        &format!("files: [{{url: \"{url}\", checksum: \"{digest}\"}}]\n"),
    );
    let report = place.json(1, &["lock", "-f", "m.yaml", "--store", "s"]);
    assert!(
        reasons(&report)[0].contains("9223372036854775807 bytes is not a plausible size"),
        "{report:#}"
    );
    assert!(!place.path("landfall.lock").exists());
}

#[test]
fn a_get_request_follows_if_a_file_server_fails_a_head_request() {
    let place = Place::new();
    place.write("www/tool.bin", "tool");
    let server = file_server(&place.path("www"));
    let middle = ReverseProxy::new(&server.address, |request| {
        if request.method == "HEAD" {
            ProxyAction::CutAt(0)
        } else {
            ProxyAction::Pass
        }
    });
    let url = format!("http://{}/tool.bin", middle.address);
    manifest(
        &place,
        &format!(
            "files: [{{url: \"{url}\", checksum: \"{}\"}}]\n",
            sha256(b"tool")
        ),
    );
    place.json(0, &["lock", "-f", "m.yaml", "--store", "s"]);
    assert_eq!(
        (middle.count("HEAD", ""), middle.count("GET", "")),
        (1, 1),
        "{:?}",
        middle.requests()
    );
    place.json(0, &["pull", "--store", "s"]);
}

#[test]
fn an_asset_of_a_private_release_is_requested_from_the_api_as_a_file() {
    let place = Place::new();
    let front = ReverseProxy::new("", |request| {
        if request.header("authorization").is_none() {
            ProxyAction::status(404)
        } else if request.header("accept") == Some("application/octet-stream") {
            ProxyAction::Bytes(b"tool".to_vec())
        } else {
            ProxyAction::Answer(200, Vec::new(), r#"{"name": "tool"}"#.into())
        }
    });
    let host = &front.address;
    place.write(
        "home/.docker/config.json",
        json!({"auths": {host: {"username": "x", "password": "token"}}}).to_string(),
    );
    let url = format!("http://{host}/repos/o/r/releases/assets/1234");
    manifest(&place, &format!("files: [{{url: \"{url}\"}}]\n"));
    let report = place.json(
        0,
        &["lock", "-f", "m.yaml", "--store", "s", "--plain-http", host],
    );
    assert_eq!(report["items"][0]["digest"], sha256(b"tool"), "{report:#}");
}

/// A path with a `+` is requested in two forms. The response to the first must not keep the only
/// slot of the host.
#[test]
fn both_forms_of_a_path_are_requested_from_a_host_that_takes_one_request_at_once() {
    let place = Place::new();
    place.write("www/a+b.bin", "tool");
    let server = file_server(&place.path("www"));
    let front = ReverseProxy::new(&server.address, |request| {
        if request.target.contains("%2B") {
            ProxyAction::Answer(404, Vec::new(), "no such file".into())
        } else {
            ProxyAction::Pass
        }
    });
    manifest(
        &place,
        &format!(
            "files: [{{url: \"http://{}/a+b.bin\", checksum: \"{}\"}}]\n",
            front.address,
            sha256(b"tool")
        ),
    );
    let site = format!(
        "apiVersion: landfall/v1\nkind: Site\nupstreams: {{\"{}\": {{maxConcurrent: 1}}}}\n",
        front.address
    );
    place.write("site.yaml", site);
    let args = ["--store", "s", "--site", "site.yaml"];
    place.json(0, &[&["lock", "-f", "m.yaml"], &args[..]].concat());
    place.json(0, &[&["pull"], &args[..]].concat());
    assert!(front.count("GET", "%2B") > 0 && front.count("GET", "a+b") > 0);
}

#[test]
fn the_error_for_a_docker_schema_1_manifest_names_its_format() {
    let place = Place::new();
    let document = json!({"schemaVersion": 1, "name": "app", "tag": "v1", "fsLayers": [], "history": [],
        "signatures": [{"protected": "e30", "signature": "c2ln"}]});
    let document = document.to_string();
    // the digest of a schema 1 manifest covers its payload, and not its signatures
    let named = sha256(b"the payload");
    let headers: Vec<(String, String)> = vec![
        (
            "Content-Type".into(),
            "application/vnd.docker.distribution.manifest.v1+prettyjws".into(),
        ),
        ("Docker-Content-Digest".into(), named.clone()),
    ];
    let middle = ReverseProxy::new("", move |request| match request.is("GET", "/manifests/") {
        true => ProxyAction::Answer(200, headers.clone(), document.clone()),
        false => ProxyAction::status(404),
    });
    let host = &middle.address;
    for reference in [":v1".to_owned(), format!("@{named}")] {
        let report = lock_image(&place, host, &format!("app{reference}"), 1);
        let why = reasons(&report)[0];
        assert!(
            why.contains("Docker schema 1 manifest") && why.contains("a newer tag"),
            "{why}"
        );
    }
}

#[test]
fn status_400_for_a_manifest_by_digest_is_not_reported_as_a_missing_manifest() {
    let place = Place::new();
    let index = json!({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": []}).to_string();
    let headers: Vec<(String, String)> = vec![
        ("Content-Type".into(), OCI_INDEX.into()),
        ("Docker-Content-Digest".into(), sha256(b"another")),
    ];
    for (status, expected, requests) in [
        (400, "400", 1),
        (404, "the registry returns no manifest for that digest", 2),
    ] {
        let (index, headers) = (index.clone(), headers.clone());
        let middle = ReverseProxy::new("", move |request| {
            match request.is("GET", "/manifests/v1") {
                true => ProxyAction::Answer(200, headers.clone(), index.clone()),
                false => ProxyAction::refuse(status, "MANIFEST_UNKNOWN", "unknown"),
            }
        });
        let host = &middle.address;
        let report = lock_image(&place, host, "app:v1", 1);
        let why = reasons(&report)[0];
        assert!(why.contains(expected), "{why}");
        assert_eq!(middle.count("GET", "/manifests/v1"), requests, "{why}");
    }
}

#[test]
fn an_index_with_children_above_the_total_limit_is_refused_before_they_are_fetched() {
    const CHILD: usize = 8 << 20;
    let place = Place::new();
    let mut content = Content::default();
    let index = |content: &mut Content, tag: &str, children: &[Value]| {
        let index = content.index("app", children);
        content.tag("app", tag, &index);
    };
    let child = |n: usize, size: usize| {
        json!({"mediaType": OCI_MANIFEST, "digest": sha256(&n.to_le_bytes()), "size": size,
            "platform": {"os": "linux", "architecture": format!("a{n}")}})
    };
    index(
        &mut content,
        "right",
        &(0..32).map(|n| child(n, CHILD)).collect::<Vec<_>>(),
    );
    // an index that declares too small a size for its child
    let large = vec![b' '; CHILD];
    let digest = sha256(&large);
    content.manifests.insert(
        ("app".into(), digest.clone()),
        (OCI_MANIFEST.into(), std::sync::Arc::new(large)),
    );
    let wrong_size = json!({"mediaType": OCI_MANIFEST, "digest": digest, "size": 100});
    index(&mut content, "wrong", &[wrong_size]);
    // an image, for the list of referrers below
    let app = content.image("app", "linux/amd64", &[(1, 10)]);
    content.tag("app", "v1", &app);
    let server = Faults::new(content);
    let lock = |reference: &str| lock_image(&place, &server.address, reference, 1);
    server.set(Settings {
        no_referrers: true,
        ..Settings::default()
    });
    let report = lock("app:right");
    let why = reasons(&report)[0];
    assert!(why.contains("larger than 33.6 MB together"), "{why}");
    assert!(
        server.moved() < 100_000,
        "{} bytes were sent",
        server.moved()
    );
    let report = lock("app:wrong");
    let why = reasons(&report)[0];
    assert!(why.contains("larger than the limit of 100 bytes"), "{why}");

    // a list of referrers has the same size limit
    let subject = app["digest"].as_str().unwrap().to_owned();
    let list = json!({"schemaVersion": 2, "mediaType": OCI_INDEX,
        "manifests": (0..32).map(|n| child(n, CHILD)).collect::<Vec<_>>()});
    let before = server.moved();
    let middle = ReverseProxy::new(&server.address, move |request| {
        match request.target.ends_with(&subject) {
            true if request.is("GET", "/referrers/") => {
                ProxyAction::Answer(200, Vec::new(), list.to_string())
            }
            _ => ProxyAction::Pass,
        }
    });
    let report = lock_image(&place, &middle.address, "app:v1", 1);
    let why = reasons(&report)[0];
    assert!(why.contains("larger than 33.6 MB together"), "{why}");
    assert!(
        server.moved() - before < 100_000,
        "{} bytes were sent",
        server.moved() - before
    );
}

#[test]
fn no_image_fails_if_only_the_request_for_its_tag_list_gets_401() {
    if !need(&["gzip"]) {
        return;
    }
    let place = Place::new();
    let images = Images::new(place.path("layout"));
    let registry = own_registry();
    let image = images.image("linux/amd64", &[images.layer(&[("a", b"a")])]);
    images.push(&registry.address, "app", "v1", &image);
    for signed in [false, true] {
        let middle = ReverseProxy::new(&registry.address, move |request| {
            let basic = (
                "WWW-Authenticate".to_owned(),
                "Basic realm=\"r\"".to_owned(),
            );
            match request.target.contains("/tags/list")
                || (signed && request.header("authorization").is_none())
            {
                true => ProxyAction::Answer(401, vec![basic], String::new()),
                false => ProxyAction::Pass,
            }
        });
        let host = middle.address.clone();
        if signed {
            let auths = json!({"auths": {&host: {"username": "u", "password": "p"}}});
            place.write("home/.docker/config.json", auths.to_string());
        }
        lock_image(&place, &host, "app:v1", 0);
        assert!(middle.count("GET", "/tags/list") > 0);
    }
}

#[test]
fn a_blob_is_found_by_get_if_head_says_nothing() {
    let mut content = Content::default();
    let image = content.image("app", "linux/amd64", &[(1, 300)]);
    content.tag("app", "v1", &image);
    let registry = Faults::new(content);
    let place = Place::new();
    manifest(
        &place,
        &format!("images: [\"{}/app:v1\"]\n", registry.address),
    );
    place.json(0, &["lock", "-f", "m.yaml", "--store", "s"]);
    place.json(0, &["pull", "--store", "s"]);
    let store = ReverseProxy::new("", |_| ProxyAction::status(403));
    let location = format!("http://{}/blob?signature=x", store.address);
    for (status, redirects) in [(307, true), (405, false), (501, false)] {
        let location = redirects.then(|| ("Location".to_owned(), location.clone()));
        let front = ReverseProxy::new(&registry.address, move |request| {
            if request.is("HEAD", "/blobs/") {
                let headers = location.iter().cloned().collect();
                ProxyAction::Answer(status, headers, String::new())
            } else {
                ProxyAction::Pass
            }
        });
        let to = ["--to", &front.address, "--plain-http", &front.address];
        let push = ["push", "--store", "s", "--recheck"];
        let report = place.json(0, &[&push, &to[..]].concat());
        assert_eq!(report["items"][0]["status"], "present", "{report:#}");
        assert!(front.count("HEAD", "/blobs/") > 0 && front.count("PUT", "") == 0);
    }
}

#[test]
fn blobs_are_patched_if_a_registry_refuses_whole_puts() {
    let mut content = Content::default();
    let image = content.image("app", "linux/amd64", &[(1, 300), (2, 300)]);
    content.tag("app", "v1", &image);
    let up = Faults::new(content);
    let place = Place::new();
    lock_image(&place, &up.address, "app:v1", 0);
    place.json(0, &["pull", "--store", "s"]);
    for (status, code) in [(404, "BLOB_UNKNOWN"), (405, "UNSUPPORTED")] {
        let down = Faults::new(Content::default());
        let front = ReverseProxy::new(&down.address, move |request| {
            let is_whole = request.is("PUT", "/uploads/") && request.length > 0;
            // the ranges of chunks are not those of the specification in each registry
            let is_chunk = request.header("content-range").is_some();
            if is_whole || is_chunk {
                ProxyAction::refuse(status, code, "unknown blob")
            } else {
                ProxyAction::Pass
            }
        });
        let to = ["--to", &front.address, "--plain-http", &front.address];
        let report = place.json(0, &[&["push", "--store", "s"], &to[..]].concat());
        assert_eq!(report["items"][0]["status"], "done", "{report:#}");
        // a config and two layers
        assert_eq!(front.count("PATCH", "/uploads/"), 3, "{status}");
    }
}

/// docker-registry that runs during a garbage collection: its cache has what its disk lacks.
#[test]
fn a_registry_that_only_seems_to_have_everything_is_reported() {
    let mut content = Content::default();
    let image = content.image("app", "linux/amd64", &[(1, 300)]);
    content.tag("app", "v1", &image);
    content.tag("app", "v2", &image);
    let up = Faults::new(content);
    let place = Place::new();
    place.write(
        "m.yaml",
        format!(
            "apiVersion: landfall/v1\nkind: Manifest\nimages: ['{0}/app:v1', '{0}/app:v2']\n",
            up.address
        ),
    );
    let host = &up.address;
    let args = ["lock", "-f", "m.yaml", "--store", "s", "--plain-http", host];
    place.json(0, &args);
    place.json(0, &["pull", "--store", "s"]);
    let down = ReverseProxy::new("", |request| match request.method.as_str() {
        "HEAD" if request.target.contains("/blobs/") => ProxyAction::status(200),
        "GET" if request.target == "/v2/" => ProxyAction::status(200),
        "POST" => {
            let location = "/v2/app/blobs/uploads/1".to_owned();
            ProxyAction::Answer(202, vec![("Location".into(), location)], String::new())
        }
        "PUT" => ProxyAction::status(201),
        "DELETE" => ProxyAction::status(204),
        _ => ProxyAction::status(404),
    });
    let to = ["--to", &down.address, "--plain-http", &down.address];
    let report = place.json(1, &[&["push", "--store", "s"], &to[..]].concat());
    // the second tag is not delivered either, although the first one looked up its blobs
    for (why, tag) in reasons(&report).into_iter().zip(["v1", "v2"]) {
        assert!(
            why.contains(&format!("app:{tag} as present")) && why.contains("garbage collection"),
            "{why}"
        );
    }
    assert_eq!(down.count("PUT", "/uploads/"), 0);
}

#[test]
fn a_registry_that_changes_manifests_is_reported() {
    let mut content = Content::default();
    let image = content.image("app", "linux/amd64", &[(1, 300)]);
    content.tag("app", "v1", &image);
    let up = Faults::new(content);
    let place = Place::new();
    lock_image(&place, &up.address, "app:v1", 0);
    place.json(0, &["pull", "--store", "s"]);
    // only the header is wrong, or the manifest is not stored under its digest either
    for (is_changed, exit) in [(false, 0), (true, 1)] {
        let down = Faults::new(Content::default());
        let front = ReverseProxy::new(&down.address, move |request| {
            if request.is("PUT", "/manifests/") {
                ProxyAction::Change(Box::new(|response| {
                    let header = "docker-content-digest".to_owned();
                    response.headers.retain(|(name, _)| *name != header);
                    response.headers.push((header, sha256(b"changed")));
                }))
            } else if is_changed && request.target.contains("/manifests/sha256:") {
                ProxyAction::status(404)
            } else {
                ProxyAction::Pass
            }
        });
        let to = ["--to", &front.address, "--plain-http", &front.address];
        let report = place.json(exit, &[&["push", "--store", "s"], &to[..]].concat());
        let why = reasons(&report)[0];
        assert_eq!(why.contains("changes manifests"), is_changed, "{why}");
    }
}

/// The clock of this machine may be wrong.
#[test]
fn a_date_to_retry_is_compared_with_the_date_of_the_server() {
    let mut content = Content::default();
    let image = content.image("app", "linux/amd64", &[(1, 300)]);
    content.tag("app", "v1", &image);
    let registry = Faults::new(content);
    let count = AtomicUsize::new(0);
    let front = ReverseProxy::new(&registry.address, move |request| {
        let is_first =
            request.target.contains("/manifests/") && count.fetch_add(1, Ordering::Relaxed) == 0;
        if !is_first {
            return ProxyAction::Pass;
        }
        let ahead = SystemTime::now() + Duration::from_hours(5);
        let headers = [
            ("Date", ahead),
            ("Retry-After", ahead + Duration::from_secs(1)),
        ];
        let headers = headers.map(|(name, date)| (name.to_owned(), httpdate::fmt_http_date(date)));
        ProxyAction::Answer(429, headers.to_vec(), String::new())
    });
    lock_image(&Place::new(), &front.address, "app:v1", 0);
}

#[test]
fn an_expired_signed_url_is_requested_again_from_the_registry() {
    let mut content = Content::default();
    let image = content.image("app", "linux/amd64", &[(1, 300)]);
    content.tag("app", "v1", &image);
    let registry = Faults::new(content);
    for (status, code, exit) in [
        (400, "ExpiredToken", 0),
        (403, "AccessDenied", 0),
        (404, "NoSuchKey", 1),
    ] {
        let count = AtomicUsize::new(0);
        let store = ReverseProxy::new(&registry.address, move |_| {
            match count.fetch_add(1, Ordering::Relaxed) {
                0 => {
                    let body = format!("<Error><Code>{code}</Code></Error>");
                    ProxyAction::Answer(status, Vec::new(), body)
                }
                _ => ProxyAction::Pass,
            }
        });
        let address = store.address.clone();
        let front = ReverseProxy::new(&registry.address, move |request| {
            if request.is("GET", "/blobs/") {
                let to = format!("http://{address}{}", request.target);
                ProxyAction::Answer(307, vec![("Location".into(), to)], String::new())
            } else {
                ProxyAction::Pass
            }
        });
        let place = Place::new();
        lock_image(&place, &front.address, "app:v1", 0);
        let pull = ["pull", "--store", "s", "--plain-http", &front.address];
        let report = place.json(exit, &pull);
        let why = reasons(&report)[0];
        assert_eq!(why.contains(code), exit == 1, "{why}");
        assert!(!why.contains("not a registry"), "{why}");
    }
}

/// Before, the first two were refused: 200 as missing rights, 202 as an error.
#[test]
fn an_upload_may_be_answered_with_any_status_of_success() {
    let mut content = Content::default();
    let image = content.image("app", "linux/amd64", &[(1, 300)]);
    content.tag("app", "v1", &image);
    let up = Faults::new(content);
    let place = Place::new();
    manifest(&place, &format!("images: [\"{}/app:v1\"]\n", up.address));
    place.json(0, &["lock", "-f", "m.yaml", "--store", "s"]);
    place.json(0, &["pull", "--store", "s"]);
    for (method, part, status) in [
        ("POST", "/blobs/uploads/", 200),
        ("PUT", "/uploads/", 202),
        ("PUT", "/uploads/", 200),
        ("PUT", "/manifests/", 202),
        ("PUT", "/manifests/", 204),
    ] {
        let down = Faults::new(Content::default());
        let front = ReverseProxy::new(&down.address, move |request| {
            if request.is(method, part) {
                ProxyAction::Change(Box::new(move |response| response.status = status))
            } else {
                ProxyAction::Pass
            }
        });
        let to = ["--to", &front.address, "--plain-http", &front.address];
        let report = place.json(0, &[&["push", "--store", "s"], &to[..]].concat());
        assert_eq!(report["items"][0]["status"], "done", "{method} {status}");
        assert!(front.count(method, part) > 0);
    }
    // a page of a proxy is not an open upload
    let page = ReverseProxy::new(&up.address, |request| {
        if request.is("POST", "/blobs/uploads/") {
            let html = "<html><title>Portal</title></html>".to_owned();
            ProxyAction::Answer(200, vec![("Content-Type".into(), "text/html".into())], html)
        } else if request.target.contains("/manifests/") {
            ProxyAction::status(404)
        } else {
            ProxyAction::Pass
        }
    });
    let to = format!("{}/other", page.address);
    let push = ["push", "--store", "s", "--to", &to, "--plain-http"];
    let report = place.json(1, &[&push[..], &[&page.address]].concat());
    assert!(report.to_string().contains("Portal"), "{report:#}");
}

/// Before, all of it was refused as pages, since only the declared type counted.
#[test]
fn content_that_is_declared_as_html_is_not_a_page() {
    let mut content = Content::default();
    let image = content.image("app", "linux/amd64", &[(1, 300)]);
    content.tag("app", "v1", &image);
    let up = Faults::new(content);
    let place = Place::new();
    let tool = b"\x7fELF".repeat(100);
    let hex = sha256(&tool).replace("sha256:", "");
    place.write("www/install.sh", "#!/bin/sh\n");
    place.write("www/tool", &tool);
    place.write("www/tool.sha256", format!("{hex}  tool\n"));
    let files = file_server(&place.path("www"));
    let as_html = |address: &str| {
        ReverseProxy::new(address, |_| {
            ProxyAction::Change(Box::new(|response| {
                response.headers.retain(|(name, _)| name != "content-type");
                let kind = "text/html; charset=utf-8".to_owned();
                response.headers.push(("Content-Type".into(), kind));
            }))
        })
    };
    let (registry, site) = (as_html(&up.address), as_html(&files.address));
    manifest(
        &place,
        &format!(
            "images: [\"{}/app:v1\"]\nfiles:\n- {{url: \"http://{1}/install.sh\"}}\n\
             - {{url: \"http://{1}/tool\", checksum: \"${{url}}.sha256\"}}\n",
            registry.address, site.address
        ),
    );
    let plain = ["--store", "s", "--plain-http", &registry.address];
    place.json(0, &[&["lock", "-f", "m.yaml"], &plain[..]].concat());
    place.json(0, &[&["pull"], &plain[..]].concat());
}

/// Before, the words of the server were dropped.
#[test]
fn a_401_without_a_challenge_is_reported_with_the_words_of_the_server() {
    let up = Faults::new(Content::default());
    let front = ReverseProxy::new(&up.address, |request| {
        if request.target.contains("/manifests/") {
            ProxyAction::refuse(401, "UNAUTHORIZED", "the session has ended")
        } else {
            ProxyAction::Pass
        }
    });
    let place = Place::new();
    manifest(&place, &format!("images: [\"{}/app:v1\"]\n", front.address));
    let lock = ["lock", "-f", "m.yaml", "--plain-http", &front.address];
    let report = place.json(1, &lock);
    let why = reasons(&report)[0];
    assert!(why.contains("the session has ended"), "{why}");
    assert!(why.contains("WWW-Authenticate"), "{why}");
}
