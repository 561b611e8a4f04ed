//! Detects runs whose transfers wait for each other.

use landfall_http::{Activity, ActivitySnapshot};
use std::time::Duration;

/// Detects that tasks wait for each other: for a long time, no request was in flight or waiting to
/// be retried, no long local work was under way, and no request has ended.
pub struct Watchdog {
    activity: Activity,
    patience: Duration,
    pub(super) has_barked: bool,
}

/// How often the activity is checked within `patience`.
const CHECKS: u32 = 8;

impl Watchdog {
    /// Returns a watchdog for `activity`. The run is stuck if nothing happens for `patience`.
    pub fn new(activity: Activity, patience: Duration) -> Watchdog {
        Watchdog {
            activity,
            patience,
            has_barked: false,
        }
    }

    /// Waits until the run is stuck and returns the error message. Later calls never return.
    pub async fn wait_until_stuck(&mut self) -> String {
        // a `select!` in a loop calls this again, but the run must be ended only once
        if self.has_barked {
            return std::future::pending().await;
        }
        let mut last: Option<ActivitySnapshot> = None;
        let mut idle_checks = 0;
        while idle_checks < CHECKS {
            tokio::time::sleep(self.patience / CHECKS).await;
            let snapshot = self.activity.snapshot();
            // several checks in a row, because a run may be between two requests for a moment
            if snapshot.busy == 0 && last == Some(snapshot) {
                idle_checks += 1;
            } else {
                idle_checks = 0;
            }
            last = Some(snapshot);
        }
        self.has_barked = true;
        self.message()
    }

    /// The message for a run that is stuck.
    pub(super) fn message(&self) -> String {
        format!(
            "no request was in flight for {} s and none can start, because the transfers wait for \
             each other; this is a bug in landfall; run the command again to resume, with \
             `--jobs 1` if it happens again",
            self.patience.as_secs()
        )
    }
}
