//! Pushing to a server: the refs that it has, the requested changes, and the server's report
//! (gitprotocol-pack, "Pushing Data To a Server").

use super::{Packet, Packets, is_whole_advertisement, push_data, push_flush};
use crate::GitError;
use crate::object::{ObjectId, is_ref_name};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// The first message of a server for a push.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReceiveAdvertisement {
    /// The refs of the repository.
    pub refs: BTreeMap<String, ObjectId>,
    /// The capabilities of the server.
    capabilities: Vec<String>,
}

/// A change of a ref of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefUpdate {
    /// The full name of the ref.
    pub name: String,
    /// The object that the ref points to now; `None` if the push creates the ref.
    pub old: Option<ObjectId>,
    /// The object that the ref will point to.
    pub new: ObjectId,
}

impl ReceiveAdvertisement {
    /// Reads the answer of a server, at most `most` refs.
    ///
    /// # Errors
    /// If the answer is not valid or is cut off, has more than `most` refs, or does not offer to
    /// report the result of a push.
    pub fn parse(message: &[u8], most: usize) -> Result<ReceiveAdvertisement, GitError> {
        let mut found = ReceiveAdvertisement::default();
        for packet in Packets::new(message) {
            let Packet::Data(data) = packet? else {
                continue;
            };
            let mut pieces = data.splitn(2, |byte| *byte == 0);
            let line = String::from_utf8_lossy(pieces.next().unwrap_or_default());
            if let Some(capabilities) = pieces.next() {
                let words = String::from_utf8_lossy(capabilities);
                found.capabilities = words.split_whitespace().map(str::to_owned).collect();
            }
            if let Some((id, name)) = line.trim_end().split_once(' ')
                && let Ok(id) = id.parse()
                && is_ref_name(name)
            {
                found.refs.insert(name.to_owned(), id);
            }
            GitError::check_refs(found.refs.len(), most)?;
        }
        if !is_whole_advertisement(message) {
            return Err(GitError::Protocol("the answer is cut off".into()));
        }
        if found.has("report-status") {
            return Ok(found);
        }
        Err(GitError::Protocol(
            "the server does not report the result of a push".into(),
        ))
    }

    /// Whether the server has a capability.
    pub fn has(&self, capability: &str) -> bool {
        self.capabilities.iter().any(|known| known == capability)
    }

    /// Returns the part of a push before its pack. `shallow` are the commits whose parents are not
    /// sent.
    pub fn push_head(&self, updates: &[RefUpdate], shallow: &[ObjectId]) -> Vec<u8> {
        let mut capabilities = "report-status agent=landfall".to_owned();
        // `atomic`: all changes or none; bands: also what hooks say, without progress (`quiet`)
        for wanted in ["ofs-delta", "atomic", "side-band-64k", "quiet"] {
            if self.has(wanted) {
                capabilities.push(' ');
                capabilities.push_str(wanted);
            }
        }
        let mut head = Vec::new();
        for id in shallow {
            push_data(&mut head, format!("shallow {id}").as_bytes());
        }
        let mut first = Some(capabilities);
        for RefUpdate { name, old, new } in updates {
            let old = old.unwrap_or(ObjectId::ZERO);
            let capabilities = first.take().map(|words| format!("\0 {words}"));
            let line = format!("{old} {new} {name}{}", capabilities.unwrap_or_default());
            push_data(&mut head, line.as_bytes());
        }
        push_flush(&mut head);
        head
    }
}

/// Reads the report of a server after a push of `updates`.
///
/// # Errors
/// If the server could not unpack the pack, refused a change or does not confirm it, or the message
/// is not a report.
pub fn check_report(message: &[u8], updates: &[RefUpdate]) -> Result<(), GitError> {
    let (report, words) = without_bands(message)?;
    let mut is_unpacked = false;
    let mut confirmed = BTreeSet::new();
    for packet in Packets::new(&report) {
        let packet = packet?;
        let line = packet.line().unwrap_or_default();
        if line == "unpack ok" {
            is_unpacked = true;
        } else if line.starts_with("unpack ") || line.starts_with("ng ") {
            return Err(refusal(line, &words));
        } else if let Some(name) = line.strip_prefix("ok ") {
            confirmed.insert(name);
        }
    }
    // the report may be cut off
    let missing = updates
        .iter()
        .find(|update| !is_unpacked || !confirmed.contains(&*update.name));
    match missing {
        None => Ok(()),
        Some(RefUpdate { name, .. }) => Err(GitError::Protocol(format!(
            "the server did not report the result of the push of {name}"
        ))),
    }
}

/// The report in the answer to a push, and what the server says beside it.
fn without_bands(message: &[u8]) -> Result<(Cow<'_, [u8]>, Vec<u8>), GitError> {
    /// More words are not shown.
    const MAX_WORDS: usize = 4096;
    let mut report = Vec::new();
    let mut words = Vec::new();
    for packet in Packets::new(message) {
        match packet? {
            Packet::Data([1, data @ ..]) => report.extend_from_slice(data),
            Packet::Data([2, data @ ..]) if words.len() < MAX_WORDS => {
                words.extend_from_slice(data);
            }
            Packet::Data([2, ..]) => {}
            Packet::Data([3, data @ ..]) => return Err(super::remote_error(data)),
            // without bands, the message is the report
            Packet::Data(_) => return Ok((message.into(), words)),
            Packet::Flush | Packet::Delimiter | Packet::ResponseEnd => {}
        }
    }
    Ok((report.into(), words))
}

/// A refusal: the line of the report, and the words of the server, such as those of a hook. The
/// report itself says only that a hook declined the push.
fn refusal(line: &str, words: &[u8]) -> GitError {
    let words = String::from_utf8_lossy(words);
    let words = words.split(['\n', '\r']).map(str::trim);
    // without empty lines and ornaments
    let words = words.filter(|line| line.contains(char::is_alphanumeric));
    let lines: Vec<&str> = std::iter::once(line).chain(words).collect();
    super::remote_error(lines.join("; ").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::push_text;

    const ID: &str = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391";

    #[test]
    fn a_push_sends_its_capabilities_with_the_first_change() {
        let mut message = Vec::new();
        push_text(&mut message, "# service=git-receive-pack");
        push_flush(&mut message);
        push_text(
            &mut message,
            &format!("{ID} refs/heads/main\0report-status ofs-delta"),
        );
        push_text(&mut message, &format!("{ID} refs/tags/v1"));
        push_flush(&mut message);
        let found = ReceiveAdvertisement::parse(&message, 9).unwrap();
        assert_eq!(found.refs.len(), 2);
        let update = |name: &str, old| RefUpdate {
            name: name.into(),
            old,
            new: ID.parse().unwrap(),
        };
        let updates = [
            update("refs/heads/a", None),
            update("refs/heads/b", ID.parse().ok()),
        ];
        let head = String::from_utf8(found.push_head(&updates, &[])).unwrap();
        let zero = "0".repeat(40);
        assert!(
            head.contains(&format!("{zero} {ID} refs/heads/a\0 report-status")),
            "{head}"
        );
        assert!(
            head.ends_with(&format!("{ID} {ID} refs/heads/b0000")),
            "{head}"
        );
        assert!(!head.contains("atomic"));
        // an empty repository has no refs, but capabilities
        let mut message = Vec::new();
        push_text(
            &mut message,
            &format!("{zero} capabilities^{{}}\0report-status"),
        );
        push_flush(&mut message);
        assert!(
            ReceiveAdvertisement::parse(&message, 9)
                .unwrap()
                .refs
                .is_empty()
        );
        assert!(ReceiveAdvertisement::parse(b"0000", 9).is_err());
    }

    #[test]
    fn refs_that_are_cut_off_are_an_error() {
        let mut message = Vec::new();
        push_text(&mut message, "# service=git-receive-pack");
        push_flush(&mut message);
        push_text(&mut message, &format!("{ID} refs/heads/a\0report-status"));
        push_text(&mut message, &format!("{ID} refs/heads/b"));
        push_flush(&mut message);
        for end in 0..message.len() {
            let cut = &message[..end];
            assert!(!is_whole_advertisement(cut), "{end}");
            assert!(ReceiveAdvertisement::parse(cut, 9).is_err(), "{end}");
        }
        let whole = ReceiveAdvertisement::parse(&message, 9).unwrap();
        assert_eq!(whole.refs.len(), 2);
    }

    #[test]
    fn a_change_that_is_refused_or_not_confirmed_is_an_error() {
        let updates = ["refs/heads/a", "refs/heads/b"].map(|name| RefUpdate {
            name: name.into(),
            old: None,
            new: ID.parse().unwrap(),
        });
        let report = |lines: &[&str]| {
            let mut message = Vec::new();
            lines.iter().for_each(|line| push_text(&mut message, line));
            push_flush(&mut message);
            check_report(&message, &updates)
        };
        let done = ["unpack ok", "ok refs/heads/a", "ok refs/heads/b"];
        assert!(report(&done).is_ok());
        let refused = report(&["unpack ok", "ng refs/heads/a protected"]).unwrap_err();
        assert!(refused.to_string().contains("protected"), "{refused}");
        assert!(report(&["unpack index-pack failed"]).is_err());
        assert!(report(&done[1..]).is_err());
        // a report that was cut off
        for count in 0..done.len() {
            assert!(report(&done[..count]).is_err(), "{count}");
        }
    }

    #[test]
    fn a_report_may_be_in_bands_with_the_words_of_the_server() {
        let updates = [RefUpdate {
            name: "refs/heads/a".into(),
            old: None,
            new: ID.parse().unwrap(),
        }];
        let result = |last: &str| {
            let mut report = Vec::new();
            push_text(&mut report, "unpack ok");
            push_text(&mut report, last);
            push_flush(&mut report);
            let mut message = Vec::new();
            let (first, second) = report.split_at(7);
            for (band, data) in [
                (2, &b"=====\n\nGitLab: You are not"[..]),
                (1, first),
                (2, &b" allowed\n"[..]),
                (1, second),
            ] {
                push_data(&mut message, &[&[band][..], data].concat());
            }
            push_flush(&mut message);
            check_report(&message, &updates)
        };
        assert!(result("ok refs/heads/a").is_ok());
        let refused = result("ng refs/heads/a declined").unwrap_err().to_string();
        let expected = "ng refs/heads/a declined; GitLab: You are not allowed";
        assert!(refused.ends_with(expected), "{refused}");
        let failed = check_report(b"000a\x03ended0000", &updates).unwrap_err();
        assert!(failed.to_string().contains("ended"), "{failed}");
    }
}
