//! Locks mutexes whose values are consistent even after a panic, because each change is one step.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks `mutex`, even if another holder panicked.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
