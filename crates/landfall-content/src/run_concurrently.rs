//! Questions that are asked side by side, whose answers are wanted in order.

use futures_util::{StreamExt, stream};
use std::collections::BTreeMap;

/// The results of the tasks 0 to `count`, in this order. At most `at_once` run at a time, each made
/// when its turn comes.
///
/// One that takes long holds up no other, unlike in [`StreamExt::buffered`], where what ended
/// behind it counts as running.
pub async fn run_concurrently<T, F: Future<Output = T>>(
    count: usize,
    at_once: usize,
    task: impl Fn(usize) -> F,
) -> Vec<T> {
    run_concurrently_by_host(count, at_once, |_| (), task).await
}

/// Like [`run_concurrently`], with at most `at_once` tasks at a time for each host: those that wait
/// for a host in trouble hold up no others.
pub async fn run_concurrently_by_host<T, H: Ord, F: Future<Output = T>>(
    count: usize,
    at_once: usize,
    host: impl Fn(usize) -> H,
    task: impl Fn(usize) -> F,
) -> Vec<T> {
    let mut by_host: BTreeMap<H, Vec<usize>> = BTreeMap::new();
    (0..count).for_each(|at| by_host.entry(host(at)).or_default().push(at));
    let task = &task;
    let of_hosts = by_host.into_values().map(|tasks| {
        let tasks = stream::iter(tasks).map(move |at| {
            let task = task(at);
            async move { (at, task.await) }
        });
        tasks.buffer_unordered(at_once.max(1))
    });
    let mut ended: Vec<(usize, T)> = stream::select_all(of_hosts).collect().await;
    ended.sort_unstable_by_key(|(at, _)| *at);
    ended.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::sync::Notify;

    #[tokio::test]
    async fn one_that_takes_long_holds_up_no_other_and_the_order_stays() {
        let (running, last_began) = (AtomicUsize::new(0), Notify::new());
        let results = run_concurrently(9, 2, async |at: usize| {
            assert!(
                running.fetch_add(1, Ordering::Relaxed) < 2,
                "no more at once than asked for"
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
    async fn a_host_that_does_not_answer_holds_up_no_other() {
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
