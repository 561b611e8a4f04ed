//! A locked item of any kind, with the methods that each stage needs.
//!
//! Stages work with `&dyn LockedItem`. Its supertraits group the methods by who calls them: push,
//! rewrite and audit, or serve and export.

use super::chart::LockedChart;
use super::git::LockedGitRepository;
use super::packages::LockedPackageSet;
use super::provider::LockedProvider;
use landfall_content::{BlobRead, LockEntry};
use landfall_model::report::EntryKind;
use landfall_model::sign::SignatureTime;
use landfall_model::{Destination, DestinationMap, Digest, ImageRef};
use landfall_signature::{RuleSubject, SignaturePolicy, VerifiedSignature};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// The names of a locked item.
pub trait ItemIdentity {
    /// The kind, as reports name it.
    fn kind(&self) -> EntryKind;

    /// The item's `name` in the lock.
    fn name(&self) -> Cow<'_, str>;

    /// The item's `digest` in the lock.
    fn digest(&self) -> &Digest;

    /// Where the item comes from, without a version: the repository of an image or chart, otherwise
    /// the name.
    fn source(&self) -> String;
}

/// The repositories and tags to which `push` and `mirror` deliver a locked item.
pub trait PushedItem: ItemIdentity {
    /// The item's repositories at a registry. Rewritten references point to the first one.
    fn destinations(&self, mapping: &DestinationMap) -> Vec<Destination>;

    /// The tag that the item gets in each of its destinations.
    fn tag(&self) -> String;

    /// The tags that signatures and other referrers get in each destination, each with the digest
    /// of its manifest.
    fn referrer_tags(&self) -> Vec<(&str, &Digest)> {
        Vec::new()
    }
}

/// The references and digests by which `rewrite` and `audit` find a locked item.
pub trait AuditedItem: ItemIdentity {
    /// The image reference that resolves to this item. `None` if the item is found by URL alone.
    fn reference(&self) -> Option<&ImageRef> {
        None
    }

    /// Every digest that an image reference to this item may contain.
    fn digests(&self) -> Vec<&Digest> {
        vec![self.digest()]
    }

    /// Whether `digest` is a blob of this item.
    fn has_blob(&self, digest: &Digest) -> bool {
        self.digest() == digest
    }

    /// The platforms of an image; `None` for kinds that have no platforms.
    fn platforms(&self) -> Option<BTreeSet<String>> {
        None
    }

    /// The platforms that were requested if the item has them, and that it lacks.
    fn lacks(&self) -> Vec<String> {
        Vec::new()
    }
}

/// The repository and files that `serve` and `export` offer for a locked item.
pub trait ServedItem {
    /// The repository under which landfall's own registry serves the item, in addition to the
    /// item's destinations.
    fn own_repository(&self) -> String;

    /// The files that clients download by URL and `export` writes, the item's own file first.
    fn files(&self) -> Vec<UrlFile<'_>> {
        Vec::new()
    }

    /// Whether `serve --from` offers the item from a registry. It does not offer images, since
    /// nodes pull them from that registry directly.
    fn is_served_from_registry(&self) -> bool {
        true
    }
}

/// One locked item of any kind.
pub trait LockedItem: PushedItem + AuditedItem + ServedItem + fmt::Debug + Send + Sync {
    /// Writes the item as YAML, as the lock contains it. Equal items give equal text.
    ///
    /// # Errors
    /// Only errors of `out`.
    fn write(&self, out: &mut dyn fmt::Write) -> fmt::Result;

    /// Why landfall would never have written this item, or `None` if it is plausible. A lock may
    /// come from the other side of an air gap, so sizes, paths and tags are untrusted.
    fn implausibility(&self) -> Option<String>;

    /// The manifests and blobs that make up the item.
    fn entry(&self) -> LockEntry;

    /// Compares the content in `blobs` with the lock. Returns one sentence for each contradiction.
    /// Signatures are checked as of `time`.
    fn contradictions(&self, _blobs: &dyn BlobRead, _time: SignatureTime) -> Vec<String> {
        Vec::new()
    }

    /// The names by which rules of `verify:` match the item; `None` for kinds without such rules.
    fn signature_subject(&self) -> Option<RuleSubject> {
        None
    }

    /// The verified signatures that the lock records.
    fn recorded_signatures(&self) -> &[VerifiedSignature] {
        &[]
    }

    /// Verifies the signatures of the item, which are read from `blobs`. Returns those that meet
    /// the policy; empty if the item needs none. OpenPGP signatures must be valid at `time`.
    ///
    /// # Errors
    /// If the item does not meet the policy, or a signature cannot be read.
    fn verify_signatures(
        &self,
        _policy: &SignaturePolicy,
        _blobs: &Arc<dyn BlobRead>,
        _time: SignatureTime,
    ) -> Result<Vec<VerifiedSignature>, String> {
        Ok(Vec::new())
    }

    /// URLs that `lock` requests, but `pull` does not, such as the index of a repository.
    fn lookup_urls(&self) -> Vec<String> {
        Vec::new()
    }

    /// This item, if it is a chart.
    fn as_chart(&self) -> Option<&LockedChart> {
        None
    }

    /// This item, if it is a git repository.
    fn as_git_repository(&self) -> Option<&LockedGitRepository> {
        None
    }

    /// This item, if it is a provider of OpenTofu or Terraform.
    fn as_provider(&self) -> Option<&LockedProvider> {
        None
    }

    /// This item, if it is a set of OS packages.
    fn as_package_set(&self) -> Option<&LockedPackageSet> {
        None
    }
}

/// A file of a locked item that clients download by URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlFile<'a> {
    /// The kind, as reports name it. A sidecar has another kind than its file.
    pub kind: EntryKind,
    /// The URL that names the file in the lock.
    pub name: &'a str,
    /// All URLs at which clients request the file, `name` first.
    pub urls: Vec<Cow<'a, str>>,
    /// The digest of its content.
    pub digest: &'a Digest,
    /// The size of its content in bytes.
    pub size: u64,
    /// The permission bits that an export sets, in octal.
    pub mode: Option<&'a str>,
    /// The members of this archive that an export extracts next to it.
    pub members: &'a [String],
}

impl<'a> UrlFile<'a> {
    /// A file with one URL, without a mode and members.
    pub fn plain(kind: EntryKind, url: &'a str, digest: &'a Digest, size: u64) -> UrlFile<'a> {
        UrlFile {
            kind,
            name: url,
            urls: vec![url.into()],
            digest,
            size,
            mode: None,
            members: &[],
        }
    }
}
