//! Booleans of YAML 1.1, such as `off`, in documents of charts.
//!
//! Helm reads YAML 1.1: the key `off` is the key `false` to templates, and the value `off` is
//! `false`. The parser of landfall reads YAML 1.2, in which both are texts.

use landfall_model::document::{ScalarStyle, YamlDocuments, YamlNode, YamlScalar};
use std::borrow::Cow;
use std::ops::Range;

const TRUE: [&str; 8] = ["y", "Y", "yes", "Yes", "YES", "on", "On", "ON"];
const FALSE: [&str; 8] = ["n", "N", "no", "No", "NO", "off", "Off", "OFF"];

/// Replaces plain keys and values that are booleans only in YAML 1.1 by `true` and `false`. A text
/// without such words, or that is not YAML, is returned unchanged.
pub(super) fn with_booleans(text: &str) -> Cow<'_, str> {
    replaced(text, |_, boolean| boolean.to_owned())
}

/// Quotes plain keys and values that Helm would read as booleans, in a text of YAML 1.2.
pub(super) fn with_quoted_words(text: &str) -> Cow<'_, str> {
    replaced(text, |word, _| format!("'{word}'"))
}

/// Replaces each boolean of YAML 1.1 by the text that `replacement` returns for the word and its
/// value.
fn replaced(text: &str, replacement: impl Fn(&str, &str) -> String) -> Cow<'_, str> {
    if !may_have_words(text) {
        return Cow::Borrowed(text);
    }
    let mut words: Vec<(Range<usize>, String)> = Vec::new();
    for document in YamlDocuments::new(text, 0..text.len()) {
        let Ok(document) = document else {
            return Cow::Borrowed(text);
        };
        let nodes = document.root.iter().flat_map(YamlNode::descendants);
        let scalars = nodes.filter_map(YamlNode::scalar);
        words.extend(scalars.filter_map(|scalar| {
            let written = replacement(&scalar.value, boolean(scalar)?);
            Some((scalar.span.clone(), written))
        }));
    }
    if words.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut replaced = String::with_capacity(text.len() + 4 * words.len());
    let mut end = 0;
    for (span, word) in words {
        replaced += &text[end..span.start];
        replaced += &word;
        end = span.end;
    }
    replaced += &text[end..];
    Cow::Owned(replaced)
}

/// Whether one of the words stands by itself outside of comments. Most charts have none, and are
/// not read once more.
fn may_have_words(text: &str) -> bool {
    let ends_word = |c: char| c.is_whitespace() || ",:[]{}\u{feff}".contains(c);
    text.split(['\n', '\r'])
        .filter(|line| !line.trim_start().starts_with('#'))
        .flat_map(|line| line.split(ends_word))
        .any(|word| TRUE.contains(&word) || FALSE.contains(&word))
}

/// Whether Helm reads `key` as the key `name`.
pub(super) fn is_key(key: &YamlNode<'_>, name: &str) -> bool {
    key.scalar()
        .is_some_and(|scalar| boolean(scalar).unwrap_or(&scalar.value) == name)
}

/// The boolean that a plain scalar is only in YAML 1.1.
fn boolean(scalar: &YamlScalar<'_>) -> Option<&'static str> {
    let word = &*scalar.value;
    if scalar.style != ScalarStyle::Plain || scalar.tag().is_some() {
        None
    } else if TRUE.contains(&word) {
        Some("true")
    } else {
        FALSE.contains(&word).then_some("false")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compared with `helm template` of Helm 3.22, which prints `.Values`.
    #[test]
    fn words_of_yaml_1_1_are_booleans_where_helm_reads_booleans() {
        for word in TRUE {
            assert_eq!(with_booleans(&format!("{word}: {word}\n")), "true: true\n");
        }
        for word in FALSE {
            assert_eq!(with_booleans(&format!("a: [{word}, é]")), "a: [false, é]");
        }
        assert_eq!(
            with_booleans("x: &off off\nq: {*off : 1, ? Off : 1}\n---\nNO: 1 # off\n"),
            "x: &off false\nq: {*off : 1, ? false : 1}\n---\nfalse: 1 # off\n"
        );
        for text in [
            "oN: yEs\n",
            "'off': \"no\"\n",
            "off-site: !!str off\n",
            "a: |\n  off\n",
            "off: [\n",
        ] {
            assert_eq!(with_booleans(text), text);
        }
    }
}
