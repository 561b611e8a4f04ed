//! Replaces blobs of a plan by recipes.

use super::make::{NoRecipe, PlainBlob, RecipeFile, make_recipe};
use super::plain_file::{sniff, write_plain};
use super::predecessors::{FamilyBlob, candidates, family_blobs};
use crate::error::BundleError;
use crate::format::blob_recipe::{BlobRecipe, BlobReference, entry_name};
use crate::format::content_form::ContentForm;
use crate::format::names::RECIPE_TYPE;
use crate::plan::delta_base::{self, DeltaBase};
use crate::plan::pack_plan::PackPlan;
use crate::plan::planned_entry::ContentSource;
use landfall_content::{BlobRead, ContentError};
use landfall_item::lockfile::Lock;
use landfall_model::report::Progress;
use landfall_model::{Descriptor, Digest};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// A smaller blob is not worth a recipe.
const MIN_BLOB: u64 = 8 << 10;

/// The maximum number of candidates whose files are compared with those of a blob.
const MAX_CANDIDATES: usize = 4;

/// The maximum number of bases of one recipe.
const BASES: usize = 2;

/// A candidate is used if this share of the plain bytes is in files that it has too.
const MIN_SHARE: f64 = 0.02;

/// The content that the receiver has already.
pub struct OldContent<'a> {
    /// The locks that were delivered.
    pub locks: &'a [Lock],
    /// The bases of the plan. Each of them has all blobs that recipes use from outside the bundle.
    pub bases: &'a [DeltaBase],
    /// The bytes of the blobs that the bases have, as far as they are available here.
    pub blobs: &'a dyn BlobRead,
}

/// How many blobs of a bundle are replaced by recipes, and what that saves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecipeSummary {
    /// The number of blobs with a recipe.
    pub patched: usize,
    /// The size of these blobs in bytes.
    pub patched_bytes: u64,
    /// The size of the recipes in bytes.
    pub recipe_bytes: u64,
    /// Blobs that were tried and have none.
    pub unpatched: Vec<UnpatchedBlob>,
}

/// A blob without a recipe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnpatchedBlob {
    /// The blob.
    pub blob: Descriptor,
    /// The item that needs it.
    pub item: String,
    /// The reason why it has no recipe.
    pub reason: &'static str,
}

/// Replaces the layers and files of `plan` by recipes, where these are smaller. `blobs` has the
/// content of `lock`. Plain bytes are written to temporary files in `folder`.
///
/// # Errors
/// When content is missing or damaged, or `folder` cannot be written.
pub fn plan_recipes(
    plan: &mut PackPlan,
    lock: &Lock,
    blobs: &dyn BlobRead,
    old: &OldContent<'_>,
    folder: &Path,
    progress: &dyn Progress,
) -> Result<RecipeSummary, BundleError> {
    let mut kept = HashSet::new();
    let mut families: HashMap<Digest, FamilyBlob> = HashMap::new();
    for entry in plan.included_entries(lock) {
        let found = delta_base::kept(&entry, blobs);
        kept.extend(found.map_err(BundleError::content(&entry.name))?);
    }
    for blob in lock.items().flat_map(family_blobs) {
        families.entry(blob.blob.digest.clone()).or_insert(blob);
    }
    let mut planner = RecipePlanner {
        blobs,
        old,
        folder,
        pool: old_pool(old)?,
        named: lock_blobs(lock),
        plain: HashMap::new(),
        references: BTreeMap::new(),
        summary: RecipeSummary::default(),
    };
    let eligible = |blob: &Descriptor| blob.size >= MIN_BLOB && !kept.contains(&blob.digest);
    let places: Vec<usize> = (0..plan.entries.len())
        .filter(|place| {
            let entry = &plan.entries[*place];
            matches!(entry.content, ContentSource::Store)
                && families.contains_key(&entry.descriptor.digest)
                && eligible(&entry.descriptor)
        })
        .collect();
    let bytes = places
        .iter()
        .map(|place| plan.entries[*place].descriptor.size)
        .sum();
    progress.begin("patch", places.len() as u64, bytes);
    let result = places.into_iter().try_for_each(|place| {
        let entry = &mut plan.entries[place];
        let new = &families[&entry.descriptor.digest];
        let item = entry.item.clone();
        if let Some((recipe, from)) = planner.recipe(new, &item)? {
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
        }
        progress.bytes(new.blob.size);
        progress.item(&item);
        Ok(())
    });
    progress.end();
    result?;
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

/// The blobs of the old locks whose bytes are available here and that every base has.
fn old_pool(old: &OldContent<'_>) -> Result<Vec<FamilyBlob>, BundleError> {
    let mut pool = Vec::new();
    let mut seen = HashSet::new();
    for item in old.locks.iter().flat_map(Lock::items) {
        for found in family_blobs(item) {
            let is_new = seen.insert(found.blob.digest.clone());
            if is_new && found.blob.size >= MIN_BLOB && delta_base::all_have(old.bases, &found.blob)
            {
                let size = old.blobs.stat(&found.blob.digest);
                if size.map_err(BundleError::content(&item.name()))? == Some(found.blob.size) {
                    pool.push(found);
                }
            }
        }
    }
    Ok(pool)
}

fn lock_blobs(lock: &Lock) -> HashSet<Digest> {
    let parts = lock.each_entry().flat_map(|entry| entry.parts);
    parts.map(|part| part.descriptor.digest).collect()
}

struct RecipePlanner<'a> {
    blobs: &'a dyn BlobRead,
    old: &'a OldContent<'a>,
    folder: &'a Path,
    /// The blobs that recipes may use: those of the bases, and those of the bundle so far.
    pool: Vec<FamilyBlob>,
    /// The blobs that the new lock names.
    named: HashSet<Digest>,
    /// The plain bytes of recently compared blobs.
    plain: HashMap<Digest, Arc<PlainBlob>>,
    references: BTreeMap<Digest, BlobReference>,
    summary: RecipeSummary,
}

impl RecipePlanner<'_> {
    /// The recipe for a blob and the bases that it uses.
    fn recipe(
        &mut self,
        new: &FamilyBlob,
        item: &str,
    ) -> Result<Option<(RecipeFile, Vec<Digest>)>, BundleError> {
        let failed = BundleError::content(item);
        let gone = |old: &FamilyBlob| !self.named.contains(&old.blob.digest);
        let found: Vec<FamilyBlob> = candidates(new, &self.pool, gone, MAX_CANDIDATES)
            .into_iter()
            .cloned()
            .collect();
        let plain = self.plain_blob(&new.blob).map_err(failed)?;
        let mut shares = Vec::new();
        for candidate in &found {
            let base = self.plain_blob(&candidate.blob).map_err(failed)?;
            let share = plain.listing.similarity(&base.listing);
            if share >= MIN_SHARE {
                shares.push((share, base));
            }
        }
        shares.sort_by(|a, b| b.0.total_cmp(&a.0));
        let bases: Vec<Arc<PlainBlob>> = shares
            .into_iter()
            .take(BASES)
            .map(|(_, base)| base)
            .collect();
        let made = make_recipe(&new.blob, &plain, &bases, self.blobs, self.folder);
        // plain bytes of other families are not needed again
        self.plain.retain(|digest, _| {
            *digest == new.blob.digest || found.iter().any(|old| old.blob.digest == *digest)
        });
        self.pool.push(new.clone());
        match made.map_err(failed)? {
            Ok(recipe) => {
                self.summary.patched += 1;
                self.summary.patched_bytes += new.blob.size;
                self.summary.recipe_bytes += recipe.size();
                let from: Vec<Digest> = bases.iter().map(|base| base.digest.clone()).collect();
                for old in found.iter().filter(|old| from.contains(&old.blob.digest)) {
                    self.refer(old);
                }
                Ok(Some((recipe, from)))
            }
            Err(no_recipe) => {
                self.summary.unpatched.push(UnpatchedBlob {
                    blob: new.blob.clone(),
                    item: item.to_owned(),
                    reason: match (no_recipe, bases.is_empty()) {
                        (NoRecipe::Compression, _) => {
                            "its compression cannot be reproduced in few bytes"
                        }
                        (NoRecipe::NotSmaller, true) => "no older version of it is at hand",
                        (NoRecipe::NotSmaller, false) => "its recipe would not be smaller",
                    },
                });
                Ok(None)
            }
        }
    }

    /// Notes a base that the bundle does not contain.
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

    fn plain_blob(&mut self, blob: &Descriptor) -> Result<Arc<PlainBlob>, ContentError> {
        if let Some(plain) = self.plain.get(&blob.digest) {
            return Ok(Arc::clone(plain));
        }
        let read = |source: io::Error| ContentError::read(&blob.digest, source);
        let content = if self.blobs.stat(&blob.digest)? == Some(blob.size) {
            self.blobs.open(&blob.digest, 0)?
        } else {
            self.old.blobs.open(&blob.digest, 0)?
        };
        let (coding, content) = sniff(content).map_err(read)?;
        let plain = write_plain(content, coding, self.folder).map_err(read)?;
        let listing = landfall_patch::Listing::read(plain.reader(0))
            .map_err(|error| read(io::Error::other(error)))?;
        let plain = Arc::new(PlainBlob {
            digest: blob.digest.clone(),
            coding,
            plain: Arc::new(plain),
            listing: Arc::new(listing),
        });
        self.plain.insert(blob.digest.clone(), Arc::clone(&plain));
        Ok(plain)
    }
}
