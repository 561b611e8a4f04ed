//! Begins the transfers of a run in an order, and runs tasks concurrently.

use crate::retry::Watchdog;
use crate::slots::{TransferSlot, TransferSlots};
use futures_util::{StreamExt, stream};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tracing::debug;

/// Begins tasks from queues, each with an order and slots of its own.
pub struct TransferSchedule<T, R> {
    slots: TransferSlots,
    /// `None` for a task that has begun or was cancelled.
    tasks: Vec<Option<T>>,
    /// Receives the positions of tasks that got a slot.
    ready: mpsc::UnboundedReceiver<(usize, TransferSlot)>,
    running: JoinSet<R>,
    watchdog: Watchdog,
    /// When the schedule was created and its tasks began to wait for a slot.
    began: Instant,
}

/// What the owner of a schedule has to handle next.
pub enum ScheduleStep<T, R> {
    /// The task has a slot and is to be started with [`TransferSchedule::spawn`].
    Begin(T, Arc<TransferSlot>),
    /// A task has ended with this result.
    Done(R),
}

impl<T, R: Send + 'static> TransferSchedule<T, R> {
    /// Returns a schedule for these queues, each with its number of slots. `host` returns the host
    /// that a task reads from, or an empty string if it reads locally. At most `per_host` tasks of
    /// one host run at the same time.
    pub fn new(
        queues: impl IntoIterator<Item = (Vec<T>, usize)>,
        host: impl Fn(&T) -> &Arc<str>,
        per_host: usize,
        watchdog: Watchdog,
    ) -> TransferSchedule<T, R> {
        let (queues, counts): (Vec<Vec<T>>, Vec<usize>) = queues.into_iter().unzip();
        let slots = TransferSlots::new(&counts, per_host);
        let (sender, ready) = mpsc::unbounded_channel();
        let mut tasks = Vec::new();
        for (queue, waiting) in queues.into_iter().enumerate() {
            for task in waiting {
                let (at, sender) = (tasks.len(), sender.clone());
                let waiter = Box::new(move |slot| drop(sender.send((at, slot))));
                slots.enqueue(queue, host(&task), at as u64, waiter);
                tasks.push(Some(task));
            }
        }
        TransferSchedule {
            slots,
            tasks,
            ready,
            running: JoinSet::new(),
            watchdog,
            began: Instant::now(),
        }
    }

    /// Returns the slots, for helpers to use when every task has begun.
    pub fn slots(&self) -> TransferSlots {
        self.slots.clone()
    }

    /// Starts a task, which holds its slot until it ends.
    pub fn spawn(
        &mut self,
        slot: Arc<TransferSlot>,
        task: impl Future<Output = R> + Send + 'static,
    ) {
        self.running.spawn(async move {
            let _held_until_the_end = slot;
            task.await
        });
    }

    /// Drops the tasks that have not begun yet.
    pub fn cancel_waiting(&mut self) {
        self.slots.clear();
        // a slot that a dropped task got is returned when it is received
        self.tasks.clear();
    }

    /// Whether running tasks wait for this host.
    pub fn is_waited_for(&self, host: &str) -> bool {
        self.slots.is_waited_for(host)
    }

    /// Returns an error message if the schedule has aborted tasks because they waited for each
    /// other.
    pub fn stuck_message(&self) -> Option<String> {
        self.watchdog.has_barked.then(|| self.watchdog.message())
    }

    /// Returns the next task that may begin, with its slot.
    fn begin(&mut self) -> Option<ScheduleStep<T, R>> {
        self.slots.dispatch();
        while let Ok((at, slot)) = self.ready.try_recv() {
            if let Some(step) = self.begin_task(at, slot) {
                return Some(step);
            }
        }
        None
    }

    /// Returns the task at this position with its slot, unless it was cancelled.
    fn begin_task(&mut self, at: usize, slot: TransferSlot) -> Option<ScheduleStep<T, R>> {
        let task = self.tasks.get_mut(at)?.take()?;
        debug!(
            host = %slot.host(),
            waited = ?self.began.elapsed(),
            "a transfer slot is free; the next transfer begins"
        );
        Some(ScheduleStep::Begin(task, Arc::new(slot)))
    }

    /// Waits for the next step; `None` when every task has ended. A task that panics yields no
    /// result.
    pub async fn step(&mut self) -> Option<ScheduleStep<T, R>> {
        loop {
            if let Some(step) = self.begin() {
                return Some(step);
            }
            tokio::select! {
                ended = self.running.join_next() => {
                    // a task that was aborted or has panicked has no result
                    if let Ok(result) = ended? {
                        return Some(ScheduleStep::Done(result));
                    }
                }
                Some((at, slot)) = self.ready.recv() => {
                    if let Some(step) = self.begin_task(at, slot) {
                        return Some(step);
                    }
                }
                _ = self.watchdog.wait_until_stuck() => {
                    // tasks that have not begun would only get stuck as well
                    self.cancel_waiting();
                    self.running.abort_all();
                }
            }
        }
    }
}

/// Runs the tasks `0..count`, at most `limit` at a time, and returns their results in the order of
/// the tasks. The future of a task is created only when the task starts.
///
/// A slow task does not delay later tasks. [`StreamExt::buffered`] would delay them: it counts a
/// finished task as running until all earlier tasks have finished.
pub async fn run_concurrently<T, F: Future<Output = T>>(
    count: usize,
    limit: usize,
    task: impl Fn(usize) -> F,
) -> Vec<T> {
    run_concurrently_by_host(count, limit, |_| (), task).await
}

/// Like [`run_concurrently`], with at most `limit` tasks at a time for each host. A host that does
/// not answer delays only its own tasks.
pub async fn run_concurrently_by_host<T, H: Ord, F: Future<Output = T>>(
    count: usize,
    limit: usize,
    host: impl Fn(usize) -> H,
    task: impl Fn(usize) -> F,
) -> Vec<T> {
    let mut indexes_by_host: BTreeMap<H, Vec<usize>> = BTreeMap::new();
    for index in 0..count {
        indexes_by_host.entry(host(index)).or_default().push(index);
    }
    let task = &task;
    let streams = indexes_by_host.into_values().map(|indexes| {
        let tasks = stream::iter(indexes).map(move |index| {
            let task = task(index);
            async move { (index, task.await) }
        });
        // a limit of 0 would never start a task
        tasks.buffer_unordered(limit.max(1))
    });
    let mut results: Vec<(usize, T)> = stream::select_all(streams).collect().await;
    // the tasks end in any order
    results.sort_unstable_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_http::{Activity, LendableSlot};
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;
    use tokio::sync::Notify;

    static HERE: LazyLock<Arc<str>> = LazyLock::new(|| "here".into());

    fn watchdog() -> Watchdog {
        Watchdog::new(Activity::default(), Duration::from_mins(10))
    }

    fn schedule<R: Send + 'static>(
        queues: [(Vec<&'static str>, usize); 2],
    ) -> TransferSchedule<&'static str, R> {
        TransferSchedule::new(queues, |_| &HERE, 100, watchdog())
    }

    #[tokio::test]
    async fn each_queue_keeps_its_order_and_its_slots() {
        let mut schedule = schedule([(vec!["a", "b", "c"], 1), (vec!["x", "y"], 2)]);
        let mut begun = Vec::new();
        let mut done = Vec::new();
        while let Some(step) = schedule.step().await {
            match step {
                ScheduleStep::Begin(task, slot) => {
                    begun.push(task);
                    schedule.spawn(slot, async move {
                        assert!(task != "y", "a task that panics does not delay others");
                        task
                    });
                }
                ScheduleStep::Done(task) => done.push(task),
            }
        }
        assert_eq!(begun[..3], ["a", "x", "y"]);
        done.sort_unstable();
        assert_eq!((begun.len(), done), (5, vec!["a", "b", "c", "x"]));
    }

    #[tokio::test]
    async fn free_slots_of_a_later_queue_serve_earlier_queues() {
        let mut schedule = schedule::<()>([(vec!["a", "b", "c"], 1), (vec!["x", "y"], 3)]);
        let mut begun = Vec::new();
        let mut slots = Vec::new();
        while let Some(ScheduleStep::Begin(task, slot)) = schedule.begin() {
            begun.push(task);
            slots.push(slot);
        }
        assert_eq!(
            begun,
            ["a", "x", "y", "b"],
            "the first queue has its own slot, and one that the other queue no longer needs"
        );
    }

    /// A task of a host.
    struct HostTask(Arc<str>, usize);

    #[tokio::test]
    async fn tasks_waiting_for_one_host_do_not_block_other_hosts() {
        let tasks = (0..40)
            .map(|at| HostTask(if at < 20 { "sick" } else { "well" }.into(), at))
            .collect();
        let mut schedule: TransferSchedule<HostTask, ()> =
            TransferSchedule::new([(tasks, 4)], |task| &task.0, 6, watchdog());
        let mut slots = Vec::new();
        let mut begin = |schedule: &mut TransferSchedule<HostTask, ()>| {
            let mut begun = Vec::new();
            while let Some(ScheduleStep::Begin(HostTask(host, at), slot)) = schedule.begin() {
                begun.push(at);
                slots.push((host, slot));
            }
            slots
                .iter()
                .filter(|(host, _)| &**host == "sick")
                .for_each(|(_, slot)| slot.lend());
            // tasks of the other host end immediately
            slots.retain(|(host, _)| &**host == "sick");
            begun
        };
        assert_eq!(begin(&mut schedule), [0, 1, 2, 3]);
        assert_eq!(begin(&mut schedule), [20, 21, 22, 23]);
        let mut rest: Vec<usize> =
            std::iter::from_fn(|| Some(begin(&mut schedule)).filter(|begun| !begun.is_empty()))
                .flatten()
                .collect();
        rest.sort_unstable();
        let expected: Vec<usize> = [4, 5].into_iter().chain(24..40).collect();
        assert_eq!(
            rest, expected,
            "the host that tasks wait for gets up to six tasks in total, the other host all"
        );
    }

    #[tokio::test]
    async fn deadlocked_tasks_are_aborted() {
        let watchdog = Watchdog::new(Activity::default(), Duration::from_millis(40));
        let mut schedule =
            TransferSchedule::new([(vec!["a", "b", "c"], 2)], |_| &HERE, 2, watchdog);
        let mut begun = Vec::new();
        while let Some(step) = schedule.step().await {
            match step {
                ScheduleStep::Begin(task, slot) => {
                    begun.push(task);
                    schedule.spawn(slot, std::future::pending::<()>());
                }
                ScheduleStep::Done(()) => panic!("no task ends"),
            }
        }
        assert_eq!(begun, ["a", "b"]);
        let message = schedule.stuck_message().unwrap();
        assert!(
            message.starts_with("no request was in flight for"),
            "{message}"
        );
    }

    #[tokio::test]
    async fn a_request_in_flight_is_waited_for() {
        let activity = Activity::default();
        let mut schedule = TransferSchedule::new(
            [(vec!["a"], 1)],
            |_| &HERE,
            1,
            Watchdog::new(activity.clone(), Duration::from_millis(8)),
        );
        let Some(ScheduleStep::Begin(_, slot)) = schedule.step().await else {
            panic!("the task did not begin")
        };
        schedule.spawn(slot, async move {
            let _busy = activity.busy();
            tokio::time::sleep(Duration::from_millis(80)).await;
        });
        assert!(matches!(
            schedule.step().await,
            Some(ScheduleStep::Done(()))
        ));
        assert_eq!(schedule.stuck_message(), None);
    }

    #[tokio::test]
    async fn a_slow_task_delays_no_other_task_and_results_keep_their_order() {
        let running = AtomicUsize::new(0);
        let last_began = Notify::new();
        let results = run_concurrently(9, 2, async |at: usize| {
            assert!(
                running.fetch_add(1, Ordering::Relaxed) < 2,
                "more tasks at a time than the limit"
            );
            match at {
                0 => last_began.notified().await,
                8 => last_began.notify_one(),
                _ => tokio::task::yield_now().await,
            }
            running.fetch_sub(1, Ordering::Relaxed);
            at
        });
        assert_eq!(results.await, [0, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert!(
            run_concurrently(0, 0, async |at: usize| at)
                .await
                .is_empty()
        );
    }

    #[tokio::test]
    async fn a_host_that_does_not_answer_delays_no_other_host() {
        let well_ended = Notify::new();
        let host = |at| if at < 7 { "sick" } else { "well" };
        let results = run_concurrently_by_host(9, 2, host, async |at: usize| {
            match at {
                0..7 => well_ended.notified().await,
                7 => tokio::task::yield_now().await,
                _ => (),
            }
            well_ended.notify_one();
            at
        });
        assert_eq!(results.await, [0, 1, 2, 3, 4, 5, 6, 7, 8]);
    }
}
