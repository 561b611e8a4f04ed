//! A delta and what is given together with it: other bundles, receipts, the store.

use crate::cli::shared::opened_file::OpenedFile;
use crate::cli::shared::{CliError, Context};
use crate::push::{Omitted, Receipt};
use landfall_bundle::{BaseName, Bundle};
use landfall_content::LockEntry;
use landfall_content::{BlobChain, BlobRead, ContentError, MissingBlob, missing_blobs};
use landfall_model::human_size;
use landfall_model::report::count_of;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

/// A bundle, and what was given together with it.
pub(crate) struct BundleWithBases {
    pub(crate) bundle: Bundle,
    /// Other bundles.
    pub(crate) bases: Vec<Bundle>,
    receipts: Vec<Receipt>,
    /// The content of all.
    pub(crate) blobs: Arc<dyn BlobRead>,
}

impl BundleWithBases {
    /// `bundle` with the files `bases`, and with a store where that is asked for. Receipts are of
    /// use where there is a registry.
    pub(crate) fn new(
        context: &Context,
        bundle: Bundle,
        bases: &[PathBuf],
        store: Option<Arc<dyn BlobRead>>,
        takes_receipts: bool,
    ) -> Result<BundleWithBases, CliError> {
        let mut together = BundleWithBases {
            blobs: Arc::new(bundle.clone()),
            bundle,
            bases: Vec::new(),
            receipts: Vec::new(),
        };
        for path in bases {
            match OpenedFile::open(context, path)? {
                OpenedFile::Receipt(receipt) if takes_receipts => together.receipts.push(receipt),
                given => together.bases.push(given.into_bundle(path)?),
            }
        }
        let mut places: Vec<Arc<dyn BlobRead>> = vec![together.blobs];
        places.extend(
            together
                .bases
                .iter()
                .map(|base| Arc::new(base.clone()) as Arc<dyn BlobRead>),
        );
        places.extend(store);
        together.blobs = Arc::new(BlobChain(places));
        Ok(together)
    }

    /// Refuses a delta of which the entries need something that is nowhere.
    pub(crate) fn whole<'a>(
        &self,
        entries: impl IntoIterator<Item = &'a LockEntry>,
    ) -> Result<(), CliError> {
        let lacking = missing_blobs(entries, &*self.blobs).map_err(unreadable)?;
        if lacking.is_empty() || self.bundle.omitted().is_empty() {
            return Ok(());
        }
        Err(refused(&self.bundle, &lacking, &self.bases))
    }

    /// What of a delta must stand at the registry, with the repositories that may have it.
    pub(crate) fn omitted(&self, entries: &[LockEntry]) -> Result<Omitted, CliError> {
        if self.bundle.omitted().is_empty() {
            return Ok(Omitted::default());
        }
        let lacking = missing_blobs(entries, &*self.blobs).map_err(unreadable)?;
        let bases = std::iter::once(&self.bundle)
            .chain(&self.bases)
            .flat_map(Bundle::bases);
        let named = bases.filter_map(|base| match base {
            BaseName::Receipt { repositories, .. } => Some(repositories),
            BaseName::Bundle { .. } | BaseName::Lock { .. } => None,
        });
        let named: Vec<_> = named
            .chain(self.receipts.iter().map(|receipt| &receipt.blobs))
            .collect();
        let blobs = lacking.into_iter().map(|lacking| {
            let digest = lacking.blob.digest;
            let places = named
                .iter()
                .filter_map(|places| places.get(&digest).cloned())
                .collect();
            (digest, places)
        });
        Ok(Omitted {
            blobs: blobs.collect(),
            advice: advice(&self.bundle, &self.bases),
        })
    }
}

/// The store as one more place, where `--with-store` asks for it.
pub(crate) fn store(
    context: &Context,
    with_store: bool,
) -> Result<Option<Arc<dyn BlobRead>>, CliError> {
    match with_store {
        true => Ok(Some(context.store()?)),
        false => Ok(None),
    }
}

/// A delta that cannot be used with what is `given`: what is missing, for what, and where it is.
pub(crate) fn refused(bundle: &Bundle, lacking: &[MissingBlob], given: &[Bundle]) -> CliError {
    let size = lacking
        .iter()
        .fold(0u64, |sum, lacking| sum.saturating_add(lacking.blob.size));
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
        "{} is a delta, and {} ({}) of what it leaves out are not here:\n{}{}",
        bundle.path().display(),
        count_of(lacking.len(), "blob"),
        human_size(size),
        lines.concat(),
        advice(bundle, given)
    ))
}

pub(crate) fn unreadable(error: ContentError) -> CliError {
    CliError::refused(error.to_string())
}

/// What to bring: bases of the delta and of what is given, which are not given themselves.
fn advice(bundle: &Bundle, given: &[Bundle]) -> String {
    let bases = std::iter::once(bundle).chain(given).flat_map(Bundle::bases);
    let absent = bases.filter(|base| !given.iter().any(|bundle| bundle.is(base)));
    let absent: BTreeSet<String> = absent.map(ToString::to_string).collect();
    match absent.is_empty() {
        true => {
            "the bases that are given have not all of it: bring whole ones, or pack the delta again"
                .into()
        }
        false => format!(
            "give one of its bases together with it: {}",
            absent.into_iter().collect::<Vec<_>>().join(", or ")
        ),
    }
}

/// What a delta needs, a line each; nothing for a bundle that is none.
pub(crate) fn needs(bundle: &Bundle) -> String {
    let bases = bundle.bases().iter().enumerate();
    bases
        .map(|(at, base)| {
            format!(
                "  {:<16}  {base}\n",
                if at == 0 { "good, needs base" } else { "or" }
            )
        })
        .collect()
}

/// How much a delta leaves out: `3 blobs (12 MB)`.
pub(crate) fn omitted(bundle: &Bundle) -> String {
    let size = bundle
        .omitted()
        .iter()
        .fold(0u64, |sum, blob| sum.saturating_add(blob.size));
    format!(
        "{} ({})",
        count_of(bundle.omitted().len(), "blob"),
        human_size(size)
    )
}
