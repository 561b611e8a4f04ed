//! Locks whose values are consistent even after a panic, because each change is one step.

use std::sync::{LockResult, Mutex, MutexGuard, PoisonError};

/// Locks `mutex`, even if another holder panicked.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    unpoisoned(mutex.lock())
}

/// Returns the value or guard of any lock, even if a holder panicked.
pub fn unpoisoned<T>(result: LockResult<T>) -> T {
    result.unwrap_or_else(PoisonError::into_inner)
}
