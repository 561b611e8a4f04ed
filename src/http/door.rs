//! One door a proxy: the first request with an account goes through alone, and a refusal of the account
//! is final for all workers, so that it does not get locked.

use super::error::Error;
use super::proxy::ProxyUrl;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// The doors of all proxies.
#[derive(Default)]
pub(super) struct Doors(Mutex<HashMap<String, Arc<Door>>>);

impl Doors {
    /// The door of this proxy and its account.
    pub(super) fn of(&self, proxy: &ProxyUrl) -> Arc<Door> {
        let user = proxy.account.as_ref().map_or("", |account| account.user.as_str());
        let key = format!("{} {user}", proxy.url);
        let mut doors = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        doors.entry(key).or_default().clone()
    }
}

/// The door of one proxy.
#[derive(Default)]
pub(super) struct Door {
    /// The proxy took a request.
    proven: AtomicBool,
    first: Arc<tokio::sync::Mutex<()>>,
    refused: Mutex<Option<Error>>,
}

impl Door {
    /// Waits until the proxy has taken a request, or gives the turn to try it.
    ///
    /// # Errors
    /// The proxy's refusal, where it has refused the account.
    pub(super) async fn enter(
        &self,
        proxy: &ProxyUrl,
    ) -> Result<Option<tokio::sync::OwnedMutexGuard<()>>, Error> {
        let turn = match proxy.account.is_some() && !self.proven.load(Ordering::Acquire) {
            true => Some(self.first.clone().lock_owned().await),
            false => None,
        };
        match self.refused.lock().ok().and_then(|refused| refused.clone()) {
            Some(error) => Err(error),
            None => Ok(turn.filter(|_| !self.proven.load(Ordering::Acquire))),
        }
    }

    /// The proxy took a request: the account is good.
    pub(super) fn accept(&self) {
        self.proven.store(true, Ordering::Release);
    }

    /// The proxy refused the account.
    pub(super) fn refuse(&self, error: &Error) {
        if let Ok(mut refused) = self.refused.lock() {
            refused.get_or_insert_with(|| error.clone());
        }
    }
}
