//! Chooses https or http for a registry host. The flag and the site decide; a private address
//! without any setting is probed.

use super::error::{ErrorKind, HttpError, host_port};
use super::ledger::{Contact, RequestPurpose};
use super::probe::{Protocol, may_probe, probe};
use super::settings::HostRule;
use super::transport::Transport;
use tokio::time::Instant;
use url::Url;

impl Transport {
    /// The URL of a registry host as a reference names it, as far as the flag and the site tell:
    /// nothing is asked.
    ///
    /// # Errors
    /// A host that can stand in no URL.
    pub fn configured_url(&self, host: &str) -> Result<Url, HttpError> {
        let https = registry_url("https", host)?;
        match self.has_rule(host, &https, |rule| rule.plain_http) {
            true => registry_url("http", host),
            false => Ok(https),
        }
    }

    /// As [`Transport::configured_url`], but a private literal without any setting is probed once.
    ///
    /// # Errors
    /// As there; and when a probe finds neither TLS nor HTTP.
    pub async fn base_url(&self, host: &str) -> Result<Url, HttpError> {
        let https = self.configured_url(host)?;
        if https.scheme() == "http" {
            return Ok(https);
        }
        let settled = self.has_rule(host, &https, |rule| {
            !rule.tls.is_default() || rule.has_credentials
        });
        let name = https.host_str().unwrap_or_default().to_owned();
        if settled || !may_probe(&name) || self.proxies().proxy_for(&https).is_some() {
            return Ok(https);
        }
        let port = https.port_or_known_default().unwrap_or(443);
        let asking = async || {
            if let Some(error) = self.0.lost_hosts.check(&host_port(&https)) {
                return Err(error);
            }
            self.0
                .ledger
                .contact(Contact::new(&https, None, None), RequestPurpose::Registry);
            let began = Instant::now();
            probe(&name, port, self.limits().connect)
                .await
                .map_err(|error| {
                    let error = error.at(&https);
                    self.failed(&host_port(&https), began, true, &error)
                        .unwrap_or(error)
                })
        };
        let spoken = self.0.protocols.get(host.to_owned(), asking).await;
        match spoken.map_err(|error| error.about(host))? {
            Protocol::Tls => Ok(https),
            Protocol::PlainHttp => registry_url("http", host),
        }
    }

    /// Whether a rule of the host, with its port or without, passes the test.
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
