//! In which order transfers begin, and how many are under way at once.

use super::IdleSlots;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;

/// Tasks in queues, each queue in its order and with slots of its own. Where a later queue has begun everything, its free
/// slots serve those before it. A plan gives the order.
pub(crate) struct Schedule<T, R> {
    queues: Vec<(VecDeque<T>, Arc<Semaphore>)>,
    all_begun: watch::Sender<bool>,
    running: JoinSet<R>,
}

/// What happens next.
pub(crate) enum Step<T, R> {
    /// This task has a slot: [`Schedule::spawn`] begins it.
    Begin(T, OwnedSemaphorePermit),
    /// A task came to this result.
    Done(R),
}

impl<T, R: Send + 'static> Schedule<T, R> {
    /// Queues of tasks, and how many of each may be under way at once.
    pub(crate) fn new(queues: impl IntoIterator<Item = (Vec<T>, usize)>) -> Schedule<T, R> {
        let slots = |count: usize| Arc::new(Semaphore::new(count.max(1)));
        let queues = queues.into_iter().map(|(tasks, count)| (tasks.into(), slots(count))).collect();
        Schedule { queues, all_begun: watch::Sender::new(false), running: JoinSet::new() }
    }

    /// The slots of a queue, for whoever can use them when every task has begun.
    pub(crate) fn idle_slots(&self, queue: usize) -> IdleSlots {
        IdleSlots::new(self.queues[queue].1.clone(), self.all_begun.subscribe())
    }

    /// Begins a task.
    pub(crate) fn spawn(
        &mut self,
        slot: OwnedSemaphorePermit,
        task: impl Future<Output = R> + Send + 'static,
    ) {
        self.running.spawn(async move {
            let _until_it_ends = slot;
            task.await
        });
    }

    /// What has not begun yet never will.
    pub(crate) fn begin_no_more(&mut self) {
        self.queues.iter_mut().for_each(|(queue, _)| queue.clear());
    }

    /// A slot for the next task of a queue: its own, or one of a later queue that needs none any more.
    fn slot(&self, at: usize) -> Option<OwnedSemaphorePermit> {
        let ((queue, own), later) = self.queues[at..].split_first()?;
        let lent = later.iter().filter(|(queue, _)| queue.is_empty()).map(|(_, slots)| slots);
        let mut slots = std::iter::once(own).chain(lent).filter(|_| !queue.is_empty());
        slots.find_map(|slots| slots.clone().try_acquire_owned().ok())
    }

    /// What happens next; `None` when every task has ended. A task that panicked comes to no result.
    pub(crate) async fn step(&mut self) -> Option<Step<T, R>> {
        loop {
            for at in 0..self.queues.len() {
                if let Some(slot) = self.slot(at)
                    && let Some(task) = self.queues[at].0.pop_front()
                {
                    return Some(Step::Begin(task, slot));
                }
            }
            if self.queues.iter().all(|(queue, _)| queue.is_empty()) {
                self.all_begun.send_replace(true);
            }
            if let Ok(result) = self.running.join_next().await? {
                return Some(Step::Done(result));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_queue_keeps_its_order_and_its_slots() {
        let mut schedule = Schedule::new([(vec!["a", "b", "c"], 1), (vec!["x", "y"], 2)]);
        let (mut begun, mut done) = (Vec::new(), Vec::new());
        while let Some(step) = schedule.step().await {
            match step {
                Step::Begin(task, slot) => {
                    begun.push(task);
                    schedule.spawn(slot, async move {
                        assert!(task != "y", "a task that panics holds nobody up");
                        task
                    });
                }
                Step::Done(task) => done.push(task),
            }
        }
        assert_eq!(begun[..3], ["a", "x", "y"]);
        done.sort_unstable();
        assert_eq!((begun.len(), done), (5, vec!["a", "b", "c", "x"]));
    }

    #[tokio::test]
    async fn idle_slots_of_a_later_queue_serve_those_before_it() {
        let mut schedule = Schedule::<_, ()>::new([(vec!["a", "b", "c"], 1), (vec!["x", "y"], 3)]);
        let (mut begun, mut slots) = (Vec::new(), Vec::new());
        while let Some(Step::Begin(task, slot)) = schedule.step().await {
            begun.push(task);
            slots.push(slot);
        }
        assert_eq!(begun, ["a", "x", "y", "b"], "one of its own, and one that the other queue needs no more");
    }
}
