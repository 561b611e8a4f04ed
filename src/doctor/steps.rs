//! The steps of a diagnosis: each with its result in words, facts for programs, and the fix where
//! one is needed.

use super::CheckStatus;
use serde::Serialize;
use serde_json::{Map, Value};

/// The steps to one target.
#[derive(Debug, Serialize)]
pub(crate) struct Diagnosis {
    /// The target as the user named it.
    pub target: String,
    /// Its steps, up to the first that fails.
    pub checks: Vec<DiagnosisStep>,
}

/// One step.
#[derive(Debug, Serialize)]
pub(crate) struct DiagnosisStep {
    /// What is checked, in a word or two: `name`, `proxy`, `connection`, `tls`, `answer`,
    /// `sign-in`, …
    pub check: &'static str,
    /// The result.
    pub verdict: CheckStatus,
    /// The result in words: of what is wrong, the cause.
    pub says: String,
    /// What to do, where something is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
    /// Facts for programs.
    #[serde(flatten)]
    pub facts: Map<String, Value>,
}

/// The steps so far.
#[derive(Debug, Default)]
pub(super) struct DiagnosisSteps(pub(super) Vec<DiagnosisStep>);

impl DiagnosisSteps {
    /// Adds a step. One that fails gets the fix that its check usually needs; [`DiagnosisSteps::fix`] gives
    /// a better one.
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

    /// Says how the last step is mended.
    pub(super) fn fix(&mut self, fix: impl Into<String>) {
        if let Some(step) = self.0.last_mut() {
            step.fix = Some(fix.into());
        }
    }

    /// Whether a step failed.
    pub(super) fn has_failed(&self) -> bool {
        self.0.iter().any(|step| step.verdict == CheckStatus::No)
    }
}

/// What usually mends a failed check.
pub(super) fn usual_fix(check: &str) -> &'static str {
    match check {
        "name" => "give the name to the DNS that this machine asks, or mend the name",
        "proxy" => "start the proxy, or mend the variable or key that names it",
        "connection" => "let it out at the firewall or the proxy, or start the server",
        "tls" => "name its authority as `ca` in the site, or give the server another certificate",
        "sign-in" => "mend the account: docker login, or `credentials` of the site",
        "push" => "give the account the right to push there",
        _ => "ask whoever runs the host",
    }
}
