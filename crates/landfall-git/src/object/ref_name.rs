//! The names of refs.

/// Whether `name` is the full name of a branch, a tag or another ref: `refs/…/…`, by the rules of
/// git-check-ref-format and some stricter ones. Such a name is safe as a relative path: it cannot
/// leave its folder.
pub fn is_ref_name(name: &str) -> bool {
    /// The maximum length in bytes, which fits into a packet and a path.
    const MAX: usize = 1024;
    let is_component = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && !part.ends_with('.')
            && !part.to_ascii_lowercase().ends_with(".lock")
    };
    name.len() <= MAX
        && name
            .strip_prefix("refs/")
            .is_some_and(|rest| rest.contains('/'))
        && name.split('/').all(is_component)
        && !name.contains("..")
        && !name.contains("@{")
        && !name.contains(|c: char| {
            c.is_control()
                || c.is_whitespace()
                // replaces bytes that are not UTF-8, so different names could become equal
                || matches!(c, '~' | '^' | ':' | '?' | '*' | '[' | '\\' | '\u{fffd}')
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_valid_full_names_are_ref_names() {
        for name in ["refs/heads/main", "refs/tags/v1.0-rc.1", "refs/heads/a/b@c"] {
            assert!(is_ref_name(name), "{name}");
        }
        for name in [
            "",
            "main",
            "refs/",
            "refs/x",
            "HEAD",
            "refs/heads/",
            "refs/heads/../x",
            "refs/heads/a..b",
            "refs/heads/.a",
            "refs/heads/a.lock",
            "refs/heads/a b",
            "refs//a",
            "refs/heads/a\nb",
            "/refs/heads/a",
            "refs/heads/a\\b",
            "refs/heads/a.",
            "refs/heads/@{",
            "refs/heads/\u{fffd}",
        ] {
            assert!(!is_ref_name(name), "{name}");
        }
    }
}
