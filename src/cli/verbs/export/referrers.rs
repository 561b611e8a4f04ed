//! `landfall export referrers`: writes SBOMs, attestations and signatures as files.

use crate::cli::shared::content_flags::ContentFlags;
use crate::cli::shared::{CliError, Context, Exit, VerbOutcome};
use clap::Args;
use landfall_bundle::sbom::linked_documents;
use landfall_content::{BlobRead, LockEntry, write_file};
use landfall_item::LockedItem;
use landfall_model::report::{
    EntryKind, ItemStatus, ReportItem, RunReport, TransferSide, count_of,
};
use landfall_model::{Descriptor, ImageRef, host_component};
use std::path::{Path, PathBuf};

/// Write the SBOMs, attestations and signatures of images and charts
///
/// Each document becomes a file HOST/REPOSITORY/TAG/KIND-DIGEST.json, or .bin if it is not JSON.
#[derive(Args)]
pub(crate) struct ExportReferrers {
    #[command(flatten)]
    content: ContentFlags,
    /// The folder to write to
    #[arg(short, long, value_name = "DIR")]
    out: PathBuf,
}

impl ExportReferrers {
    pub(crate) fn run(self, context: &Context) -> Result<VerbOutcome, CliError> {
        // Entries without referrers are not needed: a partial bundle or a store may lack them.
        let has_some = |entry: &LockEntry| !entry.referrers.is_empty();
        let (lock, blobs) = self.content.open(context, has_some)?;
        let mut report = RunReport::default();
        for item in lock.items() {
            let entry = item.entry();
            if !has_some(&entry) {
                continue;
            }
            for one in linked_documents(&entry, &item.source(), &*blobs) {
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
                let path = self.out.join(folder(item)).join(name);
                write(&path, &*blobs, &one.blob)?;
                report.bytes_transferred += one.blob.size;
                report.items.push(ReportItem {
                    kind: EntryKind::Referrer,
                    name: path.display().to_string(),
                    digest: Some(one.blob.digest),
                    bytes: Some(one.blob.size),
                    packages: 0,
                    status: ItemStatus::Done,
                    reason: one.format,
                });
            }
        }
        let written = count_of(report.items.len(), "document");
        let text = format!("{}: {written} written\n", self.out.display());
        Ok(VerbOutcome::of(report, text))
    }
}

/// The folder of an item. The components of a locked name were checked when the lock was parsed, so
/// none of them is `..`.
fn folder(item: &dyn LockedItem) -> PathBuf {
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

fn write(path: &Path, blobs: &dyn BlobRead, blob: &Descriptor) -> Result<(), CliError> {
    let bytes = blobs
        .read(blob)
        .map_err(|error| CliError::new(Exit::Failed, error.to_string()).on(TransferSide::Source))?;
    let made = std::fs::create_dir_all(path.parent().unwrap_or(path));
    let cannot = |error: &dyn std::fmt::Display| {
        CliError::new(
            Exit::Failed,
            format!("cannot write {}: {error}", path.display()),
        )
        .on(TransferSide::Destination)
    };
    made.map_err(|error| cannot(&error))?;
    write_file(path, &bytes).map_err(|error| cannot(&error))
}
