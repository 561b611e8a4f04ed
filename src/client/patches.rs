//! Patches in place of changed layers and files, for `pack --patches` and `refresh --patches`.

use landfall_bundle::{
    Bundle, BundleError, DeltaBase, OldContent, PackPlan, RebuiltBlobs, RecipeSummary,
    estimate_recipes, plan_recipes, scratch_folder,
};
use landfall_content::{BlobChain, BlobRead};
use landfall_item::lockfile::Lock;
use landfall_model::report::Progress;
use std::sync::Arc;

/// The maximum number of bytes of rebuilt blobs that are kept while a bundle is packed.
const KEPT_BYTES: u64 = 4 << 30;

/// The content that the receiver of a bundle has, as far as it is known here: the delivered locks,
/// and bundles with their content.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeliveredBundles {
    pub(crate) locks: Vec<Lock>,
    pub(crate) bundles: Vec<Bundle>,
}

impl DeliveredBundles {
    /// Replaces blobs of `plan` by recipes that use blobs of the bundle itself and of `bases`. The
    /// blobs of the bases are read from the delivered bundles and from `store`.
    pub(crate) fn patch(
        &self,
        plan: &mut PackPlan,
        lock: &Lock,
        store: &Arc<dyn BlobRead>,
        bases: &[DeltaBase],
        progress: &dyn Progress,
    ) -> Result<RecipeSummary, BundleError> {
        let blobs = self.content(Some(Arc::clone(store)));
        let old = self.old_content(bases, &blobs);
        plan_recipes(plan, lock, &**store, &old, &scratch_folder(), progress)
    }

    /// The content of `store` and of the bundles, including the blobs that their recipes rebuild.
    pub(crate) fn content(&self, store: Option<Arc<dyn BlobRead>>) -> RebuiltBlobs {
        let mut sources: Vec<Arc<dyn BlobRead>> = store.into_iter().collect();
        for bundle in &self.bundles {
            sources.push(Arc::new(bundle.clone()));
        }
        let content = Arc::new(BlobChain(sources));
        RebuiltBlobs::new(content, &self.bundles, scratch_folder(), KEPT_BYTES)
    }

    /// Estimates the result of [`patch`](Self::patch). `blobs` has the content of `lock`, and that
    /// of the bases as far as it is available here.
    pub(crate) fn estimate(
        &self,
        plan: &PackPlan,
        lock: &Lock,
        blobs: &dyn BlobRead,
        bases: &[DeltaBase],
        progress: &dyn Progress,
    ) -> Result<RecipeSummary, BundleError> {
        let old = self.old_content(bases, blobs);
        estimate_recipes(plan, lock, blobs, &old, &scratch_folder(), progress)
    }

    fn old_content<'a>(
        &'a self,
        bases: &'a [DeltaBase],
        blobs: &'a dyn BlobRead,
    ) -> OldContent<'a> {
        OldContent {
            locks: &self.locks,
            bases,
            blobs,
        }
    }
}
