//! How one account stands with one registry: whether it was ever taken, whether a request has to go
//! alone, and what is refused to it. The requests without an account have a standing too.

use super::scope::TokenScope;
use landfall_http::HttpError;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The standing of one account.
#[derive(Default)]
pub(super) struct AccountState {
    /// A request was taken, and none was refused since: requests need not go alone.
    proven: AtomicBool,
    /// Held until then, so that one worker alone gets the challenge and presents the account.
    first: Arc<tokio::sync::Mutex<()>>,
    state: Mutex<AccountFacts>,
}

#[derive(Default)]
struct AccountFacts {
    /// It was presented and taken.
    taken: bool,
    /// It is presented to nobody any more, so that it does not get locked.
    refused: Option<HttpError>,
    /// The scopes for which it gets no token.
    scopes: HashMap<TokenScope, HttpError>,
}

/// The turn to go alone.
pub(super) type SoloTurn = tokio::sync::OwnedMutexGuard<()>;

impl AccountState {
    fn state(&self) -> MutexGuard<'_, AccountFacts> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether requests need not go alone.
    pub(super) fn is_proven(&self) -> bool {
        self.proven.load(Ordering::Acquire)
    }

    /// Waits until requests need not go alone, or gives the caller the turn to.
    pub(super) async fn turn(&self) -> Option<SoloTurn> {
        if self.is_proven() {
            return None;
        }
        let turn = self.first.clone().lock_owned().await;
        (!self.is_proven()).then_some(turn)
    }

    /// The registry took a request; `presented` says that it came with the account.
    pub(super) fn accepted(&self, presented: bool) {
        if presented {
            self.took();
        }
        self.proven.store(true, Ordering::Release);
    }

    /// A token service took the account.
    pub(super) fn took(&self) {
        self.state().taken = true;
    }

    /// Whether the account was ever taken.
    pub(super) fn was_taken(&self) -> bool {
        self.state().taken
    }

    /// The account was taken before and is refused now: the next request goes alone again.
    pub(super) fn doubt(&self) {
        self.proven.store(false, Ordering::Release);
    }

    /// Refuses the account for all that follows.
    pub(super) fn refuse(&self, error: HttpError) {
        self.state().refused = Some(error);
    }

    /// Refuses it for this scope alone.
    pub(super) fn refuse_scope(&self, scope: &TokenScope, error: HttpError) {
        self.state().scopes.insert(scope.clone(), error);
    }

    /// Whether the account may be presented for this scope.
    ///
    /// # Errors
    /// Its refusal.
    pub(super) fn check(&self, scope: &TokenScope) -> Result<(), HttpError> {
        let state = self.state();
        state
            .refused
            .as_ref()
            .or_else(|| state.scopes.get(scope))
            .map_or(Ok(()), |error| Err(error.clone()))
    }
}
