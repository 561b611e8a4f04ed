//! The blobs that must be added to [`RebuiltBlobs`] before one of its blobs can be rebuilt.

use super::rebuilt_blobs::{KnownRecipe, RebuiltBlobs};
use landfall_content::{BlobRead, ContentError};
use landfall_model::{Descriptor, Digest};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// For each blob that can be rebuilt after references were added: the round in which its recipe was
/// found, and the recipe. Each base of the recipe is present, is a reference, or was found in an
/// earlier round.
type RecipeRounds<'a> = HashMap<&'a Digest, (usize, &'a KnownRecipe)>;

impl RebuiltBlobs {
    /// Returns the blobs that must be added before the blob `digest` can be rebuilt. Blobs in
    /// `unavailable` are not among them: if there are several recipes, one that does not need
    /// unavailable blobs is used. Returns `None` if there is no such recipe.
    ///
    /// # Errors
    /// If content cannot be examined.
    pub fn missing_bases(
        &self,
        digest: &Digest,
        unavailable: &BTreeSet<Digest>,
    ) -> Result<Option<Vec<Descriptor>>, ContentError> {
        // the blob and all blobs from which it may be rebuilt, and whether they are present
        let mut present: BTreeMap<&Digest, bool> = BTreeMap::new();
        let mut pending = vec![digest];
        while let Some(blob) = pending.pop() {
            if present.contains_key(blob) {
                continue;
            }
            let is_present = self.stat(blob)?.is_some();
            present.insert(blob, is_present);
            if !is_present {
                let recipes = self.recipes.get(blob).into_iter().flatten();
                pending.extend(recipes.flat_map(|known| &known.recipe.from));
            }
        }
        let found = self.recipe_rounds(&present, unavailable);
        let mut missing = Vec::new();
        let mut added = BTreeSet::new();
        let mut seen = BTreeSet::from([digest]);
        let mut pending = vec![digest];
        while let Some(blob) = pending.pop() {
            if present[blob] {
                continue;
            }
            let Some((round, known)) = found.get(blob) else {
                return Ok(None);
            };
            for base in &known.recipe.from {
                let is_rebuilt = found.get(base).is_some_and(|(earlier, _)| earlier < round);
                match reference(known, base) {
                    Some(base) if !is_rebuilt && !present[&base.digest] => {
                        if added.insert(&base.digest) {
                            missing.push(base.clone());
                        }
                    }
                    _ => {
                        if seen.insert(base) {
                            pending.push(base);
                        }
                    }
                }
            }
        }
        Ok(Some(missing))
    }

    /// Finds a recipe for each blob in `present` that is not present. A base that is a reference is
    /// rebuilt instead of added if possible.
    fn recipe_rounds<'a>(
        &'a self,
        present: &BTreeMap<&'a Digest, bool>,
        unavailable: &BTreeSet<Digest>,
    ) -> RecipeRounds<'a> {
        let mut found = RecipeRounds::new();
        for round in 0.. {
            let usable = |add_all: bool| -> RecipeRounds<'a> {
                let is_available = |known: &KnownRecipe, base: &Digest| {
                    present[base]
                        || found.contains_key(base)
                        || (add_all || !self.recipes.contains_key(base))
                            && !unavailable.contains(base)
                            && reference(known, base).is_some()
                };
                let blobs = present
                    .iter()
                    .filter(|(blob, is_present)| !**is_present && !found.contains_key(**blob));
                blobs
                    .filter_map(|(blob, _)| {
                        let mut recipes = self.recipes.get(*blob)?.iter();
                        let known = recipes.find(|known| {
                            let mut bases = known.recipe.from.iter();
                            bases.all(|base| is_available(known, base))
                        })?;
                        Some((*blob, (round, known)))
                    })
                    .collect()
            };
            let mut more = usable(false);
            if more.is_empty() {
                more = usable(true);
            }
            if more.is_empty() {
                break;
            }
            found.extend(more);
        }
        found
    }
}

/// Returns the descriptor of `base` if the bundle of the recipe lists `base` as a reference.
fn reference<'a>(known: &'a KnownRecipe, base: &Digest) -> Option<&'a Descriptor> {
    let mut references = known.bundle.references().iter().map(|one| &one.blob);
    references.find(|blob| blob.digest == *base)
}
