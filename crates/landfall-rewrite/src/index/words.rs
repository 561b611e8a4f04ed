//! The words of an index: a text that contains none of them has no known reference, and is not read
//! any further.

use super::basenames::basename;
use aho_corasick::AhoCorasick;
use landfall_model::alias_hosts;
use std::collections::BTreeSet;

/// What stands in a text that may hide references which its own bytes do not show: encoded content,
/// and escapes.
const HIDING: [&str; 11] = [
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
    "\\u",
];

/// Words, one of which every text with a known reference contains.
#[derive(Debug, Clone, Default)]
pub(super) struct Words(Option<AhoCorasick>);

impl Words {
    /// The words of the repositories `names`, however a reference to them is split, and `urls`.
    pub(super) fn new<'n>(
        names: impl Iterator<Item = &'n String>,
        urls: impl Iterator<Item = &'n str>,
    ) -> Words {
        let words: BTreeSet<&str> = names
            .flat_map(|name| {
                // a registry may stand by itself
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
        Words(
            AhoCorasick::builder()
                .ascii_case_insensitive(true)
                .build(words)
                .ok(),
        )
    }

    /// Whether one of them is in `text`.
    pub(super) fn is_in(&self, text: &str) -> bool {
        self.0.as_ref().is_none_or(|words| words.is_match(text))
    }
}

/// The word by which a prefix of the reference `name` is known: its host, or what follows
/// `docker.io`, which is usually omitted.
fn first(name: &str) -> &str {
    let name = name.strip_prefix("docker.io/").unwrap_or(name);
    name.split('/').next().unwrap_or(name)
}
