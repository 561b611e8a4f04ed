//! Runs tasks concurrently and returns their results in order.

use futures_util::{StreamExt, stream};
use std::collections::BTreeMap;

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
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::sync::Notify;

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
