//! One gate a host, shared by all workers: how many requests at once, a pause when the host asks for
//! one, and an end when it asks to come back another time.

use super::error::Error;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// The gate of one host. It is narrowed to half when the host says "too many", and widened by one for
/// each round of good answers (additive increase, multiplicative decrease), up to what is configured.
#[derive(Debug)]
pub(super) struct Gate {
    slots: Arc<Semaphore>,
    widest: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Slots that there should be; whole slots are given out.
    width: f64,
    /// Slots that are out and must not come back.
    owed: usize,
    narrowed: Option<Instant>,
    closed_until: Option<Instant>,
    /// Why nobody need ask before then: for metered requests, for all others.
    refusals: [Option<(Instant, Error)>; 2],
}

/// A place in the gate, given back when dropped.
#[derive(Debug)]
pub(super) struct Slot {
    gate: Arc<Gate>,
    permit: Option<OwnedSemaphorePermit>,
}

impl Gate {
    pub(super) fn new(slots: usize) -> Gate {
        let widest = slots.max(1);
        let state = State { width: widest as f64, ..State::default() };
        Gate { slots: Arc::new(Semaphore::new(widest)), widest, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Waits for a slot, and until the host's pause is over.
    pub(super) async fn enter(self: &Arc<Self>) -> Slot {
        let permit = self.slots.clone().acquire_owned().await;
        // the semaphore is never closed
        let permit = permit.unwrap_or_else(|_| unreachable!("a gate's semaphore stays open"));
        let slot = Slot { gate: self.clone(), permit: Some(permit) };
        loop {
            let until = self.state().closed_until;
            match until {
                Some(until) if until > Instant::now() => tokio::time::sleep_until(until).await,
                _ => return slot,
            }
        }
    }

    /// Lets nobody in for so long. Whether that is news: the pause was not known before.
    pub(super) fn close_for(&self, pause: Duration) -> bool {
        const SAME: Duration = Duration::from_secs(1);
        let mut state = self.state();
        let until = Instant::now() + pause;
        let news = state.closed_until.is_none_or(|old| old + SAME < until);
        state.closed_until = Some(state.closed_until.map_or(until, |old| old.max(until)));
        news
    }

    /// The host had enough of a request that was sent at `sent`. Answers to one burst count once.
    pub(super) fn narrow(&self, sent: Instant) {
        let mut state = self.state();
        if state.narrowed.is_some_and(|last| sent < last) {
            return;
        }
        state.narrowed = Some(Instant::now());
        self.resize(&mut state, |width| width / 2.0);
    }

    /// The host answered well.
    pub(super) fn widen(&self) {
        self.resize(&mut self.state(), |width| width + 1.0 / width);
    }

    fn resize(&self, state: &mut State, new: impl FnOnce(f64) -> f64) {
        let had = state.width as usize;
        state.width = new(state.width).clamp(1.0, self.widest as f64);
        let has = state.width as usize;
        if has < had {
            let lost = had - has;
            state.owed += lost - self.slots.forget_permits(lost);
        } else {
            let forgiven = state.owed.min(has - had);
            state.owed -= forgiven;
            self.slots.add_permits(has - had - forgiven);
        }
    }

    /// The host asked to come back in so long: nobody of this kind asks before then.
    pub(super) fn refuse(&self, metered: bool, wait: Duration, error: Error) {
        self.state().refusals[usize::from(metered)] = Some((Instant::now() + wait, error));
    }

    /// The answer that is known beforehand.
    pub(super) fn refusal(&self, metered: bool) -> Option<Error> {
        let state = self.state();
        let all = &state.refusals[0];
        let mine = all.iter().chain(state.refusals[1].iter().filter(|_| metered));
        mine.filter(|(until, _)| *until > Instant::now()).map(|(_, error)| error.clone()).next()
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut state = self.gate.state();
        if state.owed > 0
            && let Some(permit) = self.permit.take()
        {
            state.owed -= 1;
            permit.forget();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn free(gate: &Gate) -> usize {
        gate.slots.available_permits()
    }

    #[tokio::test]
    async fn narrows_by_half_once_a_burst_and_widens_again() {
        let gate = Arc::new(Gate::new(8));
        let sent = Instant::now();
        let mut inside = Vec::new();
        for _ in 0..6 {
            inside.push(gate.enter().await);
        }
        gate.narrow(sent);
        gate.narrow(sent); // the same burst
        assert_eq!((free(&gate), gate.state().owed), (0, 2));
        inside.clear();
        assert_eq!((free(&gate), gate.state().owed), (4, 0));
        (0..4).for_each(|_| gate.narrow(Instant::now()));
        assert_eq!(free(&gate), 1, "one slot always stays");
        (0..100).for_each(|_| gate.widen());
        assert_eq!(free(&gate), 8, "and no more than there were");
    }

    #[tokio::test]
    async fn a_refusal_of_metered_requests_leaves_the_others() {
        let gate = Gate::new(1);
        let error = Error::new(super::super::ErrorKind::ComeBack(Duration::from_secs(60)), "later");
        gate.refuse(true, Duration::from_secs(60), error.clone());
        assert!(gate.refusal(true).is_some() && gate.refusal(false).is_none());
        gate.refuse(false, Duration::from_secs(60), error);
        assert!(gate.refusal(true).is_some() && gate.refusal(false).is_some());
    }
}
