//! NO_PROXY by the rules of Go (`golang.org/x/net/http/httpproxy`), including its quirks:
//! containerd and kubelet follow them, so landfall and the nodes agree about which hosts are
//! reached directly.

use landfall_model::{AddressRange, without_brackets};
use std::net::{IpAddr, Ipv4Addr};

/// An entry of NO_PROXY, or a key of the site that has the same effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoProxyEntry {
    /// The text of the entry.
    pub entry: String,
    /// The variable, or the key of the site, that contains it.
    pub source: String,
    pub(super) pattern: HostPattern,
}

/// The hosts that an entry matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HostPattern {
    All,
    Network(AddressRange),
    Address(IpAddr, Option<String>),
    /// Names that end in `suffix`, which begins with a dot; if `exact`, also the suffix without its
    /// dot.
    Domain {
        suffix: String,
        exact: bool,
        port: Option<String>,
    },
    /// Exactly this host. NO_PROXY cannot express that, because a name also matches its subdomains;
    /// keys of the site can.
    Host(String, Option<String>),
}

/// The host and port of a request, prepared for comparison.
pub(super) struct RequestTarget<'a> {
    pub(super) host: &'a str,
    pub(super) address: Option<IpAddr>,
    pub(super) port: String,
}

impl<'a> RequestTarget<'a> {
    /// `host` is that of a URL: in lower case, an IPv6 address in brackets.
    pub(super) fn new(host: &'a str, port: u16) -> RequestTarget<'a> {
        let host = without_brackets(host);
        // an IPv4 address in IPv6 form is compared as IPv4, as in Go
        let address = host
            .parse::<IpAddr>()
            .ok()
            .map(|address| address.to_canonical());
        RequestTarget {
            host,
            address,
            port: port.to_string(),
        }
    }

    fn has_port(&self, wanted: Option<&str>) -> bool {
        wanted.is_none_or(|port| port == self.port)
    }

    /// Whether the target is this machine, which Go never reaches through a proxy.
    pub(super) fn is_loopback(&self) -> bool {
        self.host == "localhost" || self.address.is_some_and(|address| address.is_loopback())
    }
}

/// Whether a NO_PROXY `list` matches `address`: a host with a port, which defaults to 443.
pub fn bypasses_proxy(list: &str, address: &str) -> bool {
    let (host, port) = split_host_port(address).unwrap_or((address, "443"));
    let host = host.to_ascii_lowercase();
    let target = RequestTarget::new(&host, port.parse().unwrap_or(443));
    NoProxyEntry::list(list, "")
        .iter()
        .any(|entry| entry.covers(&target))
}

impl NoProxyEntry {
    /// Parses a comma-separated list, without the entries that Go ignores.
    pub(super) fn list(list: &str, source: &str) -> Vec<NoProxyEntry> {
        let entries = list.split(',').map(str::trim);
        entries
            .filter_map(|entry| {
                let pattern = HostPattern::parse(entry)?;
                Some(NoProxyEntry {
                    entry: entry.into(),
                    source: source.into(),
                    pattern,
                })
            })
            .collect()
    }

    /// Returns the entry for the `host[:port]` in a key of the site.
    pub(super) fn host(written: &str, source: &str) -> NoProxyEntry {
        let lower = written.to_ascii_lowercase();
        let (host, port) = match split_host_port(&lower) {
            Some((host, port)) => (host.to_owned(), Some(port.to_owned())),
            None => (without_brackets(&lower).to_owned(), None),
        };
        NoProxyEntry {
            entry: written.into(),
            source: source.into(),
            pattern: HostPattern::Host(host, port),
        }
    }

    pub(super) fn covers(&self, target: &RequestTarget<'_>) -> bool {
        match &self.pattern {
            HostPattern::All => true,
            HostPattern::Network(range) => target.address.is_some_and(|address| range.has(address)),
            HostPattern::Address(wanted, port) => {
                target.address == Some(*wanted) && target.has_port(port.as_deref())
            }
            HostPattern::Domain {
                suffix,
                exact,
                port,
            } => {
                let named = target.host.ends_with(suffix.as_str())
                    || (*exact && target.host == &suffix[1..]);
                // a suffix such as `.1` must not match addresses
                target.address.is_none() && named && target.has_port(port.as_deref())
            }
            HostPattern::Host(host, port) => {
                target.host == host && target.has_port(port.as_deref())
            }
        }
    }
}

impl HostPattern {
    /// Parses an entry; `None` if Go ignores it.
    pub(super) fn parse(entry: &str) -> Option<HostPattern> {
        let entry = entry.trim().to_lowercase();
        if entry == "*" {
            return Some(HostPattern::All);
        }
        if let Some(network) = parse_network(&entry) {
            return Some(network);
        }
        let (host, port) = match split_host_port(&entry) {
            Some((host, port)) => (host, Some(port.to_owned()).filter(|port| !port.is_empty())),
            None => (entry.as_str(), None),
        };
        if let Ok(address) = host.parse::<IpAddr>() {
            return Some(HostPattern::Address(address.to_canonical(), port));
        }
        // `*.example.com` means the same as `.example.com`
        let name = host
            .strip_prefix('*')
            .filter(|rest| rest.starts_with('.'))
            .unwrap_or(host);
        if name.is_empty() {
            return None;
        }
        // `example.com` matches the name itself and subdomains, `.example.com` only subdomains
        let (exact, bare) = match name.strip_prefix('.') {
            Some(bare) => (false, bare),
            None => (true, name),
        };
        // names in URLs are in Punycode
        let ascii = match url::Host::parse(bare) {
            Ok(url::Host::Domain(ascii)) if !bare.is_ascii() => Some(ascii),
            _ => None,
        };
        let suffix = format!(".{}", ascii.as_deref().unwrap_or(bare));
        Some(HostPattern::Domain {
            suffix,
            exact,
            port,
        })
    }
}

/// Parses a range like Go's `net.ParseCIDR`. An IPv4 range in IPv6 form is an IPv4 range.
fn parse_network(entry: &str) -> Option<HostPattern> {
    let (address, bits) = entry.split_once('/')?;
    let address: IpAddr = address.parse().ok()?;
    // Rust also parses `+8`, Go does not
    let digits = !bits.is_empty() && bits.bytes().all(|byte| byte.is_ascii_digit());
    let bits = bits.parse::<u32>().ok().filter(|_| digits)?;
    match (address, address.to_canonical()) {
        (IpAddr::V6(_), IpAddr::V4(inner)) if (96..=128).contains(&bits) => Some(
            HostPattern::Network(AddressRange::new(inner.into(), bits - 96)),
        ),
        _ => (bits <= if address.is_ipv4() { 32 } else { 128 })
            .then(|| HostPattern::Network(AddressRange::new(address, bits))),
    }
}

/// Splits host and port like Go's `net.SplitHostPort`; returns `None` if that returns an error.
fn split_host_port(text: &str) -> Option<(&str, &str)> {
    let (host, port) = text.rsplit_once(':')?;
    let host = match host.strip_prefix('[') {
        Some(inner) => inner.strip_suffix(']')?,
        None if host.contains(':') => return None,
        None => host,
    };
    (!host.contains(['[', ']']) && !port.contains(['[', ']'])).then_some((host, port))
}

/// An entry of NO_PROXY that matches no host, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IneffectiveEntry {
    /// What programs do with the entry, such as `ignore it: it is a URL, not a host`. The text
    /// follows the names of the programs.
    pub why: String,
    /// The entry that was probably meant, or several entries separated by commas. Each entry may
    /// match a host.
    pub instead: Option<String>,
}

/// Explains why `entry` matches no host. Returns `None` if it may match one. `entry` contains no
/// commas, and neither begins nor ends with blanks.
pub fn ineffective_entry(entry: &str) -> Option<IneffectiveEntry> {
    if entry == "*" {
        return None;
    }
    if entry.contains("://") {
        let host = entry
            .split("://")
            .nth(1)
            .unwrap_or_default()
            .split('/')
            .next()
            .unwrap_or_default();
        let host = host.rsplit('@').next().unwrap_or(host);
        return ineffective("ignore it: it is a URL, not a host", Some(host.into()));
    }
    let is_separator = |c: char| c.is_whitespace() || c == ';' || c == '|';
    if entry.contains(is_separator) {
        let parts: Vec<&str> = entry
            .split(is_separator)
            .filter(|part| !part.is_empty())
            .collect();
        return ineffective(
            "ignore it: entries are separated by commas",
            Some(parts.join(",")),
        );
    }
    if let Some((address, bits)) = entry.split_once('/') {
        return match (address.parse::<IpAddr>(), bits.parse::<u8>()) {
            (Ok(address), Ok(bits)) if bits <= if address.is_ipv4() { 32 } else { 128 } => None,
            // `10.0.0.0/255.0.0.0`
            (Ok(IpAddr::V4(address)), Err(_)) => {
                let mask = bits.parse::<Ipv4Addr>().ok().map(Ipv4Addr::to_bits);
                // a mask with gaps is not a range
                let mask = mask.filter(|mask| mask.leading_ones() == mask.count_ones());
                let instead = mask.map(|mask| format!("{address}/{}", mask.leading_ones()));
                ineffective(
                    "ignore it: a range is written with the number of its bits",
                    instead,
                )
            }
            _ => ineffective("ignore it: it is not a range of addresses", None),
        };
    }
    if entry.parse::<IpAddr>().is_ok() {
        return None;
    }
    // Go removes brackets only if a port follows them
    if entry.ends_with(']') {
        let bare = without_brackets(entry).to_owned();
        return ineffective(
            "ignore it: an IPv6 address is written without brackets",
            Some(bare),
        );
    }
    let (host, port) = match entry.rsplit_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (entry, None),
    };
    if host.is_empty() || port.is_some_and(|port| port.parse::<u16>().is_err()) {
        return ineffective("ignore it: a port is a number, after a host", None);
    }
    if host.contains('*') && !(host.starts_with("*.") && host.matches('*').count() == 1) {
        return ineffective(
            "ignore it: * is only allowed alone, or as *. before a name",
            None,
        );
    }
    let is_address = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .is_some_and(|host| host.parse::<IpAddr>().is_ok());
    // a typing error, as in `[ocalhost`: no host in a URL has these characters
    let odd = host
        .chars()
        .find(|c| c.is_ascii() && !is_host_character(*c));
    if let Some(odd) = odd.filter(|_| !is_address) {
        let bare = entry.trim_matches(['"', '\'']);
        return ineffective(
            &format!("ignore it: {odd} is not allowed in the name of a host"),
            (bare != entry).then(|| bare.to_owned()),
        );
    }
    if host.ends_with('.') {
        // `10.` is meant as 10.0.0.0/8
        let digits: Vec<&str> = host.trim_end_matches('.').split('.').collect();
        if digits.len() < 4 && digits.iter().all(|part| part.parse::<u8>().is_ok()) {
            let zeros = vec!["0"; 4 - digits.len()];
            let range = format!(
                "{}/{}",
                [digits.clone(), zeros].concat().join("."),
                digits.len() * 8
            );
            return ineffective(
                "ignore it: the beginning of an address matches nothing",
                Some(range),
            );
        }
        let bare = host.trim_end_matches('.').to_owned();
        return ineffective(
            "compare its last dot too, which names in URLs do not have",
            Some(bare),
        );
    }
    None
}

/// Whether the name of a host, or an entry for names, may have this ASCII character. `_` is in the
/// names of some hosts, although DNS does not allow it there.
fn is_host_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '*')
}

fn ineffective(why: &str, instead: Option<String>) -> Option<IneffectiveEntry> {
    Some(IneffectiveEntry {
        why: why.into(),
        instead: instead.and_then(|entries| effective(&entries)),
    })
}

/// Returns `entries`, which are separated by commas, with a suggestion in place of each one that is
/// ineffective. Returns `None` if there is no entry, or no suggestion for one of them.
fn effective(entries: &str) -> Option<String> {
    let entries: Vec<String> = entries
        .split(',')
        .map(|entry| match ineffective_entry(entry) {
            None => Some(entry.to_owned()),
            Some(ineffective) => ineffective.instead,
        })
        .collect::<Option<_>>()?;
    Some(entries.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggestions_contain_only_effective_entries() {
        for (entry, instead) in [
            ("http://[fd00::1]/", Some("fd00::1")),
            ("http://[fd00::1]:80/", Some("[fd00::1]:80")),
            ("https://corp.test.", Some("corp.test")),
            ("a.test.;[fd00::1]", Some("a.test,fd00::1")),
            ("a.test;corp.test:https", None),
            ("http://user@corp.test/", Some("corp.test")),
            ("http://", None),
            (";", None),
            (".", None),
            ("]", None),
            ("[ocalhost", None),
            ("corp(test", None),
            ("\"corp.test\"", Some("corp.test")),
            ("corp.test=1", None),
            ("10.0.0.0/255.0.255.0", None),
        ] {
            let found = ineffective_entry(entry).unwrap();
            assert_eq!(found.instead.as_deref(), instead, "{entry}");
        }
    }

    #[test]
    fn names_and_addresses_are_effective() {
        for entry in [
            "corp.test",
            ".corp.test",
            "*.corp.test",
            "my_host",
            "corp.test:80",
            "bücher.test",
            "fd00::1",
            "[fd00::1]:80",
            "10.0.0.0/8",
            "::ffff:10.0.0.0/104",
        ] {
            assert_eq!(ineffective_entry(entry), None, "{entry}");
        }
    }
}
