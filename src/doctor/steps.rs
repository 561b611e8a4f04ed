//! The steps of a diagnosis: each with its result for people, facts for programs, and the fix if
//! one is needed.

use landfall_http::redacted_url;
use landfall_item::lockfile::Lock;
use landfall_model::config::Site;
use landfall_model::{Failure, has_userinfo};
use serde::Serialize;
use serde_json::{Map, Value};
use std::fmt;
use std::str::FromStr;
use url::Url;

/// The diagnosis of one target.
#[derive(Debug, Serialize)]
pub(crate) struct Diagnosis {
    /// The name of the target, without secrets.
    pub target: String,
    /// The steps that were run, in order. Steps that depend on a failed one are omitted.
    pub checks: Vec<DiagnosisStep>,
}

/// One step of a diagnosis.
#[derive(Debug, Serialize)]
pub(crate) struct DiagnosisStep {
    /// The check: `name`, `proxy`, `connection`, `tls`, `answer`, `sign-in`, …
    pub check: &'static str,
    /// The result of the check.
    pub verdict: CheckStatus,
    /// The result for people. If the check failed, the cause.
    pub says: String,
    /// The fix, if something is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
    /// Details of the step, for the JSON report.
    #[serde(flatten)]
    pub facts: Map<String, Value>,
}

/// The steps of a diagnosis so far.
#[derive(Debug, Default)]
pub(super) struct DiagnosisSteps(pub(super) Vec<DiagnosisStep>);

impl DiagnosisSteps {
    /// The diagnosis of `target` with these steps.
    pub(super) fn into_diagnosis(self, target: impl Into<String>) -> Diagnosis {
        Diagnosis {
            target: target.into(),
            checks: self.0,
        }
    }

    /// Adds a step. A failed step gets the [`usual_fix`] of its check; [`DiagnosisSteps::fix`]
    /// replaces that fix.
    pub(super) fn add(
        &mut self,
        check: &'static str,
        verdict: CheckStatus,
        says: impl Into<String>,
        facts: Value,
    ) {
        let facts = match facts {
            Value::Object(facts) => facts,
            _ => Map::new(),
        };
        let says = says.into();
        let fix = match check {
            "tls" if says.contains(EXPIRED) => "renew the certificate of the server",
            check => usual_fix(check),
        };
        let fix = (verdict == CheckStatus::No).then(|| fix.to_owned());
        self.0.push(DiagnosisStep {
            check,
            verdict,
            says,
            fix,
            facts,
        });
    }

    /// Adds a step without facts.
    pub(super) fn say(
        &mut self,
        check: &'static str,
        verdict: CheckStatus,
        says: impl Into<String>,
    ) {
        self.add(check, verdict, says, Value::Null);
    }

    /// Adds a step without facts that passed.
    pub(super) fn ok(&mut self, check: &'static str, says: impl Into<String>) {
        self.say(check, CheckStatus::Ok, says);
    }

    /// Adds a hint without facts.
    pub(super) fn note(&mut self, check: &'static str, says: impl Into<String>) {
        self.say(check, CheckStatus::Note, says);
    }

    /// Adds a step without facts that failed.
    pub(super) fn no(&mut self, check: &'static str, says: impl Into<String>) {
        self.say(check, CheckStatus::No, says);
    }

    /// Sets the fix of the last step.
    pub(super) fn fix(&mut self, fix: impl Into<String>) {
        if let Some(step) = self.0.last_mut() {
            step.fix = Some(fix.into());
        }
    }

    pub(super) fn has_failed(&self) -> bool {
        self.0.iter().any(|step| step.verdict == CheckStatus::No)
    }
}

/// The fix of a name that is reserved for examples, such as those of shipped sites.
pub(super) const REPLACE_EXAMPLE: &str =
    "replace the example by the name of your site, or remove it";

/// The words about a certificate that is no longer valid.
const EXPIRED: &str = ": it expired at ";

/// The usual fix of a failed check.
pub(super) fn usual_fix(check: &str) -> &'static str {
    match check {
        "name" => "add the name to the DNS that this machine uses, or correct the name",
        "proxy" => "start the proxy, or correct the variable or key that names it",
        "connection" => "allow it at the firewall or the proxy, or start the server",
        "tls" => {
            "add its certificate authority as `ca` to the site, or replace the certificate of the \
             server"
        }
        "sign-in" => "correct the account: docker login, or `credentials` of the site",
        "push" => "give the account the right to push there",
        _ => "ask the operator of the host",
    }
}

/// The result of a check. The variants are in the order from best to worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CheckStatus {
    Ok,
    /// A hint: landfall works, but something may be unintended.
    Note,
    /// The check failed.
    No,
}

impl fmt::Display for CheckStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            CheckStatus::Ok => "ok",
            CheckStatus::Note => "note",
            CheckStatus::No => "NO",
        })
    }
}

// The targets of a diagnosis: URLs, registries, proxies.

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CheckTarget {
    /// An http or https URL.
    Url(Url),
    /// A registry, written as in references, and a repository, which may be empty.
    Registry(String, String),
    /// The proxies of the site or the environment.
    Proxies,
}

impl FromStr for CheckTarget {
    type Err = Failure;

    fn from_str(text: &str) -> Result<CheckTarget, Failure> {
        if !text.contains("://") {
            let (host, repository) = text.split_once('/').unwrap_or((text, ""));
            let host = host.to_ascii_lowercase();
            return match Url::parse(&format!("https://{host}/")) {
                Ok(url) if url.path() == "/" && !has_userinfo(&url) && !host.is_empty() => Ok(
                    CheckTarget::Registry(host, repository.trim_end_matches('/').into()),
                ),
                _ => Err(Failure::usage("neither a URL nor HOST[:PORT][/REPOSITORY]")),
            };
        }
        match Url::parse(text) {
            Ok(url) if has_userinfo(&url) => Err(Failure::usage(
                "a URL with a user name is refused; accounts come from auth files or the site",
            )),
            Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(CheckTarget::Url(url)),
            _ => Err(Failure::usage("not an http or https URL")),
        }
    }
}

impl fmt::Display for CheckTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CheckTarget::Url(url) => f.write_str(&redacted_url(url)),
            CheckTarget::Registry(host, repository) if repository.is_empty() => f.write_str(host),
            CheckTarget::Registry(host, repository) => write!(f, "{host}/{repository}"),
            CheckTarget::Proxies => f.write_str("proxy"),
        }
    }
}

/// The targets of a site: its proxies, registry, file server and upstreams. If the lock has files,
/// the target at the file server is the first of them. If `disconnected`, there are no upstreams.
pub(crate) fn targets_of(site: &Site, lock: Option<&Lock>, disconnected: bool) -> Vec<CheckTarget> {
    let registry = site.registry.as_ref().and_then(|registry| {
        let target = registry
            .address
            .parse::<landfall_model::TargetRegistry>()
            .ok()?;
        Some(CheckTarget::Registry(target.registry, String::new()))
    });
    let file = lock.and_then(|lock| lock.files.first()?.name.split_once("://"));
    let below = |base: &String| match file {
        Some((_, file)) => format!("{}/{file}", base.trim_end_matches('/')),
        None => base.clone(),
    };
    let files = site
        .files
        .as_ref()
        .and_then(|base| Some(CheckTarget::Url(Url::parse(&below(base)).ok()?)));
    let upstreams = site
        .upstreams
        .keys()
        .filter(|_| !disconnected)
        .map(|host| CheckTarget::Registry(host.clone(), String::new()));
    std::iter::once(CheckTarget::Proxies)
        .chain(registry)
        .chain(files)
        .chain(upstreams)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_parsed_as_people_write_them() {
        let read = |text: &str| text.parse::<CheckTarget>().map(|target| target.to_string());
        assert_eq!(read("Quay.io"), Ok("quay.io".into()));
        assert_eq!(
            read("172.20.0.2:5000/team/app/"),
            Ok("172.20.0.2:5000/team/app".into())
        );
        assert_eq!(
            read("https://dl.k8s.io/x?token=hush"),
            Ok("https://dl.k8s.io/x?…".into())
        );
        let error = read("https://u:p@dl.k8s.io/").unwrap_err();
        assert!(
            error
                .message
                .starts_with("a URL with a user name is refused")
        );
        assert!(read("u:hush@quay.io").is_err() && read(":hush@quay.io").is_err());
        assert!(read("ftp://x/").is_err() && read("").is_err() && read("a b").is_err());
    }
}
