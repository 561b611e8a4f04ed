//! The messages of the lint of proxy settings.

use super::CheckStatus;
use serde::Serialize;

/// A message about one entry of NO_PROXY or one variable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct LintMessage {
    /// The text of the entry, or the name of the variable. Never a value, which may contain a
    /// password.
    pub about: String,
    /// The setting that contains the entry, or `the environment` for a variable.
    pub source: String,
    /// The severity of the message.
    pub verdict: CheckStatus,
    /// The programs that the message is about: they interpret the entry differently from landfall,
    /// or the entry has no effect in them.
    pub clients: Vec<&'static str>,
    /// The way in which these programs interpret the entry.
    pub says: String,
    /// The fix: the entry to write instead, or the change to the variables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instead: Option<String>,
}

/// The programs that follow Go's rules.
pub(super) const GO: [&str; 3] = ["landfall", "containerd", "kubelet"];
