//! What a rule lets through: one name, every name below one, or one address. Nothing else can be
//! written into a rule.

use landfall_model::is_dns_name;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::IpAddr;

/// The hosts that a rule lets through.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) enum EgressPattern {
    /// A DNS name in lower case, without a dot at its end.
    Name(String),
    /// Every name below this one. Only an endpoint is written so.
    Below(String),
    /// An address.
    Address(IpAddr),
}

/// A text that is no host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no DNS name and no address")]
pub(crate) struct NoHost(String);

impl EgressPattern {
    /// The one host that a URL or a registry's name has, an IPv6 address in brackets or without. A
    /// wildcard is no host.
    ///
    /// # Errors
    /// When it is neither a DNS name nor an address.
    pub(crate) fn exact(host: &str) -> Result<EgressPattern, NoHost> {
        let bare = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .unwrap_or(host);
        if let Ok(address) = bare.parse() {
            return Ok(EgressPattern::Address(address));
        }
        let name = host.strip_suffix('.').unwrap_or(host);
        match is_dns_name(name) {
            true => Ok(EgressPattern::Name(name.to_ascii_lowercase())),
            false => Err(NoHost(host.escape_debug().to_string())),
        }
    }

    /// The host of an endpoint: `*.` at its front stands for every name below.
    ///
    /// # Errors
    /// As [`EgressPattern::exact`].
    pub(crate) fn declared(host: &str) -> Result<EgressPattern, NoHost> {
        match host.strip_prefix("*.").map(EgressPattern::exact) {
            None => EgressPattern::exact(host),
            Some(Ok(EgressPattern::Name(below))) => Ok(EgressPattern::Below(below)),
            Some(_) => Err(NoHost(host.escape_debug().to_string())),
        }
    }
}

impl TryFrom<String> for EgressPattern {
    type Error = NoHost;

    fn try_from(host: String) -> Result<EgressPattern, NoHost> {
        EgressPattern::declared(&host)
    }
}

impl From<EgressPattern> for String {
    fn from(pattern: EgressPattern) -> String {
        pattern.to_string()
    }
}

impl fmt::Display for EgressPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EgressPattern::Name(name) => f.write_str(name),
            EgressPattern::Below(name) => write!(f, "*.{name}"),
            EgressPattern::Address(address) => write!(f, "{address}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_one_name_or_one_address() {
        let read = |host: &str| EgressPattern::exact(host).map(|host| host.to_string()).ok();
        for (host, pattern) in [
            ("A.test.", "a.test"),
            ("10.0.0.9", "10.0.0.9"),
            ("[FD00::7]", "fd00::7"),
            ("fd00::7", "fd00::7"),
        ] {
            assert_eq!(read(host).as_deref(), Some(pattern));
        }
        for host in [
            "*.*", "*", "*.a.test", "-i", "a\"", "a b", "a\nb", "", ".", ".a.test", "a..b",
            "[a.test]", "#",
        ] {
            assert_eq!(read(host), None, "{host}");
        }
        let declared = |host: &str| EgressPattern::declared(host).ok();
        assert_eq!(
            declared("*.A.test"),
            Some(EgressPattern::Below("a.test".into()))
        );
        assert_eq!(
            declared("a.test"),
            Some(EgressPattern::Name("a.test".into()))
        );
        for host in ["*.*", "*", "*.", "*.10.0.0.9", "*.*.a.test", "a.*.test"] {
            assert_eq!(declared(host), None, "{host}");
        }
    }
}
