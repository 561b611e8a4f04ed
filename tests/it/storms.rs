//! Combined faults: seeded random rounds over all faults, at both registries at once.

use crate::support::dice::Dice;
use crate::support::faults::{
    Auth, Content, Fault, Later, Location, On, Rig, Settings, What, quick, quick_and_wide,
};
use crate::support::library::{ItemStatus, ReportItem};
use crate::support::rounds;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A temporary fault for a request that reads.
fn reading(dice: &mut Dice, on: On) -> Fault {
    let at = [0, 1, 100, 5000, 20_000][dice.roll(5)];
    let what = match (dice.roll(12), on) {
        (0 | 1, _) => What::Cut(at),
        (2, _) => What::Stall(at),
        (3, _) => What::Hold(Duration::from_millis([50, 900][dice.roll(2)])),
        (4, _) => What::HangUp,
        (5, _) => What::Drip(4000, Duration::from_millis(5)),
        (6, _) => What::Busy(
            dice.pick(&[429, 503]),
            dice.pick(&[Later::Unsaid, Later::Unsaid, Later::Seconds(1)]),
        ),
        (7, _) => What::Status(dice.pick(&[500, 502, 408])),
        (8, On::Blob | On::Manifest | On::Referrers) => What::Unauthorized,
        (9, On::Blob) => What::Redirect { expired: false },
        (_, On::Blob | On::File) => {
            let odd = [
                What::RangeDropped,
                What::RangeShifted,
                What::RangeLies,
                What::RangeRefused(400),
                What::RangeRefused(416),
            ];
            dice.pick(&odd)
        }
        (_, On::Tags | On::Referrers) => What::Pages(1),
        _ => What::Cut(at),
    };
    passing(dice, on, what)
}

fn passing(dice: &mut Dice, on: On, what: What) -> Fault {
    // a new token that is refused twice is refused for good
    let times = if what == What::Unauthorized {
        1
    } else {
        1 + dice.roll(2)
    };
    Fault::once(on, what).skip(dice.roll(6)).times(times)
}

/// A temporary fault for a request that writes.
fn writing(dice: &mut Dice) -> Fault {
    let on = dice.pick(&[
        On::Begin,
        On::Upload,
        On::Patch,
        On::PutManifest,
        On::BlobHead,
        On::ManifestHead,
    ]);
    let what = match (dice.roll(8), on) {
        (0, On::Upload | On::Patch) => What::CutUpload(dice.pick(&[0, 100, 9000])),
        (2 | 3, On::Upload) => return Fault::always(on, What::TooLarge(dice.pick(&[2500, 7000]))),
        (1..=3, On::Patch) => dice.pick(&[
            What::PatchStatus(201),
            What::PatchStatus(204),
            What::StaleRange,
        ]),
        (1, On::Begin) => What::Mount(dice.pick(&[202, 401, 404])),
        (2 | 3, On::Begin) => What::Location(dice.pick(&[
            Location::Relative,
            Location::NoPort,
            Location::NoScheme,
            Location::OtherHost,
        ])),
        (1, On::Upload | On::PutManifest) => What::NoLocation,
        (2, On::PutManifest) => What::NoSubject,
        (1 | 2, On::BlobHead | On::ManifestHead) => {
            dice.pick(&[What::NoDigest, What::NoLength, What::Status(405)])
        }
        (4, _) => What::Busy(429, dice.pick(&[Later::Unsaid, Later::Seconds(1)])),
        (5, _) => What::Unauthorized,
        (6, _) => What::HangUp,
        _ => What::Status(dice.pick(&[500, 502, 503])),
    };
    passing(dice, on, what)
}

/// A permanent fault.
fn final_one(dice: &mut Dice) -> Fault {
    let on = dice.pick(&[On::Blob, On::Manifest, On::File]);
    let what = dice.pick(&[
        What::Corrupt,
        What::Gzip,
        What::Page("Blocked"),
        What::Status(403),
        What::Status(404),
    ]);
    Fault::always(on, what)
        .skip(dice.roll(4))
        .times(1 + dice.roll(3))
}

fn lost(items: &[ReportItem]) -> Vec<&ReportItem> {
    items
        .iter()
        .filter(|item| !matches!(item.status, ItemStatus::Done | ItemStatus::Present))
        .collect()
}

/// Runs one round. Returns whether everything succeeded at the first attempt.
fn round(rig: &mut Rig, number: usize) -> bool {
    let mut dice = Dice(number as u64);
    rig.limits = if dice.roll(2) == 0 {
        quick()
    } else {
        quick_and_wide()
    };
    let kinds = [
        On::Blob,
        On::Blob,
        On::Manifest,
        On::Manifest,
        On::File,
        On::Tags,
        On::Referrers,
    ];
    let mut up = Vec::new();
    for _ in 0..=dice.roll(3) {
        let on = dice.pick(&kinds);
        up.push(reading(&mut dice, on));
    }
    // one fault per kind: together they stay within the attempts of one request
    up.sort_by_key(|fault| format!("{:?}", fault.on));
    up.dedup_by_key(|fault| fault.on);
    let mut down: Vec<Fault> = (0..dice.roll(4)).map(|_| writing(&mut dice)).collect();
    down.sort_by_key(|fault| format!("{:?}", fault.on));
    down.dedup_by_key(|fault| fault.on);
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
    let (at_up, at_down) = (dice.roll(2) == 0, dice.roll(2) == 0);
    let passes_only_by_token =
        |faults: &[Fault]| faults.iter().any(|fault| fault.what == What::Unauthorized);
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
    rig.up.arm(up.clone());
    rig.down.arm(down.clone());

    let (store, story) = (
        format!("round-{number}"),
        format!("round {number}: {up:?} and {down:?}"),
    );
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
            "{story}: another lock:\n{}",
            locked.lock.to_text()
        );
    }
    check("pull", &rig.pull(&store));
    // without the remaining faults, another run completes the work
    rig.up.arm([]);
    let items = rig.pull(&store);
    assert!(lost(&items).is_empty(), "{story}: another pull: {items:?}");
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
    // the same faults at both registries, with and without a store
    rig.down.content(|content| *content = Content::default());
    rig.up.arm(up.clone());
    rig.down.arm(down.clone());
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
    rig.up.arm([]);
    let mirrored = mirror(rig).unwrap_or_else(|error| panic!("{story}: another mirror: {error}"));
    assert!(
        lost(&mirrored.items).is_empty(),
        "{story}: another mirror: {:?}",
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
fn seeded_rounds_over_all_switches() {
    let (rounds, next, well) = (rounds(30), AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        // most of a round is waiting
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
