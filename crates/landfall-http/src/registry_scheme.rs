//! Selects https or http for a registry host: by the flag `--plain-http` and the site, or by a
//! probe if the host is private and has no settings.

use crate::connect::{ProbedProtocol, may_probe, probe};
use crate::error::{ErrorKind, HttpError, host_port};
use crate::ledger::{Contact, RequestPurpose};
use crate::transport::{HostRule, Transport};
use landfall_model::locked;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex};
use tokio::sync::OnceCell;
use tokio::time::Instant;
use tracing::debug;
use url::Url;

impl Transport {
    /// Returns the base URL of a registry. `host` is written as in references. Only the flag and
    /// the site decide the scheme; no request is sent.
    ///
    /// # Errors
    /// If `host` cannot be part of a URL.
    pub fn configured_url(&self, host: &str) -> Result<Url, HttpError> {
        let https = registry_url("https", host)?;
        if self.has_rule(host, &https, |rule| rule.plain_http) {
            return registry_url("http", host);
        }
        Ok(https)
    }

    /// Returns the base URL of a registry host, like [`Transport::configured_url`]. A private host
    /// without settings is probed; the result is kept for the run.
    ///
    /// # Errors
    /// If `host` cannot be part of a URL, or the probe fails or finds neither TLS nor HTTP.
    pub async fn base_url(&self, host: &str) -> Result<Url, HttpError> {
        let https = self.configured_url(host)?;
        if https.scheme() == "http" {
            return Ok(https);
        }
        // Credentials are never sent over http that was found by a probe, so a host with
        // credentials must not be probed.
        let is_settled = self.has_rule(host, &https, |rule| {
            !rule.tls.is_default() || rule.has_credentials
        });
        let name = https.host_str().unwrap_or_default().to_owned();
        // behind a proxy, a probe would test the path to the proxy
        if is_settled || !may_probe(&name) || self.proxies().proxy_for(&https).is_some() {
            return Ok(https);
        }
        let port = https.port_or_known_default().unwrap_or(443);
        // A probe takes no slot and is not retried. A failed probe counts as a failed request to
        // the host.
        let probing = async || {
            if let Some(error) = self.0.lost_hosts.check(&host_port(&https)) {
                return Err(error);
            }
            // the egress report must contain probed hosts, although a probe is not a request
            self.0
                .ledger
                .contact(Contact::new(&https, None, None), RequestPurpose::Registry);
            let began = Instant::now();
            probe(&name, port, self.limits().connect)
                .await
                .map_err(|error| {
                    let error = error.at(&https);
                    self.count_failure(&host_port(&https), began, true, &error)
                        .unwrap_or(error)
                })
        };
        let protocol = self
            .0
            .protocols
            .get_or_try_init(host.to_owned(), probing)
            .await
            .map_err(|error| error.about(host))?;
        debug!(host, ?protocol, "probed for plain http");
        match protocol {
            ProbedProtocol::Tls => Ok(https),
            ProbedProtocol::PlainHttp => registry_url("http", host),
        }
    }

    /// Whether a rule of the host, with or without its port, passes the test.
    fn has_rule(&self, host: &str, url: &Url, test: impl Fn(&HostRule) -> bool) -> bool {
        let hosts = &self.0.config.hosts;
        let rules = [
            hosts.get(host),
            url.host_str().and_then(|name| hosts.get(name)),
        ];
        rules.into_iter().flatten().any(test)
    }
}

fn registry_url(scheme: &str, host: &str) -> Result<Url, HttpError> {
    Url::parse(&format!("{scheme}://{host}/")).map_err(|error| {
        HttpError::new(ErrorKind::Local, error.to_string())
            .about(host)
            .caused_by(error)
    })
}

// A map whose values are computed once, however many tasks need them at the same time.

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
        let cell = locked(&self.0).entry(key).or_default().clone();
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
        locked(&self.0).get(key)?.get().cloned()
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
