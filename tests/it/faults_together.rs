//! Faults that affect all requests in flight at the same time. Single faults do not reveal
//! transfers that wait for each other.

use crate::support::dice::Dice;
use crate::support::faults::{Content, Fault, FaultKind, RequestKind, RetryAfter, Rig, quick};
use crate::support::library::{Failure, ItemStatus, Limits, Pushed, ReportItem};
use crate::support::rounds;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of images of the upstream, each with its own layers and config.
const IMAGES: usize = 30;

/// Allows as many requests to a host as transfers, so that a fault can affect all of them.
fn limits(jobs: usize) -> Limits {
    Limits {
        jobs,
        per_host: jobs,
        ..quick()
    }
}

/// The digests in the paths of requests of the kind `on`.
fn paths(content: &Content, on: RequestKind) -> Vec<String> {
    match on {
        RequestKind::Blob | RequestKind::Begin => content
            .blobs
            .keys()
            .map(|(_, digest)| digest.clone())
            .collect(),
        _ => content
            .manifests
            .keys()
            .map(|(_, digest)| digest.clone())
            .collect(),
    }
}

/// A fault for the first `times` requests for each blob or manifest, so that all requests in flight
/// fail together.
fn for_each(content: &Content, on: RequestKind, what: &FaultKind, times: usize) -> Vec<Fault> {
    let each = paths(content, on).into_iter();
    each.map(|path| Fault::once(on, what.clone()).at(&path).times(times))
        .collect()
}

fn assert_complete(items: &[ReportItem], story: &str) {
    let lost = items
        .iter()
        .find(|item| !matches!(item.status, ItemStatus::Done | ItemStatus::Present));
    assert!(lost.is_none(), "{story}: {lost:?}");
}

/// Pushes or mirrors under faults that may outlast the attempts of a request. Asserts that a failed
/// item has a reason, and that a second run, without faults, completes the delivery.
fn assert_delivered(rig: &Rig, story: &str, deliver: &dyn Fn() -> Result<Pushed, Failure>) {
    let failed = match deliver() {
        Ok(pushed) => pushed
            .items
            .into_iter()
            .find(|item| item.status == ItemStatus::Failed),
        Err(error) => {
            assert!(!error.to_string().is_empty(), "{story}");
            None
        }
    };
    let why = failed
        .as_ref()
        .map(|item| item.reason.as_deref().unwrap_or_default());
    assert!(why != Some(""), "{story}: {failed:?}");
    assert!(
        why.is_none_or(|why| !why.contains("wait for each other")),
        "{story}: {failed:?}"
    );
    rig.up.set_faults([]);
    rig.down.set_faults([]);
    assert_complete(&deliver().unwrap().items, story);
    rig.assert_arrived(story);
}

/// Runs `pull`, `pull --bundle`, `push` and `mirror` under these faults: `up` at the upstream, and
/// `down` at the private registry. The faults `up` must end within the attempts of a request, so
/// that every pull succeeds.
fn all_ways(rig: &Rig, name: &str, up: &[Fault], down: &[Fault]) {
    let store = format!("{name}-store");
    let story = format!("{name}: {:?} and {:?}", up.first(), down.first());
    rig.set_faults(up.to_vec());
    assert_complete(&rig.pull(&store), &format!("{story}: pull"));
    rig.assert_same(&store, &format!("{story}: pull"));
    rig.set_faults(up.to_vec());
    let bundle = rig.place.path(format!("{name}.landfall"));
    assert_complete(
        &rig.pull_bundle(&bundle),
        &format!("{story}: pull --bundle"),
    );
    rig.up.set_faults([]);
    rig.empty_far_side();
    rig.down.set_faults(down.to_vec());
    assert_delivered(rig, &format!("{story}: push"), &|| rig.push(&store));
    for keeps in [false, true] {
        rig.empty_far_side();
        rig.up.set_faults(up.to_vec());
        rig.down.set_faults(down.to_vec());
        let kept = format!("{name}-kept");
        assert_delivered(rig, &format!("{story}: mirror, keeps: {keeps}"), &|| {
            if keeps {
                rig.mirror_keeping(&kept)
            } else {
                rig.mirror()
            }
        });
    }
}

#[test]
fn pulls_succeed_if_all_requests_in_flight_are_reset_after_their_headers() {
    let mut rig = Rig::of_images(IMAGES);
    for jobs in [1, 2, 12, 50] {
        rig.limits = limits(jobs);
        let up = rig
            .up
            .content(|content| for_each(content, RequestKind::Blob, &FaultKind::Cut(0), 1));
        all_ways(&rig, &format!("reset-{jobs}"), &up, &[]);
    }
}

#[test]
fn items_of_a_host_that_cuts_every_body_fail_early() {
    let mut rig = Rig::of_images(IMAGES);
    rig.limits = Limits {
        lost_after: std::time::Duration::ZERO,
        progress: 200,
        ..limits(12)
    };
    let ended = |rig: &Rig, store: &str, what: FaultKind| -> (usize, usize) {
        // the store has the manifests: each that is fetched would prove that the host answers
        rig.set_faults([]);
        rig.resolve(store);
        rig.set_faults([Fault::always(RequestKind::Blob, what)]);
        let items = rig.pull(store);
        let failed = items.iter().filter_map(|item| item.reason.as_deref());
        (
            failed
                .filter(|why| why.contains("skipped for the rest of this run: "))
                .count(),
            rig.up.met(),
        )
    };
    for what in [FaultKind::Cut(100), FaultKind::Stall(100)] {
        let (given_up, requests) = ended(&rig, &format!("{what:?}"), what.clone());
        assert!(
            given_up > IMAGES / 2 && requests < IMAGES * 3 * 3,
            "{what:?}: {given_up} skipped, {requests} requests"
        );
    }
    // a host is not skipped if every attempt makes progress
    rig.limits.jobs = 4;
    assert_eq!(ended(&rig, "poor", FaultKind::Cut(200)).0, 0);
    rig.assert_same("poor", "a bad connection");
}

#[test]
fn a_second_run_completes_a_delivery_if_uploads_and_sources_break_together() {
    let mut rig = Rig::of_images(IMAGES);
    for jobs in [1, 2, 12] {
        rig.limits = limits(jobs);
        let up = rig
            .up
            .content(|content| for_each(content, RequestKind::Blob, &FaultKind::Cut(1000), 2));
        let down = [Fault::once(RequestKind::Upload, FaultKind::CutUpload(500)).times(jobs)];
        all_ways(&rig, &format!("both-{jobs}"), &up, &down);
    }
}

/// A temporary fault that may affect all requests of a kind at once.
fn storm(dice: &mut Dice) -> FaultKind {
    // less than the smallest body: after a complete body, the server would keep the connection open
    let at = dice.pick(&[0, 1, 100]);
    match dice.roll(6) {
        0 | 1 => FaultKind::Cut(dice.pick(&[0, 1, 100, 3000])),
        2 => FaultKind::HangUp,
        3 => FaultKind::Busy(429, RetryAfter::Unsaid),
        4 => FaultKind::Status(dice.pick(&[500, 502, 503])),
        _ => FaultKind::Stall(at),
    }
}

#[test]
fn seeded_storms() {
    let rounds = rounds(12);
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        // a round mostly waits, so twelve rounds run concurrently
        for _ in 0..12 {
            scope.spawn(|| {
                let mut rig = Rig::of_images(IMAGES / 2);
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= rounds {
                        return;
                    }
                    let mut dice = Dice(number as u64);
                    rig.limits = limits(dice.pick(&[1, 2, 3, 12, 50]));
                    let blobs = storm(&mut dice);
                    let manifests = storm(&mut dice);
                    let times = 1 + dice.roll(2);
                    let up = rig.up.content(|content| {
                        let mut up = for_each(content, RequestKind::Blob, &blobs, times);
                        up.extend(for_each(content, RequestKind::Manifest, &manifests, 1));
                        up
                    });
                    let on = dice.pick(&[
                        RequestKind::Begin,
                        RequestKind::Upload,
                        RequestKind::PutManifest,
                    ]);
                    let what = dice.pick(&[
                        FaultKind::HangUp,
                        FaultKind::Status(502),
                        FaultKind::Busy(429, RetryAfter::Unsaid),
                    ]);
                    let down = [Fault::once(on, what).times(dice.roll(rig.limits.jobs + 1))];
                    all_ways(&rig, &format!("storm-{number}"), &up, &down);
                }
            });
        }
    });
}
