//! Commands over a network that fails in many ways: under each fault, a command delivers the same
//! content as without the fault, or fails with an error that explains the fault. The failing
//! registry is in `support/faults`.

use crate::support::faults::{
    Auth, Content, Fault, FaultKind, RequestKind, RetryAfter, Rig, Settings, done, quick, reason,
};
use crate::support::library::{ItemStatus, Limits};
use std::time::{Duration, Instant};

/// For each case, pulls under its faults into a separate store, and asserts the same result as
/// without faults.
fn pulled(cases: &[(&str, Vec<Fault>)]) -> Rig {
    let rig = Rig::new();
    for (name, faults) in cases {
        rig.set_faults(faults.clone());
        let items = rig.pull(name);
        assert!(done(&items), "{name}: {}", reason(&items));
        assert!(rig.up.met() > 0, "{name}: no request met the fault");
        rig.assert_same(name, name);
    }
    rig
}

/// Pulls under this fault, and asserts that an item fails with a reason that contains all `words`.
/// Asserts that a second pull, without the fault, succeeds.
fn refused(rig: &Rig, name: &str, fault: Fault, words: &[&str]) {
    rig.set_faults([fault]);
    let items = rig.pull(name);
    let reason = reason(&items);
    assert!(
        words.iter().all(|word| reason.contains(word)),
        "{name}: {reason}"
    );
    assert!(!done(&items), "{name}");
    rig.set_faults([]);
    assert!(
        done(&rig.pull(name)),
        "{name}: a second pull, without the fault, fails"
    );
    rig.assert_same(name, name);
}

fn both(what: &FaultKind) -> [Fault; 2] {
    [RequestKind::Blob, RequestKind::File].map(|on| Fault::once(on, what.clone()))
}

#[test]
fn pulls_succeed_if_bodies_are_cut_stalled_or_slow() {
    let rig = pulled(&[
        ("cut", both(&FaultKind::Cut(10_000)).to_vec()),
        ("cut after the headers", both(&FaultKind::Cut(0)).to_vec()),
        (
            "cut again and again",
            vec![Fault::once(RequestKind::Blob, FaultKind::Cut(3000)).times(30)],
        ),
        (
            "cut manifest",
            vec![Fault::once(RequestKind::Manifest, FaultKind::Cut(20)).times(3)],
        ),
        (
            "hung up",
            [RequestKind::Blob, RequestKind::Manifest, RequestKind::File]
                .map(|on| Fault::once(on, FaultKind::HangUp))
                .to_vec(),
        ),
        ("stalled", both(&FaultKind::Stall(5000)).to_vec()),
        (
            "no response in time",
            both(&FaultKind::Hold(Duration::from_millis(1100))).to_vec(),
        ),
        (
            "a response just in time",
            both(&FaultKind::Hold(Duration::from_millis(200))).to_vec(),
        ),
        (
            "slow loris",
            vec![Fault::once(
                RequestKind::File,
                FaultKind::Drip(1500, Duration::from_millis(60)),
            )],
        ),
    ]);
    // no byte is sent twice: after each cut, the download resumes after the last received byte
    rig.set_faults([Fault::once(RequestKind::Blob, FaultKind::Cut(3000)).times(8)]);
    assert!(done(&rig.pull("bytes")));
    rig.up.settle();
    let sent: usize = rig
        .up
        .seen()
        .iter()
        .filter(|seen| seen.on == Some(RequestKind::Blob))
        .map(|seen| seen.sent)
        .sum();
    let blobs = rig.up.content(|content| {
        let all = content
            .blobs
            .iter()
            .map(|((_, digest), bytes)| (digest.clone(), bytes.len()));
        all.collect::<std::collections::BTreeMap<_, _>>()
    });
    // the empty config `{}` is never requested: landfall computes it for the artifact of a file
    let size: usize = blobs.values().filter(|size| **size > 2).sum();
    assert_eq!(sent, size, "{}", rig.up.shown());
}

#[test]
fn pulls_succeed_if_ranges_are_ignored_refused_or_wrong() {
    let cut = || Fault::once(RequestKind::Blob, FaultKind::Cut(8000));
    let then = |what: FaultKind| vec![cut().times(2), Fault::always(RequestKind::Blob, what)];
    let rig = pulled(&[
        ("200 to Range", then(FaultKind::RangeDropped)),
        ("206 with another start", then(FaultKind::RangeShifted)),
        ("206 with bytes of another part", then(FaultKind::RangeLies)),
        ("400", then(FaultKind::RangeRefused(400))),
        ("403", then(FaultKind::RangeRefused(403))),
        ("501", then(FaultKind::RangeRefused(501))),
        (
            "416 with the length of the blob",
            then(FaultKind::RangeRefused(416)),
        ),
        (
            "files",
            vec![
                Fault::once(RequestKind::File, FaultKind::Cut(50)),
                Fault::always(RequestKind::File, FaultKind::RangeShifted),
            ],
        ),
    ]);
    // after the first refused or wrong range, the host gets no further range request
    let largest = rig.lock.images[1]
        .blobs
        .iter()
        .max_by_key(|blob| blob.size)
        .unwrap();
    let largest = largest.digest.to_string();
    for what in [
        FaultKind::RangeShifted,
        FaultKind::RangeLies,
        FaultKind::RangeRefused(400),
        FaultKind::RangeRefused(403),
        FaultKind::RangeRefused(416),
    ] {
        let faults = [
            cut(),
            Fault::once(RequestKind::Blob, what.clone()),
            cut().times(3),
        ];
        rig.set_faults(faults.map(|fault| fault.at(&largest)));
        let store = format!("remembered {what:?}");
        assert!(done(&rig.pull(&store)));
        let ranges = rig
            .up
            .seen()
            .iter()
            .filter(|seen| seen.range.is_some())
            .count();
        assert_eq!(ranges, 1, "{what:?}:\n{}", rig.up.shown());
        rig.assert_same(&store, &store);
    }
}

#[test]
fn wrong_bytes_are_detected_and_reported() {
    let once = [RequestKind::Blob, RequestKind::Manifest, RequestKind::File]
        .map(|on| Fault::once(on, FaultKind::Corrupt));
    let compressed = |on| vec![Fault::always(on, FaultKind::Gzip)];
    let rig = pulled(&[
        ("a corrupt byte once", once.to_vec()),
        // what was compressed in transit is decoded, and compared then
        ("a compressed blob", compressed(RequestKind::Blob)),
        ("a compressed file", compressed(RequestKind::File)),
    ]);
    refused(
        &rig,
        "a corrupt byte always",
        Fault::always(RequestKind::Blob, FaultKind::Corrupt),
        &["source: ", "received wrong bytes: expected sha256:"],
    );
    refused(
        &rig,
        "a corrupt manifest",
        Fault::always(RequestKind::Manifest, FaultKind::Corrupt),
        &["the response is not sha256:"],
    );
}

#[test]
fn html_pages_instead_of_content_are_reported_as_such() {
    let rig = Rig::new();
    let page = FaultKind::Page("Access denied by policy 7");
    for on in [RequestKind::Blob, RequestKind::Manifest, RequestKind::File] {
        let words = [
            "an HTML page, titled 'Access denied by policy 7', was sent instead of",
            &rig.up.address,
        ];
        refused(
            &rig,
            &format!("{on:?}"),
            Fault::always(on, page.clone()),
            &words,
        );
    }
    // while locking, no digest is known in advance
    for on in [RequestKind::Manifest, RequestKind::File] {
        rig.set_faults([Fault::always(on, page.clone())]);
        let locked = rig.resolve(&format!("lock {on:?}"));
        let why = locked
            .items
            .iter()
            .filter_map(|item| item.reason.as_deref())
            .collect::<Vec<_>>()
            .join("\n");
        assert!(
            why.contains("titled 'Access denied by policy 7'"),
            "{on:?}: {why}"
        );
    }
    // push: an HTML page that the registry sends is reported
    for on in [
        RequestKind::ManifestHead,
        RequestKind::Begin,
        RequestKind::Upload,
        RequestKind::PutManifest,
    ] {
        rig.down.set_faults([Fault::always(on, page.clone())]);
        rig.up.set_faults([]);
        let printed = match rig.push("first") {
            Ok(pushed) => pushed
                .items
                .iter()
                .filter_map(|item| item.reason.clone())
                .collect::<Vec<_>>()
                .join("\n"),
            Err(error) => error.to_string(),
        };
        assert!(printed.contains("an HTML page"), "{on:?}: {printed}");
    }
    rig.down.set_faults([]);
    assert!(done(&rig.push("first").unwrap().items));
    rig.assert_arrived("after the pages");
}

#[test]
fn requests_to_busy_hosts_are_retried() {
    let some = |what: FaultKind| {
        [RequestKind::Blob, RequestKind::Manifest, RequestKind::File]
            .map(|on| Fault::once(on, what.clone()))
            .to_vec()
    };
    let mut rig = pulled(&[
        (
            "429 with seconds",
            some(FaultKind::Busy(429, RetryAfter::Seconds(1))),
        ),
        (
            "429 with a date",
            vec![Fault::once(
                RequestKind::File,
                FaultKind::Busy(429, RetryAfter::Date(2)),
            )],
        ),
        (
            "429 without Retry-After, often",
            vec![Fault::once(RequestKind::Blob, FaultKind::Busy(429, RetryAfter::Unsaid)).times(9)],
        ),
        (
            "503 with seconds",
            vec![Fault::once(
                RequestKind::Manifest,
                FaultKind::Busy(503, RetryAfter::Seconds(1)),
            )],
        ),
        (
            "503 without Retry-After",
            some(FaultKind::Busy(503, RetryAfter::Unsaid)),
        ),
        ("500", some(FaultKind::Status(500))),
        ("408", some(FaultKind::Status(408))),
    ]);
    // a pull waits as long as the host requests
    rig.set_faults([Fault::once(
        RequestKind::Blob,
        FaultKind::Busy(429, RetryAfter::Seconds(1)),
    )]);
    let begun = Instant::now();
    assert!(done(&rig.pull("peace")));
    assert!(
        begun.elapsed() >= Duration::from_secs(1),
        "the wait was too short"
    );
    // a host may be busy any number of times: the time limit for failing hosts does not apply
    let lost_after = std::mem::replace(&mut rig.limits.lost_after, Duration::ZERO);
    let often = [RequestKind::Blob, RequestKind::Manifest, RequestKind::File]
        .map(|on| Fault::once(on, FaultKind::Busy(503, RetryAfter::Seconds(1))));
    rig.set_faults(often.map(|fault| fault.times(8)));
    let items = rig.pull("often");
    assert!(done(&items) && rig.up.met() == 24, "{}", reason(&items));
    rig.limits.lost_after = lost_after;
    // requests to a host that is always busy fail when the maximum wait is over
    rig.limits.max_wait_secs = 0;
    rig.set_faults([Fault::always(
        RequestKind::Blob,
        FaultKind::Busy(429, RetryAfter::Unsaid),
    )]);
    let why = reason(&rig.pull("never"));
    for word in [
        "skipped for the rest of this run: it postponed every request (429",
        "--max-wait 0 s",
        "run it again later",
    ] {
        assert!(why.contains(word), "{word}: {why}");
    }
    // if the requested wait is longer than allowed, the item fails with the time to retry, and no
    // request follows
    rig.limits.max_wait_secs = 30;
    rig.set_faults([Fault::always(
        RequestKind::Blob,
        FaultKind::Busy(429, RetryAfter::Seconds(3600)),
    )]);
    let why = reason(&rig.pull("later"));
    for word in [
        "asks to retry in 1 h",
        "longer than --max-wait 30 s",
        "run it again after",
        "GMT",
    ] {
        assert!(why.contains(word), "{word}: {why}");
    }
    let requests = rig
        .up
        .seen()
        .iter()
        .filter(|seen| seen.on == Some(RequestKind::Blob))
        .count();
    assert!(
        requests <= rig.limits.jobs,
        "a request was sent after the first response:\n{}",
        rig.up.shown()
    );
}

#[test]
fn error_codes_of_content_delivery_networks_are_retried() {
    let case = |status| {
        (
            format!("{status}"),
            vec![Fault::once(RequestKind::Blob, FaultKind::Status(status)).times(2)],
        )
    };
    let cases = (520..=524).map(case).collect::<Vec<_>>();
    pulled(
        &cases
            .iter()
            .map(|(name, faults)| (&**name, faults.clone()))
            .collect::<Vec<_>>(),
    );
}

#[test]
fn an_exhausted_pull_quota_stops_only_the_requests_that_it_counts() {
    let rig = Rig::new();
    rig.set_faults([]);
    rig.up.set(Settings {
        quota: Some(2),
        ..Settings::default()
    });
    let items = rig.pull("quota");
    // each manifest counts as one pull, and the two images alone have four manifests
    let failed: Vec<_> = items
        .iter()
        .filter(|item| item.status == ItemStatus::Failed)
        .collect();
    assert!(
        !failed.is_empty() && failed.len() < items.len(),
        "{items:?}"
    );
    for item in failed {
        let why = item.reason.as_deref().unwrap();
        for word in [
            "asks to retry in 6 h",
            "0 of 100 pulls left in 6 h, counted for 192.0.2.7",
            "run it again after",
        ] {
            assert!(why.contains(word), "{word}: {why}");
        }
    }
    // requests for blobs are not counted, so all blobs were pulled
    let blobs = rig.lock.images.iter().flat_map(|image| &image.blobs);
    for blob in blobs {
        assert!(
            rig.store("quota").join(blob.digest.layout_path()).exists(),
            "{}",
            blob.digest
        );
    }
    let notes = rig.notes.lines();
    let shown: Vec<_> = notes
        .iter()
        .filter(|line| line.contains("of 100 pulls left in 6 h"))
        .collect();
    assert_eq!(shown.len(), 1, "shown once: {notes:?}");
    rig.up.set(Settings::default());
    rig.set_faults([]);
    assert!(done(&rig.pull("quota")));
    let again = rig
        .up
        .seen()
        .iter()
        .filter(|seen| seen.on != Some(RequestKind::Manifest))
        .count();
    assert_eq!(
        again,
        0,
        "only manifests are requested:\n{}",
        rig.up.shown()
    );
    rig.assert_same("quota", "after the quota");
}

#[test]
fn tokens_of_every_kind_are_accepted_and_renewed() {
    let mut rig = Rig::new();
    let forms = [
        ("token", 100, r#"{"token":"TOKEN"}"#),
        (
            "access_token only",
            100,
            r#"{"access_token":"TOKEN","expires_in":300}"#,
        ),
        ("expires_in 1", 100, r#"{"token":"TOKEN","expires_in":1}"#),
        ("expires_in 0", 100, r#"{"token":"TOKEN","expires_in":0}"#),
        (
            "access_token beside an empty token",
            100,
            r#"{"token":"","access_token":"TOKEN","expires_in":300}"#,
        ),
        (
            "expires_in as text",
            100,
            r#"{"token":"TOKEN","expires_in":"300"}"#,
        ),
        (
            "expires_in as a float",
            100,
            r#"{"token":"TOKEN","expires_in":299.5}"#,
        ),
        (
            "expires_in of another kind",
            100,
            r#"{"token":"TOKEN","expires_in":[1]}"#,
        ),
        (
            "401 after two requests",
            2,
            r#"{"token":"TOKEN","expires_in":300}"#,
        ),
    ];
    for (name, uses, answer) in forms {
        rig.up.set(Settings {
            auth: Some(Auth {
                uses,
                answer: answer.into(),
            }),
            ..Settings::default()
        });
        // if a token is valid for two requests only, requests are sent one at a time: otherwise,
        // timing decides which requests use up the token
        rig.limits.per_host = if uses > 2 { 12 } else { 1 };
        rig.set_faults([]);
        let items = rig.pull(name);
        assert!(done(&items), "{name}: {}", reason(&items));
        rig.assert_same(name, name);
    }
    let auth = Some(Auth {
        uses: 100,
        answer: r#"{"token":"TOKEN"}"#.into(),
    });
    rig.up.set(Settings {
        auth: auth.clone(),
        ..Settings::default()
    });
    for (name, fault) in [
        (
            "401 in mid-run",
            Fault::once(RequestKind::Blob, FaultKind::Unauthorized).times(2),
        ),
        (
            "token server busy",
            Fault::once(RequestKind::Token, FaultKind::Status(503)).times(2),
        ),
        (
            "token server hangs up",
            Fault::once(RequestKind::Token, FaultKind::HangUp).times(2),
        ),
        (
            "a token breaks off",
            Fault::once(RequestKind::Token, FaultKind::Cut(5)).times(2),
        ),
    ] {
        rig.set_faults([fault]);
        let items = rig.pull(name);
        assert!(done(&items), "{name}: {}", reason(&items));
        rig.assert_same(name, name);
    }
    let who = rig.up.address.clone();
    for (name, fault, words) in [
        (
            "down",
            Fault::always(RequestKind::Token, FaultKind::Status(503)),
            ["its token service", "answered 503"],
        ),
        (
            "gone",
            Fault::always(RequestKind::Token, FaultKind::HangUp),
            ["its token service does not answer", "connection was closed"],
        ),
        (
            "no token",
            Fault::always(RequestKind::Token, FaultKind::TokenAnswer("{}")),
            ["its token service", "returned no token"],
        ),
        (
            "a page",
            Fault::always(RequestKind::Token, FaultKind::Page("Sign in")),
            ["titled 'Sign in'", "a token for"],
        ),
    ] {
        refused(&rig, name, fault, &[&words[..], &[&who]].concat());
    }
    // push: a token that expires during the upload of a blob; a third 401 would be final if it met
    // the same request
    rig.down.set(Settings {
        auth,
        ..Settings::default()
    });
    rig.down
        .set_faults([Fault::once(RequestKind::Upload, FaultKind::Unauthorized).times(2)]);
    let pushed = rig.push("first").unwrap();
    assert!(done(&pushed.items), "{}", reason(&pushed.items));
    rig.assert_arrived("401 in mid-upload");
}

#[test]
fn missing_and_forbidden_content_is_reported() {
    let rig = Rig::new();
    let manifest = Fault::always(RequestKind::Manifest, FaultKind::Status(403));
    refused(
        &rig,
        "403",
        manifest,
        &["answered 403", "DENIED", "may not read team/"],
    );
    refused(
        &rig,
        "404",
        Fault::always(RequestKind::Blob, FaultKind::Status(404)),
        &["blob sha256:", "answered 404"],
    );
    // some registries answer 403 for missing content; a push succeeds nevertheless
    rig.down.set_faults([
        Fault::always(RequestKind::BlobHead, FaultKind::Status(403)),
        Fault::always(RequestKind::ManifestHead, FaultKind::Status(403)),
    ]);
    assert!(done(&rig.push("first").unwrap().items));
    rig.assert_arrived("403 for missing");
    // also without the referrers API, and without HEAD
    rig.down.set(Settings {
        no_referrers: true,
        hides_missing: true,
        ..Settings::default()
    });
    let no_head = Fault::always(RequestKind::ManifestHead, FaultKind::Status(405));
    for faults in [vec![], vec![no_head]] {
        rig.empty_far_side();
        rig.down.set_faults(faults);
        let pushed = rig.push("first").unwrap();
        assert!(done(&pushed.items), "{}", reason(&pushed.items));
        rig.assert_arrived("403 for missing, without the referrers API");
    }
    // a list of referrers that may not be read is not replaced
    rig.empty_far_side();
    let forbidden = |on| Fault::always(on, FaultKind::Status(403));
    rig.down.set_faults([
        forbidden(RequestKind::Manifest),
        forbidden(RequestKind::ManifestHead),
    ]);
    let pushed = rig.push("first").unwrap();
    assert!(!done(&pushed.items));
    assert!(
        reason(&pushed.items).contains("403"),
        "{}",
        reason(&pushed.items)
    );
}

#[test]
fn redirects_to_a_second_host_are_followed_without_credentials() {
    let rig = Rig::new();
    rig.up.set(Settings {
        auth: Some(Auth {
            uses: 100,
            answer: r#"{"token":"TOKEN"}"#.into(),
        }),
        ..Settings::default()
    });
    let good = || Fault::always(RequestKind::Blob, FaultKind::Redirect { expired: false });
    for (name, faults) in [
        ("signed URLs", vec![good()]),
        (
            "an expired URL",
            vec![
                Fault::once(RequestKind::Blob, FaultKind::Redirect { expired: true }),
                good(),
            ],
        ),
        // after a cut, the registry returns a new URL
        (
            "cut at the second host",
            vec![
                good(),
                Fault::once(RequestKind::Second, FaultKind::Cut(5000)).times(2),
            ],
        ),
    ] {
        rig.set_faults(faults);
        let items = rig.pull(name);
        assert!(done(&items), "{name}: {}", reason(&items));
        rig.assert_same(name, name);
        let seen = rig.up.seen();
        let there: Vec<_> = seen
            .iter()
            .filter(|seen| seen.on == Some(RequestKind::Second))
            .collect();
        assert!(
            !there.is_empty() && there.iter().all(|seen| !seen.authorization),
            "{name}"
        );
        let ranges = |on| {
            seen.iter()
                .filter(|seen| seen.on == Some(on) && seen.range.is_some())
                .count()
        };
        assert_eq!(
            ranges(RequestKind::Blob),
            ranges(RequestKind::Second),
            "{name}:\n{}",
            rig.up.shown()
        );
    }
    let expired = Fault::always(RequestKind::Blob, FaultKind::Redirect { expired: true });
    refused(
        &rig,
        "always expired URLs",
        expired,
        &["answered 403", &rig.up.second],
    );
}

#[test]
fn a_tag_that_moves_between_requests_is_pinned_consistently() {
    let rig = Rig::new();
    rig.up.content(|content| {
        let other = content.image("team/tool", "linux/amd64", &[(9, 700)]);
        content.tag("team/tool", "other", &other);
    });
    rig.set_faults([Fault::always(RequestKind::Manifest, FaultKind::Moving)]);
    for round in 0..3 {
        let store = format!("moving {round}");
        let locked = rig.resolve(&store);
        assert!(
            locked.lock.unresolved.is_empty(),
            "{:?}",
            locked.lock.unresolved
        );
        // the locked blobs belong to the locked manifest, although the tag moves
        let image = &locked.lock.images[1];
        let manifest = rig.up.content(|content| {
            content.manifests[&("team/tool".into(), image.digest.to_string())]
                .1
                .clone()
        });
        let manifest = String::from_utf8(manifest.to_vec()).unwrap();
        assert!(
            image
                .blobs
                .iter()
                .all(|blob| manifest.contains(&blob.digest.to_string())),
            "{image:?}"
        );
    }
    // `pull` fetches the locked digest, even if the tag has moved
    assert!(done(&rig.pull("pinned")));
    rig.assert_same("pinned", "pinned");
}

#[test]
fn lock_succeeds_over_a_bad_network() {
    let rig = Rig::new();
    let text = rig.lock.to_text();
    for (name, faults) in [
        (
            "cut",
            [RequestKind::Manifest, RequestKind::File]
                .map(|on| Fault::once(on, FaultKind::Cut(10)).times(2))
                .to_vec(),
        ),
        (
            "stalled",
            vec![Fault::once(RequestKind::Manifest, FaultKind::Stall(10))],
        ),
        (
            "hung up",
            [RequestKind::Manifest, RequestKind::File]
                .map(|on| Fault::once(on, FaultKind::HangUp).times(2))
                .to_vec(),
        ),
        (
            "busy",
            vec![Fault::once(
                RequestKind::Manifest,
                FaultKind::Busy(429, RetryAfter::Seconds(1)),
            )],
        ),
        (
            "a wrong byte",
            vec![Fault::once(RequestKind::Manifest, FaultKind::Corrupt).skip(2)],
        ),
        (
            "HEAD of a file without a length",
            vec![Fault::once(RequestKind::File, FaultKind::NoLength).skip(1)],
        ),
        (
            "HEAD of a file refused",
            vec![Fault::once(RequestKind::File, FaultKind::Status(405)).skip(1)],
        ),
    ] {
        rig.set_faults(faults);
        let locked = rig.resolve(name);
        assert!(
            locked.lock.unresolved.is_empty(),
            "{name}: {:?}",
            locked.items
        );
        assert_eq!(locked.lock.to_text(), text, "{name}");
        assert!(rig.up.met() > 0, "{name}");
    }
}

#[test]
fn lists_of_tags_and_referrers_may_be_paged_null_or_missing() {
    let rig = Rig::new();
    let text = rig.lock.to_text();
    let tool = rig.lock.images[1].digest.to_string();
    // for registries without the API, clients maintain the list of referrers under a tag
    let list = rig.up.content(|content| {
        let own = content.manifests.iter().filter(|((own, _), (_, bytes))| {
            let document: serde_json::Value = serde_json::from_slice(bytes).unwrap();
            own == "team/tool" && document["subject"]["digest"] == tool.as_str()
        });
        let own: Vec<serde_json::Value> = own
            .map(|((_, digest), (kind, bytes))| {
                serde_json::json!({"mediaType": kind, "digest": digest, "size": bytes.len()})
            })
            .collect();
        assert_eq!(own.len(), 2);
        let list = content.index("team/tool", &own);
        content.tag("team/tool", &tool.replace(':', "-"), &list);
        list["digest"].as_str().unwrap().to_owned()
    });
    for (name, no_referrers, faults) in [
        (
            "no referrers API",
            true,
            vec![Fault::always(RequestKind::Tags, FaultKind::Pages(1))],
        ),
        (
            "neither a referrers API nor a list of tags",
            true,
            vec![Fault::always(RequestKind::Tags, FaultKind::Status(404))],
        ),
        (
            "tags in pages",
            false,
            vec![Fault::always(RequestKind::Tags, FaultKind::Pages(1))],
        ),
        (
            "referrers in pages",
            false,
            vec![Fault::always(RequestKind::Referrers, FaultKind::Pages(1))],
        ),
        (
            "tags: null",
            false,
            vec![Fault::always(RequestKind::Tags, FaultKind::NullTags)],
        ),
        (
            "no list of tags",
            false,
            vec![Fault::always(RequestKind::Tags, FaultKind::Status(404))],
        ),
        (
            "an HTML page for tags",
            false,
            vec![Fault::always(RequestKind::Tags, FaultKind::Page("Portal"))],
        ),
        (
            "lists cut",
            false,
            [RequestKind::Tags, RequestKind::Referrers]
                .map(|on| Fault::once(on, FaultKind::Cut(9)).times(2))
                .to_vec(),
        ),
    ] {
        rig.up.set(Settings {
            no_referrers,
            ..Settings::default()
        });
        rig.set_faults(faults);
        let locked = rig.resolve(name);
        assert!(rig.up.met() > 0, "{name}");
        assert_eq!(locked.lock.to_text(), text, "{name}: {:?}", locked.items);
    }
    rig.up.content(|content| content.forget("team/tool", &list));
    // if the referrers of an image cannot be listed, the image stays unresolved; a web page in
    // place of a list means that there is no API
    for (what, unresolved) in [(FaultKind::Status(403), 2), (FaultKind::Page("Portal"), 0)] {
        rig.set_faults([Fault::always(RequestKind::Referrers, what.clone())]);
        let locked = rig.resolve(&format!("{what:?}"));
        assert_eq!(
            locked.lock.unresolved.len(),
            unresolved,
            "{what:?}: {:?}",
            locked.lock.images
        );
    }
    // if the registry does not list referrers, landfall maintains the list under a tag
    for (name, no_referrers, what) in [
        ("no API", true, FaultKind::NoLocation),
        ("no OCI-Subject", false, FaultKind::NoSubject),
    ] {
        rig.set_faults([]);
        rig.down.set(Settings {
            no_referrers,
            ..Settings::default()
        });
        rig.down.content(|content| *content = Content::default());
        rig.down
            .set_faults([Fault::always(RequestKind::PutManifest, what)]);
        assert!(done(&rig.push("first").unwrap().items), "{name}");
        rig.assert_arrived(name);
        let subject = rig.lock.images[1].digest.to_string().replace(':', "-");
        let list = rig.down.content(|content| {
            let list = content
                .tags
                .get(&("team/tool".into(), subject.clone()))?
                .clone();
            content
                .manifests
                .get(&("team/tool".into(), list))
                .map(|(_, bytes)| bytes.to_vec())
        });
        let list: serde_json::Value =
            serde_json::from_slice(&list.unwrap_or_default()).unwrap_or_default();
        assert_eq!(
            list["manifests"].as_array().map(Vec::len),
            Some(2),
            "{name}: {list}"
        );
    }
}

#[test]
fn a_blob_is_downloaded_over_several_connections() {
    let mut rig = Rig::of(8);
    let largest = rig.lock.images[1]
        .blobs
        .iter()
        .max_by_key(|blob| blob.size)
        .unwrap()
        .digest
        .to_string();
    // slow enough for additional connections
    let pace = Some((8000, Duration::from_millis(12)));
    rig.up.set(Settings {
        pace,
        ..Settings::default()
    });
    rig.limits = Limits {
        parallel_from: 200_000,
        parallel_share: 20_000,
        journal_step: 8000,
        ..quick()
    };
    for (name, faults) in [
        ("without faults", vec![]),
        (
            "cut",
            vec![Fault::once(RequestKind::Blob, FaultKind::Cut(9000)).times(3)],
        ),
        (
            "stalled",
            vec![
                Fault::once(RequestKind::Blob, FaultKind::Stall(9000))
                    .skip(1)
                    .times(2),
            ],
        ),
        (
            "ranges ignored",
            vec![Fault::always(RequestKind::Blob, FaultKind::RangeDropped)],
        ),
        (
            "ranges refused",
            vec![Fault::always(
                RequestKind::Blob,
                FaultKind::RangeRefused(416),
            )],
        ),
        (
            "ranges shifted",
            vec![Fault::always(RequestKind::Blob, FaultKind::RangeShifted)],
        ),
        (
            "wrong ranges",
            vec![Fault::always(RequestKind::Blob, FaultKind::RangeLies)],
        ),
        (
            "a wrong byte",
            vec![Fault::once(RequestKind::Blob, FaultKind::Corrupt).skip(2)],
        ),
    ] {
        rig.set_faults(faults.into_iter().map(|fault| fault.at(&largest)));
        let items = rig.pull(name);
        assert!(done(&items), "{name}: {}", reason(&items));
        let several = rig
            .up
            .seen()
            .iter()
            .filter(|seen| seen.path.ends_with(&largest))
            .count();
        assert!(several > 1, "{name}: one request\n{}", rig.up.shown());
        rig.assert_same(name, name);
    }
}
