//! Checks of a contents index that need no frame: names, offsets, lengths, and the bases of a
//! delta.

use super::blob_recipe::{BlobRecipe, MAX_BASES, MAX_CHAIN};
use super::contents::ContentsIndex;
use super::damage::Damage;
use super::entry::TarEntry;
use super::frame::{FrameTable, MAX_FRAME, ROW};
use super::header;
use super::names::{BaseName, CONTENTS, DELTA, FRAMES, LAYOUT, LOCK, RECIPE};
use super::stored::{CHUNK, ContentForm, stored_len};
use landfall_model::{Digest, is_repository};
use std::collections::{HashMap, HashSet};

impl ContentsIndex {
    /// Checks everything that needs no frame. The entries must belong to a bundle and be contiguous
    /// in the file. The content of this index must begin at `index_at`, after the frame table.
    pub fn check(&self, index_at: u64) -> Result<(), Damage> {
        let wrong = |why: &str| Damage::new(CONTENTS, index_at, why);
        let locks = self.locks.iter().map(|lock| lock.name.as_str());
        let mut required = LAYOUT.into_iter().chain([LOCK]);
        let has_required = required.all(|name| self.entries.iter().any(|entry| entry.name == name));
        if !locks.eq([LOCK]) || !has_required {
            return Err(wrong("it lacks entries that every bundle has"));
        }
        check_bases(self).map_err(|why| wrong(&why))?;
        check_recipes(self).map_err(|why| wrong(&why))?;
        let mut seen = HashSet::new();
        let mut end = 0;
        let mut frame = 0;
        for entry in &self.entries {
            let damage = |why: &str| Damage::new(&entry.name, entry.offset, why);
            if !entry.is_blob() && !is_own_name(&entry.name) {
                return Err(damage("it is not an entry of a bundle"));
            }
            // tools disagree about which of two entries with the same name they unpack
            if !seen.insert(&entry.name) {
                return Err(damage("it is listed twice"));
            }
            // a gap could hide bytes that are never verified, and a frame must not belong to two
            // entries
            if (entry.offset, entry.frame) != (end, frame) {
                return Err(damage(&format!(
                    "it must begin at byte {end}, with frame {frame}"
                )));
            }
            // offsets come from the file, so their sums may overflow
            let next = if entry.has_length() {
                end.checked_add(entry.length)
            } else {
                None
            };
            end = next.ok_or_else(|| damage("the contents index gives it an impossible length"))?;
            frame += TarEntry::frame_count(entry.size);
        }
        let FrameTable {
            offset,
            size,
            hashes,
        } = &self.frames;
        if (*offset, Some(*size)) != (end, frame.checked_mul(ROW as u64)) {
            let why = "the frame table is not after the last entry, or lacks a row for a frame";
            return Err(wrong(why));
        }
        if hashes.len() as u64 != TarEntry::frame_count(*size) {
            return Err(wrong(
                "it lists too few or too many hashes of the frame table",
            ));
        }
        // the index's own header is one stored frame of one tar block
        let next = self
            .frames
            .end()
            .and_then(|end| end.checked_add(stored_len(header::BLOCK as u64)));
        if next != Some(index_at) {
            return Err(wrong("it does not begin right after the frame table"));
        }
        Ok(())
    }
}

/// Whether an entry that is not a blob may have this name: a name of the OCI layout, or one of
/// landfall's own. Those begin with `landfall-` or `landfall.`; unknown ones are accepted, because
/// later releases may add entries. The index lists neither the frame table nor itself.
fn is_own_name(name: &str) -> bool {
    let own = name
        .strip_prefix("landfall-")
        .or_else(|| name.strip_prefix("landfall."));
    let is_unlisted = [FRAMES, CONTENTS].contains(&name);
    // names of up to 100 bytes fit into a plain tar header
    LAYOUT.contains(&name)
        || !is_unlisted
            && name.len() <= 100
            && own.is_some_and(|rest| {
                rest.bytes()
                    .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.'))
            })
}

impl TarEntry {
    /// Whether the length is possible, given name, size and form.
    fn has_length(&self) -> bool {
        // no file is that large, and sums with such a size could overflow
        if self.size > 1 << 60 {
            return false;
        }
        let around = header::frames_around(&self.name, self.size);
        let content = self.length.checked_sub(around);
        content.is_some_and(|content| match self.form {
            ContentForm::Stored => content == stored_len(self.size),
            ContentForm::Compressed => {
                let frames = self.size.div_ceil(CHUNK as u64);
                (frames..=frames * MAX_FRAME as u64).contains(&content)
            }
        })
    }
}

/// Checks the bases of a delta in the index.
fn check_bases(contents: &ContentsIndex) -> Result<(), String> {
    let ContentsIndex {
        requires,
        bases,
        omitted,
        references,
        entries,
        ..
    } = contents;
    let needs_none = omitted.is_empty() && references.is_empty();
    if requires.iter().any(|word| word == DELTA) == needs_none || bases.is_empty() != needs_none {
        return Err("its bases, omitted blobs and required features contradict each other".into());
    }
    if !omitted.is_sorted_by(|a, b| a.digest < b.digest) {
        return Err("its list of omitted blobs is not sorted, or names a blob twice".into());
    }
    let inside: HashSet<&Digest> = if omitted.is_empty() {
        HashSet::new()
    } else {
        entries.iter().map(|entry| &entry.digest).collect()
    };
    if let Some(both) = omitted.iter().find(|blob| inside.contains(&blob.digest)) {
        return Err(format!(
            "it lists {} as omitted but contains it",
            both.digest
        ));
    }
    let named = bases.iter().filter_map(|base| match base {
        BaseName::Receipt { repositories, .. } => Some(repositories.values()),
        BaseName::Bundle { .. } | BaseName::Lock { .. } => None,
    });
    // the names become parts of URLs when a push mounts the omitted blobs
    match named
        .flatten()
        .find(|repository| !is_repository(repository))
    {
        Some(bad) => Err(format!("'{bad}' is not a valid repository name")),
        None => Ok(()),
    }
}

// Checks the recipes in a contents index, and the blobs that they use.

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
