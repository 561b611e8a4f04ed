//! A set of words such that every text with a known reference contains at least one of them. Texts
//! without any of them need not be read.

use super::reference_index::basename;
use aho_corasick::AhoCorasick;
use landfall_model::alias_hosts;
use std::collections::BTreeSet;

/// Words of texts in which references may be hidden: by encoded content, by escaped line breaks, or
/// by escapes of the characters that references have (ASCII from `-` to `z`).
const HIDING: [&str; 19] = [
    "b64",
    "base64",
    "secret",
    "binarydata",
    "!!binary",
    ":binary>",
    "encoding",
    "userdata",
    "user_data",
    "customdata",
    "\\u00",
    "\\x2",
    "\\x3",
    "\\x4",
    "\\x5",
    "\\x6",
    "\\x7",
    "\\\n",
    "\\\r\n",
];

/// Finds the words in a text.
#[derive(Debug, Clone, Default)]
pub(super) struct WordMatcher(Option<AhoCorasick>);

impl WordMatcher {
    /// A matcher for texts with one of the words `urls`, or with a reference to one of the
    /// repositories `names`, even if the reference is split into several values. Texts with a word
    /// of `HIDING` match too.
    pub(super) fn new<'n>(
        names: impl Iterator<Item = &'n String>,
        urls: impl Iterator<Item = &'n str>,
    ) -> WordMatcher {
        let words: BTreeSet<&str> = names
            .flat_map(|name| {
                // the registry of a split reference is a value of its own
                let host = name.split('/').next().unwrap_or(name);
                let parts = [basename(name), first(name), host];
                parts
                    .into_iter()
                    .chain(first(name).split(':').take(1))
                    .chain(alias_hosts(host).map(|host| -> &str { host }))
            })
            .chain(urls)
            .chain(HIDING)
            .collect();
        WordMatcher(
            AhoCorasick::builder()
                // hosts and the words in `HIDING` may have upper-case letters
                .ascii_case_insensitive(true)
                .build(words)
                .ok(),
        )
    }

    /// Whether one of the words is in `text`.
    pub(super) fn is_in(&self, text: &str) -> bool {
        self.0.as_ref().is_none_or(|words| words.is_match(text))
    }
}

/// The first component of the reference `name`, without `docker.io`, which is usually omitted.
fn first(name: &str) -> &str {
    let name = name.strip_prefix("docker.io/").unwrap_or(name);
    name.split('/').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_whose_words_may_be_hidden_by_escapes_are_read() {
        let names = ["docker.io/nginx".to_owned()];
        let matcher = WordMatcher::new(names.iter(), std::iter::empty());
        for text in [
            "image: nginx:1",
            r#"image: "ngin\x78:1""#,
            r#"image: "ngin\u0078:1""#,
            r#"image: "ngin\U00000078:1""#,
            "image: \"ngi\\\n  nx:1\"",
        ] {
            assert!(matcher.is_in(text), "{text}");
        }
        for text in [
            "image: redis:7",
            r"color: \x1b[1m",
            r"C:\Users\xavier",
            r"\u2026",
        ] {
            assert!(!matcher.is_in(text), "{text}");
        }
    }
}
