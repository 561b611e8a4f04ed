//! The report of a command.

use super::annotation::CiAnnotation;
use super::{ItemStatus, ReportItem, TransferSide};
use schemars::JsonSchema;
use serde::Serialize;

/// The totals of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RunTotals {
    /// The number of items.
    pub items: usize,
    /// The number that the command transferred or changed.
    pub done: usize,
    /// The number that existed already.
    pub present: usize,
    /// The number omitted by a dry run, or missing with the consent of the manifest.
    pub skipped: usize,
    /// The number that is missing.
    pub missing: usize,
    /// The number that failed.
    pub failed: usize,
    /// Body bytes received and sent.
    pub bytes_transferred: u64,
    /// HTTP requests sent, retries, redirects and tokens included.
    pub requests: u64,
}

/// The requests to one host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct HostUse {
    /// Name or address.
    pub host: String,
    /// Port.
    pub port: u16,
    /// `https` or `http`.
    pub scheme: String,
    /// The upstream that it mirrors.
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// The proxy, without credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// Body bytes received and sent.
    pub bytes: u64,
    /// Requests sent.
    pub requests: u64,
    /// `registry`, `file`, `token`, `redirect`, `object-store`, comma-separated.
    pub why: String,
    /// `host:port` of the hosts whose responses named it, by a redirect or as a token realm.
    #[serde(rename = "namedBy", skip_serializing_if = "Vec::is_empty")]
    pub named_by: Vec<String>,
    /// Whether the host itself answered a request. A refusal may come from a proxy or firewall.
    #[serde(skip)]
    pub answered: bool,
}

impl HostUse {
    /// Whether both are requests to one host, by one route and for the same purposes.
    fn is_same_use(&self, other: &HostUse) -> bool {
        self.host == other.host
            && self.port == other.port
            && self.scheme == other.scheme
            && self.origin == other.origin
            && self.via == other.via
            && self.why == other.why
    }
}

/// The error that ended a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ErrorInfo {
    /// The side of the transfer, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub side: Option<TransferSide>,
    /// The name of the item, if the error belongs to one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
    /// What failed, and what to do.
    pub message: String,
}

/// The result of one command.
#[derive(Debug, Clone, Default)]
pub struct RunReport {
    /// One item for each lock entry that the command handled.
    pub items: Vec<ReportItem>,
    /// The number of body bytes moved over the network or between files.
    pub bytes_transferred: u64,
    /// The number of HTTP requests sent.
    pub requests: u64,
    /// The hosts that were contacted.
    pub hosts: Vec<HostUse>,
    /// The annotations for CI services, besides those for failed and missing items.
    pub annotations: Vec<CiAnnotation>,
}

impl RunReport {
    /// Adds the items and the bytes of a further step.
    pub fn append(&mut self, step: RunReport) {
        self.bytes_transferred += step.bytes_transferred;
        self.items.extend(step.items);
    }

    /// Adds the hosts that another client contacted, with their bytes and requests.
    pub fn add_hosts(&mut self, hosts: Vec<HostUse>) {
        for other in hosts {
            self.bytes_transferred += other.bytes;
            self.requests += other.requests;
            match self.hosts.iter_mut().find(|host| host.is_same_use(&other)) {
                Some(host) => {
                    host.bytes += other.bytes;
                    host.requests += other.requests;
                    host.answered |= other.answered;
                    host.named_by.extend(other.named_by);
                    host.named_by.sort_unstable();
                    host.named_by.dedup();
                }
                None => self.hosts.push(other),
            }
        }
        self.hosts.sort();
    }

    /// Counts the items by outcome, and adds the traffic of the run.
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
        self.items.iter().any(|item| item.status.is_loss())
    }

    /// Whether an item is done or present.
    pub fn has_successes(&self) -> bool {
        self.items.iter().any(|item| item.status.is_success())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_hosts_keep_the_servers_that_named_them() {
        let used = |named_by: &[&str]| HostUse {
            host: "cdn.test".into(),
            port: 443,
            scheme: "https".into(),
            origin: None,
            via: None,
            bytes: 2,
            requests: 1,
            why: "redirect".into(),
            named_by: named_by.iter().map(ToString::to_string).collect(),
            answered: true,
        };
        let mut report = RunReport::default();
        report.add_hosts(vec![used(&["b.test:443"])]);
        report.add_hosts(vec![used(&["a.test:443", "b.test:443"])]);
        let merged = HostUse {
            bytes: 4,
            requests: 2,
            ..used(&["a.test:443", "b.test:443"])
        };
        assert_eq!(report.hosts, [merged]);
    }
}
