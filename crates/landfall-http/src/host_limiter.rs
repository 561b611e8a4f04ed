//! Limits the requests of all workers to one host: limits how many are in flight, pauses if the
//! host asks to wait, and fails requests without sending them if the host asks for a longer wait
//! than allowed.

use super::error::HttpError;
use landfall_model::locked;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tracing::trace;

/// The class of the slot that a request takes.
///
/// Each class has its own slots. A request that holds a slot waits only for requests of classes
/// that are listed later, so no two requests can wait for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SlotClass {
    /// All requests that do not belong to another class.
    Ordinary,
    /// Requests whose response is read slowly: by an upload, which may hold an ordinary slot of the
    /// same host, or by a reader that sends other requests meanwhile.
    UploadSource,
    /// Requests that many others wait for: token requests, and the first request with an account.
    SignIn,
}

/// The limits of one host.
#[derive(Debug)]
pub(super) struct HostLimiter {
    ordinary: ClassSlots,
    upload_source: ClassSlots,
    sign_in: ClassSlots,
    gate: Mutex<HostGate>,
}

/// The pause and the deferrals that the host requested. They apply to requests of every class.
#[derive(Debug, Default)]
struct HostGate {
    paused_until: Option<Instant>,
    deferrals: Vec<Deferral>,
}

/// Requests that fail without being sent, because the host asked to retry them much later.
#[derive(Debug)]
struct Deferral {
    metered: bool,
    origin: Option<String>,
    until: Instant,
    error: HttpError,
}

/// The properties of a request that decide whether a deferral applies to it.
#[derive(Debug, Clone, Copy)]
pub(super) struct QuotaKey<'a> {
    /// Whether the host's rate limit counts the request. A deferral of metered requests does not
    /// apply to unmetered requests: Docker Hub counts manifests, but not blobs.
    pub(super) metered: bool,
    /// The upstream that a mirror replaces. Upstreams behind one mirror have separate limits.
    pub(super) origin: Option<&'a str>,
}

/// The slots for requests of one class.
///
/// Their number is halved when the host answers "too many requests", and grows by one with each
/// round of good responses, up to the configured number (additive increase, multiplicative
/// decrease).
#[derive(Debug)]
struct ClassSlots {
    free: Arc<Semaphore>,
    max_slots: usize,
    limit: Mutex<SlotLimit>,
}

#[derive(Debug)]
struct SlotLimit {
    /// The number of slots. Only the integer part counts; the fraction accumulates growth.
    slots: f64,
    /// How many of the slots in use are dropped instead of returned, because the limit fell.
    surplus: usize,
    halved_at: Option<Instant>,
}

/// The right to send one request, returned when dropped.
#[derive(Debug)]
pub(crate) struct HostSlot {
    limiter: Arc<HostLimiter>,
    class: SlotClass,
    /// `None` while the slot is lent, and afterwards if no slot was free to be reclaimed.
    permit: Mutex<Option<OwnedSemaphorePermit>>,
    /// How long the request waited for a slot.
    pub(super) queued: Duration,
    /// How long the request then waited for the end of the host's pause.
    pub(super) paused: Duration,
}

impl HostSlot {
    /// Returns the permit, or drops it if the limit has fallen meanwhile.
    fn release(&self) {
        let Some(permit) = locked(&self.permit).take() else {
            return;
        };
        let mut limit = locked(&self.limiter.class(self.class).limit);
        if limit.surplus > 0 {
            limit.surplus -= 1;
            permit.forget();
        }
    }
}

impl LendableSlot for HostSlot {
    fn lend(&self) {
        self.release();
    }

    fn reclaim(&self) {
        // without waiting: a holder that continues must not wait for another holder
        let free = self.limiter.class(self.class).free.clone();
        *locked(&self.permit) = free.try_acquire_owned().ok();
    }
}

impl Drop for HostSlot {
    fn drop(&mut self) {
        self.release();
    }
}

impl HostLimiter {
    /// Creates the limits of a host with `slots` for each class, at least one.
    pub(super) fn new(slots: usize) -> HostLimiter {
        HostLimiter {
            ordinary: ClassSlots::new(slots),
            upload_source: ClassSlots::new(slots),
            sign_in: ClassSlots::new(slots),
            gate: Mutex::default(),
        }
    }

    fn class(&self, class: SlotClass) -> &ClassSlots {
        match class {
            SlotClass::Ordinary => &self.ordinary,
            SlotClass::UploadSource => &self.upload_source,
            SlotClass::SignIn => &self.sign_in,
        }
    }

    /// Waits for a slot of this class, and then for the end of the host's pause.
    pub(super) async fn acquire(self: &Arc<Self>, class: SlotClass) -> HostSlot {
        let began = Instant::now();
        let permit = self.class(class).free.clone().acquire_owned().await;
        let permit = permit.unwrap_or_else(|_| unreachable!("a limiter's semaphore stays open"));
        let mut slot = HostSlot {
            limiter: self.clone(),
            class,
            permit: Mutex::new(Some(permit)),
            queued: began.elapsed(),
            paused: Duration::ZERO,
        };
        // The slot is kept during the pause, because no other request may be sent either. Another
        // response may prolong the pause meanwhile.
        loop {
            let until = locked(&self.gate).paused_until;
            match until {
                Some(until) if until > Instant::now() => tokio::time::sleep_until(until).await,
                _ => break,
            }
        }
        slot.paused = began.elapsed().saturating_sub(slot.queued);
        slot
    }

    /// Pauses all requests for this long. Returns whether the pause is new, so that one notice is
    /// shown instead of one for each worker.
    pub(super) fn pause_for(&self, pause: Duration) -> bool {
        // responses to one burst of requests arrive within a moment and ask for the same pause
        const SAME: Duration = Duration::from_secs(1);
        let mut gate = locked(&self.gate);
        let until = Instant::now() + pause;
        let is_news = gate.paused_until.is_none_or(|old| old + SAME < until);
        gate.paused_until = Some(gate.paused_until.map_or(until, |old| old.max(until)));
        is_news
    }

    /// Halves the number of slots after the host answered "too many requests" to a request of this
    /// class that was sent at `sent`. Responses to one burst of requests count once.
    pub(super) fn halve(&self, class: SlotClass, sent: Instant) {
        let slots = self.class(class);
        let mut limit = locked(&slots.limit);
        // the request was sent before the last reduction could have any effect
        if limit.halved_at.is_some_and(|last| sent < last) {
            return;
        }
        limit.halved_at = Some(Instant::now());
        let half = limit.slots / 2.0;
        slots.resize(&mut limit, half);
    }

    /// Counts a good response to a request of this class.
    pub(super) fn grow(&self, class: SlotClass) {
        let slots = self.class(class);
        let mut limit = locked(&slots.limit);
        // as many responses as there are slots (one round) add 1
        let more = limit.slots + 1.0 / limit.slots;
        slots.resize(&mut limit, more);
    }

    /// Makes requests to which `key` applies fail with `error` without being sent, for the time
    /// `wait`: the host asked to retry later.
    pub(super) fn defer(&self, key: QuotaKey<'_>, wait: Duration, error: HttpError) {
        // one deferral per key, so the list stays short
        let deferrals = &mut locked(&self.gate).deferrals;
        deferrals.retain(|old| old.metered != key.metered || old.origin.as_deref() != key.origin);
        deferrals.push(Deferral {
            metered: key.metered,
            origin: key.origin.map(str::to_owned),
            until: Instant::now() + wait,
            error,
        });
    }

    /// Returns the error for a request with this key if it must not be sent.
    pub(super) fn deferral(&self, key: QuotaKey<'_>) -> Option<HttpError> {
        let gate = locked(&self.gate);
        let deferral = gate.deferrals.iter().find(|deferral| {
            (key.metered || !deferral.metered)
                && deferral.origin.as_deref() == key.origin
                && deferral.until > Instant::now()
        });
        deferral.map(|deferral| deferral.error.clone())
    }
}

impl ClassSlots {
    fn new(slots: usize) -> ClassSlots {
        let max_slots = slots.max(1);
        ClassSlots {
            free: Arc::new(Semaphore::new(max_slots)),
            max_slots,
            limit: Mutex::new(SlotLimit {
                slots: max_slots as f64,
                surplus: 0,
                halved_at: None,
            }),
        }
    }

    fn resize(&self, limit: &mut SlotLimit, slots: f64) {
        let had = limit.slots as usize;
        limit.slots = slots.clamp(1.0, self.max_slots as f64);
        let has = limit.slots as usize;
        if has < had {
            // free slots are dropped now, slots in use when they are returned
            let lost = had - has;
            limit.surplus += lost - self.free.forget_permits(lost);
        } else {
            // growth first keeps slots in use that were to be dropped, and then adds new slots
            let kept = limit.surplus.min(has - had);
            limit.surplus -= kept;
            self.free.add_permits(has - had - kept);
        }
    }
}

// Slots that other work may use while their holder waits.
//
// Limits count only work that makes progress. A holder that waits longer than [`LEND_AFTER`] lends
// its slot, and continues later even if no slot is free. The holder may wait for a host that does
// not answer, for the end of a pause before another attempt, or for a slot of another limit.
// Therefore no two holders can wait for each other's slots, and a host in trouble cannot occupy
// the slots that other hosts need. The limit may be exceeded briefly by holders that continue at
// the same moment.

/// The wait after which a slot is lent. Requests to distant hosts are answered faster than that.
const LEND_AFTER: Duration = Duration::from_millis(400);

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
    use crate::ErrorKind;
    use std::sync::atomic::{AtomicIsize, Ordering};

    fn free(limiter: &HostLimiter) -> usize {
        limiter.ordinary.free.available_permits()
    }

    fn surplus(limiter: &HostLimiter) -> usize {
        locked(&limiter.ordinary.limit).surplus
    }

    #[tokio::test]
    async fn the_limit_is_halved_once_per_burst_and_grows_again() {
        let limiter = Arc::new(HostLimiter::new(8));
        let sent = Instant::now();
        let mut in_flight = Vec::new();
        for _ in 0..6 {
            in_flight.push(limiter.acquire(SlotClass::Ordinary).await);
        }
        limiter.halve(SlotClass::Ordinary, sent);
        limiter.halve(SlotClass::Ordinary, sent); // the same burst
        assert_eq!((free(&limiter), surplus(&limiter)), (0, 2));
        in_flight.clear();
        assert_eq!((free(&limiter), surplus(&limiter)), (4, 0));
        (0..4).for_each(|_| limiter.halve(SlotClass::Ordinary, Instant::now()));
        assert_eq!(free(&limiter), 1, "at least one slot remains");
        (0..100).for_each(|_| limiter.grow(SlotClass::Ordinary));
        assert_eq!(free(&limiter), 8, "no more slots than configured");
    }

    #[tokio::test]
    async fn a_deferral_of_metered_requests_does_not_affect_unmetered_ones() {
        let limiter = HostLimiter::new(1);
        let key = |metered, origin| QuotaKey { metered, origin };
        let minute = Duration::from_mins(1);
        let error = HttpError::new(ErrorKind::RetryAfter(minute), "later");
        let hub = Some("docker.io");
        limiter.defer(key(true, hub), minute, error.clone());
        assert!(limiter.deferral(key(true, hub)).is_some());
        assert!(limiter.deferral(key(false, hub)).is_none());
        assert!(
            limiter.deferral(key(true, Some("quay.io"))).is_none(),
            "upstreams behind one mirror are kept apart"
        );
        limiter.defer(key(false, None), minute, error);
        assert!(limiter.deferral(key(true, None)).is_some());
        assert!(limiter.deferral(key(false, None)).is_some());
    }

    #[tokio::test]
    async fn classes_have_separate_slots_and_share_a_pause() {
        let limiter = Arc::new(HostLimiter::new(1));
        let _upload = limiter.acquire(SlotClass::Ordinary).await;
        let _source = limiter.acquire(SlotClass::UploadSource).await;
        limiter.pause_for(Duration::from_millis(30));
        let until = locked(&limiter.gate).paused_until.unwrap();
        let _token = limiter.acquire(SlotClass::SignIn).await;
        assert!(Instant::now() >= until, "the pause had not ended");
    }

    #[tokio::test]
    async fn a_lent_slot_serves_another_request_and_is_returned_once() {
        let limiter = Arc::new(HostLimiter::new(1));
        let slot = limiter.acquire(SlotClass::Ordinary).await;
        slot.lend();
        let other = limiter.acquire(SlotClass::Ordinary).await;
        slot.reclaim();
        assert_eq!(free(&limiter), 0);
        drop(slot);
        assert_eq!(free(&limiter), 0, "the holder had no permit to return");
        drop(other);
        assert_eq!(free(&limiter), 1);
        let slot = limiter.acquire(SlotClass::Ordinary).await;
        slot.lend();
        slot.reclaim();
        assert_eq!(free(&limiter), 0);
        drop(slot);
        assert_eq!(free(&limiter), 1);
    }

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
