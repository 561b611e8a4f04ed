//! What a rewrite does not know: how many references the lock lacks, and the command that lists
//! them.

use landfall_model::report::shell_word;
use landfall_rewrite::audit::{FileFinding, LockCoverage};
use serde_json::{Value, json};

/// References that the lock lacks.
pub(crate) struct NotLocked {
    /// In how many places.
    count: usize,
    /// The command that lists them.
    audit: String,
}

impl NotLocked {
    /// Those of `found`, which the command of these `words` finds.
    pub(crate) fn of(found: &[FileFinding], words: &[String]) -> NotLocked {
        let missing = found
            .iter()
            .filter(|one| matches!(one.finding.coverage, LockCoverage::Missing { .. }));
        let words: Vec<String> = words.iter().map(|word| shell_word(word)).collect();
        NotLocked {
            count: missing.count(),
            audit: words.join(" "),
        }
    }

    /// The line about them, where there are any.
    pub(crate) fn line(&self) -> Option<String> {
        let (are, them) = match self.count {
            0 => return None,
            1 => ("1 reference is", "it"),
            _ => ("references are", "them"),
        };
        let count = if self.count == 1 {
            String::new()
        } else {
            format!("{} ", self.count)
        };
        Some(format!(
            "{count}{are} not in the lock; to list {them}: {}",
            self.audit
        ))
    }

    /// The member of the JSON document.
    pub(crate) fn member(&self) -> Value {
        json!({"count": self.count, "audit": self.audit})
    }
}
