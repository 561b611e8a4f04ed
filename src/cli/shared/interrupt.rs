//! Ctrl-C: a command ends with exit 130 wherever it is.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

/// Who ends the command at Ctrl-C.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interrupts(Arc<InterruptState>);

#[derive(Debug, Default)]
struct InterruptState {
    /// How long the code that handles Ctrl-C itself may take to end the command.
    grace: Mutex<Option<Duration>>,
    is_ending: AtomicBool,
}

impl Interrupts {
    fn grace(&self) -> MutexGuard<'_, Option<Duration>> {
        self.0.grace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the caller is the first to end the command, and so the one that reports its result.
    /// On a busy machine Ctrl-C is noticed here only when the command has ended by it.
    pub(crate) fn begin_end(&self) -> bool {
        !self.0.is_ending.swap(true, Ordering::SeqCst)
    }

    /// From now on, Ctrl-C calls `end`, which must end the process, unless the command is ending
    /// already. If a verb has taken Ctrl-C over, it has its grace period first, which a second
    /// Ctrl-C cuts short.
    pub(crate) fn watch(&self, end: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let mut signals = {
            let _inside = runtime.enter();
            signal(SignalKind::interrupt())?
        };
        let interrupts = self.clone();
        let watch = async move {
            signals.recv().await;
            let grace = *interrupts.grace();
            if let Some(grace) = grace {
                tokio::select! {
                    () = tokio::time::sleep(grace) => {}
                    _ = signals.recv() => {}
                }
            }
            if interrupts.begin_end() {
                end();
            }
        };
        thread::Builder::new()
            .name("interrupts".into())
            .spawn(move || runtime.block_on(watch))?;
        Ok(())
    }

    /// Takes Ctrl-C over until the guard is dropped: the caller hears it, and ends within `grace`.
    pub(crate) fn take_over(&self, grace: Duration) -> InterruptGuard<'_> {
        *self.grace() = Some(grace);
        InterruptGuard(self)
    }
}

/// Whoever has this ends the command at Ctrl-C.
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
    fn one_of_two_ends_the_command() {
        let interrupts = Interrupts::default();
        let other = interrupts.clone();
        assert!(interrupts.begin_end() && !other.begin_end() && !interrupts.begin_end());
    }
}
