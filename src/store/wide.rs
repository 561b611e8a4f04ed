//! One big blob over several connections, where others stand idle: at the end of a run.
//!
//! The first connection goes in order, and hashes. A helper takes the second half of what the busiest of
//! the others has before it, so that all end at about the same time; it asks for the rest of the blob and
//! hangs up where the next part begins. What helpers bring is written where it belongs, recorded in a
//! journal, and hashed when the first connection comes there.

use super::islands::{Island, Journal, merged};
use super::transfer::{blocking, fetch};
use super::{Disk, Source, TransferError, Writer};
use crate::http::ErrorKind;
use crate::report::{Progress, Side};
use crate::source::{From, Part};
use futures_util::StreamExt;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;

/// The smallest blob that is fetched over several connections, in bytes.
const WIDE: u64 = 64 << 20;
/// The least that a helper takes, in bytes: less is not worth a connection.
const SHARE: u64 = 8 << 20;
/// How much is written between two lines of the journal, in bytes: so much is fetched again after a kill.
const STEP: u64 = 4 << 20;
/// How many helpers may fail before no more are sent.
const FAILURES: u32 = 4;

/// Lanes of a run that stand idle near its end.
#[derive(Debug, Clone)]
pub struct Lanes {
    free: Arc<Semaphore>,
    all_begun: watch::Receiver<bool>,
    /// Whether a place honours `Range`, as far as it was seen in this run.
    ranges: Arc<Mutex<HashMap<String, bool>>>,
}

impl Lanes {
    /// `free` has one permit for each transfer that may be under way; `all_begun` turns true when each of
    /// the run has begun.
    pub fn new(free: Arc<Semaphore>, all_begun: watch::Receiver<bool>) -> Lanes {
        Lanes { free, all_begun, ranges: Arc::default() }
    }

    /// The next idle lane.
    async fn next(&self) -> OwnedSemaphorePermit {
        let mut all_begun = self.all_begun.clone();
        if all_begun.wait_for(|begun| *begun).await.is_ok()
            && let Ok(permit) = self.free.clone().acquire_owned().await
        {
            return permit;
        }
        std::future::pending().await
    }
}

/// Brings one part into the store as [`fetch`] does, a big one with helpers on idle `lanes`.
///
/// # Errors
/// Which side failed, after all attempts.
pub async fn fetch_wide(
    source: &Arc<dyn Source>,
    disk: &Disk,
    part: &Part,
    progress: &Arc<dyn Progress>,
    lanes: &Lanes,
) -> Result<u64, TransferError> {
    if part.descriptor.size < WIDE {
        return fetch(&**source, disk, part, &**progress).await;
    }
    let (mut received, mut failures) = (0, 0);
    loop {
        let (store, descriptor) = (disk.clone(), part.descriptor.clone());
        let opened = blocking(move || Writer::open(store, &descriptor, true)).await?;
        let Some((writer, islands)) = opened else { return Ok(received) };
        let (file, journal) = writer.apart()?;
        let crew = Arc::new(Crew {
            source: source.clone(),
            part: part.clone(),
            progress: progress.clone(),
            file,
            journal,
            plan: Mutex::new(Plan::new(part.descriptor.size, writer.offset(), islands)),
            moved: Notify::new(),
            news: Notify::new(),
            received: AtomicU64::new(0),
            failures: AtomicU32::new(0),
        });
        crew.record(0, writer.offset());
        let result = crew.fetch(writer, lanes).await;
        let new = crew.received.load(Ordering::Relaxed);
        received += new;
        match result {
            Ok(()) => return Ok(received),
            Err(error) if error.kind == ErrorKind::Network => {
                failures = if new > 0 { 0 } else { failures + 1 };
                if failures >= source.limits().attempts {
                    return Err(error);
                }
                tokio::time::sleep(Duration::from_millis(200 << failures)).await;
            }
            // wrong bytes, or no ranges: once more, in order
            Err(error) if error.kind == ErrorKind::Invalid && error.side == Side::Source => break,
            Err(error) => return Err(error),
        }
    }
    Ok(received + fetch(&**source, disk, part, &**progress).await?)
}

/// All who work at one blob.
struct Crew {
    source: Arc<dyn Source>,
    part: Part,
    progress: Arc<dyn Progress>,
    file: File,
    journal: Journal,
    plan: Mutex<Plan>,
    /// A helper came to its end.
    moved: Notify,
    /// The first connection has work that can be shared, or it was learned whether ranges are honoured.
    news: Notify,
    received: AtomicU64,
    failures: AtomicU32,
}

impl Crew {
    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is lost of the journal is fetched again, no more.
    fn record(&self, from: u64, to: u64) {
        let _ = self.journal.add((from, to));
    }

    fn came(&self, bytes: usize) {
        self.received.fetch_add(bytes as u64, Ordering::Relaxed);
        self.progress.bytes(bytes as u64);
    }

    async fn fetch(self: &Arc<Self>, writer: Writer, lanes: &Lanes) -> Result<(), TransferError> {
        let place = place(&self.part);
        let mut helpers = JoinSet::new();
        let mut first = std::pin::pin!(self.in_order(writer));
        let result = loop {
            let known = lanes.ranges.lock().ok().and_then(|ranges| ranges.get(&place).copied());
            // the first helper finds out whether ranges are honoured
            let useful =
                known.unwrap_or(helpers.is_empty()) && self.failures.load(Ordering::Relaxed) < FAILURES;
            let wanted = useful && self.plan().share().is_some();
            tokio::select! {
                result = &mut first => break result,
                lane = lanes.next(), if wanted => {
                    let (crew, ranges, place) = (self.clone(), lanes.ranges.clone(), place.clone());
                    helpers.spawn(async move {
                        let learn = |honoured| {
                            if let Ok(mut ranges) = ranges.lock() {
                                ranges.insert(place.clone(), honoured);
                            }
                            crew.news.notify_one();
                        };
                        crew.help(learn).await;
                        drop(lane);
                    });
                }
                Some(_) = helpers.join_next(), if !helpers.is_empty() => {}
                () = self.news.notified() => {}
            }
        };
        // they hold the file, and so its lock
        helpers.shutdown().await;
        let writer = result?;
        blocking(move || writer.commit()).await
    }

    /// The first connection: everything in order, what helpers brought included.
    async fn in_order(&self, mut writer: Writer) -> Result<Writer, TransferError> {
        while writer.offset() < self.part.descriptor.size {
            let next = self.plan().next(writer.offset());
            match next {
                Next::Wait => self.moved.notified().await,
                Next::Absorb(end) => {
                    writer = blocking(move || writer.absorb(end).map(|()| writer)).await?;
                    self.record(0, writer.offset());
                }
                Next::Fetch => {
                    self.news.notify_one();
                    self.pump(&mut writer).await?;
                }
            }
        }
        Ok(writer)
    }

    async fn pump(&self, writer: &mut Writer) -> Result<(), TransferError> {
        let (start, mut stream) =
            self.source.open(&self.part, writer.offset()).await.map_err(TransferError::source)?;
        if start != writer.offset() {
            let message = format!("{}: its host honours no ranges", self.part.descriptor.digest);
            return Err(TransferError::new(Side::Source, ErrorKind::Invalid, message));
        }
        let mut recorded = writer.offset();
        loop {
            let end = self.plan().first.1;
            if writer.offset() >= end {
                return Ok(());
            }
            let Some(bytes) = stream.next().await else {
                let message = format!(
                    "{}: the answer ended after {} bytes",
                    self.part.descriptor.digest,
                    writer.offset()
                );
                return Err(TransferError::new(Side::Source, ErrorKind::Network, message));
            };
            let bytes = bytes.map_err(TransferError::source)?;
            let end = self.plan().first.1;
            let piece = &bytes[..bytes
                .len()
                .min(usize::try_from(end.saturating_sub(writer.offset())).unwrap_or(usize::MAX))];
            writer.write(piece)?;
            self.came(piece.len());
            self.plan().first.0 = writer.offset();
            if writer.offset() - recorded >= STEP {
                recorded = writer.offset();
                self.record(0, recorded);
            }
        }
    }

    /// A helper: takes a share, and brings it where it belongs.
    async fn help(&self, learn: impl Fn(bool)) {
        let Some((helper, from)) = self.plan().take() else { return };
        let brought = self.bring(helper, from, learn).await;
        if brought.is_err() {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
        self.plan().end(helper);
        self.moved.notify_one();
    }

    async fn bring(&self, helper: u64, from: u64, learn: impl Fn(bool)) -> Result<(), TransferError> {
        let (start, mut stream) = self.source.open(&self.part, from).await.map_err(TransferError::source)?;
        learn(start == from);
        if start != from {
            return Ok(());
        }
        let (mut at, mut recorded) = (from, from);
        while let Some(bytes) = stream.next().await {
            let bytes = bytes.map_err(TransferError::source)?;
            let end = self.plan().helpers.get(&helper).map_or(at, |work| work.end);
            let piece =
                &bytes[..bytes.len().min(usize::try_from(end.saturating_sub(at)).unwrap_or(usize::MAX))];
            let written = self.file.write_all_at(piece, at);
            written.map_err(|error| {
                TransferError::new(Side::Destination, ErrorKind::Local, error.to_string())
            })?;
            self.came(piece.len());
            at += piece.len() as u64;
            if at - recorded >= STEP || at >= end {
                self.record(recorded, at);
                recorded = at;
            }
            if let Some(work) = self.plan().helpers.get_mut(&helper) {
                work.at = at;
            }
            if at >= end {
                return Ok(());
            }
        }
        let message = format!("{}: the answer ended after {at} bytes", self.part.descriptor.digest);
        Err(TransferError::new(Side::Source, ErrorKind::Network, message))
    }
}

/// Where a part comes from, as far as that matters for ranges.
fn place(part: &Part) -> String {
    match &part.from {
        From::Blob { registry, .. } | From::Manifest { registry, .. } | From::Foreign { registry, .. } => {
            registry.clone()
        }
        From::Url(url) => url.split('/').nth(2).unwrap_or(url).to_owned(),
        From::Computed(_) | From::Trimmed { .. } => String::new(),
    }
}

/// Who does what.
#[derive(Debug)]
struct Plan {
    size: u64,
    /// The work of the first connection: from where it stands, which everything is hashed up to, to its end.
    first: Island,
    /// The work of each helper.
    helpers: BTreeMap<u64, Work>,
    /// What is there behind the first connection.
    done: Vec<Island>,
    /// How many helpers there were.
    count: u64,
}

/// The work of a helper. Its end comes nearer when another takes the second half.
#[derive(Debug, Clone, Copy)]
struct Work {
    from: u64,
    at: u64,
    end: u64,
}

/// What the first connection does next.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    /// Take in what is there, up to this offset.
    Absorb(u64),
    /// Wait for a helper.
    Wait,
    /// Fetch its work.
    Fetch,
}

impl Plan {
    fn new(size: u64, at: u64, done: Vec<Island>) -> Plan {
        Plan { size, first: (at, at), helpers: BTreeMap::new(), done, count: 0 }
    }

    /// What the first connection does at `at`. Where that is fetching, its work is set.
    fn next(&mut self, at: u64) -> Next {
        self.first = (at, at);
        if let Some((_, to)) = self.done.iter().find(|(from, to)| *from <= at && at < *to) {
            return Next::Absorb(*to);
        }
        match self.helpers.values().find(|work| work.from <= at && at < work.end) {
            Some(work) if work.at > at => Next::Absorb(work.at),
            Some(_) => Next::Wait,
            None => {
                let taken = self.taken().into_iter().map(|(from, _)| from);
                self.first.1 = taken.filter(|from| *from > at).min().unwrap_or(self.size);
                Next::Fetch
            }
        }
    }

    /// What is there or somebody's work, the first connection's apart.
    fn taken(&self) -> Vec<Island> {
        let helpers = self.helpers.values().map(|work| (work.from, work.end));
        self.done.iter().copied().chain(helpers).collect()
    }

    /// The largest of what nobody does and of the second halves of what others have before them, if it is
    /// worth a connection.
    fn share(&self) -> Option<Island> {
        let half = |(at, end): Island| (at + (end - at).div_ceil(2), end);
        let halves = self.helpers.values().map(|work| (work.at, work.end)).chain([self.first]).map(half);
        let mut taken = self.taken();
        taken.push((0, self.first.1));
        let taken = merged(taken);
        let ends = taken.iter().skip(1).map(|(from, _)| *from).chain([self.size]);
        let gaps = taken.iter().map(|(_, to)| *to).zip(ends);
        halves.chain(gaps).max_by_key(|(from, end)| end - from).filter(|(from, end)| end - from >= SHARE)
    }

    /// Gives a helper a number and its share: from where to begin.
    fn take(&mut self) -> Option<(u64, u64)> {
        let (from, end) = self.share()?;
        if self.first.0 < from && self.first.1 == end {
            self.first.1 = from;
        }
        if let Some(work) = self.helpers.values_mut().find(|work| work.at < from && work.end == end) {
            work.end = from;
        }
        self.count += 1;
        self.helpers.insert(self.count, Work { from, at: from, end });
        Some((self.count, from))
    }

    /// A helper came to its end, or broke off: what it brought is there, the rest is nobody's.
    fn end(&mut self, helper: u64) {
        if let Some(work) = self.helpers.remove(&helper) {
            self.done.push((work.from, work.at));
            self.done = merged(std::mem::take(&mut self.done));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const M: u64 = 1 << 20;

    #[test]
    fn helpers_take_second_halves_and_what_nobody_does() {
        let mut plan = Plan::new(128 * M, 0, vec![(96 * M, 112 * M)]);
        assert_eq!(plan.next(0), Next::Fetch);
        assert_eq!(plan.first, (0, 96 * M));
        assert_eq!(plan.take(), Some((1, 48 * M)));
        assert_eq!(plan.first, (0, 48 * M));
        // the half of 48 MiB, the half of the helper's 48 MiB, 16 MiB at the end: the last of equals
        assert_eq!(plan.share().map(|(from, end)| end - from), Some(24 * M));
        let shares: Vec<u64> = std::iter::from_fn(|| plan.take()).map(|(_, from)| from / M).collect();
        assert!(shares.contains(&112), "{shares:?}");
        assert!(plan.share().is_none_or(|(from, end)| end - from >= SHARE));
        let mut all: Vec<Island> = plan.taken();
        all.push(plan.first);
        assert_eq!(merged(all), [(0, 128 * M)]);
    }

    #[test]
    fn the_first_connection_takes_in_what_helpers_brought() {
        let mut plan = Plan::new(64 * M, 0, vec![]);
        plan.next(0);
        let (helper, from) = plan.take().unwrap();
        assert_eq!((from, plan.first.1), (32 * M, 32 * M));
        assert_eq!(plan.next(from), Next::Wait);
        plan.helpers.get_mut(&helper).unwrap().at = 40 * M;
        assert_eq!(plan.next(from), Next::Absorb(40 * M));
        // it breaks off: what it brought stays, the rest is fetched
        plan.end(helper);
        assert_eq!(plan.next(from), Next::Absorb(40 * M));
        assert_eq!((plan.next(40 * M), plan.first), (Next::Fetch, (40 * M, 64 * M)));
    }
}
