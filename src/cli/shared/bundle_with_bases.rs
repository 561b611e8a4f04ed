//! A bundle with everything that a delta may need: its bases, push receipts and the store.

use super::input_file::OpenedFile;
use super::verb_report::ArchiveRow;
use super::{CliError, Context, ReportMember, VerbReport};
use crate::client::Client;
use crate::push::{Omitted, Receipt, References};
use clap::Args;
use landfall_bundle::{
    BaseName, BlobReference, Bundle, RebuiltBlobs, ScratchError, scratch_folder,
};
use landfall_content::archives::{ImportedBlobs, SourceArchive, find_blobs};
use landfall_content::{BlobChain, BlobRead, ContentError, LockEntry, MissingBlob, missing_blobs};
use landfall_model::report::{Progress, count_of, one_line};
use landfall_model::{Descriptor, Digest, Failure, human_size, sum_sizes};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

/// The maximum number of bytes of rebuilt blobs that are kept for further reads.
pub(crate) const KEPT_BYTES: u64 = 8 << 30;

/// A bundle, its bases, and the content of all of them.
pub(crate) struct BundleWithBases {
    pub(crate) bundle: Bundle,
    /// The bundles that were named as bases.
    pub(crate) bases: Vec<Bundle>,
    receipts: Vec<Receipt>,
    /// The content of the bundle, of the bases, and of the store if it is used, including the blobs
    /// that recipes rebuild from it.
    pub(crate) blobs: Arc<dyn BlobRead>,
    /// The same object as `blobs`, if the bundle or a base has recipes.
    rebuilt: Option<Arc<RebuiltBlobs>>,
}

impl BundleWithBases {
    /// Opens the files `bases`. Receipts are accepted only if `takes_receipts`: they say what a
    /// registry has, which helps only a push.
    pub(crate) fn new(
        context: &Context,
        bundle: Bundle,
        bases: &[PathBuf],
        store: Option<Arc<dyn BlobRead>>,
        takes_receipts: bool,
    ) -> Result<BundleWithBases, CliError> {
        let mut chain = BundleWithBases {
            blobs: Arc::new(bundle.clone()),
            bundle,
            rebuilt: None,
            bases: Vec::new(),
            receipts: Vec::new(),
        };
        for path in bases {
            match OpenedFile::open_base(context, path)? {
                OpenedFile::Receipt(receipt) if takes_receipts => chain.receipts.push(receipt),
                given => chain.bases.push(given.into_bundle(path)?),
            }
        }
        // A blob is read from the first source that has it. If that copy is damaged, the next
        // source is used.
        let mut sources: Vec<Arc<dyn BlobRead>> = vec![chain.blobs];
        sources.extend(
            chain
                .bases
                .iter()
                .map(|base| Arc::new(base.clone()) as Arc<dyn BlobRead>),
        );
        sources.extend(store);
        let with_recipes: Vec<Bundle> = std::iter::once(&chain.bundle)
            .chain(&chain.bases)
            .filter(|bundle| bundle.has_recipes())
            .cloned()
            .collect();
        chain.blobs = Arc::new(BlobChain(sources));
        if !with_recipes.is_empty() {
            let rebuilt =
                RebuiltBlobs::new(chain.blobs, &with_recipes, scratch_folder(), KEPT_BYTES);
            let rebuilt = Arc::new(rebuilt);
            chain.blobs = rebuilt.clone();
            chain.rebuilt = Some(rebuilt);
        }
        Ok(chain)
    }

    /// Rebuilds every blob for which the bundle has a recipe. Does nothing if the recipes use blobs
    /// of the bases, but no base was named.
    pub(crate) fn prove_recipes(&self, progress: &dyn Progress) -> Result<(), CliError> {
        let recipes = &self.bundle.contents().recipes;
        let is_alone = self.bases.is_empty() && !self.bundle.references().is_empty();
        if recipes.is_empty() || is_alone {
            return Ok(());
        }
        let bytes = sum_sizes(recipes.iter().map(|recipe| recipe.blob.size));
        progress.begin("rebuild", recipes.len() as u64, bytes);
        let result = recipes.iter().try_for_each(|recipe| {
            let blob = &recipe.blob;
            // opening a rebuilt blob compares its digest
            self.blobs.open(&blob.digest, 0).map_err(unreadable)?;
            progress.bytes(blob.size);
            progress.item(&blob.digest.to_string());
            Ok(())
        });
        progress.end();
        result
    }

    /// Refuses a delta if content that `entries` need is missing from all sources.
    pub(crate) fn check_complete<'a>(
        &self,
        entries: impl IntoIterator<Item = &'a LockEntry>,
    ) -> Result<(), CliError> {
        let lacking = missing_blobs(entries, &*self.blobs).map_err(unreadable)?;
        // A bundle that lacks content and is not a delta is partial. `open_bundle` checks that.
        if lacking.is_empty() || !needs_bases(&self.bundle) {
            return Ok(());
        }
        Err(missing_content(&self.bundle, &lacking, &self.bases))
    }

    /// The blobs that a push may look up at the registry: those that no source contains, and those
    /// that recipes use. Each is listed with the repositories that may contain it.
    pub(crate) fn omitted(&self, entries: &[LockEntry]) -> Result<Omitted, CliError> {
        if !needs_bases(&self.bundle) {
            return Ok(Omitted::default());
        }
        let lacking = missing_blobs(entries, &*self.blobs).map_err(unreadable)?;
        let bases = std::iter::once(&self.bundle)
            .chain(&self.bases)
            .flat_map(Bundle::bases);
        // Only receipts name repositories. A blob can be mounted from a repository that has it.
        let named = bases.filter_map(|base| match base {
            BaseName::Receipt { repositories, .. } => Some(repositories),
            BaseName::Bundle { .. } | BaseName::Lock { .. } => None,
        });
        let named: Vec<_> = named
            .chain(self.receipts.iter().map(|receipt| &receipt.blobs))
            .collect();
        let with_repositories = |digests: BTreeSet<Digest>| -> BTreeMap<Digest, BTreeSet<String>> {
            let repositories = |digest: &Digest| {
                let found = named
                    .iter()
                    .filter_map(|repositories| repositories.get(digest));
                found.cloned().collect()
            };
            digests
                .into_iter()
                .map(|digest| (digest.clone(), repositories(&digest)))
                .collect()
        };
        let bundles = std::iter::once(&self.bundle).chain(&self.bases);
        let references: Vec<BlobReference> =
            bundles.flat_map(Bundle::references).cloned().collect();
        Ok(Omitted {
            blobs: with_repositories(
                lacking
                    .into_iter()
                    .map(|lacking| lacking.blob.digest)
                    .collect(),
            ),
            references: References {
                rebuilt: self.rebuilt.clone(),
                named: references.clone(),
                repositories: with_repositories(
                    references
                        .iter()
                        .map(|one| one.blob.digest.clone())
                        .collect(),
                ),
            },
            advice: advice(&self.bundle, &self.bases),
        })
    }
}

/// Whether the bundle is a delta: it needs its bases for content that it omits or that its recipes
/// use.
pub(crate) fn needs_bases(bundle: &Bundle) -> bool {
    !bundle.bases().is_empty()
}

/// The store as a source of content, for `--with-store`.
pub(crate) fn optional_store(
    context: &Context,
    with_store: bool,
) -> Result<Option<Arc<dyn BlobRead>>, CliError> {
    if with_store {
        Ok(Some(context.store()?))
    } else {
        Ok(None)
    }
}

/// The error for a delta if no source has the blobs `lacking`: names each blob, the items that need
/// it, and the bases that are not in `given`.
pub(crate) fn missing_content(
    bundle: &Bundle,
    lacking: &[MissingBlob],
    given: &[Bundle],
) -> CliError {
    let size = sum_sizes(lacking.iter().map(|lacking| lacking.blob.size));
    let lines: Vec<String> = lacking
        .iter()
        .map(|MissingBlob { blob, items }| {
            format!(
                "  {} {} for {}\n",
                blob.digest,
                human_size(blob.size),
                items.join(", ")
            )
        })
        .collect();
    CliError::refused(format!(
        "{} is a delta, and no source has {} ({}) that it omits:\n{}{}",
        bundle.path().display(),
        count_of(lacking.len(), "blob"),
        human_size(size),
        lines.concat(),
        advice(bundle, given)
    ))
}

/// The error for content that cannot be read.
pub(crate) fn unreadable(error: ContentError) -> CliError {
    match ScratchError::cause_of(&error) {
        // the content may be intact
        Some(_) => CliError::failed(error.to_string()).with_help(ScratchError::HELP),
        None => CliError::refused(error.to_string()),
    }
}

/// The help for missing content: names the bases that were not given.
fn advice(bundle: &Bundle, given: &[Bundle]) -> String {
    let bases = std::iter::once(bundle).chain(given).flat_map(Bundle::bases);
    let absent = bases.filter(|base| !given.iter().any(|bundle| bundle.matches_base(base)));
    let absent: BTreeSet<String> = absent.map(ToString::to_string).collect();
    if absent.is_empty() {
        return "the bases lack some of these blobs: use complete bases, or pack the delta again"
            .into();
    }
    let absent: Vec<String> = absent.into_iter().collect();
    format!(
        "name one of its bases too, after it or with --base: {}",
        absent.join(", or ")
    )
}

/// The lines that name the bases of a delta.
pub(crate) fn base_lines(bundle: &Bundle) -> String {
    let bases = bundle.bases().iter().enumerate();
    bases
        .map(|(at, base)| {
            format!(
                "  {:<16}  {base}\n",
                if at == 0 { "needs base" } else { "or" }
            )
        })
        .collect()
}

/// The content that a bundle has as patches: `3 blobs (12 MB) in 800 kB`.
pub(crate) fn patched_size(bundle: &Bundle) -> String {
    let contents = bundle.contents();
    let blobs = sum_sizes(contents.recipes.iter().map(|recipe| recipe.blob.size));
    let names: BTreeSet<&str> = contents
        .recipes
        .iter()
        .map(|recipe| &*recipe.entry)
        .collect();
    let entries = contents
        .entries
        .iter()
        .filter(|entry| names.contains(&*entry.name));
    let patches = sum_sizes(entries.map(|entry| entry.size));
    format!(
        "{} ({}) in {}",
        count_of(contents.recipes.len(), "blob"),
        human_size(blobs),
        human_size(patches)
    )
}

/// The content that a delta omits: `3 blobs (12 MB)`.
pub(crate) fn omitted_size(bundle: &Bundle) -> String {
    let size = sum_sizes(bundle.omitted().iter().map(|blob| blob.size));
    format!(
        "{} ({})",
        count_of(bundle.omitted().len(), "blob"),
        human_size(size)
    )
}

// `--from`: archives of other tools as a source of content.

#[derive(Args)]
pub(crate) struct FromArchives {
    /// Use the content of this archive or OCI layout of another tool, and the network only for
    /// content that it lacks (may be repeated)
    #[arg(long = "from", value_name = "ARCHIVE|DIR")]
    pub(crate) from: Vec<PathBuf>,
}

/// Reports the content that the client copied from archives: adds it to `report`, and returns the
/// lines about it.
pub(crate) fn report_copied(report: &mut VerbReport, client: &Client) -> String {
    report_archives(report, &client.imports(), "copied")
}

/// Like [`report_copied`], for the content that a pull of `wanted` would copy from the archives.
/// Removes it from `wanted`.
pub(crate) fn report_available(
    report: &mut VerbReport,
    from: &FromArchives,
    wanted: &mut BTreeMap<Digest, Descriptor>,
) -> Result<String, CliError> {
    let mut found = Vec::new();
    for path in &from.from {
        let archive = SourceArchive::open(path)?;
        let imports = find_blobs(&archive, wanted).map_err(|error| Failure::read(path, error))?;
        // Each blob is copied from the first archive that has it.
        wanted.retain(|digest, _| !imports.digests.contains(digest));
        found.push(imports);
    }
    Ok(report_archives(report, &found, "would copy"))
}

fn report_archives(report: &mut VerbReport, imports: &[ImportedBlobs], verb: &str) -> String {
    if imports.is_empty() {
        return String::new();
    }
    let rows = imports.iter().map(|one| ArchiveRow {
        path: one.path.display().to_string(),
        blobs: one.digests.len(),
        bytes: one.bytes,
        not_used: one.skipped.clone(),
    });
    report.add(ReportMember::Archives(rows.collect()));
    let lines = imports.iter().map(|one| {
        let path = one.path.display().to_string();
        let count = count_of(one.digests.len(), "blob");
        let left = one
            .skipped
            .iter()
            .map(|why| format!("  {}\n", one_line(why)));
        format!(
            "{verb} {count} ({}) from {}\n{}",
            human_size(one.bytes),
            one_line(&path),
            left.collect::<String>()
        )
    });
    lines.collect()
}
