//! Runs commands together on an object store in memory, by a schedule, and checks the guarantees of
//! the store.

use super::gate::{Gate, Schedule};
use crate::pull::{ShardShare, pull};
use bytes::Bytes;
use landfall_content::bucket::emulator::{Emulator, RequestHook, RequestMoment};
use landfall_content::bucket::{Bucket, block_on};
use landfall_content::store::{BucketGc, BucketStore, ServedStore, StoreTimeouts, index_list};
use landfall_content::{
    BlobRead, BlobStore, LocalSource, MemoryBlobs, present_blobs, unique_blobs,
};
use landfall_http::Activity;
use landfall_item::lockfile::Lock;
use landfall_model::report::{ItemStatus, SilentProgress};
use landfall_model::{Digest, Limits, Shard};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::runtime::Runtime;

pub(super) const HOUR: Duration = Duration::from_hours(1);
pub(super) const DAY: Duration = Duration::from_hours(24);
const GRACE: Duration = Duration::from_hours(7 * 24);
/// A number of passes of the gate that no command reaches, so that the command runs to its end.
pub(super) const NO_LIMIT: usize = usize::MAX;

/// The data of the commands: two locks that share some files.
pub(super) struct World {
    pub runtime: Runtime,
    pub source: Arc<MemoryBlobs>,
    pub locks: [Lock; 2],
}

/// A command, with the position of its lock in [`World::locks`]; for a gc, of the lock to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Command {
    Pull(usize),
    Publish(usize),
    Pack(usize),
    Gc(Option<usize>),
}

/// A world with files of these contents, and locks that list some of them by position.
pub(super) fn world(contents: &[Bytes], locks: [&[usize]; 2]) -> World {
    let named = |files: &[usize]| {
        let files = files.iter().map(|at| {
            let digest = Digest::sha256(&contents[*at]);
            let size = contents[*at].len();
            format!("- {{name: \"https://h.test/{at}\", digest: \"{digest}\", size: {size}}}\n")
        });
        Lock::parse(
            "l",
            &format!("version: 1\nfiles:\n{}", files.collect::<String>()),
        )
        .unwrap()
    };
    let blobs = contents
        .iter()
        .map(|bytes| (Digest::sha256(bytes), bytes.clone()))
        .collect();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .enable_all()
        .build()
        .unwrap();
    World {
        runtime,
        source: Arc::new(MemoryBlobs(blobs)),
        locks: locks.map(named),
    }
}

pub(super) fn small() -> World {
    let contents: Vec<Bytes> = (0..6)
        .map(|at| Bytes::from(format!("content {at}").repeat(9)))
        .collect();
    world(&contents, [&[0, 1, 2, 3, 4], &[4, 5]])
}

pub(super) async fn run(
    command: Command,
    bucket: Bucket,
    world: &World,
    timeouts: StoreTimeouts,
) -> Result<(), String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let open = BucketStore::open(bucket.clone(), timeouts);
    let claim = |store: &BucketStore, lock: &Lock| {
        let named = lock.digests().collect();
        BlobStore::claim(store, &lock.fingerprint(), &lock.to_text(), named)
            .map_err(|error| text(&error))
    };
    match command {
        Command::Pull(lock) => {
            let store = open.await.map_err(|error| text(&error))?;
            let lock = &world.locks[lock];
            claim(&store, lock)?;
            let (share, into): (_, Arc<dyn BlobStore>) =
                (ShardShare::new(lock, Shard::default()), Arc::new(store));
            let source = Arc::new(LocalSource(world.source.clone()));
            let limits = Limits {
                backoff: Duration::from_millis(2),
                attempts: 9,
                ..Limits::default()
            };
            let items = pull(
                &share,
                source,
                &into,
                limits,
                false,
                Arc::new(SilentProgress),
                &Activity::default(),
            )
            .await;
            let items = items.map_err(|error| text(&error))?;
            let failed = items
                .into_iter()
                .find(|item| item.status == ItemStatus::Failed);
            failed.map_or(Ok(()), |item| Err(item.reason.unwrap_or_default()))
        }
        Command::Publish(lock) => {
            let store = open.await.map_err(|error| text(&error))?;
            let lock = &world.locks[lock];
            claim(&store, lock)?;
            store.distrust_lists();
            let wanted = unique_blobs(lock.each_entry());
            let here = present_blobs(&store, wanted.clone(), false, &SilentProgress)
                .map_err(|error| text(&error))?;
            if wanted.len() > here.len() {
                return Err("lacks some".into());
            }
            ServedStore::Bucket(bucket)
                .publish(lock.to_text())
                .await
                .map(drop)
                .map_err(|error| text(&error))
        }
        Command::Pack(lock) => {
            let store = open.await.map_err(|error| text(&error))?;
            for blob in unique_blobs(world.locks[lock].each_entry()) {
                store.read(&blob).map_err(|error| text(&error))?;
            }
            Ok(())
        }
        Command::Gc(kept) => {
            let served = ServedStore::Bucket(bucket.clone())
                .served()
                .await
                .map_err(|error| text(&error))?;
            let served = served
                .into_iter()
                .flat_map(|(_, lock, before)| [Some(lock), before])
                .flatten();
            let served: Vec<Lock> = served
                .map(|text| Lock::parse("l", &text).unwrap())
                .collect();
            let keep = kept
                .map(|lock| &world.locks[lock])
                .into_iter()
                .chain(&served);
            let names = |claim: &[u8]| {
                let lock = Lock::parse("l", std::str::from_utf8(claim).ok()?).ok()?;
                Some(lock.digests().collect())
            };
            let keep = keep.flat_map(Lock::digests).collect();
            let grace = GRACE;
            let now = SystemTime::now();
            let sweep = BucketGc {
                bucket: &bucket,
                keep,
                names: &names,
                grace,
                now,
                dry_run: false,
            };
            sweep.run().await.map(drop).map_err(|error| text(&error))
        }
    }
}

impl World {
    /// Runs the commands of two actors together by a schedule. Returns the result of each command,
    /// and how often each actor passed the gate.
    pub(super) fn together(
        &self,
        store: &Emulator,
        commands: [&[Command]; 2],
        schedule: &Schedule,
        killed_at: [usize; 2],
    ) -> ([Vec<Result<(), String>>; 2], [usize; 2]) {
        let gate = Gate::new(schedule, killed_at);
        let ended = std::thread::scope(|scope| {
            let running = [0, 1].map(|actor| {
                let (gate, bucket) = (&gate, store.bucket(actor, gate.hook()));
                scope.spawn(move || {
                    let ended = commands[actor].iter().map(|command| {
                        self.runtime
                            .block_on(run(*command, bucket.clone(), self, quick()))
                    });
                    let ended = ended.collect();
                    gate.end(actor);
                    ended
                })
            });
            running.map(|thread| thread.join().unwrap())
        });
        (ended, gate.passed())
    }

    /// Runs one command without any other. It is killed after `killed_at` passes of the gate, two
    /// per request.
    pub(super) fn alone(
        &self,
        store: &Emulator,
        command: Command,
        killed_at: usize,
    ) -> Result<(), String> {
        let gate = Gate::new(&Vec::new(), [killed_at; 2]);
        self.runtime
            .block_on(run(command, store.bucket(0, gate.hook()), self, quick()))
    }

    /// Runs the commands of two actors together, and checks that their reports are true and
    /// that the store is usable afterwards.
    pub(super) fn check(
        &self,
        from: &Emulator,
        commands: [&[Command]; 2],
        schedule: &Schedule,
        killed_at: [usize; 2],
    ) {
        let store = from.copy();
        let (ended, _) = self.together(&store, commands, schedule, killed_at);
        let when = format!("{commands:?} by {schedule:?}, killed at {killed_at:?}: {ended:?}");
        let is_killed = killed_at.iter().any(|at| *at != NO_LIMIT);
        let commands = commands.concat();
        let ended = ended.concat();
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
        let pointer = block_on({
            let served_store =
                ServedStore::Bucket(store.bucket(0, Arc::new(|_| Box::pin(async { true }))));
            async move { Ok(served_store.served().await.unwrap()) }
        });
        for text in pointer
            .unwrap()
            .into_iter()
            .flat_map(|(_, lock, before)| [Some(lock), before])
            .flatten()
        {
            assert_there(
                &store,
                &Lock::parse("l", &text).unwrap(),
                &format!("published, {when}"),
            );
        }
        // content that the store reported to a pull as present is present for other commands too
        for (command, ended) in commands.iter().zip(&ended) {
            if let (Command::Pull(lock), Ok(()), false) = (command, ended, is_killed) {
                let published = self.alone(&store.copy(), Command::Publish(*lock), NO_LIMIT);
                assert!(published.is_ok(), "{published:?}: {when}");
            }
        }
        // the content stays for the grace period, and can be packed
        if is_killed {
            store.age(HOUR);
        }
        self.alone(&store, Command::Gc(None), NO_LIMIT).unwrap();
        for (command, ended) in commands.iter().zip(&ended) {
            let (Command::Pull(lock), Ok(())) = (command, ended) else {
                continue;
            };
            assert_there(&store, &self.locks[*lock], &format!("a gc later, {when}"));
            let packed = self.alone(&store, Command::Pack(*lock), NO_LIMIT);
            assert!(packed.is_ok(), "{packed:?}: {when}");
        }
        // later commands succeed, so no marker or record is left that blocks them
        for lock in [0, 1] {
            let pulled = self.alone(&store, Command::Pull(lock), NO_LIMIT);
            assert!(pulled.is_ok(), "{pulled:?}: {when}");
            assert_there(&store, &self.locks[lock], &format!("pulled again, {when}"));
            let packed = self.alone(&store, Command::Pack(lock), NO_LIMIT);
            assert!(packed.is_ok(), "{packed:?}: {when}");
        }
    }

    /// A store in which the content of both locks has been unused for longer than the grace period
    /// and is not condemned. All claims have expired.
    pub(super) fn unused(&self) -> Emulator {
        let store = Emulator::default();
        for lock in [0, 1] {
            self.alone(&store, Command::Pull(lock), NO_LIMIT).unwrap();
        }
        store.age(10 * DAY);
        store
    }

    /// A store in which the content that only the first lock names was condemned long ago, and no
    /// claim is left.
    pub(super) fn condemned(&self) -> Emulator {
        let store = self.unused();
        self.alone(&store, Command::Gc(Some(1)), NO_LIMIT).unwrap();
        store.age(10 * DAY);
        store
    }

    /// Like [`World::condemned`], with a list that contains one of the condemned blobs. Another run
    /// wrote the list while the content was being condemned.
    pub(super) fn condemned_after_listed(&self) -> Emulator {
        let store = self.unused();
        let [first, second] = &self.locks;
        let digest = first
            .digests()
            .find(|digest| second.digests().all(|other| other != *digest))
            .unwrap();
        let size = store.get(&digest.layout_path()).unwrap().len() as u64;
        let (key, packed) = index_list([(digest, size)]).unwrap();
        let other = store.clone();
        let hook: RequestHook = Arc::new(move |moment: RequestMoment| {
            if moment.request.starts_with("PUT /at/condemned") && other.get(&key).is_none() {
                other.put(&key, packed.clone());
                // times of objects are in milliseconds, and the list must be older than the marker
                std::thread::sleep(Duration::from_millis(3));
            }
            Box::pin(async { true })
        });
        let gc = run(Command::Gc(Some(1)), store.bucket(0, hook), self, quick());
        self.runtime.block_on(gc).unwrap();
        assert_eq!(store.keys("index").len(), 2);
        store.age(10 * DAY);
        store
    }

    /// Like [`World::condemned`], with the expired claim of a pull that was killed right after it
    /// wrote the claim.
    pub(super) fn condemned_with_claim(&self) -> Emulator {
        let store = self.unused();
        self.alone(&store, Command::Gc(Some(1)), NO_LIMIT).unwrap();
        for killed_at in 0.. {
            drop(self.alone(&store, Command::Pull(0), killed_at));
            if !store.keys("claims").is_empty() {
                break;
            }
        }
        store.age(10 * DAY);
        store
    }
}

/// Asserts that the store has everything that the lock lists, byte for byte.
pub(super) fn assert_there(store: &Emulator, lock: &Lock, when: &str) {
    for digest in lock.digests() {
        let found = store.get(&digest.layout_path());
        assert!(
            found.is_some_and(|bytes| digest.matches(&bytes)),
            "{digest} is not there: {when}"
        );
    }
}

pub(super) fn quick() -> StoreTimeouts {
    let beat = Duration::from_millis(5);
    StoreTimeouts {
        heartbeat: beat,
        lease: 6 * beat,
        gc_wait: Duration::ZERO,
    }
}
