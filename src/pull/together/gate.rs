//! A gate for tests: the requests of two commands pass it in the order of a schedule.

use landfall_content::bucket::emulator::{RequestHook, RequestMoment};
use landfall_model::locked;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;

/// The order in which the actors pass. Each entry is an actor, and how often it passes before the
/// next entry's turn. A request passes twice, before and after it takes effect. After the last
/// entry, both actors pass freely.
pub(super) type Schedule = Vec<(usize, usize)>;

/// Lets two actors pass in the order of a schedule.
pub(super) struct Gate {
    turns: Mutex<ScheduleTurns>,
    changed: Notify,
}

struct ScheduleTurns {
    schedule: VecDeque<(usize, usize)>,
    is_done: [bool; 2],
    /// The number of times that each actor has passed.
    passed: [usize; 2],
    /// The number of passes after which each actor is killed.
    killed_at: [usize; 2],
}

impl Gate {
    pub(super) fn new(schedule: &Schedule, killed_at: [usize; 2]) -> Arc<Gate> {
        let schedule = schedule.iter().copied().collect();
        let turns = ScheduleTurns {
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

    /// Waits for the actor's turn. Returns `false` if the actor is killed.
    async fn pass(&self, actor: usize) -> bool {
        loop {
            // created before the check, so that a change after the check is not missed
            let changed = self.changed.notified();
            {
                let mut turns = locked(&self.turns);
                // skip the turns of an actor that has ended: the other actor would wait for them
                // forever
                while turns
                    .schedule
                    .front()
                    .is_some_and(|(next, left)| *left == 0 || turns.is_done[*next])
                {
                    turns.schedule.pop_front();
                }
                if turns
                    .schedule
                    .front()
                    .is_none_or(|(next, _)| *next == actor)
                {
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
        locked(&self.turns).is_done[actor] = true;
        self.changed.notify_waiters();
    }

    pub(super) fn hook(self: &Arc<Self>) -> RequestHook {
        let gate = self.clone();
        Arc::new(move |moment: RequestMoment| {
            let gate = gate.clone();
            Box::pin(async move { gate.pass(moment.actor).await })
        })
    }

    /// The number of times that each actor has passed.
    pub(super) fn passed(&self) -> [usize; 2] {
        locked(&self.turns).passed
    }
}
