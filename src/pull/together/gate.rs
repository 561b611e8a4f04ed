//! A gate that the requests of two commands pass in the order of a schedule, for tests.

use landfall_content::bucket::emulator::{RequestHook, RequestMoment};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// Stretches of requests, or halves of them, by actor. After them all go on as they like.
pub(super) type Schedule = Vec<(usize, usize)>;

/// Lets the actors pass by a schedule.
pub(super) struct Gate {
    turns: Mutex<Turns>,
    changed: Notify,
}

struct Turns {
    schedule: VecDeque<(usize, usize)>,
    is_done: [bool; 2],
    /// How often each has passed, and after how often it is killed.
    passed: [usize; 2],
    killed_at: [usize; 2],
}

impl Gate {
    pub(super) fn new(schedule: &Schedule, killed_at: [usize; 2]) -> Arc<Gate> {
        let schedule = schedule.iter().copied().collect();
        let turns = Turns {
            schedule,
            is_done: [false; 2],
            passed: [0; 2],
            killed_at,
        };
        Arc::new(Gate {
            turns: Mutex::new(turns),
            changed: Notify::new(),
        })
    }

    /// Waits for the actor's turn. `false` where it is killed.
    async fn pass(&self, actor: usize) -> bool {
        loop {
            let changed = self.changed.notified();
            {
                let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
                while turns
                    .schedule
                    .front()
                    .is_some_and(|(who, left)| *left == 0 || turns.is_done[*who])
                {
                    turns.schedule.pop_front();
                }
                if turns.schedule.front().is_none_or(|(who, _)| *who == actor) {
                    if let Some((_, left)) = turns.schedule.front_mut() {
                        *left -= 1;
                    }
                    turns.passed[actor] += 1;
                    self.changed.notify_waiters();
                    return turns.passed[actor] <= turns.killed_at[actor];
                }
            }
            changed.await;
        }
    }

    pub(super) fn end(&self, actor: usize) {
        self.turns
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_done[actor] = true;
        self.changed.notify_waiters();
    }

    pub(super) fn hook(self: &Arc<Self>) -> RequestHook {
        let gate = self.clone();
        Arc::new(move |moment: RequestMoment| {
            let gate = gate.clone();
            Box::pin(async move { gate.pass(moment.actor).await })
        })
    }

    /// How often each has passed.
    pub(super) fn passed(&self) -> [usize; 2] {
        self.turns
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .passed
    }
}
