//! Ctrl-C ends a verb with exit 130 at any point.

use landfall_model::locked;
use landfall_os::signals::CtrlC;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;
use tokio::runtime::Builder;

/// Decides which thread ends the process on Ctrl-C.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interrupts {
    /// How long the verb may take to end after Ctrl-C, if it handles Ctrl-C itself.
    grace: Arc<Mutex<Option<Duration>>>,
    is_ending: Arc<AtomicBool>,
}

impl Interrupts {
    fn grace(&self) -> MutexGuard<'_, Option<Duration>> {
        locked(&self.grace)
    }

    /// Returns whether the caller is the first to end the process, and so the one that reports the
    /// result. On a busy machine the verb may end before the watching thread notices the signal.
    pub(crate) fn begin_end(&self) -> bool {
        !self.is_ending.swap(true, Ordering::SeqCst)
    }

    /// From now on, Ctrl-C calls `end`, which must end the process. While a verb handles Ctrl-C
    /// itself, its grace period must pass first, or Ctrl-C must be pressed again.
    pub(crate) fn watch(&self, end: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        // Before the thread starts, so that no signal ends the process in between.
        let mut signals = {
            let _inside = runtime.enter();
            CtrlC::watch()?
        };
        let interrupts = self.clone();
        let watch = async move {
            signals.recv().await;
            let grace = *interrupts.grace();
            if let Some(grace) = grace {
                tokio::select! {
                    () = tokio::time::sleep(grace) => {}
                    () = signals.recv() => {}
                }
            }
            if interrupts.begin_end() {
                end();
            }
        };
        // On a thread of its own, since a verb may block all other threads.
        thread::Builder::new()
            .name("interrupts".into())
            .spawn(move || runtime.block_on(watch))?;
        Ok(())
    }

    /// Until the guard is dropped, the caller handles Ctrl-C itself, and ends within `grace`.
    pub(crate) fn take_over(&self, grace: Duration) -> InterruptGuard<'_> {
        *self.grace() = Some(grace);
        InterruptGuard(self)
    }
}

/// The owner of this guard handles Ctrl-C.
pub(crate) struct InterruptGuard<'a>(&'a Interrupts);

impl Drop for InterruptGuard<'_> {
    fn drop(&mut self) {
        *self.0.grace() = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_caller_ends_the_process() {
        let interrupts = Interrupts::default();
        let other = interrupts.clone();
        assert!(interrupts.begin_end() && !other.begin_end() && !interrupts.begin_end());
    }
}
