//! What a document says that it is, in texts that do not parse.

use std::ops::Range;

/// How much of a text after `kind:` is looked at, in bytes.
const KIND_BYTES: usize = 256;

/// The documents of a stream, cut at their markers.
pub(super) fn documents(text: &str) -> impl Iterator<Item = (Range<usize>, &str)> {
    let mut at = 0;
    text.split_inclusive("\n---").map(move |document| {
        let start = at;
        at += document.len();
        (start..at, document)
    })
}

/// Whether one of the words `kinds` stands in a `kind` of `document`.
pub(super) fn is_of_kind(document: &str, kinds: &[&str]) -> bool {
    let quotes = ['"', '\'', ' ', '\t'];
    let says_so = |(at, key): (usize, &str)| {
        let rest = document[at + key.len()..]
            .trim_start_matches(quotes)
            .strip_prefix(':');
        let value = rest.unwrap_or_default().trim_start();
        let value = &value[..value.floor_char_boundary(KIND_BYTES)];
        let mut words = value
            .lines()
            .next()
            .unwrap_or_default()
            .split(|c: char| !c.is_ascii_alphanumeric());
        words.any(|word| kinds.contains(&word))
    };
    document.match_indices("kind").any(says_so)
}
