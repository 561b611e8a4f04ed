//! Limits the requests to one host, for all workers together: how many run at once, a pause when
//! the host asks for one, and an end when the host asks for a longer wait than allowed.

use super::error::HttpError;
use super::lendable_slot::LendableSlot;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// The limit of one host. It falls to half when the host says "too many", and grows by one for each
/// round of good answers (additive increase, multiplicative decrease), up to the configured number.
#[derive(Debug)]
pub(super) struct HostLimiter {
    slots: Arc<Semaphore>,
    most: usize,
    state: Mutex<State>,
    gate: Arc<Mutex<Gate>>,
}

/// What the host asked for, which holds for all its slots.
#[derive(Debug, Default)]
struct Gate {
    paused_until: Option<Instant>,
    refusals: Vec<Refusal>,
}

/// The answer that every request of a kind gets until then.
#[derive(Debug)]
struct Refusal {
    /// Only metered requests get it.
    metered: bool,
    /// The upstream behind a mirror that it is about: others behind the same mirror have limits of
    /// their own.
    origin: Option<String>,
    until: Instant,
    error: HttpError,
}

#[derive(Debug, Default)]
struct State {
    /// How many slots there should be; only whole ones count.
    limit: f64,
    /// Slots in use that are dropped when they are returned.
    owed: usize,
    lowered: Option<Instant>,
}

/// Which of its host's slots a request takes. While it holds a slot, a request waits only for
/// requests of later classes, so that no two wait for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SlotClass {
    /// Most requests.
    Ordinary,
    /// Those whose answers are read at the pace of somebody else: an upload, which may hold a slot
    /// of the same host, or a reader who asks for something else meanwhile.
    UploadSource,
    /// Those that many others wait for: requests for tokens, and the first one with an account.
    SignIn,
}

/// The right to one request, returned when dropped.
#[derive(Debug)]
pub(crate) struct Slot {
    limiter: Arc<HostLimiter>,
    /// `None` while it is lent, and afterwards if no other was free.
    permit: Mutex<Option<OwnedSemaphorePermit>>,
}

impl Slot {
    fn permit(&self) -> MutexGuard<'_, Option<OwnedSemaphorePermit>> {
        self.permit.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the permit, unless the limit has fallen meanwhile.
    fn give_back(&self) {
        let Some(permit) = self.permit().take() else {
            return;
        };
        let mut state = self.limiter.state();
        if state.owed > 0 {
            state.owed -= 1;
            permit.forget();
        }
    }
}

impl LendableSlot for Slot {
    fn lend(&self) {
        self.give_back();
    }

    fn reclaim(&self) {
        *self.permit() = self.limiter.slots.clone().try_acquire_owned().ok();
    }
}

impl HostLimiter {
    pub(super) fn new(slots: usize) -> HostLimiter {
        let most = slots.max(1);
        let state = State {
            limit: most as f64,
            ..State::default()
        };
        let slots = Arc::new(Semaphore::new(most));
        HostLimiter {
            slots,
            most,
            state: Mutex::new(state),
            gate: Arc::default(),
        }
    }

    /// As many slots again, behind the same gate.
    pub(super) fn beside(&self) -> HostLimiter {
        HostLimiter {
            gate: self.gate.clone(),
            ..HostLimiter::new(self.most)
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn gate(&self) -> MutexGuard<'_, Gate> {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a slot, and until the host's pause is over.
    pub(super) async fn slot(self: &Arc<Self>) -> Slot {
        let permit = self.slots.clone().acquire_owned().await;
        // the semaphore is never closed
        let permit = permit.unwrap_or_else(|_| unreachable!("a limiter's semaphore stays open"));
        let slot = Slot {
            limiter: self.clone(),
            permit: Mutex::new(Some(permit)),
        };
        loop {
            let until = self.gate().paused_until;
            match until {
                Some(until) if until > Instant::now() => tokio::time::sleep_until(until).await,
                _ => return slot,
            }
        }
    }

    /// Gives out no slot for this long. Returns whether that is news: the pause was not known
    /// before.
    pub(super) fn pause_for(&self, pause: Duration) -> bool {
        const SAME: Duration = Duration::from_secs(1);
        let mut gate = self.gate();
        let until = Instant::now() + pause;
        let news = gate.paused_until.is_none_or(|old| old + SAME < until);
        gate.paused_until = Some(gate.paused_until.map_or(until, |old| old.max(until)));
        news
    }

    /// Halves the limit: the host said "too many" to a request that was sent at `sent`. Answers to
    /// one burst count once.
    pub(super) fn lower(&self, sent: Instant) {
        let mut state = self.state();
        if state.lowered.is_some_and(|last| sent < last) {
            return;
        }
        state.lowered = Some(Instant::now());
        self.resize(&mut state, |limit| limit / 2.0);
    }

    /// Raises the limit: the host answered well.
    pub(super) fn raise(&self) {
        self.resize(&mut self.state(), |limit| limit + 1.0 / limit);
    }

    fn resize(&self, state: &mut State, new: impl FnOnce(f64) -> f64) {
        let had = state.limit as usize;
        state.limit = new(state.limit).clamp(1.0, self.most as f64);
        let has = state.limit as usize;
        if has < had {
            let lost = had - has;
            state.owed += lost - self.slots.forget_permits(lost);
        } else {
            let forgiven = state.owed.min(has - had);
            state.owed -= forgiven;
            self.slots.add_permits(has - had - forgiven);
        }
    }

    /// Answers requests of this kind, for this upstream behind a mirror, with `error` for this
    /// long: the host asked to come back later.
    pub(super) fn refuse(
        &self,
        (metered, origin): (bool, Option<&str>),
        wait: Duration,
        error: HttpError,
    ) {
        let refusals = &mut self.gate().refusals;
        refusals.retain(|old| (old.metered, old.origin.as_deref()) != (metered, origin));
        let (origin, until) = (origin.map(str::to_owned), Instant::now() + wait);
        refusals.push(Refusal {
            metered,
            origin,
            until,
            error,
        });
    }

    /// The error that a request of this kind gets without being sent.
    pub(super) fn refusal(&self, (metered, origin): (bool, Option<&str>)) -> Option<HttpError> {
        let gate = self.gate();
        let is_mine = |refusal: &&Refusal| {
            (metered || !refusal.metered)
                && refusal.origin.as_deref() == origin
                && refusal.until > Instant::now()
        };
        gate.refusals
            .iter()
            .find(is_mine)
            .map(|refusal| refusal.error.clone())
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.give_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn free(limiter: &HostLimiter) -> usize {
        limiter.slots.available_permits()
    }

    #[tokio::test]
    async fn falls_to_half_once_a_burst_and_grows_again() {
        let limiter = Arc::new(HostLimiter::new(8));
        let sent = Instant::now();
        let mut inside = Vec::new();
        for _ in 0..6 {
            inside.push(limiter.slot().await);
        }
        limiter.lower(sent);
        limiter.lower(sent); // the same burst
        assert_eq!((free(&limiter), limiter.state().owed), (0, 2));
        inside.clear();
        assert_eq!((free(&limiter), limiter.state().owed), (4, 0));
        (0..4).for_each(|_| limiter.lower(Instant::now()));
        assert_eq!(free(&limiter), 1, "one slot always stays");
        (0..100).for_each(|_| limiter.raise());
        assert_eq!(free(&limiter), 8, "and no more than there were");
    }

    #[tokio::test]
    async fn a_refusal_of_metered_requests_leaves_the_others() {
        let limiter = HostLimiter::new(1);
        let error = HttpError::new(
            super::super::ErrorKind::RetryAfter(Duration::from_mins(1)),
            "later",
        );
        let hub = Some("docker.io");
        limiter.refuse((true, hub), Duration::from_mins(1), error.clone());
        assert!(limiter.refusal((true, hub)).is_some() && limiter.refusal((false, hub)).is_none());
        assert!(
            limiter.refusal((true, Some("quay.io"))).is_none(),
            "upstreams behind one mirror are kept apart"
        );
        limiter.refuse((false, None), Duration::from_mins(1), error);
        assert!(
            limiter.refusal((true, None)).is_some() && limiter.refusal((false, None)).is_some()
        );
        assert!(
            limiter.beside().refusal((false, None)).is_some(),
            "what feeds an upload comes through the same gate"
        );
    }

    #[tokio::test]
    async fn a_slot_that_is_lent_serves_another_and_is_returned_once() {
        let limiter = Arc::new(HostLimiter::new(1));
        let slot = limiter.slot().await;
        slot.lend();
        let other = limiter.slot().await;
        slot.reclaim();
        assert_eq!(free(&limiter), 0);
        drop(slot);
        assert_eq!(free(&limiter), 0, "it had none to return");
        drop(other);
        assert_eq!(free(&limiter), 1);
        let slot = limiter.slot().await;
        slot.lend();
        slot.reclaim();
        assert_eq!(free(&limiter), 0);
        drop(slot);
        assert_eq!(free(&limiter), 1);
    }
}
