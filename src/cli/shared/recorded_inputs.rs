//! The files that a command read, with their digests, for the evidence log.

use crate::evidence::{NamedDigest, RecordedInput};
use landfall_model::{Digest, locked, redact_userinfo};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;

/// Collects the files that a command reads.
#[derive(Default)]
pub(crate) struct RecordedInputs(Mutex<BTreeSet<RecordedInput>>);

impl RecordedInputs {
    /// Adds a file: its role, such as `lock`, its path or URL, and its digest.
    pub(crate) fn add(&self, role: &str, path: &Path, digest: &Digest) {
        let input = RecordedInput {
            role: role.to_owned(),
            content: NamedDigest::new(without_secrets(&path.display().to_string()), digest),
        };
        let mut inputs = locked(&self.0);
        inputs.insert(input);
    }

    /// The files so far, sorted.
    pub(crate) fn list(&self) -> Vec<RecordedInput> {
        let inputs = locked(&self.0);
        inputs.iter().cloned().collect()
    }
}

/// The name of a file without the account and the signature that a URL may contain.
pub(crate) fn without_secrets(name: &str) -> String {
    let Some((scheme, rest)) = name.split_once("://") else {
        return name.to_owned();
    };
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    format!("{scheme}://{}{path}", redact_userinfo(host))
}

/// A message with [`without_secrets`] applied to each URL, because it may quote an argument of the
/// user.
pub(crate) fn message_without_secrets(message: &str) -> String {
    let words = message.split_inclusive(char::is_whitespace);
    words
        .map(|word| {
            let text = word.trim_end();
            without_secrets(text) + &word[text.len()..]
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_no_secret() {
        for (name, shown) in [
            ("bundle.tar.zst", "bundle.tar.zst"),
            ("a?b@c", "a?b@c"),
            ("s3://bucket/b.tar.zst?X-Sig=abc", "s3://bucket/b.tar.zst"),
            ("s3://me:hunter2@bucket/b#x", "s3://***@bucket/b"),
        ] {
            assert_eq!(without_secrets(name), shown);
        }
        assert_eq!(
            message_without_secrets(
                "cannot read http://joe:pw@h.test: refused\nhelp: `x s3://b/c?sig=y` a@b"
            ),
            "cannot read http://***@h.test: refused\nhelp: `x s3://b/c a@b"
        );
    }
}
