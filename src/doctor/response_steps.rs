//! The steps of a request: its response, the sign-in and the redirects.

use super::CheckStatus;
use super::diagnose::HostChecker;
use landfall_content::registry::{Challenge, CredentialLookup, realm_url};
use landfall_http::{HttpRequest, HttpResponse, redacted_url};
use reqwest::StatusCode;
use serde_json::{Value, json};
use std::collections::BTreeMap;

impl HostChecker<'_> {
    /// Sends `request`, and checks the response, the sign-in and the redirects. Returns true if the
    /// host requires an account, and the known account may be sent to it.
    pub(super) async fn check_response(
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
            Err(error) => self.add("answer", CheckStatus::No, error.to_string(), Value::Null),
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
            self.add(
                "redirects",
                CheckStatus::Note,
                says,
                json!({"hosts": hosts}),
            );
        }
        let Ok(response) = answer else {
            return false;
        };
        let is_wanted = response.status == StatusCode::UNAUTHORIZED;
        if response.url.path().ends_with("/v2/") {
            self.add_words(response).await;
        }
        is_wanted && trusted && matches!(account, Ok(Some(_)))
    }

    /// Adds what the server says to the step `answer` of a registry, unless it answers like one: a
    /// page or a text tells which other server has this address.
    async fn add_words(&mut self, response: HttpResponse) {
        let names_itself = response.header("docker-distribution-api-version").is_some();
        let is_page = response.is_page();
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
        self.add(
            "answer",
            verdict,
            format!("{status} from {from}"),
            json!({"status": status.as_u16()}),
        );
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
            self.add("sign-in", verdict, &*whose, json!({"account": null}));
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
                    self.add("sign-in", verdict, format!("Basic; {whose}"), facts(None));
                }
                Ok(Challenge::Bearer { realm, .. }) => {
                    let shown = realm_url(&response.url, &realm)
                        .map_or("no URL".into(), |realm| redacted_url(&realm));
                    let says = format!("Bearer tokens from {shown}; {whose}");
                    self.add("sign-in", CheckStatus::Ok, says, facts(Some(&shown)));
                }
                Err(unknown) => {
                    let says = format!(
                        "no supported authentication scheme is offered ({})",
                        unknown.0.join(", ")
                    );
                    self.add("sign-in", CheckStatus::No, says, facts(None));
                }
            }
        } else {
            let says = format!("not required; {whose}");
            self.add(
                "sign-in",
                CheckStatus::Ok,
                says,
                json!({"account": known.then_some(&whose)}),
            );
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
