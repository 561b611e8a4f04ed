//! `landfall export referrers`: writes SBOMs, attestations and signatures as files.

use crate::cli::shared::bundle_flags::ContentFlags;
use crate::cli::shared::failed_items::loss_lines;
use crate::cli::shared::output_file::{ReplaceFlag, written_folder};
use crate::cli::shared::{CliError, Context, VerbOutcome, VerbReport};
use clap::Args;
use landfall_bundle::sbom::linked_documents;
use landfall_content::{BlobRead, ContentError, LockEntry, OutputGuard, OutputRecord, write_file};
use landfall_item::LockedItem;
use landfall_item::lockfile::losses;
use landfall_model::report::{EntryKind, ItemStatus, ReportItem, count_of};
use landfall_model::{Descriptor, Failure, ImageRef, digest_of, host_component};
use landfall_serve::EXPORT_RECORD;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Write the SBOMs, attestations and signatures of images and charts
///
/// Each document becomes a file HOST/REPOSITORY/TAG/KIND-DIGEST.json, or .bin if it is not JSON.
#[derive(Args)]
pub(crate) struct ExportReferrers {
    #[command(flatten)]
    content: ContentFlags,
    /// The folder to write to
    #[arg(short, long, value_name = "DIR", value_parser = written_folder())]
    out: PathBuf,
    #[command(flatten)]
    replace: ReplaceFlag,
}

impl ExportReferrers {
    pub(crate) fn run(self, context: &Context) -> Result<VerbOutcome, CliError> {
        // Entries without referrers are not needed: a delta or a store may lack them.
        let has_some = |entry: &LockEntry| !entry.referrers.is_empty();
        let (lock, blobs) = self.content.open(context, has_some)?;
        let mut report = VerbReport::default();
        let mut documents = Vec::new();
        for item in lock.items() {
            let entry = item.entry();
            if !has_some(&entry) {
                continue;
            }
            let source = item.source();
            report
                .items
                .extend(unreadable_referrers(&entry, &source, &*blobs));
            for one in linked_documents(&entry, &source, &*blobs) {
                let ending = if one.blob.media_type.contains("json") {
                    "json"
                } else {
                    "bin"
                };
                let name = format!(
                    "{}-{}.{ending}",
                    one.kind.word().to_lowercase(),
                    one.blob.digest.short(12)
                );
                documents.push((folder(item).join(name), one));
            }
        }
        self.claim(documents.iter().map(|(below, one)| (&**below, &one.blob)))?;
        for (below, one) in documents {
            let path = self.out.join(below);
            let (status, reason) = match blobs.read(&one.blob) {
                Ok(bytes) => {
                    write(&path, &bytes)?;
                    report.bytes_transferred += one.blob.size;
                    (ItemStatus::Done, one.format)
                }
                Err(error) => (lost_status(&error), Some(error.to_string())),
            };
            report.items.push(ReportItem {
                digest: Some(one.blob.digest),
                bytes: Some(one.blob.size),
                ..ReportItem::new(
                    EntryKind::Referrer,
                    path.display().to_string(),
                    status,
                    reason,
                )
            });
        }
        // Their referrers are not known, or not all of them are in the bundle.
        let lost = losses(&lock).into_iter();
        report
            .items
            .extend(lost.filter(|item| matches!(item.kind, EntryKind::Image | EntryKind::Chart)));
        let written = count_of(report.totals().done, "document");
        let text =
            loss_lines(&report.items) + &format!("{}: {written} written\n", self.out.display());
        Ok(VerbOutcome::of(report, text))
    }
}

impl ExportReferrers {
    /// Checks that no file of others is replaced, and records the new files.
    fn claim<'d>(
        &self,
        documents: impl Iterator<Item = (&'d Path, &'d Descriptor)>,
    ) -> Result<(), CliError> {
        let record = OutputRecord::read(&self.out, EXPORT_RECORD)?;
        let mut guard = OutputGuard::new(self.replace.replaces);
        let mut new = Vec::new();
        for (below, document) in documents {
            let path = self.out.join(below);
            let is_same = File::open(&path).is_ok_and(|mut file| {
                digest_of(&mut file, document.digest.algorithm())
                    .is_ok_and(|digest| digest == document.digest)
            });
            if !is_same {
                guard.check(&path, |_| record.has(below));
                new.push(below);
            }
        }
        guard.finish()?;
        Ok(record.add(new)?)
    }
}

/// The folder of an item. The components of a locked name were checked when the lock was parsed, so
/// none of them is `..`.
fn folder(item: LockedItem<'_>) -> PathBuf {
    match item.reference() {
        Some(image) => image_folder(image),
        None => PathBuf::from(item.digest().short(12)),
    }
}

fn image_folder(image: &ImageRef) -> PathBuf {
    let version = image
        .tag
        .clone()
        .or_else(|| image.digest.as_ref().map(|digest| digest.short(12)));
    Path::new(&host_component(&image.registry))
        .join(&image.repository)
        .join(version.unwrap_or_default())
}

/// The referrers of `entry` whose manifests cannot be read, so that their documents are not known.
/// `source` is the registry and repository of the entry.
fn unreadable_referrers(entry: &LockEntry, source: &str, blobs: &dyn BlobRead) -> Vec<ReportItem> {
    let unreadable = entry.referrers.iter().filter_map(|referrer| {
        let manifest = &referrer.descriptor;
        let error = blobs.read(manifest).err()?;
        Some(ReportItem {
            digest: Some(manifest.digest.clone()),
            bytes: Some(manifest.size),
            ..ReportItem::new(
                EntryKind::Referrer,
                format!("{source}@{}", manifest.digest),
                lost_status(&error),
                Some(error.to_string()),
            )
        })
    });
    unreadable.collect()
}

/// The status of content that cannot be read.
fn lost_status(error: &ContentError) -> ItemStatus {
    match error {
        ContentError::Missing { .. } => ItemStatus::Missing,
        ContentError::Damaged { .. } | ContentError::Read { .. } => ItemStatus::Failed,
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    std::fs::create_dir_all(path.parent().unwrap_or(path))
        .and_then(|()| write_file(path, bytes))
        .map_err(|error| Failure::write(path, error))
}
