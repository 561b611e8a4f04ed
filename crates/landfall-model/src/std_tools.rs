//! Tools for types of the standard library: locks whose values are consistent even after a panic,
//! because each change is one step, short lists without repeats, and the word that was meant by a
//! misspelt one.

use std::sync::{LockResult, Mutex, MutexGuard, PoisonError};

/// Locks `mutex`, even if another holder panicked.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    unpoisoned(mutex.lock())
}

/// Returns the value or guard of any lock, even if a holder panicked.
pub fn unpoisoned<T>(result: LockResult<T>) -> T {
    result.unwrap_or_else(PoisonError::into_inner)
}

/// Appends those of `items` that `list` lacks, each once and in their order. Each item is compared
/// with the whole list.
pub fn extend_distinct<T: PartialEq>(list: &mut Vec<T>, items: impl IntoIterator<Item = T>) {
    for item in items {
        if !list.contains(&item) {
            list.push(item);
        }
    }
}

/// The word of `known` that is most similar to `word`; `None` if no word is similar enough.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let scored = known.into_iter().map(|name| {
        let score = strsim::normalized_damerau_levenshtein(&word, &name.to_lowercase());
        (score, name)
    });
    let (score, name) = scored.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (score >= 0.65).then_some(name)
}
