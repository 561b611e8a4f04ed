//! Blobs that recipes of the bundle use and that no local file contains. If the registry has them,
//! as it does after the delivery of an older bundle, they are downloaded before the first upload.

use super::omitted_blob::{OmittedBlob, find_repository};
use super::uploader::Uploader;
use futures_util::StreamExt as _;
use landfall_bundle::{BlobReference, RebuiltBlobs};
use landfall_content::registry::RegistrySession;
use landfall_model::{Descriptor, DestinationMap, Digest};
use std::collections::{BTreeMap, BTreeSet};

/// The blobs that recipes use, each with the repositories that receipts name for it.
#[derive(Clone, Default)]
pub(crate) struct References {
    /// Rebuilds blobs once it has the references. `None` if no bundle has recipes.
    pub(crate) rebuilt: Option<std::sync::Arc<RebuiltBlobs>>,
    /// The references of all bundles.
    pub(crate) named: Vec<BlobReference>,
    /// The repositories of the registry that have a reference, according to receipts.
    pub(crate) repositories: BTreeMap<Digest, BTreeSet<String>>,
}

impl std::fmt::Debug for References {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("References")
            .field("repositories", &self.repositories)
            .finish_non_exhaustive()
    }
}

/// Finds the blobs that recipes need to rebuild the blobs in `missing`, and downloads them unless
/// the push is a dry run. Returns the blobs that are still missing, each with a reason.
///
/// `repositories` are those that the push delivers to.
pub(super) async fn fetch_references<'a, 'b>(
    uploader: &Uploader,
    references: &References,
    missing: Vec<(&'a OmittedBlob<'b>, String)>,
    mapping: &DestinationMap,
    repositories: &BTreeSet<String>,
) -> Vec<(&'a OmittedBlob<'b>, String)> {
    let Some(rebuilt) = &references.rebuilt else {
        return missing;
    };
    let mut still_missing = Vec::new();
    // the results for the bases of earlier blobs
    let mut fetched: BTreeMap<Digest, Result<(), String>> = BTreeMap::new();
    // a blob is added again if its recipe needs a base that could not be fetched
    let mut pending: Vec<_> = missing
        .into_iter()
        .rev()
        .map(|one| (one, BTreeSet::new()))
        .collect();
    while let Some(((blob, reason), mut unavailable)) = pending.pop() {
        let needed = match rebuilt.missing_bases(&blob.blob.digest, &unavailable) {
            Ok(Some(needed)) => needed,
            Ok(None) => {
                still_missing.push((blob, reason));
                continue;
            }
            Err(error) => {
                still_missing.push((blob, format!(": {error}")));
                continue;
            }
        };
        let mut failure = None;
        for base in needed {
            if !fetched.contains_key(&base.digest) {
                let of_receipts = references.repositories.get(&base.digest);
                let named = references
                    .named
                    .iter()
                    .filter(|one| one.blob.digest == base.digest);
                let named: Vec<String> = named.flat_map(|one| one.repositories(mapping)).collect();
                let candidates: Vec<&str> = of_receipts
                    .into_iter()
                    .flatten()
                    .chain(&named)
                    .chain(repositories)
                    .map(String::as_str)
                    .collect();
                let result = fetch(uploader, rebuilt, &base, &candidates).await;
                fetched.insert(base.digest.clone(), result);
            }
            if let Some(Err(why)) = fetched.get(&base.digest) {
                failure = Some(format!(": its patch needs {} ({why})", base.digest));
                unavailable.insert(base.digest);
            }
        }
        // another bundle may have a recipe that needs other bases
        if let Some(failure) = failure {
            pending.push(((blob, failure), unavailable));
        }
    }
    still_missing
}

async fn fetch(
    uploader: &Uploader,
    rebuilt: &RebuiltBlobs,
    base: &Descriptor,
    candidates: &[&str],
) -> Result<(), String> {
    let session = &uploader.session;
    let found = find_repository(session, base, candidates).await;
    let Some(repository) = found.map_err(|error| error.to_string())? else {
        return Err(format!("{} does not have it", session.host()));
    };
    if uploader.dry_run {
        return Ok(());
    }
    download(session, rebuilt, base, &repository).await
}

/// Downloads a blob, continuing where a connection broke.
async fn download(
    session: &RegistrySession,
    rebuilt: &RebuiltBlobs,
    base: &Descriptor,
    repository: &str,
) -> Result<(), String> {
    let mut writer = rebuilt
        .base_writer(base)
        .map_err(|error| error.to_string())?;
    let mut failures_in_a_row = 0;
    while writer.written() < base.size {
        let before = writer.written();
        let opened = session.blob(repository, base, before).await;
        let (start, mut stream) = opened.map_err(|error| error.to_string())?;
        let mut skip = before.saturating_sub(start);
        let mut failure = None;
        while let Some(piece) = stream.next().await {
            match piece {
                Ok(piece) => {
                    // a server may ignore the range and send the blob from its beginning
                    let skipped = skip.min(piece.len() as u64);
                    skip -= skipped;
                    let rest = &piece[skipped as usize..];
                    tokio::task::block_in_place(|| writer.write(rest))
                        .map_err(|error| error.to_string())?;
                }
                Err(error) => {
                    failure = Some(error.to_string());
                    break;
                }
            }
        }
        failures_in_a_row = if writer.written() > before {
            0
        } else {
            failures_in_a_row + 1
        };
        if writer.written() < base.size && failures_in_a_row >= MAX_FAILURES {
            return Err(failure.unwrap_or_else(|| "the response ended early".into()));
        }
    }
    writer.finish().map_err(|error| error.to_string())
}

/// The number of successive responses without a new byte after which a download is given up.
/// Retries of a single request by `landfall-http` do not count.
const MAX_FAILURES: u32 = 3;
