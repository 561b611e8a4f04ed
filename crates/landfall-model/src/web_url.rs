//! URLs as people and tools write them. Equal http and https URLs may differ in the case of scheme
//! and host, in a default port, in dot segments and in percent-encoding (RFC 3986, 6.2.2).

use url::Url;

/// The part of a URL after `://`: its host and path. A text without `://` is returned as it is.
pub fn without_scheme(text: &str) -> &str {
    text.split_once("://").map_or(text, |(_, rest)| rest)
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

/// The form of an http or https URL in which equal URLs are equal texts. A URL without a path gets
/// no slash at its end. `None` if `text` is no such URL.
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
}
