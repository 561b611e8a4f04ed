//! Responses that a server or proxy changes on the way without changing their meaning: compressed,
//! with a byte order mark, or replaced by a web page where the registry has nothing to answer.

use super::{manifest, reasons};
use crate::support::faults::{Content, Faults, Settings};
use crate::support::http::Response;
use crate::support::images::{gzip, sha256};
use crate::support::peers::file_server;
use crate::support::reverse_proxy::{ProxyAction, ReverseProxy};
use crate::support::{Place, need};
use serde_json::Value;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// A registry with an image and a referrer, and the digest of the referrer.
fn registry(has_api: bool) -> (Faults, String) {
    let mut content = Content::default();
    let mut image = content.image("app", "linux/amd64", &[(1, 400)]);
    content.tag("app", "v1", &image);
    image.as_object_mut().unwrap().remove("platform");
    let referrer = content.artifact("app", "signature", Some(&image));
    if !has_api {
        let list = content.index("app", std::slice::from_ref(&referrer));
        let tag = image["digest"].as_str().unwrap().replace(':', "-");
        content.tag("app", &tag, &list);
    }
    let up = Faults::new(content);
    up.set(Settings {
        no_referrers: !has_api,
        ..Settings::default()
    });
    (up, referrer["digest"].as_str().unwrap().to_owned())
}

/// Locks and pulls the image through `front`, and returns the lock.
fn carried(place: &Place, front: &ReverseProxy) -> String {
    manifest(place, &format!("images: [\"{}/app:v1\"]\n", front.address));
    let _ = std::fs::remove_file(place.path("landfall.lock"));
    let plain = ["--plain-http", &front.address];
    place.json(
        0,
        &[&["lock", "-f", "m.yaml", "--store", "a"], &plain[..]].concat(),
    );
    place.json(0, &[&["pull", "--store", "b"], &plain[..]].concat());
    place.read("landfall.lock")
}

/// Compresses a response, as proxies do.
pub(super) fn compress(response: &mut Response) {
    response.body = gzip(&response.body);
    response
        .headers
        .retain(|(name, _)| name != "content-length");
    response
        .headers
        .push(("Content-Encoding".into(), "gzip".into()));
}

/// Before, manifests were refused, and tags and referrers were not listed.
#[test]
fn a_registry_behind_a_compressing_proxy_is_read() {
    if !need(&["gzip"]) {
        return;
    }
    let (up, referrer) = registry(true);
    let front = ReverseProxy::new(&up.address, |request| {
        if request.method == "GET" {
            ProxyAction::Change(Box::new(compress))
        } else {
            ProxyAction::Pass
        }
    });
    let place = Place::new();
    assert!(carried(&place, &front).contains(&referrer));
    // what does not decode to the requested bytes is refused
    let bomb = ReverseProxy::new(&up.address, |request| {
        let is_index = request.is("GET", "/manifests/");
        let change = move |response: &mut Response| {
            if is_index {
                response.body = vec![b' '; 64 << 20];
            }
            compress(response);
        };
        ProxyAction::Change(Box::new(change))
    });
    manifest(&place, &format!("images: [\"{}/app:v1\"]\n", bomb.address));
    let lock = ["lock", "-f", "m.yaml", "--lock", "no.lock", "--store", "c"];
    let report = place.json(1, &[&lock[..], &["--plain-http", &bomb.address]].concat());
    let why = reasons(&report)[0];
    assert!(why.contains("does not decode to at most"), "{why}");
}

/// Before, each of these was refused as no JSON.
#[test]
fn a_byte_order_mark_before_json_is_ignored() {
    let (up, referrer) = registry(true);
    let front = ReverseProxy::new(&up.address, |request| {
        let is_document = !request.target.contains("/manifests/")
            && !request.target.contains("/blobs/")
            && request.method == "GET";
        if !is_document {
            return ProxyAction::Pass;
        }
        ProxyAction::Change(Box::new(|response: &mut Response| {
            response.body = [BOM, &response.body].concat();
            response
                .headers
                .retain(|(name, _)| name != "content-length");
        }))
    });
    let place = Place::new();
    assert!(carried(&place, &front).contains(&referrer));
    assert!(front.count("GET", "/tags/list") + front.count("GET", "/referrers/") > 1);
}

/// Before, the referrers were lost (exit 3): the web page counted as a broken list.
#[test]
fn a_web_page_with_status_200_means_that_there_is_no_referrers_api() {
    let page = "<!DOCTYPE html><html><head><title>Registry UI</title></head></html>";
    for content_type in ["text/html", "application/octet-stream"] {
        let (up, referrer) = registry(false);
        let front = ReverseProxy::new(&up.address, move |request| {
            if request.is("GET", "/referrers/") {
                let kind = ("Content-Type".to_owned(), content_type.to_owned());
                ProxyAction::Answer(200, vec![kind], page.into())
            } else {
                ProxyAction::Pass
            }
        });
        let place = Place::new();
        assert!(
            carried(&place, &front).contains(&referrer),
            "{content_type}"
        );
        let down = Faults::new(Content::default());
        down.set(Settings {
            no_referrers: true,
            ..Settings::default()
        });
        let front = ReverseProxy::new(&down.address, move |request| {
            if request.is("GET", "/referrers/") {
                let kind = ("Content-Type".to_owned(), content_type.to_owned());
                ProxyAction::Answer(200, vec![kind], page.into())
            } else {
                ProxyAction::Pass
            }
        });
        let to = ["--to", &front.address, "--plain-http", &front.address];
        for status in ["done", "present"] {
            let report = place.json(0, &[&["push", "--store", "b"], &to[..]].concat());
            assert_eq!(report["items"][0]["status"], status, "{report:#}");
        }
    }
}

/// Files that landfall reads are decoded; a `.gz` file that the server marks as compressed is kept.
#[test]
fn documents_of_web_servers_are_decoded() {
    if !need(&["gzip"]) {
        return;
    }
    let place = Place::new();
    let tool = b"tool".repeat(50);
    place.write("www/tool.bin", &tool);
    place.write("www/SUMS", format!("{}  tool.bin\n", sha256(&tool)));
    let server = file_server(&place.path("www"));
    let front = ReverseProxy::new(&server.address, |request| {
        if request.is("GET", "/SUMS") {
            ProxyAction::Change(Box::new(compress))
        } else {
            ProxyAction::Pass
        }
    });
    let address = &front.address;
    let file = format!("url: \"http://{address}/tool.bin\", checksum: \"http://{address}/SUMS\"");
    manifest(&place, &format!("files: [{{{file}}}]\n"));
    let report: Value = place.json(0, &["lock", "-f", "m.yaml", "--store", "s"]);
    assert_eq!(report["items"][0]["status"], "done", "{report:#}");
    place.json(0, &["pull", "--store", "s"]);
}
