//! Decides whether a text reads as a string without quotes.

use landfall_model::document::yaml;

/// Whether a plain scalar needs no quotes if `new` replaces `old`: `new` must have as many square
/// brackets as `old`. If `old` has none and is parsed as a string, so must `new`.
pub(crate) fn stays_plain(old: &str, new: &str) -> bool {
    let brackets = |text: &str| text.matches(['[', ']']).count();
    brackets(old) == brackets(new) && (!is_plain_text(old) || is_plain_text(new))
}

/// Whether `text` has no square brackets and reads as a string when it is written without quotes.
fn is_plain_text(text: &str) -> bool {
    !text.contains(['[', ']'])
        && yaml::from_str::<serde_yaml::Value>(text).is_ok_and(|value| value == text)
}
