//! Why does it not connect? Each step on the way to a host, explained: name, proxy and the rule that chose it,
//! connection, certificate, answer, sign-in, redirects; and a lint of what names the proxies.

mod lint;
mod way;

pub use lint::{Finding, lint_entries, lint_environment};
pub use way::{Diagnosis, Step, Target, examine, targets_of};

use serde::Serialize;

/// What a check comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// As it should be.
    Ok,
    /// Worth knowing; landfall works.
    Note,
    /// landfall, or whoever follows Go's rules, will not do what is meant.
    No,
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Verdict::Ok => "ok",
            Verdict::Note => "note",
            Verdict::No => "NO",
        })
    }
}
