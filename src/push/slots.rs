//! Slots for uploads of blobs. Of those who wait, most slots go to whoever has the biggest blob, and some to whoever has the
//! smallest. Those who come at the same moment are weighed together, at the first slot too.
//!
//! A big blob that begins late is waited for at the end. A small one takes the line's delay and the registry's work, not its
//! width: all of them at the end would leave the line idle, so some go beside the big ones.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// One slot in so many takes the smallest first.
const SMALLEST_FIRST: usize = 4;

/// Slots for uploads of blobs.
pub(super) struct Slots(Arc<Mutex<State>>);

struct State {
    /// Which are free.
    free: Vec<Takes>,
    /// By size, and of one size the one that waits longest last.
    waiting: BTreeMap<(u64, u64), oneshot::Sender<Slot>>,
    /// Falls with each that waits.
    next: u64,
}

/// Whom a slot goes to.
#[derive(Clone, Copy)]
enum Takes {
    Biggest,
    Smallest,
}

/// The right to one upload, given on when dropped.
pub(super) struct Slot(Arc<Mutex<State>>, Takes);

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    /// Whoever is next for a slot of this kind.
    fn next(&mut self, takes: Takes) -> Option<oneshot::Sender<Slot>> {
        let next = match takes {
            Takes::Biggest => self.waiting.pop_last(),
            Takes::Smallest => self.waiting.pop_first(),
        };
        next.map(|(_, waiting)| waiting)
    }
}

impl Slots {
    /// So many slots, at least one.
    pub(super) fn new(slots: usize) -> Slots {
        let takes = |at| if at % SMALLEST_FIRST == 0 { Takes::Smallest } else { Takes::Biggest };
        let free = (1..=slots.max(1)).rev().map(takes).collect();
        Slots(Arc::new(Mutex::new(State { free, waiting: BTreeMap::new(), next: u64::MAX })))
    }

    /// Waits for a slot for a blob of this size in bytes.
    pub(super) async fn acquire(&self, size: u64) -> Slot {
        let given = {
            let (slot, given) = oneshot::channel();
            let mut state = locked(&self.0);
            let number = state.next;
            state.next -= 1;
            state.waiting.insert((size, number), slot);
            given
        };
        // tasks that were spawned together all come before the first of them goes on
        tokio::task::yield_now().await;
        give(&self.0);
        // who waits stays among the waiting until the slot is given
        given.await.unwrap_or_else(|_| unreachable!("a slot is given to whoever waits"))
    }
}

/// Gives the free slots to those who wait.
fn give(slots: &Arc<Mutex<State>>) {
    loop {
        let (waiting, slot) = {
            let mut state = locked(slots);
            let Some(takes) = state.free.pop() else { return };
            let Some(waiting) = state.next(takes) else {
                state.free.push(takes);
                return;
            };
            (waiting, Slot(slots.clone(), takes))
        };
        // a slot that nobody takes any more is dropped here, and so given on
        drop(waiting.send(slot));
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        locked(&self.0).free.push(self.1);
        give(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use std::cell::RefCell;
    use std::pin::Pin;

    /// The sizes in the order in which one slot after another, `at` first, goes to them.
    async fn order(slots: usize, at: usize, sizes: &[u64]) -> Vec<u64> {
        let slots = Slots::new(slots);
        let (count, mut held) = (locked(&slots.0).free.len(), Vec::new());
        for _ in 0..count {
            held.push(slots.acquire(0).await);
        }
        let mut waiting: Vec<_> = sizes.iter().map(|&size| (size, Box::pin(slots.acquire(size)))).collect();
        for (_, wait) in &mut waiting {
            assert!(comes(wait).is_none());
        }
        let mut order = Vec::new();
        let mut slot = held.remove(at);
        while !waiting.is_empty() {
            drop(slot);
            let mut taken = waiting.iter_mut().map(|(_, wait)| wait.as_mut().now_or_never());
            let found = taken.by_ref().enumerate().find_map(|(at, slot)| Some((at, slot?))).unwrap();
            drop(taken);
            slot = found.1;
            order.push(waiting.remove(found.0).0);
        }
        order
    }

    /// The slot, where it comes at once: the first look only says who waits.
    fn comes(wait: &mut Pin<Box<impl Future<Output = Slot>>>) -> Option<Slot> {
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
    async fn who_comes_at_the_same_moment_is_weighed_together() {
        let (slots, began) = (Slots::new(2), RefCell::new(Vec::new()));
        let begin = async |size: u64| {
            let _slot = slots.acquire(size).await;
            began.borrow_mut().push(size);
            tokio::task::yield_now().await;
        };
        tokio::join!(begin(3), begin(1), begin(9), begin(5));
        assert_eq!(began.take(), [9, 5, 3, 1]);
    }

    #[tokio::test]
    async fn who_has_gone_is_passed_over_and_every_slot_comes_back() {
        let slots = Slots::new(2);
        let (first, second) = (slots.acquire(1).await, slots.acquire(1).await);
        let mut waiting: Vec<_> = [3, 9, 3, 5].map(|size| Box::pin(slots.acquire(size))).into();
        for wait in &mut waiting {
            assert!(comes(wait).is_none());
        }
        drop(first);
        let third = waiting[1].as_mut().now_or_never().unwrap();
        drop(waiting.remove(3));
        drop(second);
        let fourth = waiting[0].as_mut().now_or_never().unwrap();
        assert!(waiting[2].as_mut().now_or_never().is_none());
        drop((third, fourth));
        drop(waiting.remove(2));
        assert_eq!(locked(&slots.0).free.len(), 2);
    }
}
