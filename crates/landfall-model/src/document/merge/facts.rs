//! The values that a merge may write over existing ones: facts of the site, such as the address of
//! its registry and the URL of its proxy.

/// The facts of a site. A merge replaces an existing value only by a value that states a fact;
/// names, paths, versions and switches in the file are decisions of a person.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SiteFacts {
    /// Texts that a value contains between other characters, such as `registry.example:5000`.
    pub parts: Vec<String>,
    /// Texts that are a whole value, such as a password.
    pub wholes: Vec<String>,
}

/// The facts of no site.
pub(super) static NO_FACTS: SiteFacts = SiteFacts {
    parts: Vec::new(),
    wholes: Vec::new(),
};

impl SiteFacts {
    /// Whether `text` states one of the facts.
    pub fn states(&self, text: &str) -> bool {
        self.wholes.iter().any(|whole| whole == text)
            || self.parts.iter().any(|part| contains_name(text, part))
    }

    /// Whether `old` and `new` state the same fact and differ in something else, such as a path:
    /// that part of `old` is the decision of a person. Accounts in URLs are facts too.
    pub(super) fn differ_beside(&self, old: &str, new: &str) -> bool {
        let is_stated = |part: &String| contains_name(old, part) && contains_name(new, part);
        self.parts.iter().any(is_stated) && without_account(old) != without_account(new)
    }
}

/// Whether the URL `old` is `new` with an account, which `new` lacks, or with a slash at its end.
/// The account is kept: the site does not have it.
pub(super) fn is_same_url(old: &str, new: &str) -> bool {
    new.contains("://") && !new.contains('@') && without_account(old) == new.trim_end_matches('/')
}

/// `url` without an account and a slash at its end.
fn without_account(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    let host = host.trim_end_matches('/');
    match scheme {
        "" => host.to_owned(),
        scheme => format!("{scheme}://{host}"),
    }
}

/// Whether `text` contains `name`, not as a part of a longer name.
fn contains_name(text: &str, name: &str) -> bool {
    let is_inside = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    !name.is_empty()
        && text.match_indices(name).any(|(at, _)| {
            let before = text[..at].chars().next_back();
            let after = text[at + name.len()..].chars().next();
            !before.is_some_and(is_inside) && !after.is_some_and(is_inside)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_not_found_in_a_longer_name() {
        let facts = SiteFacts {
            parts: vec!["r.test:5000".into(), "mirror".into()],
            wholes: vec!["hush".into()],
        };
        for text in [
            "r.test:5000",
            "http://r.test:5000/v2",
            "oci://mirror/charts",
            "hush",
        ] {
            assert!(facts.states(text), "{text}");
        }
        for text in [
            "",
            "other.test:5000",
            "r.test:50001",
            "mirror-values",
            "my.mirror",
            "hush hush",
        ] {
            assert!(!facts.states(text), "{text}");
        }
        assert!(!NO_FACTS.states(""));
    }
}
