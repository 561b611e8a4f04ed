//! Quotes text for commands that people copy into a shell.

/// Quotes `text` as one word of a POSIX shell.
pub fn shell_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Returns `text` as one word of a POSIX shell, quoted only if needed.
pub fn shell_word(text: &str) -> String {
    if !text.is_empty() && text.chars().all(is_plain_in_shell) {
        text.to_owned()
    } else {
        shell_quoted(text)
    }
}

fn is_plain_in_shell(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_quoted_if_a_shell_would_change_it() {
        for (text, word) in [
            ("a/b-1.yaml", "a/b-1.yaml"),
            ("/mnt/1/V.0001", "/mnt/1/V.0001"),
            ("my disc/V", "'my disc/V'"),
            ("my file's", r"'my file'\''s'"),
            ("it's", r"'it'\''s'"),
            ("quay.io/a/b:v1@sha256:0", "quay.io/a/b:v1@sha256:0"),
            ("x'; rm -rf $HOME", r"'x'\''; rm -rf $HOME'"),
            ("", "''"),
        ] {
            assert_eq!(shell_word(text), word);
        }
        assert_eq!(shell_quoted("a'b $c"), r"'a'\''b $c'");
    }
}
