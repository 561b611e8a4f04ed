//! The transfer slots of a run: how many transfers run at the same time, and which one is next.
//!
//! Everything that reads or writes a blob during a run waits for a [`TransferSlot`]: the downloads
//! of `pull`, the uploads and mounts of `push`, and helpers that fetch ranges of a big blob. Each
//! waits in a queue, with a rank. A free slot serves one end of its own queue, or of the next queue
//! in its list if that queue is empty. Helpers wait in the last queue of the list.
//!
//! If running transfers already wait for a host, further transfers from this host are next only if
//! no other host has any. The number of running transfers per host is limited as well. So a slow
//! host does not delay transfers from other hosts.

use landfall_http::LendableSlot;
use landfall_model::locked;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tokio::sync::oneshot;
use tracing::debug;

/// The slots of a run. It is cheap to clone.
#[derive(Clone)]
pub struct TransferSlots(Arc<SlotPool>);

struct SlotPool {
    state: Mutex<SlotState>,
    /// The largest number of running transfers per host.
    per_host: usize,
}

struct SlotState {
    /// In the order in which they serve.
    kinds: Vec<SlotKind>,
    /// The last one is that of the helpers, which wait for slots that nothing else needs.
    queues: Vec<Queue>,
    hosts: HashMap<Arc<str>, HostLoad>,
    /// Distinguishes transfers of equal rank: the one that has waited longest is next.
    next_number: u64,
}

/// Slots that serve the same queues from one end.
struct SlotKind {
    /// The numbers of the queues. A queue is served if those before it in the list are empty.
    queues: Vec<usize>,
    end: QueueEnd,
    free: usize,
}

/// The end of a queue that a slot serves.
#[derive(Debug, Clone, Copy)]
enum QueueEnd {
    /// The lowest rank is next.
    First,
    /// The highest rank is next.
    Last,
}

/// The rank of what waits, and its number.
pub(super) type Place = (u64, u64);

/// Called with the slot. If it is dropped instead, nothing waits any more.
pub(super) type Waiter = Box<dyn FnOnce(TransferSlot) + Send>;

/// What waits in a queue, by host.
#[derive(Default)]
struct Queue(BTreeMap<Arc<str>, BTreeMap<Place, Waiter>>);

#[derive(Debug, Default, Clone, Copy)]
struct HostLoad {
    begun: usize,
    waiting: usize,
}

/// The right to run one transfer. Dropping it returns the slot. The slot is lent to other transfers
/// while this transfer waits for its source.
pub struct TransferSlot {
    pool: Arc<SlotPool>,
    /// The position of its kind; `None` while the slot is lent. If no slot is free when it is
    /// reclaimed, the transfer continues without a slot, and this stays `None`.
    held: Mutex<Option<usize>>,
    host: Arc<str>,
}

/// One upload slot in this many serves the smallest blob first.
const SMALLEST_FIRST: usize = 4;

impl Queue {
    /// Removes and returns what is next at this end, with its host.
    fn pop(
        &mut self,
        end: QueueEnd,
        is_open: impl Fn(&str) -> bool,
        is_waited_for: impl Fn(&str) -> bool,
    ) -> Option<(Arc<str>, Waiter)> {
        let open = self.0.iter().filter(|(host, _)| is_open(host));
        let next = match end {
            QueueEnd::First => open.min_by_key(|(host, waiting)| {
                let place = waiting.first_key_value().map(|(place, _)| *place);
                (is_waited_for(host), place)
            }),
            QueueEnd::Last => open.min_by_key(|(host, waiting)| {
                let place = waiting.last_key_value().map(|(place, _)| *place);
                (is_waited_for(host), Reverse(place))
            }),
        };
        let host = next?.0.clone();
        let waiting = self.0.get_mut(&host)?;
        let (_, waiter) = match end {
            QueueEnd::First => waiting.pop_first(),
            QueueEnd::Last => waiting.pop_last(),
        }?;
        if waiting.is_empty() {
            self.0.remove(&host);
        }
        Some((host, waiter))
    }

    /// Removes what waits at this place, if it still does.
    fn remove(&mut self, host: &str, place: Place) -> Option<Waiter> {
        let waiting = self.0.get_mut(host)?;
        let waiter = waiting.remove(&place);
        if waiting.is_empty() {
            self.0.remove(host);
        }
        waiter
    }
}

impl SlotState {
    fn change(&mut self, host: &Arc<str>, change: impl FnOnce(&mut HostLoad)) {
        change(self.hosts.entry(host.clone()).or_default());
    }

    /// Takes a free slot for whatever is next, if there are both.
    fn take(&mut self, per_host: usize) -> Option<(usize, Arc<str>, Waiter)> {
        let SlotState {
            kinds,
            queues,
            hosts,
            ..
        } = self;
        let load = |host: &str| hosts.get(host).copied().unwrap_or_default();
        let is_open = |host: &str| load(host).begun < per_host;
        let is_waited_for = |host: &str| load(host).waiting > 0;
        let free = kinds
            .iter_mut()
            .enumerate()
            .filter(|(_, kind)| kind.free > 0);
        for (number, kind) in free {
            let mut served = kind.queues.iter().copied();
            let first = served.find(|queue| !queues[*queue].0.is_empty());
            let next = first.and_then(|queue| queues[queue].pop(kind.end, is_open, is_waited_for));
            if let Some((host, waiter)) = next {
                kind.free -= 1;
                return Some((number, host, waiter));
            }
        }
        None
    }
}

impl SlotPool {
    /// Gives the free slots to what waits.
    fn dispatch(self: &Arc<Self>) {
        loop {
            // the lock is released before the waiter is called, which may drop the slot
            let taken = {
                let mut state = locked(&self.state);
                state.take(self.per_host).inspect(|(_, host, _)| {
                    state.change(host, |load| load.begun += 1);
                })
            };
            let Some((kind, host, waiter)) = taken else {
                return;
            };
            waiter(TransferSlot {
                pool: self.clone(),
                held: Mutex::new(Some(kind)),
                host,
            });
        }
    }
}

impl TransferSlots {
    /// Returns this many slots for each queue, which also serve the queues before it. At most
    /// `per_host` transfers of one host run at the same time. The slots of the last queue serve
    /// helpers, too.
    pub(super) fn new(slots: &[usize], per_host: usize) -> TransferSlots {
        let kinds = slots.iter().enumerate().map(|(queue, free)| SlotKind {
            queues: std::iter::once(queue).chain(0..queue).collect(),
            end: QueueEnd::First,
            // a limit of 0 would never begin a transfer
            free: *free.max(&1),
        });
        TransferSlots::of_kinds(kinds.collect(), slots.len(), per_host)
    }

    /// Returns `slots` slots for uploads, at least one.
    ///
    /// Most of them go to the biggest blob that waits: if its upload began late, the run would wait
    /// for it at the end. Some go to the smallest blob: small uploads are limited by the latency of
    /// the network and the registry, not by bandwidth, so if all of them came last, the network
    /// would be idle.
    pub fn for_uploads(slots: usize) -> TransferSlots {
        let slots = slots.max(1);
        let smallest = slots / SMALLEST_FIRST;
        let kinds = [
            (QueueEnd::First, slots - smallest),
            (QueueEnd::Last, smallest),
        ];
        let kinds = kinds.map(|(end, free)| SlotKind {
            queues: vec![0],
            end,
            free,
        });
        TransferSlots::of_kinds(kinds.into(), 1, slots)
    }

    /// Returns `slots` slots that only helpers use.
    pub(super) fn for_helpers(slots: usize) -> TransferSlots {
        TransferSlots::new(&[slots], slots)
    }

    /// Returns slots of these kinds, the last of which serve helpers, too: the queue with the
    /// number `helpers`.
    fn of_kinds(mut kinds: Vec<SlotKind>, helpers: usize, per_host: usize) -> TransferSlots {
        if let Some(last) = kinds.last_mut() {
            last.queues.push(helpers);
        }
        let state = SlotState {
            kinds,
            queues: (0..=helpers).map(|_| Queue::default()).collect(),
            hosts: HashMap::new(),
            next_number: 0,
        };
        TransferSlots(Arc::new(SlotPool {
            state: Mutex::new(state),
            per_host: per_host.max(1),
        }))
    }

    /// Adds a waiter to a queue. It gets no slot before [`TransferSlots::dispatch`].
    pub(super) fn enqueue(
        &self,
        queue: usize,
        host: &Arc<str>,
        rank: u64,
        waiter: Waiter,
    ) -> Place {
        let mut state = locked(&self.0.state);
        let place = (rank, state.next_number);
        state.next_number += 1;
        let waiting = state.queues[queue].0.entry(host.clone()).or_default();
        waiting.insert(place, waiter);
        place
    }

    /// Gives the free slots to what waits.
    pub(super) fn dispatch(&self) {
        self.0.dispatch();
    }

    /// Drops what waits in the queues, but not the helpers.
    pub(super) fn clear(&self) {
        let mut state = locked(&self.0.state);
        if let Some((_helpers, queues)) = state.queues.split_last_mut() {
            queues.fill_with(Queue::default);
        }
    }

    /// Whether running transfers wait for this host.
    pub(super) fn is_waited_for(&self, host: &str) -> bool {
        let state = locked(&self.0.state);
        state.hosts.get(host).is_some_and(|load| load.waiting > 0)
    }

    /// Waits for a slot for an upload of `size` bytes that are read from `host`.
    pub async fn acquire(&self, size: u64, host: &Arc<str>) -> TransferSlot {
        // lower ranks come first, so the size is subtracted
        let began = Instant::now();
        let slot = self.wait(0, host, u64::MAX - size).await;
        debug!(size, %host, waited = ?began.elapsed(), "got an upload slot");
        slot
    }

    /// Waits for a slot that nothing else needs.
    pub(super) async fn acquire_idle(&self) -> TransferSlot {
        let helpers = locked(&self.0.state).queues.len() - 1;
        self.wait(helpers, &Arc::default(), 0).await
    }

    async fn wait(&self, queue: usize, host: &Arc<str>, rank: u64) -> TransferSlot {
        let (sender, receiver) = oneshot::channel();
        let waiter = Box::new(move |slot| {
            // if the wait was cancelled, the slot is dropped here, and goes to the next
            drop(sender.send(slot));
        });
        let place = self.enqueue(queue, host, rank, waiter);
        let _cancelled = DequeueOnDrop {
            slots: self,
            queue,
            host,
            place,
        };
        // lets tasks that were spawned together queue up before the first slot is given
        tokio::task::yield_now().await;
        self.0.dispatch();
        // what waits stays in the queue until it has a slot, so the sender is not dropped before
        receiver
            .await
            .unwrap_or_else(|_| unreachable!("a slot is given to everything that waits"))
    }
}

/// Removes a wait that was cancelled from its queue.
struct DequeueOnDrop<'a> {
    slots: &'a TransferSlots,
    queue: usize,
    host: &'a Arc<str>,
    place: Place,
}

impl Drop for DequeueOnDrop<'_> {
    fn drop(&mut self) {
        let mut state = locked(&self.slots.0.state);
        drop(state.queues[self.queue].remove(self.host, self.place));
    }
}

impl TransferSlot {
    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// Puts the slot back, unless it is lent, and gives the free slots to what waits.
    fn release(&self, change: impl FnOnce(&mut HostLoad)) {
        let mut state = locked(&self.pool.state);
        state.change(&self.host, change);
        if let Some(kind) = locked(&self.held).take() {
            state.kinds[kind].free += 1;
        }
        drop(state);
        self.pool.dispatch();
    }
}

impl LendableSlot for TransferSlot {
    fn lend(&self) {
        self.release(|load| load.waiting += 1);
    }

    fn reclaim(&self) {
        let mut state = locked(&self.pool.state);
        // Does not wait: the transfer has data to read, and would stall its connection. Without a
        // free slot it continues too, so there may be more transfers than slots until one ends.
        let free = state.kinds.iter().position(|kind| kind.free > 0);
        if let Some(kind) = free {
            state.kinds[kind].free -= 1;
        }
        *locked(&self.held) = free;
        state.change(&self.host, |load| load.waiting -= 1);
        drop(state);
        // the host may no longer be waited for
        self.pool.dispatch();
    }
}

impl Drop for TransferSlot {
    fn drop(&mut self) {
        self.release(|load| load.begun -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use std::cell::RefCell;
    use std::pin::Pin;
    use std::sync::LazyLock;

    static HERE: LazyLock<Arc<str>> = LazyLock::new(Arc::default);

    /// The number of free slots.
    fn free(slots: &TransferSlots) -> usize {
        locked(&slots.0.state)
            .kinds
            .iter()
            .map(|kind| kind.free)
            .sum()
    }

    /// Frees the slot at position `at`, then each slot that an upload got. Returns the sizes of the
    /// uploads in the order in which the uploads got slots.
    async fn order(slots: usize, at: usize, sizes: &[u64]) -> Vec<u64> {
        let slots = TransferSlots::for_uploads(slots);
        let count = free(&slots);
        let mut held = Vec::new();
        for _ in 0..count {
            held.push(slots.acquire(0, &HERE).await);
        }
        let mut waiting: Vec<_> = sizes
            .iter()
            .map(|&size| (size, Box::pin(slots.acquire(size, &HERE))))
            .collect();
        for (_, wait) in &mut waiting {
            assert!(slot_after_queuing(wait).is_none());
        }
        let mut order = Vec::new();
        let mut slot = held.remove(at);
        while !waiting.is_empty() {
            drop(slot);
            let mut taken = waiting
                .iter_mut()
                .map(|(_, wait)| wait.as_mut().now_or_never());
            let found = taken
                .by_ref()
                .enumerate()
                .find_map(|(at, slot)| Some((at, slot?)))
                .unwrap();
            drop(taken);
            slot = found.1;
            order.push(waiting.remove(found.0).0);
        }
        order
    }

    /// Polls twice, because the first poll only adds the upload to the queue. Returns the slot if
    /// one is free.
    fn slot_after_queuing(
        wait: &mut Pin<Box<impl Future<Output = TransferSlot>>>,
    ) -> Option<TransferSlot> {
        assert!(wait.as_mut().now_or_never().is_none());
        wait.as_mut().now_or_never()
    }

    #[tokio::test]
    async fn most_slots_go_to_the_biggest_and_one_in_four_to_the_smallest() {
        assert_eq!(order(4, 0, &[3, 9, 1, 5]).await, [9, 5, 3, 1]);
        assert_eq!(order(4, 3, &[3, 9, 1, 5]).await, [1, 3, 5, 9]);
        assert_eq!(order(1, 0, &[3, 9, 1, 5]).await, [9, 5, 3, 1]);
    }

    #[tokio::test]
    async fn of_uploads_that_begin_together_the_biggest_get_slots_first() {
        let slots = TransferSlots::for_uploads(2);
        let began = RefCell::new(Vec::new());
        let begin = async |size: u64| {
            let _slot = slots.acquire(size, &HERE).await;
            began.borrow_mut().push(size);
            tokio::task::yield_now().await;
        };
        tokio::join!(begin(3), begin(1), begin(9), begin(5));
        assert_eq!(began.take(), [9, 5, 3, 1]);
    }

    #[tokio::test]
    async fn a_cancelled_upload_is_skipped_and_every_slot_is_released() {
        let slots = TransferSlots::for_uploads(2);
        let first = slots.acquire(1, &HERE).await;
        let second = slots.acquire(1, &HERE).await;
        let mut waiting: Vec<_> = [3, 9, 3, 5]
            .map(|size| Box::pin(slots.acquire(size, &HERE)))
            .into();
        for wait in &mut waiting {
            assert!(slot_after_queuing(wait).is_none());
        }
        drop(first);
        let third = waiting[1].as_mut().now_or_never().unwrap();
        drop(waiting.remove(3));
        drop(second);
        let fourth = waiting[0].as_mut().now_or_never().unwrap();
        assert!(waiting[2].as_mut().now_or_never().is_none());
        drop((third, fourth));
        drop(waiting.remove(2));
        assert_eq!(free(&slots), 2);
    }

    #[tokio::test]
    async fn a_host_that_is_waited_for_does_not_block_the_slots() {
        let slots = TransferSlots::for_uploads(2);
        let (sick, well): (Arc<str>, Arc<str>) = ("sick".into(), "well".into());
        let first = slots.acquire(9, &sick).await;
        let second = slots.acquire(9, &sick).await;
        let mut others = [(8, &sick), (1, &well), (2, &well)]
            .map(|(size, host)| Box::pin(slots.acquire(size, host)));
        others
            .iter_mut()
            .for_each(|other| assert!(slot_after_queuing(other).is_none()));
        first.lend();
        second.lend();
        assert!(
            others[0].as_mut().now_or_never().is_none(),
            "at most two uploads from one host"
        );
        let taken = [1, 2].map(|at| others[at].as_mut().now_or_never().unwrap());
        first.reclaim();
        assert_eq!(free(&slots), 0);
        drop(first);
        drop(taken);
        assert!(others[0].as_mut().now_or_never().is_some());
        drop((second, others));
        assert_eq!(free(&slots), 2, "every slot comes back, and none twice");
    }

    #[tokio::test]
    async fn helpers_get_slots_when_nothing_else_waits() {
        let slots = TransferSlots::new(&[1, 1], 2);
        let mut helper = Box::pin(slots.acquire_idle());
        let mut blobs = [1, 2].map(|rank| Box::pin(slots.wait(1, &HERE, rank)));
        assert!(helper.as_mut().now_or_never().is_none());
        for blob in &mut blobs {
            assert!(blob.as_mut().now_or_never().is_none());
        }
        let [first, second] = &mut blobs;
        let held = first.as_mut().now_or_never().unwrap();
        assert!(second.as_mut().now_or_never().is_none(), "no slot is free");
        drop(held);
        assert!(helper.as_mut().now_or_never().is_none(), "a blob is next");
        let held = second.as_mut().now_or_never().unwrap();
        drop(held);
        let held = helper.as_mut().now_or_never().unwrap();
        let mut cancelled = Box::pin(slots.acquire_idle());
        assert!(slot_after_queuing(&mut cancelled).is_none());
        drop(cancelled);
        assert!(locked(&slots.0.state).queues[2].0.is_empty());
        drop(held);
        assert_eq!(
            free(&slots),
            2,
            "a slot of the first queue serves no helper"
        );
    }
}
