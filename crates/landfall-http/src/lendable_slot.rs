//! Slots that are given back while their holder waits, so that what waits never keeps others from
//! working.
//!
//! Every limit on how much runs at once counts work that makes progress. A holder that waits longer
//! than a moment (for a host that does not answer, for the pause before another attempt, for a slot
//! of another kind) lends its slot, and takes one again without waiting when it continues. So no
//! two holders can wait for each other's slots, and a host in trouble cannot occupy the slots of
//! others. The limit may be exceeded briefly by holders that continue at the same moment.

use std::time::Duration;

/// After how long a wait a slot is lent. A request to a distant host is answered faster than that.
pub(crate) const LEND_AFTER: Duration = Duration::from_millis(400);

/// A slot that can be lent.
pub trait LendableSlot: Send + Sync {
    /// Gives the slot back while its holder waits.
    fn lend(&self);

    /// Takes a slot again if one is free. The holder continues in any case.
    fn reclaim(&self);
}

/// The slot of work that nothing limits.
#[derive(Debug, Clone, Copy)]
pub struct UnlimitedSlot;

impl LendableSlot for UnlimitedSlot {
    fn lend(&self) {}

    fn reclaim(&self) {}
}

/// A slot that is lent until this is dropped.
struct Lent<'a>(&'a dyn LendableSlot);

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        self.0.reclaim();
    }
}

/// Runs `work`, and lends `slot` from the moment when it has taken longer than [`LEND_AFTER`].
pub async fn lend_while_waiting<T>(slot: &dyn LendableSlot, work: impl Future<Output = T>) -> T {
    let mut work = std::pin::pin!(work);
    if let Ok(done) = tokio::time::timeout(LEND_AFTER, &mut work).await {
        return done;
    }
    slot.lend();
    let _until_it_continues = Lent(slot);
    work.await
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicIsize, Ordering};

    #[derive(Default)]
    struct Counted(AtomicIsize);

    impl LendableSlot for Counted {
        fn lend(&self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }

        fn reclaim(&self) {
            self.0.fetch_sub(1, Ordering::Relaxed);
        }
    }

    #[tokio::test]
    async fn a_slot_is_lent_only_during_a_long_wait() {
        let slot = Counted::default();
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
        // a wait that is cancelled ends the loan too
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
