//! Questions that are asked side by side, whose answers are wanted in order.

use futures_util::{StreamExt, stream};

/// The results of the tasks 0 to `count`, in this order. At most `at_once` run at a time, each made when its turn comes.
///
/// One that takes long holds up no other, unlike in [`StreamExt::buffered`], where what ended behind it counts as
/// running.
pub(crate) async fn side_by_side<T, F: Future<Output = T>>(
    count: usize,
    at_once: usize,
    mut task: impl FnMut(usize) -> F,
) -> Vec<T> {
    let tasks = stream::iter(0..count).map(|at| {
        let task = task(at);
        async move { (at, task.await) }
    });
    let mut ended: Vec<(usize, T)> = tasks.buffer_unordered(at_once.max(1)).collect().await;
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
        let results = side_by_side(9, 2, async |at: usize| {
            assert!(running.fetch_add(1, Ordering::Relaxed) < 2, "no more at once than asked for");
            match at {
                0 => last_began.notified().await,
                8 => last_began.notify_one(),
                _ => tokio::task::yield_now().await,
            }
            running.fetch_sub(1, Ordering::Relaxed);
            at
        });
        assert_eq!(results.await, [0, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert!(side_by_side(0, 0, async |at: usize| at).await.is_empty());
    }
}
