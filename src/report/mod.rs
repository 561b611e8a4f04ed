//! What happened: items, totals, hosts, as one document; and progress as a small trait.

mod progress;

pub use progress::{Progress, Silent};

use crate::model::Digest;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What kind of item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A container image.
    Image,
    /// A plain file.
    File,
    /// A checksum file beside a plain file.
    Sidecar,
    /// A signature, attestation or other referrer.
    Referrer,
    /// A Helm chart.
    Chart,
    /// An operating-system package.
    Package,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Image => "image",
            Kind::File => "file",
            Kind::Sidecar => "sidecar",
            Kind::Referrer => "referrer",
            Kind::Chart => "chart",
            Kind::Package => "package",
        })
    }
}

/// What became of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Something was done for it.
    Done,
    /// It was there already.
    Present,
    /// Left out on purpose: a dry run, or a loss that the manifest accepts.
    Skipped,
    /// It does not exist where it should.
    Missing,
    /// It could not be done.
    Failed,
}

/// One item of a report. An item is a lock entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Item {
    /// What kind.
    pub kind: Kind,
    /// Its name in the lock.
    pub name: String,
    /// Its digest, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// Its size in bytes with everything under it, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// What became of it.
    pub status: Status,
    /// Why, where that needs saying.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Sums over the run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// How many items.
    pub items: usize,
    /// How many of them by status.
    pub done: usize,
    /// See [`Status::Present`].
    pub present: usize,
    /// See [`Status::Skipped`].
    pub skipped: usize,
    /// See [`Status::Missing`].
    pub missing: usize,
    /// See [`Status::Failed`].
    pub failed: usize,
    /// Body bytes received and sent.
    pub bytes_transferred: u64,
    /// HTTP requests sent, retries, redirects and tokens included.
    pub requests: u64,
}

/// How one host was used.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct HostUse {
    /// Host name or address.
    pub host: String,
    /// Port.
    pub port: u16,
    /// The origin that a mirror stood in for.
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// The proxy that was used, without credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// Body bytes received and sent.
    pub bytes: u64,
    /// Requests sent.
    pub requests: u64,
    /// What for: `registry`, `file`, `token`, `redirect`, comma-separated.
    pub why: String,
}

/// Which side of a transfer an error is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Where things come from.
    Source,
    /// Where things go to.
    Destination,
    /// What the user gave: a file, a flag.
    Input,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Side::Source => "source",
            Side::Destination => "destination",
            Side::Input => "input",
        })
    }
}

/// The error of a whole run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ErrorInfo {
    /// Which side.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub side: Option<Side>,
    /// Which item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
    /// What happened and what to do.
    pub message: String,
}

/// How a run ended, as in `status` of the JSON document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RunStatus {
    /// Exit 0.
    Done,
    /// Exit 3.
    Partial,
    /// Exit 1 or 2.
    Failed,
    /// Exit 4.
    Refused,
}

/// The result of one command.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// One entry for each lock entry that the command dealt with.
    pub items: Vec<Item>,
    /// Body bytes moved over the network or between files.
    pub bytes_transferred: u64,
    /// HTTP requests sent.
    pub requests: u64,
    /// Hosts contacted.
    pub hosts: Vec<HostUse>,
    /// Members that only this command has, such as `bundle` or `changes`.
    pub extra: serde_json::Map<String, serde_json::Value>,
}

impl Report {
    /// Sums over the items and the traffic.
    pub fn totals(&self) -> Totals {
        let count = |status| self.items.iter().filter(|item| item.status == status).count();
        Totals {
            items: self.items.len(),
            done: count(Status::Done),
            present: count(Status::Present),
            skipped: count(Status::Skipped),
            missing: count(Status::Missing),
            failed: count(Status::Failed),
            bytes_transferred: self.bytes_transferred,
            requests: self.requests,
        }
    }

    /// Whether an item failed or is missing.
    pub fn has_losses(&self) -> bool {
        self.items.iter().any(|item| matches!(item.status, Status::Failed | Status::Missing))
    }

    /// Whether an item was done or was there.
    pub fn has_successes(&self) -> bool {
        self.items.iter().any(|item| matches!(item.status, Status::Done | Status::Present))
    }

    /// The JSON document of `--output json` and `--report`, without what server text could smuggle in:
    /// JSON escapes control characters by itself.
    pub fn to_json(&self, command: &str, status: RunStatus, error: Option<&ErrorInfo>) -> serde_json::Value {
        let mut document = serde_json::json!({
            "command": command,
            "status": status,
            "items": self.items,
            "totals": self.totals(),
            "hosts": self.hosts,
        });
        if let Some(members) = document.as_object_mut() {
            members.extend(self.extra.clone());
            if let Some(error) = error {
                members.insert("error".into(), serde_json::json!(error));
            }
        }
        document
    }
}

/// Text that came from somewhere else, made safe for a terminal: control characters are escaped.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() && c != '\n' { out.extend(c.escape_default()) } else { out.push(c) }
    }
    out
}
