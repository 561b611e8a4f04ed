//! Whether a text reads as a string without quotes.

use landfall_model::document::yaml;

/// Whether `new` in place of `old` reads as a string in a plain scalar, if `old` did.
pub(crate) fn stays_plain(old: &str, new: &str) -> bool {
    let brackets = |text: &str| text.matches(['[', ']']).count();
    brackets(old) == brackets(new) && (!is_plain_text(old) || is_plain_text(new))
}

/// Whether a reference or a part of one reads as a string when it is written without quotes.
fn is_plain_text(text: &str) -> bool {
    let is_it = |value| matches!(value, serde_yaml::Value::String(value) if value == text);
    !text.contains(['[', ']']) && yaml::from_str(text).is_ok_and(is_it)
}
