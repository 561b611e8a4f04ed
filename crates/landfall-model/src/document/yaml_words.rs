//! Booleans and numbers of YAML 1.1, such as `off` and `010`.
//!
//! Helm and Kubernetes read YAML 1.1: the key `off` is the key `false` to templates, and the value
//! `off` is `false`; `010` is 8, and `1_000` is 1000. The parser of landfall reads YAML 1.2, in
//! which all of them are texts.

use crate::document::{ScalarStyle, YamlDocuments, YamlNode, YamlScalar, yaml};
use serde_yaml::Value;
use std::borrow::Cow;
use std::ops::Range;

const TRUE: [&str; 8] = ["y", "Y", "yes", "Yes", "YES", "on", "On", "ON"];
const FALSE: [&str; 8] = ["n", "N", "no", "No", "NO", "off", "Off", "OFF"];

/// Replaces plain keys and values that are booleans or numbers only in YAML 1.1 by `true`, `false`
/// and decimal numbers. A text without such words, or that is not YAML, is returned unchanged.
pub fn in_yaml_1_2(text: &str) -> Cow<'_, str> {
    replaced(text, |_, value| value.to_owned())
}

/// Quotes plain keys and values that Helm and Kubernetes would read as booleans or numbers, in a
/// text of YAML 1.2.
pub fn with_quoted_words(text: &str) -> Cow<'_, str> {
    replaced(text, |word, _| format!("'{word}'"))
}

/// Replaces each boolean and number of YAML 1.1 by the text that `replacement` returns for the word
/// and its value.
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
            let written = replacement(&scalar.value, &value(scalar)?);
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
        .any(|word| word_value(word).is_some())
}

/// The text of a key as Helm reads it; `None` if the key is not a scalar.
pub fn key_text(key: &YamlNode<'_>) -> Option<String> {
    let scalar = key.scalar()?;
    Some(value(scalar).map_or_else(|| scalar.value.clone().into_owned(), Cow::into_owned))
}

/// The boolean or number that a plain scalar is only in YAML 1.1.
fn value(scalar: &YamlScalar<'_>) -> Option<Cow<'static, str>> {
    let is_plain = scalar.style == ScalarStyle::Plain && scalar.tag().is_none();
    word_value(&scalar.value).filter(|_| is_plain)
}

/// The boolean or number that `word` is only in YAML 1.1.
fn word_value(word: &str) -> Option<Cow<'static, str>> {
    if TRUE.contains(&word) {
        Some("true".into())
    } else if FALSE.contains(&word) {
        Some("false".into())
    } else {
        number(word).map(Cow::Owned)
    }
}

/// The decimal form of a number that is one only in YAML 1.1, as the reader of Helm understands
/// YAML 1.1: digits may be grouped with `_`; a zero at the start means octal, or decimal if a digit
/// is 8 or 9; the prefixes may be upper case. Sexagesimal numbers such as `1:30` are texts.
fn number(word: &str) -> Option<String> {
    let unsigned = word.strip_prefix(['-', '+']).unwrap_or(word);
    let sign = if word.starts_with('-') { "-" } else { "" };
    let has_zero = unsigned.starts_with('0') && unsigned.len() > 1;
    let is_number = unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    // the common forms are the same in YAML 1.2
    if !is_number || !(has_zero || unsigned.contains('_')) {
        return None;
    }
    // the parser must see a text, and not the same number
    if !matches!(yaml::from_slice(word.as_bytes()), Ok(Value::String(_))) {
        return None;
    }
    let digits = unsigned.replace('_', "");
    let (radix, rest) = match digits.get(..2).map(str::to_ascii_lowercase).as_deref() {
        Some("0x") => (16, &digits[2..]),
        Some("0o") => (8, &digits[2..]),
        Some("0b") => (2, &digits[2..]),
        _ if digits.starts_with('0') => (8, &*digits),
        _ => (10, &*digits),
    };
    let integer = (!rest.starts_with(['+', '-'])).then(|| u64::from_str_radix(rest, radix).ok());
    if let Some(integer) = integer.flatten() {
        return Some(format!("{sign}{integer}"));
    }
    let is_decimal = |c: char| c.is_ascii_digit() || ".eE+-".contains(c);
    let float: f64 = digits
        .parse()
        .ok()
        .filter(|_| digits.chars().all(is_decimal))?;
    float.is_finite().then(|| format!("{sign}{float}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compared with `helm template` of Helm 3.22, which prints `.Values`.
    #[test]
    fn words_of_yaml_1_1_are_booleans_where_helm_reads_booleans() {
        for word in TRUE {
            assert_eq!(in_yaml_1_2(&format!("{word}: {word}\n")), "true: true\n");
        }
        for word in FALSE {
            assert_eq!(in_yaml_1_2(&format!("a: [{word}, é]")), "a: [false, é]");
        }
        assert_eq!(
            in_yaml_1_2("x: &off off\nq: {*off : 1, ? Off : 1}\n---\nNO: 1 # off\n"),
            "x: &off false\nq: {*off : 1, ? false : 1}\n---\nfalse: 1 # off\n"
        );
        for text in [
            "oN: yEs\n",
            "'off': \"no\"\n",
            "off-site: !!str off\n",
            "a: |\n  off\n",
            "off: [\n",
        ] {
            assert_eq!(in_yaml_1_2(text), text);
        }
    }
    /// Compared with `helm template` of Helm 3.22, which prints `.Values`.
    #[test]
    fn numbers_of_yaml_1_1_are_numbers_as_for_helm() {
        for (word, decimal) in [
            ("010", "8"),
            ("-010", "-8"),
            ("+010", "8"),
            ("00", "0"),
            ("0777", "511"),
            ("012_3", "83"),
            ("08", "8"),
            ("019", "19"),
            ("0_8", "8"),
            ("0800", "800"),
            ("0X1F", "31"),
            ("0x_1F", "31"),
            ("0O17", "15"),
            ("0o1_7", "15"),
            ("0b_1", "1"),
            ("0b1111_0000", "240"),
            ("1_000", "1000"),
            ("-1_0", "-10"),
            ("1__0", "10"),
            ("1_", "1"),
            ("1_0.5", "10.5"),
            (".5_5", "0.55"),
            ("1e1_0", "10000000000"),
        ] {
            assert_eq!(
                in_yaml_1_2(&format!("a: {word}\n")),
                format!("a: {decimal}\n")
            );
            let quoted = with_quoted_words(&format!("a: {word}\n")).into_owned();
            assert_eq!(quoted, format!("a: '{word}'\n"));
        }
        // the same in both versions, or texts in both
        for word in [
            "0x10",
            "0o10",
            "0b11",
            "12",
            "1.10",
            "1e3",
            "0",
            "-0",
            "1:30",
            "190:20:30",
            "0x",
            "0o8",
            "0b2",
            "_1",
            "1.1.1",
            "0.0.1",
            "0xG",
            "2024-01-01",
            "0o-1",
            "v1_0",
            "1_0_x",
        ] {
            let text = format!("a: {word}\n");
            assert_eq!(in_yaml_1_2(&text), text);
            assert_eq!(with_quoted_words(&text), text);
        }
        assert_eq!(in_yaml_1_2("010: '010'\n"), "8: '010'\n");
    }
}
