//! Combined faults: seeded rounds with random faults at both registries at once.

use crate::support::dice::Dice;
use crate::support::faults::{
    Auth, Content, Fault, FaultKind, Location, RequestKind, RetryAfter, Rig, Settings, quick,
    quick_and_wide,
};
use crate::support::library::{ItemStatus, ReportItem};
use crate::support::rounds;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A temporary fault for a request that reads.
fn reading(dice: &mut Dice, on: RequestKind) -> Fault {
    let at = [0, 1, 100, 5000, 20_000][dice.roll(5)];
    let what = match (dice.roll(12), on) {
        (0 | 1, _) => FaultKind::Cut(at),
        (2, _) => FaultKind::Stall(at),
        (3, _) => FaultKind::Hold(Duration::from_millis([50, 900][dice.roll(2)])),
        (4, _) => FaultKind::HangUp,
        (5, _) => FaultKind::Drip(4000, Duration::from_millis(5)),
        (6, _) => FaultKind::Busy(
            dice.pick(&[429, 503]),
            dice.pick(&[
                RetryAfter::Unsaid,
                RetryAfter::Unsaid,
                RetryAfter::Seconds(1),
            ]),
        ),
        (7, _) => FaultKind::Status(dice.pick(&[500, 502, 408])),
        (8, RequestKind::Blob | RequestKind::Manifest | RequestKind::Referrers) => {
            FaultKind::Unauthorized
        }
        (9, RequestKind::Blob) => FaultKind::Redirect { expired: false },
        (_, RequestKind::Blob | RequestKind::File) => {
            let odd = [
                FaultKind::RangeDropped,
                FaultKind::RangeShifted,
                FaultKind::RangeLies,
                FaultKind::RangeRefused(400),
                FaultKind::RangeRefused(416),
            ];
            dice.pick(&odd)
        }
        (_, RequestKind::Tags | RequestKind::Referrers) => FaultKind::Pages(1),
        _ => FaultKind::Cut(at),
    };
    passing(dice, on, what)
}

fn passing(dice: &mut Dice, on: RequestKind, what: FaultKind) -> Fault {
    // a request fails when the registry refuses a second new token
    let times = if what == FaultKind::Unauthorized {
        1
    } else {
        1 + dice.roll(2)
    };
    Fault::once(on, what).skip(dice.roll(6)).times(times)
}

/// A fault for a request that writes: a temporary one, or a permanent size limit of uploads.
fn writing(dice: &mut Dice) -> Fault {
    let on = dice.pick(&[
        RequestKind::Begin,
        RequestKind::Upload,
        RequestKind::Patch,
        RequestKind::PutManifest,
        RequestKind::BlobHead,
        RequestKind::ManifestHead,
    ]);
    let what = match (dice.roll(8), on) {
        (0, RequestKind::Upload | RequestKind::Patch) => {
            FaultKind::CutUpload(dice.pick(&[0, 100, 9000]))
        }
        (2 | 3, RequestKind::Upload) => {
            return Fault::always(on, FaultKind::TooLarge(dice.pick(&[2500, 7000])));
        }
        (1..=3, RequestKind::Patch) => dice.pick(&[
            FaultKind::PatchStatus(201),
            FaultKind::PatchStatus(204),
            FaultKind::StaleRange,
        ]),
        (1, RequestKind::Begin) => FaultKind::Mount(dice.pick(&[202, 401, 404])),
        (2 | 3, RequestKind::Begin) => FaultKind::Location(dice.pick(&[
            Location::Relative,
            Location::NoPort,
            Location::NoScheme,
            Location::OtherHost,
        ])),
        (1, RequestKind::Upload | RequestKind::PutManifest) => FaultKind::NoLocation,
        (2, RequestKind::PutManifest) => FaultKind::NoSubject,
        (1 | 2, RequestKind::BlobHead | RequestKind::ManifestHead) => dice.pick(&[
            FaultKind::NoDigest,
            FaultKind::NoLength,
            FaultKind::Status(405),
        ]),
        (4, _) => FaultKind::Busy(
            429,
            dice.pick(&[RetryAfter::Unsaid, RetryAfter::Seconds(1)]),
        ),
        (5, _) => FaultKind::Unauthorized,
        (6, _) => FaultKind::HangUp,
        _ => FaultKind::Status(dice.pick(&[500, 502, 503])),
    };
    passing(dice, on, what)
}

/// Returns a fault that may make an item fail. The report must then contain the reason.
fn final_one(dice: &mut Dice) -> Fault {
    let on = dice.pick(&[RequestKind::Blob, RequestKind::Manifest, RequestKind::File]);
    let what = dice.pick(&[
        FaultKind::Corrupt,
        FaultKind::Gzip,
        FaultKind::Page("Blocked"),
        FaultKind::Status(403),
        FaultKind::Status(404),
    ]);
    Fault::always(on, what)
        .skip(dice.roll(4))
        .times(1 + dice.roll(3))
}

/// Keeps one fault for each kind of request, and one that revokes tokens, so that no request runs
/// out of attempts.
fn few_per_request(faults: &mut Vec<Fault>) {
    faults.sort_by_key(|fault| format!("{:?}", fault.on));
    faults.dedup_by_key(|fault| fault.on);
    // each revokes all tokens, and a request may have its first and its second token revoked
    let mut revokes = false;
    faults.retain(|fault| {
        fault.what != FaultKind::Unauthorized || !std::mem::replace(&mut revokes, true)
    });
}

fn lost(items: &[ReportItem]) -> Vec<&ReportItem> {
    items
        .iter()
        .filter(|item| !matches!(item.status, ItemStatus::Done | ItemStatus::Present))
        .collect()
}

/// Runs one round. Returns whether no item of `lock`, `pull` and `mirror` needed a second run.
fn round(rig: &mut Rig, number: usize) -> bool {
    let mut dice = Dice(number as u64);
    rig.limits = if dice.roll(2) == 0 {
        quick()
    } else {
        quick_and_wide()
    };
    rig.limits.jobs = dice.pick(&[1, 2, 3, 12, 50]);
    let kinds = [
        RequestKind::Blob,
        RequestKind::Blob,
        RequestKind::Manifest,
        RequestKind::Manifest,
        RequestKind::File,
        RequestKind::Tags,
        RequestKind::Referrers,
    ];
    let mut up = Vec::new();
    for _ in 0..=dice.roll(3) {
        let on = dice.pick(&kinds);
        up.push(reading(&mut dice, on));
    }
    few_per_request(&mut up);
    let mut down: Vec<Fault> = (0..dice.roll(4)).map(|_| writing(&mut dice)).collect();
    few_per_request(&mut down);
    let hopeless = dice.roll(5) == 0;
    if hopeless {
        up.push(final_one(&mut dice));
    }
    let auth = || {
        Some(Auth {
            uses: 10_000,
            answer: r#"{"token":"TOKEN","expires_in":300}"#.into(),
        })
    };
    let at_up = dice.roll(2) == 0;
    let at_down = dice.roll(2) == 0;
    let passes_only_by_token = |faults: &[Fault]| {
        let by_token = [FaultKind::Unauthorized, FaultKind::Mount(401)];
        faults.iter().any(|fault| by_token.contains(&fault.what))
    };
    let (at_up, at_down) = (
        at_up || passes_only_by_token(&up),
        at_down || passes_only_by_token(&down),
    );
    rig.up.set(Settings {
        auth: auth().filter(|_| at_up),
        ..Settings::default()
    });
    let no_referrers = dice.roll(2) == 0;
    rig.down.set(Settings {
        auth: auth().filter(|_| at_down),
        no_referrers,
        ..Settings::default()
    });
    rig.down.content(|content| *content = Content::default());
    rig.up.set_faults(up.clone());
    rig.down.set_faults(down.clone());

    let store = format!("round-{number}");
    let story = format!("round {number}: {up:?} and {down:?}");
    let mut well = true;
    let mut check = |what: &str, items: &[ReportItem]| {
        let lost = lost(items);
        for item in &lost {
            let why = item.reason.as_deref().unwrap_or_default();
            assert!(
                !why.is_empty(),
                "{story}: {what} of {} failed without a reason",
                item.name
            );
            assert!(hopeless, "{story}: {what} of {}: {why}", item.name);
        }
        well &= lost.is_empty();
    };
    let locked = rig.resolve(&store);
    check("lock", &locked.items);
    if locked.lock.unresolved.is_empty() {
        assert!(
            locked.lock == rig.lock,
            "{story}: the lock differs:\n{}",
            locked.lock.to_text()
        );
    }
    check("pull", &rig.pull(&store));
    rig.up.set_faults(up.clone());
    let bundle = rig.place.path(format!("{store}.landfall"));
    check("pull --bundle", &rig.pull_bundle(&bundle));
    // without the remaining faults of upstream, a second pull completes the store
    rig.up.set_faults([]);
    let items = rig.pull(&store);
    assert!(lost(&items).is_empty(), "{story}: second pull: {items:?}");
    rig.assert_same(&store, &story);
    let pushed = rig
        .push(&store)
        .unwrap_or_else(|error| panic!("{story}: push: {error}"));
    assert!(
        lost(&pushed.items).is_empty(),
        "{story}: push: {:?}",
        pushed.items
    );
    rig.assert_arrived(&story);
    std::fs::remove_dir_all(rig.store(&store)).unwrap();
    // mirror with the same faults; rounds with an even number use a store
    rig.down.content(|content| *content = Content::default());
    rig.up.set_faults(up.clone());
    rig.down.set_faults(down.clone());
    let keeps = number.is_multiple_of(2);
    let mirror = |rig: &Rig| {
        if keeps {
            rig.mirror_keeping(&store)
        } else {
            rig.mirror()
        }
    };
    let mirrored = mirror(rig).unwrap_or_else(|error| panic!("{story}: mirror: {error}"));
    check("mirror", &mirrored.items);
    rig.up.set_faults([]);
    let mirrored = mirror(rig).unwrap_or_else(|error| panic!("{story}: second mirror: {error}"));
    assert!(
        lost(&mirrored.items).is_empty(),
        "{story}: second mirror: {:?}",
        mirrored.items
    );
    rig.assert_arrived(&story);
    if keeps {
        assert!(lost(&rig.pull(&store)).is_empty(), "{story}");
        rig.assert_same(&store, &story);
        std::fs::remove_dir_all(rig.store(&store)).unwrap();
    }
    well
}

#[test]
fn seeded_rounds_of_random_faults_succeed_or_are_explained() {
    let rounds = rounds(30);
    let next = AtomicUsize::new(0);
    let well = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        // a round spends most of its time waiting, so several rounds run at once
        for _ in 0..8 {
            scope.spawn(|| {
                let mut rig = Rig::new();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= rounds {
                        return;
                    }
                    well.fetch_add(usize::from(round(&mut rig, number)), Ordering::Relaxed);
                }
            });
        }
    });
    let well = well.into_inner();
    assert!(
        well * 4 >= rounds * 3,
        "only {well} of {rounds} rounds needed no second run"
    );
}
