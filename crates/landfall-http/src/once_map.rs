//! Questions of which each is asked once, however many want its answer at the same time.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::OnceCell;

/// The answers of a run, each under its key.
pub struct OnceMap<K, V>(Mutex<HashMap<K, Arc<OnceCell<V>>>>);

impl<K, V> Default for OnceMap<K, V> {
    fn default() -> OnceMap<K, V> {
        OnceMap(Mutex::default())
    }
}

impl<K: Eq + Hash, V: Clone> OnceMap<K, V> {
    /// The answer under `key`; `ask` runs where nobody has it yet. Whoever comes while that runs
    /// waits for it.
    ///
    /// # Errors
    /// That of `ask`. Nothing is kept then: the next one asks anew.
    pub async fn get<E, F: Future<Output = Result<V, E>>>(
        &self,
        key: K,
        ask: impl FnOnce() -> F,
    ) -> Result<V, E> {
        let cell = self.cells().entry(key).or_default().clone();
        cell.get_or_try_init(ask).await.cloned()
    }

    /// As [`OnceMap::get`], and what `ask` gave besides its answer: whoever asked has more than an
    /// answer to keep.
    ///
    /// # Errors
    /// That of `ask`.
    pub async fn get_or_init_with<T, E, F: Future<Output = Result<(V, T), E>>>(
        &self,
        key: K,
        ask: impl FnOnce() -> F,
    ) -> Result<(V, Option<T>), E> {
        let mut own = None;
        let asking = async || {
            let (answer, besides) = ask().await?;
            own = Some(besides);
            Ok::<V, E>(answer)
        };
        let answer = self.get(key, asking).await?;
        Ok((answer, own))
    }

    /// The answer under `key`, where there is one by now.
    pub fn known(&self, key: &K) -> Option<V> {
        self.cells().get(key)?.get().cloned()
    }

    fn cells(&self) -> MutexGuard<'_, HashMap<K, Arc<OnceCell<V>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[tokio::test]
    async fn who_comes_meanwhile_waits_and_a_failure_is_not_kept() {
        let (answers, asked) = (OnceMap::default(), Cell::new(0));
        let ask = async |result: Result<&'static str, &'static str>| {
            answers
                .get("key", async || {
                    asked.set(asked.get() + 1);
                    tokio::task::yield_now().await;
                    result
                })
                .await
        };
        let together = tokio::join!(ask(Err("failed")), ask(Ok("second")), ask(Ok("third")));
        assert_eq!(together, (Err("failed"), Ok("second"), Ok("second")));
        assert_eq!((ask(Err("late")).await, asked.get()), (Ok("second"), 2));
        assert_eq!(
            (answers.known(&"key"), answers.known(&"other")),
            (Some("second"), None)
        );
    }
}
