//! Commands against each other on one object store: what one of them was told to be there is there afterwards.
//!
//! Each request of a command passes a gate before it takes effect and after that, so that a schedule decides where one
//! command is halted while the other goes on. A schedule that fails is shown with the state that it began from.

use super::gate::{Gate, Schedule};
use super::gc::Sweep;
use super::patience::Patience;
use super::state::Objects;
use crate::bucket::emulator::{Emulator, Hook, Moment};
use crate::bucket::{Bucket, Object, wait};
use crate::content::{BlobRead, LocalSource, Memory, Store, held, stored_once};
use crate::http::Activity;
use crate::lockfile::Lock;
use crate::model::{Digest, Limits, Shard};
use crate::pull::{Share, pull};
use crate::report::{Silent, Status};
use crate::store::Shelf;
use bytes::Bytes;
use futures_util::TryStreamExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};
use tokio::runtime::Runtime;

const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);
const GRACE: Duration = Duration::from_hours(7 * 24);
const FOR_GOOD: usize = usize::MAX;

/// What the commands are about: two locks that share some files.
struct World {
    runtime: Runtime,
    source: Arc<Memory>,
    locks: [Lock; 2],
}

/// A command, with the lock that it is about, or that a gc keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Command {
    Pull(usize),
    Publish(usize),
    Pack(usize),
    Gc(Option<usize>),
}

/// Files of these contents, and the locks that name some of them.
fn world(contents: &[Bytes], locks: [&[usize]; 2]) -> World {
    let named = |files: &[usize]| {
        let files = files.iter().map(|at| {
            let (digest, size) = (Digest::sha256(&contents[*at]), contents[*at].len());
            format!("- {{name: \"https://h.test/{at}\", digest: \"{digest}\", size: {size}}}\n")
        });
        Lock::parse("l", &format!("version: 1\nfiles:\n{}", files.collect::<String>())).unwrap()
    };
    let blobs = contents.iter().map(|bytes| (Digest::sha256(bytes), bytes.clone())).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
    World { runtime, source: Arc::new(Memory(blobs)), locks: locks.map(named) }
}

fn small() -> World {
    let contents: Vec<Bytes> = (0..6).map(|at| Bytes::from(format!("content {at}").repeat(9))).collect();
    world(&contents, [&[0, 1, 2, 3, 4], &[4, 5]])
}

async fn run(command: Command, bucket: Bucket, world: &World, patience: Patience) -> Result<(), String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let open = Objects::open(bucket.clone(), patience);
    let claim = |store: &Objects, lock: &Lock| {
        let named = lock.digests().collect();
        Store::claim(store, &lock.fingerprint(), &lock.to_text(), named).map_err(|error| text(&error))
    };
    match command {
        Command::Pull(lock) => {
            let (store, lock) = (open.await.map_err(|error| text(&error))?, &world.locks[lock]);
            claim(&store, lock)?;
            let (share, into): (_, Arc<dyn Store>) = (Share::new(lock, Shard::default()), Arc::new(store));
            let source = Arc::new(LocalSource(world.source.clone()));
            let watching = (Arc::new(Silent) as _, &Activity::default());
            let limits = Limits { backoff: Duration::from_millis(2), attempts: 9, ..Limits::default() };
            let items = pull(&share, source, &into, limits, false, watching).await;
            let items = items.map_err(|error| text(&error))?;
            let failed = items.into_iter().find(|item| item.status == Status::Failed);
            failed.map_or(Ok(()), |item| Err(item.reason.unwrap_or_default()))
        }
        Command::Publish(lock) => {
            let (store, lock) = (open.await.map_err(|error| text(&error))?, &world.locks[lock]);
            claim(&store, lock)?;
            store.doubt_lists();
            let wanted = stored_once(lock.each_entry());
            let here = held(&store, wanted.clone(), false, &Silent).map_err(|error| text(&error))?;
            if wanted.len() > here.len() {
                return Err("lacks some".into());
            }
            Shelf::Bucket(bucket).publish(lock.to_text()).await.map(drop).map_err(|error| text(&error))
        }
        Command::Pack(lock) => {
            let store = open.await.map_err(|error| text(&error))?;
            for blob in stored_once(world.locks[lock].each_entry()) {
                store.read(&blob).map_err(|error| text(&error))?;
            }
            Ok(())
        }
        Command::Gc(kept) => {
            let served = Shelf::Bucket(bucket.clone()).served().await.map_err(|error| text(&error))?;
            let served = served.into_iter().flat_map(|(_, lock, before)| [Some(lock), before]).flatten();
            let served: Vec<Lock> = served.map(|text| Lock::parse("l", &text).unwrap()).collect();
            let keep = kept.map(|lock| &world.locks[lock]).into_iter().chain(&served);
            let names = |claim: &[u8]| {
                let lock = Lock::parse("l", std::str::from_utf8(claim).ok()?).ok()?;
                Some(lock.digests().collect())
            };
            let keep = keep.flat_map(Lock::digests).collect();
            let (grace, now) = (GRACE, SystemTime::now());
            let sweep = Sweep { bucket: &bucket, keep, names: &names, grace, now, dry_run: false };
            sweep.run().await.map(drop).map_err(|error| text(&error))
        }
    }
}

impl World {
    /// Runs two commands together by a schedule. Returns what came of each, and how often it passed the gate.
    fn together(
        &self,
        store: &Emulator,
        commands: [Command; 2],
        schedule: &Schedule,
        (patience, killed_at): (Patience, [usize; 2]),
    ) -> ([Result<(), String>; 2], [usize; 2]) {
        let gate = Gate::new(schedule, killed_at);
        let ended = std::thread::scope(|scope| {
            let running = [0, 1].map(|actor| {
                let (gate, bucket) = (&gate, store.bucket(actor, gate.hook()));
                scope.spawn(move || {
                    let ended = self.runtime.block_on(run(commands[actor], bucket, self, patience));
                    gate.end(actor);
                    ended
                })
            });
            running.map(|thread| thread.join().unwrap())
        });
        (ended, gate.passed())
    }

    /// Runs a command alone, which is killed after so many halves of requests.
    fn alone(&self, store: &Emulator, command: Command, killed_at: usize) -> Result<(), String> {
        let gate = Gate::new(&Vec::new(), [killed_at; 2]);
        self.runtime.block_on(run(command, store.bucket(0, gate.hook()), self, quick()))
    }

    /// Runs two commands together, and checks what they promise.
    fn check(&self, from: &Emulator, commands: [Command; 2], schedule: &Schedule, killed_at: [usize; 2]) {
        let store = from.copy();
        let (ended, _) = self.together(&store, commands, schedule, (quick(), killed_at));
        let when = format!("{commands:?} by {schedule:?}, killed at {killed_at:?}: {ended:?}");
        let is_killed = killed_at.iter().any(|at| *at != FOR_GOOD);
        for (command, ended) in commands.iter().zip(&ended) {
            match (command, ended) {
                (Command::Pull(lock) | Command::Publish(lock), Ok(())) => {
                    assert_there(&store, &self.locks[*lock], &when);
                }
                (Command::Pull(_), Err(error)) if !is_killed => {
                    assert!(error.contains("`landfall gc` is deleting"), "{when}");
                }
                (Command::Gc(_), Err(error)) if !is_killed => panic!("{error}: {when}"),
                _ => {}
            }
        }
        let pointer = wait({
            let shelf = Shelf::Bucket(store.bucket(0, Arc::new(|_| Box::pin(async { true }))));
            async move { Ok(shelf.served().await.unwrap()) }
        });
        for text in pointer.unwrap().into_iter().flat_map(|(_, lock, before)| [Some(lock), before]).flatten()
        {
            assert_there(&store, &Lock::parse("l", &text).unwrap(), &format!("published, {when}"));
        }
        // what a run was told holds for the grace period, and it can be packed
        if is_killed {
            store.age(HOUR);
        }
        self.alone(&store, Command::Gc(None), FOR_GOOD).unwrap();
        for (command, ended) in commands.iter().zip(ended) {
            let (Command::Pull(lock), Ok(())) = (command, ended) else { continue };
            assert_there(&store, &self.locks[*lock], &format!("a gc later, {when}"));
            let packed = self.alone(&store, Command::Pack(*lock), FOR_GOOD);
            assert!(packed.is_ok(), "{packed:?}: {when}");
        }
        // nothing is wedged
        for lock in [0, 1] {
            let pulled = self.alone(&store, Command::Pull(lock), FOR_GOOD);
            assert!(pulled.is_ok(), "{pulled:?}: {when}");
            assert_there(&store, &self.locks[lock], &format!("pulled again, {when}"));
            let packed = self.alone(&store, Command::Pack(lock), FOR_GOOD);
            assert!(packed.is_ok(), "{packed:?}: {when}");
        }
    }

    /// A store in which all that the first lock alone names was condemned long ago, and no claim counts.
    fn condemned(&self) -> Emulator {
        let store = Emulator::default();
        for lock in [0, 1] {
            self.alone(&store, Command::Pull(lock), FOR_GOOD).unwrap();
        }
        store.age(10 * DAY);
        self.alone(&store, Command::Gc(Some(1)), FOR_GOOD).unwrap();
        store.age(10 * DAY);
        store
    }
}

/// Whether what the lock names is there, byte for byte.
fn assert_there(store: &Emulator, lock: &Lock, when: &str) {
    for digest in lock.digests() {
        let found = store.get(&super::keys::blob(&digest));
        assert!(found.is_some_and(|bytes| digest.matches(&bytes)), "{digest} is not there: {when}");
    }
}

fn quick() -> Patience {
    let beat = Duration::from_millis(5);
    Patience { beat, lease: 6 * beat, deletions: Duration::ZERO }
}

/// How often a long loop goes round: `rounds` times the value of `LANDFALL_TEST_ROUNDS`.
fn rounds(rounds: usize) -> usize {
    let factor = std::env::var("LANDFALL_TEST_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    rounds * std::cmp::max(factor, 1)
}

/// All orders of three requests of each actor.
fn orders() -> Vec<Schedule> {
    let mask_of_three = (0_u32..64).filter(|mask| mask.count_ones() == 3);
    mask_of_three.map(|mask| (0..6).map(|at| (usize::from(mask & (1 << at) != 0), 2)).collect()).collect()
}

#[test]
fn a_pull_and_a_gc_that_is_deleting_lose_nothing_wherever_either_is_halted() {
    let world = small();
    let from = world.condemned();
    let commands = [Command::Gc(Some(1)), Command::Pull(0)];
    let (ended, passed) =
        world.together(&from.copy(), commands, &vec![(0, FOR_GOOD)], (quick(), [FOR_GOOD; 2]));
    assert!(ended.iter().all(Result::is_ok) && passed.iter().all(|count| *count > 20), "{passed:?}");
    // each is halted once for the whole of the other
    for actor in [0, 1] {
        for at in 0..=passed[actor] {
            world.check(&from, commands, &vec![(actor, at), (1 - actor, FOR_GOOD)], [FOR_GOOD; 2]);
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
    for commands in pairs {
        let [first, second] = [0, 1].map(|actor| {
            let alone = [(actor, FOR_GOOD)].to_vec();
            world.together(&from.copy(), commands, &alone, (quick(), [FOR_GOOD; 2])).1[actor]
        });
        // from each request of either on
        let starts = (0..first).step_by(2).map(|at| (0, at)).chain((0..second).step_by(2).map(|at| (1, at)));
        for (actor, at) in starts {
            for order in &orders {
                if all || dice.usize(..30) == 0 {
                    let begin = [(actor, at)].into_iter();
                    let schedule = begin.chain(order.iter().copied()).collect();
                    world.check(&from, commands, &schedule, [FOR_GOOD; 2]);
                }
            }
        }
    }
}

#[test]
fn commands_by_chance_killed_and_not_lose_nothing() {
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
        _ => FOR_GOOD,
    };
    for _ in 0..rounds(100) {
        let store = Emulator::default();
        for _ in 0..dice.usize(..6) {
            // a marker of one that was killed makes the next ones wait
            drop(world.alone(&store, command(&mut dice), killed(&mut dice)));
            store.age([HOUR, 4 * DAY, 8 * DAY][dice.usize(..3)]);
        }
        let commands = [command(&mut dice), command(&mut dice)];
        let schedule = (0..dice.usize(..20)).map(|_| (dice.usize(..2), dice.usize(1..9))).collect();
        let killed_at = [killed(&mut dice), killed(&mut dice)];
        world.check(&store, commands, &schedule, killed_at);
    }
}

#[test]
fn two_pulls_whose_parts_have_random_etags_both_end_well() {
    // three parts each, the last a short one
    let big =
        |seed: u8| Bytes::from((0..17 << 20).map(|at: u32| (at >> 8) as u8 ^ seed).collect::<Vec<u8>>());
    let world = world(&[big(1), big(2)], [&[0, 1], &[0, 1]]);
    let mut dice = fastrand::Rng::with_seed(3);
    for round in 0..rounds(6) {
        let store = Emulator::default();
        store.randomize_etags();
        let schedule = (0..dice.usize(..30)).map(|_| (dice.usize(..2), dice.usize(1..9))).collect();
        let killed_at = if round % 3 == 0 { [dice.usize(2..40), FOR_GOOD] } else { [FOR_GOOD; 2] };
        let commands = [Command::Pull(0), Command::Pull(1)];
        let (ended, _) = world.together(&store, commands, &schedule, (quick(), killed_at));
        let when = format!("{schedule:?}, killed at {killed_at:?}: {ended:?}");
        assert!(ended[1].is_ok() && (ended[0].is_ok() || killed_at[0] != FOR_GOOD), "{when}");
        assert_there(&store, &world.locks[0], &when);
        let records = store.keys("uploads");
        assert!(records.is_empty() || killed_at[0] != FOR_GOOD, "{records:?} {when}");
    }
}

#[test]
fn at_google_a_deletion_that_comes_late_leaves_what_was_written_since() {
    let world = small();
    let (one, other) = (Bytes::from("one"), Bytes::from("other"));
    let (store, is_late) = (Emulator::default(), Arc::new(AtomicBool::new(true)));
    store.put("blobs/one", one.clone());
    store.put("blobs/other", other);
    let (late, written) = (store.clone(), one.clone());
    let hook: Hook = Arc::new(move |moment: Moment| {
        let is_meant = moment.request.starts_with("DELETE ") && moment.request.ends_with("one");
        if is_meant && is_late.swap(false, Ordering::SeqCst) {
            late.put("blobs/one", written.clone());
        }
        Box::pin(async { true })
    });
    let bucket = store.google_bucket(0, hook);
    world.runtime.block_on(async {
        let listed: Vec<Object> = bucket.list("blobs").try_collect().await.unwrap();
        assert_eq!(listed.len(), 2);
        bucket.delete_listed(&listed).await.unwrap();
    });
    assert_eq!((store.get("blobs/one"), store.get("blobs/other")), (Some(one), None));
}
