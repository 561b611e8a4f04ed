//! The steps of a diagnosis: each with its result for people, facts for programs, and the fix if
//! one is needed.

use super::CheckStatus;
use serde::Serialize;
use serde_json::{Map, Value};

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
        let fix = (verdict == CheckStatus::No).then(|| usual_fix(check).to_owned());
        self.0.push(DiagnosisStep {
            check,
            verdict,
            says: says.into(),
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
