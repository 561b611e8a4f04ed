//! Chooses the bases of each blob, and makes its recipe or estimates the size of the recipe.

use super::make::{RecipeFile, RecipeInput, estimate_recipe, make_recipe};
use super::plain_file::{DecodedBlob, PlainBlob, PlainBlobs, ScratchError};
use crate::error::BundleError;
use crate::format::blob_recipe::{BlobRecipe, BlobReference, MAX_CHAIN, entry_name};
use crate::format::names::RECIPE_TYPE;
use crate::format::stored::ContentForm;
use crate::plan::delta_base::{self, DeltaBase};
use crate::plan::{ContentSource, PackPlan};
use landfall_content::{BlobRead, CopyError};
use landfall_deflate::Recipe;
use landfall_item::LockedItem;
use landfall_item::lockfile::Lock;
use landfall_model::report::Progress;
use landfall_model::{Descriptor, Digest, sum_sizes};
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

    /// Makes the recipe of a blob, and returns it with the digests of its bases. If the blob gets
    /// no recipe, returns `None` and adds the reason to the summary.
    pub(super) fn make(
        &mut self,
        one: &PatchableBlob,
    ) -> Result<Option<(RecipeFile, Vec<Digest>)>, BundleError> {
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
        Ok(Some((recipe, from)))
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

    fn failure(&self, one: &PatchableBlob, error: CopyError) -> BundleError {
        match error {
            CopyError::Content(error) => BundleError::content(&one.item)(error),
            CopyError::Write(error) => BundleError::write(self.folder)(ScratchError::unwrap(error)),
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
        no_recipe: UnpatchedReason,
    ) -> UnpatchedReason {
        if no_recipe != UnpatchedReason::NotSmaller || !found.bases.is_empty() {
            no_recipe
        } else if candidates(&one.new, &self.elsewhere, |_| false, 1).is_empty() {
            UnpatchedReason::NoOlderVersion
        } else {
            UnpatchedReason::OlderVersionElsewhere
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
        let Some((recipe, from)) = planner.make(one)? else {
            return Ok(());
        };
        let entry = &mut plan.entries[one.entry_index];
        plan.recipes.push(BlobRecipe {
            blob: entry.descriptor.clone(),
            entry: entry_name(&recipe.digest),
            from,
        });
        entry.name = entry_name(&recipe.digest);
        entry.descriptor = Descriptor::new(recipe.digest.clone(), recipe.size(), RECIPE_TYPE);
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

// The blobs that a new blob probably resembles.

/// A blob of an item, and the family of the item. A blob is compared with blobs of its family if
/// there are any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FamilyBlob {
    pub(super) blob: Descriptor,
    /// The name of the item without digest, tag and digits, such as the repository of an image: the
    /// same for all versions of the item.
    pub(super) family: String,
    /// The position of the blob among those of its item.
    pub(super) position: usize,
    /// The name of the item, if it is an image or a chart.
    pub(super) image: Option<String>,
    /// The repository of the item below the prefix of a destination, if the item is neither an
    /// image nor a chart.
    pub(super) path: Option<String>,
}

/// The blobs of an item.
pub(super) fn family_blobs(item: LockedItem<'_>) -> Vec<FamilyBlob> {
    let entry = item.entry();
    let family = family(&entry.name);
    let image = item.reference().map(ToString::to_string);
    let path = image.is_none().then(|| item.own_repository());
    let stored = entry
        .parts
        .iter()
        .filter(|part| part.is_stored() && !part.is_manifest());
    stored
        .enumerate()
        .map(|(position, part)| FamilyBlob {
            blob: part.descriptor.clone(),
            family: family.clone(),
            position,
            image: image.clone(),
            path: path.clone(),
        })
        .collect()
}

/// The name of an item without digest, tag and digits.
fn family(name: &str) -> String {
    let name = name.split('@').next().unwrap_or(name);
    let last = name.rfind('/').map_or(0, |slash| slash + 1);
    let end = name[last..]
        .find(':')
        .map_or(name.len(), |colon| last + colon);
    name[..end]
        .chars()
        .filter(|letter| !letter.is_ascii_digit())
        .collect()
}

/// Returns the blobs of `pool` to compare with `new`, at most `limit`: first those at the most
/// similar position. They are of the same family as `new`. If the pool has no blob of this family,
/// they are blobs for which `is_gone` is true: a blob that the new lock no longer names was
/// probably replaced.
pub(super) fn candidates<'a>(
    new: &FamilyBlob,
    pool: &'a [FamilyBlob],
    is_gone: impl Fn(&FamilyBlob) -> bool,
    limit: usize,
) -> Vec<&'a FamilyBlob> {
    let other = |old: &&FamilyBlob| old.blob.digest != new.blob.digest;
    let mut found: Vec<&FamilyBlob> = pool
        .iter()
        .filter(other)
        .filter(|old| old.family == new.family)
        .collect();
    if found.is_empty() {
        found = pool
            .iter()
            .filter(other)
            .filter(|old| is_gone(old))
            .collect();
    }
    let distance = |old: &FamilyBlob| old.position.abs_diff(new.position);
    // at the same distance, the blob with the most similar size is first
    found.sort_by_key(|old| (distance(old), old.blob.size.abs_diff(new.blob.size)));
    let mut seen = std::collections::HashSet::new();
    found.retain(|old| seen.insert(&old.blob.digest));
    found.truncate(limit);
    found
}

/// The savings by recipes. Lists only layers and files that are large enough for a recipe.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecipeSummary {
    /// The blobs with a recipe, in the order of the plan.
    pub patched: Vec<PatchedBlob>,
    /// The blobs without a recipe.
    pub unpatched: Vec<UnpatchedBlob>,
}

/// A blob with a recipe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchedBlob {
    /// The blob.
    pub blob: Descriptor,
    /// The size of its recipe in bytes.
    pub recipe_bytes: u64,
    /// The blobs that the recipe uses.
    pub from: Vec<Digest>,
}

/// A blob without a recipe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnpatchedBlob {
    /// The blob.
    pub blob: Descriptor,
    /// Why it has no recipe.
    pub reason: UnpatchedReason,
}

/// Why a blob has no recipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum UnpatchedReason {
    /// Its compression cannot be described in few bytes, or it has too many plain bytes.
    Compression,
    /// There is no older version, and a recipe without one would not be much smaller than the blob.
    NoOlderVersion,
    /// There are older versions, but their bytes are not available here.
    OlderVersionElsewhere,
    /// The recipe would not be much smaller than the blob.
    NotSmaller,
    /// The recipe does not rebuild the blob. This is a bug in landfall, if the blob is intact.
    Unproven,
}

impl UnpatchedReason {
    /// The reason for messages.
    pub fn text(self) -> &'static str {
        match self {
            UnpatchedReason::Compression => "its compression cannot be reproduced in few bytes",
            UnpatchedReason::NoOlderVersion => "there is no older version of it",
            UnpatchedReason::OlderVersionElsewhere => {
                "its older version is neither in a bundle of --since nor in the store"
            }
            UnpatchedReason::NotSmaller => "its recipe would not be much smaller",
            UnpatchedReason::Unproven => {
                "landfall made no recipe that restores it; please report this as a bug"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_an_item_are_one_family() {
        assert_eq!(
            family("quay.io/prometheus/node-exporter:v1.9.0"),
            "quay.io/prometheus/node-exporter"
        );
        assert_eq!(family("localhost:5000/a/b@sha256:00"), "localhost:/a/b");
        let file = "https://dl.k8s.io/v1.31.1/bin/linux/amd64/kubelet";
        assert_eq!(
            family(file),
            family("https://dl.k8s.io/v1.30.12/bin/linux/amd64/kubelet")
        );
        assert_ne!(
            family(file),
            family("https://dl.k8s.io/v1.31.1/bin/linux/arm64/kubectl")
        );
    }
}
