//! What a page is made of.

use crate::Digest;
use crate::report::{EntryKind, ErrorInfo, RunReport, RunStatus};
use std::collections::HashMap;

/// What a page is made of.
pub struct ReportPage {
    /// The command that was run.
    pub command: String,
    /// The name of the bundle, where the page is about one and no command.
    pub bundle: Option<String>,
    /// How it ended.
    pub status: RunStatus,
    /// What ended it.
    pub error: Option<ErrorInfo>,
    /// What it reports.
    pub report: RunReport,
    /// The content that it was about.
    pub carried: Vec<ItemContent>,
    /// Words about it as a whole, each with its name: digests, signatures, bases.
    pub facts: Vec<(String, String)>,
    /// The phases of the run.
    pub phases: Vec<RunPhase>,
    /// How long all took, in seconds; `None` where nothing was run.
    pub seconds: Option<f64>,
}

/// One item with its content.
#[derive(Debug, Clone)]
pub struct ItemContent {
    /// Its kind.
    pub kind: EntryKind,
    /// Its name in the lock.
    pub name: String,
    /// What it stands with in the picture: its host and namespace.
    pub group: String,
    /// All its blobs and manifests, each once, with their sizes in bytes.
    pub blobs: Vec<(Digest, u64)>,
    /// Its platforms.
    pub platforms: Vec<String>,
    /// What refers to it: how many of each kind.
    pub attached: Vec<(String, usize)>,
    /// Its licences, as it says itself.
    pub licences: Option<String>,
    /// When it was made, as it says itself.
    pub created: Option<String>,
    /// The packages of a set of packages.
    pub packages: Vec<PackageRow>,
}

/// A package of a set of packages.
#[derive(Debug, Clone)]
pub struct PackageRow {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its architecture.
    pub arch: String,
    /// Its size in bytes.
    pub size: u64,
}

/// One phase of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunPhase {
    /// What was done.
    pub what: String,
    /// How many items.
    pub items: u64,
    /// How many bytes it expected; 0 means unknown.
    pub bytes: u64,
    /// How long it took.
    pub seconds: f64,
}

/// Who uses which blob.
pub(super) struct Sharing<'a> {
    /// Each blob: its size, and the positions of those that have it.
    blobs: HashMap<&'a Digest, (u64, Vec<usize>)>,
}

impl<'a> Sharing<'a> {
    pub(super) fn of(carried: &'a [ItemContent]) -> Sharing<'a> {
        let mut blobs: HashMap<&Digest, (u64, Vec<usize>)> = HashMap::new();
        for (at, one) in carried.iter().enumerate() {
            for (digest, size) in &one.blobs {
                blobs
                    .entry(digest)
                    .or_insert((*size, Vec::new()))
                    .1
                    .push(at);
            }
        }
        Sharing { blobs }
    }

    /// The bytes of all, each blob once.
    pub(super) fn bytes(&self) -> u64 {
        self.blobs.values().map(|(size, _)| size).sum()
    }

    /// Whether only one item has it.
    pub(super) fn is_own(&self, digest: &Digest) -> bool {
        self.blobs
            .get(digest)
            .is_some_and(|(_, users)| users.len() == 1)
    }

    /// The bytes that only this item has.
    pub(super) fn own_bytes(&self, one: &ItemContent) -> u64 {
        one.blobs
            .iter()
            .filter(|(digest, _)| self.is_own(digest))
            .map(|(_, size)| size)
            .sum()
    }

    /// What several items have: digest, size, users; those that save most first.
    pub(super) fn shared(&self) -> Vec<(&'a Digest, u64, &[usize])> {
        let shared = self.blobs.iter().filter(|(_, (_, users))| users.len() > 1);
        let mut shared: Vec<_> = shared
            .map(|(digest, (size, users))| (*digest, *size, users.as_slice()))
            .collect();
        shared.sort_by_key(|(digest, size, users)| {
            (
                std::cmp::Reverse(size.saturating_mul(users.len() as u64 - 1)),
                *digest,
            )
        });
        shared
    }
}
