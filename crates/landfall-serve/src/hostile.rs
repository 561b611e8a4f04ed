//! Hostile bundles and bases: the server sends no content with a wrong digest, and nothing that a
//! browser would run.

use crate::testing::{get, image, memory, send, start};
use crate::{ServedBundle, ServedContent};
use landfall_bundle::Bundle;
use landfall_bundle::testkit::sample::forged_bundle;
use landfall_content::{BlobRead, VerifiedRead};
use landfall_item::lockfile::Lock;
use landfall_model::Digest;
use std::sync::Arc;

fn layer(seed: u8) -> Vec<u8> {
    (0..3_146_505_u32)
        .map(|at| (at * 31 / 7) as u8 ^ seed)
        .collect()
}

/// The content of a server for `bundle`. The server searches `content` for blobs.
fn served(bundle: &Bundle, content: Vec<Arc<dyn VerifiedRead>>) -> ServedContent {
    let named = named(bundle.lock().unwrap(), Arc::new(bundle.clone()));
    ServedContent {
        bundles: vec![named],
        content,
        ..ServedContent::default()
    }
}

/// A served bundle with this lock and content.
fn named(lock: Lock, blobs: Arc<dyn BlobRead>) -> ServedBundle {
    ServedBundle {
        changes: None,
        registry: None,
        name: "B".into(),
        digest: None,
        missing: Vec::new(),
        signatures: Vec::new(),
        lock,
        blobs,
    }
}

fn assert_not_sent(address: &str, digest: &Digest, carried: &[u8]) {
    let target = format!("/v2/app/blobs/{digest}");
    for range in [
        "",
        "Range: bytes=2000000-\r\n",
        "Range: bytes=1-99\r\n",
        "Range: bytes=-5\r\n",
    ] {
        let (status, body) = get(address, &target, range);
        assert_eq!(status, 500, "{range}");
        assert!(
            !body.windows(32).any(|bytes| bytes == &carried[..32]) && body.len() < 1000,
            "{range}"
        );
    }
}

#[test]
fn frames_that_differ_from_the_approved_lock_are_not_sent_from_any_offset() {
    let locked = layer(0);
    let carried = layer(0xff);
    let (packed, lock) = forged_bundle(&locked, &carried);
    let bundle = Bundle::open(&packed.path).unwrap();
    assert_eq!(
        bundle.fingerprint(),
        &lock.fingerprint(),
        "the forged bundle passes --expect and --lock"
    );
    let server = start(None, move || {
        served(&bundle, vec![Arc::new(bundle.clone())])
    });
    assert_not_sent(&server.address, &Digest::sha256(&locked), &carried);
    let manifest = get(&server.address, "/v2/app/manifests/1", "");
    assert_eq!(
        (manifest.0, Digest::sha256(&manifest.1)),
        (200, lock.images[0].digest.clone())
    );
}

#[test]
fn a_forged_base_is_not_sent_and_an_intact_base_after_it_is_used() {
    let locked = layer(0);
    let carried = layer(0xff);
    let (packed, _) = forged_bundle(&locked, &carried);
    let (sound, _) = forged_bundle(&locked, &locked);
    let foreign = Bundle::open(&packed.path).unwrap();
    let good = Bundle::open(&sound.path).unwrap();
    let digest = Digest::sha256(&locked);
    let alone = foreign.clone();
    let server = start(None, move || served(&alone, vec![Arc::new(alone.clone())]));
    assert_not_sent(&server.address, &digest, &carried);
    let server = start(None, move || {
        served(
            &good,
            vec![Arc::new(foreign.clone()), Arc::new(good.clone())],
        )
    });
    let target = format!("/v2/app/blobs/{digest}");
    assert!(get(&server.address, &target, "") == (200, locked.clone()));
    assert!(
        get(&server.address, &target, "Range: bytes=2000000-\r\n")
            == (206, locked[2_000_000..].to_vec())
    );
}

#[test]
fn a_manifest_with_the_media_type_of_a_web_page_is_sent_as_bytes() {
    let manifest =
        br#"{"schemaVersion":2,"mediaType":"text/html","x":"<script>alert(1)</script>"}"#;
    let server = start(None, move || {
        let mut image = image("quay.io/x/app:1", manifest);
        image.media_type = "text/html".into();
        let blobs = Arc::new(memory(&[manifest]));
        let lock = Lock {
            version: 1,
            images: vec![image],
            ..Lock::default()
        };
        let named = named(lock, blobs.clone());
        ServedContent {
            bundles: vec![named],
            content: vec![blobs],
            ..ServedContent::default()
        }
    });
    for reference in ["1", &Digest::sha256(manifest).to_string()] {
        let (head, body) = send(
            &server.address,
            &format!("/v2/x/app/manifests/{reference}"),
            "",
        );
        assert_eq!(body, manifest);
        for line in [
            "content-type: application/octet-stream",
            "content-security-policy: sandbox; default-src 'none'",
            "x-content-type-options: nosniff",
        ] {
            assert!(
                head.lines().any(|found| found.eq_ignore_ascii_case(line)),
                "{line}: {head}"
            );
        }
    }
}
