//! The report of a command: items, sums, hosts, the error; and its JSON document.

use super::annotation::CiAnnotation;
use super::{ItemStatus, ReportItem};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Sums over a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RunTotals {
    /// The number of items.
    pub items: usize,
    /// See [`ItemStatus::Done`].
    pub done: usize,
    /// See [`ItemStatus::Present`].
    pub present: usize,
    /// See [`ItemStatus::Skipped`].
    pub skipped: usize,
    /// See [`ItemStatus::Missing`].
    pub missing: usize,
    /// See [`ItemStatus::Failed`].
    pub failed: usize,
    /// Body bytes received and sent.
    pub bytes_transferred: u64,
    /// HTTP requests sent, retries, redirects and tokens included.
    pub requests: u64,
}

/// The requests to one host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct HostUse {
    /// Host name or address.
    pub host: String,
    /// Port.
    pub port: u16,
    /// `https` or `http`.
    pub scheme: String,
    /// The origin, where the host is a mirror.
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// The proxy, without credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// Body bytes received and sent.
    pub bytes: u64,
    /// Requests sent.
    pub requests: u64,
    /// The purposes: `registry`, `file`, `token`, `redirect`, `object-store`, comma-separated.
    pub why: String,
    /// `host:port` of those whose answers named it: a redirect, a token realm.
    #[serde(rename = "namedBy", skip_serializing_if = "Vec::is_empty")]
    pub named_by: Vec<String>,
}

/// The side of a transfer where an error is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TransferSide {
    /// Where content comes from.
    Source,
    /// Where content goes.
    Destination,
    /// A file or flag of the user.
    Input,
}

impl fmt::Display for TransferSide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TransferSide::Source => "source",
            TransferSide::Destination => "destination",
            TransferSide::Input => "input",
        })
    }
}

/// The error of a whole run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ErrorInfo {
    /// The side of the transfer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub side: Option<TransferSide>,
    /// The name of the item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
    /// What happened, and what to do.
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
    /// Exit 4, and 3 where nothing was written because something is missing.
    Refused,
}

impl RunStatus {
    /// As the JSON document has it.
    pub fn word(self) -> &'static str {
        match self {
            RunStatus::Done => "done",
            RunStatus::Partial => "partial",
            RunStatus::Failed => "failed",
            RunStatus::Refused => "refused",
        }
    }
}

/// The result of one command.
#[derive(Debug, Clone, Default)]
pub struct RunReport {
    /// One item for each lock entry that the command handled.
    pub items: Vec<ReportItem>,
    /// Body bytes moved over the network or between files.
    pub bytes_transferred: u64,
    /// HTTP requests sent.
    pub requests: u64,
    /// Hosts contacted.
    pub hosts: Vec<HostUse>,
    /// Members of this command alone, such as `bundle` or `changes`.
    pub extra: serde_json::Map<String, serde_json::Value>,
    /// What a CI shows besides items that failed or are missing.
    pub annotations: Vec<CiAnnotation>,
}

impl RunReport {
    /// Adds what another client has contacted, with its bytes and requests.
    pub fn add_hosts(&mut self, hosts: Vec<HostUse>) {
        for other in hosts {
            self.bytes_transferred += other.bytes;
            self.requests += other.requests;
            let is_same = |host: &&mut HostUse| {
                (
                    &host.host,
                    host.port,
                    &host.scheme,
                    &host.origin,
                    &host.via,
                    &host.why,
                ) == (
                    &other.host,
                    other.port,
                    &other.scheme,
                    &other.origin,
                    &other.via,
                    &other.why,
                )
            };
            match self.hosts.iter_mut().find(is_same) {
                Some(host) => {
                    host.bytes += other.bytes;
                    host.requests += other.requests;
                }
                None => self.hosts.push(other),
            }
        }
        self.hosts.sort();
    }

    /// Sums over the items and the traffic.
    pub fn totals(&self) -> RunTotals {
        let count = |status| {
            self.items
                .iter()
                .filter(|item| item.status == status)
                .count()
        };
        RunTotals {
            items: self.items.len(),
            done: count(ItemStatus::Done),
            present: count(ItemStatus::Present),
            skipped: count(ItemStatus::Skipped),
            missing: count(ItemStatus::Missing),
            failed: count(ItemStatus::Failed),
            bytes_transferred: self.bytes_transferred,
            requests: self.requests,
        }
    }

    /// Whether an item failed or is missing.
    pub fn has_losses(&self) -> bool {
        self.items
            .iter()
            .any(|item| matches!(item.status, ItemStatus::Failed | ItemStatus::Missing))
    }

    /// Whether an item is done or was present.
    pub fn has_successes(&self) -> bool {
        self.items
            .iter()
            .any(|item| matches!(item.status, ItemStatus::Done | ItemStatus::Present))
    }

    /// The JSON document of `--output json` and `--report`. Text from servers is safe in it: JSON
    /// escapes control characters.
    pub fn to_json(
        &self,
        command: &str,
        status: RunStatus,
        error: Option<&ErrorInfo>,
    ) -> serde_json::Value {
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
