//! Checks the recipes in a contents index, and the blobs that they use.

use super::blob_recipe::{BlobRecipe, MAX_BASES, MAX_CHAIN};
use super::contents::ContentsIndex;
use super::names::RECIPE;
use landfall_model::Digest;
use std::collections::{HashMap, HashSet};

/// Checks that each recipe has its entry, and that every blob that it uses is available: in the
/// bundle, from another recipe, or in the bases. Recipes that need each other are refused.
pub(super) fn check_recipes(contents: &ContentsIndex) -> Result<(), String> {
    let ContentsIndex {
        requires,
        recipes,
        references,
        omitted,
        entries,
        ..
    } = contents;
    if requires.iter().any(|word| word == RECIPE) == recipes.is_empty() {
        return Err("its recipes and required features contradict each other".into());
    }
    if recipes.is_empty() && references.is_empty() {
        return Ok(());
    }
    if !recipes.is_sorted_by(|a, b| a.blob.digest < b.blob.digest)
        || !references.is_sorted_by(|a, b| a.blob.digest < b.blob.digest)
    {
        return Err(
            "its list of recipes or references is not sorted, or names a blob twice".into(),
        );
    }
    let names: HashSet<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
    let inside: HashSet<&Digest> = entries
        .iter()
        .filter(|entry| entry.is_blob())
        .map(|entry| &entry.digest)
        .collect();
    let omitted: HashSet<&Digest> = omitted.iter().map(|blob| &blob.digest).collect();
    let outside: HashSet<&Digest> = references.iter().map(|one| &one.blob.digest).collect();
    let made: HashSet<&Digest> = recipes.iter().map(|recipe| &recipe.blob.digest).collect();
    for recipe in recipes {
        let digest = &recipe.blob.digest;
        if inside.contains(digest) || omitted.contains(digest) {
            return Err(format!(
                "it has a recipe for {digest}, but also contains or omits it"
            ));
        }
        if !names.contains(recipe.entry.as_str()) {
            return Err(format!("it lacks the recipe for {digest}"));
        }
        if recipe.from.len() > MAX_BASES {
            return Err(format!("the recipe for {digest} has too many bases"));
        }
        let bases: HashSet<&Digest> = recipe.from.iter().collect();
        if bases.len() < recipe.from.len() {
            return Err(format!("the recipe for {digest} names a base twice"));
        }
        let is_known =
            |base: &Digest| inside.contains(base) || outside.contains(base) || made.contains(base);
        if let Some(unknown) = recipe.from.iter().find(|base| !is_known(base)) {
            return Err(format!(
                "the recipe for {digest} uses {unknown}, which is not listed"
            ));
        }
    }
    if let Some(both) = references
        .iter()
        .find(|one| inside.contains(&one.blob.digest) || made.contains(&one.blob.digest))
    {
        return Err(format!(
            "it lists {} as a reference, but contains it or has a recipe for it",
            both.blob.digest
        ));
    }
    let used: HashSet<&Digest> = recipes.iter().flat_map(|recipe| &recipe.from).collect();
    if let Some(unused) = references
        .iter()
        .find(|one| !used.contains(&one.blob.digest))
    {
        return Err(format!(
            "no recipe uses the reference {}",
            unused.blob.digest
        ));
    }
    check_order(contents)
}

/// Checks that each recipe uses only recipes whose entries precede its own, so that recipes cannot
/// need each other. Also checks that no chain of recipes is too long.
fn check_order(contents: &ContentsIndex) -> Result<(), String> {
    let places: HashMap<&str, usize> = contents
        .entries
        .iter()
        .enumerate()
        .map(|(place, entry)| (entry.name.as_str(), place))
        .collect();
    let mut in_order: Vec<&BlobRecipe> = contents.recipes.iter().collect();
    in_order.sort_by_key(|recipe| places.get(recipe.entry.as_str()));
    let made: HashSet<&Digest> = contents
        .recipes
        .iter()
        .map(|recipe| &recipe.blob.digest)
        .collect();
    // the length of the longest chain of recipes for each blob
    let mut chains: HashMap<&Digest, usize> = HashMap::new();
    for recipe in in_order {
        let mut longest = 0;
        for base in recipe.from.iter().filter(|base| made.contains(base)) {
            let Some(chain) = chains.get(base) else {
                return Err(format!(
                    "the recipe for {} precedes a recipe that it uses",
                    recipe.blob.digest
                ));
            };
            longest = longest.max(*chain);
        }
        if longest >= MAX_CHAIN {
            return Err(format!(
                "the recipe for {} needs too long a chain of recipes",
                recipe.blob.digest
            ));
        }
        chains.insert(&recipe.blob.digest, longest + 1);
    }
    Ok(())
}
