//! Paths below the URL of a repository. They come from its indexes, so they are checked.

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

/// The characters that are percent-encoded in the path of a URL. `+`, `~` and `:` are common in the
/// names of packages and are not encoded; servers accept both forms.
const ENCODED: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'`')
    .add(b'{')
    .add(b'}');

/// Whether `path` stays below the URL that it is relative to, and can be one word in a line of the
/// lock.
pub fn is_plain_path(path: &str) -> bool {
    path.len() < 1024
        // an empty part is a leading, trailing or double slash
        && path.split('/').all(|part| !matches!(part, "" | "." | ".."))
        // U+FFFD replaces bytes that are not UTF-8, so the original path is lost
        && !path.contains(|c: char| {
            c.is_whitespace() || c.is_control() || matches!(c, '\\' | '\u{fffd}')
        })
}

/// Returns the URL of `path` below `base`.
pub fn file_url(base: &str, path: &str) -> String {
    format!(
        "{}/{}",
        base.trim_end_matches('/'),
        utf8_percent_encode(path, ENCODED)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_lead_out_are_rejected() {
        for good in [
            "pool/main/a/a_1+b1~c_amd64.deb",
            "dists/x/InRelease",
            "v1:2/x",
        ] {
            assert!(is_plain_path(good), "{good}");
        }
        for bad in [
            "../x",
            "a/../x",
            "/etc/passwd",
            "a//b",
            "",
            "a/",
            "./a",
            "a b",
            "a\\b",
            "a\nb",
            "a/.",
        ] {
            assert!(!is_plain_path(bad), "{bad}");
        }
    }

    #[test]
    fn a_path_is_percent_encoded_as_servers_expect() {
        assert_eq!(
            file_url("https://h/x/", "a/b_1+c~d:e.deb"),
            "https://h/x/a/b_1+c~d:e.deb"
        );
        assert_eq!(
            file_url("https://h/x", "a%2e?#"),
            "https://h/x/a%252e%3F%23"
        );
    }
}
