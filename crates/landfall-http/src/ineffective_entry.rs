//! Finds entries of NO_PROXY that match no host by Go's rules.

use std::net::{IpAddr, Ipv4Addr};

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
        let bare = entry.trim_matches(['[', ']']).to_owned();
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
