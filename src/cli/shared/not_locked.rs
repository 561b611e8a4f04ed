//! What a rewrite does not know: how many references the lock lacks, and the command that lists them.

use crate::rewrite::audit::{Coverage, FileFinding};
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
        let missing = found.iter().filter(|one| matches!(one.finding.coverage, Coverage::Missing { .. }));
        let words: Vec<String> = words.iter().map(|word| for_shell(word)).collect();
        NotLocked { count: missing.count(), audit: words.join(" ") }
    }

    /// The line about them, where there are any.
    pub(crate) fn line(&self) -> Option<String> {
        let (are, them) = match self.count {
            0 => return None,
            1 => ("1 reference is", "it"),
            _ => ("references are", "them"),
        };
        let count = if self.count == 1 { String::new() } else { format!("{} ", self.count) };
        Some(format!("{count}{are} not in the lock; to list {them}: {}", self.audit))
    }

    /// The member of the JSON document.
    pub(crate) fn member(&self) -> Value {
        json!({"count": self.count, "audit": self.audit})
    }
}

/// `word` as a shell takes it.
pub(crate) fn for_shell(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_quoted_where_a_shell_would_read_it_otherwise() {
        assert_eq!(for_shell("a/b-1.yaml"), "a/b-1.yaml");
        assert_eq!(for_shell("my file's"), r"'my file'\''s'");
        assert_eq!(for_shell(""), "''");
    }
}
