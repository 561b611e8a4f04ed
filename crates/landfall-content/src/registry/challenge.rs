//! Parses `WWW-Authenticate` challenges (RFC 9110, section 11.6.1; distribution token
//! specification).

use reqwest::header::{HeaderMap, WWW_AUTHENTICATE};

/// The authentication that a registry requires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Challenge {
    /// User name and password with every request.
    Basic,
    /// A token from a token service.
    Bearer {
        /// The URL of the token service, which may be relative.
        realm: String,
        /// The `service` parameter for the token service.
        service: Option<String>,
        /// The scope that the request needs.
        scope: Option<String>,
    },
}

/// The schemes that a registry offers, none of which landfall can use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("offered: {}", if .0.is_empty() { "nothing".to_owned() } else { .0.join(", ") })]
pub struct UnknownSchemes(pub Vec<String>);

impl Challenge {
    /// Returns the challenge to answer. Bearer is preferred to Basic.
    ///
    /// # Errors
    /// If neither Basic nor Bearer with a realm is offered. The error lists the offered schemes.
    pub fn read(headers: &HeaderMap) -> Result<Challenge, UnknownSchemes> {
        let mut offered = Vec::new();
        let mut basic = false;
        for value in headers.get_all(WWW_AUTHENTICATE) {
            for (scheme, parameters) in split(&String::from_utf8_lossy(value.as_bytes())) {
                let realm = parameter(&parameters, "realm");
                match (scheme.to_ascii_lowercase().as_str(), realm) {
                    ("bearer", Some(realm)) => {
                        return Ok(Challenge::Bearer {
                            realm,
                            service: parameter(&parameters, "service"),
                            scope: parameter(&parameters, "scope"),
                        });
                    }
                    // not returned at once, because Bearer may follow, in this header or in another
                    ("basic", _) => basic = true,
                    _ => offered.push(scheme),
                }
            }
        }
        if basic {
            Ok(Challenge::Basic)
        } else {
            Err(UnknownSchemes(offered))
        }
    }
}

type Parameters = Vec<(String, String)>;

fn parameter(parameters: &[(String, String)], name: &str) -> Option<String> {
    parameters
        .iter()
        .find(|(key, _)| key.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.clone())
}

/// Splits a header value into its challenges. Quoted parameters may contain commas.
fn split(value: &str) -> Vec<(String, Parameters)> {
    let mut challenges: Vec<(String, Parameters)> = Vec::new();
    for piece in pieces(value) {
        let piece = piece.trim();
        let (head, tail) = piece.split_once([' ', '\t']).unwrap_or((piece, ""));
        // commas separate parameters as well as challenges; only a challenge begins with a bare
        // word
        let (scheme, parameter) = if head.contains('=') {
            (None, piece)
        } else {
            (Some(head), tail.trim())
        };
        if let Some(scheme) = scheme.filter(|scheme| !scheme.is_empty()) {
            challenges.push((scheme.to_owned(), Vec::new()));
        }
        if let (Some((key, value)), Some(last)) = (parameter.split_once('='), challenges.last_mut())
        {
            let value = value.trim();
            let bare = value
                .strip_prefix('"')
                .and_then(|value| value.strip_suffix('"'))
                .unwrap_or(value);
            last.1
                .push((key.trim().to_owned(), bare.replace("\\\"", "\"")));
        }
    }
    challenges
}

fn pieces(value: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut start = 0;
    let mut quoted = false;
    let mut escaped = false;
    for (at, c) in value.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            ',' if !quoted => {
                out.push(&value[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    out.push(&value[start..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[&str]) -> Result<Challenge, UnknownSchemes> {
        let mut headers = HeaderMap::new();
        values.iter().for_each(|value| {
            headers.append(WWW_AUTHENTICATE, value.parse().unwrap());
        });
        Challenge::read(&headers)
    }

    #[test]
    fn a_bearer_challenge_with_quoted_commas_is_parsed_after_another_scheme() {
        let expected = Challenge::Bearer {
            realm: "https://auth.test/token".into(),
            service: Some("r".into()),
            scope: Some("repository:a:pull,push".into()),
        };
        let value = r#"Negotiate, bEARER realm="https://auth.test/token",service="r",scope="repository:a:pull,push""#;
        assert_eq!(of(&[value]), Ok(expected.clone()));
        assert_eq!(of(&["Negotiate", &value[11..]]), Ok(expected));
    }

    #[test]
    fn basic_is_recognized_and_unknown_schemes_are_not() {
        assert_eq!(of(&[r#"Basic realm="x, y""#]), Ok(Challenge::Basic));
        assert_eq!(
            of(&["NTLM, Negotiate abc=="]),
            Err(UnknownSchemes(vec!["NTLM".into(), "Negotiate".into()]))
        );
        assert_eq!(of(&[]), Err(UnknownSchemes(vec![])));
    }
}
