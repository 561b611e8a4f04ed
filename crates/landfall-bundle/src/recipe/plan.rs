//! Replaces blobs of a plan by recipes, or estimates the savings.

use super::planner::{BasedRecipe, OldContent, PatchableBlob, RecipePlanner};
use super::summary::RecipeSummary;
use crate::error::BundleError;
use crate::format::blob_recipe::{BlobRecipe, entry_name};
use crate::format::content_form::ContentForm;
use crate::format::names::RECIPE_TYPE;
use crate::plan::delta_base;
use crate::plan::pack_plan::PackPlan;
use crate::plan::planned_entry::ContentSource;
use landfall_content::BlobRead;
use landfall_item::lockfile::Lock;
use landfall_model::report::Progress;
use landfall_model::{Descriptor, sum_sizes};
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

/// Replaces each layer and file of `plan` by a recipe, if the recipe is at least 10 % smaller.
/// `blobs` has the content of `lock`. Plain bytes are written to temporary files in `folder`.
///
/// # Errors
/// If content is missing or damaged, or `folder` cannot be written.
pub fn plan_recipes(
    plan: &mut PackPlan,
    lock: &Lock,
    blobs: &dyn BlobRead,
    old: &OldContent<'_>,
    folder: &Path,
    progress: &dyn Progress,
) -> Result<RecipeSummary, BundleError> {
    let mut planner = RecipePlanner::new(lock, blobs, old, folder)?;
    let patchable = planner.patchable_blobs(plan, lock)?;
    one_by_one(&patchable, progress, |one| {
        let Some(BasedRecipe { recipe, from }) = planner.make(one)? else {
            return Ok(());
        };
        let entry = &mut plan.entries[one.entry_index];
        plan.recipes.push(BlobRecipe {
            blob: entry.descriptor.clone(),
            entry: entry_name(&recipe.digest),
            from,
        });
        entry.name = entry_name(&recipe.digest);
        entry.descriptor = Descriptor {
            digest: recipe.digest.clone(),
            size: recipe.size(),
            media_type: RECIPE_TYPE.into(),
        };
        entry.form = ContentForm::Stored;
        entry.content = ContentSource::Recipe(Arc::new(recipe));
        Ok(())
    })?;
    // several blobs may have the same recipe, whose bytes name neither the blob nor its bases
    let mut names = HashSet::new();
    plan.entries
        .retain(|entry| names.insert(entry.name.clone()));
    plan.recipes
        .sort_by(|a, b| a.blob.digest.cmp(&b.blob.digest));
    plan.references = planner.references.into_values().collect();
    if !plan.references.is_empty() {
        let outside: Vec<Descriptor> = plan
            .omitted
            .iter()
            .chain(plan.references.iter().map(|one| &one.blob))
            .cloned()
            .collect();
        plan.bases = delta_base::names(old.bases, &outside);
    }
    Ok(planner.summary)
}

/// Estimates the result of [`plan_recipes`] in less time: patches are made, but only the beginning
/// of a compressed blob is analyzed, and no blob is rebuilt.
///
/// # Errors
/// Like [`plan_recipes`].
pub fn estimate_recipes(
    plan: &PackPlan,
    lock: &Lock,
    blobs: &dyn BlobRead,
    old: &OldContent<'_>,
    folder: &Path,
    progress: &dyn Progress,
) -> Result<RecipeSummary, BundleError> {
    let mut planner = RecipePlanner::new(lock, blobs, old, folder)?;
    let patchable = planner.patchable_blobs(plan, lock)?;
    one_by_one(&patchable, progress, |one| planner.estimate(one))?;
    Ok(planner.summary)
}

fn one_by_one(
    patchable: &[PatchableBlob],
    progress: &dyn Progress,
    mut work: impl FnMut(&PatchableBlob) -> Result<(), BundleError>,
) -> Result<(), BundleError> {
    let bytes = sum_sizes(patchable.iter().map(|one| one.new.blob.size));
    progress.begin("patch", patchable.len() as u64, bytes);
    let result = patchable.iter().try_for_each(|one| {
        work(one)?;
        progress.bytes(one.new.blob.size);
        progress.item(&one.item);
        Ok(())
    });
    progress.end();
    result
}
