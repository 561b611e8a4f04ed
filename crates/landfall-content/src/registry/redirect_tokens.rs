//! Tokens for hosts that a registry redirects to and that have token realms of their own, as
//! registry.k8s.io does: one for each scope and host, for all workers. They are anonymous, as no
//! account goes to another host.

use super::scope::TokenScope;
use super::token::BearerToken;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::time::Instant;
use url::Origin;

/// The tokens for other hosts.
#[derive(Default)]
pub(super) struct RedirectTokens(Mutex<HashMap<TokenScope, HashMap<Origin, Arc<TokenSlot>>>>);

type TokenSlot = tokio::sync::Mutex<Option<BearerToken>>;

impl RedirectTokens {
    /// Where the token of this scope for a host stands.
    pub(super) fn slot(&self, scope: &TokenScope, origin: Origin) -> Arc<TokenSlot> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(scope.clone())
            .or_default()
            .entry(origin)
            .or_default()
            .clone()
    }

    /// What a redirected request of this scope is signed with, by the host that it comes to.
    pub(super) async fn for_scope(&self, scope: &TokenScope) -> Vec<(Origin, String)> {
        let slots: Vec<(Origin, Arc<TokenSlot>)> = {
            let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let slots = all.get(scope).into_iter().flatten();
            slots
                .map(|(origin, slot)| (origin.clone(), slot.clone()))
                .collect()
        };
        let mut found = Vec::new();
        for (origin, slot) in slots {
            if let Some(token) = slot
                .lock()
                .await
                .as_ref()
                .filter(|token| token.until > Instant::now())
            {
                found.push((origin, token.authorization.header.clone()));
            }
        }
        found
    }
}
