//! Checks the steps to one host: name, proxy, connection, TLS, response, sign-in, redirects.

use super::real_items::RealItems;
use super::steps::{Diagnosis, DiagnosisSteps, usual_fix};
use super::{CheckStatus, CheckTarget};
use landfall_content::registry::RegistrySessions;
use landfall_content::upstream::{expect_success, get_file};
use landfall_http::{HttpError, HttpRequest, RequestPurpose, Transport};
use reqwest::Method;
use reqwest::header::RANGE;
use serde_json::{Value, json};
use url::Url;

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
    Diagnosis {
        target: target.to_string(),
        checks: check.steps.0,
    }
}

pub(super) struct HostChecker<'a> {
    pub(super) sessions: &'a RegistrySessions,
    pub(super) steps: DiagnosisSteps,
}

impl HostChecker<'_> {
    pub(super) fn add(
        &mut self,
        check: &'static str,
        verdict: CheckStatus,
        says: impl Into<String>,
        facts: Value,
    ) {
        self.steps.add(check, verdict, says, facts);
    }

    pub(super) fn transport(&self) -> &Transport {
        self.sessions.transport()
    }

    async fn proxies(&mut self) {
        let transport = self.transport().clone();
        let all = transport.proxies().proxies();
        if all.is_empty() {
            self.add(
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
                    self.add("proxy", CheckStatus::Ok, says, facts);
                }
                Err(why) => {
                    let says = format!("cannot connect to {name} (from {}): {why}", proxy.source);
                    self.add("proxy", CheckStatus::No, says, facts);
                }
            }
        }
    }

    async fn url(&mut self, written: &Url) {
        let (url, origin) = match self.sessions.file_url(written.as_str()) {
            Ok(found) => found,
            Err(error) => return self.add("name", CheckStatus::No, error.to_string(), Value::Null),
        };
        if !self
            .check_path(&url, origin.as_deref(), RequestPurpose::File)
            .await
        {
            return;
        }
        let host = url.host_str().unwrap_or_default();
        let host = url
            .port()
            .map_or(host.to_owned(), |port| format!("{host}:{port}"));
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
                return self.add(
                    "connection",
                    CheckStatus::No,
                    error.to_string(),
                    Value::Null,
                );
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
            self.add("tls", verdict, says, json!({"plainHTTP": true}));
        }
        let Ok(url) = found.url.join("/v2/") else {
            return;
        };
        let account = match &found.origin {
            Some(_) => url.host_str().map(|host| {
                url.port()
                    .map_or(host.into(), |port| format!("{host}:{port}"))
            }),
            None => Some(host.to_owned()),
        };
        let mut request = HttpRequest::new(Method::GET, url, RequestPurpose::Registry);
        request.origin = found.origin;
        if self
            .check_response(
                request,
                &account.unwrap_or_default(),
                repository,
                found.trusted,
            )
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
