//! Tests of two commands that run on one object store at the same time: content that the store
//! reported to one of them as present is still present afterwards.
//!
//! Each request of a command passes a gate before and after it takes effect, so a schedule decides
//! where one command is halted while the other continues. A failure prints the schedule.

use bytes::Bytes;
use futures_util::TryStreamExt;
use gate::{Gate, Schedule};
use landfall_content::bucket::BucketObject;
use landfall_content::bucket::emulator::{Emulator, RequestHook, RequestMoment};
use landfall_content::store::{BucketStore, StoreTimeouts};
use landfall_item::lockfile::Lock;
use landfall_model::Digest;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Semaphore;
use world::{Command, DAY, HOUR, NO_LIMIT, assert_there, quick, run, small, world};

mod gate;
mod world;

/// The number of rounds of a long loop: `rounds` times the value of `LANDFALL_TEST_ROUNDS`.
fn rounds(rounds: usize) -> usize {
    let factor = std::env::var("LANDFALL_TEST_ROUNDS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1);
    rounds * std::cmp::max(factor, 1)
}

/// All orders in which each of two actors sends three requests.
fn orders() -> Vec<Schedule> {
    // bit `at` of the mask says which actor is the next; 2 passes are one request
    let mask_of_three = (0_u32..64).filter(|mask| mask.count_ones() == 3);
    mask_of_three
        .map(|mask| {
            (0..6)
                .map(|at| (usize::from(mask & (1 << at) != 0), 2))
                .collect()
        })
        .collect()
}

#[test]
fn a_pull_and_a_gc_lose_no_content_if_either_is_halted_at_any_point() {
    let world = small();
    let gc = Command::Gc(Some(1));
    let pull = Command::Pull(0);
    let cases: [(Emulator, [&[Command]; 2]); 4] = [
        (world.condemned(), [&[gc], &[pull]]),
        (world.condemned_with_claim(), [&[gc], &[pull]]),
        (world.unused(), [&[gc], &[pull]]),
        // another gc deletes the same content meanwhile
        (world.condemned(), [&[gc], &[gc, pull]]),
    ];
    let halt_everywhere = |from: Emulator, commands: [&[Command]; 2]| {
        let alone = vec![(0, NO_LIMIT)];
        let (ended, passed) = world.together(&from.copy(), commands, &alone, [NO_LIMIT; 2]);
        assert!(
            ended.concat().iter().all(Result::is_ok) && passed.iter().all(|count| *count > 10),
            "{passed:?}"
        );
        // each actor is halted at every pass, and the other runs to its end meanwhile
        for actor in [0, 1] {
            for at in 0..=passed[actor] {
                world.check(
                    &from,
                    commands,
                    &vec![(actor, at), (1 - actor, NO_LIMIT)],
                    [NO_LIMIT; 2],
                );
            }
        }
    };
    std::thread::scope(|scope| {
        for (from, commands) in cases {
            let halt_everywhere = &halt_everywhere;
            scope.spawn(move || halt_everywhere(from, commands));
        }
    });
}

#[test]
fn a_list_that_is_read_during_a_gc_names_only_kept_blobs() {
    let world = small();
    let from = world.condemned_after_listed();
    for at in 0..20 {
        let store = from.copy();
        let gate = Gate::new(&vec![(0, at), (1, NO_LIMIT)], [NO_LIMIT; 2]);
        let buckets = [0, 1].map(|actor| store.bucket(actor, gate.hook()));
        let [reader, cleaner] = buckets;
        let opened = std::thread::scope(|scope| {
            let reading = scope.spawn(|| {
                let opened = world.runtime.block_on(BucketStore::open(reader, quick()));
                gate.end(0);
                opened
            });
            world
                .runtime
                .block_on(run(Command::Gc(Some(1)), cleaner, &world, quick()))
                .unwrap();
            gate.end(1);
            reading.join().unwrap().unwrap()
        });
        let digests = world.locks.iter().flat_map(Lock::digests);
        let listed: Vec<_> = digests
            .filter(|digest| opened.known_size(digest).is_some())
            .collect();
        assert!(!listed.is_empty(), "halted at {at}");
        for digest in listed {
            assert!(
                store.get(&digest.layout_path()).is_some(),
                "{digest}: halted at {at}"
            );
        }
    }
}

#[test]
fn three_requests_of_two_commands_in_all_orders_lose_nothing() {
    let world = small();
    let from = world.condemned();
    let orders = orders();
    assert_eq!(orders.len(), 20);
    let pairs = [
        [Command::Gc(Some(1)), Command::Pull(0)],
        [Command::Gc(Some(1)), Command::Publish(0)],
        [Command::Gc(Some(1)), Command::Pack(0)],
        [Command::Pull(0), Command::Pull(0)],
        [Command::Pull(0), Command::Publish(0)],
        [Command::Gc(Some(1)), Command::Gc(Some(1))],
    ];
    let mut dice = fastrand::Rng::with_seed(5);
    let all = std::env::var_os("LANDFALL_TEST_ROUNDS").is_some();
    for commands in &pairs {
        let commands = [&commands[..1], &commands[1..]];
        let [first, second] = [0, 1].map(|actor| {
            let alone = [(actor, NO_LIMIT)].to_vec();
            world
                .together(&from.copy(), commands, &alone, [NO_LIMIT; 2])
                .1[actor]
        });
        // One actor is halted at each of its requests, and then the requests follow in each order.
        // Without LANDFALL_TEST_ROUNDS, only about one in 30 of these cases is run.
        let starts = (0..first)
            .step_by(2)
            .map(|at| (0, at))
            .chain((0..second).step_by(2).map(|at| (1, at)));
        for (actor, at) in starts {
            for order in &orders {
                if all || dice.usize(..30) == 0 {
                    let begin = [(actor, at)].into_iter();
                    let schedule = begin.chain(order.iter().copied()).collect();
                    world.check(&from, commands, &schedule, [NO_LIMIT; 2]);
                }
            }
        }
    }
}

#[test]
fn random_commands_with_and_without_kills_lose_no_content() {
    let world = small();
    let mut dice = fastrand::Rng::with_seed(11);
    let command = |dice: &mut fastrand::Rng| match dice.usize(..9) {
        0..=2 => Command::Pull(dice.usize(..2)),
        3 => Command::Publish(dice.usize(..2)),
        4 => Command::Pack(dice.usize(..2)),
        5 => Command::Gc(None),
        _ => Command::Gc(Some(dice.usize(..2))),
    };
    let killed = |dice: &mut fastrand::Rng| match dice.usize(..4) {
        0 => dice.usize(..50),
        _ => NO_LIMIT,
    };
    for _ in 0..rounds(100) {
        let store = Emulator::default();
        for _ in 0..dice.usize(..6) {
            // may fail: the marker of a command that was killed makes later commands wait
            drop(world.alone(&store, command(&mut dice), killed(&mut dice)));
            store.age([HOUR, 4 * DAY, 8 * DAY][dice.usize(..3)]);
        }
        let commands = [command(&mut dice), command(&mut dice)];
        let commands = [&commands[..1], &commands[1..]];
        let schedule = (0..dice.usize(..20))
            .map(|_| (dice.usize(..2), dice.usize(1..9)))
            .collect();
        let killed_at = [killed(&mut dice), killed(&mut dice)];
        world.check(&store, commands, &schedule, killed_at);
    }
}

#[test]
fn an_upload_whose_parts_another_run_replaced_succeeds() {
    let world = world(&[Bytes::from(vec![9; 17 << 20])], [&[0], &[0]]);
    let mut resumed = 0;
    for killed_at in 0.. {
        let store = Emulator::default();
        let is_whole = world.alone(&store, Command::Pull(0), killed_at).is_ok();
        resumed += store.rename_parts();
        assert_eq!(
            world.alone(&store, Command::Pull(0), NO_LIMIT),
            Ok(()),
            "killed at {killed_at}"
        );
        assert_there(&store, &world.locks[0], &format!("killed at {killed_at}"));
        if is_whole {
            break;
        }
    }
    assert!(
        resumed > 4,
        "only {resumed} parts were uploaded when the pulls were killed"
    );
}

#[test]
fn an_upload_whose_owner_is_alive_is_not_taken_over() {
    let big = Bytes::from(vec![7; 17 << 20]);
    let hex = Digest::sha256(&big).hex();
    let world = world(&[big], [&[0], &[0]]);
    let store = Emulator::default();
    let lease = Duration::from_millis(800);
    let timeouts = StoreTimeouts {
        heartbeat: lease / 40,
        lease,
        gc_wait: Duration::ZERO,
    };
    // the first pull cannot upload part 2 until it is released, and keeps renewing its record
    let halted = Arc::new(Semaphore::new(0));
    let released = Arc::new(Semaphore::new(0));
    let is_halted = halted.clone();
    let may_go_on = released.clone();
    let owner: RequestHook = Arc::new(move |moment: RequestMoment| {
        let is_halted = is_halted.clone();
        let may_go_on = may_go_on.clone();
        Box::pin(async move {
            if moment.request.contains("partNumber=2") {
                is_halted.add_permits(1);
                may_go_on.acquire().await.unwrap().forget();
            }
            true
        })
    });
    let sent = Arc::new(Mutex::new(Vec::new()));
    let notes = sent.clone();
    let other: RequestHook = Arc::new(move |moment: RequestMoment| {
        notes.lock().unwrap().push(moment.request);
        Box::pin(async { true })
    });
    // the writes of the other pull to the blob
    let wrote = || {
        let sent = sent.lock().unwrap();
        let is_write = |request: &&String| {
            let is_read = request.starts_with("GET ") || request.starts_with("HEAD ");
            !is_read && request.contains(&hex)
        };
        sent.iter().filter(is_write).cloned().collect::<Vec<_>>()
    };
    let [owner, other] = [store.bucket(0, owner), store.bucket(1, other)];
    std::thread::scope(|scope| {
        let world = &world;
        let pull = move |bucket| {
            world
                .runtime
                .block_on(run(Command::Pull(0), bucket, world, timeouts))
        };
        let first = scope.spawn(move || pull(owner));
        world.runtime.block_on(halted.acquire()).unwrap().forget();
        let second = scope.spawn(move || pull(other));
        std::thread::sleep(lease * 2);
        let has_looked = sent
            .lock()
            .unwrap()
            .iter()
            .any(|request| request.contains("/uploads/"));
        let meanwhile = wrote();
        released.add_permits(Semaphore::MAX_PERMITS / 2);
        assert_eq!(
            [first, second].map(|pull| pull.join().unwrap()),
            [Ok(()), Ok(())]
        );
        assert!(has_looked);
        assert_eq!(meanwhile, Vec::<String>::new(), "the owner is alive");
    });
    assert_eq!(wrote(), Vec::<String>::new(), "the blob was present");
    assert_there(&store, &world.locks[0], "by its owner");
}

#[test]
fn two_pulls_whose_parts_have_random_etags_both_succeed() {
    // each blob has three parts, of which the last is short; in every third round, the first pull
    // is killed, and only the second pull must succeed
    let big = |seed: u8| {
        Bytes::from(
            (0..17 << 20)
                .map(|at: u32| (at >> 8) as u8 ^ seed)
                .collect::<Vec<u8>>(),
        )
    };
    let world = world(&[big(1), big(2)], [&[0, 1], &[0, 1]]);
    let mut dice = fastrand::Rng::with_seed(3);
    for round in 0..rounds(6) {
        let store = Emulator::default();
        store.randomize_etags();
        let schedule = (0..dice.usize(..30))
            .map(|_| (dice.usize(..2), dice.usize(1..9)))
            .collect();
        let killed_at = if round % 3 == 0 {
            [dice.usize(2..40), NO_LIMIT]
        } else {
            [NO_LIMIT; 2]
        };
        let commands: [&[Command]; 2] = [&[Command::Pull(0)], &[Command::Pull(1)]];
        let (ended, _) = world.together(&store, commands, &schedule, killed_at);
        let when = format!("{schedule:?}, killed at {killed_at:?}: {ended:?}");
        assert!(
            ended[1][0].is_ok() && (ended[0][0].is_ok() || killed_at[0] != NO_LIMIT),
            "{when}"
        );
        assert_there(&store, &world.locks[0], &when);
        let records = store.keys("uploads");
        assert!(
            records.is_empty() || killed_at[0] != NO_LIMIT,
            "{records:?} {when}"
        );
    }
}

#[test]
fn at_google_a_late_deletion_keeps_an_object_that_was_written_meanwhile() {
    let world = small();
    let one = Bytes::from("one");
    let other = Bytes::from("other");
    let store = Emulator::default();
    let is_late = Arc::new(AtomicBool::new(true));
    store.put("blobs/one", one.clone());
    store.put("blobs/other", other);
    let late = store.clone();
    let written = one.clone();
    let hook: RequestHook = Arc::new(move |moment: RequestMoment| {
        let is_meant = moment.request.starts_with("DELETE ") && moment.request.ends_with("one");
        if is_meant && is_late.swap(false, Ordering::SeqCst) {
            late.put("blobs/one", written.clone());
        }
        Box::pin(async { true })
    });
    let bucket = store.google_bucket(0, hook);
    world.runtime.block_on(async {
        let listed: Vec<BucketObject> = bucket.list("blobs").try_collect().await.unwrap();
        assert_eq!(listed.len(), 2);
        bucket.delete_listed(&listed).await.unwrap();
    });
    assert_eq!(
        (store.get("blobs/one"), store.get("blobs/other")),
        (Some(one), None)
    );
}
