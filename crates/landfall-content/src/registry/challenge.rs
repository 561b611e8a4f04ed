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
                    ("bearer", None) => offered.push(format!("{scheme} without a realm")),
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

/// The first parameter of this name that is not empty.
fn parameter(parameters: &[(String, String)], name: &str) -> Option<String> {
    parameters
        .iter()
        .find(|(key, value)| key.eq_ignore_ascii_case(name) && !value.trim().is_empty())
        .map(|(_, value)| value.trim().to_owned())
}

/// Splits a header value into its challenges. Commas separate parameters as well as challenges, and
/// some servers omit them or put blanks around `=`: a word that no `=` follows is a scheme.
fn split(value: &str) -> Vec<(String, Parameters)> {
    let mut challenges: Vec<(String, Parameters)> = Vec::new();
    let is_separator = |c: char| c == ',' || c.is_whitespace();
    let mut rest = value.trim_start_matches(is_separator);
    while !rest.is_empty() {
        let end = rest.find(|c| c == '=' || is_separator(c));
        let (word, tail) = rest.split_at(end.unwrap_or(rest.len()));
        rest = match tail.trim_start().strip_prefix('=') {
            Some(tail) => {
                let (value, tail) = parameter_value(tail.trim_start());
                if let Some((_, parameters)) = challenges.last_mut() {
                    parameters.push((word.to_owned(), value));
                }
                tail
            }
            None => {
                challenges.push((word.to_owned(), Vec::new()));
                tail
            }
        }
        .trim_start_matches(is_separator);
    }
    challenges
}

/// Splits the value of a parameter, which may be quoted, from the text that follows it.
fn parameter_value(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(|c: char| c == ',' || c.is_whitespace());
        let (value, rest) = text.split_at(end.unwrap_or(text.len()));
        return (value.to_owned(), rest);
    };
    let mut value = String::new();
    let mut is_escaped = false;
    for (at, c) in quoted.char_indices() {
        match c {
            _ if is_escaped => {
                value.push(c);
                is_escaped = false;
            }
            '\\' => is_escaped = true,
            '"' => return (value, &quoted[at + 1..]),
            _ => value.push(c),
        }
    }
    // the quote is not closed
    (value, "")
}

/// The access that a request needs, as it is requested from the token service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct TokenScope {
    /// The repository; empty for a login that is not about a repository.
    pub(super) repository: String,
    pub(super) push: bool,
    pub(super) delete: bool,
    /// The repository that a blob is mounted from.
    pub(super) from: Option<String>,
    /// Whether the request tests the account, so that a token without one would not do.
    pub(super) tests_account: bool,
}

impl TokenScope {
    /// Whether the request may succeed without an account: it only reads.
    pub(super) fn may_be_anonymous(&self) -> bool {
        !(self.push || self.delete || self.tests_account)
    }

    /// Returns the equivalent scope for a registry without the action `delete`, or `None` if this
    /// scope does not contain `delete`. Quay requires `push` to delete, and its token service
    /// refuses a scope with an unknown action.
    pub(super) fn without_delete(&self) -> Option<TokenScope> {
        self.delete.then(|| TokenScope {
            push: true,
            delete: false,
            ..self.clone()
        })
    }

    /// Returns the scopes for the token service (distribution token specification, "Token Scope").
    pub(super) fn to_strings(&self) -> Vec<String> {
        if self.repository.is_empty() {
            return Vec::new();
        }
        let actions = match (self.push, self.delete) {
            (_, true) => "pull,delete",
            (true, false) => "pull,push",
            (false, false) => "pull",
        };
        let own = format!("repository:{}:{actions}", self.repository);
        let other = self
            .from
            .as_ref()
            .map(|from| format!("repository:{from}:pull"));
        // the request's own scope comes first, because some token services read only the first one
        std::iter::once(own).chain(other).collect()
    }
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
    fn challenges_in_odd_forms_are_parsed() {
        let bearer = |service: Option<&str>, scope: Option<&str>| {
            Ok(Challenge::Bearer {
                realm: "https://auth.test/token?a=b".into(),
                service: service.map(str::to_owned),
                scope: scope.map(str::to_owned),
            })
        };
        for value in [
            r#"Bearer realm = "https://auth.test/token?a=b" , service = "r""#,
            r#"BEARER realm="https://auth.test/token?a=b" service="r""#,
            r"bearer  realm=https://auth.test/token?a=b,service=r",
            r#"Bearer realm="https://auth.test/token?a=b",service="r"#,
            r#"Bearer Realm="https://auth.test/token?a=b",, SERVICE="r",scope="""#,
            r#"Bearer realm="https://auth.test\/token?a=b",service="r",error="a, b=\"c\"""#,
            r#"Negotiate YII=, Bearer realm="https://auth.test/token?a=b",service="r""#,
            r#"Basic realm="", Bearer realm="https://auth.test/token?a=b",service="r""#,
            r#"Bearer realm="", Bearer realm="https://auth.test/token?a=b",service="r""#,
        ] {
            assert_eq!(of(&[value]), bearer(Some("r"), None), "{value}");
        }
        assert_eq!(
            of(&[r#"Bearer service="",scope="a:b c",realm="https://auth.test/token?a=b""#]),
            bearer(None, Some("a:b c"))
        );
        // without a realm, no token can be fetched, and Basic may be offered too
        assert_eq!(of(&[r#"Bearer realm="""#, "Basic"]), Ok(Challenge::Basic));
        assert_eq!(
            of(&[r#"Bearer realm=" ""#]),
            Err(UnknownSchemes(vec!["Bearer without a realm".into()]))
        );
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
