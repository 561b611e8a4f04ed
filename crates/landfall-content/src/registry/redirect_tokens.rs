//! Tokens for redirected requests. A registry such as registry.k8s.io may redirect to a host that
//! has its own token realm. There is one token for each scope and host, shared by all workers. The
//! tokens are anonymous, because no credentials are sent to another host.

use super::scope::TokenScope;
use super::token::BearerToken;
use landfall_model::locked;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use tokio::time::Instant;
use url::Origin;

/// The tokens for hosts that a registry redirects to.
#[derive(Default)]
pub(super) struct RedirectTokens(Mutex<HashMap<TokenScope, HashMap<Origin, Arc<TokenSlot>>>>);

type TokenSlot = tokio::sync::Mutex<Option<BearerToken>>;

impl RedirectTokens {
    /// Returns the slot for the token of this scope at a host. While one request holds its lock and
    /// fetches the token, other requests wait for the token.
    pub(super) fn slot(&self, scope: &TokenScope, origin: Origin) -> Arc<TokenSlot> {
        let mut all = locked(&self.0);
        all.entry(scope.clone())
            .or_default()
            .entry(origin)
            .or_default()
            .clone()
    }

    /// Returns the `Authorization` headers of redirected requests of this scope, by host.
    pub(super) async fn for_scope(&self, scope: &TokenScope) -> Vec<(Origin, String)> {
        // the map is unlocked before waiting for the tokens, each of which may be fetched right now
        let slots: Vec<(Origin, Arc<TokenSlot>)> = {
            let all = locked(&self.0);
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
