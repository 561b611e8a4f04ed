//! Slots that other work may use while their holder waits.
//!
//! Limits count only work that makes progress. A holder that waits longer than [`LEND_AFTER`] lends
//! its slot, and continues later even if no slot is free. The holder may wait for a host that does
//! not answer, for the end of a pause before another attempt, or for a slot of another limit.
//! Therefore no two holders can wait for each other's slots, and a host in trouble cannot occupy
//! the slots that other hosts need. The limit may be exceeded briefly by holders that continue at
//! the same moment.

use std::time::Duration;
use tracing::trace;

/// The wait after which a slot is lent. Requests to distant hosts are answered faster than that.
pub(crate) const LEND_AFTER: Duration = Duration::from_millis(400);

/// A slot of a limit, which is lent while its holder waits.
pub trait LendableSlot: Send + Sync {
    /// Returns the slot to its limit for the time of a wait.
    fn lend(&self);

    /// Takes a slot again if one is free. The holder continues even if none is.
    fn reclaim(&self);
}

/// The slot of work that no limit counts.
#[derive(Debug, Clone, Copy)]
pub struct UnlimitedSlot;

impl LendableSlot for UnlimitedSlot {
    fn lend(&self) {}

    fn reclaim(&self) {}
}

/// Reclaims a lent slot on drop, and so also if the work is cancelled.
struct ReclaimOnDrop<'a>(&'a dyn LendableSlot);

impl Drop for ReclaimOnDrop<'_> {
    fn drop(&mut self) {
        self.0.reclaim();
    }
}

/// Runs `work`, and lends `slot` once the work has taken longer than [`LEND_AFTER`].
pub async fn lend_while_waiting<T>(slot: &dyn LendableSlot, work: impl Future<Output = T>) -> T {
    // pinned here, so that the same work continues after the timeout
    let mut work = std::pin::pin!(work);
    if let Ok(done) = tokio::time::timeout(LEND_AFTER, &mut work).await {
        return done;
    }
    trace!("a slot is lent while its holder waits");
    slot.lend();
    let _reclaim = ReclaimOnDrop(slot);
    work.await
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicIsize, Ordering};

    #[derive(Default)]
    struct CountedSlot(AtomicIsize);

    impl LendableSlot for CountedSlot {
        fn lend(&self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }

        fn reclaim(&self) {
            self.0.fetch_sub(1, Ordering::Relaxed);
        }
    }

    #[tokio::test]
    async fn a_slot_is_lent_only_during_a_long_wait() {
        let slot = CountedSlot::default();
        let lent = || slot.0.load(Ordering::Relaxed);
        assert_eq!(
            (
                lend_while_waiting(&slot, std::future::ready(7)).await,
                lent()
            ),
            (7, 0)
        );
        let until_lent = async {
            while lent() == 0 {
                tokio::time::sleep(LEND_AFTER / 20).await;
            }
        };
        lend_while_waiting(&slot, until_lent).await;
        assert_eq!(lent(), 0);
        // a wait that is cancelled reclaims the slot too
        let is_lent = async {
            while lent() == 0 {
                tokio::time::sleep(LEND_AFTER / 20).await;
            }
        };
        tokio::select! {
            () = lend_while_waiting(&slot, std::future::pending::<()>()) => {}
            () = is_lent => {}
        }
        assert_eq!(lent(), 0);
    }
}
