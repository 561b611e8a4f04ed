//! Decides whether a text reads as a string without quotes.

use landfall_model::document::yaml;

/// Whether `new` is parsed as a string if it replaces `old`, a string, in a plain scalar.
pub(crate) fn stays_plain(old: &str, new: &str) -> bool {
    let brackets = |text: &str| text.matches(['[', ']']).count();
    brackets(old) == brackets(new) && (!is_plain_text(old) || is_plain_text(new))
}

/// Whether a reference or a part of one reads as a string when it is written without quotes.
fn is_plain_text(text: &str) -> bool {
    !text.contains(['[', ']'])
        && yaml::from_str::<serde_yaml::Value>(text).is_ok_and(|value| value == text)
}
