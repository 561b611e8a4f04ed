//! The record of the hosts that `lock`, `update`, `refresh`, `pull`, `mirror` and probes contacted.
//! It is a file in the store, into which each run merges its hosts.

use super::pattern::EgressPattern;
use landfall_content::store::DiskStore;
use landfall_content::{WriteError, if_exists};
use landfall_model::Failure;
use landfall_model::report::HostUse;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The path of the file in the store.
const FILE: &str = ".landfall/egress";

/// The hosts that earlier runs contacted, by host and port.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ContactRecord(BTreeMap<(String, u16), Contacted>);

/// A host that earlier runs contacted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Contacted {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) scheme: String,
    /// The purposes of the requests: `registry`, `file`, `token`, `redirect`, `object-store`.
    pub(super) why: BTreeSet<String>,
    /// `host:port` of the hosts whose responses named it.
    #[serde(rename = "namedBy")]
    pub(super) named_by: BTreeSet<String>,
    /// The commands that contacted it.
    pub(super) by: BTreeSet<String>,
    /// Whether the host itself has never answered: a proxy or firewall refused every request. Then
    /// nothing is known about the hosts that its responses would name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) refused: bool,
}

/// The JSON document in the file.
#[derive(Serialize, Deserialize)]
struct ContactFile {
    version: u32,
    hosts: Vec<Contacted>,
}

impl ContactRecord {
    /// Reads the record of the store in `dir`. If there is no file, the record is empty.
    pub(crate) fn load(dir: &Path) -> Result<ContactRecord, Failure> {
        let path = dir.join(FILE);
        let bad = |why: String| {
            let words = "; remove it, and the next lock and pull write a new one";
            Failure::read(&path, why + words)
        };
        match if_exists(std::fs::read(&path)) {
            Ok(Some(bytes)) => ContactRecord::parse(&bytes).map_err(bad),
            Ok(None) => Ok(ContactRecord::default()),
            Err(error) => Err(bad(error.to_string())),
        }
    }

    fn parse(bytes: &[u8]) -> Result<ContactRecord, String> {
        let ContactFile { version, hosts } =
            serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if version != 1 {
            return Err(format!("version {version} is not known to this landfall"));
        }
        // earlier releases recorded any text that a URL parser accepts as a host
        let hosts = hosts
            .into_iter()
            .filter(|one| EgressPattern::exact(&one.host).is_ok());
        Ok(ContactRecord(
            hosts
                .map(|one| ((one.host.clone(), one.port), one))
                .collect(),
        ))
    }

    fn to_bytes(&self) -> Vec<u8> {
        let written = ContactFile {
            version: 1,
            hosts: self.0.values().cloned().collect(),
        };
        let mut bytes = serde_json::to_vec_pretty(&written).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }

    /// Adds the hosts that a run of `command` sent requests to. Only DNS names and addresses are
    /// recorded.
    pub(crate) fn add(&mut self, hosts: &[HostUse], command: &str) {
        for used in hosts {
            if used.requests == 0 || EgressPattern::exact(&used.host).is_err() {
                continue;
            }
            let known = self
                .0
                .entry((used.host.clone(), used.port))
                .or_insert_with(|| Contacted {
                    host: used.host.clone(),
                    port: used.port,
                    scheme: used.scheme.clone(),
                    why: BTreeSet::new(),
                    named_by: BTreeSet::new(),
                    by: BTreeSet::new(),
                    refused: true,
                });
            // a server may have changed to https since an earlier run
            known.scheme.clone_from(&used.scheme);
            known.why.extend(used.why.split(',').map(str::to_owned));
            known.named_by.extend(used.named_by.iter().cloned());
            known.by.insert(command.into());
            known.refused &= !used.answered;
        }
    }

    /// The entry of one host and port.
    pub(super) fn get(&self, host: &str, port: u16) -> Option<&Contacted> {
        self.0.get(&(host.to_owned(), port))
    }

    /// The hosts that responses of `source` (`host:port`) named.
    pub(super) fn named_by<'a>(&'a self, source: &'a str) -> impl Iterator<Item = &'a Contacted> {
        self.0
            .values()
            .filter(move |one| one.named_by.contains(source))
    }
}

/// Whether a newer release wrote the record.
fn has_newer_format(bytes: &[u8]) -> bool {
    let record = serde_json::from_slice(bytes);
    record.is_ok_and(|record: Value| record["version"].as_u64() > Some(1))
}

/// Checks that a parsed record is the same after it was formatted and parsed again.
#[cfg(any(test, fuzzing))]
pub(crate) fn fuzz(bytes: &[u8]) {
    if let Ok(record) = ContactRecord::parse(bytes) {
        assert_eq!(ContactRecord::parse(&record.to_bytes()), Ok(record));
    }
}

/// Adds to the record of a store the hosts that a run of `command` contacted. A record of a newer
/// release is left unchanged. A damaged record is replaced, since only lists of hosts use it.
pub(crate) fn remember(
    disk: &DiskStore,
    hosts: &[HostUse],
    command: &str,
) -> Result<(), WriteError> {
    disk.edit(FILE, |old| {
        let mut record = match ContactRecord::parse(old) {
            Ok(record) => record,
            Err(_) if has_newer_format(old) => return old.to_vec(),
            Err(_) => ContactRecord::default(),
        };
        record.add(hosts, command);
        record.to_bytes()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(host: &str, why: &str, named_by: &[&str]) -> HostUse {
        let named_by = named_by.iter().map(|&name| name.into()).collect();
        HostUse {
            host: host.into(),
            port: 443,
            scheme: "https".into(),
            origin: None,
            via: None,
            bytes: 1,
            requests: 1,
            why: why.into(),
            named_by,
            answered: true,
        }
    }

    #[test]
    fn runs_add_to_the_record_and_a_repeated_run_does_not_change_it() {
        let dir = tempfile::tempdir().unwrap();
        let disk = DiskStore::open(dir.path()).unwrap();
        assert_eq!(
            ContactRecord::load(dir.path()).unwrap(),
            ContactRecord::default()
        );
        remember(
            &disk,
            &[
                used("r.test", "registry", &[]),
                used("t.test", "token", &["r.test:443"]),
            ],
            "lock",
        )
        .unwrap();
        remember(
            &disk,
            &[used("c.test", "redirect", &["r.test:443"])],
            "pull",
        )
        .unwrap();
        let record = ContactRecord::load(dir.path()).unwrap();
        let named: Vec<&str> = record
            .named_by("r.test:443")
            .map(|one| &*one.host)
            .collect();
        assert_eq!(named, ["c.test", "t.test"]);
        let before = std::fs::read(dir.path().join(FILE)).unwrap();
        remember(
            &disk,
            &[used("c.test", "redirect", &["r.test:443"])],
            "pull",
        )
        .unwrap();
        assert_eq!(std::fs::read(dir.path().join(FILE)).unwrap(), before);
        std::fs::write(dir.path().join(FILE), "{\"version\": 2, \"hosts\": []}").unwrap();
        assert!(
            ContactRecord::load(dir.path())
                .unwrap_err()
                .to_string()
                .contains("version 2")
        );
        // the record of a newer release is kept, and a damaged one is replaced
        for (content, is_kept) in [("{\"version\": 2, \"hosts\": {}}", true), ("{", false)] {
            std::fs::write(dir.path().join(FILE), content).unwrap();
            remember(&disk, &[used("r.test", "registry", &[])], "lock").unwrap();
            let after = std::fs::read_to_string(dir.path().join(FILE)).unwrap();
            assert_eq!(after == content, is_kept, "{after}");
        }
    }
}
