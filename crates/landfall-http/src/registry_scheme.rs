//! Selects https or http for a registry host: by the flag `--plain-http` and the site, or by a
//! probe if the host is private and has no settings.

use super::error::{ErrorKind, HttpError, host_port};
use super::ledger::{Contact, RequestPurpose};
use super::probe::{ProbedProtocol, may_probe, probe};
use super::settings::HostRule;
use super::transport::Transport;
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
