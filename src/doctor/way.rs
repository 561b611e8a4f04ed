//! The way to one host, step by step.

use super::Verdict;
use crate::config::Site;
use crate::http::{Certificate, Inspection, Request, Response, Transport, Why, shown_url};
use crate::registry::{Challenge, Credential, Sessions, read_challenge};
use jiff::{Timestamp, ToSpan};
use reqwest::header::RANGE;
use reqwest::{Method, StatusCode};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use url::Url;

/// What is looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A URL.
    Url(Url),
    /// A registry, as it stands in references, and a repository or nothing.
    Registry(String, String),
    /// The proxies that are named.
    Proxies,
}

/// The way to one target.
#[derive(Debug, Serialize)]
pub struct Diagnosis {
    /// The target as it was given.
    pub target: String,
    /// Its steps, up to the first that fails.
    pub checks: Vec<Step>,
}

/// One step.
#[derive(Debug, Serialize)]
pub struct Step {
    /// `name`, `proxy`, `connection`, `tls`, `answer`, `sign-in` or `redirects`.
    pub check: &'static str,
    /// What it comes to.
    pub verdict: Verdict,
    /// The same in words.
    pub says: String,
    /// What a program may want of it.
    #[serde(flatten)]
    pub facts: Map<String, Value>,
}

impl std::str::FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Target, String> {
        if !text.contains("://") {
            let (host, repository) = text.split_once('/').unwrap_or((text, ""));
            let host = host.to_ascii_lowercase();
            return match Url::parse(&format!("https://{host}/")) {
                Ok(url) if url.path() == "/" && url.username().is_empty() && !host.is_empty() => {
                    Ok(Target::Registry(host, repository.trim_end_matches('/').into()))
                }
                _ => Err("that is neither a URL nor HOST[:PORT][/REPOSITORY]".into()),
            };
        }
        match Url::parse(text) {
            Ok(url) if !url.username().is_empty() || url.password().is_some() => {
                Err("a URL with a user name is refused; accounts come from auth files or the site".into())
            }
            Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(Target::Url(url)),
            _ => Err("that is no http or https URL".into()),
        }
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Target::Url(url) => f.write_str(&shown_url(url)),
            Target::Registry(host, repository) if repository.is_empty() => f.write_str(host),
            Target::Registry(host, repository) => write!(f, "{host}/{repository}"),
            Target::Proxies => f.write_str("proxy"),
        }
    }
}

/// What a site names: its proxies, registry, file server and upstreams.
pub fn targets_of(site: &Site) -> Vec<Target> {
    let registry = site.registry.as_ref().and_then(|registry| {
        let target = registry.address.parse::<crate::model::Target>().ok()?;
        Some(Target::Registry(target.registry, String::new()))
    });
    let files = site.files.as_ref().and_then(|files| Some(Target::Url(Url::parse(files).ok()?)));
    let upstreams = site.upstreams.keys().map(|host| Target::Registry(host.clone(), String::new()));
    std::iter::once(Target::Proxies).chain(registry).chain(files).chain(upstreams).collect()
}

/// Looks at the way to `target`, up to the first step that fails. Nothing is tried twice.
pub async fn examine(sessions: &Sessions, target: &Target) -> Diagnosis {
    let mut way = Way { sessions, steps: Vec::new() };
    match target {
        Target::Proxies => way.proxies().await,
        Target::Url(url) => way.url(url).await,
        Target::Registry(host, repository) => way.registry(host, repository).await,
    }
    Diagnosis { target: target.to_string(), checks: way.steps }
}

struct Way<'a> {
    sessions: &'a Sessions,
    steps: Vec<Step>,
}

impl Way<'_> {
    fn add(&mut self, check: &'static str, verdict: Verdict, says: impl Into<String>, facts: Value) {
        let facts = match facts {
            Value::Object(facts) => facts,
            _ => Map::new(),
        };
        self.steps.push(Step { check, verdict, says: says.into(), facts });
    }

    fn transport(&self) -> &Transport {
        self.sessions.transport()
    }

    async fn proxies(&mut self) {
        let transport = self.transport().clone();
        let all = transport.proxies().proxies();
        if all.is_empty() {
            self.add("proxy", Verdict::Ok, "none is named", json!({"via": null}));
        }
        for proxy in all {
            let name = proxy.shown();
            let account =
                proxy.account.as_ref().map(|account| format!(", with {account}")).unwrap_or_default();
            let facts = json!({"via": name, "source": proxy.source});
            match transport.reach_proxy(proxy).await {
                Ok(()) => {
                    let says = format!("{name} answers (from {}{account})", proxy.source);
                    self.add("proxy", Verdict::Ok, says, facts);
                }
                Err(why) => {
                    let says = format!("cannot connect to {name} (from {}): {why}", proxy.source);
                    self.add("proxy", Verdict::No, says, facts);
                }
            }
        }
    }

    async fn url(&mut self, written: &Url) {
        let (url, origin) = match self.sessions.file_url(written.as_str()) {
            Ok(found) => found,
            Err(error) => return self.add("name", Verdict::No, error.message, Value::Null),
        };
        if !self.open(&url, origin.as_deref(), Why::File).await {
            return;
        }
        let host = url.host_str().unwrap_or_default();
        let host = url.port().map_or(host.to_owned(), |port| format!("{host}:{port}"));
        let mut request = Request::new(Method::GET, url, Why::File).header(RANGE, "bytes=0-0");
        request.origin = origin;
        self.ask(request, &host, "", true).await;
    }

    async fn registry(&mut self, host: &str, repository: &str) {
        let found = match self.sessions.place_of(host).await {
            Ok(found) => found,
            Err(error) => return self.add("connection", Verdict::No, error.message, Value::Null),
        };
        if !self.open(&found.url, found.origin.as_deref(), Why::Registry).await {
            return;
        }
        if found.url.scheme() == "http" {
            let (verdict, says) = match found.trusted {
                true => (Verdict::Ok, "plain http, as it is told to"),
                false => (
                    Verdict::Note,
                    "plain http, found by probing: no credentials are sent (--plain-http allows that)",
                ),
            };
            self.add("tls", verdict, says, json!({"plainHTTP": true}));
        }
        let Ok(url) = found.url.join("/v2/") else { return };
        let account = match &found.origin {
            Some(_) => {
                url.host_str().map(|host| url.port().map_or(host.into(), |port| format!("{host}:{port}")))
            }
            None => Some(host.to_owned()),
        };
        let mut request = Request::new(Method::GET, url, Why::Registry);
        request.origin = found.origin;
        self.ask(request, &account.unwrap_or_default(), repository, found.trusted).await;
    }

    /// Name, proxy, connection and certificate. Whether there is somebody to ask.
    async fn open(&mut self, url: &Url, origin: Option<&str>, why: Why) -> bool {
        let Inspection { addresses, via, account, rule, connection, tls } =
            self.transport().inspect(url, why).await;
        let host = url.host_str().unwrap_or_default();
        let stands_in = origin.map(|origin| format!(" (the mirror of {origin})")).unwrap_or_default();
        match addresses {
            Ok(list) => {
                let list: Vec<String> = list.iter().map(ToString::to_string).collect();
                let says = format!("{host}{stands_in} is {}", list.join(", "));
                self.add("name", Verdict::Ok, says, json!({"addresses": list}));
            }
            Err(why) if via.is_some() => {
                let says = format!("{host}{stands_in} is not known here ({why}); the proxy may know it");
                self.add("name", Verdict::Note, says, json!({"addresses": []}));
            }
            Err(why) => {
                let says = format!("{host}{stands_in} is not known here: {why}");
                self.add("name", Verdict::No, says, json!({"addresses": []}));
            }
        }
        let says = match (&via, &account) {
            (Some(via), Some(account)) => format!("through {via} with {account}, by {rule}"),
            (Some(via), None) => format!("through {via}, by {rule}"),
            (None, _) => format!("directly: {rule}"),
        };
        self.add("proxy", Verdict::Ok, says, json!({"via": via, "rule": rule}));
        match (&connection, &via) {
            (Err(error), _) => self.add("connection", Verdict::No, &*error.message, Value::Null),
            (Ok(()), Some(via)) if url.scheme() == "https" => {
                self.add(
                    "connection",
                    Verdict::Ok,
                    format!("{via} opens a way there (CONNECT)"),
                    Value::Null,
                );
            }
            (Ok(()), Some(via)) => {
                self.add("connection", Verdict::Ok, format!("{via} is there"), Value::Null)
            }
            (Ok(()), None) => self.add("connection", Verdict::Ok, "open", Value::Null),
        }
        match tls {
            None => connection.is_ok(),
            Some(Err(error)) => {
                self.add("tls", Verdict::No, error.message, Value::Null);
                false
            }
            Some(Ok(shaken)) => {
                let own = shaken.chain.first();
                let (verdict, until) =
                    own.map_or((Verdict::Ok, String::new()), |own| lifetime(own, Timestamp::now()));
                let issuer = shaken.chain.last().map_or("?", |last| last.issuer.as_str());
                let says = format!(
                    "{}; issued by '{issuer}'{until}; trusted by {}",
                    shaken.version, shaken.trusted_by
                );
                let verdict = if shaken.skipped { Verdict::Note } else { verdict };
                let facts = json!({
                    "subject": own.map(|own| &own.subject), "issuer": issuer,
                    "until": own.map(|own| own.until.to_string()), "trustedBy": shaken.trusted_by,
                });
                self.add("tls", verdict, says, facts);
                true
            }
        }
    }

    /// The answer, the sign-in and the redirects.
    async fn ask(&mut self, mut request: Request, host: &str, repository: &str, trusted: bool) {
        request.retried = false;
        let before = self.redirects();
        let answer = self.transport().send(&request).await;
        let account = self.sessions.keychain().find(host, repository).await;
        match &answer {
            Err(error) => self.add("answer", Verdict::No, &*error.message, Value::Null),
            Ok(response) => self.answered(response, &account, trusted),
        }
        let hosts: Vec<String> = self
            .redirects()
            .into_iter()
            .filter(|(host, count)| before.get(host) != Some(count))
            .map(|(host, _)| host)
            .collect();
        if !hosts.is_empty() {
            let says = format!("it sends on to {}; allow these too", hosts.join(", "));
            self.add("redirects", Verdict::Note, says, json!({"hosts": hosts}));
        }
    }

    fn answered(&mut self, response: &Response, account: &Result<Option<Credential>, String>, trusted: bool) {
        let status = response.status;
        let from = shown_url(&response.url);
        let verdict = match status.as_u16() {
            200..=399 | 401 | 416 => Verdict::Ok,
            404 | 405 => Verdict::Note,
            // a file server may well keep its list of files to itself
            403 if response.url.path() == "/" => Verdict::Note,
            _ => Verdict::No,
        };
        self.add("answer", verdict, format!("{status} from {from}"), json!({"status": status.as_u16()}));
        let (known, whose) = match account {
            Ok(Some(account)) if trusted => (true, account.to_string()),
            Ok(Some(account)) => {
                (false, format!("{account} is not sent over http that was found by probing"))
            }
            Ok(None) => (false, "no account is known for it".into()),
            Err(why) => (false, why.clone()),
        };
        if account.is_err() {
            self.add("sign-in", Verdict::No, &*whose, json!({"account": null}));
        } else if status == StatusCode::UNAUTHORIZED {
            let facts = |realm: Option<&str>| json!({"realm": realm, "account": known.then_some(&whose)});
            match read_challenge(&response.headers) {
                Ok(Challenge::Basic) => {
                    let verdict = if known { Verdict::Ok } else { Verdict::Note };
                    self.add("sign-in", verdict, format!("Basic; {whose}"), facts(None));
                }
                Ok(Challenge::Bearer { realm, .. }) => {
                    let shown = response.url.join(&realm).map_or("no URL".into(), |realm| shown_url(&realm));
                    let says = format!("Bearer tokens of {shown}; {whose}");
                    self.add("sign-in", Verdict::Ok, says, facts(Some(&shown)));
                }
                Err(offered) => {
                    let says = format!("it offers nothing that landfall can do ({})", offered.join(", "));
                    self.add("sign-in", Verdict::No, says, facts(None));
                }
            }
        } else {
            let says = format!("none is asked for; {whose}");
            self.add("sign-in", Verdict::Ok, says, json!({"account": known.then_some(&whose)}));
        }
    }

    /// How often each host was contacted for a redirect.
    fn redirects(&self) -> BTreeMap<String, u64> {
        let hosts = self.transport().ledger().hosts();
        let redirected = hosts.into_iter().filter(|host| host.why.contains("redirect"));
        redirected.map(|host| (format!("{}:{}", host.host, host.port), host.requests)).collect()
    }
}

/// When a certificate ends; a note where that is soon.
fn lifetime(certificate: &Certificate, now: Timestamp) -> (Verdict, String) {
    let soon = now.checked_add((24 * 30).hours()).is_ok_and(|soon| certificate.until < soon);
    let verdict = if soon { Verdict::Note } else { Verdict::Ok };
    (verdict, format!(", until {}{}", certificate.until, if soon { " (soon)" } else { "" }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_as_people_write_them() {
        let read = |text: &str| text.parse::<Target>().map(|target| target.to_string());
        assert_eq!(read("Quay.io"), Ok("quay.io".into()));
        assert_eq!(read("172.20.0.2:5000/team/app/"), Ok("172.20.0.2:5000/team/app".into()));
        assert_eq!(read("https://dl.k8s.io/x?token=hush"), Ok("https://dl.k8s.io/x?…".into()));
        assert!(read("https://u:p@dl.k8s.io/").unwrap_err().contains("user name"));
        assert!(read("ftp://x/").is_err() && read("").is_err() && read("a b").is_err());
    }
}
