//! Decides in which order transfers begin, and how many run at the same time.

use crate::IdleSlots;
use crate::retry::Watchdog;
use crate::transfer::{HostLoad, TransferSlot};
use futures_util::{StreamExt, stream};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tracing::debug;

/// A task that a [`TransferSchedule`] begins.
pub trait ScheduledTask {
    /// Returns the host that the task reads from, or an empty string if it reads locally.
    fn host(&self) -> &Arc<str>;
}

/// Begins tasks from queues, each with an order and slots of its own. When a later queue is empty,
/// its free slots serve the queues before it.
///
/// If running tasks already wait for a host, its remaining tasks begin after those of other hosts.
/// The number of running tasks per host is limited as well. So a slow host does not delay transfers
/// from other hosts.
pub struct TransferSchedule<T, R> {
    queues: Vec<Queue<T>>,
    hosts: Arc<HostLoad>,
    /// The largest number of running tasks per host.
    per_host: usize,
    all_begun: watch::Sender<bool>,
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

impl<T: ScheduledTask, R: Send + 'static> TransferSchedule<T, R> {
    /// Returns a schedule for these queues, each with its number of slots. At most `per_host` tasks
    /// of one host run at the same time.
    pub fn new(
        queues: impl IntoIterator<Item = (Vec<T>, usize)>,
        per_host: usize,
        watchdog: Watchdog,
    ) -> TransferSchedule<T, R> {
        TransferSchedule {
            queues: queues
                .into_iter()
                .map(|(tasks, slots)| Queue::new(tasks, slots))
                .collect(),
            hosts: Arc::default(),
            // a limit of 0 would never begin a task
            per_host: per_host.max(1),
            all_begun: watch::Sender::new(false),
            running: JoinSet::new(),
            watchdog,
            began: Instant::now(),
        }
    }

    /// Returns the slots of a queue, for helpers to use when every task has begun.
    pub fn idle_slots(&self, queue: usize) -> IdleSlots {
        IdleSlots::new(self.queues[queue].slots.clone(), self.all_begun.subscribe())
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
        self.queues.iter_mut().for_each(Queue::clear);
    }

    /// Whether running tasks wait for this host.
    pub fn is_waited_for(&self, host: &str) -> bool {
        self.hosts.is_waited_for(host)
    }

    /// Returns an error message if the schedule has aborted tasks because they waited for each
    /// other.
    pub fn stuck_message(&self) -> Option<String> {
        self.watchdog.has_barked.then(|| self.watchdog.message())
    }

    /// Acquires a slot for the next task of a queue: a slot of this queue, or of a later queue that
    /// is empty.
    fn slot(&self, at: usize) -> Option<(Arc<Semaphore>, OwnedSemaphorePermit)> {
        let (queue, later) = self.queues[at..].split_first()?;
        let lent = later.iter().filter(|queue| queue.is_empty());
        let mut slots = std::iter::once(queue).chain(lent).map(|queue| &queue.slots);
        slots.find_map(|slots| Some((slots.clone(), slots.clone().try_acquire_owned().ok()?)))
    }

    /// Returns the next task that may begin, with its slot.
    fn begin(&mut self) -> Option<ScheduleStep<T, R>> {
        for at in 0..self.queues.len() {
            let Some(host) = self.queues[at].next_host(&self.hosts, self.per_host) else {
                continue;
            };
            if let Some((from, permit)) = self.slot(at)
                && let Some(task) = self.queues[at].pop(&host)
            {
                debug!(
                    host = %host,
                    waited = ?self.began.elapsed(),
                    "a transfer slot is free; the next transfer begins"
                );
                let slot = TransferSlot::new(from, permit, self.hosts.clone(), host);
                return Some(ScheduleStep::Begin(task, Arc::new(slot)));
            }
        }
        None
    }

    /// Waits for the next step; `None` when every task has ended. A task that panics yields no
    /// result.
    pub async fn step(&mut self) -> Option<ScheduleStep<T, R>> {
        loop {
            if let Some(step) = self.begin() {
                return Some(step);
            }
            if self.queues.iter().all(Queue::is_empty) {
                // helpers may use free slots only now: before, waiting tasks needed every slot
                self.all_begun.send_replace(true);
            }
            tokio::select! {
                ended = self.running.join_next() => {
                    // a task that was aborted or has panicked has no result
                    if let Ok(result) = ended? {
                        return Some(ScheduleStep::Done(result));
                    }
                }
                () = self.hosts.changed() => {}
                _ = self.watchdog.wait_until_stuck() => {
                    // tasks that have not begun would only get stuck as well
                    self.cancel_waiting();
                    self.running.abort_all();
                }
            }
        }
    }
}

/// The tasks of a queue that have not begun, by host, each with its position in the order.
struct Queue<T> {
    waiting: BTreeMap<Arc<str>, VecDeque<(usize, T)>>,
    slots: Arc<Semaphore>,
}

impl<T: ScheduledTask> Queue<T> {
    fn new(tasks: Vec<T>, slots: usize) -> Queue<T> {
        let mut waiting: BTreeMap<Arc<str>, VecDeque<(usize, T)>> = BTreeMap::new();
        for (position, task) in tasks.into_iter().enumerate() {
            waiting
                .entry(task.host().clone())
                .or_default()
                .push_back((position, task));
        }
        Queue {
            waiting,
            slots: Arc::new(Semaphore::new(slots.max(1))),
        }
    }
}

impl<T> Queue<T> {
    fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    fn clear(&mut self) {
        self.waiting.clear();
    }

    /// Returns the host whose task is next. Hosts that running tasks wait for come last; otherwise,
    /// the order of the queue decides.
    fn next_host(&self, hosts: &HostLoad, per_host: usize) -> Option<Arc<str>> {
        // the tasks of a slow host must not occupy all slots
        let open = self
            .waiting
            .iter()
            .filter(|(host, _)| hosts.begun(host) < per_host);
        let next = open.min_by_key(|(host, tasks)| {
            (
                hosts.is_waited_for(host),
                tasks.front().map(|(position, _)| *position),
            )
        });
        next.map(|(host, _)| host.clone())
    }

    fn pop(&mut self, host: &Arc<str>) -> Option<T> {
        let tasks = self.waiting.get_mut(host)?;
        let (_, task) = tasks.pop_front()?;
        if tasks.is_empty() {
            self.waiting.remove(host);
        }
        Some(task)
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

    impl ScheduledTask for &str {
        fn host(&self) -> &Arc<str> {
            &HERE
        }
    }

    fn watchdog() -> Watchdog {
        Watchdog::new(Activity::default(), Duration::from_mins(10))
    }

    fn schedule<R: Send + 'static>(
        queues: [(Vec<&'static str>, usize); 2],
    ) -> TransferSchedule<&'static str, R> {
        TransferSchedule::new(queues, 100, watchdog())
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

    impl ScheduledTask for HostTask {
        fn host(&self) -> &Arc<str> {
            &self.0
        }
    }

    #[tokio::test]
    async fn tasks_waiting_for_one_host_do_not_block_other_hosts() {
        let tasks = (0..40)
            .map(|at| HostTask(if at < 20 { "sick" } else { "well" }.into(), at))
            .collect();
        let mut schedule: TransferSchedule<HostTask, ()> =
            TransferSchedule::new([(tasks, 4)], 6, watchdog());
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
        let mut schedule = TransferSchedule::new([(vec!["a", "b", "c"], 2)], 2, watchdog);
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
