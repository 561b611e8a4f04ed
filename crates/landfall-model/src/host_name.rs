//! Names of hosts.

/// Whether `text` is a DNS name (RFC 1123, section 2.1): labels of at most 63 letters, digits, `-`
/// and `_`, none of them with a `-` at its ends, and at most 253 characters in all. A URL's host
/// may be more than that: `*.*`, `-i` and `a"b` are hosts to a URL parser.
pub fn is_dns_name(text: &str) -> bool {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.chars().all(good)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() <= 253 && text.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_dns_names_are_names() {
        let longest = format!("{}.test", "a".repeat(63));
        for name in [
            "a",
            "a.test",
            "A-1.test",
            "_acme.a.test",
            "xn--bcher-kva.test",
            "1.2.3.4",
            &longest,
        ] {
            assert!(is_dns_name(name), "{name}");
        }
        let long = "a.".repeat(127) + "a";
        let label = "a".repeat(64);
        for text in [
            "", ".", "a.", ".a", "a..b", "*", "*.a", "-i", "a.-b", "a-", "a\"b", "a b", "é", &long,
            &label,
        ] {
            assert!(!is_dns_name(text), "{text}");
        }
    }
}
