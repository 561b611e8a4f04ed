//! Ordered parallel work: pieces are produced in order, processed on several threads, and consumed
//! in order. The result never depends on the number of threads.

use landfall_model::locked;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// The default number of pieces in flight. Each has at most 1 MiB before and after the work.
pub(crate) const DEPTH: usize = 8;

/// Receives the next piece for one of several threads; `None` at the end.
fn next_piece<T>(inbox: &Mutex<Receiver<T>>) -> Option<T> {
    locked(inbox).recv().ok()
}

/// Runs `make` on a thread, `work` on one thread for each core, and `take` on the calling thread,
/// with about `depth` pieces in flight. Returns the first error of `take`, or else that of `make`.
///
/// `make` passes each piece to its argument, which returns `false` once `take` has failed.
pub(crate) fn ordered<P: Send, R: Send, E: Send>(
    depth: usize,
    make: impl FnOnce(&mut dyn FnMut(P) -> bool) -> Result<(), E> + Send,
    work: impl Fn(P) -> R + Sync,
    mut take: impl FnMut(R) -> Result<(), E>,
) -> Result<(), E> {
    let (pieces, inbox) = sync_channel::<(P, SyncSender<R>)>(depth);
    // a channel for each result, queued in the order of the pieces, keeps the order of the output
    let (order, results) = sync_channel::<Receiver<R>>(depth);
    let inbox = &Mutex::new(inbox);
    let work = &work;
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(move || {
                while let Some((piece, done)) = next_piece(inbox) {
                    // the channel is closed once `take` has failed
                    let _ = done.send(work(piece));
                }
            });
        }
        let maker = scope.spawn(move || {
            make(&mut |piece| {
                let (done, result) = sync_channel(1);
                order.send(result).is_ok() && pieces.send((piece, done)).is_ok()
            })
        });
        // ends at the first error; the dropped channels then stop the other threads
        let taken = results
            .into_iter()
            .map_while(|result| result.recv().ok())
            .try_for_each(&mut take);
        let made = maker
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        taken.and(made)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn results_come_in_order() {
        let mut seen = Vec::new();
        let made = ordered(
            DEPTH,
            |send| (0..200u64).all(send).then_some(()).ok_or("stopped"),
            |n| {
                thread::sleep(Duration::from_micros(n * 7919 % 300));
                n
            },
            |n| {
                seen.push(n);
                Ok(())
            },
        );
        assert_eq!(made, Ok(()));
        assert_eq!(seen, (0..200).collect::<Vec<_>>());
    }

    #[test]
    fn errors_of_either_end_stop_the_pipeline() {
        let endless = |send: &mut dyn FnMut(u32) -> bool| {
            while send(1) {}
            Err("made")
        };
        assert_eq!(
            ordered(DEPTH, endless, |n| n, |_| Err("taken")),
            Err("taken")
        );
        let mut taken = 0;
        let failing = |send: &mut dyn FnMut(u32) -> bool| {
            send(1);
            Err("made")
        };
        let result = ordered(
            DEPTH,
            failing,
            |n| n,
            |n| {
                taken += n;
                Ok(())
            },
        );
        assert_eq!((result, taken), (Err("made"), 1));
    }
}
