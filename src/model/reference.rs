//! Image references in their normal form. The grammar is oci-client's (the distribution project's);
//! IPv6 hosts and upper-case hosts, which it lacks, are added here.

use super::{Digest, DigestError};
use oci_client::Reference;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A fully qualified image reference: registry host, repository, and a tag, a digest or both.
///
/// `nginx` becomes `docker.io/library/nginx`; a tag is never invented: see [`ImageRef::tag`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ImageRef {
    /// Host with its port, lower case: `docker.io`, `172.20.0.2:5000`, `[::1]:5000`.
    pub registry: String,
    /// Repository path below the host: `library/nginx`.
    pub repository: String,
    /// The tag, where one was written.
    pub tag: Option<String>,
    /// The digest, where one was written.
    pub digest: Option<Digest>,
}

/// Why a text is no image reference.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    /// It does not follow the grammar.
    #[error("'{text}' is no image reference: {why}")]
    Grammar {
        /// What was read.
        text: String,
        /// What is wrong, in the grammar's words.
        why: String,
    },
    /// The part after `@` is no digest that landfall can check.
    #[error(transparent)]
    Digest(#[from] DigestError),
}

impl ImageRef {
    /// `registry/repository`, without tag and digest.
    pub fn name(&self) -> String {
        format!("{}/{}", self.registry, self.repository)
    }

    /// The tag, or `latest` where neither tag nor digest was written.
    pub fn tag_or_latest(&self) -> Option<&str> {
        match (&self.tag, &self.digest) {
            (Some(tag), _) => Some(tag),
            (None, None) => Some("latest"),
            (None, Some(_)) => None,
        }
    }

    /// Whether it names one thing only: a tag or a digest was written.
    pub fn is_pinned(&self) -> bool {
        self.tag.is_some() || self.digest.is_some()
    }

    /// The same repository by digest alone.
    pub fn at_digest(&self, digest: &Digest) -> ImageRef {
        ImageRef { tag: None, digest: Some(digest.clone()), ..self.clone() }
    }
}

impl fmt::Display for ImageRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.registry, self.repository)?;
        self.tag.iter().try_for_each(|tag| write!(f, ":{tag}"))?;
        self.digest.iter().try_for_each(|digest| write!(f, "@{digest}"))
    }
}

/// Splits `host/rest` if the first component is a host: it holds a dot or a colon, is `localhost`,
/// or has an upper-case letter (repositories cannot).
fn split_host(text: &str) -> Option<(&str, &str)> {
    let (first, rest) = text.split_once('/')?;
    let is_host = first.contains(['.', ':'])
        || first == "localhost"
        || first.bytes().any(|byte| byte.is_ascii_uppercase());
    is_host.then_some((first, rest))
}

/// Whether a reference written as `text` names its host, rather than leaving `docker.io` out.
pub fn names_host(text: &str) -> bool {
    split_host(text).is_some()
}

/// Whether `host` is `[v6]` or `[v6]:port`.
fn is_ipv6_host(host: &str) -> bool {
    let Some((address, port)) = host.strip_prefix('[').and_then(|rest| rest.split_once(']')) else {
        return false;
    };
    address.parse::<std::net::Ipv6Addr>().is_ok()
        && (port.is_empty() || port.strip_prefix(':').is_some_and(|p| p.parse::<u16>().is_ok()))
}

impl FromStr for ImageRef {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let grammar = |why: String| ReferenceError::Grammar { text: text.into(), why };
        let (host, normal) = match split_host(text) {
            Some((host, rest)) if is_ipv6_host(host) => {
                (Some(host.to_ascii_lowercase()), format!("ipv6.invalid/{rest}"))
            }
            Some((host, rest)) => (None, format!("{}/{rest}", host.to_ascii_lowercase())),
            None => (None, text.to_owned()),
        };
        let parsed = Reference::from_str(&normal).map_err(|error| grammar(error.to_string()))?;
        let digest = parsed.digest().map(str::parse::<Digest>).transpose()?;
        // oci-client adds `latest` where neither is written; what was not written is no pin
        let name = normal.split('@').next().unwrap_or(&normal);
        let last = name.rsplit('/').next().unwrap_or(name);
        let tag = last.contains(':').then(|| parsed.tag().map(str::to_owned)).flatten();
        Ok(ImageRef {
            registry: host.unwrap_or_else(|| parsed.registry().to_owned()),
            repository: parsed.repository().to_owned(),
            tag,
            digest,
        })
    }
}

impl TryFrom<String> for ImageRef {
    type Error = ReferenceError;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<ImageRef> for String {
    fn from(reference: ImageRef) -> Self {
        reference.to_string()
    }
}

/// `registry/repository` of a text that is a reference without tag and digest, such as an entry of
/// `exclude` or the `repository` key of Helm values.
pub fn repository_of(text: &str) -> Option<String> {
    let reference: ImageRef = text.parse().ok()?;
    (!reference.is_pinned()).then(|| reference.name())
}

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
        assert_eq!(full("index.docker.io/library/nginx:1"), "docker.io/library/nginx:1");
        assert_eq!(full("localhost:5000/x"), "localhost:5000/x");
        assert_eq!("nginx".parse::<ImageRef>().unwrap().tag_or_latest(), Some("latest"));
    }

    #[test]
    fn hosts_with_ports_ipv6_and_capitals() {
        assert_eq!(full("172.20.0.2:5000/kubernetes/pause:3.1"), "172.20.0.2:5000/kubernetes/pause:3.1");
        assert_eq!(full("[::1]:5000/a/b:1"), "[::1]:5000/a/b:1");
        assert_eq!(full("Quay.IO/x/y:V1"), "quay.io/x/y:V1");
        assert!("[::zz]:5000/a:1".parse::<ImageRef>().is_err());
    }

    #[test]
    fn tag_and_digest_are_both_kept() {
        let digest = Digest::sha256(b"x");
        let reference: ImageRef = format!("quay.io/a/b:1@{digest}").parse().unwrap();
        assert_eq!(reference.tag.as_deref(), Some("1"));
        assert_eq!(reference.digest, Some(digest.clone()));
        assert_eq!(full(&format!("a/b@{digest}")), format!("docker.io/a/b@{digest}"));
    }

    #[test]
    fn what_is_no_reference_is_refused() {
        for bad in ["", "UPPER", "a//b", "a b", "a:", "quay.io/a@sha256:00", "https://quay.io/a"] {
            assert!(bad.parse::<ImageRef>().is_err(), "{bad}");
        }
    }
}
