//! Patches in place of changed layers and files, for `pack --patches` and `refresh --patches`.

use landfall_bundle::{
    Bundle, BundleError, DeltaBase, OldContent, PackPlan, RebuiltBlobs, RecipeSummary,
    plan_recipes, scratch_folder,
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
    /// bytes of the latter are read from the bundles and from `store`.
    pub(crate) fn patch(
        &self,
        plan: &mut PackPlan,
        lock: &Lock,
        store: &Arc<dyn BlobRead>,
        bases: &[DeltaBase],
        progress: &dyn Progress,
    ) -> Result<RecipeSummary, BundleError> {
        let folder = scratch_folder();
        let mut sources = vec![Arc::clone(store)];
        for bundle in &self.bundles {
            sources.push(Arc::new(bundle.clone()));
        }
        let content = Arc::new(BlobChain(sources));
        let blobs = RebuiltBlobs::new(content, &self.bundles, folder.clone(), KEPT_BYTES);
        let old = OldContent {
            locks: &self.locks,
            bases,
            blobs: &blobs,
        };
        plan_recipes(plan, lock, &**store, &old, &folder, progress)
    }
}
