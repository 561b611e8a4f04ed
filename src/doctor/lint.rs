//! What the lint of proxy settings says.

use super::CheckStatus;
use serde::Serialize;

/// A message about one entry of NO_PROXY or one variable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct LintMessage {
    /// The entry as it is written, or the variable's name. Never a value that may hold a password.
    pub about: String,
    /// The setting that has the entry.
    pub source: String,
    /// How bad it is.
    pub verdict: CheckStatus,
    /// The programs that differ from landfall, or do not do what is meant.
    pub clients: Vec<&'static str>,
    /// What they do.
    pub says: String,
    /// What to write instead, where something is better.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instead: Option<String>,
}

/// The programs that follow Go's rules.
pub(super) const GO: [&str; 3] = ["landfall", "containerd", "kubelet"];
