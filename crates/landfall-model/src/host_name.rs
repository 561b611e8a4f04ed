//! The syntax of hosts: DNS names, and hosts with a port. Also splits other texts that may have a
//! second part.

/// The text before the first `separator`, and the text after it, if there is one.
pub fn split_optional(text: &str, separator: char) -> (&str, Option<&str>) {
    text.split_once(separator)
        .map_or((text, None), |(first, second)| (first, Some(second)))
}

/// Splits `host[:port]`. The colons of an IPv6 address do not begin a port, with or without
/// brackets; brackets stay in the host. Whether the port is a number is not checked.
pub fn split_port(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once(':') {
        Some((host, port)) if host.ends_with(']') || !host.contains(':') => (host, Some(port)),
        _ => (text, None),
    }
}

/// The host without the brackets of an IPv6 address.
pub fn without_brackets(host: &str) -> &str {
    host.trim_matches(['[', ']'])
}

/// Whether `text` is a DNS name (RFC 1123, section 2.1) of at most 253 characters.
///
/// URL parsers accept more as a host: `*.*`, `-i` and `a"b`, for example.
pub fn is_dns_name(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_dns_label)
}

fn is_dns_label(label: &str) -> bool {
    // `_` is not in RFC 1123, but is found in the names of internal hosts
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    (1..=63).contains(&label.len())
        && label.chars().all(is_allowed)
        && !label.starts_with('-')
        && !label.ends_with('-')
}

/// Whether `text` has only characters that hosts and their ports have: those of DNS names, and of
/// addresses in brackets.
pub fn has_host_characters(text: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || ".-_:[]".contains(c);
    !text.is_empty() && text.chars().all(is_allowed)
}

/// Whether `name`, which may begin with `*.`, is reserved for examples (RFC 2606, sections 2 and
/// 3).
pub fn is_example_name(name: &str) -> bool {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    ["example", "example.com", "example.net", "example.org"]
        .iter()
        .any(|reserved| {
            name.strip_suffix(reserved)
                .is_some_and(|before| before.is_empty() || before.ends_with('.'))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_follows_the_last_colon_outside_of_an_address() {
        for (text, split) in [
            ("r.test", ("r.test", None)),
            ("r.test:5000", ("r.test", Some("5000"))),
            ("r.test:", ("r.test", Some(""))),
            ("[fd00::2]", ("[fd00::2]", None)),
            ("[fd00::2]:5000", ("[fd00::2]", Some("5000"))),
            ("fd00::2", ("fd00::2", None)),
        ] {
            assert_eq!(split_port(text), split);
        }
    }

    #[test]
    fn a_host_has_no_quotes() {
        assert!(has_host_characters("[::1]:5000"));
        assert!(!has_host_characters("x\"y") && !has_host_characters(""));
    }

    #[test]
    fn names_reserved_for_examples_are_recognized() {
        for name in [
            "example.com",
            "*.seed.Example.com",
            "vcenter.example.org.",
            "a.example",
        ] {
            assert!(is_example_name(name), "{name}");
        }
        for name in ["myexample.com", "example.de", "a.test", "a.invalid", ""] {
            assert!(!is_example_name(name), "{name}");
        }
    }

    #[test]
    fn only_dns_names_are_accepted() {
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
