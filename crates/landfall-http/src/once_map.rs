//! A map whose values are computed once, however many tasks need them at the same time.

use landfall_model::locked;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::OnceCell;

/// A map whose values are computed at most once for each key. Tasks that request a key while its
/// value is being computed wait for it.
pub struct OnceMap<K, V>(Mutex<HashMap<K, Arc<OnceCell<V>>>>);

impl<K, V> Default for OnceMap<K, V> {
    fn default() -> OnceMap<K, V> {
        OnceMap(Mutex::default())
    }
}

impl<K: Eq + Hash, V: Clone> OnceMap<K, V> {
    /// Returns the value of `key`, which `init` computes unless it is known.
    ///
    /// # Errors
    /// Those of `init`. Nothing is stored then, so the next call computes the value again.
    pub async fn get_or_try_init<E, F: Future<Output = Result<V, E>>>(
        &self,
        key: K,
        init: impl FnOnce() -> F,
    ) -> Result<V, E> {
        // the map is locked only for the look-up, so that other keys are computed meanwhile
        let cell = self.cells().entry(key).or_default().clone();
        cell.get_or_try_init(init).await.cloned()
    }

    /// Like [`OnceMap::get_or_try_init`], but `init` also returns a value that is not stored. Only
    /// the caller whose `init` ran gets it.
    ///
    /// # Errors
    /// Those of `init`.
    pub async fn get_or_init_with<T, E, F: Future<Output = Result<(V, T), E>>>(
        &self,
        key: K,
        init: impl FnOnce() -> F,
    ) -> Result<(V, Option<T>), E> {
        // stays `None` if another caller computed the value
        let mut extra = None;
        let value = self
            .get_or_try_init(key, async || {
                let (value, more) = init().await?;
                extra = Some(more);
                Ok::<V, E>(value)
            })
            .await?;
        Ok((value, extra))
    }

    /// Returns the value of `key`, if it was computed before.
    pub fn get(&self, key: &K) -> Option<V> {
        self.cells().get(key)?.get().cloned()
    }

    fn cells(&self) -> MutexGuard<'_, HashMap<K, Arc<OnceCell<V>>>> {
        locked(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[tokio::test]
    async fn callers_wait_for_a_value_in_progress_and_a_failure_is_not_kept() {
        let answers = OnceMap::default();
        let calls = Cell::new(0);
        let ask = async |result: Result<&'static str, &'static str>| {
            answers
                .get_or_try_init("key", async || {
                    calls.set(calls.get() + 1);
                    tokio::task::yield_now().await;
                    result
                })
                .await
        };
        let together = tokio::join!(ask(Err("failed")), ask(Ok("second")), ask(Ok("third")));
        assert_eq!(together, (Err("failed"), Ok("second"), Ok("second")));
        assert_eq!((ask(Err("late")).await, calls.get()), (Ok("second"), 2));
        assert_eq!(
            (answers.get(&"key"), answers.get(&"other")),
            (Some("second"), None)
        );
    }
}
