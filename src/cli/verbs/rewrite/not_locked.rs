//! The references that a rewrite leaves unchanged because the lock lacks them.

use landfall_model::report::shell_word;
use landfall_rewrite::audit::{FileFinding, LockCoverage};
use serde_json::{Value, json};

/// The number of references that the lock lacks, and the command that lists them.
pub(crate) struct NotLocked {
    count: usize,
    /// The command that lists these references.
    audit: String,
}

impl NotLocked {
    /// Counts the missing references in `found`. `words` are the command that lists them.
    pub(crate) fn new(found: &[FileFinding], words: &[String]) -> NotLocked {
        let missing = found
            .iter()
            .filter(|one| matches!(one.finding.coverage, LockCoverage::Missing { .. }));
        let words: Vec<String> = words.iter().map(|word| shell_word(word)).collect();
        NotLocked {
            count: missing.count(),
            audit: words.join(" "),
        }
    }

    /// The line about the missing references, if there are any.
    pub(crate) fn line(&self) -> Option<String> {
        let (are, them) = match self.count {
            0 => return None,
            1 => ("1 reference is".to_owned(), "it"),
            count => (format!("{count} references are"), "them"),
        };
        Some(format!(
            "{are} not in the lock; to list {them}: {}",
            self.audit
        ))
    }

    /// The member `unknown` of the report.
    pub(crate) fn member(&self) -> Value {
        json!({"count": self.count, "audit": self.audit})
    }
}
