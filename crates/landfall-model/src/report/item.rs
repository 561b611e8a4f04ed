//! What a run reports while and after it works: items with their outcome, counts, notices, and
//! progress.

use crate::Digest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The kind of a lock entry.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
#[derive(derive_more::Display)]
#[display(rename_all = "lowercase")]
pub enum EntryKind {
    /// A container image or another artifact of a registry.
    Image,
    /// A plain file that was downloaded from a URL.
    File,
    /// A checksum file, signature or certificate of a plain file.
    Sidecar,
    /// A signature, attestation or other referrer.
    Referrer,
    /// A Helm chart of a chart repository or a registry.
    Chart,
    /// A set of operating-system packages; in an audit, one package.
    Package,
    /// A git repository.
    Git,
    /// A provider of OpenTofu or Terraform.
    Provider,
    /// A variable of a manifest whose versions could not be looked up. It is not a lock entry.
    Variable,
}

/// The outcome of a command for an item.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum ItemStatus {
    /// The command transferred or changed it.
    Done,
    /// It was present already, so nothing was transferred.
    Present,
    /// It was skipped on purpose: by a dry run, or because the manifest accepts its loss.
    Skipped,
    /// It is missing: upstream, in the bundle, in the lock or at its destination.
    Missing,
    /// The command failed for it.
    Failed,
}

impl ItemStatus {
    /// The value in the JSON document.
    pub fn word(self) -> &'static str {
        match self {
            ItemStatus::Done => "done",
            ItemStatus::Present => "present",
            ItemStatus::Skipped => "skipped",
            ItemStatus::Missing => "missing",
            ItemStatus::Failed => "failed",
        }
    }

    /// Whether the item was processed, or needed nothing.
    pub fn is_success(self) -> bool {
        matches!(self, ItemStatus::Done | ItemStatus::Present)
    }

    /// Whether the item failed or is missing.
    pub fn is_loss(self) -> bool {
        matches!(self, ItemStatus::Failed | ItemStatus::Missing)
    }
}

/// An item of a report: a lock entry, or a name that the lock lacks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ReportItem {
    /// `image`, `file`, `sidecar`, `referrer`, `chart`, `package`, `git` or `provider`; `variable`
    /// for a variable of a manifest whose versions `update` could not look up.
    pub kind: EntryKind,
    /// Its name in the lock.
    pub name: String,
    /// Its digest, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// Its size with all its parts, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The number of packages in a package set; 0 if unknown, and for other kinds. Only text for
    /// people counts packages; the JSON document counts items.
    #[serde(skip)]
    pub packages: usize,
    /// `done`, `present`, `skipped`, `missing` or `failed`.
    pub status: ItemStatus,
    /// Why, if there is a reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl ReportItem {
    /// An item whose digest, size and packages are unknown.
    pub fn new(
        kind: EntryKind,
        name: String,
        status: ItemStatus,
        reason: Option<String>,
    ) -> ReportItem {
        ReportItem {
            kind,
            name,
            digest: None,
            bytes: None,
            packages: 0,
            status,
            reason,
        }
    }
}

/// The end of a list from which `others` are left out: ` and 3 more`; empty if none is.
pub fn and_more(others: usize) -> String {
    match others {
        0 => String::new(),
        others => format!(" and {others} more"),
    }
}

/// Formats a count with its noun: `1 blob`, `2 blobs`, `2 entries`.
pub fn count_of(count: usize, what: impl fmt::Display) -> String {
    let what = what.to_string();
    match what
        .strip_suffix('y')
        .filter(|stem| !stem.ends_with(['a', 'e', 'o', 'u']))
    {
        _ if count == 1 => format!("1 {what}"),
        Some(stem) => format!("{count} {stem}ies"),
        None => format!("{count} {what}s"),
    }
}

/// The number of lock entries of one kind, as people read it: `3 images`, `1 set of 79 packages`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryCount {
    /// The kind of the entries.
    pub kind: EntryKind,
    /// The number of entries of that kind.
    pub entries: usize,
    /// The number of packages in all of them; 0 if it is unknown, or if the kind is not
    /// [`EntryKind::Package`].
    pub packages: usize,
}

impl EntryCount {
    /// Counts the entries of `kind` among `entries`. Each entry is given by its kind and its number
    /// of packages.
    pub fn new(
        kind: EntryKind,
        entries: impl IntoIterator<Item = (EntryKind, usize)>,
    ) -> EntryCount {
        let mut count = EntryCount {
            kind,
            entries: 0,
            packages: 0,
        };
        for (_, packages) in entries.into_iter().filter(|(other, _)| *other == kind) {
            count.entries += 1;
            count.packages += packages;
        }
        count
    }

    /// Counts the items of `kind` among `items`, which are lock entries.
    pub fn from_items<'a>(
        kind: EntryKind,
        items: impl IntoIterator<Item = &'a ReportItem>,
    ) -> EntryCount {
        EntryCount::new(
            kind,
            items.into_iter().map(|item| (item.kind, item.packages)),
        )
    }
}

impl fmt::Display for EntryCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sets = |f: &mut fmt::Formatter<'_>| f.write_str(&count_of(self.entries, "set"));
        match (self.kind, self.packages) {
            (EntryKind::Package, 0) => sets(f).and_then(|()| f.write_str(" of packages")),
            (EntryKind::Package, packages) => {
                sets(f).and_then(|()| write!(f, " of {}", count_of(packages, "package")))
            }
            (EntryKind::Git, _) => f.write_str(&count_of(self.entries, "git repository")),
            (kind, _) => f.write_str(&count_of(self.entries, kind)),
        }
    }
}

// Notices about upstream, old images and wrong clocks, for people to act on. Notices do not change
// the exit code, except those of `landfall lock --check` and `landfall update --check`.

/// The kind of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NoticeKind {
    /// Upstream no longer has the item.
    Gone,
    /// The tag points to another digest now, or the file has other content.
    Moved,
    /// Upstream has a newer version of the item.
    Newer,
    /// The image was created longer ago than `--older-than` allows.
    Old,
    /// The machine's clock or a recorded time is wrong.
    Clock,
}

/// A notice about one item.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Notice {
    /// The kind of the change or problem.
    pub kind: NoticeKind,
    /// The name of the item in the lock.
    pub name: String,
    /// What happened, in a sentence for people.
    pub message: String,
    /// The locked digest, or the digest that the manifest demands, if the content changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Digest>,
    /// The digest that upstream has now, if the content changed and upstream reports a digest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Digest>,
    /// Whether the change was accepted, as the manifest allows.
    pub taken: bool,
    /// The time from which the change can be accepted, if it waits for its minimum age.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

impl Notice {
    /// Creates a notice without digests.
    pub fn new(kind: NoticeKind, name: impl Into<String>, message: impl Into<String>) -> Notice {
        Notice {
            kind,
            name: name.into(),
            message: message.into(),
            from: None,
            to: None,
            taken: false,
            until: None,
        }
    }

    /// Creates the notice that upstream no longer has `name`.
    pub fn gone(name: impl Into<String>) -> Notice {
        Notice::new(NoticeKind::Gone, name, "upstream no longer has it")
    }

    /// Creates the notice that `name` has other content. `to` is `None` if the new digest is not
    /// known, as when upstream reports only the size of a file.
    pub fn moved(name: impl Into<String>, from: Option<Digest>, to: Option<Digest>) -> Notice {
        let message = match (&from, &to) {
            (Some(from), Some(to)) => {
                let from = from.short(12);
                let to = to.short(12);
                format!("its digest changed from {from} to {to}")
            }
            _ => "upstream has other content now".to_owned(),
        };
        Notice {
            from,
            to,
            ..Notice::new(NoticeKind::Moved, name, message)
        }
    }
}

// Progress of a run. The library reports it through a trait and prints nothing itself.

/// Receives the progress of a run. Any thread may call any method.
pub trait Progress: Send + Sync {
    /// Begins a phase such as `pull` with its number of items and bytes; 0 bytes means unknown.
    fn begin(&self, what: &str, items: u64, bytes: u64);
    /// Reports that `count` more bytes were transferred.
    fn bytes(&self, count: u64);
    /// Adds bytes to the total that [`Progress::begin`] announced, because content is transferred
    /// again.
    fn more(&self, _bytes: u64) {}
    /// Announces the number of blobs and manifests in the phase: each costs a request, however
    /// small it is.
    fn parts(&self, _count: u64) {}
    /// Reports that `count` more blobs or manifests are done.
    fn parts_done(&self, _count: u64) {}
    /// Reports that the item `name` is done.
    fn item(&self, name: &str);
    /// Shows a line that belongs to the progress: it is omitted if no progress is shown.
    fn tell(&self, _line: &str) {}
    /// Shows a line that people must see at once, such as a warning.
    fn note(&self, line: &str);
    /// Ends the phase that [`Progress::begin`] began.
    fn end(&self);
}

/// Discards all progress, for callers that show none.
pub struct SilentProgress;

impl Progress for SilentProgress {
    fn begin(&self, _what: &str, _items: u64, _bytes: u64) {}
    fn bytes(&self, _count: u64) {}
    fn item(&self, _name: &str) {}
    fn note(&self, _line: &str) {}
    fn end(&self) {}
}
