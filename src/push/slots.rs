//! Slots for blobs in flight. Of those who wait, whoever has the biggest blob comes first.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// Slots for blobs in flight.
pub(super) struct Slots(Arc<Mutex<State>>);

struct State {
    free: usize,
    waiting: BinaryHeap<Waiting>,
    /// How many have waited so far.
    count: u64,
}

struct Waiting {
    size: u64,
    /// The lower, the longer it waits.
    number: u64,
    slot: oneshot::Sender<Slot>,
}

/// The right to one transfer, given on when dropped.
pub(super) struct Slot(Arc<Mutex<State>>);

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Slots {
    /// So many slots.
    pub(super) fn new(free: usize) -> Slots {
        Slots(Arc::new(Mutex::new(State { free: free.max(1), waiting: BinaryHeap::new(), count: 0 })))
    }

    /// Waits for a slot for a blob of this size in bytes.
    pub(super) async fn acquire(&self, size: u64) -> Slot {
        let given = {
            let mut state = locked(&self.0);
            if state.free > 0 {
                state.free -= 1;
                return Slot(self.0.clone());
            }
            let (slot, given) = oneshot::channel();
            state.count += 1;
            let number = state.count;
            state.waiting.push(Waiting { size, number, slot });
            given
        };
        // who waits stays in the heap until the slot is given
        given.await.unwrap_or_else(|_| unreachable!("a slot is given to whoever waits"))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let next = {
            let mut state = locked(&self.0);
            let next = state.waiting.pop();
            state.free += usize::from(next.is_none());
            next
        };
        if let Some(next) = next {
            // a slot that nobody takes any more is dropped here, and so given on
            drop(next.slot.send(Slot(self.0.clone())));
        }
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Waiting) -> Ordering {
        self.size.cmp(&other.size).then(other.number.cmp(&self.number))
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Waiting) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Waiting) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Waiting {}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn the_biggest_comes_first_and_who_has_gone_is_passed_over() {
        let slots = Slots::new(2);
        let first = slots.acquire(1).now_or_never().unwrap();
        let second = slots.acquire(1).now_or_never().unwrap();
        let mut waiting: Vec<_> = [3, 9, 3, 5].map(|size| Box::pin(slots.acquire(size))).into();
        for wait in &mut waiting {
            assert!(wait.as_mut().now_or_never().is_none());
        }
        drop(first);
        let third = waiting[1].as_mut().now_or_never().unwrap();
        drop(waiting.remove(3));
        drop(second);
        let fourth = waiting[0].as_mut().now_or_never().unwrap();
        assert!(waiting[2].as_mut().now_or_never().is_none());
        drop((third, fourth));
        drop(waiting.remove(2));
        assert_eq!(locked(&slots.0).free, 2);
    }
}
