//! The differences between two locks, as reports list them.

use landfall_model::Digest;
use landfall_model::report::EntryKind;
use serde::Serialize;

/// One difference between two locks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LockChange {
    /// The kind of the item.
    pub kind: EntryKind,
    /// The name of the item in the lock.
    pub name: String,
    /// `added`, `removed`, `moved` (another digest), `changed` (the same digest, other fields in
    /// the lock), or `gone` (upstream lacks it now; the old pin is kept).
    pub change: &'static str,
    /// For an added item: the name of the removed version that it replaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaces: Option<String>,
    /// For a removed item: the name of the added version that replaces it.
    #[serde(rename = "replacedBy", skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<String>,
    /// `up` or `down`: how the version differs from that of the replaced item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<&'static str>,
    /// The digest in the old lock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Digest>,
    /// The digest in the new lock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Digest>,
    /// The digests of referrers that only the new lock has.
    #[serde(rename = "newReferrers", skip_serializing_if = "Vec::is_empty")]
    pub new_referrers: Vec<Digest>,
    /// The digests of referrers that only the old lock has.
    #[serde(rename = "goneReferrers", skip_serializing_if = "Vec::is_empty")]
    pub gone_referrers: Vec<Digest>,
    /// The differences between the packages, if the item is a set of packages in both locks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub packages: Vec<PackageChange>,
}

/// A package that differs between two versions of a set, or that only one of them has.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct PackageChange {
    /// The name of the package.
    pub name: String,
    /// The architecture; `all` or `noarch` for a package of every architecture.
    pub arch: String,
    /// `up`, `down`, `moved` (the same version, another digest), `added` or `removed`.
    pub change: &'static str,
    /// The version in the old set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The version in the new set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The size of the new package in bytes, or of the removed one.
    pub bytes: u64,
    /// The digest of the new package, or of the removed one.
    pub digest: Digest,
    /// The first lines of the changelog of the new version, if it was read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changelog: Vec<String>,
}

impl LockChange {
    pub(super) fn new(kind: EntryKind, name: &str, change: &'static str) -> LockChange {
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
