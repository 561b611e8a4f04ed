//! Exports providers as a mirror: the tree of the provider network mirror protocol, which is also a
//! filesystem mirror.

use super::ExportError;
use super::export_files::write_all;
use super::export_paths::{DEFAULT_MODE, ExportFile};
use landfall_content::{BlobRead, MemoryBlobs};
use landfall_item::lockfile::Lock;
use landfall_item::{MirrorFile, ProviderMirror, UrlFile};
use landfall_model::Digest;
use landfall_model::report::{EntryKind, Progress, RunReport};
use std::path::{Path, PathBuf};

/// A file of the mirror, with the blob that has its content.
struct MirroredBlob {
    path: String,
    kind: EntryKind,
    digest: Digest,
    size: u64,
}

/// Writes every provider of `lock` from `blobs` to `dir`: packages and the JSON documents that list
/// them. Files with the right content are left unchanged. `dry_run` writes nothing.
///
/// # Errors
/// None at present: failures are in the report.
pub fn export_providers(
    lock: &Lock,
    blobs: &dyn BlobRead,
    dir: &Path,
    dry_run: bool,
    progress: &dyn Progress,
) -> Result<RunReport, ExportError> {
    let mut mirror = ProviderMirror::default();
    for provider in &lock.providers {
        // no warnings to report: a lock has each name once, and each name has its own paths
        mirror.add(provider);
    }
    let mut documents = MemoryBlobs::default();
    let mut packages = Vec::new();
    let mut indexes = Vec::new();
    for (path, file) in mirror.files() {
        match file {
            MirrorFile::Document(text) => {
                let bytes = text.into_bytes();
                let digest = Digest::sha256(&bytes);
                let size = bytes.len() as u64;
                documents.0.insert(digest.clone(), bytes.into());
                let kind = EntryKind::Sidecar;
                indexes.push(MirroredBlob {
                    path,
                    kind,
                    digest,
                    size,
                });
            }
            MirrorFile::Package { digest, size } => packages.push(MirroredBlob {
                path,
                kind: EntryKind::Provider,
                digest,
                size,
            }),
        }
    }
    // after the packages: a document must not name files that are not there yet
    let mut report = write_all(export_files(&packages), blobs, dir, dry_run, progress);
    let written = write_all(export_files(&indexes), &documents, dir, dry_run, progress);
    report.bytes_transferred += written.bytes_transferred;
    report.items.extend(written.items);
    Ok(report)
}

fn export_files(blobs: &[MirroredBlob]) -> Vec<ExportFile<'_>> {
    let files = blobs.iter().map(|blob| ExportFile {
        file: UrlFile {
            urls: Vec::new(),
            ..UrlFile::plain(blob.kind, &blob.path, &blob.digest, blob.size)
        },
        mode: DEFAULT_MODE,
        paths: vec![PathBuf::from(&blob.path)],
    });
    files.collect()
}
