//! Counts with their noun, for people.

use super::EntryKind;
use super::ReportItem;
use std::fmt;

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
