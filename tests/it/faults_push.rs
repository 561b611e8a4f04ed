//! A private registry that fails or responds unusually: each push ends with the same content.

use crate::support::faults::{
    Auth, Content, Fault, FaultKind, Location, RequestKind, RetryAfter, Rig, Seen, Settings, done,
    reason,
};
use crate::support::images::{OCI_EMPTY, OCI_MANIFEST, digest};
use crate::support::library::{ItemStatus, ReportItem};
use serde_json::{Value, json};
use std::time::Duration;

/// Pushes to a private registry that requires a token and has these faults. Asserts that at least
/// `met` requests met a fault, and that everything is delivered.
fn arrives(name: &str, faults: Vec<Fault>, met: usize) -> Rig {
    let rig = Rig::new();
    let auth = Auth {
        uses: 1000,
        answer: r#"{"token":"TOKEN"}"#.into(),
    };
    rig.down.set(Settings {
        auth: Some(auth),
        ..Settings::default()
    });
    rig.down.set_faults(faults);
    let pushed = rig
        .push("first")
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(done(&pushed.items), "{name}: {}", reason(&pushed.items));
    assert!(rig.down.met() >= met, "{name}");
    rig.assert_arrived(name);
    rig
}

#[test]
fn head_requests_may_be_refused_or_answered_without_useful_headers() {
    for (name, what) in [
        ("405", FaultKind::Status(405)),
        ("no digest", FaultKind::NoDigest),
        ("no length", FaultKind::NoLength),
    ] {
        let rig = Rig::new();
        rig.down.set_faults(
            [RequestKind::ManifestHead, RequestKind::BlobHead]
                .map(|on| Fault::always(on, what.clone())),
        );
        assert!(done(&rig.push("first").unwrap().items), "{name}");
        rig.assert_arrived(name);
        // existing content is recognized, too
        let again = rig.push("first").unwrap();
        assert!(
            again
                .items
                .iter()
                .all(|item| item.status == ItemStatus::Present),
            "{name}: {:?}",
            again.items
        );
    }
}

#[test]
fn uploads_succeed_despite_unusual_responses() {
    for (name, faults) in [
        (
            "Location relative",
            vec![Fault::always(
                RequestKind::Begin,
                FaultKind::Location(Location::Relative),
            )],
        ),
        (
            "Location without a port",
            vec![Fault::always(
                RequestKind::Begin,
                FaultKind::Location(Location::NoPort),
            )],
        ),
        (
            "Location without a scheme",
            vec![Fault::always(
                RequestKind::Begin,
                FaultKind::Location(Location::NoScheme),
            )],
        ),
        (
            "Location of another host",
            vec![Fault::always(
                RequestKind::Begin,
                FaultKind::Location(Location::OtherHost),
            )],
        ),
        (
            "mount 202",
            vec![Fault::always(RequestKind::Begin, FaultKind::Mount(202))],
        ),
        (
            "mount 401",
            vec![Fault::always(RequestKind::Begin, FaultKind::Mount(401))],
        ),
        (
            "mount 403",
            vec![Fault::always(RequestKind::Begin, FaultKind::Mount(403))],
        ),
        (
            "mount 404",
            vec![Fault::always(RequestKind::Begin, FaultKind::Mount(404))],
        ),
        (
            "mount 400",
            vec![Fault::always(RequestKind::Begin, FaultKind::Mount(400))],
        ),
        (
            "201 without Location",
            [RequestKind::Upload, RequestKind::PutManifest]
                .map(|on| Fault::always(on, FaultKind::NoLocation))
                .to_vec(),
        ),
        (
            "cut in mid-upload",
            vec![Fault::once(RequestKind::Upload, FaultKind::CutUpload(4000)).times(3)],
        ),
        (
            "hung up after an upload",
            vec![Fault::once(RequestKind::Upload, FaultKind::HangUp).times(2)],
        ),
        (
            "500",
            [
                RequestKind::Begin,
                RequestKind::Upload,
                RequestKind::PutManifest,
            ]
            .map(|on| Fault::once(on, FaultKind::Status(500)).times(2))
            .to_vec(),
        ),
        (
            "no answer to an upload",
            vec![Fault::once(
                RequestKind::Upload,
                FaultKind::Hold(Duration::from_millis(1500)),
            )],
        ),
        (
            "429",
            [
                RequestKind::Begin,
                RequestKind::Upload,
                RequestKind::PutManifest,
            ]
            .map(|on| Fault::once(on, FaultKind::Busy(429, RetryAfter::Seconds(1))))
            .to_vec(),
        ),
    ] {
        let rig = arrives(name, faults, 1);
        let elsewhere = rig.down.seen();
        let elsewhere = elsewhere
            .iter()
            .filter(|seen| seen.on == Some(RequestKind::Second));
        assert!(
            elsewhere.clone().all(|seen| !seen.authorization),
            "{name}: credentials went to another host"
        );
    }
}

#[test]
fn chunked_uploads_succeed_despite_unusual_responses() {
    let large = || Fault::always(RequestKind::Upload, FaultKind::TooLarge(7000));
    let cut = |on| Fault::once(on, FaultKind::CutUpload(3000)).times(2);
    for (name, faults) in [
        ("413", vec![large()]),
        (
            "413 for large chunks too",
            vec![
                Fault::always(RequestKind::Upload, FaultKind::TooLarge(3000)),
                Fault::always(RequestKind::Patch, FaultKind::TooLarge(3000)),
            ],
        ),
        (
            "PATCH 201",
            vec![
                large(),
                Fault::always(RequestKind::Patch, FaultKind::PatchStatus(201)),
            ],
        ),
        (
            "PATCH 204",
            vec![
                large(),
                Fault::always(RequestKind::Patch, FaultKind::PatchStatus(204)),
            ],
        ),
        (
            "a stale Range",
            vec![
                large(),
                Fault::always(RequestKind::Patch, FaultKind::StaleRange),
            ],
        ),
        ("a chunk cut", vec![large(), cut(RequestKind::Patch)]),
        (
            "a chunk refused",
            vec![
                large(),
                Fault::once(RequestKind::Patch, FaultKind::Status(500)).times(2),
            ],
        ),
        (
            "a chunk without rights",
            vec![
                large(),
                Fault::once(RequestKind::Patch, FaultKind::Unauthorized),
            ],
        ),
        (
            "whole bodies cut at one position",
            vec![cut(RequestKind::Upload).times(3)],
        ),
    ] {
        arrives(name, faults, 2);
    }
}

/// Before, the run did not end: the search for attestations waited for a manifest in the store that
/// another request was writing, and that request was not polled meanwhile.
#[test]
fn a_manifest_that_is_refused_while_another_is_fetched_fails_its_image() {
    let mut content = Content::default();
    let children =
        ["linux/amd64", "linux/arm64"].map(|platform| content.image("app", platform, &[(1, 300)]));
    let index = content.index("app", &children);
    content.tag("app", "v1", &index);
    let rig = Rig::holding(content, "images: [HOST/app:v1]\n");
    let slow = FaultKind::Hold(Duration::from_millis(200));
    rig.set_faults([
        Fault::always(RequestKind::Manifest, FaultKind::Status(403)).at(digest(&children[0])),
        Fault::always(RequestKind::Manifest, slow).at(digest(&children[1])),
    ]);
    let refused = rig.mirror_keeping("kept").unwrap().items;
    assert!(reason(&refused).contains("403"), "{}", reason(&refused));
    rig.set_faults([]);
    assert!(done(&rig.mirror_keeping("kept").unwrap().items));
    rig.assert_arrived("after the refusal");
}

#[test]
fn a_download_that_breaks_off_during_an_upload_is_resumed_or_repeated() {
    for (name, fault, resumes) in [
        (
            "cut",
            Fault::once(RequestKind::Blob, FaultKind::Cut(3000)).times(12),
            true,
        ),
        (
            "stalled",
            Fault::once(RequestKind::Blob, FaultKind::Stall(3000)).times(4),
            true,
        ),
        (
            "corrupt",
            Fault::once(RequestKind::Blob, FaultKind::Corrupt),
            false,
        ),
    ] {
        for keeps in [false, true] {
            let rig = Rig::new();
            // smaller blobs end before the position of the fault
            let largest = rig.lock.images[1]
                .blobs
                .iter()
                .max_by_key(|blob| blob.size)
                .unwrap();
            rig.set_faults([fault.clone().at(&largest.digest.to_string())]);
            let pushed = if keeps {
                rig.mirror_keeping("kept")
            } else {
                rig.mirror()
            };
            let pushed = pushed.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(done(&pushed.items), "{name}: {}", reason(&pushed.items));
            assert!(rig.up.met() > 0, "{name}");
            rig.assert_arrived(name);
            let up = rig.up.seen();
            let down = rig.down.seen();
            if resumes {
                assert!(
                    up.iter().any(|seen| seen.range.is_some()),
                    "{name}\n{}",
                    rig.up.shown()
                );
                // each upload that was started was completed or cancelled
                let count = |test: &dyn Fn(&&Seen) -> bool| down.iter().filter(test).count();
                let opened =
                    count(&|seen| seen.on == Some(RequestKind::Begin) && seen.status == 202);
                let ended =
                    count(&|seen| seen.on == Some(RequestKind::Upload) && seen.status == 201);
                let cancelled = count(&|seen| seen.method == "DELETE");
                assert_eq!(opened, ended + cancelled, "{name}\n{}", rig.down.shown());
            }
            if keeps {
                // without faults, a pull completes the kept store
                rig.set_faults([]);
                assert!(done(&rig.pull("kept")), "{name}");
                rig.assert_same("kept", name);
            }
        }
    }
}

#[test]
fn mirror_sends_no_more_blob_requests_upstream_than_pull() {
    let later = |later| Fault::always(RequestKind::Blob, FaultKind::Busy(429, later));
    for (name, fault) in [
        ("retry in an hour", later(RetryAfter::Seconds(3600))),
        ("retry at an unknown time", later(RetryAfter::Unsaid)),
        (
            "500",
            Fault::always(RequestKind::Blob, FaultKind::Status(500)),
        ),
        (
            "hung up",
            Fault::always(RequestKind::Blob, FaultKind::HangUp),
        ),
        (
            "cut after the headers",
            Fault::always(RequestKind::Blob, FaultKind::Cut(0)),
        ),
        (
            "corrupt",
            Fault::always(RequestKind::Blob, FaultKind::Corrupt),
        ),
    ] {
        let mut rig = Rig::new();
        // one job: with several, more requests are in flight when the first response arrives
        rig.limits.jobs = 1;
        let requests = |run: &dyn Fn(&Rig) -> Vec<ReportItem>| {
            rig.set_faults([fault.clone()]);
            let items = run(&rig);
            assert!(!done(&items), "{name}");
            let seen = rig.up.seen();
            seen.iter()
                .filter(|seen| seen.on == Some(RequestKind::Blob))
                .count()
        };
        let pull = requests(&|rig| rig.pull("second"));
        let keeping = |rig: &Rig| rig.mirror_keeping("third").unwrap().items;
        for mirror in [
            requests(&|rig| rig.mirror().unwrap().items),
            requests(&keeping),
        ] {
            assert!(
                mirror > 0 && mirror <= pull,
                "{name}: mirror {mirror}, pull {pull}\n{}",
                rig.up.shown()
            );
        }
    }
}

#[test]
fn recheck_uploads_content_that_the_registry_lost() {
    let mut rig = Rig::new();
    let all = rig.push("first").unwrap().receipt.blobs;
    assert!(all.len() > 5, "{all:?}");
    let index = &rig.lock.images[0];
    let manifest = index.manifests[0].digest.to_string();
    let blob = index.blobs[0].digest.to_string();
    type Loss<'a> = (&'a str, &'a dyn Fn(&mut Content));
    let lose: [Loss<'_>; 3] = [
        ("a blob", &|content| {
            content.blobs.retain(|(_, digest), _| *digest != blob)
        }),
        ("a manifest", &|content| {
            content
                .manifests
                .retain(|(_, digest), _| *digest != manifest)
        }),
        ("all blobs", &|content| content.blobs.clear()),
    ];
    let address = rig.down.address.clone();
    let at_the_registry = ["--lock", "landfall.lock", "--plain-http", &address];
    for (name, lose) in lose {
        rig.down.content(lose);
        // a tag with the right digest counts as complete; unchecked content is not in the receipt
        let pushed = rig.push("first").unwrap();
        assert!(
            pushed
                .items
                .iter()
                .all(|item| item.status == ItemStatus::Present),
            "{name}: {:?}",
            pushed.items
        );
        assert_eq!(pushed.receipt.blobs.len(), 0, "{name}");
        let audit = |exit, more: &[&str]| {
            rig.place.json(
                exit,
                &[
                    &["audit", "--registry", &address],
                    &at_the_registry[..],
                    more,
                ]
                .concat(),
            )
        };
        audit(if name == "a manifest" { 4 } else { 0 }, &[]);
        let lacking = audit(4, &["--blobs"])["lacking"].to_string();
        assert!(
            lacking.contains(if name == "a manifest" {
                &manifest
            } else {
                &blob
            }),
            "{name}: {lacking}"
        );
        // `recheck` detects the loss and uploads the content again
        rig.delivery.recheck = true;
        let pushed = rig.push("first").unwrap();
        let uploaded = pushed
            .items
            .iter()
            .filter(|item| item.status == ItemStatus::Done)
            .count();
        assert!(
            done(&pushed.items) && uploaded > 0,
            "{name}: {:?}",
            pushed.items
        );
        rig.assert_arrived(name);
        assert!(pushed.receipt.blobs.keys().eq(all.keys()), "{name}");
        rig.delivery.recheck = false;
        rig.place.json(
            0,
            &[
                &["audit", "--registry", &address, "--blobs"],
                &at_the_registry[..],
            ]
            .concat(),
        );
    }
    // `--receipt` implies `--recheck`, so the receipt lists all content
    let push = [
        "push",
        "--store",
        "stores/first",
        "--to",
        &address,
        "--receipt",
        "r.json",
    ];
    let report = rig.place.json(0, &[&push, &at_the_registry[..]].concat());
    assert_eq!(report["totals"]["done"], 0, "{report}");
    let receipt: serde_json::Value = serde_json::from_str(&rig.place.read("r.json")).unwrap();
    assert_eq!(receipt["blobs"].as_object().unwrap().len(), all.len());
}

/// A chunk is read from the middle of the blob, where its digest cannot be checked: only the
/// registry notices that the bytes of the range are wrong.
#[test]
fn a_blob_whose_chunks_had_wrong_bytes_is_read_again_without_ranges() {
    let rig = Rig::new();
    rig.down.set_faults([Fault::always(
        RequestKind::Upload,
        FaultKind::TooLarge(2500),
    )]);
    rig.up
        .set_faults([Fault::always(RequestKind::Blob, FaultKind::RangeLies)]);
    let mirrored = rig.mirror().unwrap();
    assert!(done(&mirrored.items), "{}", reason(&mirrored.items));
    assert!(rig.up.met() > 0);
    rig.assert_arrived("wrong ranges");
}

/// A registry may report that it has a blob that another client is still uploading, or read a
/// manifest that another client is still writing.
#[test]
fn a_manifest_is_put_again_if_another_client_delivers_it_meanwhile() {
    for (status, code) in [
        (400, "MANIFEST_BLOB_UNKNOWN"),
        (400, "BLOB_UNKNOWN"),
        (400, "DIGEST_INVALID"),
        (409, "CONFLICT"),
    ] {
        // one refusal for each delivered item
        let refused = ["/team/app/", "/team/tool/", "/files/"].map(|at| {
            Fault::once(RequestKind::PutManifest, FaultKind::Refusal(status, code)).at(at)
        });
        let rig = arrives(code, refused.to_vec(), 3);
        let requests = |on| {
            rig.down
                .seen()
                .iter()
                .filter(|seen| seen.on == Some(on))
                .count()
        };
        assert!(
            requests(RequestKind::BlobHead) > 0 && requests(RequestKind::PutManifest) > 3,
            "{code}: {}",
            rig.down.shown()
        );
    }
    // a permanent refusal is reported with the message of the registry
    let rig = Rig::new();
    rig.down.set_faults([Fault::always(
        RequestKind::PutManifest,
        FaultKind::Refusal(400, "MANIFEST_BLOB_UNKNOWN"),
    )]);
    let pushed = rig.push("first").unwrap();
    assert!(!done(&pushed.items) && reason(&pushed.items).contains("MANIFEST_BLOB_UNKNOWN"));
}

/// The names of the locks in the list at the private registry, the oldest first.
fn delivered(content: &Content) -> Vec<String> {
    let key = |name: &str| (LOCKS.to_owned(), name.to_owned());
    let (_, list) = &content.manifests[&key(&content.tags[&key("latest")])];
    let list: Value = serde_json::from_slice(list).unwrap();
    let layers = list["layers"].as_array().unwrap().iter();
    let title = "org.opencontainers.image.title";
    let names = layers.map(|layer| {
        layer["annotations"][title]
            .as_str()
            .unwrap_or("-")
            .to_owned()
    });
    names.collect()
}

const LOCKS: &str = "landfall/locks";

#[test]
fn a_list_of_locks_that_another_push_replaced_is_written_again() {
    let rig = Rig::new();
    // the list of another push, which `Moving` puts in place of the list that this push wrote
    rig.down.content(|content| {
        let config = content.blob(LOCKS, OCI_EMPTY, b"{}".to_vec());
        let lock_type = "application/vnd.landfall.lock.v1+yaml";
        let mut lock = content.blob(LOCKS, lock_type, b"version: 1\n".to_vec());
        lock["annotations"] = json!({"org.opencontainers.image.title": "other"});
        let list = json!({
            "schemaVersion": 2, "mediaType": OCI_MANIFEST, "config": config, "layers": [lock],
            "artifactType": "application/vnd.landfall.locks.v1",
        });
        let list = content.manifest(LOCKS, OCI_MANIFEST, &list);
        content.tag(LOCKS, "other", &list);
    });
    // the first GET reads the list, the second one checks it
    let replaced = Fault::once(RequestKind::Manifest, FaultKind::Moving);
    rig.down.set_faults([replaced.at(LOCKS).skip(1)]);
    let pushed = rig.push("first").unwrap();
    assert_eq!(pushed.unlisted, None);
    assert_eq!(rig.down.met(), 1, "{}", rig.down.shown());
    let own = rig.lock.name.as_deref().unwrap_or("-");
    assert_eq!(
        rig.down.content(|content| delivered(content)),
        ["other", own]
    );
}

#[test]
fn a_push_that_is_stopped_does_not_list_its_lock() {
    let mut rig = Rig::new();
    rig.push("first").unwrap();
    rig.down.content(|content| {
        content
            .tags
            .retain(|(repository, _), _| repository != LOCKS);
        let other = content.image("team/app", "linux/amd64", &[(9, 1000)]);
        content.tag("team/app", "v1", &other);
    });
    for (all_or_nothing, listed) in [(true, false), (false, true)] {
        rig.delivery.all_or_nothing = all_or_nothing;
        let pushed = rig.push("first").unwrap();
        assert_eq!(pushed.problems.len(), 1, "{:?}", pushed.problems);
        let is_listed = rig.down.content(|content| {
            let mut tags = content.tags.keys();
            tags.any(|(repository, _)| repository == LOCKS)
        });
        assert_eq!(is_listed, listed, "all or nothing: {all_or_nothing}");
    }
}

#[test]
fn a_list_of_locks_that_is_always_replaced_is_reported() {
    let rig = Rig::new();
    rig.push("first").unwrap();
    rig.down.content(|content| {
        content
            .tags
            .retain(|(repository, _), _| repository != LOCKS);
    });
    let lost = Fault::always(RequestKind::PutManifest, FaultKind::Lost);
    rig.down.set_faults([lost.at(LOCKS)]);
    let pushed = rig.push("first").unwrap();
    let why = pushed.unlisted.unwrap();
    assert!(why.contains("lacked this lock"), "{why}");
    assert!(why.contains("new items"), "{why}");
    assert_eq!(rig.down.met(), 4);
    assert!(done(&pushed.items), "{}", reason(&pushed.items));
}
