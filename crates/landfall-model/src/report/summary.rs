//! The report of a command, and its annotations for CI services.

use super::escape::escape_lines;
use super::{ItemStatus, ReportItem, TransferSide};
use derive_more::Display;
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
    /// `host:port` of the hosts that named it, by a redirect, as a token realm or as a mirror.
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

// Annotations that a CI service shows at a line of a file, as GitHub workflow commands.

/// The severity of an annotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display)]
#[display(rename_all = "lowercase")]
pub enum AnnotationLevel {
    /// Something changed, but no action is needed.
    Notice,
    /// Something needs attention, but nothing failed.
    Warning,
    /// Something failed: the command or one of its items.
    Error,
}

/// A message that a CI service shows, if possible at its position in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CiAnnotation {
    /// The severity, by which the CI service colours the message.
    pub level: AnnotationLevel,
    /// File, line and column, if the message belongs to a position in a file.
    pub place: Option<(String, usize, usize)>,
    /// The subject of the message, such as the name of an item.
    pub title: String,
    /// The message, which may have several lines.
    pub message: String,
}

impl CiAnnotation {
    /// The annotation as a workflow command of GitHub Actions, one line.
    pub fn command(&self) -> String {
        let mut position = String::new();
        if let Some((file, line, column)) = &self.place {
            position = format!("file={},line={line},col={column},", escape_property(file));
        }
        format!(
            "::{} {position}title={}::{}\n",
            self.level,
            escape_property(&self.title),
            escape_message(&self.message)
        )
    }
}

/// Escapes the message of a workflow command. The message ends at the end of the line.
fn escape_message(text: &str) -> String {
    escape_lines(text)
        .replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// Escapes a property of a workflow command. The property also ends at a comma or `::`.
fn escape_property(text: &str) -> String {
    escape_message(text).replace(':', "%3A").replace(',', "%2C")
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

    #[test]
    fn nothing_in_a_message_is_a_command() {
        let place = Some(("a,b.yaml".to_owned(), 3, 7));
        let annotation = CiAnnotation {
            level: AnnotationLevel::Warning,
            place,
            title: "x: y".into(),
            message: "50%\n::error::z\u{1b}".into(),
        };
        let command = "::warning file=a%2Cb.yaml,line=3,col=7,title=x%3A \
                       y::50%25%0A\\u{3a}:error::z\\u{1b}\n";
        assert_eq!(annotation.command(), command);
    }
}
