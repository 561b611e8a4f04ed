//! The hosts that a firewall rule allows: one name, every name below a name, or one address.
//! Nothing else can be written into a rule. Otherwise the text of a server, such as a redirect to
//! `https://*.*/x`, could open a firewall.

use landfall_model::{Failure, is_dns_name, serde_as_text};
use std::net::IpAddr;
use std::str::FromStr;

/// The hosts that a rule allows.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, derive_more::Display)]
pub(crate) enum EgressPattern {
    /// A DNS name in lower case, without a dot at its end.
    Name(String),
    /// Every name below this one. Only endpoints and documented hosts of services have this form.
    #[display("*.{_0}")]
    Below(String),
    /// An IPv4 or IPv6 address.
    Address(IpAddr),
}

/// A text that is neither a DNS name nor an address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is neither a DNS name nor an address")]
pub(crate) struct InvalidHost(String);

impl From<InvalidHost> for Failure {
    fn from(error: InvalidHost) -> Failure {
        Failure::usage(format!(
            "the lock has a host that a firewall rule cannot contain: {error}"
        ))
    }
}

impl EgressPattern {
    /// Parses the host of a URL or registry; an IPv6 address may have brackets. A wildcard is
    /// refused.
    pub(crate) fn exact(host: &str) -> Result<EgressPattern, InvalidHost> {
        let bare = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .unwrap_or(host);
        if let Ok(address) = bare.parse() {
            return Ok(EgressPattern::Address(address));
        }
        // `host` rather than `bare`, because a name must not have brackets
        let name = host.strip_suffix('.').unwrap_or(host);
        if is_dns_name(name) {
            return Ok(EgressPattern::Name(name.to_ascii_lowercase()));
        }
        Err(InvalidHost(host.escape_debug().to_string()))
    }

    /// Parses the host of an endpoint or a documented host of a service. It may begin with `*.` for
    /// all names below.
    pub(crate) fn declared(host: &str) -> Result<EgressPattern, InvalidHost> {
        match host.strip_prefix("*.").map(EgressPattern::exact) {
            None => EgressPattern::exact(host),
            Some(Ok(EgressPattern::Name(below))) => Ok(EgressPattern::Below(below)),
            Some(_) => Err(InvalidHost(host.escape_debug().to_string())),
        }
    }
}

impl FromStr for EgressPattern {
    type Err = InvalidHost;

    fn from_str(host: &str) -> Result<EgressPattern, InvalidHost> {
        EgressPattern::declared(host)
    }
}

serde_as_text!(EgressPattern);

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
