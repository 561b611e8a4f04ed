//! Pushing through an nginx with a size limit, and to a docker-registry that checks the URLs of
//! foreign layers.

use crate::deliver::{MIB, delivered_digest, stored};
use crate::support::faults::{Content, Fault, FaultKind, Faults, RequestKind};
use crate::support::images::{DOCKER_CONFIG, DOCKER_MANIFEST, noise, sha256};
use crate::support::peers::{
    docker_registry, docker_registry_with, docker_registry_with_storage, nginx_with, own_registry,
};
use crate::support::reverse_proxy::{ProxyAction, RecordedRequest, ReverseProxy};
use crate::support::{Images, Place, http, need};
use serde_json::json;
use std::sync::{Arc, Mutex};

/// If a body is too large, nginx refuses it without reading it, and closes the connection.
#[test]
fn chunks_fit_the_limit_of_an_nginx_in_front_of_the_registry() {
    if !need(&["docker-registry", "gzip", "nginx"]) {
        return;
    }
    let stored = stored(&[("big/app", 36 * MIB)]);
    let registry = docker_registry();
    let nginx = nginx_with(&format!(
        "client_max_body_size 17m; location / {{ proxy_pass {}; proxy_set_header Host $http_host; }}",
        registry.url()
    ));
    stored.push(0, &nginx.address, &[]);
    assert_eq!(
        delivered_digest(&registry.address, "big/app").unwrap(),
        stored.digest(0)
    );
    let was_logged = || {
        nginx.log().contains("\" 413 ") && nginx.log().matches("] \"PATCH /v2/big/app").count() == 3
    };
    // nginx writes its log a moment later
    for _ in 0..100 {
        if !was_logged() {
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }
    assert!(was_logged(), "{}", nginx.log());
}

#[test]
fn a_registry_in_maintenance_is_reported_as_read_only() {
    if !need(&["docker-registry", "gzip"]) {
        return;
    }
    let stored = stored(&[("one/app", 100)]);
    let registry = docker_registry_with_storage("maintenance: {readonly: {enabled: true}}");
    let report = stored.push(1, &registry.address, &[]);
    let message = report["error"]["message"].as_str().unwrap();
    for words in ["which is read-only", "a registry in maintenance", "405"] {
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn a_recheck_uploads_a_blob_that_docker_registry_lost() {
    if !need(&["docker-registry", "gzip"]) {
        return;
    }
    let stored = stored(&[("one/app", 100_000), ("two/app", 200_000)]);
    let registry = docker_registry();
    stored.push(0, &registry.address, &[]);
    let manifest = http::manifest(&registry.address, "two/app", "v1").json();
    let layer = manifest["layers"][0]["digest"].as_str().unwrap().to_owned();
    std::fs::remove_file(registry.blob_file(&layer)).unwrap();
    let totals = |more: &[&str]| stored.push(0, &registry.address, more)["totals"].clone();
    assert_eq!(totals(&[])["present"], 2);
    let again = totals(&["--recheck"]);
    assert_eq!(
        (&again["done"], &again["present"]),
        (&1.into(), &1.into()),
        "{again}"
    );
    assert!(registry.blob_file(&layer).exists());
    assert_eq!(totals(&["--recheck"])["present"], 2);
}

#[test]
fn foreign_layers_are_downloaded_from_their_urls_without_an_account() {
    if !need(&["docker-registry", "gzip"]) {
        return;
    }
    let place = Place::new();
    let upstream = own_registry();
    let images = Images::new(place.path("layout"));
    let content = noise(7, 70_000);
    let seen: Arc<Mutex<Vec<RecordedRequest>>> = Arc::default();
    let log = seen.clone();
    let body = place.write("layer", &content);
    let files = own_registry();
    let web = ReverseProxy::new(&files.address, move |request| {
        log.lock().unwrap().push(request.clone());
        let content = std::fs::read(&body).unwrap();
        ProxyAction::Change(Box::new(move |response| {
            (response.status, response.headers, response.body) = (200, Vec::new(), content);
        }))
    });
    // the manifest has the URL of the layer; the registry has the manifest, but lacks the layer
    let layer = json!({
        "mediaType": "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip", "digest": sha256(&content),
        "size": content.len(), "urls": [format!("http://{}/nowhere", "127.0.0.1:9"), format!("http://{}/layer", web.address)],
    });
    let config = images.blob(DOCKER_CONFIG, br#"{"os":"windows","architecture":"amd64"}"#);
    let kind = DOCKER_MANIFEST;
    let manifest =
        json!({"schemaVersion": 2, "mediaType": kind, "config": config, "layers": [layer]});
    let manifest = serde_json::to_vec(&manifest).unwrap();
    let digest = sha256(&manifest);
    let bytes = manifest.clone();
    let fake = ReverseProxy::new(&upstream.address, move |request| {
        match request.target.contains("/manifests/") {
            true => {
                let bytes = bytes.clone();
                let digest = digest.clone();
                ProxyAction::Change(Box::new(move |response| {
                    response.status = 200;
                    response.headers = vec![
                        ("content-type".into(), kind.into()),
                        ("docker-content-digest".into(), digest),
                    ];
                    response.body = bytes;
                }))
            }
            false => ProxyAction::Pass,
        }
    });
    http::put_blob(
        &upstream.address,
        "win/base",
        config["digest"].as_str().unwrap(),
        &images.bytes(config["digest"].as_str().unwrap()),
    );
    place.write(
        "home/.docker/config.json",
        json!({"auths": {&web.address: {"auth": "dTpw"}}}).to_string(),
    );
    place.write(
        "m.yaml",
        format!(
            "apiVersion: landfall/v1\nkind: Manifest\nmetadata: {{name: t}}\nimages: [\"{}/win/base:v1\"]\n",
            fake.address
        ),
    );
    place.ok(&[
        "lock",
        "-f",
        "m.yaml",
        "--store",
        "store",
        "--plain-http",
        &fake.address,
    ]);
    place.ok(&["pull", "--store", "store", "--plain-http", &fake.address]);
    let kept = place
        .path("store/blobs")
        .join(sha256(&content).replace(':', "/"));
    assert_eq!(std::fs::read(kept).unwrap(), content);
    assert!(
        seen.lock()
            .unwrap()
            .iter()
            .all(|request| request.header("authorization").is_none())
    );
    // the layer is pushed; docker-registry refuses the manifest unless its configuration allows the
    // URL
    let allows = docker_registry_with(
        "validation: {manifests: {urls: {allow: [\"^http://127\\\\.0\\\\.0\\\\.1:\"]}}}",
    );
    let report = place.json(0, &["push", "--store", "store", "--to", &allows.address]);
    assert_eq!(report["items"][0]["status"], "done");
    let there = http::get(
        &allows.address,
        &format!("/v2/win/base/blobs/{}", sha256(&content)),
    );
    assert_eq!((there.status, there.body), (200, content));
}

#[test]
fn after_a_wrong_range_of_a_foreign_layer_no_range_is_requested() {
    if !need(&["gzip"]) {
        return;
    }
    let place = Place::new();
    let content = noise(7, 70_000);
    place.write("files/layer", &content);
    let web = Faults::new(Content {
        folder: Some(place.dir().to_owned()),
        ..Content::default()
    });
    let registry = Faults::new(Content::default());
    registry.content(|content_of_registry| {
        let config = br#"{"os":"windows","architecture":"amd64"}"#.to_vec();
        let config = content_of_registry.blob("win/base", DOCKER_CONFIG, config);
        let layer = json!({
            "mediaType": "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip",
            "digest": sha256(&content),
            "size": content.len(),
            "urls": [format!("http://{}/files/layer", web.address)],
        });
        let manifest = json!({
            "schemaVersion": 2, "mediaType": DOCKER_MANIFEST, "config": config, "layers": [layer],
        });
        let image = content_of_registry.manifest("win/base", DOCKER_MANIFEST, &manifest);
        content_of_registry.tag("win/base", "v1", &image);
    });
    place.write(
        "m.yaml",
        format!(
            "apiVersion: landfall/v1\nkind: Manifest\nmetadata: {{name: t}}\nimages: [\"{}/win/base:v1\"]\n",
            registry.address
        ),
    );
    place.ok(&["lock", "-f", "m.yaml", "--store", "store"]);
    // after a cut, the rest is requested as a range; the response has the bytes of another range
    let cut = || Fault::once(RequestKind::File, FaultKind::Cut(8000));
    web.set_faults([
        cut(),
        Fault::once(RequestKind::File, FaultKind::RangeLies),
        cut(),
        Fault::always(RequestKind::File, FaultKind::RangeLies),
    ]);
    place.ok(&["pull", "--store", "store"]);
    let kept = place
        .path("store/blobs")
        .join(sha256(&content).replace(':', "/"));
    assert_eq!(std::fs::read(kept).unwrap(), content);
    let ranges = web
        .seen()
        .iter()
        .filter(|seen| seen.range.is_some())
        .count();
    assert_eq!(ranges, 1, "{}", web.shown());
}
