//! A lint of NO_PROXY: entries without effect, and entries that programs read differently.
//!
//! Measured with curl 7.88, wget 1.21, apt 2.6, requests 2.34, urllib of Python 3.11 and Java 17.

use super::lint::GO;
use super::{CheckStatus, LintMessage};
use landfall_http::ineffective_entry;
use landfall_model::without_brackets;
use std::net::IpAddr;

/// Messages about the comma-separated entries of the setting `source`.
pub(crate) fn lint_entries(list: &str, source: &str) -> Vec<LintMessage> {
    let entries: Vec<&str> = list.split(',').collect();
    // Some programs read `*` only if it is the whole value.
    let alone = entries
        .iter()
        .filter(|entry| !entry.trim().is_empty())
        .count()
        == 1;
    let mut messages = Vec::new();
    let mut java = (Vec::new(), Vec::new());
    for raw in entries {
        let entry = raw.trim();
        if entry.is_empty() {
            continue;
        }
        let mut found = |verdict, clients: &[&'static str], says: &str, instead: Option<String>| {
            messages.push(LintMessage {
                about: entry.into(),
                source: source.into(),
                verdict,
                clients: clients.to_vec(),
                says: says.into(),
                instead,
            });
        };
        let shape = NoProxyEntryForm::of(entry);
        match &shape {
            // An entry without an effect in Go gets no further message: one is enough.
            NoProxyEntryForm::Dead(why, instead) => {
                found(CheckStatus::No, &GO, why, instead.clone())
            }
            _ => {
                let before = raw.starts_with(char::is_whitespace);
                let after = raw.ends_with(char::is_whitespace);
                match (before, after) {
                    (_, true) => found(
                        CheckStatus::Note,
                        &["wget", "apt"],
                        "ignore it because of the space after it",
                        Some(entry.into()),
                    ),
                    (true, false) => found(
                        CheckStatus::Note,
                        &["apt"],
                        "ignores it because of the space before it",
                        Some(entry.into()),
                    ),
                    _ => {}
                }
                for (clients, says, instead) in shape.deviations(entry, alone) {
                    found(CheckStatus::Note, clients, says, instead);
                }
            }
        }
        match shape.java(entry) {
            Some(words) => {
                for word in words {
                    // `name,.name`, the form that most programs understand, has one pattern twice
                    if !java.0.contains(&word) {
                        java.0.push(word);
                    }
                }
            }
            None => java.1.push(entry.to_owned()),
        }
    }
    // Java gets one message about the whole list, because it has one property for all entries.
    if !(java.0.is_empty() && java.1.is_empty()) {
        let mut says = "does not read the variable; it has -Dhttp.nonProxyHosts".to_owned();
        if !java.1.is_empty() {
            says += &format!(", which cannot express {}", java.1.join(", "));
        }
        messages.push(LintMessage {
            about: source.into(),
            source: source.into(),
            verdict: CheckStatus::Note,
            clients: vec!["Java"],
            says,
            instead: (!java.0.is_empty())
                .then(|| format!("-Dhttp.nonProxyHosts='{}'", java.0.join("|"))),
        });
    }
    messages
}

/// The form of an entry of NO_PROXY.
enum NoProxyEntryForm {
    /// The entry matches nothing by Go's rules: the reason, and the entry to write instead.
    Dead(String, Option<String>),
    All,
    Address(IpAddr),
    Range(IpAddr, u8),
    /// A host with a port; `true` for an address.
    Port(bool),
    Name,
    /// `.name`: the names below it.
    Below,
    /// `*.name`: the names below it, with a wildcard.
    Star,
}

impl NoProxyEntryForm {
    fn of(entry: &str) -> NoProxyEntryForm {
        if entry == "*" {
            return NoProxyEntryForm::All;
        }
        if let Some(dead) = ineffective_entry(entry) {
            return NoProxyEntryForm::Dead(dead.why, dead.instead);
        }
        if let Some((address, bits)) = entry.split_once('/')
            && let (Ok(address), Ok(bits)) = (address.parse::<IpAddr>(), bits.parse::<u8>())
        {
            return NoProxyEntryForm::Range(address, bits);
        }
        if let Ok(address) = entry.parse::<IpAddr>() {
            return NoProxyEntryForm::Address(address);
        }
        let (host, port) = match entry.rsplit_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (entry, None),
        };
        match (port, without_brackets(host).parse::<IpAddr>().is_ok()) {
            (Some(_), is_address) => NoProxyEntryForm::Port(is_address),
            _ if host.starts_with("*.") => NoProxyEntryForm::Star,
            _ if host.starts_with('.') => NoProxyEntryForm::Below,
            _ => NoProxyEntryForm::Name,
        }
    }

    /// The programs that differ from Go, their behaviour, and the entry to write instead.
    fn deviations(
        &self,
        entry: &str,
        alone: bool,
    ) -> Vec<(&'static [&'static str], &'static str, Option<String>)> {
        let bare = entry
            .trim_start_matches('*')
            .trim_start_matches('.')
            .to_owned();
        match self {
            NoProxyEntryForm::Dead(..) => vec![],
            NoProxyEntryForm::All if alone => vec![(&["wget", "apt"], "ignore it", None)],
            NoProxyEntryForm::All => vec![(
                &["curl", "wget", "apt", "requests", "urllib"],
                "ignore it if there are other entries",
                Some("* alone".into()),
            )],
            NoProxyEntryForm::Address(IpAddr::V6(_)) => {
                vec![(&["urllib"], "ignores IPv6 addresses", None)]
            }
            NoProxyEntryForm::Address(_) => vec![],
            NoProxyEntryForm::Range(_, 0) => vec![(
                &["curl", "wget", "apt", "requests", "urllib"],
                // not `*`, which covers names too
                "ignore a range of 0 bits: list the addresses too",
                None,
            )],
            NoProxyEntryForm::Range(IpAddr::V4(_), _) => {
                vec![(
                    &["wget", "apt", "urllib"],
                    "ignore ranges: list the addresses too",
                    None,
                )]
            }
            NoProxyEntryForm::Range(IpAddr::V6(_), _) => vec![(
                &["curl", "wget", "apt", "requests", "urllib"],
                "ignore IPv6 ranges (except the newest curl and requests): list the addresses too",
                None,
            )],
            NoProxyEntryForm::Port(is_address) => {
                let without = entry
                    .rsplit_once(':')
                    .map(|(host, _)| without_brackets(host).to_owned());
                if *is_address {
                    vec![(
                        &["curl", "wget", "apt", "requests"],
                        "ignore entries with a port",
                        without,
                    )]
                } else {
                    vec![(
                        &["curl", "wget", "apt"],
                        "ignore entries with a port",
                        without,
                    )]
                }
            }
            NoProxyEntryForm::Name if entry.eq_ignore_ascii_case("localhost") => vec![],
            NoProxyEntryForm::Name => {
                vec![(
                    &["apt"],
                    "matches every name that ends with it, even without a dot in between",
                    None,
                )]
            }
            NoProxyEntryForm::Below => vec![(
                &["curl", "requests", "urllib"],
                "also match the name itself; other programs match only names below it",
                Some(format!("{bare},.{bare}")),
            )],
            NoProxyEntryForm::Star => {
                vec![(
                    &["curl", "wget", "apt", "requests", "urllib"],
                    "ignore it",
                    Some(format!(".{bare}")),
                )]
            }
        }
    }

    /// The patterns of `http.nonProxyHosts` for this entry: none for an entry without effect.
    /// Returns `None` if no pattern can express the entry.
    fn java(&self, entry: &str) -> Option<Vec<String>> {
        let lower = entry.to_ascii_lowercase();
        match self {
            NoProxyEntryForm::Dead(..) => Some(vec![]),
            NoProxyEntryForm::All => Some(vec!["*".into()]),
            NoProxyEntryForm::Address(address)
            | NoProxyEntryForm::Range(address @ IpAddr::V4(_), 32)
            | NoProxyEntryForm::Range(address @ IpAddr::V6(_), 128) => {
                Some(vec![java_address(*address)])
            }
            // Java has wildcards but no ranges, so only a range of whole octets can be expressed.
            NoProxyEntryForm::Range(IpAddr::V4(address), bits @ (8 | 16 | 24)) => {
                let octets = address.octets();
                let kept: Vec<String> = octets
                    .iter()
                    .take(usize::from(bits / 8))
                    .map(u8::to_string)
                    .collect();
                Some(vec![format!("{}.*", kept.join("."))])
            }
            NoProxyEntryForm::Range(..) => None,
            // Patterns of Java have no port.
            NoProxyEntryForm::Port(_) => {
                let host = lower.rsplit_once(':').map_or(&*lower, |(host, _)| host);
                let host = without_brackets(host);
                NoProxyEntryForm::of(host).java(host)
            }
            // By Go's rules a name also covers the names below it.
            NoProxyEntryForm::Name => Some(vec![lower.clone(), format!("*.{lower}")]),
            NoProxyEntryForm::Below => Some(vec![format!("*{lower}")]),
            NoProxyEntryForm::Star => Some(vec![lower]),
        }
    }
}

/// Java compares the text of the host in a URL. Go compares an IPv4 address in IPv6 form as IPv4.
fn java_address(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(list: &str) -> Vec<(String, CheckStatus, String)> {
        let messages = lint_entries(list, "NO_PROXY");
        messages
            .into_iter()
            .map(|f| (f.about, f.verdict, f.clients.join(" ")))
            .filter(|f| f.2 != "Java")
            .collect()
    }

    #[test]
    fn messages_list_the_programs_that_read_an_entry_differently() {
        for (list, clients) in [
            ("172.20.0.2", ""),
            ("localhost", ""),
            ("172.20.0.2:5000", "curl wget apt requests"),
            ("172.20.0.0/16", "wget apt urllib"),
            ("0.0.0.0/0", "curl wget apt requests urllib"),
            ("fd00::/8", "curl wget apt requests urllib"),
            ("::1", "urllib"),
            ("*", "wget apt"),
            ("corp.test", "apt"),
            (".corp.test", "curl requests urllib"),
            ("*.corp.test", "curl wget apt requests urllib"),
            ("registry.corp.test:5000", "curl wget apt"),
            ("10.0.0.1, 172.20.0.2", "apt"),
            ("10.0.0.1 ,172.20.0.2", "wget apt"),
        ] {
            let found = of(list);
            assert!(
                found
                    .iter()
                    .all(|(_, verdict, _)| *verdict == CheckStatus::Note),
                "{list}: {found:?}"
            );
            let printed: Vec<&str> = found
                .iter()
                .map(|(_, _, clients)| clients.as_str())
                .collect();
            assert_eq!(printed.join("; "), clients, "{list}");
        }
    }

    /// The status of an entry without effect by Go's rules is `No`. If a replacement is proposed,
    /// it has an effect.
    #[test]
    fn ineffective_entries_are_reported_and_proposed_replacements_have_an_effect() {
        for (entry, instead) in [
            ("172.20.", Some("172.20.0.0/16")),
            ("172.20.0.0/255.255.0.0", Some("172.20.0.0/16")),
            ("[fd00::2]", Some("fd00::2")),
            ("corp.test.", Some("corp.test")),
            ("https://corp.test/x", Some("corp.test")),
            ("10.0.0.1 172.20.0.2", Some("10.0.0.1,172.20.0.2")),
            ("172.20.0.*", None),
            ("172.20.0.0/33", None),
            ("corp.test:https", None),
            (":5000", None),
        ] {
            let messages = lint_entries(entry, "NO_PROXY");
            assert_eq!(messages[0].verdict, CheckStatus::No, "{entry}");
            assert_eq!(messages[0].instead.as_deref(), instead, "{entry}");
            assert!(
                instead.is_none_or(|fix| of(fix).iter().all(|found| found.1 != CheckStatus::No)),
                "{entry}"
            );
        }
    }

    #[test]
    fn java_gets_its_own_message() {
        let messages = lint_entries(
            ".svc,corp.test,172.20.0.0/16,172.16.0.0/12,10.0.0.1,.a.test:5000,b.test:80,10.0.0.2:80,[fd00::1]:80",
            "NO_PROXY",
        );
        let java = messages.last().unwrap();
        assert!(
            java.clients == ["Java"] && java.says.ends_with("cannot express 172.16.0.0/12"),
            "{java:?}"
        );
        let expected = "-Dhttp.nonProxyHosts='*.svc|corp.test|*.corp.test|172.20.*|10.0.0.1|\
                        *.a.test|b.test|*.b.test|10.0.0.2|[fd00::1]'";
        assert_eq!(java.instead.as_deref(), Some(expected));
        let messages = lint_entries(
            "corp.test,.corp.test,0.0.0.0/0,::/0,10.0.0.1/32,fd00::1/128,::ffff:10.0.0.2",
            "NO_PROXY",
        );
        let java = messages.last().unwrap();
        assert!(
            java.says.ends_with("cannot express 0.0.0.0/0, ::/0"),
            "{java:?}"
        );
        assert_eq!(
            java.instead.as_deref(),
            Some("-Dhttp.nonProxyHosts='corp.test|*.corp.test|10.0.0.1|[fd00::1]|10.0.0.2'")
        );
    }

    #[test]
    fn no_replacement_is_proposed_for_a_range_that_covers_no_names() {
        for entry in ["0.0.0.0/0", "::/0"] {
            let messages = lint_entries(entry, "NO_PROXY");
            assert_eq!(messages[0].instead, None, "{entry}");
        }
    }
}
