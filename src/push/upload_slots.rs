//! Limits how many blobs are uploaded at once, and decides which one is next.
//!
//! Most slots go to the biggest blob that waits: if its upload began late, the run would wait for
//! it at the end. Some go to the smallest blob: small uploads are limited by the latency of the
//! network and the registry, not by bandwidth, so if all of them came last, the network would be
//! idle.

use landfall_content::HostLoad;
use landfall_http::LendableSlot;
use landfall_model::locked;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tokio::sync::oneshot;
use tracing::debug;

/// One slot in this many serves the smallest blob first.
const SMALLEST_FIRST: usize = 4;

/// The upload slots of a run.
pub(super) struct UploadSlots(Arc<UploadQueue>);

struct UploadQueue {
    state: Mutex<QueueState>,
    /// The number of running uploads per source host, and how many of them wait for their host.
    hosts: HostLoad,
    /// The maximum number of uploads whose content comes from one host.
    per_host: usize,
}

struct QueueState {
    free: Vec<Priority>,
    /// The waiting uploads by size and number. Numbers decrease: among blobs of one size, the
    /// upload that has waited longest has the highest number, and slots for the biggest blob take
    /// it first.
    waiting: BTreeMap<(u64, u64), WaitingUpload>,
    /// The number of the next upload; numbers decrease.
    next_number: u64,
}

struct WaitingUpload {
    slot: oneshot::Sender<UploadSlot>,
    /// The host that the blob is read from.
    host: Arc<str>,
}

/// The upload that a slot serves first.
#[derive(Clone, Copy)]
enum Priority {
    Biggest,
    Smallest,
}

/// The right to one upload. When it is dropped, the next upload gets it. It is lent to other
/// uploads while the upload that holds it waits for its source.
pub(super) struct UploadSlot {
    queue: Arc<UploadQueue>,
    /// `None` while the slot is lent, and after that if no other slot was free to replace it.
    held: Mutex<Option<Priority>>,
    host: Arc<str>,
}

impl QueueState {
    /// The next upload for a slot of this priority. If a running upload waits for its host, other
    /// uploads from this host come last.
    fn next(&mut self, priority: Priority, queue: &UploadQueue) -> Option<WaitingUpload> {
        let mut later = None;
        let mut pick = |key: &(u64, u64), waiting: &WaitingUpload| {
            if queue.hosts.begun(&waiting.host) >= queue.per_host {
                return None;
            }
            if queue.hosts.is_waited_for(&waiting.host) {
                later.get_or_insert(*key);
                return None;
            }
            Some(*key)
        };
        let first = match priority {
            Priority::Biggest => self
                .waiting
                .iter()
                .rev()
                .find_map(|(key, waiting)| pick(key, waiting)),
            Priority::Smallest => self
                .waiting
                .iter()
                .find_map(|(key, waiting)| pick(key, waiting)),
        };
        self.waiting.remove(&first.or(later)?)
    }
}

impl UploadSlots {
    /// Creates `slots` slots, at least one.
    pub(super) fn new(slots: usize) -> UploadSlots {
        let slots = slots.max(1);
        let free = (1..=slots)
            .rev()
            .map(|at| {
                if at % SMALLEST_FIRST == 0 {
                    Priority::Smallest
                } else {
                    Priority::Biggest
                }
            })
            .collect();
        let state = Mutex::new(QueueState {
            free,
            waiting: BTreeMap::new(),
            next_number: u64::MAX,
        });
        UploadSlots(Arc::new(UploadQueue {
            state,
            hosts: HostLoad::default(),
            per_host: slots,
        }))
    }

    /// Waits for a slot for a blob of `size` bytes that is read from `host`.
    pub(super) async fn acquire(&self, size: u64, host: &Arc<str>) -> UploadSlot {
        let began = Instant::now();
        let receiver = {
            let (slot, receiver) = oneshot::channel();
            let mut state = locked(&self.0.state);
            let number = state.next_number;
            state.next_number -= 1;
            state.waiting.insert(
                (size, number),
                WaitingUpload {
                    slot,
                    host: host.clone(),
                },
            );
            receiver
        };
        // Lets tasks that were spawned together queue up before the first slot is given.
        tokio::task::yield_now().await;
        dispatch(&self.0);
        // an upload stays in the queue until it has a slot, so the sender is not dropped before
        let slot = receiver
            .await
            .unwrap_or_else(|_| unreachable!("a slot is given to every upload that waits"));
        debug!(size, %host, waited = ?began.elapsed(), "got an upload slot");
        slot
    }
}

/// Gives the free slots to uploads that wait.
fn dispatch(queue: &Arc<UploadQueue>) {
    loop {
        let (waiting, slot) = {
            let mut state = locked(&queue.state);
            let Some(priority) = state.free.pop() else {
                return;
            };
            let Some(waiting) = state.next(priority, queue) else {
                // no upload waits, or the hosts of all waiting uploads have reached their limit
                state.free.push(priority);
                return;
            };
            queue.hosts.begin(&waiting.host);
            let held = Mutex::new(Some(priority));
            let slot = UploadSlot {
                queue: queue.clone(),
                held,
                host: waiting.host.clone(),
            };
            (waiting, slot)
        };
        // If the upload was cancelled, its slot is dropped here, and the next upload gets it.
        drop(waiting.slot.send(slot));
    }
}

impl UploadSlot {
    /// Puts the slot back, unless it is lent, and gives the free slots to waiting uploads.
    fn release(&self) {
        let held = locked(&self.held).take();
        if let Some(priority) = held {
            locked(&self.queue.state).free.push(priority);
        }
        dispatch(&self.queue);
    }
}

impl LendableSlot for UploadSlot {
    fn lend(&self) {
        self.queue.hosts.wait(&self.host);
        self.release();
    }

    fn reclaim(&self) {
        // without a free slot the upload continues too, so there may be more uploads than slots
        // until one of them ends
        *locked(&self.held) = locked(&self.queue.state).free.pop();
        self.queue.hosts.resume(&self.host);
    }
}

impl Drop for UploadSlot {
    fn drop(&mut self) {
        self.queue.hosts.end(&self.host);
        self.release();
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

    /// Frees the slot at position `at`, then each slot that an upload got. Returns the sizes of the
    /// uploads in the order in which the uploads got slots.
    async fn order(slots: usize, at: usize, sizes: &[u64]) -> Vec<u64> {
        let slots = UploadSlots::new(slots);
        let count = locked(&slots.0.state).free.len();
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
        wait: &mut Pin<Box<impl Future<Output = UploadSlot>>>,
    ) -> Option<UploadSlot> {
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
        let slots = UploadSlots::new(2);
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
        let slots = UploadSlots::new(2);
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
        assert_eq!(locked(&slots.0.state).free.len(), 2);
    }

    #[tokio::test]
    async fn a_host_that_is_waited_for_does_not_block_the_slots() {
        let slots = UploadSlots::new(2);
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
        assert_eq!(locked(&slots.0.state).free.len(), 0);
        drop(first);
        drop(taken);
        assert!(others[0].as_mut().now_or_never().is_some());
        drop((second, others));
        assert_eq!(
            locked(&slots.0.state).free.len(),
            2,
            "every slot comes back, and none twice"
        );
    }
}
