//! Recognizes the placeholders in references and URLs. Another program replaces them later.

/// The beginning and the end of a placeholder, and the beginning of a nested one. `${{` must
/// precede `${`.
const BRACKETS: [(&str, &str, Option<&str>); 4] = [
    ("{{", "}}", None),
    ("${{", "}}", None),
    ("${", "}", Some("${")),
    ("$(", ")", Some("(")),
];

/// The length of the placeholder at the beginning of `text`: `$NAME`, `${…}`, `$(…)`, `{{…}}` or
/// `${{…}}`, on one line and at most `max_bytes` bytes long.
pub(super) fn placeholder(text: &str, max_bytes: usize) -> Option<usize> {
    // without the limit, a text of unclosed brackets would take quadratic time
    let text = &text[..text.floor_char_boundary(max_bytes)];
    if let Some((open, close, inner)) = BRACKETS.iter().find(|(open, ..)| text.starts_with(open)) {
        let line = text.split('\n').next()?;
        return Some(open.len() + closed(&line[open.len()..], close, *inner)?);
    }
    let name = text.strip_prefix('$')?;
    let len = name
        .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .unwrap_or(name.len());
    (len > 0).then_some(1 + len)
}

/// The offset after the `close` that matches the bracket before `text`. Nested brackets begin with
/// `open`, and each has a `close` of its own.
fn closed(text: &str, close: &str, open: Option<&str>) -> Option<usize> {
    let mut depth = 1;
    let mut at = 0;
    while depth > 0 {
        let end = at + text[at..].find(close)?;
        depth += open.map_or(0, |open| text[at..end].matches(open).count());
        depth -= 1;
        at = end + close.len();
    }
    Some(at)
}

/// The reference with placeholders, or the pattern, that `text` begins with, as it is printed. It
/// has at most `max_bytes` bytes. Outside of `{{…}}`, it ends before a blank, a quote, a separator
/// of commands or an unmatched closing bracket. The text after it may be a password.
pub(crate) fn reference_at(text: &str, max_bytes: usize) -> &str {
    let text = &text[..text.floor_char_boundary(max_bytes)];
    let mut end = 0;
    let mut open = Vec::new();
    while let Some(next) = text[end..].chars().next() {
        if text[end..].starts_with("{{") {
            let Some(len) = placeholder(&text[end..], max_bytes) else {
                return &text[..end + 2];
            };
            end += len;
            continue;
        }
        let is_alternative = next == '|' && open.contains(&')');
        if (ends(next) && !is_alternative) || text[end..].starts_with("</") {
            break;
        }
        match next {
            '(' => open.push(')'),
            '[' => open.push(']'),
            '{' => open.push('}'),
            '<' => open.push('>'),
            ')' | ']' | '}' | '>' if open.pop() != Some(next) => break,
            _ => {}
        }
        end += next.len_utf8();
    }
    text[..end].trim_end_matches('.')
}

fn ends(c: char) -> bool {
    c.is_whitespace() || c.is_control() || "\"'`\\,;|&".contains(c)
}

/// Whether `text` contains the beginning of a placeholder of a template or a shell, or a
/// placeholder such as `__TAG__`.
pub(crate) fn has_placeholder(text: &str) -> bool {
    ["{{", "${", "$("].iter().any(|mark| text.contains(mark)) || has_underscored(text)
}

/// Whether `text` contains `__` in a position other than between two lower-case letters or digits.
/// Between these, `__` may be part of a repository or a tag.
fn has_underscored(text: &str) -> bool {
    let is_word = |byte: Option<&u8>| {
        byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    text.match_indices("__").any(|(at, mark)| {
        let bytes = text.as_bytes();
        !(is_word(bytes[..at].last()) && is_word(bytes.get(at + mark.len())))
    })
}

#[cfg(test)]
mod tests {
    use super::{has_placeholder, placeholder, reference_at};

    #[test]
    fn two_underscores_between_words_are_a_separator() {
        for text in ["quay.io/a/b__c:v1", "a:v1__2", "a_b"] {
            assert!(!has_placeholder(text), "{text}");
        }
        for text in [
            "a:__TAG__",
            "a:__tag__",
            "__HOST__/a",
            "a:v__TAG__",
            "a:v1___2",
        ] {
            assert!(has_placeholder(text), "{text}");
        }
    }

    #[test]
    fn a_placeholder_ends_at_the_matching_bracket() {
        for (text, expected) in [
            ("$NAME/x", "$NAME"),
            ("${NAME}/x}", "${NAME}"),
            ("${{ github.ref }}/x", "${{ github.ref }}"),
            ("${{ a }}-${{ b }}/x", "${{ a }}"),
            ("${A:-${B}}/x", "${A:-${B}}"),
            ("$(uname -m | sed s/(x)/y/)/x", "$(uname -m | sed s/(x)/y/)"),
            ("{{ .a }}/{{ .b }}", "{{ .a }}"),
        ] {
            assert_eq!(placeholder(text, 100), Some(expected.len()), "{text}");
        }
        for text in ["${{ a }", "${A:-${B}", "$(a", "{{ a\n}}", "$", "$/x", "x"] {
            assert_eq!(placeholder(text, 100), None, "{text}");
        }
    }

    #[test]
    fn a_reference_ends_at_a_blank_and_at_the_limit() {
        for (text, expected) in [
            ("a/b:$TAG --password x", "a/b:$TAG"),
            ("a/b:$TAG;x=y", "a/b:$TAG"),
            (
                "a/b:{{ .Values.tag }}-{{ .x }} y",
                "a/b:{{ .Values.tag }}-{{ .x }}",
            ),
            ("a/b:{{ tag \"x y\" }} z", "a/b:{{ tag \"x y\" }}"),
            ("a/b:{{ .x }}\" {{ .y }}", "a/b:{{ .x }}"),
            ("a/b:{{ .x", "a/b:{{"),
            ("a/b:${TAG}\nx", "a/b:${TAG}"),
            ("a/b:<TAG>", "a/b:<TAG>"),
            ("a/b:$(cat /x)", "a/b:$(cat"),
            ("a/b:$T) x", "a/b:$T"),
            ("a/b:$T</b>", "a/b:$T"),
            ("a/b:$T.", "a/b:$T"),
            ("a/b:(1|[2-3])|x", "a/b:(1|[2-3])"),
        ] {
            assert_eq!(reference_at(text, 100), expected);
        }
        let long = format!("a/b:$T{}", "é".repeat(100));
        assert_eq!(reference_at(&long, 101).len(), 100);
    }
}
