//! The known state of one account at one registry: whether it was accepted, whether the next
//! request must be sent while no other is in flight, and which scopes were denied. All requests
//! without an account share one state.

use super::scope::TokenScope;
use landfall_http::HttpError;
use landfall_model::locked;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// The state of one account at one registry.
#[derive(Default)]
pub(super) struct AccountState {
    /// Whether requests may be sent concurrently: a request was accepted, and the account was not
    /// denied since.
    proven: AtomicBool,
    /// Held by the only request in flight until the account is proven, so that only one worker gets
    /// the challenge and presents the account: several failed logins at once could lock the
    /// account.
    solo: Arc<tokio::sync::Mutex<()>>,
    state: Mutex<AccountHistory>,
}

#[derive(Default)]
struct AccountHistory {
    /// Whether the account was presented and accepted.
    accepted: bool,
    /// Why the account was refused. It is not presented again, so that it does not get locked.
    refused: Option<HttpError>,
    /// The scopes for which the account gets no token, and why.
    scopes: HashMap<TokenScope, HttpError>,
}

/// The right to send the only request in flight; released when dropped.
pub(super) type SoloTurn = tokio::sync::OwnedMutexGuard<()>;

impl AccountState {
    fn state(&self) -> MutexGuard<'_, AccountHistory> {
        locked(&self.state)
    }

    /// Whether requests may be sent concurrently.
    pub(super) fn is_proven(&self) -> bool {
        self.proven.load(Ordering::Acquire)
    }

    /// Waits until requests may be sent concurrently (returns `None`), or until it is this
    /// request's turn.
    pub(super) async fn turn(&self) -> Option<SoloTurn> {
        if self.is_proven() {
            return None;
        }
        let turn = self.solo.clone().lock_owned().await;
        // checked again: the request that held the lock may have proven the account
        (!self.is_proven()).then_some(turn)
    }

    /// Records that the registry accepted a request. `presented` is whether the request presented
    /// the account.
    pub(super) fn request_accepted(&self, presented: bool) {
        if presented {
            self.account_accepted();
        }
        self.proven.store(true, Ordering::Release);
    }

    /// Records that the account itself was accepted.
    pub(super) fn account_accepted(&self) {
        self.state().accepted = true;
    }

    /// Whether the account was ever accepted.
    pub(super) fn was_accepted(&self) -> bool {
        self.state().accepted
    }

    /// Makes requests wait for each other again: an account that was accepted before is denied now.
    pub(super) fn require_solo(&self) {
        self.proven.store(false, Ordering::Release);
    }

    /// Records why the account is denied for all later requests.
    pub(super) fn deny(&self, error: HttpError) {
        self.state().refused = Some(error);
    }

    /// Records why the account is denied for this scope only.
    pub(super) fn deny_scope(&self, scope: &TokenScope, error: HttpError) {
        self.state().scopes.insert(scope.clone(), error);
    }

    /// Returns the earlier denial of the account for this scope, if there is one.
    pub(super) fn check(&self, scope: &TokenScope) -> Result<(), HttpError> {
        let state = self.state();
        state
            .refused
            .as_ref()
            // a refusal of the account is returned first: it also explains why the scope is denied
            .or_else(|| state.scopes.get(scope))
            .map_or(Ok(()), |error| Err(error.clone()))
    }
}
