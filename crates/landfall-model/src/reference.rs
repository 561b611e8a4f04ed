//! Image references in their normal form, by the grammar of the distribution project
//! (distribution/reference), with IPv6 hosts and upper-case hosts added.
//!
//! Tests compare the parser with oci-client's. landfall does not use oci-client's parser, because
//! its regular expression would cost every command 40 ms and 17 MB at startup.

use crate::media_type::{HUB, canonical_host};
use crate::{Digest, DigestError};
use std::fmt;
use std::str::FromStr;

/// A fully qualified image reference: registry host, repository, and optionally a tag and a digest.
///
/// `nginx` becomes `docker.io/library/nginx`; a missing tag stays missing (see
/// [`ImageRef::tag_or_latest`]).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ImageRef {
    /// Host with its port, lower case: `docker.io`, `172.20.0.2:5000`, `[::1]:5000`.
    pub registry: String,
    /// Repository path below the host: `library/nginx`.
    pub repository: String,
    /// The tag, if the reference has one.
    pub tag: Option<String>,
    /// The digest, if the reference has one.
    pub digest: Option<Digest>,
}

/// A text that is not an image reference. The message is formatted only when it is shown, as that
/// of [`DigestError`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReferenceError {
    text: String,
    /// The rule that the text violates; `None` if the text is the part after `@`, which is not a
    /// digest that landfall can check.
    why: Option<&'static str>,
}

impl fmt::Display for ReferenceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ReferenceError { text, why } = self;
        match why {
            Some(why) => write!(f, "'{text}' is not an image reference: {why}"),
            None => DigestError(text.clone()).fmt(f),
        }
    }
}

impl std::error::Error for ReferenceError {}

impl From<DigestError> for ReferenceError {
    fn from(DigestError(text): DigestError) -> ReferenceError {
        ReferenceError { text, why: None }
    }
}

impl ImageRef {
    /// Returns `registry/repository`, without tag and digest.
    pub fn name(&self) -> String {
        format!("{}/{}", self.registry, self.repository)
    }

    /// Returns the tag, or `latest` if the reference has neither tag nor digest.
    pub fn tag_or_latest(&self) -> Option<&str> {
        match (&self.tag, &self.digest) {
            (Some(tag), _) => Some(tag),
            (None, None) => Some("latest"),
            (None, Some(_)) => None,
        }
    }

    /// Whether the reference has a tag or a digest.
    pub fn is_pinned(&self) -> bool {
        self.tag.is_some() || self.digest.is_some()
    }

    /// Returns the reference to this digest in the same repository, without a tag.
    #[must_use]
    pub fn at_digest(&self, digest: &Digest) -> ImageRef {
        ImageRef {
            tag: None,
            digest: Some(digest.clone()),
            ..self.clone()
        }
    }
}

impl fmt::Display for ImageRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.registry, self.repository)?;
        self.tag.iter().try_for_each(|tag| write!(f, ":{tag}"))?;
        self.digest
            .iter()
            .try_for_each(|digest| write!(f, "@{digest}"))
    }
}

/// Splits `host/rest` if the first component is a host: it contains a dot or a colon, is
/// `localhost`, or contains an upper-case letter, which no repository contains.
fn split_host(text: &str) -> Option<(&str, &str)> {
    let (first, rest) = text.split_once('/')?;
    let is_host = is_host_in_lower_case(first) || first.bytes().any(|b| b.is_ascii_uppercase());
    is_host.then_some((first, rest))
}

/// Whether `first`, the first component of a reference, would still be a host if it were written in
/// lower case.
pub(crate) fn is_host_in_lower_case(first: &str) -> bool {
    first.contains(['.', ':']) || first.eq_ignore_ascii_case("localhost")
}

/// Whether the reference `text` contains a host. Without one it refers to `docker.io`.
pub fn has_host(text: &str) -> bool {
    split_host(text).is_some()
}

/// Whether `host` is `[v6]` or `[v6]:port`.
fn is_ipv6_host(host: &str) -> bool {
    let Some((address, port)) = host.strip_prefix('[').and_then(|rest| rest.split_once(']')) else {
        return false;
    };
    address.parse::<std::net::Ipv6Addr>().is_ok()
        && (port.is_empty()
            || port.strip_prefix(':').is_some_and(|port| {
                // `u16` alone would accept a sign
                port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok()
            }))
}

impl FromStr for ImageRef {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let grammar = |why| ReferenceError {
            text: text.into(),
            why: Some(why),
        };
        let (name, digest) = match text.split_once('@') {
            Some((name, digest)) => (name, Some(digest.parse::<Digest>()?)),
            None => (text, None),
        };
        // a colon before the last `/` begins the port of the host, not a tag
        let last = name.rfind('/').map_or(0, |slash| slash + 1);
        let (name, tag) = match name[last..].find(':') {
            Some(colon) => (&name[..last + colon], Some(&name[last + colon + 1..])),
            None => (name, None),
        };
        let (host, path) = match split_host(name) {
            // in lower case, this host would become a part of the repository
            Some((host, path)) if !is_host_in_lower_case(host) => (host.to_owned(), path),
            Some((host, path)) => (host.to_ascii_lowercase(), path),
            None => (HUB.to_owned(), name),
        };
        if !is_ipv6_host(&host) && !is_host(&host) {
            return Err(grammar("the host is not valid"));
        }
        if !path.split('/').all(is_repository_component) {
            return Err(grammar(
                "a repository has lower-case letters and digits, single separators . _ __ - \
                 between them, and / between its components",
            ));
        }
        if tag.is_some_and(|tag| !is_tag(tag)) {
            return Err(grammar(
                "a tag has up to 128 letters, digits, _ . and -, and does not start with . or -",
            ));
        }
        let host = canonical_host(&host).to_owned();
        // official images on Docker Hub are written without `library/`
        let repository = if host == HUB && !path.contains('/') {
            format!("library/{path}")
        } else {
            path.into()
        };
        if repository.len() > MAX_REPOSITORY_LENGTH {
            return Err(grammar("the repository has more than 255 characters"));
        }
        Ok(ImageRef {
            registry: host,
            repository,
            tag: tag.map(str::to_owned),
            digest,
        })
    }
}

/// The maximum length of a repository in characters (distribution/reference).
const MAX_REPOSITORY_LENGTH: usize = 255;

/// Whether `text` is a repository name, by the grammar of distribution/reference and of
/// distribution-spec "Pulling manifests".
///
/// No component is empty or `..`, so such a name is safe as a path.
pub fn is_repository(text: &str) -> bool {
    text.len() <= MAX_REPOSITORY_LENGTH && text.split('/').all(is_repository_component)
}

/// Whether `host` is `label[.label…][:port]`, where any number counts as a port, as in
/// distribution/reference.
fn is_host(host: &str) -> bool {
    let (name, port) = host.split_once(':').unwrap_or((host, "0"));
    name.split('.').all(is_host_label)
        && !port.is_empty()
        && port.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_host_label(label: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    label.bytes().all(is_allowed)
        && !label.is_empty()
        && !label.starts_with('-')
        && !label.ends_with('-')
}

/// Whether `component` is a path component of a repository name: lower-case letters and digits,
/// with `.`, `_`, `__` or any number of `-` between them.
pub fn is_repository_component(component: &str) -> bool {
    let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let mut separators = component.split(is_word).filter(|part| !part.is_empty());
    component.starts_with(is_word)
        && component.ends_with(is_word)
        && separators.all(|separator| {
            matches!(separator, "." | "_" | "__") || separator.bytes().all(|byte| byte == b'-')
        })
}

/// Whether `tag` is a valid tag: up to 128 of `[A-Za-z0-9_.-]`, the first neither `.` nor `-`.
pub fn is_tag(tag: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    (1..=128).contains(&tag.len()) && tag.bytes().all(is_allowed) && !tag.starts_with(['.', '-'])
}

crate::serde_as_text!(ImageRef);

#[cfg(test)]
mod tests {
    use super::*;

    fn full(text: &str) -> String {
        text.parse::<ImageRef>().unwrap().to_string()
    }

    #[test]
    fn short_names_become_full_ones_without_an_invented_tag() {
        assert_eq!(full("nginx"), "docker.io/library/nginx");
        assert_eq!(full("calico/node:v3.8.0"), "docker.io/calico/node:v3.8.0");
        assert_eq!(
            full("index.docker.io/library/nginx:1"),
            "docker.io/library/nginx:1"
        );
        assert_eq!(
            full("registry-1.docker.io/library/nginx:1"),
            "docker.io/library/nginx:1"
        );
        assert_eq!(full("localhost:5000/x"), "localhost:5000/x");
        assert_eq!(
            "nginx".parse::<ImageRef>().unwrap().tag_or_latest(),
            Some("latest")
        );
    }

    #[test]
    fn hosts_may_have_ports_ipv6_addresses_and_capitals() {
        assert_eq!(
            full("172.20.0.2:5000/kubernetes/pause:3.1"),
            "172.20.0.2:5000/kubernetes/pause:3.1"
        );
        assert_eq!(full("[::1]:5000/a/b:1"), "[::1]:5000/a/b:1");
        assert_eq!(full("Quay.IO/x/y:V1"), "quay.io/x/y:V1");
        // in lower case, this host would belong to the repository
        assert_eq!(full("Harbor/x/y:1"), "Harbor/x/y:1");
        for bad in ["[::zz]:5000", "[::1]:+5", "[::1]:", "[::1]5", "[::1]:65536"] {
            assert!(format!("{bad}/a:1").parse::<ImageRef>().is_err(), "{bad}");
        }
    }

    #[test]
    fn tag_and_digest_are_both_kept() {
        let digest = Digest::sha256(b"x");
        let reference: ImageRef = format!("quay.io/a/b:1@{digest}").parse().unwrap();
        assert_eq!(reference.tag.as_deref(), Some("1"));
        assert_eq!(reference.digest, Some(digest.clone()));
        assert_eq!(
            full(&format!("a/b@{digest}")),
            format!("docker.io/a/b@{digest}")
        );
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(2000))]

        /// This grammar and oci-client's accept the same texts with the same meaning. Upper-case
        /// hosts, which oci-client refuses, are not generated.
        #[test]
        fn the_grammar_equals_that_of_oci_client(text in "[a-c0-1.:/_@-]{0,14}(:[aA0.-]{0,3})?(@sha256:[0a]{64})?") {
            let theirs = oci_client::Reference::from_str(&text).ok();
            let ours = text.parse::<ImageRef>().ok();
            proptest::prop_assert_eq!(ours.is_some(), theirs.is_some(), "{}", text);
            if let (Some(ours), Some(theirs)) = (ours, theirs) {
                proptest::prop_assert_eq!(ours.repository, theirs.repository());
                proptest::prop_assert_eq!(ours.registry, theirs.registry());
                // oci-client adds the tag `latest` to a reference without tag and digest
                let invented = ours.digest.is_none().then_some("latest");
                proptest::prop_assert_eq!(ours.tag.as_deref().or(invented), theirs.tag());
                let digest = ours.digest.map(|digest| digest.to_string());
                proptest::prop_assert_eq!(digest.as_deref(), theirs.digest());
            }
        }
    }

    #[test]
    fn a_text_that_is_not_a_reference_is_refused() {
        for bad in [
            "",
            "UPPER",
            "a//b",
            "a b",
            "a:",
            "quay.io/a@sha256:00",
            "https://quay.io/a",
        ] {
            assert!(bad.parse::<ImageRef>().is_err(), "{bad}");
        }
    }

    #[test]
    fn repositories_and_tags_follow_the_grammar() {
        for good in [
            "a",
            "library/nginx",
            "a.b/c_d/e__f/g---h",
            "files/dl.k8s.io/00ff",
            "localhost_5001/a",
        ] {
            assert!(is_repository(good), "{good}");
        }
        let long = "a".repeat(256);
        for bad in [
            "", "A", "a//b", "/a", "a/", "..", "a/../b", ".a", "a.", "a..b", "a___b", "_a", "a:b",
            &long,
        ] {
            assert!(!is_repository(bad), "{bad}");
        }
        assert!(is_tag("v1.33.4") && is_tag("_x") && is_tag("sha256-ab.sig"));
        for bad in ["", ".", "..", "-a", "a/b", "a:b", &"t".repeat(129)] {
            assert!(!is_tag(bad), "{bad}");
        }
    }
}
