//! The syntax of URLs and of hosts, as people and tools write them.

use url::Url;

/// The part of a URL after `://`: its host and path. A text without `://` is returned as it is.
pub fn without_scheme(text: &str) -> &str {
    text.split_once("://").map_or(text, |(_, rest)| rest)
}

/// Whether `text` begins with a scheme, as a URL to which a path can be appended.
pub fn has_scheme(text: &str) -> bool {
    text.split_once("://")
        .is_some_and(|(scheme, rest)| !scheme.is_empty() && !rest.is_empty())
}

/// The part of an http or https URL after `://`. `None` for any other text.
pub fn after_web_scheme(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once("://")?;
    ["http", "https"]
        .iter()
        .any(|known| scheme.eq_ignore_ascii_case(known))
        .then_some(rest)
}

/// Whether `text` begins like an http or https URL.
pub fn is_web_url(text: &str) -> bool {
    after_web_scheme(text).is_some()
}

/// The form of an http or https URL in which equal URLs are equal texts, although they may be
/// written with another case of scheme and host, with a default port, with dot segments, or with
/// another percent-encoding (RFC 3986, 6.2.2). A URL without a path gets no slash at its end.
/// `None` if `text` is no such URL.
pub fn normal_web_url(text: &str) -> Option<String> {
    let has_path = after_web_scheme(text)?.contains('/');
    let url = Url::parse(text).ok()?;
    let normal = decode_unreserved(url.as_str());
    Some(match normal.strip_suffix('/') {
        Some(host) if !has_path => host.to_owned(),
        _ => normal,
    })
}

/// Decodes the percent-encoded characters that need no encoding, and writes the others in upper
/// case.
fn decode_unreserved(url: &str) -> String {
    let mut decoded = String::with_capacity(url.len());
    let mut rest = url;
    while let Some(at) = rest.find('%') {
        decoded += &rest[..at];
        let code = rest.get(at + 1..at + 3);
        let byte = code.and_then(|code| u8::from_str_radix(code, 16).ok());
        match (code, byte) {
            (Some(_), Some(byte)) if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => {
                decoded.push(char::from(byte));
                rest = &rest[at + 3..];
            }
            (Some(code), Some(_)) => {
                decoded.push('%');
                decoded += &code.to_ascii_uppercase();
                rest = &rest[at + 3..];
            }
            _ => {
                decoded.push('%');
                rest = &rest[at + 1..];
            }
        }
    }
    decoded + rest
}

// Hosts: DNS names, addresses, and hosts with a port.

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
    fn equal_urls_have_one_normal_form() {
        for (one, normal) in [
            ("HTTPS://Host.test:443/a/./b/../c", "https://host.test/a/c"),
            ("http://h:80/%7Euser/a%2fb", "http://h/~user/a%2Fb"),
            ("http://h:8080//a", "http://h:8080//a"),
            ("HTTP://H", "http://h"),
            ("http://h/", "http://h/"),
            ("https://h/?a=%41%", "https://h/?a=A%"),
        ] {
            assert_eq!(normal_web_url(one).as_deref(), Some(normal), "{one}");
        }
        for other in ["h/a", "ftp://h/a", "oci://h/a", "http://", "xhttp://h"] {
            assert_eq!(normal_web_url(other), None, "{other}");
        }
    }

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
