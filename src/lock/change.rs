//! One difference between two locks.

use landfall_model::Digest;
use landfall_model::report::EntryKind;
use serde::Serialize;

/// One difference between two locks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LockChange {
    /// What kind of item.
    pub kind: EntryKind,
    /// Its name.
    pub name: String,
    /// `added`, `removed`, `moved` (another digest), `changed` (the same digest, other parts), or
    /// `gone` (upstream lacks it now; the old pin is kept).
    pub change: &'static str,
    /// The name of the older version that it stands for, where it is added.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaces: Option<String>,
    /// The name of the newer version that stands for it, where it is removed.
    #[serde(rename = "replacedBy", skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<String>,
    /// `up` or `down`: how the version differs from that of what it replaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<&'static str>,
    /// The old digest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Digest>,
    /// The new digest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Digest>,
    /// Its new referrers.
    #[serde(rename = "newReferrers", skip_serializing_if = "Vec::is_empty")]
    pub new_referrers: Vec<Digest>,
    /// Referrers that it no longer has.
    #[serde(rename = "goneReferrers", skip_serializing_if = "Vec::is_empty")]
    pub gone_referrers: Vec<Digest>,
    /// How its packages differ, where both are sets of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub packages: Vec<PackageChange>,
}

/// A package that two sets of one name have in different versions, or that only one of them has.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct PackageChange {
    /// Its name.
    pub name: String,
    /// Its architecture, or `all`.
    pub arch: String,
    /// `up`, `down`, `moved` (the same version, another digest), `added` or `removed`.
    pub change: &'static str,
    /// The old version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The new version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The size of the new one in bytes; of one that is removed, its own.
    pub bytes: u64,
    /// The digest of the new one; of one that is removed, its own.
    pub digest: Digest,
    /// The first lines of what the new one says of its version, where it was read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changelog: Vec<String>,
}

impl LockChange {
    /// A change of which no more is known than this.
    pub(super) fn of(kind: EntryKind, name: &str, change: &'static str) -> LockChange {
        LockChange {
            kind,
            name: name.into(),
            change,
            replaces: None,
            replaced_by: None,
            version: None,
            from: None,
            to: None,
            new_referrers: Vec::new(),
            gone_referrers: Vec::new(),
            packages: Vec::new(),
        }
    }
}
