//! Chooses the bases of each blob, and makes its recipe or estimates the size of the recipe.

use super::make::{NoRecipe, RecipeFile, RecipeInput, estimate_recipe, make_recipe};
use super::plain_blobs::{DecodedBlob, PlainBlob, PlainBlobs};
use super::plain_file::RecipeError;
use super::predecessors::{FamilyBlob, candidates, family_blobs};
use super::scratch_folder::ScratchError;
use super::summary::{PatchedBlob, RecipeSummary, UnpatchedBlob, UnpatchedReason};
use crate::error::BundleError;
use crate::format::blob_recipe::{BlobReference, MAX_CHAIN};
use crate::plan::delta_base::{self, DeltaBase};
use crate::plan::pack_plan::PackPlan;
use crate::plan::planned_entry::ContentSource;
use landfall_content::BlobRead;
use landfall_deflate::Recipe;
use landfall_item::lockfile::Lock;
use landfall_model::Digest;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

/// The size in bytes of the smallest blob that is worth a recipe.
const MIN_BLOB: u64 = 8 << 10;

/// The maximum number of candidates whose files are compared with those of a blob.
const MAX_CANDIDATES: usize = 4;

/// The maximum number of bases of one recipe.
const BASES: usize = 2;

/// A candidate is used only if the blob has at least this
/// [similarity](landfall_patch::Listing::similarity) to it.
const MIN_SHARE: f64 = 0.02;

/// The content that the receiver has already.
pub struct OldContent<'a> {
    /// The locks that were delivered.
    pub locks: &'a [Lock],
    /// The bases of the plan. Each of them has all blobs that recipes use but the bundle lacks.
    pub bases: &'a [DeltaBase],
    /// The bytes of the blobs that the bases have, as far as they are available here.
    pub blobs: &'a dyn BlobRead,
}

/// A blob of a plan that may get a recipe.
pub(super) struct PatchableBlob {
    /// The index of its entry in the plan.
    pub(super) entry_index: usize,
    pub(super) new: FamilyBlob,
    /// The first item that needs it.
    pub(super) item: String,
}

/// Makes recipes or estimates their sizes, one blob after the other.
pub(super) struct RecipePlanner<'a> {
    blobs: &'a dyn BlobRead,
    old: &'a OldContent<'a>,
    folder: &'a Path,
    /// The blobs that recipes may use: those of the bases, and those of the bundle so far.
    pool: Vec<FamilyBlob>,
    /// The blobs that the bases have, but whose bytes are not available here.
    elsewhere: Vec<FamilyBlob>,
    /// The blobs that the new lock names.
    named: HashSet<Digest>,
    plain: PlainBlobs<'a>,
    /// For each possible base with a recipe in the bundle, the length of the chain of recipes that
    /// rebuilds it.
    chains: HashMap<Digest, usize>,
    /// The blobs that recipes use, and that the bundle neither contains nor has a recipe for.
    pub(super) references: BTreeMap<Digest, BlobReference>,
    pub(super) summary: RecipeSummary,
}

/// A blob for which a recipe is being made, and the blobs that resemble it.
struct BlobComparison {
    new: Arc<PlainBlob>,
    /// The recipe of its stream, if one encoder is assumed to have written all of it.
    assumed: Option<Recipe>,
    bases: Vec<Arc<PlainBlob>>,
    /// The blobs that were compared with the new one. The bases are some of them.
    compared: Vec<FamilyBlob>,
}

/// The recipe of a blob, and the digests of its bases.
pub(super) struct BasedRecipe {
    pub(super) recipe: RecipeFile,
    pub(super) from: Vec<Digest>,
}

impl<'a> RecipePlanner<'a> {
    /// Creates a planner that knows only the old content so far. `blobs` has the content of `lock`.
    /// Plain bytes are written to temporary files in `folder`.
    pub(super) fn new(
        lock: &Lock,
        blobs: &'a dyn BlobRead,
        old: &'a OldContent<'a>,
        folder: &'a Path,
    ) -> Result<RecipePlanner<'a>, BundleError> {
        let parts = lock.each_entry().flat_map(|entry| entry.parts);
        let mut planner = RecipePlanner {
            blobs,
            old,
            folder,
            pool: Vec::new(),
            elsewhere: Vec::new(),
            named: parts.map(|part| part.descriptor.digest).collect(),
            plain: PlainBlobs::new(blobs, old.blobs, folder),
            chains: HashMap::new(),
            references: BTreeMap::new(),
            summary: RecipeSummary::default(),
        };
        let mut seen = HashSet::new();
        for item in old.locks.iter().flat_map(Lock::items) {
            for found in family_blobs(item) {
                let is_new = seen.insert(found.blob.digest.clone());
                if !is_new
                    || found.blob.size < MIN_BLOB
                    || !delta_base::all_have(old.bases, &found.blob)
                {
                    continue;
                }
                let size = old.blobs.stat(&found.blob.digest);
                if size.map_err(BundleError::content(&item.name()))? == Some(found.blob.size) {
                    planner.pool.push(found);
                } else {
                    planner.elsewhere.push(found);
                }
            }
        }
        Ok(planner)
    }

    /// The layers and files of `plan` that are large enough for a recipe.
    pub(super) fn patchable_blobs(
        &self,
        plan: &PackPlan,
        lock: &Lock,
    ) -> Result<Vec<PatchableBlob>, BundleError> {
        let mut kept = HashSet::new();
        for entry in plan.included_entries(lock) {
            let found = delta_base::kept(&entry, self.blobs);
            kept.extend(found.map_err(BundleError::content(&entry.name))?);
        }
        let mut families: HashMap<Digest, FamilyBlob> = HashMap::new();
        for blob in lock.items().flat_map(family_blobs) {
            families.entry(blob.blob.digest.clone()).or_insert(blob);
        }
        let entries = plan.entries.iter().enumerate();
        let patchable = entries.filter_map(|(entry_index, entry)| {
            let blob = &entry.descriptor;
            let is_patchable = matches!(entry.content, ContentSource::Store)
                && blob.size >= MIN_BLOB
                && !kept.contains(&blob.digest);
            Some(PatchableBlob {
                entry_index,
                new: families.remove(&blob.digest).filter(|_| is_patchable)?,
                item: entry.item.clone(),
            })
        });
        Ok(patchable.collect())
    }

    /// Makes the recipe of a blob. If the blob gets no recipe, returns `None` and adds the reason
    /// to the summary.
    pub(super) fn make(&mut self, one: &PatchableBlob) -> Result<Option<BasedRecipe>, BundleError> {
        let compared = self.candidates(one);
        let decoded = self.plain.decoded_blob(&one.new.blob);
        let Some(new) = decoded.map_err(|error| self.failure(one, error))? else {
            self.record_unpatched(one, UnpatchedReason::Compression);
            return Ok(None);
        };
        let found = self.compare(one, new, compared)?;
        let made = make_recipe(&self.input(one, &found));
        let recipe = match made.map_err(|error| self.failure(one, error))? {
            Ok(recipe) => recipe,
            Err(no_recipe) => {
                self.record_unpatched(one, self.reason(one, &found, no_recipe));
                return Ok(None);
            }
        };
        let from = self.record_patched(one, &found, recipe.size());
        Ok(Some(BasedRecipe { recipe, from }))
    }

    /// Estimates what [`make`](Self::make) adds to the summary, in less time.
    pub(super) fn estimate(&mut self, one: &PatchableBlob) -> Result<(), BundleError> {
        let compared = self.candidates(one);
        let plain = self.plain.plain_blob(&one.new.blob);
        let Some(blob) = plain.map_err(|error| self.failure(one, error))? else {
            self.record_unpatched(one, UnpatchedReason::Compression);
            return Ok(());
        };
        let assumed = None;
        let found = self.compare(one, DecodedBlob { blob, assumed }, compared)?;
        let estimated = estimate_recipe(&self.input(one, &found));
        match estimated.map_err(|error| self.failure(one, error))? {
            Ok(size) => _ = self.record_patched(one, &found, size),
            Err(no_recipe) => self.record_unpatched(one, self.reason(one, &found, no_recipe)),
        }
        Ok(())
    }

    fn input<'b>(&'b self, one: &'b PatchableBlob, found: &'b BlobComparison) -> RecipeInput<'b> {
        RecipeInput {
            blob: &one.new.blob,
            new: &found.new,
            bases: &found.bases,
            assumed: found.assumed.as_ref(),
            content: self.blobs,
            folder: self.folder,
        }
    }

    fn failure(&self, one: &PatchableBlob, error: RecipeError) -> BundleError {
        match error {
            RecipeError::Content(error) => BundleError::content(&one.item)(error),
            RecipeError::Temporary(error) => {
                BundleError::write(self.folder)(ScratchError::unwrap(error))
            }
        }
    }

    /// The blobs with which the blob `one` is compared. Forgets the plain bytes of all others, so
    /// that there are never more than those of `one` and of its candidates: the next blob is
    /// probably compared with this one or with the same candidates.
    fn candidates(&mut self, one: &PatchableBlob) -> Vec<FamilyBlob> {
        let gone = |old: &FamilyBlob| !self.named.contains(&old.blob.digest);
        let compared: Vec<FamilyBlob> = candidates(&one.new, &self.pool, gone, MAX_CANDIDATES)
            .into_iter()
            .cloned()
            .collect();
        self.plain.retain(|digest| {
            *digest == one.new.blob.digest || compared.iter().any(|old| old.blob.digest == *digest)
        });
        compared
    }

    /// Finds the bases of the blob `one`, whose plain bytes are in `new`, among `compared`.
    fn compare(
        &mut self,
        one: &PatchableBlob,
        new: DecodedBlob,
        compared: Vec<FamilyBlob>,
    ) -> Result<BlobComparison, BundleError> {
        let DecodedBlob { blob: new, assumed } = new;
        let mut shares = Vec::new();
        for candidate in &compared {
            let plain = self.plain.plain_blob(&candidate.blob);
            let Some(base) = plain.map_err(|error| self.failure(one, error))? else {
                continue;
            };
            let share = new.listing.similarity(&base.listing);
            if share >= MIN_SHARE {
                shares.push((share, base));
            }
        }
        shares.sort_by(|a, b| b.0.total_cmp(&a.0));
        Ok(BlobComparison {
            new,
            assumed,
            bases: shares
                .into_iter()
                .take(BASES)
                .map(|(_, base)| base)
                .collect(),
            compared,
        })
    }

    /// Adds a blob with a recipe to the summary. From then on, the blob may be a base, unless its
    /// chain of recipes is too long. Returns the digests of its bases.
    fn record_patched(
        &mut self,
        one: &PatchableBlob,
        found: &BlobComparison,
        recipe_bytes: u64,
    ) -> Vec<Digest> {
        let from: Vec<Digest> = found.bases.iter().map(|base| base.digest.clone()).collect();
        for old in &found.compared {
            if from.contains(&old.blob.digest) {
                self.refer(old);
            }
        }
        let chains = from.iter().filter_map(|base| self.chains.get(base));
        let chain = chains.max().map_or(1, |longest| longest + 1);
        // readers refuse a longer chain
        if chain < MAX_CHAIN {
            self.chains.insert(one.new.blob.digest.clone(), chain);
            self.pool.push(one.new.clone());
        }
        self.summary.patched.push(PatchedBlob {
            blob: one.new.blob.clone(),
            recipe_bytes,
            from: from.clone(),
        });
        from
    }

    fn reason(
        &self,
        one: &PatchableBlob,
        found: &BlobComparison,
        no_recipe: NoRecipe,
    ) -> UnpatchedReason {
        match no_recipe {
            NoRecipe::Compression => UnpatchedReason::Compression,
            NoRecipe::Unproven => UnpatchedReason::Unproven,
            NoRecipe::NotSmaller if !found.bases.is_empty() => UnpatchedReason::NotSmaller,
            NoRecipe::NotSmaller
                if candidates(&one.new, &self.elsewhere, |_| false, 1).is_empty() =>
            {
                UnpatchedReason::NoOlderVersion
            }
            NoRecipe::NotSmaller => UnpatchedReason::OlderVersionElsewhere,
        }
    }

    /// Adds a blob without a recipe to the summary. From then on, the blob may be a base.
    fn record_unpatched(&mut self, one: &PatchableBlob, reason: UnpatchedReason) {
        self.pool.push(one.new.clone());
        self.summary.unpatched.push(UnpatchedBlob {
            blob: one.new.blob.clone(),
            reason,
        });
    }

    /// Adds a base to the references if the bundle neither contains it nor has a recipe for it.
    fn refer(&mut self, base: &FamilyBlob) {
        let is_inside = self.named.contains(&base.blob.digest)
            && !delta_base::all_have(self.old.bases, &base.blob);
        if !is_inside {
            let reference = BlobReference {
                blob: base.blob.clone(),
                image: base.image.clone(),
                path: base.path.clone(),
            };
            self.references.insert(base.blob.digest.clone(), reference);
        }
    }
}
