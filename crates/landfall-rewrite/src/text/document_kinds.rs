//! Finds the `kind` of documents in texts that are not YAML.

use std::ops::Range;

/// The number of bytes after `kind:` that are searched. Without a limit, a text that repeats the
/// word would take quadratic time.
const KIND_BYTES: usize = 256;

/// The documents of a stream, split at their markers.
pub(super) fn documents(text: &str) -> impl Iterator<Item = (Range<usize>, &str)> {
    let mut at = 0;
    text.split_inclusive("\n---").map(move |document| {
        let start = at;
        at += document.len();
        (start..at, document)
    })
}

/// Whether the value of a `kind` in `document` contains one of the words `kinds`. The value may be
/// a template call, so each word of it is compared.
pub(super) fn is_of_kind(document: &str, kinds: &[&str]) -> bool {
    document.match_indices("kind").any(|(at, key)| {
        let value = kind_value(&document[at + key.len()..]);
        let mut words = value.split(|c: char| !c.is_ascii_alphanumeric());
        words.any(|word| kinds.contains(&word))
    })
}

/// The first line of the value in `rest`, the text after a `kind`. Empty if the `kind` is not a
/// key.
fn kind_value(rest: &str) -> &str {
    let Some(value) = rest
        .trim_start_matches(['"', '\'', ' ', '\t'])
        .strip_prefix(':')
    else {
        return "";
    };
    let value = value.trim_start();
    let value = &value[..value.floor_char_boundary(KIND_BYTES)];
    value.lines().next().unwrap_or_default()
}
