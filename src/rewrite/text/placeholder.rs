//! Placeholders in references and URLs: something else puts a text in their place later.

/// How long the placeholder at the beginning of `text` is: `$NAME`, `${…}`, `$(…)`, `{{…}}`, all on one line and no longer
/// than `most` bytes.
pub(super) fn placeholder(text: &str, most: usize) -> Option<usize> {
    let text = &text[..text.floor_char_boundary(most)];
    let closed = |open: &str, close: &str| {
        let rest = text.strip_prefix(open)?.split('\n').next()?;
        Some(open.len() + rest.find(close)? + close.len())
    };
    if let Some(len) = closed("{{", "}}").or_else(|| closed("${", "}")).or_else(|| closed("$(", ")")) {
        return Some(len);
    }
    let name = text.strip_prefix('$')?;
    let len = name.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(name.len());
    (len > 0).then_some(1 + len)
}

/// The reference with placeholders that `text` begins with. It ends at a blank, at a quote and at what ends a command, but
/// those in `{{ … }}` count not; and after `most` bytes. What follows a reference may be a password.
pub(in crate::rewrite) fn reference_at(text: &str, most: usize) -> &str {
    let text = &text[..text.floor_char_boundary(most)];
    let mut end = 0;
    loop {
        let len = text[end..].find(ends).unwrap_or(text.len() - end);
        let whole = &text[..end + len];
        let Some(start) = text[end..end + len].find("{{") else { return whole };
        let Some(len) = placeholder(&text[end + start..], most) else { return whole };
        end += start + len;
    }
}

fn ends(c: char) -> bool {
    c.is_whitespace() || c.is_control() || "\"'`\\,;|&".contains(c)
}

#[cfg(test)]
mod tests {
    use super::reference_at;

    #[test]
    fn a_reference_ends_at_a_blank_and_has_a_bound() {
        for (text, expected) in [
            ("a/b:$TAG --password x", "a/b:$TAG"),
            ("a/b:$TAG;x=y", "a/b:$TAG"),
            ("a/b:{{ .Values.tag }}-{{ .x }} y", "a/b:{{ .Values.tag }}-{{ .x }}"),
            ("a/b:{{ tag \"x y\" }} z", "a/b:{{ tag \"x y\" }}"),
            ("a/b:{{ .x }}\" {{ .y }}", "a/b:{{ .x }}"),
            ("a/b:{{ .x", "a/b:{{"),
            ("a/b:${TAG}\nx", "a/b:${TAG}"),
            ("a/b:<TAG>", "a/b:<TAG>"),
            ("a/b:$(cat /x)", "a/b:$(cat"),
        ] {
            assert_eq!(reference_at(text, 100), expected);
        }
        let long = format!("a/b:$T{}", "é".repeat(100));
        assert_eq!(reference_at(&long, 101).len(), 100);
    }
}
