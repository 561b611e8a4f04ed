//! Damaged and forged recipes.

use super::{Versions, memory_without, pack, read, rebuilt, versions};
use crate::format::contents::ContentsIndex;
use crate::format::names::{ItemName, volume_path};
use crate::testkit::sample::Packed;
use crate::*;
use landfall_model::Digest;
use landfall_model::report::{EntryKind, SilentProgress};

#[test]
fn forged_lists_of_recipes_are_refused() {
    let Versions {
        memory,
        old,
        new,
        old_layer,
        new_layer,
    } = versions();
    let other = Digest::sha256(b"another blob");
    type Forgery<'a> = &'a dyn Fn(&mut ContentsIndex);
    let forgeries: [(&str, Forgery<'_>); 9] = [
        ("which is not listed", &|index| {
            index.recipes[0].from.push(other.clone())
        }),
        ("precedes a recipe that it uses", &|index| {
            index.recipes[0].from.push(new_layer.digest.clone())
        }),
        ("it lacks the recipe for", &|index| {
            index.recipes[0].entry = "landfall-recipe-0".into()
        }),
        ("recipes and required features contradict", &|index| {
            index.requires = vec!["delta".into()]
        }),
        ("no recipe uses the reference", &|index| {
            index.recipes[0].from.clear()
        }),
        ("has too many bases", &|index| {
            index.recipes[0].from = vec![old_layer.digest.clone(); 9];
        }),
        ("names a base twice", &|index| {
            index.recipes[0].from = vec![old_layer.digest.clone(); 2];
        }),
        ("but also contains or omits it", &|index| {
            index.omitted = vec![new_layer.clone()]
        }),
        ("names a blob twice", &|index| {
            let twice = index.recipes[0].clone();
            index.recipes.push(twice);
        }),
    ];
    for (why, forge) in forgeries {
        let (packed, _) = pack(&memory, &new, &[&old]);
        packed.reseal(|index, _| forge(index));
        let refusal = Bundle::open(&packed.path).unwrap_err().to_string();
        assert!(refusal.contains(why), "{why}: {refusal}");
    }
    // a recipe for a blob that the lock does not list is found by verification
    let (packed, _) = pack(&memory, &new, &[&old]);
    packed.reseal(|index, _| index.recipes[0].blob.digest = other.clone());
    Bundle::open(&packed.path).unwrap();
    assert_ne!(packed.problems(), "");
}

#[test]
fn a_recipe_with_a_changed_byte_is_an_error() {
    let Versions {
        memory,
        old,
        new,
        new_layer,
        ..
    } = versions();
    let (packed, _) = pack(&memory, &new, &[&old]);
    let bundle = Bundle::open(&packed.path).unwrap();
    let contents = bundle.contents();
    let name = &contents.recipes[0].entry;
    let place = contents
        .entries
        .iter()
        .position(|entry| entry.name == *name)
        .unwrap();
    let size = contents.entries[place].size as usize;
    let old_blobs = memory_without(&memory, &new_layer);
    for at in (0..size).step_by(size / 150 + 1).chain(0..60) {
        packed.replace(place, |content| content[at] ^= 0x41);
        let bundle = Bundle::open(&packed.path).unwrap();
        let blobs = rebuilt(vec![old_blobs.clone()], std::slice::from_ref(&bundle));
        assert!(read(&blobs, &new_layer).is_err(), "byte {at}");
        packed.replace(place, |content| content[at] ^= 0x41);
    }
}

/// Flips a bit in the middle of the entry with this name or digest, and returns the items that
/// verification reports as affected.
fn affected_items(packed: &Packed, entry: &str) -> Vec<ItemName> {
    let bundle = Bundle::open(&packed.path).unwrap();
    let mut entries = bundle.contents().entries.iter();
    let entry = entries.find(|one| one.name.ends_with(entry)).unwrap();
    let mut bytes = std::fs::read(&packed.path).unwrap();
    bytes[(entry.content_offset() + entry.length / 2) as usize] ^= 1;
    std::fs::write(&packed.path, bytes).unwrap();
    let Err(BundleError::Damaged {
        loss: Some(loss), ..
    }) = verify(&bundle, &SilentProgress)
    else {
        panic!("the damage was not found")
    };
    loss.items.unwrap()
}

#[test]
fn damage_of_a_recipe_or_its_base_affects_the_items_that_need_it() {
    let Versions {
        memory,
        old,
        new,
        old_layer,
        ..
    } = versions();
    let (packed, _) = pack(&memory, &new, &[&old]);
    let item = |tag: &str| ItemName::new(EntryKind::Image, format!("h.example/app:{tag}"));
    assert_eq!(affected_items(&packed, &new_recipe(&packed)), [item("2")]);
    // with both versions in one bundle, the layer of the first is the base of the second
    let mut both = old.clone();
    both.images.extend(new.images);
    let (packed, summary) = pack(&memory, &both, &[]);
    let base = std::slice::from_ref(&old_layer.digest);
    assert_eq!(summary.patched[0].from, base);
    let affected = affected_items(&packed, &old_layer.digest.hex());
    assert_eq!(affected, [item("1"), item("2")]);
}

/// The name of the only recipe.
fn new_recipe(packed: &Packed) -> String {
    let bundle = Bundle::open(&packed.path).unwrap();
    bundle.contents().recipes[0].entry.clone()
}

#[test]
fn without_a_volume_the_items_that_need_recipes_in_it_are_missing() {
    let Versions {
        memory, old, new, ..
    } = versions();
    let (packed, _) = pack(&memory, &new, &[&old]);
    let bundle = Bundle::open(&packed.path).unwrap();
    let mut entries = bundle.contents().entries.iter();
    let recipe = new_recipe(&packed);
    let entry = entries.find(|entry| entry.name == recipe).unwrap();
    let base = packed.split(entry.offset..entry.end());
    std::fs::remove_file(volume_path(&base, 2)).unwrap();
    let locations = [base];
    let error = Bundle::open_at(&locations).unwrap_err();
    let UnopenedBundle { error, rest } = name_bad_volumes(error, &locations, &SilentProgress);
    // no volume of a bundle with recipes can be rebuilt
    let advice = "copy V.0002 again; or pack the bundle again";
    assert!(error.to_string().contains(advice), "{error}");
    let partial: Vec<String> = rest
        .unwrap()
        .partial()
        .iter()
        .map(|item| item.name.clone())
        .collect();
    assert_eq!(partial, ["h.example/app:2"]);
}
