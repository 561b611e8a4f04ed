//! How many requests are in flight, and what a request does that finds all places taken.

use super::seats::Seats;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep};

/// How long a request waits for a place before it is told to come back.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often a request that waits looks for an answer that nobody reads.
const LOOK: Duration = Duration::from_millis(250);

/// The requests in flight: from the end of their head to the last byte of their answer.
pub(in super::super) struct InFlight {
    most: usize,
    places: Arc<Semaphore>,
}

/// A place in flight.
pub(in super::super) struct Ticket {
    _place: OwnedSemaphorePermit,
}

impl InFlight {
    /// At most `most` requests at one time.
    pub(in super::super) fn new(most: usize) -> InFlight {
        InFlight {
            most,
            places: Arc::new(Semaphore::new(most)),
        }
    }

    /// How many requests are in flight.
    pub(in super::super) fn count(&self) -> usize {
        self.most - self.places.available_permits()
    }

    /// A place, in the order in which they are asked for. Meanwhile answers that their clients do
    /// not read are broken off. `None` where that takes too long.
    pub(in super::super) async fn enter(&self, seats: &Seats) -> Option<Ticket> {
        let until = Instant::now() + PATIENCE;
        let place = self.places.clone().acquire_owned();
        tokio::pin!(place);
        loop {
            tokio::select! {
                biased;
                place = &mut place => return place.ok().map(|place| Ticket { _place: place }),
                () = sleep(LOOK) => seats.end_stalled(),
            }
            if Instant::now() >= until {
                return None;
            }
        }
    }
}
