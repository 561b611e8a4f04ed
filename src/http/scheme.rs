//! Chooses https or http for a registry host. The flag and the site decide; a private address without any setting is
//! probed.

use super::error::{Error, ErrorKind, host_port};
use super::ledger::Purpose;
use super::probe::{Protocol, may_probe, probe};
use super::settings::HostRule;
use super::transport::Transport;
use std::sync::PoisonError;
use tokio::time::Instant;
use url::Url;

impl Transport {
    /// The URL of a registry host as a reference names it. The flag and the site choose its scheme; a private
    /// literal without any setting is probed once.
    ///
    /// # Errors
    /// When a probe finds neither TLS nor HTTP.
    pub async fn base_url(&self, host: &str) -> Result<Url, Error> {
        let local = |error: url::ParseError| {
            Error::new(ErrorKind::Local, error.to_string()).about(host).caused_by(error)
        };
        let https = Url::parse(&format!("https://{host}/")).map_err(local)?;
        let http = || Url::parse(&format!("http://{host}/")).map_err(local);
        let hosts = &self.0.config.hosts;
        let rules = [hosts.get(host), https.host_str().and_then(|name| hosts.get(name))];
        let any = |test: fn(&HostRule) -> bool| rules.iter().flatten().any(|rule| test(rule));
        if any(|rule| rule.plain_http) {
            return http();
        }
        let settled = any(|rule| !rule.tls.is_default() || rule.has_credentials);
        let name = https.host_str().unwrap_or_default().to_owned();
        if settled || !may_probe(&name) || self.proxies().proxy_for(&https).is_some() {
            return Ok(https);
        }
        let cell = {
            let mut protocols = self.0.protocols.lock().unwrap_or_else(PoisonError::into_inner);
            protocols.entry(host.to_owned()).or_default().clone()
        };
        let port = https.port_or_known_default().unwrap_or(443);
        let asking = || async {
            if let Some(error) = self.0.lost_hosts.check(&host_port(&https)) {
                return Err(error);
            }
            self.0.ledger.contact(&name, port, None, None, Purpose::Registry);
            let began = Instant::now();
            let probed = probe(&name, port, self.limits().connect).await;
            probed.map_err(|error| self.lost(&host_port(&https), began, error.at(&https)))
        };
        match cell.get_or_try_init(asking).await.map_err(|error| error.about(host))? {
            Protocol::Tls => Ok(https),
            Protocol::PlainHttp => http(),
        }
    }
}
