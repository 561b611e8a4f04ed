//! Look-ups by key in the entries of a mapping.

use landfall_model::document::{YamlEntry, YamlNode};

/// The position of the entry whose key is the text `key`.
pub(crate) fn position_of(entries: &[YamlEntry<'_>], key: &str) -> Option<usize> {
    entries.iter().position(|entry| entry.key.is_text(key))
}

/// The value of the first entry whose key is the text `key`.
pub(crate) fn value_of<'n>(entries: &'n [YamlEntry<'n>], key: &str) -> Option<&'n YamlNode<'n>> {
    position_of(entries, key).map(|at| &entries[at].value)
}

/// The value of `key`, if it is a scalar that is neither empty nor null.
pub(crate) fn text_of<'n>(entries: &'n [YamlEntry<'n>], key: &str) -> Option<&'n str> {
    value_of(entries, key)?.scalar()?.text()
}

/// The value of `key`, if it is a scalar, even an empty one.
pub(crate) fn scalar_of<'n>(entries: &'n [YamlEntry<'n>], key: &str) -> Option<&'n str> {
    value_of(entries, key)?
        .scalar()
        .map(|scalar| &*scalar.value)
}
