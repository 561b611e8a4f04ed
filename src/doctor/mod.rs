//! Finds out why a host cannot be reached, and which settings of a site will not work. Checks each
//! step to a host (name, proxy and the rule that chose it, connection, certificate, response,
//! sign-in, redirects), the rights at the private registry, ports by role, names and their
//! certificates, the settings that name proxies, names that changed, KKP Seeds, and configurations
//! of containerd and podman. Checks a machine as a node. Simulates the installation of packages.

mod containerd_lint;
mod lint;
mod names;
mod no_proxy;
mod node;
mod node_config;
mod packages;
mod ports;
mod real_items;
mod rights;
mod steps;

use self::steps::{DiagnosisSteps, usual_fix};
use jiff::{Timestamp, ToSpan};
use landfall_content::registry::{Challenge, CredentialLookup, RegistrySessions, realm_url};
use landfall_content::upstream::{expect_success, get_file};
use landfall_http::{
    Certificate, ErrorKind, HttpError, HttpRequest, HttpResponse, PathInspection, RequestPurpose,
    Transport, redacted_url,
};
use reqwest::header::RANGE;
use reqwest::{Method, StatusCode};
use serde_json::json;
use std::collections::BTreeMap;
use url::{Position, Url};

pub(crate) use self::lint::{LintMessage, changed_names, lint_environment, lint_seeds};
pub(crate) use self::names::check_names;
pub(crate) use self::no_proxy::lint_entries;
pub(crate) use self::node::{
    MachineFiles, NodeMirror, check_clock, check_image_names, check_machine, node_proxy,
    server_time, time_of_server,
};
#[cfg(any(test, fuzzing))]
pub(crate) use self::node_config::fuzz as fuzz_node_config;
pub(crate) use self::node_config::lint_node_config;
pub(crate) use self::packages::{NodeList, simulate_install};
pub(crate) use self::ports::{
    PORTS_FORMATS, PortQuery, RequiredPort, Strategy, port_table, probe_ports,
};
pub(crate) use self::real_items::RealItems;
pub(crate) use self::steps::{CheckStatus, CheckTarget, Diagnosis, targets_of};

/// Checks the steps to `target`. Steps that depend on a failed step are omitted. The first request
/// to a host and the sign-in to a registry are not retried.
pub(crate) async fn diagnose(
    sessions: &RegistrySessions,
    target: &CheckTarget,
    real: &RealItems,
) -> Diagnosis {
    let mut check = HostChecker {
        sessions,
        steps: DiagnosisSteps::default(),
    };
    match target {
        CheckTarget::Proxies => check.proxies().await,
        CheckTarget::Url(url) => check.url(url).await,
        CheckTarget::Registry(host, repository) => {
            check.registry(host, repository).await;
            // After a failure, the next steps would fail for the same reason.
            if !check.steps.has_failed() {
                real.check(sessions, host, &mut check.steps).await;
            }
        }
    }
    check.steps.into_diagnosis(target.to_string())
}

struct HostChecker<'a> {
    sessions: &'a RegistrySessions,
    steps: DiagnosisSteps,
}

impl HostChecker<'_> {
    fn transport(&self) -> &Transport {
        self.sessions.transport()
    }

    async fn proxies(&mut self) {
        let transport = self.transport().clone();
        let all = transport.proxies().proxies();
        if all.is_empty() {
            self.steps.add(
                "proxy",
                CheckStatus::Ok,
                "no proxy is configured",
                json!({"via": null}),
            );
        }
        for proxy in all {
            let name = proxy.address();
            let account = proxy
                .account
                .as_ref()
                .map(|account| format!(", with {account}"))
                .unwrap_or_default();
            let facts = json!({"via": name, "source": proxy.source});
            match transport.connect_to_proxy(proxy).await {
                Ok(()) => {
                    let says = format!("{name} answers (from {}{account})", proxy.source);
                    self.steps.add("proxy", CheckStatus::Ok, says, facts);
                }
                Err(why) => {
                    let says = format!("cannot connect to {name} (from {}): {why}", proxy.source);
                    self.steps.add("proxy", CheckStatus::No, says, facts);
                }
            }
        }
    }

    async fn url(&mut self, written: &Url) {
        let (url, origin) = match self.sessions.file_url(written.as_str()) {
            Ok(found) => found,
            Err(error) => return self.steps.no("name", error.to_string()),
        };
        if !self
            .check_path(&url, origin.as_deref(), RequestPurpose::File)
            .await
        {
            return;
        }
        let host = url[Position::BeforeHost..Position::AfterPort].to_owned();
        let is_https = url.scheme() == "https";
        // One byte is enough: the file may be large.
        let mut request =
            HttpRequest::new(Method::GET, url, RequestPurpose::File).header(RANGE, "bytes=0-0");
        request.origin = origin;
        if self.check_response(request, &host, "", true).await && is_https {
            let tried = get_file(self.sessions, written.as_str(), Some("bytes=0-0".into())).await;
            let answered = match tried {
                Ok(response) => expect_success(response).await.map(drop),
                Err(error) => Err(error),
            };
            self.add_sign_in_result(answered);
        }
    }

    async fn registry(&mut self, host: &str, repository: &str) {
        let found = match self.sessions.base_url(host).await {
            Ok(found) => found,
            Err(error) => {
                // The steps to the host say more than the error of the search for its scheme.
                let fails_before = match self.sessions.expected_url(host) {
                    Ok(url) => !self.check_path(&url, None, RequestPurpose::Registry).await,
                    Err(_) => false,
                };
                if !fails_before {
                    self.steps.no("connection", error.to_string());
                }
                return;
            }
        };
        if !self
            .check_path(
                &found.url,
                found.origin.as_deref(),
                RequestPurpose::Registry,
            )
            .await
        {
            return;
        }
        if found.url.scheme() == "http" {
            let (verdict, says) = if found.trusted {
                (CheckStatus::Ok, "plain http, as configured")
            } else {
                (
                    CheckStatus::Note,
                    "plain http, found by probing: no credentials are sent; `plainHTTP: true` \
                     under registry in the site, or --plain-http, allows that",
                )
            };
            self.steps
                .add("tls", verdict, says, json!({"plainHTTP": true}));
        }
        let Ok(url) = found.url.join("/v2/") else {
            return;
        };
        let account = match &found.origin {
            Some(_) => url[Position::BeforeHost..Position::AfterPort].to_owned(),
            None => host.to_owned(),
        };
        let mut request = HttpRequest::new(Method::GET, url, RequestPurpose::Registry);
        request.origin = found.origin;
        if self
            .check_response(request, &account, repository, found.trusted)
            .await
        {
            let tried = match self.sessions.upstream(host).await {
                Ok(session) => session.sign_in(repository).await,
                Err(error) => Err(error),
            };
            self.add_sign_in_result(tried);
        }
    }

    /// Adds the result of signing in with the account to the step `sign-in`.
    fn add_sign_in_result(&mut self, result: Result<(), HttpError>) {
        let Some(step) = self.steps.0.iter_mut().find(|step| step.check == "sign-in") else {
            return;
        };
        match result {
            Ok(()) => step.says += ", which was accepted",
            Err(error) => {
                step.says += &format!(", tried: {error}");
                step.verdict = CheckStatus::No;
                step.fix = Some(usual_fix("sign-in").into());
            }
        }
    }
}

impl HostChecker<'_> {
    /// Checks the name, the proxy, the connection and the certificate. Returns whether a request
    /// can be sent.
    async fn check_path(
        &mut self,
        url: &Url,
        origin: Option<&str>,
        purpose: RequestPurpose,
    ) -> bool {
        let PathInspection {
            addresses,
            via,
            account,
            rule,
            connection,
            tls,
        } = self.transport().inspect_path(url, purpose).await;
        let host = url.host_str().unwrap_or_default();
        let mirror_note = origin
            .map(|origin| format!(" (the mirror of {origin})"))
            .unwrap_or_default();
        let is_unresolved = addresses.is_err() && via.is_none();
        let (verdict, found, list) = match addresses {
            Ok(list) => {
                let list: Vec<String> = list.iter().map(ToString::to_string).collect();
                (
                    CheckStatus::Ok,
                    format!(" resolves to {}", list.join(", ")),
                    list,
                )
            }
            // A client behind a proxy needs no DNS: the proxy resolves the name in CONNECT.
            Err(why) if via.is_some() => {
                let says = format!(": {why}; the proxy may resolve it");
                (CheckStatus::Note, says, Vec::new())
            }
            Err(why) => (CheckStatus::No, format!(": {why}"), Vec::new()),
        };
        let says = format!("{host}{mirror_note}{found}");
        let facts = json!({"addresses": list});
        self.steps.add("name", verdict, says, facts);
        let says = match (&via, &account) {
            (Some(via), Some(account)) => format!("through {via} with {account}, by {rule}"),
            (Some(via), None) => format!("through {via}, by {rule}"),
            (None, _) => format!("directly: {rule}"),
        };
        let facts = json!({"via": via, "rule": rule});
        self.steps.add("proxy", CheckStatus::Ok, says, facts);
        if is_unresolved {
            return false;
        }
        match (&connection, &via) {
            (Err(error), _) => self.steps.no("connection", error.to_string()),
            (Ok(()), Some(via)) if url.scheme() == "https" => {
                self.steps
                    .ok("connection", format!("{via} opened a tunnel (CONNECT)"));
            }
            (Ok(()), Some(via)) => {
                self.steps.ok("connection", format!("connected to {via}"));
            }
            (Ok(()), None) => self.steps.ok("connection", "open"),
        }
        match tls {
            None => connection.is_ok(),
            Some(Err(error)) => {
                self.steps.no("tls", error.to_string());
                // the handshake broke off before there was a certificate
                if error.kind == ErrorKind::Network {
                    self.steps.fix(
                        "enable TLS 1.3, or TLS 1.2 with ECDHE, at the server, or let a local \
                         proxy connect to it; or name clientCert and clientKey in the site",
                    );
                }
                false
            }
            Some(Ok(shaken)) => {
                let own = shaken.chain.first();
                let (verdict, until) = own.map_or((CheckStatus::Ok, String::new()), |own| {
                    lifetime(own, Timestamp::now())
                });
                let issuer = shaken.chain.last().map_or("?", |last| last.issuer.as_str());
                let says = format!(
                    "{}; issued by '{issuer}'{until}; trusted by {}",
                    shaken.version, shaken.trusted_by
                );
                // `skipVerify` is a setting of the site: the connection works, but is not verified.
                let verdict = if shaken.skipped {
                    CheckStatus::Note
                } else {
                    verdict
                };
                let facts = json!({
                    "subject": own.map(|own| &own.subject), "issuer": issuer,
                    "until": own.map(|own| own.not_after.to_string()),
                    "trustedBy": shaken.trusted_by,
                });
                self.steps.add("tls", verdict, says, facts);
                true
            }
        }
    }
}

/// Returns the status and the text for the time at which a certificate expires. The status is a
/// note if that time is within 30 days or in the past. An expired certificate passes the TLS
/// handshake only if the site skips the verification.
fn lifetime(certificate: &Certificate, now: Timestamp) -> (CheckStatus, String) {
    let soon = now
        .checked_add((24 * 30).hours())
        .is_ok_and(|soon| certificate.not_after < soon);
    let verdict = if soon {
        CheckStatus::Note
    } else {
        CheckStatus::Ok
    };
    (
        verdict,
        format!(
            ", until {}{}",
            certificate.not_after,
            match (soon, certificate.not_after < now) {
                (_, true) => " (expired)",
                (true, _) => " (soon)",
                (false, _) => "",
            }
        ),
    )
}

impl HostChecker<'_> {
    /// Sends `request`, and checks the response, the sign-in and the redirects. Returns true if the
    /// host requires an account, and the known account may be sent to it.
    async fn check_response(
        &mut self,
        mut request: HttpRequest,
        host: &str,
        repository: &str,
        trusted: bool,
    ) -> bool {
        // The first response is the diagnosis, and a wrong password must not be sent twice.
        request.retried = false;
        // The counts are shared by all targets: this request was redirected to the hosts whose
        // count grew.
        let before = self.redirects();
        let answer = self.transport().send(&request).await;
        let account = self.sessions.keychain().find(host, repository).await;
        match &answer {
            Err(error) => self.steps.no("answer", error.to_string()),
            Ok(response) => self.add_response_steps(response, &account, trusted),
        }
        let hosts: Vec<String> = self
            .redirects()
            .into_iter()
            .filter(|(host, count)| before.get(host) != Some(count))
            .map(|(host, _)| host)
            .collect();
        if !hosts.is_empty() {
            let says = format!("redirects to {}; allow these hosts too", hosts.join(", "));
            let facts = json!({"hosts": hosts});
            self.steps.add("redirects", CheckStatus::Note, says, facts);
        }
        let Ok(response) = answer else {
            return false;
        };
        let is_wanted = response.status == StatusCode::UNAUTHORIZED;
        // a redirect of `/v2/` may lead to a page to sign in
        if request.url.path().ends_with("/v2/") {
            self.add_words(response).await;
        }
        is_wanted && trusted && matches!(account, Ok(Some(_)))
    }

    /// Adds what the server says to the step `answer` of a registry, unless it answers like one: a
    /// page or a text tells which other server has this address.
    async fn add_words(&mut self, mut response: HttpResponse) {
        let names_itself = response.header("docker-distribution-api-version").is_some();
        let is_page = response.is_page().await;
        let is_usual = matches!(
            response.status,
            StatusCode::OK | StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN
        );
        if names_itself || (is_usual && !is_page) {
            return;
        }
        let is_other = is_page || matches!(response.status.as_u16(), 404 | 405);
        let words = response.server_words().await;
        let mut steps = self.steps.0.iter_mut();
        let Some(step) = steps.find(|step| step.check == "answer") else {
            return;
        };
        step.says += &words.text;
        if is_other && words.errors.is_empty() {
            step.says += ": no registry answers at this address";
            step.verdict = CheckStatus::No;
            step.fix = Some("name the host and port of the registry itself".into());
        }
    }

    fn add_response_steps(
        &mut self,
        response: &HttpResponse,
        account: &CredentialLookup,
        trusted: bool,
    ) {
        let status = response.status;
        let from = redacted_url(&response.url);
        let verdict = match status.as_u16() {
            // 401 has a step of its own; 416 is the response for the first byte of an empty file.
            200..=399 | 401 | 416 => CheckStatus::Ok,
            // The host answered; these steps do not require that the path exists.
            404 | 405 => CheckStatus::Note,
            // A file server may forbid listing its root and still serve files.
            403 if response.url.path() == "/" => CheckStatus::Note,
            _ => CheckStatus::No,
        };
        let facts = json!({"status": status.as_u16()});
        self.steps
            .add("answer", verdict, format!("{status} from {from}"), facts);
        let (known, whose) = match account {
            Ok(Some(account)) if trusted => (true, account.to_string()),
            Ok(Some(account)) => (
                false,
                format!(
                    "{account} is not sent: plain http was found by probing and is not configured"
                ),
            ),
            Ok(None) => (false, "no account is configured for this host".into()),
            Err(error) => (false, error.to_string()),
        };
        if account.is_err() {
            // Unreadable credentials are an error only if the registry requires an account.
            let needs_account = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
            let verdict = if needs_account {
                CheckStatus::No
            } else {
                CheckStatus::Note
            };
            self.steps
                .add("sign-in", verdict, &*whose, json!({"account": null}));
        } else if status == StatusCode::UNAUTHORIZED {
            let facts =
                |realm: Option<&str>| json!({"realm": realm, "account": known.then_some(&whose)});
            match Challenge::read(&response.headers) {
                Ok(Challenge::Basic) => {
                    let verdict = if known {
                        CheckStatus::Ok
                    } else {
                        CheckStatus::Note
                    };
                    self.steps
                        .add("sign-in", verdict, format!("Basic; {whose}"), facts(None));
                }
                Ok(Challenge::Bearer { realm, .. }) => {
                    let shown = realm_url(&response.url, &realm)
                        .map_or("no URL".into(), |realm| redacted_url(&realm));
                    let says = format!("Bearer tokens from {shown}; {whose}");
                    self.steps
                        .add("sign-in", CheckStatus::Ok, says, facts(Some(&shown)));
                }
                Err(unknown) => {
                    let says = format!(
                        "no supported authentication scheme is offered ({})",
                        unknown.0.join(", ")
                    );
                    self.steps
                        .add("sign-in", CheckStatus::No, says, facts(None));
                }
            }
        } else {
            let says = format!("not required; {whose}");
            let facts = json!({"account": known.then_some(&whose)});
            self.steps.add("sign-in", CheckStatus::Ok, says, facts);
        }
    }

    /// The hosts to which requests were redirected, each with its number of requests.
    fn redirects(&self) -> BTreeMap<String, u64> {
        let hosts = self.transport().ledger().hosts();
        let redirected = hosts
            .into_iter()
            .filter(|host| host.why.contains("redirect"));
        redirected
            .map(|host| (format!("{}:{}", host.host, host.port), host.requests))
            .collect()
    }
}
